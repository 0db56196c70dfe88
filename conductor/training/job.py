"""A training with everything that its configuration names, found and checked: no torch here."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.plan_format import PlanFormat, read_later_plan, read_plan
from conductor.prompt import ShownWorkers, shown_count
from conductor.training.config import TrainingConfig, VerdictsPart
from conductor.training.data import (
    EarlierRound,
    PromptBuilder,
    RowDraw,
    ShownRow,
    TrainingRow,
    draw_rows,
)
from conductor.verdict_reward import (
    VerdictDataset,
    VerdictReward,
    recorded_verdicts,
    verdict_exams,
    verdict_pool,
)
from harness.boxes import OpenBox, open_run_box, refuse_unknown, select_box
from harness.cassette import prompts_recorded
from harness.errors import UserError
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.records import Question
from harness.rewards.outcome import RewardCounter, RewardItem
from harness.rewards.reward import OutcomeValues, Reward, RewardSettings
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

# § A training on recorded verdicts: what stands in for the pool, the suites and the workers'
# § work.
# §
# § Everything else of a training is as always: rows by id, warm start, GRPO, validation,
# § checkpoints.
# § Not here: what a study is (conductor/verdict_reward.py) and which questions may teach
# § (harness/cli).


@dataclass(frozen=True, slots=True)
class StudyParts:
    """What a training needs of a study."""

    spec: PoolSpec
    exams: Mapping[str, SuiteSplit]
    held_out: Mapping[str, SuiteSplit]


def study_parts(study: VerdictDataset, form: PlanFormat) -> StudyParts:
    """Return a study as pool and exams; UserError for a form that allows more than one step."""
    if form.max_steps != 1:
        raise UserError("Recorded verdicts are of one worker alone: set form.max_steps = 1.")
    teaches, validates = verdict_exams(study)
    name = study.declared.suite
    return StudyParts(verdict_pool(study.teaches), {name: teaches}, {name: validates})


def verdict_rewards(
    study: VerdictDataset, form: PlanFormat, values: OutcomeValues, max_masked: float
) -> tuple[VerdictReward, VerdictReward]:
    """Return the rewards of what teaches, and of what picks the checkpoint."""
    names, suite = verdict_pool(study.teaches).names, study.declared.suite
    teaches, validates = (
        VerdictReward(
            recorded_verdicts(suite, part, names), form, values, RewardCounter(max_masked, 32)
        )
        for part in (study.teaches, study.validates)
    )
    return teaches, validates


def public_rows(study: VerdictDataset, asking: PromptBuilder) -> list[ShownRow]:
    """Return prompts with public texts, for a tokenizer that may hold no word of the questions."""
    if not study.public:
        raise UserError(
            f"{study.declared.source}: its texts must not be published, and there are no others "
            "here to train a tokenizer on."
        )
    row = TrainingRow(study.declared.suite, "")
    made = (replace(asking, question=_with_text(text)) for text in study.public)
    return [one.shown(row) for one in made]


def _with_text(text: str) -> Callable[[TrainingRow], Question]:
    return lambda row: Question(row.question, text, "text")


# § A training with everything that its configuration names, found and checked: no torch here.
# §
# § The suites come in a `Catalogue` from the command line, since the conductor knows none.
# § Whatever can
# § be refused is refused here, before a model is loaded or a worker asked.


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
class JobParts:
    """What the command line hands in: suites and boxes, and what a question asks."""

    catalogue: Catalogue
    bare: BareText
    study: Callable[[VerdictsPart], VerdictDataset] | None = None
    """How recorded verdicts are read."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training, found and checked."""

    config: TrainingConfig
    request: TrainRequest
    parts: JobParts
    spec: PoolSpec
    book: Book
    exams: Mapping[str, SuiteSplit]
    """What teaches, by suite."""
    held_out: Mapping[str, SuiteSplit]
    """What says which checkpoint is best: validation splits, or the last train questions."""
    left_out: int
    """Questions that would teach and are asked in an exam, too."""
    study: VerdictDataset | None = None
    """Where recorded verdicts stand in for workers."""
    earlier: dict[str, EarlierRound] = field(default_factory=dict[str, EarlierRound])
    """What later rounds go on from (first_rounds.py)."""

    @property
    def publishable(self) -> bool:
        """Whether texts may be written down: true when every suite's may."""
        return all(exam.suite.publishable for exam in self.exams.values())

    @property
    def asking(self) -> PromptBuilder:
        """Return how rows become prompts."""
        return PromptBuilder(self.config.form, self.spec, self.question, self.earlier)

    def question(self, row: TrainingRow) -> Question:
        """Return the question of a row, of what teaches or what is held out."""
        exam = self.exams[row.suite]
        found = exam.questions.get(row.question)
        if found is None:
            found = self.held_out[row.suite].questions[row.question]
        return at_epoch(exam.suite, found, row.epoch).sealed()

    def rows(self, count: int) -> list[TrainingRow]:
        """Return the rows that a training of so many draws asks, in order."""
        return draw_rows(self._draw({n: list(e.questions) for n, e in self.exams.items()}), count)

    def validation_rows(self) -> list[TrainingRow]:
        """Return the held-out rows, each once; the workers shown are drawn as in training."""
        rows = [
            TrainingRow(name, id) for name, exam in self.held_out.items() for id in exam.questions
        ]
        drawn = draw_rows(self._draw({"": ["" for _ in rows]}, seed=1), len(rows))
        return [replace(row, workers=like.workers) for row, like in zip(rows, drawn, strict=True)]

    def read_plan(self, item: RewardItem) -> Workflow | None:
        """Return the workflow of an item; None where its text is none, or keeps an answer."""
        reader = read_later_plan if item.first else read_plan
        plan = reader(self.config.form, item.completion, item.workers or self.spec.names)
        return plan if isinstance(plan, Workflow) else None

    def _draw(self, exams: Mapping[str, list[str]], seed: int = 0) -> RowDraw:
        pool = self.config.pool
        return RowDraw(
            exams=exams,
            weights=self.config.suites.weights,
            workers=self.spec.names,
            shown=ShownWorkers(pool.shown, pool.order),
            seed=self.config.run.seed * 2 + seed,
        )


def find_job(config: TrainingConfig, request: TrainRequest, parts: JobParts) -> TrainingJob:
    """Return the training that a configuration names; UserError where it must not begin."""
    if config.verdicts and parts.study:
        return _find_study(config, request, parts, parts.study(config.verdicts))
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
    return _unlogged(TrainingJob(config, request, parts, spec, book, exams, held_out, left))


def _find_study(
    config: TrainingConfig, request: TrainRequest, parts: JobParts, study: VerdictDataset
) -> TrainingJob:
    made = study_parts(study, config.form)
    book = read_book(made.spec.prices)
    return _unlogged(
        TrainingJob(config, request, parts, made.spec, book, made.exams, made.held_out, 0, study)
    )


def _unlogged(training: TrainingJob) -> TrainingJob:
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
    shown_count(ShownWorkers(config.pool.shown, config.pool.order), len(spec.names))


def _exam(name: str, config: TrainingConfig, parts: JobParts) -> SuiteSplit:
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


def open_box(training: TrainingJob) -> AbstractContextManager[OpenBox | None]:
    """Return the box in which these suites' programs run; one that is None where there are none."""
    boxes = training.parts.catalogue.boxes
    suites = [exam.suite for exam in training.exams.values()]
    name = training.config.suites.box
    if any(suite.needs_box for suite in suites):
        name = select_box(name, boxes, ours=training.spec.label == "rehearsal")
    return open_run_box(boxes, name, suites, None)


async def refuse_gullible_graders(training: TrainingJob, box: Any) -> None:
    """Raise UserError when a suite's grader rewards what deserves nothing."""
    if training.study:
        return  # nothing is graded
    reward = Reward(training.exams, settings=RewardSettings(max_masked=1.0), box=box)
    for exam in training.exams.values():
        await refuse_gullible(reward, exam)


# § The rows that a warm start and a tokenizer are made from, before any question is drawn.
# §
# § Not here: the rows that training asks (rows.py), and what a warm start plans for them
# § (corpus.py).


def warm_start_rows(training: TrainingJob) -> list[TrainingRow]:
    """Return each train question a few times, with other workers where those are drawn."""
    count = sum(len(exam.questions) for exam in training.exams.values())
    pool = training.config.pool
    times = 1 if pool.order == "pool" and pool.shown is None else 8
    even = training.config.model_copy(
        update={"suites": training.config.suites.model_copy(update={"weights": {}})}
    )
    return replace(training, config=even).rows(count * times)


def tokenizer_rows(training: TrainingJob, shown: list[ShownRow]) -> list[ShownRow]:
    """Return what a tokenizer is trained on: a vocabulary holds words of what it has read."""
    if training.study and not training.publishable:
        return public_rows(training.study, training.asking)
    return [one if _public(training, one.row) else _unsaid(training, one.row) for one in shown]


def _public(training: TrainingJob, row: TrainingRow) -> bool:
    return training.exams[row.suite].suite.publishable


def _unsaid(training: TrainingJob, row: TrainingRow) -> ShownRow:
    """Return a row that asks nothing: a tokenizer reads its cards, and no word of its question."""
    return replace(training.asking, question=_unasked).shown(row)


def _unasked(row: TrainingRow) -> Question:
    return Question(row.question, "", "text")
