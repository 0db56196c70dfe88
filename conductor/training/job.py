"""A training with everything that its configuration names, found and checked: no torch here."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.plan_format import read_later_plan, read_plan
from conductor.prompt import ShownWorkers, shown_count
from conductor.reward import (
    DISCOUNT,
    PlanAnswerer,
    PlanSettings,
    RewardConfig,
    reward_values,
    training_reward,
)
from conductor.training.config import TrainingConfig, VerdictsPart
from conductor.training.data import (
    EarlierRound,
    PromptBuilder,
    RowDraw,
    ShownRow,
    TrainingRow,
    draw_rows,
)
from conductor.training.grpo_options import (
    batch_sizes,
    from_all_processes,
    plans_at_once,
    process_rank,
    refuse_sharding,
    refuse_unready_machine,
    worker_limits,
    world_size,
)
from conductor.training.metrics import RewardRecorder
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
from harness.rewards.outcome import PAPER, PLAIN, RewardCounter, RewardItem
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
    "Suite {name!r} has no train split, it is for evaluation only: train on another suite "
    "(`podium suites` says which have one)."
)


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """What `podium train` was asked for, beside the configuration."""

    out: Path
    resume: bool = False
    max_usd: Decimal | None = None
    dry: bool = False  # only an estimate is wanted: no worker will be asked, so none needs a key


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the command line hands in: suites and boxes, and what a question asks."""

    catalogue: Catalogue
    bare: BareText
    study: Callable[[VerdictsPart], VerdictDataset] | None = None  # how recorded verdicts are read


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training, found and checked."""

    config: TrainingConfig
    request: TrainRequest
    parts: JobParts
    spec: PoolSpec
    book: Book
    exams: Mapping[str, SuiteSplit]  # what teaches, by suite
    held_out: Mapping[str, SuiteSplit]  # what picks the best: validation, or last train questions
    left_out: int  # questions that would teach and are asked in an eval split, too
    study: VerdictDataset | None = None  # where recorded verdicts stand in for workers
    earlier: dict[str, EarlierRound] = field(default_factory=dict[str, EarlierRound])
    """What later rounds go on from (rounds.py)."""

    @property
    def publishable(self) -> bool:
        """Whether texts may be written down: true when every suite's may."""
        return all(exam.suite.publishable for exam in self.exams.values())

    @property
    def prompts(self) -> PromptBuilder:
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
        refuse_unready(spec, book)
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot be carried out on recorded pool {spec.name!r}: its replies answer "
            "the canonical single-worker request only."
        )
    shown_count(ShownWorkers(config.pool.shown, config.pool.order), len(spec.names))
    refuse_unknown(parts.catalogue.boxes, config.suites.box)
    bare, names = parts.bare, dict.fromkeys(config.suites.names)
    named = {name: _exam(name, config, parts) for name in names}
    examined = [load_split(exam.suite) for exam in named.values() if "eval" in exam.suite.splits]
    exams = {name: without_overlap(exam, examined, bare) for name, exam in named.items()}
    if not all(
        exam.questions for exam in exams.values()
    ):  # these suites' eval splits ask all of it
        refuse_overlap(named.values(), examined, bare)
    held_out: dict[str, SuiteSplit] = {}
    for name, exam in exams.items():
        held_out[name] = without_overlap(_held_out(exam, config), examined, bare)
        shared = {one.question for one in overlaps([exam], [held_out[name]], bare)}
        taught = {id: q for id, q in exam.questions.items() if id not in shared}
        exams[name] = SuiteSplit(exam.suite, taught)
    left = sum(len(named[n].questions) - len(exam.questions) for n, exam in exams.items())
    return _unlogged(TrainingJob(config, request, parts, spec, book, exams, held_out, left))


def _find_study(
    config: TrainingConfig, request: TrainRequest, parts: JobParts, study: VerdictDataset
) -> TrainingJob:
    """Return a training on recorded verdicts; its pool's workers are names that nobody asks."""
    if config.form.max_steps != 1:
        raise UserError("Recorded verdicts are of one worker alone: set form.max_steps = 1.")
    spec, name = verdict_pool(study.teaches), study.declared.suite
    teaches, validates = ({name: exam} for exam in verdict_exams(study))
    book = read_book(spec.prices)
    return _unlogged(TrainingJob(config, request, parts, spec, book, teaches, validates, 0, study))


def _unlogged(training: TrainingJob) -> TrainingJob:
    """Return it; UserError where TRL would write down texts that must not be published."""
    if training.config.grpo.get("log_completions") and not training.publishable:
        secret = next(n for n, exam in training.exams.items() if not exam.suite.publishable)
        raise UserError(
            f"[grpo] log_completions writes prompts to files, and suite {secret!r} must not be "
            "published: leave it out."
        )
    return training


def _exam(name: str, config: TrainingConfig, parts: JobParts) -> SuiteSplit:
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


def _held_out(exam: SuiteSplit, config: TrainingConfig) -> SuiteSplit:
    most = config.validation.questions
    if "validation" in exam.suite.splits:
        return load_split(exam.suite, "validation", most)
    ids = list(exam.questions)
    kept = ids[-min(most, len(ids) // 2) :] if len(ids) > 1 else []
    return SuiteSplit(exam.suite, {id: exam.questions[id] for id in kept})


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

    def saying(row: TrainingRow, text: str) -> ShownRow:
        def asked(row: TrainingRow) -> Question:
            return Question(row.question, text, "text")

        return replace(training.prompts, question=asked).shown(row)

    study = training.study
    if study and not training.publishable:
        if not study.public:
            raise UserError(
                f"{study.declared.source}: its texts must not be published, and there are no "
                "others here to train a tokenizer on."
            )
        return [saying(TrainingRow(study.declared.suite, ""), text) for text in study.public]
    public = {name for name, exam in training.exams.items() if exam.suite.publishable}
    return [one if one.row.suite in public else saying(one.row, "") for one in shown]


# --- what is refused before a model is loaded or a worker asked -------------------------------


def check_job(training: TrainingJob) -> None:
    """Raise UserError for whatever of a training can be refused without a model or a worker."""
    config = training.config
    refuse_unready_machine(config)
    refuse_missing_folder(config)
    batch_sizes(config)
    refuse_sharding(config)
    reward_values(reward_config(training))


def refuse_missing_folder(config: TrainingConfig) -> None:
    """Raise UserError where [model] path can only be a folder, and there is none.

    A name of the hub has at most one slash; whether that one is there is known when it is loaded.
    """
    path = config.model.path
    folder = path.startswith((".", "/", "~")) or path.count("/") > 1
    if folder and not Path(path).is_dir():
        raise UserError(
            f"[model] path: there is no folder {path}; train what it begins with first."
        )


# --- its reward -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrainingRewards:
    """The rewards of one training: one limit of dollars holds for both."""

    training: RewardRecorder
    validation: RewardRecorder
    stopped: Callable[[], str] = str  # why no worker is asked, for money; empty while there is
    spent: Callable[[], Decimal] = Decimal
    """Dollars that are gone in all processes, earlier sessions included. All processes call it
    together; it divides what is left of the limit among them anew."""
    answerer: PlanAnswerer | None = None  # who carries plans out; None for a study


def make_rewards(training: TrainingJob, box: Any, folder: Path | None) -> TrainingRewards:
    """Return the rewards; every call of a worker is written below `folder`, where there is one."""
    again = training.config.reward.deduplicate
    if training.study:
        taught, validated = _verdict_rewards(training, training.study)
        return TrainingRewards(RewardRecorder(taught, again), RewardRecorder(validated))
    held_out = training.held_out
    exams = {
        name: SuiteSplit(exam.suite, {**exam.questions, **held_out[name].questions})
        for name, exam in training.exams.items()
    }
    paid = reward_config(training)
    if folder:
        paid = replace(paid, plans=replace(paid.plans, log_dir=folder / "ledger"))
    made = training_reward(paid, training.spec, training.book, exams, box)
    answerer = made.answerer
    return TrainingRewards(
        RewardRecorder(made.reward, again),
        RewardRecorder(made.reward),
        lambda: answerer.stopped,
        lambda: _spent_by_all(answerer, max_usd(training)),
        answerer,
    )


def _verdict_rewards(training: TrainingJob, study: VerdictDataset) -> list[VerdictReward]:
    """Return the rewards of what teaches, and of what picks the checkpoint."""
    wanted, names, suite = training.config.reward, training.spec.names, study.declared.suite
    values = PLAIN if wanted.name == "plain" else PAPER
    return [
        VerdictReward(
            recorded_verdicts(suite, part, names),
            training.config.form,
            values,
            RewardCounter(wanted.max_masked, 32),
        )
        for part in (study.teaches, study.validates)
    ]


def _spent_by_all(answerer: PlanAnswerer, most: Decimal | None) -> Decimal:
    """Return what all processes have spent, and divide what is left of `most` among them anew.

    Only the first one pays for validations, so their parts are not used up alike. One that began
    late may have read calls of another as spent before: the least reading counts none twice.
    """
    if world_size() == 1:
        return answerer.usd
    told = from_all_processes((answerer.before, answerer.usd - answerer.before))
    gone = min(before for before, _ in told) + sum((own for _, own in told), Decimal(0))
    if most is not None:
        answerer.allow((most - gone) / len(told))
    return gone


def reward_config(training: TrainingJob) -> RewardConfig:
    """Return the [reward] section as the reward of one process takes it."""
    config, wanted, processes = training.config, training.config.reward, world_size()
    return RewardConfig(
        plans=PlanSettings(
            form=config.form,
            max_usd=max_usd(training),
            seed=config.run.seed,
            rates=worker_limits(config, processes),
            rank=process_rank(),
            processes=processes,
        ),
        name=wanted.name,
        cost_weight=wanted.cost_weight,
        cost_scale=wanted.cost_scale,
        cost_by=wanted.cost_by,
        recursive=config.recursion is not None,
        discount=config.recursion.discount if config.recursion else DISCOUNT,
        concurrency=plans_at_once(config, processes),
        timeout_s=wanted.timeout_s,
        max_masked=wanted.max_masked,
        deduplicate=wanted.deduplicate,
    )


def max_usd(training: TrainingJob) -> Decimal | None:
    """Return the dollars of all processes: the command's, else the configuration's."""
    asked = training.request.max_usd
    return training.config.reward.max_usd if asked is None else asked
