"""How a completion becomes an answer, before anybody grades it.

`as_reply` takes the completion itself; a conductor's workflows are carried out by an `Answerer` of
conductor/plan_reward.py. Not here: grading and what an answer is worth (core.py).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol, runtime_checkable

from harness.records import Question, Usage
from harness.rewards.items import RewardItem, Status, Work


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of a completion before it is graded."""

    text: str | None
    """The answer; None exactly when the status is not `SCORED`."""
    status: Status = Status.SCORED
    """`SCORED`: grade the text. Any other: there is nothing to grade, and this is why."""
    usage: Usage | None = field(default_factory=Usage)
    usd: Decimal | None = Decimal(0)
    calls: int = 0
    reason: str = ""
    work: Work | None = None
    """What was carried out; None where the completion is the answer, or is no workflow."""
    again: bool = False
    """True in a later round."""

    def __post_init__(self) -> None:
        if (self.text is None) == (self.status is Status.SCORED):
            raise ValueError(f"an answer that is {self.status} has text {self.text is not None}")


@runtime_checkable
class Checking(Protocol):
    """An answerer that can tell beforehand which items it could never answer."""

    def check(self, item: RewardItem) -> None:
        """Raise UserError for an item that names what is not there, before anything is done."""
        ...


Answerer = Callable[[RewardItem, Question], Awaitable[Answered]]
"""Makes an item's completion into an answer; the question comes sealed. WorkerError is a worker's
failure, SpendLimit the money's; a malformed completion is a status, never an exception."""


async def as_reply(item: RewardItem, question: Question) -> Answered:
    """Answer with the completion itself."""
    return Answered(item.completion)
