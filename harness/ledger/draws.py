"""One draw of a worker's reply: by which request it is known, who bought it, how it is kept.

The k-th draw of a worker on one request is the same reply for every system of a run that shares
draws: the first system that asks buys it, the others read it back, with the seconds that it took.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.model import ChatMessage, GenerateConfig, ModelCall, ModelOutput

from podium.harness.records import STATED
from podium.harness.reply_cache import PaidReplies, key_of
from podium.harness.request import Request

USAGES = ("usage", "usageMetadata", "usage_metadata")
"""Where a provider's response has its own counts: all of it that is kept beside the output."""
UNSAID = {"id", "metadata", "source", "model"}
"""Fields of a message that no provider is sent."""


@dataclass(frozen=True, slots=True)
class BoughtReply:
    """A reply that was paid for, and the call that paid."""

    event: ModelEvent  # in no transcript yet
    shared_from: str | None
    """Id of the call of another system; None if an earlier attempt at the same sample paid."""
    took_s: float | None
    """Its seconds when it was bought; None if they are unknown."""


@dataclass(frozen=True, slots=True)
class ReplyDraw:
    """One draw of the reply to a request: the k-th time that a sample makes it."""

    replies: PaidReplies
    key: bytes
    sample: str
    """What the reply is kept for; empty: for all systems, to the end of the run."""
    buyer: str
    """The run and the task that ask."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Let one system at a time ask for a draw that several share."""
        return nullcontext() if self.sample else self.replies.turn(self.key)

    def bought(self, request: Request, waited_s: float = 0.0) -> BoughtReply | None:
        """Return the reply if it was paid for, `waited_s` seconds after it was asked for."""
        kept = self.replies.known(self.key)
        if kept is None:
            return None
        output, usage, *bought = json.loads(kept)  # earlier versions kept no buyer
        buyer, call, took_s = bought or (self.buyer, None, None)
        if buyer == self.buyer:
            return BoughtReply(self._event(request, output, usage), None, took_s)
        # As a rehearsal worker says how long it takes: the critical path counts it.
        if took_s is not None:
            output["metadata"] = {**(output.get("metadata") or {}), STATED: took_s}
        event = self._event(request, output, usage)
        event.working_time = round(waited_s, 6)
        return BoughtReply(event, call, took_s)

    def _event(self, request: Request, output: Any, usage: Any) -> ModelEvent:
        model, offered = request.model, request.offered
        return ModelEvent(  # as Inspect has one of a reply that it reads from its cache
            model=str(model),
            role=model.role,
            input=list(request.messages),
            tools=list(offered.tools),
            tool_choice=offered.tool_choice or "none",
            config=model.config.merge(request.config),
            cache="read",
            output=ModelOutput.model_validate(output),
            call=ModelCall.create({}, usage) if usage else None,
        )

    def keep(
        self,
        output: ModelOutput,
        response: Mapping[str, Any],
        call: str | None,
        took_s: float | None,
    ) -> None:
        """Keep a reply that no file has yet, the call that paid and its seconds, None if unknown.

        Raises OSError if it cannot be written.
        """
        usage = {name: response[name] for name in USAGES if name in response}
        try:
            buyer = json.dumps([usage, self.buyer, call, took_s])[1:]
            said = f"[{output.model_dump_json(exclude_none=True)},{buyer}"
        except ValueError:  # a text that no file can hold
            return
        self.replies.keep(self.key, said, self.sample)

    @property
    def batch(self) -> tuple[str, str] | None:
        """The batch that its request is in, and the request's id there; None if it is in none."""
        kept = self.replies.known(self._batch_key)
        return None if kept is None else tuple(json.loads(kept))

    def keep_batch(self, batch: str, custom_id: str) -> None:
        """Keep where its request was submitted; OSError if that cannot be written."""
        self.replies.keep(self._batch_key, json.dumps([batch, custom_id]), self.sample)

    def forget_batch(self) -> None:
        """Let its request be submitted again."""
        self.replies.drop(self._batch_key)

    @property
    def _batch_key(self) -> bytes:
        return key_of(self.key.hex(), "batch")


def sample_name(task: str, question: str, epoch: int) -> str:
    """Return what the replies of a sample are kept for."""
    return json.dumps([task, question, epoch])


def what_is_asked(request: Request) -> tuple[object, ...]:
    """Return what tells two requests to a worker apart, as plain JSON values."""
    offered = request.offered
    return (
        str(request.model),
        request.model.model_args,
        _settings(request.model.config),
        _settings(request.config),
        [_turn(message) for message in request.messages],
        [tool.model_dump(exclude_none=True) for tool in offered.tools],
        str(offered.tool_choice),
    )


def _settings(config: GenerateConfig) -> dict[str, Any]:
    # The same draw, in a batch or not: else one that was paid for would be bought again.
    written = config.model_dump(exclude_none=True, exclude={"batch"})
    return written if config.model_fields_set else {}


def _turn(message: ChatMessage) -> object:
    if isinstance(message.content, str) and message.role in ("system", "user"):
        return [message.role, message.content]  # as nearly all
    return message.model_dump(exclude=UNSAID, exclude_none=True)
