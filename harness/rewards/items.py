"""What a reward is asked and what it says: items in, outcomes out, in the same order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from harness.records import EMPTY, Usage


class Status(StrEnum):
    """Why an outcome has its value, or none. The first three are the policy's own doing."""

    SCORED = "scored"
    INVALID_ACTION = "invalid_action"
    """The completion is no workflow, where one was wanted: valued, as the settings say."""
    POLICY_FAULT = "policy_fault"
    """A workflow that cannot be carried out, by its own making (a context too long): valued."""
    WORKER_ERROR = "worker_error"
    """A worker gave no reply after its retries."""
    SCORER_ERROR = "scorer_error"
    """Grading failed: a sandbox is down, a disk is full, only a model could judge."""
    TIMEOUT = "timeout"
    """The item's deadline passed and what ran for it was ended (a program's own limits: graded)."""
    BUDGET = "budget"
    """The money was spent before this item's turn."""


VALUED = (Status.SCORED, Status.INVALID_ACTION, Status.POLICY_FAULT)
"""The statuses that say something about the policy; all others have no value and are masked."""


@dataclass(frozen=True, slots=True)
class RewardItem:
    """One completion to reward, for a question that is addressed by id, never by its text."""

    suite: str
    question: str
    """The question's id."""
    completion: str
    """A reply to the question, or a workflow where the reward carries workflows out."""
    epoch: int = 1
    """Which epoch's form of the question was asked, in suites that vary it."""
    replicate: int = 0
    """The k-th equal completion of a group: carried out anew, though graded once."""
    workers: tuple[str, ...] = ()
    """The workers that the policy was shown, in the order of their numbers; empty: the pool's."""
    first: str = ""
    """Where the policy was asked again: the id of the first round (conductor/recursion.py)."""


@dataclass(frozen=True, slots=True)
class Work:
    """The workflow that was carried out for an item, for logs."""

    workers: tuple[str, ...]
    """Who does its steps, in order; empty where an earlier answer is kept."""
    plan: str = ""
    """The workflow as JSON; empty where the suite's questions may not be published."""
    cached: int = 0
    """Calls that were not made, for the same reply had been paid for."""
    leaked: bool | None = None
    """Whether a subtask already holds the answer (leaks.py); None where that is not known."""


@dataclass(frozen=True, slots=True)
class RewardOutcome:
    """What one item came to."""

    value: float | None
    """None exactly when the status is not one of `VALUED`: no statement about the policy."""
    status: Status
    components: Mapping[str, float | None] = field(default_factory=lambda: EMPTY)
    """Always the keys `correct` and `parsed`; None where unknown, never a silent 0."""
    usage: Usage | None = None
    """Worker tokens; None when a worker reported none. All zero when no worker was asked."""
    usd: Decimal | None = None
    """Would-be dollars; None when a call had no price."""
    calls: int = 0
    latency_s: float = 0.0
    grading_s: float = 0.0
    """Seconds of `latency_s` that went by until it was graded, after it was answered."""
    shared: bool = False
    """True when an equal item's grade was used again."""
    reason: str = ""
    """One sentence; never a question's text."""
    work: Work | None = None
    """None where no workflow was read, or the completion is the answer."""


class Scores(Protocol):
    """Anything that rewards: `core.Reward` in this process, `client.RewardClient` in another."""

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order.

        Raises `TooManyMasked` when the share without a value is beyond its limit, and UserError for
        an item that names no known question; nothing else.
        """
        ...
