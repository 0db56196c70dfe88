"""What a plan is worth: carried out on a pool, graded by its suite, and valued."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

from inspect_ai.model import ChatMessage, Model

from conductor.cached_pool import (
    CachedPool,
    PoolLimits,
    RateLimiter,
    WorkerAccess,
    worker_identities,
)
from conductor.plan_format import Keep, PlanFormat, join_rounds, read_later_plan, read_plan
from conductor.prompt import plan_prompt
from harness.budget import Spend
from harness.errors import SpendLimit, UserError, WorkerError
from harness.execute import Begun, Budget, execute_more
from harness.ledger.hooks import own_transcript
from harness.ledger.journal import Head, SampleRef
from harness.ledger.recorder import TaskJournal, recording
from harness.ledger.system_runs import spent_so_far
from harness.ledger.totals import SpentSoFar
from harness.pool import pool_models
from harness.pool_config import PoolSpec
from harness.prices import Book
from harness.records import Answer, Question, Usage
from harness.reply_cache import PaidReplies
from harness.rewards.outcome import (
    NO_EFFORT,
    PAPER,
    PLAIN,
    Effort,
    OutcomeValues,
    PlanTrace,
    RewardItem,
    RewardRule,
    Rollout,
    Status,
)
from harness.rewards.reward import Reward, RewardSettings
from harness.rewards.splits import SuiteSplit
from harness.rewards.trainers import TrlReward
from harness.run.preflight import refuse_too_little
from harness.workflow import Malformed, Workflow

CostBy = Literal["usd", "calls"]
DISCOUNT = 0.25  # of a first round's reward in recursive runs (arXiv 2512.04388, appendix A.3)


@dataclass(frozen=True, slots=True)
class CostAware:
    """`wrong + grade * (1 - wrong - weight * min(1, cost / scale))`; all else is the base's.

    Clearly ours: the paper has no cost term. Gated by success as in xRouter (arXiv 2510.08439), so
    that saving never pays more than being right: UserError for a weight that would break that.
    """

    weight: float  # what the dearest right answer loses
    scale: float  # dollars or calls from which on a right answer loses all of `weight`
    by: CostBy = "usd"  # would-be dollars, which cached replies have too, or worker calls
    margin: float = 0.05
    base: OutcomeValues = PAPER

    def __post_init__(self) -> None:
        most = 1 - self.base.wrong - self.margin
        if not (self.margin >= 0 and 0 < self.weight <= most):
            raise UserError(
                f"A cost weight of {self.weight:g} is not above 0 and at most {most:g}: a right "
                f"answer must stay {self.margin:g} above a wrong one's {self.base.wrong:g}."
            )
        if not self.scale > 0:
            raise UserError(f"A cost scale is more than 0, not {self.scale:g}.")

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the reward; None for a graded answer whose cost is unknown, right or wrong.

        >>> from decimal import Decimal
        >>> cost = CostAware(weight=0.4, scale=0.01)
        >>> cost.of(Status.SCORED, 1.0, Effort(Decimal("0.005"))), cost.of(Status.SCORED, 0.0)
        (0.8, 0.5)
        """
        if status is not Status.SCORED:
            return self.base.of(status, grade, effort)
        cost = effort.usd if self.by == "usd" else effort.calls
        if cost is None:  # masking right ones alone would teach that they are wrong
            return None
        wrong = self.base.wrong
        return wrong + grade * (1 - wrong - self.weight * min(1.0, float(cost) / self.scale))


@dataclass(frozen=True, slots=True)
class Discounted:
    """A first round's reward times `discount`, a later round's as it is: for recursive runs.

    Inside a group that is divided by its own deviation a common factor cancels: it says something
    only with `scale_rewards` of `batch` or `none`.
    """

    base: RewardRule
    discount: float = DISCOUNT

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise UserError(
                f"A recursion discount is above 0 and at most 1, not {self.discount:g}."
            )

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the base's reward, discounted in a first round."""
        value = self.base.of(status, grade, effort)
        return value if value is None or effort.again else self.discount * value


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How workflows are carried out."""

    budget: Budget = field(default_factory=Budget)  # of one workflow; one that it stops is graded
    form: PlanFormat = field(default_factory=PlanFormat)  # how a completion is read
    max_usd: Decimal | None = None
    """Of all of them, with what `log_dir` has spent before: a call that could pass it is not made,
    and its item has no value."""
    seed: int = 0  # of rehearsal workers
    time_scale: float = 0.0  # rehearsal latency is slept times this
    log_dir: Path | None = None  # every worker's call is journalled below it; None: nowhere
    rates: PoolLimits = field(default_factory=PoolLimits)
    kept: frozenset[str] | None = None
    """Suites whose replies are kept below `log_dir`, for their questions may be published; those of
    others are kept in memory. None: nothing is; an item that is rewarded again is asked anew."""
    rank: int = 0  # which process of a training this is
    processes: int = 1  # how many there are: each may spend an equal part of what is left


@dataclass(frozen=True, slots=True)
class FirstRound:
    """What a first plan came to: where a later round begins."""

    workflow: Workflow
    answer: Answer


class PlanAnswerer:
    """The `Answerer` that carries workflows out on a pool, priced by a book.

    A completion is read by the form of its conductor and run as an evaluation runs it; its last
    reply is the answer. The pool never sees a target. It pickles, without its models, its replies
    and what it noted.
    """

    def __init__(self, spec: PoolSpec, book: Book, settings: PlanSettings = PlanSettings()) -> None:
        """Keep the pool; its models are made in the event loop that first asks them.

        UserError where dollars are limited, and what was spent before has no price, or the limit is
        less than one call can cost.
        """
        self._arguments = (spec, book, settings)
        self._spec, self._settings = spec, settings
        folder = settings.log_dir
        limited = settings.max_usd is not None and folder is not None
        before = spent_so_far(folder, book) if limited and folder else SpentSoFar()
        if settings.max_usd is not None:
            refuse_too_little(spec, book, settings.max_usd / settings.processes, settings.processes)
        self._spend = Spend(book, settings.max_usd, before.usd, unbounded=before.unbounded)
        self.before = self._spend.gone  # what was spent when this process began, by all of them
        if settings.max_usd is not None and settings.processes > 1:
            self.allow((settings.max_usd - self.before) / settings.processes)
        head = Head("", "", f"rewards of {spec.name}", spec.label, book.name, book.sha256)
        self._journal = TaskJournal(folder, head) if folder else None
        if self._journal:
            finalize(self, self._journal.close)  # at the latest when the process ends
        paid = None if settings.kept is None else PaidReplies(folder, settings.rank)
        self._asking = WorkerAccess(
            worker_identities(spec, settings.seed), RateLimiter(settings.rates), paid
        )
        self._made: tuple[asyncio.AbstractEventLoop, Mapping[str, Model]] | None = None
        self.stopped = ""  # why no more calls are made, in one sentence; empty while there is money
        self.firsts: dict[str, FirstRound] = {}  # by the id that items of later rounds name

    def __reduce__(self) -> "tuple[type[PlanAnswerer], tuple[PoolSpec, Book, PlanSettings]]":
        """Say how another process makes this answerer anew."""
        return PlanAnswerer, self._arguments

    @property
    def usd(self) -> Decimal:
        """What this process has spent, with all of earlier sessions in the same folder."""
        return self._spend.gone

    def allow(self, more: Decimal) -> None:
        """Let this process spend so many dollars more, and no others."""
        self._spend.limit = self._spend.gone + more

    def check(self, item: RewardItem) -> None:
        """Raise UserError for an item whose workers or first round are not there."""
        if self._asking.paid:
            self._asking.paid.open()
        strangers = [name for name in item.workers if name not in self._spec.names]
        if strangers:
            raise UserError(
                f"Pool {self._spec.name!r} has no worker {strangers[0]!r} that a policy could be "
                f"shown; it has: {', '.join(self._spec.names)}."
            )
        if item.first and item.first not in self.firsts:
            raise UserError(f"There is no first round {item.first!r} for {item.question} to go on.")

    async def __call__(self, item: RewardItem, question: Question) -> Rollout:
        """Return the answer that the item's workflow comes to, or why there is none.

        Tokens and dollars are those of the replies that came, paid now or before; a call that
        failed has reported none.
        """
        plan, later = self.read(item), bool(item.first)
        if isinstance(plan, Malformed):
            said = f"No workflow: {plan.reason}."
            return Rollout(None, Status.INVALID_ACTION, reason=said, again=later)
        if isinstance(plan, Keep):
            return Rollout(self.firsts[item.first].answer.text, work=PlanTrace(()), again=True)
        pool = self._pool(item)
        text, status, reason = await self._came_to(item, plan, question, pool)
        replies, workers = pool.replies, tuple(step.worker for step in plan.steps)
        usages = [one.usage for one in replies if one.usage is not None]
        costs = [one.usd for one in replies if one.usd is not None]
        return Rollout(
            text,
            status,
            sum(usages, Usage(reasoning=0)) if len(usages) == len(replies) else None,
            sum(costs, Decimal(0)) if len(costs) == len(replies) else None,
            len(replies),
            reason,
            PlanTrace(workers, plan.as_json(), pool.cached),
            later,
        )

    async def _came_to(
        self, item: RewardItem, plan: Workflow, question: Question, pool: CachedPool
    ) -> tuple[str | None, Status, str]:
        """Return a plan's answer, whose doing it is where there is none, and why."""
        try:
            answer = await self._carried_out(item, plan, question, pool)
        except SpendLimit as error:
            self.stopped = str(error)
            return None, Status.BUDGET, str(error)
        except WorkerError as error:
            return None, Status.WORKER_ERROR, str(error)
        last = answer.replies[-1] if answer.replies else None
        if last is not None and last.too_long:
            said = f"What it sent to {last.worker} does not fit that worker's context."
            return None, Status.POLICY_FAULT, said
        return answer.text, Status.SCORED, ""

    def read(self, item: RewardItem) -> Workflow | Malformed | Keep:
        """Return what an item's completion asks for, as its form and its round allow it."""
        workers = item.workers or self._spec.names
        reader = read_later_plan if item.first else read_plan
        return reader(self._settings.form, item.completion, workers)

    async def first_round(self, item: RewardItem, question: Question) -> FirstRound | None:
        """Carry a first plan out, for a later round to go on; None for text that is no plan."""
        plan = self.read(item)
        if not isinstance(plan, Workflow):
            return None
        pool = self._pool(item)
        return FirstRound(plan, await self._carried_out(item, plan, question.sealed(), pool))

    async def _carried_out(
        self, item: RewardItem, plan: Workflow, question: Question, pool: CachedPool
    ) -> Answer:
        asked = SampleRef(item.question, item.epoch, secrets.token_hex(8))
        begun = Begun(plan)
        if item.first:
            first = self.firsts[item.first]
            whole = join_rounds(first.workflow, plan)
            begun = Begun(whole, first.answer.replies, first.answer.depth)
        with own_transcript(), recording(self._journal, "training", asked):
            return await execute_more(begun, question, pool, self._settings.budget)

    def _pool(self, item: RewardItem) -> CachedPool:
        """Return a pool for one item.

        Its number is the item's epoch, as in an evaluation, plus its replicate: equal workflows of
        a group get replies of their own, and a recording of several epochs serves them.
        """
        return CachedPool(
            self._models(),
            self._spec,
            epoch=item.epoch + item.replicate,
            spend=self._spend.for_question(),
            asking=self._asking,
            lasting=item.suite in (self._settings.kept or ()),
        )

    def _models(self) -> Mapping[str, Model]:
        """Return the models of the running event loop: a client serves the loop it was made in."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            made = pool_models(self._spec, self._settings.seed, self._settings.time_scale)
            self._made = (loop, made)
        return self._made[1]


def shown_to_policy(
    spec: PoolSpec, form: PlanFormat | None = None
) -> Callable[[Question], list[dict[str, str]]]:
    """Return what a policy is sent for a question, as chat messages: the conductor's own prompt."""
    asked_by = form or PlanFormat()
    cards = [spec.worker(name).card for name in spec.names]

    def shown(question: Question) -> list[dict[str, str]]:
        turns: list[ChatMessage] = plan_prompt(asked_by, question.text, cards)
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    return shown


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """What a plan is worth, and how workers are asked for it."""

    name: Literal["paper", "plain", "cost-aware"] = "paper"
    cost_weight: float = 0.0  # `cost-aware` only, as are the next two; see `CostAware`
    cost_scale: float = 0.0
    cost_by: CostBy = "usd"
    recursive: bool = False  # whether it has later rounds: first ones are discounted
    discount: float = DISCOUNT
    concurrency: int = 64  # plans that this process carries out at once
    timeout_s: float = 120.0  # seconds for one plan, on top of what rates may make it wait
    max_masked: float = 0.3
    deduplicate: bool = False  # carry out equal completions of one step once, for all
    plans: PlanSettings = field(default_factory=PlanSettings)


@dataclass(frozen=True, slots=True)
class TrainingReward:
    """The parts that a trainer needs; all of them are one reward."""

    reward: Reward
    answerer: PlanAnswerer
    trl: TrlReward


def training_reward(
    config: RewardConfig,
    spec: PoolSpec,
    book: Book,
    exams: Mapping[str, SuiteSplit],
    box: Any = None,
) -> TrainingReward:
    """Return a reward for the suites' questions; UserError for what cannot be valued or paid."""
    values = reward_values(config)
    in_dollars = config.name == "cost-aware" and config.cost_by == "usd"
    if in_dollars or config.plans.max_usd is not None:
        what = "a cost term in dollars" if in_dollars else "--max-usd"
        for name in spec.names:
            if book.price(spec.worker(name).price_ref) is None:
                raise UserError(
                    f"Worker {name!r} of pool {spec.name!r} has no price in book {book.name!r}, "
                    f"so {what} cannot hold: complete the book."
                )
    kept = frozenset(name for name, exam in exams.items() if exam.suite.publishable)
    plans = replace(config.plans, kept=kept)
    answerer = PlanAnswerer(spec, book, plans)
    waits = plans.rates.slowest_s(config.concurrency * plans.form.max_steps)
    settings = RewardSettings(
        most=config.concurrency,
        timeout_s=config.timeout_s + waits,
        max_masked=config.max_masked,
        values=values,
        budget_masks=False,  # the answerer watches dollars: it knows what is cached
    )
    reward = Reward(exams, answerer, settings, box)
    again = not config.deduplicate
    return TrainingReward(reward, answerer, TrlReward(reward, names=spec.names, again=again))


def reward_values(config: RewardConfig) -> RewardRule:
    """Return what outcomes are worth; UserError for a cost term that would outweigh being right."""
    worth: RewardRule = PLAIN if config.name == "plain" else PAPER
    if config.name == "cost-aware":
        worth = CostAware(config.cost_weight, config.cost_scale, config.cost_by)
    return Discounted(worth, config.discount) if config.recursive else worth
