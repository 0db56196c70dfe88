"""The k-th reply (draw) of a worker to one request: which call paid, and where it is stored.

In a run that shares draws, each draw is the same reply for every system: the first system that
requests it pays, and the other systems get the stored reply with the seconds that it took.
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
"""Fields with token counts in a provider's response; the other fields are not stored."""
UNSAID = {"id", "metadata", "source", "model"}
"""Fields of a message that are not sent to a provider, so they do not identify a request."""


@dataclass(frozen=True, slots=True)
class BoughtReply:
    """A stored reply that was paid for, and the call that paid."""

    event: ModelEvent  # not yet added to Inspect's transcript
    shared_from: str | None
    """Id of another system's call that paid; None if an earlier attempt at this sample paid."""
    took_s: float | None
    """Duration of the paid call, in seconds; None if unknown."""


@dataclass(frozen=True, slots=True)
class ReplyDraw:
    """Reads and stores one draw: the reply to a request that a sample makes for the k-th time."""

    replies: PaidReplies
    key: bytes
    sample: str
    """Name of the sample that may use the reply; empty: all systems may, until the run ends."""
    buyer: str
    """Names of the run and the task that make the request, and pay if it is new."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Lock a draw that systems share, so that one system at a time requests it."""
        return nullcontext() if self.sample else self.replies.turn(self.key)

    def bought(self, request: Request, waited_s: float = 0.0) -> BoughtReply | None:
        """Return the stored reply, None if there is none; `waited_s`: seconds of waiting for it."""
        stored = self.replies.known(self.key)
        if stored is None:
            return None
        output, usage, *bought = json.loads(stored)  # earlier versions kept no buyer
        buyer, call, took_s = bought or (self.buyer, None, None)
        if buyer == self.buyer:
            return BoughtReply(self._event(request, output, usage), None, took_s)
        # Stored like a rehearsal worker's stated seconds, so that the critical path counts them.
        if took_s is not None:
            output["metadata"] = {**(output.get("metadata") or {}), STATED: took_s}
        event = self._event(request, output, usage)
        event.working_time = round(waited_s, 6)
        return BoughtReply(event, call, took_s)

    def _event(self, request: Request, output: Any, usage: Any) -> ModelEvent:
        model, offered = request.model, request.offered
        return ModelEvent(  # like Inspect's event of a reply from its cache
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
        """Store a new reply with the id of the call that paid, and its seconds (None: unknown).

        Raises OSError if the reply cannot be written.
        """
        usage = {name: response[name] for name in USAGES if name in response}
        try:
            buyer = json.dumps([usage, self.buyer, call, took_s])[1:]
            text = f"[{output.model_dump_json(exclude_none=True)},{buyer}"
        except ValueError:  # a text that UTF-8 cannot encode
            return
        self.replies.keep(self.key, text, self.sample)

    @property
    def batch(self) -> tuple[str, str] | None:
        """Ids of the provider's batch and of the request in it; None if not in a batch."""
        stored = self.replies.known(self._batch_key)
        return None if stored is None else tuple(json.loads(stored))

    def keep_batch(self, batch: str, custom_id: str) -> None:
        """Store the ids of the request's provider batch; OSError if they cannot be written."""
        self.replies.keep(self._batch_key, json.dumps([batch, custom_id]), self.sample)

    def forget_batch(self) -> None:
        """Delete the stored batch ids, so that the request is submitted again."""
        self.replies.drop(self._batch_key)

    @property
    def _batch_key(self) -> bytes:
        return key_of(self.key.hex(), "batch")


def sample_name(task: str, question: str, epoch: int) -> str:
    """Return the name under which the replies of a sample are stored."""
    return json.dumps([task, question, epoch])


def what_is_asked(request: Request) -> tuple[object, ...]:
    """Return the values that identify a request to a worker (model, settings, messages, tools)."""
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
    # Without `batch`: else a reply paid for in a batch would be bought again outside it.
    written = config.model_dump(exclude_none=True, exclude={"batch"})
    return written if config.model_fields_set else {}


def _turn(message: ChatMessage) -> object:
    if isinstance(message.content, str) and message.role in ("system", "user"):
        return [message.role, message.content]  # nearly all messages
    return message.model_dump(exclude=UNSAID, exclude_none=True)
