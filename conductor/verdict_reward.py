"""A plan's worth from recorded verdicts: whom it asks says all; nothing is carried out.

`VerdictReward` is a `Scores` over a `Matrix` (harness/learning/matrix.py): the plan of one step
names a worker, and the question's cell of that worker is its grade. Its subtask is not looked at,
for the recorded replies answered the bare question. The reward holds ids and numbers, no text.
Not here: which questions teach and how they are put (study.py), reading a plan (reading.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from conductor.form import Form
from conductor.reading import read
from harness.errors import UserError
from harness.learning.matrix import Matrix
from harness.records import Usage
from harness.rewards.outcome import RewardCounter, RewardCounts, RewardItem, RewardOutcome, Status
from harness.rewards.reward import PAPER, OutcomeValues
from harness.workflow import Malformed

ONE_STEP = Form(layout="compact", cards=False, examples=False, subtasks=False, max_steps=1)
"""What a recorded verdict can be the verdict of: one worker, asked the question itself. Workers
are bare ordinals in a fixed order: 16 names would be most of a small model's prompt, and what it
learns of a worker comes from rewards, not from a name."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The verdicts of one suite's questions, without their texts."""

    suite: str
    workers: tuple[str, ...]
    """In the order of their numbers, where an item shows no other order."""
    scores: Mapping[str, tuple[float | None, ...]]
    """By question id, one per worker; None was not measured."""


def recorded(suite: str, matrix: Matrix, names: Sequence[str] = ()) -> Recorded:
    """Return what a reward needs of a matrix; `suite` is what rows call it.

    `names` are what a pool calls the workers, in the matrix's order; by default their own.
    """
    rows: list[list[float]] = matrix.scores.tolist()
    known = (tuple(None if one != one else one for one in row) for row in rows)  # NaN differs
    ids = (asked.id for asked in matrix.questions)
    return Recorded(suite, tuple(names) or matrix.workers, dict(zip(ids, known, strict=True)))


@dataclass(frozen=True, slots=True)
class VerdictReward:
    """Rewards one-step plans: 0 unreadable, 0.5 wrong, 1 right, and in between as graded.

    It pickles, counts begun anew. UserError for a form that allows a second step.
    """

    verdicts: Recorded
    form: Form = ONE_STEP
    values: OutcomeValues = PAPER
    tally: RewardCounter = field(
        default_factory=lambda: RewardCounter(max_masked=0.3, masked_after=32)
    )

    def __post_init__(self) -> None:
        if self.form.max_steps != 1:
            raise UserError(
                f"Recorded verdicts are of one worker alone, and this form allows "
                f"{self.form.max_steps} steps: set max_steps = 1."
            )

    @property
    def counts(self) -> RewardCounts:
        """What has been rewarded so far."""
        return self.tally.counts()

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; see `Scores` for what it raises."""
        rows = [self._row(item) for item in items]
        made = [self._outcome(item, row) for item, row in zip(items, rows, strict=True)]
        for outcome in made:
            self.tally.note(outcome)
        self.tally.refuse()
        return made

    def _row(self, item: RewardItem) -> Mapping[str, float | None]:
        """Return the verdicts on the item's question by worker."""
        known = self.verdicts
        if item.suite != known.suite:
            raise UserError(f"There are verdicts on {known.suite!r}, none on {item.suite!r}.")
        if item.question not in known.scores:
            raise UserError(f"Nobody recorded verdicts on question {item.question!r}.")
        if item.first:
            raise UserError("Recorded verdicts are of first answers: there is no second round.")
        strangers = [name for name in item.workers if name not in known.workers]
        if strangers:
            raise UserError(f"Nobody recorded verdicts of worker {strangers[0]!r}.")
        return dict(zip(known.workers, known.scores[item.question], strict=True))

    def _outcome(self, item: RewardItem, row: Mapping[str, float | None]) -> RewardOutcome:
        plan = read(self.form, item.completion, item.workers or self.verdicts.workers)
        if isinstance(plan, Malformed):
            said = f"No workflow: {plan.reason}."
            return self._valued(Status.INVALID_ACTION, 0.0, parsed=0.0, reason=said)
        asked = plan.steps[0].worker
        grade = row[asked]
        if grade is None:
            said = f"Nobody recorded a verdict of {asked} on question {item.question}."
            return self._valued(Status.SCORER_ERROR, None, parsed=None, reason=said)
        return self._valued(Status.SCORED, grade, parsed=1.0)

    def _valued(
        self, status: Status, grade: float | None, *, parsed: float | None, reason: str = ""
    ) -> RewardOutcome:
        """Return an outcome; no worker was asked, so it took no tokens, dollars or calls."""
        value = None if grade is None else self.values.of(status, grade)
        components = {"correct": grade, "parsed": parsed}
        return RewardOutcome(
            value, status, components, usage=Usage(), usd=Decimal(0), reason=reason
        )
