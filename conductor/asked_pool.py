"""The pool of a training: paced, with replies that were paid for before, and counted.

One pool serves one item, as in an evaluation one serves one sample. Not here: carrying workflows
out (plan_reward.py), where replies are kept (harness/reply_cache.py).
"""

from dataclasses import dataclass, field

from conductor.pacing import Pace
from harness.pool import Pool
from harness.pool_config import PoolSpec
from harness.records import Reply
from harness.reply_cache import PaidReplies, key_of
from harness.request import Request, SampleIndex, request_digest


@dataclass(frozen=True, slots=True)
class Asking:
    """How the workers of a training are asked; all its items share one."""

    identities: dict[str, str]
    """By worker: all that its replies depend on beside the request."""
    pace: Pace
    paid: PaidReplies | None
    """None: nothing is kept, and every request is a call."""


def identities(spec: PoolSpec, seed: int) -> dict[str, str]:
    """Return what tells the replies of one worker from another's: model, settings, seed."""
    parts = {"model", "config", "args"}
    return {slot.name: f"{seed} {slot.model_dump_json(include=parts)}" for slot in spec.slots}


@dataclass(slots=True)
class AskedPool(Pool):
    """A pool that keeps the replies it gave: they are paid for, whatever becomes of the rest."""

    asking: Asking | None = None
    lasting: bool = True
    """Whether its replies may be written to a file."""
    replies: list[Reply] = field(default_factory=list[Reply])
    cached: int = 0
    """Replies that were not asked for: they had been paid for."""

    async def _reply(self, request: Request, number: SampleIndex) -> Reply:
        asking = self.asking
        assert asking is not None, "Planned gives every pool its own"

        async def ask() -> Reply:
            async with asking.pace.turn(request.role):
                return await Pool._reply(self, request, number)

        known = False
        if asking.paid is None:
            reply = await ask()
        else:
            key = _key(asking, request, number)
            reply, known = await asking.paid.reply(key, ask, lasting=self.lasting)
        self.cached += known
        self.replies.append(reply)
        return reply


def _key(asking: Asking, request: Request, number: SampleIndex) -> bytes:
    prescribed = request.config.model_dump_json(exclude_none=True)
    said = request_digest(request.messages)
    who = asking.identities.get(request.role, request.role)
    return key_of(request.role, who, said, prescribed, number.epoch, number.occurrence)
