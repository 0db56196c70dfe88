"""Training on recorded verdicts: the data set, its split, what a one-step plan is worth there.

The plan of one step names a worker, and that worker's recorded verdict on the question is the
grade. What is judged is never handed to a trainer, and `study.json` says so.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from podium.conductor.checkpoint import StudyInfo
from podium.conductor.embedded import Say
from podium.conductor.parse import PlanFormat, read_plan
from podium.conductor.prompt import plan_prompt
from podium.harness.errors import UserError
from podium.harness.learning import Matrix, MatrixQuestion
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import Grade, Question, Usage
from podium.harness.rewards.outcome import (
    PAPER,
    OutcomeValues,
    RewardCounter,
    RewardCounts,
    RewardItem,
    RewardOutcome,
    Status,
)
from podium.harness.rewards.splits import SuiteSplit, question_digest
from podium.harness.suite import NONE_PUBLISHED, Card, Split
from podium.harness.workflow import Malformed, Workflow

VALIDATES = 0.2  # share of what may teach that picks the checkpoint instead: a choice of ours
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
ONE_STEP = PlanFormat(layout="compact", cards=False, examples=False, subtasks=False, max_steps=1)
"""One worker, a bare ordinal in a fixed order: 16 names would be most of a small prompt."""
NOBODY = -1  # where a text is no plan: the model failed, so the question counts as wrong


@dataclass(frozen=True, slots=True)
class VerdictDataset:
    """What a trainer may see of recorded verdicts, and how what is judged was split off."""

    source: str  # as `podium route` names it: `lcb-leaderboard`
    suite: str  # which asks these questions: a checkpoint that they taught may not be asked it
    split: str  # as `podium route --split` names it
    split_seed: int
    teaches: Matrix
    validates: Matrix
    public: tuple[str, ...] = field(default=(), repr=False)
    """Where its own texts must not be published: others, for a tokenizer to be trained on."""

    @property
    def name(self) -> str:
        """What rows and rewards call it; no suite has such a name."""
        return f"verdicts:{self.source}"


def split_verdicts(
    may_teach: Matrix,
    *,
    source: str,
    suite: str,
    split: str,
    split_seed: int = 0,
    public: Sequence[str] = (),
) -> VerdictDataset:
    """Return the verdicts that may teach; UserError when they are too few to split."""
    if not all(asked.text.strip() for asked in may_teach.questions):
        raise UserError(
            f"{may_teach.name}: some questions have no text here, and a conductor reads nothing "
            "else."
        )
    groups = _grouped(may_teach.questions, split_seed)
    wanted = max(1, round(len(may_teach.questions) * VALIDATES))
    picks: list[int] = []
    while groups and len(picks) < wanted:
        picks += groups.pop()
    teaches = sorted(at for group in groups for at in group)
    if not teaches:
        raise UserError(f"{may_teach.name}: too few questions may teach to train on.")
    parts = may_teach.rows(teaches), may_teach.rows(sorted(picks))
    return VerdictDataset(source, suite, split, split_seed, *parts, tuple(public))


def _grouped(asked: Sequence[MatrixQuestion], seed: int) -> list[list[int]]:
    """Return indices of equal questions together, in the order that `split_verdicts` says."""
    groups: dict[str, list[int]] = {}
    for at, one in enumerate(asked):
        groups.setdefault(question_digest(one.text), []).append(at)
    found = list(groups.values())
    if all(one.date for one in asked):
        return sorted(found, key=lambda group: max((asked[at].date, asked[at].id) for at in group))
    Random(f"study/{seed}").shuffle(found)
    return found


def verdict_questions(part: Matrix) -> Mapping[str, Question]:
    """Return the questions by id, without targets."""
    return {asked.id: Question(asked.id, asked.text, asked.kind) for asked in part.questions}


def study_info(verdicts: VerdictDataset, form: PlanFormat, seed: int) -> StudyInfo:
    """Return what a checkpoint says of the verdicts that taught it."""
    return StudyInfo(
        source=verdicts.source,
        pinned=verdicts.teaches.source,
        exam=verdicts.suite,
        split=verdicts.split,
        split_seed=verdicts.split_seed,
        workers=verdicts.teaches.workers,
        taught=tuple(asked.id for asked in verdicts.teaches.questions),
        validated=tuple(asked.id for asked in verdicts.validates.questions),
        form=form,
        seed=seed,
    )


def refuse_taught(about: StudyInfo, judged: Matrix, folder: Path) -> None:
    """Raise UserError when a checkpoint may not be judged so: other verdicts, or it was taught."""
    if about.pinned != judged.source or about.workers != judged.workers:
        raise UserError(
            f"{folder} was trained on other verdicts ({about.source}): judge it on those."
        )
    seen = {*about.taught, *about.validated}
    both = [asked.id for asked in judged.questions if asked.id in seen]
    if both:
        raise UserError(
            f"{len(both)} of the judged questions taught {folder} or picked it, first {both[0]}: "
            f"judge it with --split {about.split} --seed {about.split_seed}."
        )


@dataclass(frozen=True, slots=True)
class _VerdictSuite:  # what is judged is in none of its splits
    name: str
    data_revision: str
    publishable: bool
    parts: Mapping[Split, Mapping[str, Question]]
    version: str = "1-A"
    dates: str = "of its source"
    needs_box: bool = False
    image: str = ""

    @property
    def splits(self) -> tuple[Split, ...]:
        return tuple(self.parts)

    @property
    def card(self) -> Card:
        sizes: dict[Split, int] = {split: len(part) for split, part in self.parts.items()}
        about = "Questions with recorded verdicts of real models (role study)."
        return Card(self.name, self.data_revision, sizes, "its source's", NONE_PUBLISHED, about, ())

    def load(self, split: Split = "eval") -> Sequence[Question]:
        if split not in self.parts:
            raise UserError(f"{self.name} has no {split!r} split: podium route judges studies.")
        return tuple(self.parts[split].values())

    def read_problems(self, path: Path) -> Sequence[Question]:
        raise UserError(f"{self.name} reads no file of problems.")

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        raise UserError(f"{self.name} has verdicts already, and grades no reply.")


def verdict_splits(verdicts: VerdictDataset) -> tuple[SuiteSplit, SuiteSplit]:
    """Return what teaches, and what picks the checkpoint."""
    teaches, validates = map(verdict_questions, (verdicts.teaches, verdicts.validates))
    suite = _VerdictSuite(
        name=verdicts.name,
        data_revision=verdicts.teaches.source,
        publishable=verdicts.teaches.publishable,
        parts={"train": teaches, "validation": validates},
    )
    return SuiteSplit(suite, teaches), SuiteSplit(suite, validates)


def verdict_pool(matrix: Matrix) -> PoolSpec:
    """Return a pool of a matrix's workers, in its order; nobody in it can be asked."""
    names = [_OTHERS.sub("-", name).strip("-._") or "worker" for name in matrix.workers]
    if len(set(names)) < len(names):
        names = [f"{at}-{name}" for at, name in enumerate(names)]
    workers = tuple(
        WorkerSpec(name=name, model=f"recorded/{name}", card=card)
        for name, card in zip(names, matrix.workers, strict=True)
    )
    digest = hashlib.sha256("\n".join(matrix.workers).encode()).hexdigest()
    return PoolSpec(
        name="verdicts",
        label="recorded",
        prices="none",
        description=f"Recorded verdicts: {matrix.name}.",
        workers=workers,
        sha256=digest,
    )


Scores = Mapping[str, tuple[float | None, ...]]  # by question id and worker; None: not measured


def recorded_verdicts(
    suite: str, matrix: Matrix, names: Sequence[str] = ()
) -> tuple[str, tuple[str, ...], Scores]:
    """Return what a reward needs of a matrix: without texts; `suite` is what rows call it."""
    rows: list[list[float]] = matrix.scores.tolist()
    known = (tuple(None if one != one else one for one in row) for row in rows)  # NaN differs
    ids = (asked.id for asked in matrix.questions)
    return suite, tuple(names) or matrix.workers, dict(zip(ids, known, strict=True))


@dataclass(frozen=True, slots=True)
class VerdictReward:
    """Rewards one-step plans: 0 unreadable, 0.5 wrong, 1 right, and in between as graded."""

    suite: str
    workers: tuple[str, ...]  # in the order of their numbers, where an item shows no other order
    scores: Scores
    form: PlanFormat = ONE_STEP
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
        """Return one outcome per item, in order; see `RewardScorer` for what it raises."""
        for item in items:  # all are refused before one is noted
            self._refuse(item)
        made = [self._outcome(item) for item in items]
        for outcome in made:
            self.tally.note(outcome)
        self.tally.refuse()
        return made

    def _refuse(self, item: RewardItem) -> None:
        strangers = [name for name in item.workers if name not in self.workers]
        if item.suite != self.suite:
            raise UserError(f"There are verdicts on {self.suite!r}, none on {item.suite!r}.")
        if item.question not in self.scores:
            raise UserError(f"Nobody recorded verdicts on question {item.question!r}.")
        if item.first:
            raise UserError("Recorded verdicts are of first answers: there is no second round.")
        if strangers:
            raise UserError(f"Nobody recorded verdicts of worker {strangers[0]!r}.")

    def _outcome(self, item: RewardItem) -> RewardOutcome:
        plan = read_plan(self.form, item.completion, item.workers or self.workers)
        status, grade, parsed, said = Status.SCORED, None, 1.0, ""
        if isinstance(plan, Malformed):
            status, grade, parsed = Status.INVALID_ACTION, 0.0, 0.0
            said = f"No workflow: {plan.reason}."
        else:
            asked = plan.steps[0].worker
            grade = self.scores[item.question][self.workers.index(asked)]
            if grade is None:
                status, parsed = Status.SCORER_ERROR, None
                said = f"Nobody recorded a verdict of {asked} on question {item.question}."
        value = None if grade is None else self.values.of(status, grade)
        parts = {"correct": grade, "parsed": parsed}
        return RewardOutcome(value, status, parts, usage=Usage(), usd=Decimal(0), reason=said)


def planned_workers(about: StudyInfo, judged: Matrix, say: Say) -> NDArray[np.intp]:
    """Return, per question, the index of the worker that the plan names, `NOBODY` without one."""
    workers = judged.workers
    shown = [name if about.form.cards else "" for name in workers]
    found: list[int] = []
    for question in verdict_questions(judged).values():
        plan = read_plan(about.form, say(plan_prompt(about.form, question.text, shown)), workers)
        named = isinstance(plan, Workflow)
        found.append(workers.index(plan.steps[0].worker) if named else NOBODY)
    return np.array(found, dtype=np.intp)
