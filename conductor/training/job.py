"""A training job: its pool, prices, questions and rewards, loaded and checked without torch."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings, reward_values, training_reward
from podium.conductor.parse import read_plan
from podium.conductor.prompt import ShownWorkers, shown_count
from podium.conductor.training import grpo_options
from podium.conductor.training.config import TrainingConfig, VerdictsPart
from podium.conductor.training.given_plans import NO_PLAN, read_plans
from podium.conductor.training.training_rows import (
    EarlierRound,
    PromptBuilder,
    ShownRow,
    TrainingRow,
    draw_rows,
)
from podium.conductor.verdict_reward import (
    VerdictDataset,
    VerdictReward,
    recorded_verdicts,
    verdict_pool,
    verdict_splits,
)
from podium.harness.boxes import OpenBox, open_run_box, refuse_unknown, select_box
from podium.harness.cassette import prompts_recorded
from podium.harness.errors import UserError
from podium.harness.learning import Matrix
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import Book
from podium.harness.records import Question
from podium.harness.rewards.outcome import (
    PAPER,
    PLAIN,
    RewardCounter,
    RewardItem,
    RewardOutcome,
    RewardScorer,
)
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import (
    BareText,
    SuiteSplit,
    load_split,
    load_training_split,
    overlaps,
    refuse_gullible,
    refuse_overlap,
    without_overlap,
)
from podium.harness.rewards.trainers import once_in_its_step
from podium.harness.run.catalogue import Catalogue, find_grader
from podium.harness.run.preflight import refuse_unready
from podium.harness.suite import ModelGraded, at_epoch
from podium.harness.workflow import Workflow

NO_TRAIN = (
    "Suite {name!r} is for evaluation only: it has no train split. Train on another suite "
    "(`podium suites` lists the train splits)."
)


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A checked training: configuration, pool, prices, and questions."""

    config: TrainingConfig
    out: Path
    catalogue: Catalogue  # suites and boxes
    bare: BareText  # returns a question without instructions
    resume: bool
    max_usd: Decimal | None  # for all processes: from the command, else the configuration
    spec: PoolSpec
    book: Book
    splits: Mapping[str, SuiteSplit]  # train questions, by suite
    held_out: Mapping[str, SuiteSplit]  # to select the best: validation, or last train questions
    left_out: int  # train questions left out because an eval split asks them, too
    verdicts: VerdictDataset | None = None  # recorded verdicts; None: workers answer
    earlier: dict[str, EarlierRound] = field(default_factory=dict[str, EarlierRound])
    """First rounds by id: text and answer of each, which a later round continues (rounds.py)."""

    @property
    def publishable(self) -> bool:
        """Whether texts may be saved: true if every suite's texts may be published."""
        return all(split.suite.publishable for split in self.splits.values())

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The workers of each random pool, if [pool] drawn is set; else ()."""
        return drawn_groups(self.spec.names) if self.config.pool.drawn else ()

    @property
    def shown(self) -> ShownWorkers:
        """How the workers in prompts are selected; each row has a seed of its own."""
        return ShownWorkers(self.config.pool.shown, self.config.pool.order, groups=self.groups)

    @property
    def prompts(self) -> PromptBuilder:
        """The object that makes the prompts of training rows."""
        return PromptBuilder(self.config.form, self.spec, self.question, self.earlier)

    def question(self, row: TrainingRow) -> Question:
        """Return the question of a training row, from the train splits or the held-out ones."""
        split = self.splits[row.suite]
        question = split.questions.get(row.question)
        if question is None:
            question = self.held_out[row.suite].questions[row.question]
        return at_epoch(split.suite, question, row.epoch).sealed()

    def rows(self, count: int) -> list[TrainingRow]:
        """Return the first `count` training rows, in order."""
        ids = {name: list(split.questions) for name, split in self.splits.items()}
        return self._drawn(ids, count)

    def validation_rows(self) -> list[TrainingRow]:
        """Return a row per held-out question; workers in its prompt are drawn as in training."""
        rows = [
            TrainingRow(name, id) for name, split in self.held_out.items() for id in split.questions
        ]
        drawn = self._drawn({"": [""] * len(rows)}, len(rows), seed=1)
        return [replace(row, workers=like.workers) for row, like in zip(rows, drawn, strict=True)]

    def read_plan(self, item: RewardItem) -> Workflow | None:
        """Return the workflow in an item's completion; None if invalid or an empty plan."""
        plan = read_plan(self.config.form, item.completion, item.workers or self.spec.names)
        return plan if isinstance(plan, Workflow) else None

    def _drawn(self, ids: Mapping[str, list[str]], count: int, seed: int = 0) -> list[TrainingRow]:
        return draw_rows(
            ids,
            count,
            weights=self.config.suites.weights,
            workers=self.spec.names,
            display=self.shown,
            seed=self.config.run.seed * 2 + seed,
        )


def find_job(
    config: TrainingConfig,
    out: Path,
    catalogue: Catalogue,
    bare: BareText,
    *,
    study: Callable[[VerdictsPart], VerdictDataset] | None = None,
    resume: bool = False,
    max_usd: Decimal | None = None,
    dry: bool = False,
) -> TrainingJob:
    """Load and check the training that `config` describes; UserError if it must not begin.

    `study` loads recorded verdicts; `dry` allows missing keys, servers and prices.
    """
    limit = config.reward.max_usd if max_usd is None else max_usd
    job = partial(TrainingJob, config, out, catalogue, bare, resume, limit)
    if config.verdicts and study:
        return _find_verdicts(config, job, study(config.verdicts))
    drawn, spec = config.pool.drawn, read_pool(config.pool.name)
    if drawn and spec.label != "rehearsal":
        raise UserError(
            f"The setting `drawn` of [pool] draws rehearsal workers, but pool {spec.name!r} is "
            f"{spec.label}: remove `drawn`, or name a rehearsal pool."
        )
    spec = catalogue.draw_pools(drawn) if drawn else spec
    book = spec.book()
    if not dry:
        refuse_unready(spec, book)
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot run on recorded pool {spec.name!r}: it has replies only to a "
            "question alone, asked of one worker. Use a live or rehearsal pool."
        )
    fewest = min(map(len, drawn_groups(spec.names))) if drawn else len(spec.names)
    shown_count(ShownWorkers(config.pool.shown, config.pool.order), fewest)
    refuse_unknown(catalogue.boxes, config.suites.box)
    names = dict.fromkeys(config.suites.names)
    full = {name: _train_split(name, config, catalogue) for name in names}
    judging = [load_split(split.suite) for split in full.values() if "eval" in split.suite.splits]
    splits = {name: without_overlap(split, judging, bare) for name, split in full.items()}
    if not all(split.questions for split in splits.values()):  # eval splits have a whole suite
        refuse_overlap(full.values(), judging, bare)
    held_out: dict[str, SuiteSplit] = {}
    for name, split in splits.items():
        held_out[name] = without_overlap(_held_out(split, config), judging, bare)
        shared = {overlap.question for overlap in overlaps([split], [held_out[name]], bare)}
        taught = {id: question for id, question in split.questions.items() if id not in shared}
        splits[name] = SuiteSplit(split.suite, taught)
    count = sum(len(full[name].questions) - len(split.questions) for name, split in splits.items())
    return _checked(job(spec, book, splits, held_out, count))


def _find_verdicts(
    config: TrainingConfig, job: partial[TrainingJob], verdicts: VerdictDataset
) -> TrainingJob:
    """Return a training on recorded verdicts; its workers are only names and cannot be called."""
    if config.form.max_steps != 1:
        raise UserError("Recorded verdicts are of one worker alone: set form.max_steps = 1.")
    spec = verdict_pool(verdicts.teaches)
    teaches, validates = ({split.suite.name: split} for split in verdict_splits(verdicts))
    book = spec.book()
    return _checked(job(spec, book, teaches, validates, left_out=0, verdicts=verdicts))


def _checked(training: TrainingJob) -> TrainingJob:
    """Return the training, checked.

    Raises UserError if TRL would write texts of a private suite, or if none of the warm start's
    plans is for its questions and workers.
    """
    if training.config.grpo.get("log_completions") and not training.publishable:
        secret = next(n for n, split in training.splits.items() if not split.suite.publishable)
        raise UserError(
            f"[grpo] log_completions writes prompts to files, and suite {secret!r} must not be "
            "published. Leave log_completions out."
        )
    if training.config.warm_start.is_listed:
        _refuse_foreign_plans(training)
    return training


def _refuse_foreign_plans(training: TrainingJob) -> None:
    ids = {id for split in training.splits.values() for id in split.questions}
    workers = {*training.spec.names}
    plans = read_plans(training.config)
    if not any(question in ids and {*plan} <= workers for question, plan in plans.items()):
        raise UserError(NO_PLAN)


def _train_split(name: str, config: TrainingConfig, catalogue: Catalogue) -> SuiteSplit:
    suite = find_grader(catalogue.suites, name)
    if "train" not in suite.splits:
        raise UserError(NO_TRAIN.format(name=name))
    split = load_training_split(suite, "train", config.suites.train)
    if isinstance(suite, ModelGraded) and any(map(suite.needs_judge, split.questions.values())):
        raise UserError(
            f"Some questions of suite {name!r} need a model as judge, and a training asks none. "
            "Leave the suite out."
        )
    return split


def _held_out(split: SuiteSplit, config: TrainingConfig) -> SuiteSplit:
    limit = config.validation.questions
    if "validation" in split.suite.splits:
        return load_split(split.suite, "validation", limit)
    ids = list(split.questions)
    last_ids = ids[-min(limit, len(ids) // 2) :] if len(ids) > 1 else []
    return SuiteSplit(split.suite, {id: split.questions[id] for id in last_ids})


def open_box(training: TrainingJob) -> AbstractContextManager[OpenBox | None]:
    """Open the box (sandbox) for model-written programs; None if no suite needs a box."""
    boxes = training.catalogue.boxes
    suites = [split.suite for split in training.splits.values()]
    name = training.config.suites.box
    if any(suite.needs_box for suite in suites):
        name = select_box(name, boxes, ours=training.spec.label == "rehearsal")
    return open_run_box(boxes, name, suites, None)


async def refuse_gullible_graders(training: TrainingJob, box: Any) -> None:
    """Raise UserError if a suite's grader rewards replies that deserve nothing."""
    if training.verdicts:
        return  # nothing is graded
    reward = Reward(training.splits, settings=RewardSettings(max_masked=1.0), box=box)
    for split in training.splits.values():
        await refuse_gullible(reward, split)


def warm_start_rows(training: TrainingJob) -> list[TrainingRow]:
    """Return a warm start's rows: as many as train questions, or 8 times that if workers vary."""
    config = training.config
    count = sum(len(split.questions) for split in training.splits.values())
    times = 1 if training.shown.whole else 8
    evenly = config.suites.model_copy(update={"weights": {}})
    even = replace(training, config=config.model_copy(update={"suites": evenly}))
    return even.rows(count * times)


def tokenizer_rows(training: TrainingJob, rows: list[ShownRow]) -> list[ShownRow]:
    """Return rows to train a tokenizer on, without private texts: a vocabulary reveals words."""

    def saying(row: TrainingRow, text: str) -> ShownRow:
        def asked(row: TrainingRow) -> Question:
            return Question(row.question, text, "text")

        return replace(training.prompts, question=asked).shown(row)

    verdicts = training.verdicts
    if verdicts and not training.publishable:
        if not verdicts.public:
            raise UserError(
                f"{verdicts.source}: its texts must not be published, so they cannot train a "
                "tokenizer. Set [model] path to a model that has one."
            )
        return [saying(TrainingRow(verdicts.name, ""), text) for text in verdicts.public]
    public = {name for name, split in training.splits.items() if split.suite.publishable}
    return [row if row.row.suite in public else saying(row.row, "") for row in rows]


def check_job(training: TrainingJob) -> None:
    """Raise UserError for a training's mistakes that need no model and no worker call to detect."""
    config = training.config
    grpo_options.refuse_unready_machine(config)
    refuse_missing_folder(config)
    grpo_options.batch_sizes(config)
    grpo_options.refuse_sharding(config)
    reward_values(config.reward, config.discount)


def refuse_missing_folder(config: TrainingConfig) -> None:
    """Raise UserError if [model] path can only be a folder, and that folder does not exist."""
    path = config.model.path
    folder = path.startswith((".", "/", "~")) or path.count("/") > 1  # Hub names have one
    if folder and not Path(path).is_dir():
        raise UserError(
            f"[model] path: there is no folder {path}. Correct the path, or first run the training "
            "that writes this folder."
        )


@dataclass(slots=True)
class StepResults:
    """The items (plans to reward) of one training step, and their outcomes (rewards)."""

    items: list[RewardItem] = field(default_factory=list[RewardItem])
    outcomes: list[RewardOutcome] = field(default_factory=list[RewardOutcome])
    seconds: float = 0.0  # seconds that training waited for the outcomes
    ahead: float = 0.0  # seconds from the first item's start to that wait


class RewardRecorder:
    """Wraps a reward, and records the items and outcomes that it scored since the last `take`."""

    def __init__(self, scores: RewardScorer, deduplicate: bool = False) -> None:
        """Wrap a reward; with `deduplicate`, equal items (plans) of a step are scored once."""
        self._scores, self._deduplicate = scores, deduplicate
        self._begun: dict[RewardItem, tuple[Future[list[RewardOutcome]], int]] = {}
        self._first = monotonic()
        self.seen = StepResults()

    def begin(self, items: Sequence[RewardItem], loop: asyncio.AbstractEventLoop) -> None:
        """Start to score items in another thread's event loop; `score` returns their outcomes."""
        if not self._begun:
            self._first = monotonic()
        new: dict[RewardItem, RewardItem] = {}
        for item in items:
            if (key := self._key(item)) not in self._begun:
                new.setdefault(key, item)  # of equal items the first is scored
        if not new:
            return
        work = asyncio.run_coroutine_threadsafe(self._scores.score(list(new.values())), loop)
        self._begun |= {key: (work, n) for n, key in enumerate(new)}

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return the outcome of each item (plan), in order."""
        started, ahead = monotonic(), monotonic() - self._first if self._begun else 0.0
        outcomes = await (self._once(items) if self._deduplicate else self._scored(items))
        self.seen.items.extend(items)
        self.seen.outcomes.extend(outcomes)
        self.seen.seconds += monotonic() - started
        self.seen.ahead += ahead
        return outcomes

    def _key(self, item: RewardItem) -> RewardItem:
        return once_in_its_step(item) if self._deduplicate else item

    async def _scored(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Score the items that `begin` did not start, and wait for the items that it started."""
        pending, self._begun = self._begun, {}
        late = [item for item in items if self._key(item) not in pending]
        works = dict.fromkeys(work for work, _ in pending.values())
        results, *_ = await asyncio.gather(
            self._scores.score(late), *(asyncio.wrap_future(work) for work in works)
        )
        late_outcomes = iter(results)

        def outcome(item: RewardItem) -> RewardOutcome:
            entry = pending.get(self._key(item))
            return entry[0].result()[entry[1]] if entry else next(late_outcomes)

        return [outcome(item) for item in items]

    async def _once(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Score equal items only once; only the first item of equal ones has the cost."""
        keys = [once_in_its_step(item) for item in items]
        firsts: dict[RewardItem, RewardItem] = {}
        for key, item in zip(keys, items, strict=True):
            firsts.setdefault(key, item)
        outcome_of = dict(zip(firsts, await self._scored(list(firsts.values())), strict=True))
        outcomes: list[RewardOutcome] = []
        for key in keys:
            outcome = outcome_of[key]
            outcomes.append(outcome)
            free = None if outcome.usd is None else Decimal(0)  # unknown stays unknown
            outcome_of[key] = replace(
                outcome, shared=True, calls=0, usd=free, latency_s=0.0, grading_s=0.0
            )
        return outcomes

    def take(self) -> StepResults:
        """Return the items and outcomes since the last call, and reset the record."""
        results, self.seen = self.seen, StepResults()
        return results


@dataclass(frozen=True, slots=True)
class TrainingRewards:
    """A training's rewards, for training and for validation, under one limit in dollars."""

    training: RewardRecorder
    validation: RewardRecorder
    stopped: Callable[[], str] = str  # why the spending limit stopped calls; empty if it did not
    spent: Callable[[], Decimal] = Decimal
    """Returns the dollars spent by all processes and sessions. All processes must call this
    function together, because it divides the remaining budget among them."""
    answerer: PlanAnswerer | None = None  # runs the plans; None on recorded verdicts


def make_rewards(training: TrainingJob, box: Any, folder: Path | None) -> TrainingRewards:
    """Return a training's rewards, for training and validation; calls are logged below `folder`."""
    config = training.config
    again = config.reward.deduplicate
    concurrency = grpo_options.plans_at_once(config, grpo_options.world_size())
    if training.verdicts:
        names, suite = training.spec.names, training.verdicts.name
        values = PLAIN if config.reward.name == "plain" else PAPER

        def recorded(matrix: Matrix) -> VerdictReward:
            counter = RewardCounter(config.reward.max_masked, 32)
            scores = recorded_verdicts(suite, matrix, names)
            return VerdictReward(*scores, config.form, values, counter)

        taught, validated = map(recorded, (training.verdicts.teaches, training.verdicts.validates))
        return TrainingRewards(RewardRecorder(taught, again), RewardRecorder(validated))
    splits = {
        name: replace(split, questions={**split.questions, **training.held_out[name].questions})
        for name, split in training.splits.items()
    }
    reward, answerer = training_reward(
        config.reward.model_copy(update={"concurrency": concurrency}),
        plan_settings(training, folder),
        training.spec,
        training.book,
        splits,
        discount=config.discount,
        box=box,
    )
    return TrainingRewards(
        RewardRecorder(reward, again),
        RewardRecorder(reward),
        lambda: answerer.stopped,
        lambda: _spent_by_all(answerer, training.max_usd),
        answerer,
    )


def _spent_by_all(answerer: PlanAnswerer, limit: Decimal | None) -> Decimal:
    """Return the dollars that all processes spent, and divide the rest of `limit` among them."""
    if grpo_options.world_size() == 1:
        return answerer.usd
    totals = grpo_options.from_all_processes((answerer.before, answerer.usd - answerer.before))
    gone = min(start for start, _ in totals) + sum((usd for _, usd in totals), Decimal(0))
    if limit is not None:
        answerer.allow((limit - gone) / len(totals))
    return gone


def plan_settings(training: TrainingJob, folder: Path | None = None) -> PlanSettings:
    """Return one process's settings to run plans, with its share of the rate limit."""
    config, processes = training.config, grpo_options.world_size()
    rpm = config.reward.rpm
    return PlanSettings(
        form=config.form,
        max_usd=training.max_usd,
        seed=config.run.seed,
        time_scale=config.reward.time_scale,
        log_dir=folder and folder / "ledger",
        per_minute=None if rpm is None else rpm / processes,
        rank=grpo_options.process_rank(),
        processes=processes,
    )


def drawn_groups(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the workers of each random pool; a worker's name ends with its pool's number.

    >>> drawn_groups(["abacus.0", "sage.0", "sage.1"])
    (('abacus.0', 'sage.0'), ('sage.1',))
    """
    number = {name: name.rpartition(".")[2] for name in names}
    return tuple(tuple(group) for _, group in groupby(names, lambda name: number[name]))
