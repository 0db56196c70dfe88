"""Training on recorded verdicts (grades of models' replies): data set, split, rewards.

A plan has one step and names a worker; that worker's recorded verdict on the question is the plan's
grade. A trainer never gets the evaluation questions; `study.json` lists all questions that it got.
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

VALIDATES = 0.2  # share of the questions that is held out to select the checkpoint (our choice)
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
ONE_STEP = PlanFormat(layout="compact", cards=False, examples=False, subtasks=False, max_steps=1)
"""Format of plans of one step. The prompt numbers the workers without describing them, as 16 names
would fill most of a short prompt."""
NO_WORKER = -1  # index for an unreadable plan, which counts as a wrong answer


@dataclass(frozen=True, slots=True)
class VerdictDataset:
    """Recorded verdicts (grades) for training and validation, without those kept for evaluation."""

    source: str  # as `podium route` names it: `lcb-leaderboard`
    suite: str  # the questions' suite, which must not evaluate a checkpoint trained on them
    split: str  # as `podium route --split` names it
    split_seed: int
    teaches: Matrix
    validates: Matrix
    public: tuple[str, ...] = field(default=(), repr=False)
    """Other texts to train a tokenizer on, if the questions' own texts must not be published."""

    @property
    def name(self) -> str:
        """The data set's name in training rows and rewards, used like a suite's name."""
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
    """Split verdicts into training and validation; UserError if too few or if a text is missing."""
    if not all(question.text.strip() for question in may_teach.questions):
        raise UserError(
            f"{may_teach.name}: some questions have no text, but a conductor reads only the text. "
            "`podium route --list` says how to get the texts."
        )
    groups = _grouped(may_teach.questions, split_seed)
    size = max(1, round(len(may_teach.questions) * VALIDATES))
    picks: list[int] = []
    while groups and len(picks) < size:
        picks += groups.pop()
    teaches = sorted(index for group in groups for index in group)
    if not teaches:
        raise UserError(
            f"{may_teach.name}: too few questions may be used for training. Use another split."
        )
    matrices = may_teach.rows(teaches), may_teach.rows(sorted(picks))
    return VerdictDataset(source, suite, split, split_seed, *matrices, tuple(public))


def _grouped(items: Sequence[MatrixQuestion], seed: int) -> list[list[int]]:
    """Group indices of equal questions; sort groups by date, or shuffle if any date is missing."""
    groups: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        groups.setdefault(question_digest(item.text), []).append(i)
    lists = list(groups.values())
    if all(item.date for item in items):
        return sorted(lists, key=lambda group: max((items[i].date, items[i].id) for i in group))
    Random(f"study/{seed}").shuffle(lists)
    return lists


def verdict_questions(matrix: Matrix) -> Mapping[str, Question]:
    """Return question id -> question, without the correct answer, for a matrix of verdicts."""
    return {q.id: Question(q.id, q.text, q.kind) for q in matrix.questions}


def study_info(verdicts: VerdictDataset, form: PlanFormat, seed: int) -> StudyInfo:
    """Return the content of a checkpoint's `study.json`: the verdicts that it was trained on."""
    return StudyInfo(
        source=verdicts.source,
        pinned=verdicts.teaches.source,
        exam=verdicts.suite,
        split=verdicts.split,
        split_seed=verdicts.split_seed,
        workers=verdicts.teaches.workers,
        taught=tuple(question.id for question in verdicts.teaches.questions),
        validated=tuple(question.id for question in verdicts.validates.questions),
        form=form,
        seed=seed,
    )


def refuse_taught(about: StudyInfo, judged: Matrix, folder: Path) -> None:
    """Raise UserError if a checkpoint was trained on other verdicts or on questions of `judged`."""
    if about.pinned != judged.source or about.workers != judged.workers:
        raise UserError(
            f"{folder} was trained on other verdicts. Evaluate it with the data of its training: "
            f"podium route {about.source} --conductor {folder}."
        )
    used = {*about.taught, *about.validated}
    both = [question.id for question in judged.questions if question.id in used]
    if both:
        raise UserError(
            f"{folder} was trained or selected on {len(both)} of the questions to route, first "
            f"{both[0]}. Evaluate it with --split {about.split} --seed {about.split_seed}."
        )


@dataclass(frozen=True, slots=True)
class _VerdictSuite:  # no split has evaluation questions
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
        sizes: dict[Split, int] = {split: len(questions) for split, questions in self.parts.items()}
        about = "Questions with recorded verdicts of real models (role study)."
        return Card(self.name, self.data_revision, sizes, "its source's", NONE_PUBLISHED, about, ())

    def load(self, split: Split = "eval") -> Sequence[Question]:
        if split not in self.parts:
            raise UserError(
                f"{self.name} has no {split!r} split. Evaluate its conductor with `podium route`."
            )
        return tuple(self.parts[split].values())

    def read_problems(self, path: Path) -> Sequence[Question]:
        raise UserError(f"{self.name} has only recorded verdicts. Leave --problems out.")

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        raise UserError(
            f"Suite {self.name} does not grade replies. To reward plans on it, use the class "
            "`VerdictReward` (podium.conductor.verdict_reward)."
        )


def verdict_splits(verdicts: VerdictDataset) -> tuple[SuiteSplit, SuiteSplit]:
    """Return the verdicts' train split, and the validation split, which selects the checkpoint."""
    teaches, validates = map(verdict_questions, (verdicts.teaches, verdicts.validates))
    suite = _VerdictSuite(
        name=verdicts.name,
        data_revision=verdicts.teaches.source,
        publishable=verdicts.teaches.publishable,
        parts={"train": teaches, "validation": validates},
    )
    return SuiteSplit(suite, teaches), SuiteSplit(suite, validates)


def verdict_pool(matrix: Matrix) -> PoolSpec:
    """Return a pool of the workers with recorded verdicts; they are names, and cannot be called."""
    names = [_OTHERS.sub("-", name).strip("-._") or "worker" for name in matrix.workers]
    if len(set(names)) < len(names):
        names = [f"{number}-{name}" for number, name in enumerate(names)]
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


Scores = Mapping[str, tuple[float | None, ...]]  # question id -> score per worker; None: unknown


def recorded_verdicts(
    suite: str, matrix: Matrix, names: Sequence[str] = ()
) -> tuple[str, tuple[str, ...], Scores]:
    """Return a matrix of verdicts as a `VerdictReward`'s arguments: suite, workers and scores."""
    rows: list[list[float]] = matrix.scores.tolist()
    verdicts = (tuple(None if v != v else v for v in row) for row in rows)  # NaN != NaN
    ids = (question.id for question in matrix.questions)
    return suite, tuple(names) or matrix.workers, dict(zip(ids, verdicts, strict=True))


@dataclass(frozen=True, slots=True)
class VerdictReward:
    """Rewards one-step plans by recorded verdicts (default: unreadable 0, wrong 0.5, right 1)."""

    suite: str
    workers: tuple[str, ...]  # in the order of their numbers, unless an item shows another order
    scores: Scores
    form: PlanFormat = ONE_STEP
    values: OutcomeValues = PAPER
    tally: RewardCounter = field(
        default_factory=lambda: RewardCounter(max_masked=0.3, masked_after=32)
    )

    def __post_init__(self) -> None:
        if self.form.max_steps != 1:
            raise UserError(
                f"Each recorded verdict is on one worker alone, but this form allows "
                f"{self.form.max_steps} steps: set max_steps = 1."
            )

    @property
    def counts(self) -> RewardCounts:
        """Counts of the outcomes of all plans rewarded so far."""
        return self.tally.counts()

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item (a plan); UserError if its question or worker is unknown."""
        for item in items:  # check all before any is counted
            self._refuse(item)
        outcomes = [self._outcome(item) for item in items]
        for outcome in outcomes:
            self.tally.note(outcome)
        self.tally.refuse()
        return outcomes

    def _refuse(self, item: RewardItem) -> None:
        strangers = [name for name in item.workers if name not in self.workers]
        if item.suite != self.suite:
            raise UserError(f"The verdicts are on suite {self.suite!r}, not on {item.suite!r}.")
        if item.question not in self.scores:
            raise UserError(f"Question {item.question!r} has no recorded verdicts. Leave it out.")
        if item.first:
            raise UserError("Recorded verdicts have no second round: leave the item's `first` out.")
        if strangers:
            raise UserError(f"Worker {strangers[0]!r} has no recorded verdicts. Leave it out.")

    def _outcome(self, item: RewardItem) -> RewardOutcome:
        plan = read_plan(self.form, item.completion, item.workers or self.workers)
        status, grade, parsed, text = Status.SCORED, None, 1.0, ""
        if isinstance(plan, Malformed):
            status, grade, parsed = Status.INVALID_ACTION, 0.0, 0.0
            text = f"No workflow: {plan.reason}."
        else:
            worker = plan.steps[0].worker
            grade = self.scores[item.question][self.workers.index(worker)]
            if grade is None:
                status, parsed = Status.SCORER_ERROR, None
                text = f"Nobody recorded a verdict of {worker} on question {item.question}."
        value = None if grade is None else self.values.of(status, grade)
        grades = {"correct": grade, "parsed": parsed}
        return RewardOutcome(value, status, grades, usage=Usage(), usd=Decimal(0), reason=text)


def planned_workers(about: StudyInfo, judged: Matrix, say: Say) -> NDArray[np.intp]:
    """Return the index of the worker that each question's plan names; `NO_WORKER` if unreadable."""
    workers = judged.workers
    cards = [name if about.form.cards else "" for name in workers]
    indices: list[int] = []
    for question in verdict_questions(judged).values():
        plan = read_plan(about.form, say(plan_prompt(about.form, question.text, cards)), workers)
        readable = isinstance(plan, Workflow)
        indices.append(workers.index(plan.steps[0].worker) if readable else NO_WORKER)
    return np.array(indices, dtype=np.intp)
