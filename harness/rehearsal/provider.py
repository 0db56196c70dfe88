"""The seam to Inspect: `rehearsal/<worker>` as a model provider, offline, with its own usage.

Randomness comes from (seed, model or stream, request, epoch, occurrence) and from nothing else, so
a reply can be reproduced from its log. Temperature scales slips; temperature 0 makes none.
"""

import hashlib
import random
import time
from collections import Counter
from typing import Any

import anyio
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from harness.rehearsal.minds import respond
from harness.rehearsal.settings import settled
from harness.rehearsal.tokens import count, cut
from harness.replicate import CURRENT, Replicate, request_digest


class RehearsalAPI(ModelAPI):
    """One rehearsal worker as an Inspect model."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        """Set a worker up; UserError names an unknown worker or model argument."""
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self.settings = settled(model_name, model_args)
        self._asked: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Reply to a chat; the reply is cut at `max_tokens`, as any provider would."""
        started = time.monotonic()
        digest = request_digest(input)
        heat = 1.0 if config.temperature is None else config.temperature
        text = respond(self.settings.worker, input, self._random(digest), heat)
        limit = config.max_tokens
        short = text if limit is None else cut(text, limit)
        usage = _usage(input, short)
        await anyio.sleep(self.settings.latency_s(usage.output_tokens) * self.settings.time_scale)
        message = ChatMessageAssistant(content=short, model=self.model_name, source="generate")
        stop = "stop" if short == text else "max_tokens"
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=usage,
            time=time.monotonic() - started,
        )

    def _random(self, digest: str) -> random.Random:
        current = CURRENT.get()
        if current is None:
            current = Replicate(epoch=1, occurrence=self._asked[digest])
            self._asked[digest] += 1
        key = (self.settings.seed, self.settings.stream, digest, current.epoch, current.occurrence)
        return random.Random(int(hashlib.sha256(repr(key).encode()).hexdigest(), 16))

    def max_connections(self) -> int:
        """Return how many calls may be in flight: no server has to be spared."""
        return 64


def _usage(messages: list[ChatMessage], reply: str) -> ModelUsage:
    """Count both sides; four tokens per message stand for the turn markers of a chat format."""
    asked = sum(4 + count(message.text) for message in messages)
    said = max(1, count(reply))
    total = asked + said
    return ModelUsage(
        input_tokens=asked, output_tokens=said, total_tokens=total, reasoning_tokens=0
    )
