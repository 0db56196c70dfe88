"""The Inspect provider `recorded/<worker>`: replays a cassette, and fails where it has no reply.

Text, token counts and stop reason are those of the recording. Which replicate is wanted comes from
the pool (harness/replicate.py); outside a pool requests count as epoch 1, repeated in order. What
the recording does not say (its prompt, perhaps) is in the output's metadata, so logs show it.
"""

from collections import Counter
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo

from harness.cassette import Cassette, Row, open_cassette
from harness.errors import UserError
from harness.replicate import CURRENT, Replicate, request_digest


class RecordedAPI(ModelAPI):
    """One worker of a cassette: `get_model("recorded/<worker>", cassette=NAME_OR_PATH)`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        """Open the cassette; UserError when it, or the worker in it, does not exist."""
        super().__init__(model_name, base_url, api_key, [], config)
        name = model_args.get("cassette")
        if not name:
            raise UserError(f"recorded/{model_name} needs a cassette: -M cassette=PATH.jsonl.")
        self.cassette: Cassette = open_cassette(str(name))
        if model_name not in self.cassette.workers:
            known = ", ".join(self.cassette.workers)
            raise UserError(f"Cassette {name} has no worker {model_name!r}; it has: {known}.")
        self.asked: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the recorded reply; `CassetteMiss` when nobody recorded one."""
        digest = request_digest(input)
        row = self.cassette.lookup(self.model_name, digest, self._replicate(digest))
        return _output(row, self.cassette)

    def connection_key(self) -> str:
        """Share one connection limit among the workers of a cassette."""
        return f"recorded/{self.cassette.name}"

    def max_connections(self) -> int:
        """Replaying is a look-up, so the limit is generous."""
        return 100

    def _replicate(self, digest: str) -> Replicate:
        current = CURRENT.get()
        if current is not None:
            return current
        occurrence = self.asked[digest]
        self.asked[digest] += 1
        return Replicate(epoch=1, occurrence=occurrence)


def _output(row: Row, cassette: Cassette) -> ModelOutput:
    output = ModelOutput.from_content(row.model, row.text, stop_reason=row.stop_reason)
    if row.usage is not None:
        tokens = row.usage
        output.usage = ModelUsage(
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            total_tokens=tokens.input + tokens.output + tokens.cache_read + tokens.cache_write,
            input_tokens_cache_read=tokens.cache_read,
            input_tokens_cache_write=tokens.cache_write,
            reasoning_tokens=tokens.reasoning,
        )
    output.metadata = {
        "recorded": {
            "source": row.source,
            "source_label": cassette.header.source_label,
            "prompt_recorded": row.prompt_recorded,
            "cassette_sha256": cassette.sha256,
        }
    }
    return output
