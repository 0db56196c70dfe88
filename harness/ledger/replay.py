"""A reply that an earlier attempt of a run has paid for, read back into the log of a later one.

    draw = next_draw(request)
    if draw and (event := draw.replayed(request)):
        ...                     # the transcript has it now, as if it was read from a cache
    else:
        draw.keep(output)       # before anything is made of it, and before its outcome is written

So a reply whose outcome is in a journal is in the store: it is billed once. One that came and was
not stored when its process died has no outcome, and is named as in flight. Where replies are kept,
and until when, is harness/reply_cache.py; lines and money are asking.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from inspect_ai.event import ModelEvent
from inspect_ai.model import ChatMessage, Model, ModelCall, ModelOutput
from inspect_ai.util import current_span_id

from harness.ledger.asking import RECORDER
from harness.ledger.observed import last_event
from harness.ledger.request import Request
from harness.reply_cache import PaidReplies, key_of

USAGES = ("usage", "usageMetadata", "usage_metadata")
"""Where a provider's response has its own counts: all of it that is kept beside the output."""
UNSAID = {"id", "metadata", "source", "model"}
"""Fields of a message that no provider is sent."""


@dataclass(frozen=True, slots=True)
class ReplyDraw:
    """One draw of the reply to a request: the k-th time that a sample makes it."""

    replies: PaidReplies
    key: bytes
    sample: str

    def replayed(self, request: Request) -> ModelEvent | None:
        """Return the event of a reply that was paid for, new in the transcript; None without."""
        said = self.replies.known(self.key)
        if said is None:
            return None
        output, usage = json.loads(said)
        call = ModelCall.create({}, usage) if usage else None
        return _recorded(request, ModelOutput.model_validate(output), call)

    def keep(self, output: ModelOutput) -> None:
        """Keep a reply that has just come; OSError when it cannot be written.

        Nothing is kept of what nobody is billed for, nor of a text that no file can hold.
        """
        if output.empty:
            return
        event = last_event(current_span_id())
        usage = _own_usage(event.call.response if event and event.call else None)
        try:
            said = f"[{output.model_dump_json(exclude_none=True)},{json.dumps(usage)}]"
        except ValueError:
            return
        self.replies.keep(self.key, said, self.sample)


def next_draw(request: Request) -> ReplyDraw | None:
    """Return which draw a request is; None where no replies are kept, as outside a run."""
    recorder = RECORDER.get()
    if recorder is None or recorder.sample is None or recorder.journal.replies is None:
        return None
    sample = sample_name(
        recorder.journal.head.task, recorder.sample.question, recorder.sample.epoch
    )
    whole = key_of(sample, recorder.scope, request.role, *_asked(request))
    number = recorder.draws[whole]
    recorder.draws[whole] += 1
    return ReplyDraw(recorder.journal.replies, key_of(whole.hex(), number), sample)


def sample_name(task: str, question: str, epoch: int) -> str:
    """Return what the replies of a sample are kept for."""
    return json.dumps([task, question, epoch])


def _asked(request: Request) -> tuple[object, ...]:
    """Return all that a reply depends on: the model as it is set, and the request as it is sent."""
    offered = request.offered
    return (
        *_model(request.model),
        request.config.model_dump(exclude_none=True),
        [_turn(message) for message in request.messages],
        [tool.model_dump(exclude_none=True) for tool in offered.tools],
        str(offered.tool_choice),
    )


def _model(model: Model) -> tuple[object, ...]:
    """Return what tells a model's replies from another's; the cache policy's scopes included."""
    settings = model.config.model_dump(exclude_none=True)
    return str(model), model.model_args, settings


def _turn(message: ChatMessage) -> object:
    if isinstance(message.content, str) and message.role in ("system", "user"):
        return [message.role, message.content]  # as nearly all
    return message.model_dump(exclude=UNSAID, exclude_none=True)


def _own_usage(response: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: response[name] for name in USAGES if name in response} if response else {}


def _recorded(request: Request, output: ModelOutput, call: ModelCall | None) -> ModelEvent:
    """Put a reply into the transcript as Inspect does with one that it reads from its cache."""
    model, offered = request.model, request.offered
    _, event = model._record_model_interaction(  # pyright: ignore[reportPrivateUsage]
        input=list(request.messages),
        tools=list(offered.tools),
        tool_choice=offered.tool_choice or "none",
        config=model.config.merge(request.config),
        cache="read",
        output=output,
        call=call,
    )
    return cast(ModelEvent, event)
