"""A training with everything that its configuration names, found and checked: no torch here.

The suites come in a `Catalogue` from the command line, since the conductor knows none. Whatever can
be refused is refused here, before a model is loaded or a worker asked.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.adaptive import Shown, checked
from conductor.reading import read
from conductor.recursion import read_again
from conductor.study import Study
from conductor.training.config import TrainingConfig, VerdictsPart
from conductor.training.rows import Asking, Draw, Earlier, Row, draw_rows
from conductor.training.studied import studied
from harness.boxes import OpenBox, open_run_box, refuse_unknown, select_box
from harness.cassette import prompts_recorded
from harness.errors import UserError
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.records import Question
from harness.rewards.outcome import RewardItem
from harness.rewards.reward import Reward, RewardSettings
from harness.rewards.splits import (
    BareText,
    SuiteSplit,
    load_split,
    load_training_split,
    overlaps,
    refuse_gullible,
    refuse_overlap,
    without_overlap,
)
from harness.run.catalogue import Catalogue
from harness.run.systems import refuse_unready
from harness.suite import ModelGraded, at_epoch
from harness.workflow import Workflow

NO_TRAIN = (
    "Suite {name!r} has no train split, it is an exam only: train on another suite "
    "(`podium suites` says which have one)."
)


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """What `podium train` was asked for, beside the configuration."""

    out: Path
    resume: bool = False
    max_usd: Decimal | None = None
    dry: bool = False
    """Only an estimate is wanted: no worker will be asked, so none needs a key."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the command line hands in: suites and boxes, and what a question asks."""

    catalogue: Catalogue
    bare: BareText
    study: Callable[[VerdictsPart], Study] | None = None
    """How recorded verdicts are read."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training, found and checked."""

    config: TrainingConfig
    request: TrainRequest
    parts: Parts
    spec: PoolSpec
    book: Book
    exams: Mapping[str, SuiteSplit]
    """What teaches, by suite."""
    held_out: Mapping[str, SuiteSplit]
    """What says which checkpoint is best: validation splits, or the last train questions."""
    left_out: int
    """Questions that would teach and are asked in an exam, too."""
    study: Study | None = None
    """Where recorded verdicts stand in for workers."""
    earlier: dict[str, Earlier] = field(default_factory=dict[str, Earlier])
    """What later rounds go on from (first_rounds.py)."""

    @property
    def publishable(self) -> bool:
        """Whether texts may be written down: true when every suite's may."""
        return all(exam.suite.publishable for exam in self.exams.values())

    @property
    def asking(self) -> Asking:
        """Return how rows become prompts."""
        return Asking(self.config.form, self.spec, self.question, self.earlier)

    def question(self, row: Row) -> Question:
        """Return the question of a row, of what teaches or what is held out."""
        exam = self.exams[row.suite]
        found = exam.questions.get(row.question)
        if found is None:
            found = self.held_out[row.suite].questions[row.question]
        return at_epoch(exam.suite, found, row.epoch).sealed()

    def rows(self, count: int) -> list[Row]:
        """Return the rows that a training of so many draws asks, in order."""
        return draw_rows(self._draw({n: list(e.questions) for n, e in self.exams.items()}), count)

    def validation_rows(self) -> list[Row]:
        """Return the held-out rows, each once; the workers shown are drawn as in training."""
        rows = [Row(name, id) for name, exam in self.held_out.items() for id in exam.questions]
        drawn = draw_rows(self._draw({"": ["" for _ in rows]}, seed=1), len(rows))
        return [replace(row, workers=like.workers) for row, like in zip(rows, drawn, strict=True)]

    def read_plan(self, item: RewardItem) -> Workflow | None:
        """Return the workflow of an item; None where its text is none, or keeps an answer."""
        reader = read_again if item.first else read
        plan = reader(self.config.form, item.completion, item.workers or self.spec.names)
        return plan if isinstance(plan, Workflow) else None

    def _draw(self, exams: Mapping[str, list[str]], seed: int = 0) -> Draw:
        pool = self.config.pool
        return Draw(
            exams=exams,
            weights=self.config.suites.weights,
            workers=self.spec.names,
            shown=Shown(pool.shown, pool.order),
            seed=self.config.run.seed * 2 + seed,
        )


def found(config: TrainingConfig, request: TrainRequest, parts: Parts) -> Training:
    """Return the training that a configuration names; UserError where it must not begin."""
    if config.verdicts and parts.study:
        return _found_study(config, request, parts, parts.study(config.verdicts))
    spec = read_pool(config.pool.name)
    book = read_book(spec.prices)
    if not request.dry:
        refuse_unready(spec, book, ())
    _refuse_pool(config, spec)
    refuse_unknown(parts.catalogue.boxes, config.suites.box)
    named = {name: _exam(name, config, parts) for name in dict.fromkeys(config.suites.names)}
    examined = [load_split(exam.suite) for exam in named.values() if "eval" in exam.suite.splits]
    exams = _apart(named, examined, parts.bare)
    held_out = {
        name: without_overlap(_held_out(exam, config), examined, parts.bare)
        for name, exam in exams.items()
    }
    exams = {name: _without(exam, held_out[name], parts.bare) for name, exam in exams.items()}
    left = sum(len(named[n].questions) - len(exam.questions) for n, exam in exams.items())
    return _unlogged(Training(config, request, parts, spec, book, exams, held_out, left))


def _found_study(
    config: TrainingConfig, request: TrainRequest, parts: Parts, study: Study
) -> Training:
    made = studied(study, config.form)
    book = read_book(made.spec.prices)
    return _unlogged(
        Training(config, request, parts, made.spec, book, made.exams, made.held_out, 0, study)
    )


def _unlogged(training: Training) -> Training:
    """Return it; UserError where TRL would write down texts that must not be published."""
    if training.config.grpo.get("log_completions") and not training.publishable:
        secret = next(n for n, exam in training.exams.items() if not exam.suite.publishable)
        raise UserError(
            f"[grpo] log_completions writes prompts to files, and suite {secret!r} must not be "
            "published: leave it out."
        )
    return training


def _refuse_pool(config: TrainingConfig, spec: PoolSpec) -> None:
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot be carried out on recorded pool {spec.name!r}: its replies answer "
            "the canonical single-worker request only."
        )
    checked(Shown(config.pool.shown, config.pool.order), len(spec.names))


def _exam(name: str, config: TrainingConfig, parts: Parts) -> SuiteSplit:
    """Return what may teach of a suite; UserError where it is an exam only."""
    suites = parts.catalogue.suites
    if name not in suites:
        raise UserError(f"There is no suite {name!r}; known suites: {', '.join(sorted(suites))}.")
    suite = suites[name]
    if "train" not in suite.splits:
        raise UserError(NO_TRAIN.format(name=name))
    exam = load_training_split(suite, "train", config.suites.train)
    questions = exam.questions.values()
    if isinstance(suite, ModelGraded) and any(map(suite.needs_judge, questions)):
        raise UserError(f"Only a model can judge some questions of suite {name!r}: leave it out.")
    return exam


def _apart(
    named: Mapping[str, SuiteSplit], examined: Sequence[SuiteSplit], bare: BareText
) -> dict[str, SuiteSplit]:
    """Return what teaches without what these suites' own exams ask; UserError if that is all."""
    exams = {name: without_overlap(exam, examined, bare) for name, exam in named.items()}
    if not all(exam.questions for exam in exams.values()):
        refuse_overlap(named.values(), examined, bare)
    return exams


def _held_out(exam: SuiteSplit, config: TrainingConfig) -> SuiteSplit:
    """Return a suite's held-out questions: its validation split, else its last train questions."""
    most = config.validation.questions
    if "validation" in exam.suite.splits:
        return load_split(exam.suite, "validation", most)
    ids = list(exam.questions)
    kept = ids[-min(most, len(ids) // 2) :] if len(ids) > 1 else []
    return SuiteSplit(exam.suite, {id: exam.questions[id] for id in kept})


def _without(exam: SuiteSplit, held_out: SuiteSplit, bare: BareText) -> SuiteSplit:
    shared = {one.question for one in overlaps([exam], [held_out], bare)}
    return SuiteSplit(exam.suite, {id: q for id, q in exam.questions.items() if id not in shared})


def open_box(training: Training) -> AbstractContextManager[OpenBox | None]:
    """Return the box in which these suites' programs run; one that is None where there are none."""
    boxes = training.parts.catalogue.boxes
    suites = [exam.suite for exam in training.exams.values()]
    name = training.config.suites.box
    if any(suite.needs_box for suite in suites):
        name = select_box(name, boxes, ours=training.spec.label == "rehearsal")
    return open_run_box(boxes, name, suites, None)


async def refuse_gullible_graders(training: Training, box: Any) -> None:
    """Raise UserError when a suite's grader rewards what deserves nothing."""
    if training.study:
        return  # nothing is graded
    reward = Reward(training.exams, settings=RewardSettings(max_masked=1.0), box=box)
    for exam in training.exams.values():
        await refuse_gullible(reward, exam)
