"""How a baseline spends its training budget: rounds of tries on train questions.

Every try is an Inspect sample like any other: logged, priced, journaled and resumable, below
`LOG_DIR/tuning`. The engine is tuning.py; what is tried, and what is learnt, is each
baseline's own (`template-router`, `trinity`, cascades).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.learning.learned import Learned
from harness.records import EMPTY, Question


@dataclass(frozen=True, slots=True)
class Curriculum:
    """What there is to learn from, and with how much."""

    questions: tuple[Question, ...]
    """Of the declared train split, sealed, in a fixed order."""
    workers: tuple[str, ...]
    calls: int
    """Worker calls that may be spent: the same for every tunable system of a run."""
    seed: int
    suites: tuple[str, ...]
    publishable: bool = True
    """False when an artefact must hold no words of these questions."""


@dataclass(frozen=True, slots=True)
class Round:
    """Tries to make next: `questions` of the split from `first` on, each `epochs` times.

    What is tried on (question, epoch) is decided by the solver from its arguments alone, so that a
    resumed round tries the same.
    """

    solver: str
    """Registry name, e.g. `baselines/try_templates`."""
    args: Mapping[str, Any]
    questions: int
    epochs: int
    first: int = 0
    """Index of the first of them in `Curriculum.questions`, so that rounds may see others."""
    most_calls: int | None = None
    """The most worker calls of one try, by which a round is cut to the budget; None where its plans
    can be counted beforehand (harness/estimate/plans.py), else five are taken for granted."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One try."""

    question: str
    epoch: int
    value: float | None
    """None when we failed to answer or to grade it: nothing is learnt from it."""
    calls: int
    usd: float | None
    plan: str
    """The workflow that was run, as JSON."""
    noted: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """What the system noted of how it decided (`Answer.noted`)."""


class Explorer(Protocol):
    """How a system learns by trying."""

    def next_round(self, given: Curriculum, done: Sequence[Sequence[Tried]]) -> Round | None:
        """Return what to try after the rounds so far; None when there is enough, or no budget."""
        ...

    def learnt(self, given: Curriculum, done: Sequence[Sequence[Tried]]) -> Learned:
        """Return what the tries have taught."""
        ...
