"""One plan from the conductor of a pool: ask, read, and ask again when it cannot be read.

Every attempt is a call of the role `conductor`, billed as any other. Here and not in policy.py,
since later rounds (rounds.py) ask in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from inspect_ai.model import ChatMessage

from conductor.form import Form
from conductor.plan_regex import plan_regex
from conductor.prompt import retry_request
from conductor.reading import Reading, examine
from conductor.recursion import kept
from harness.errors import UserError, WorkerError
from harness.ledger.answers import PLANNING
from harness.pool import Pool
from harness.records import CONDUCTOR, Reply
from harness.workflow import Malformed, Sampling


@dataclass(frozen=True, slots=True)
class Seat:
    """A conductor and those it is shown."""

    form: Form
    pool: Pool
    workers: tuple[str, ...]
    """In the order of their numbers."""
    retries: int = 1
    constrained: bool = False
    """Whether its decoder is told to write nothing but plans."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a conductor's last attempt came to."""

    said: str
    reading: Reading
    replies: tuple[Reply, ...]
    """Of all attempts; the conductor's own, no steps."""


async def ask_for_plan(seat: Seat, request: Sequence[ChatMessage], number: int = 1) -> Planned:
    """Return the conductor's plan of round `number`, or why its last attempt could not be read."""
    if CONDUCTOR not in seat.pool.models:
        raise UserError(
            "This pool has no conductor: add a [conductor] table to the pool file, or name one "
            "with --model-role conductor=PROVIDER/MODEL."
        )
    chat, replies, sampling = list(request), list[Reply](), _sampling(seat, later=number > 1)
    while True:
        reply = await seat.pool.ask(CONDUCTOR, chat, _name(number, len(replies)), sampling)
        replies.append(reply)
        found = examine(seat.form, reply.text, seat.workers)
        keeps = number > 1 and kept(found.plan) is not found.plan
        if not isinstance(found.plan, Malformed) or keeps or len(replies) > seat.retries:
            return Planned(reply.text, found, tuple(replies))
        chat += retry_request(seat.form, reply.text, found.plan)


def _sampling(seat: Seat, *, later: bool) -> Sampling | None:
    if not seat.constrained:
        return None
    return Sampling(regex=plan_regex(seat.form, len(seat.workers), later=later))


def _name(number: int, retried: int) -> str:
    """Return what a call is called in logs."""
    round = f" again, round {number}" if number > 1 else ""
    return f"{PLANNING}{round}" + (f", retry {retried}" if retried else "")


def usd_of(replies: Sequence[Reply]) -> Decimal:
    """Return what replies cost; WorkerError where one has no price, since a limit could not hold.

    Dollars at the run's price book, as `Reply.usd`.
    """
    total = Decimal(0)
    for reply in replies:
        if reply.usd is None:
            raise WorkerError(f"{reply.worker} has no price, so a dollar budget cannot hold")
        total += reply.usd
    return total
