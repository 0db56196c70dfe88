"""Rewards of plans in training: run a plan on a pool, grade its answer, compute the reward."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

from inspect_ai.model import Model
from pydantic import BaseModel, ConfigDict, Field

from podium.conductor.parse import Keep, PlanFormat, join_rounds, read_later_plan, read_plan
from podium.conductor.prompt import plan_prompt
from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError, WorkerError
from podium.harness.execute import Budget, execute
from podium.harness.ledger.hooks import own_transcript
from podium.harness.ledger.journal import Head, SampleRef
from podium.harness.ledger.recorder import TaskJournal, recording
from podium.harness.ledger.system_runs import spent_so_far
from podium.harness.ledger.totals import SpentSoFar
from podium.harness.parallel import MINUTE_S, RateLimiter
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import PoolSpec
from podium.harness.prices import Book
from podium.harness.records import Answer, Question, Reply, Usage
from podium.harness.reply_cache import PaidReplies, key_of
from podium.harness.request import Request, SampleIndex, request_digest
from podium.harness.rewards.outcome import (
    NO_EFFORT,
    PAPER,
    PLAIN,
    Effort,
    PlanTrace,
    RewardItem,
    RewardRule,
    Rollout,
    Status,
)
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.run.preflight import refuse_too_little
from podium.harness.workflow import Malformed, Workflow

CostBy = Literal["usd", "calls"]
MARGIN = 0.05  # minimum difference of the rewards of right and wrong answers, at any cost
DISCOUNT = 0.25  # factor of first rounds' rewards in recursive runs (arXiv 2512.04388, app. A.3)


@dataclass(frozen=True, slots=True)
class CostAware:
    """Reward rule with a cost: `wrong + grade * (1 - wrong - weight * min(1, cost / scale))`.

    `wrong` is 0.5, a wrong answer's reward in arXiv 2512.04388; the cost term is ours. Cost lowers
    only the rewards of right answers (as in xRouter, arXiv 2510.08439), which stay higher than
    those of wrong answers: UserError if `weight` is too large for that.
    """

    weight: float  # reward that the most expensive right answer loses
    scale: float  # dollars or calls at which a right answer loses all of `weight`
    by: CostBy = "usd"  # unit of cost: dollars (cached replies at full price) or worker calls

    def __post_init__(self) -> None:
        limit = 1 - PAPER.wrong - MARGIN
        if not 0 < self.weight <= limit:
            raise UserError(
                f"The cost weight must be above 0 and at most {limit:g}, not {self.weight:g}: a "
                f"right answer's reward must stay {MARGIN:g} above a wrong one's {PAPER.wrong:g}."
            )
        if not self.scale > 0:
            raise UserError(
                f"The cost scale must be more than 0, not {self.scale:g}: set [reward] cost_scale."
            )

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return an answer's reward; None if its status has none, or a cost is needed but unknown.

        >>> from decimal import Decimal
        >>> cost = CostAware(weight=0.4, scale=0.01)
        >>> cost.of(Status.SCORED, 1.0, Effort(Decimal("0.005"))), cost.of(Status.SCORED, 0.0)
        (0.8, 0.5)
        """
        if status is not Status.SCORED:
            return PAPER.of(status, grade, effort)
        cost = effort.usd if self.by == "usd" else effort.calls
        if cost is None:  # if only right answers were left out, wrong ones would seem better
            return None
        wrong = PAPER.wrong
        return wrong + grade * (1 - wrong - self.weight * min(1.0, float(cost) / self.scale))


@dataclass(frozen=True, slots=True)
class Discounted:
    """Reward rule for trainings with replanning: `base`, times `discount` for first plans.

    GRPO with `scale_rewards=group` divides by a group's standard deviation, which cancels a common
    factor: the discount has an effect only with `batch` or `none`.
    """

    base: RewardRule
    discount: float = DISCOUNT

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise UserError(
                f"The recursion discount must be above 0 and at most 1, not {self.discount:g}."
            )

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return `base`'s reward, times `discount` for a first plan; None if `base` gives None."""
        value = self.base.of(status, grade, effort)
        return value if value is None or effort.again else self.discount * value


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How plans are run in a training: budget, plan format, limits, logs and cached replies."""

    budget: Budget = field(default_factory=Budget)  # per workflow; then its last reply is graded
    form: PlanFormat = field(default_factory=PlanFormat)  # how a completion is read
    max_usd: Decimal | None = None
    """Limit in dollars of all plans, earlier spending in `log_dir` included. A call that could
    exceed the limit is not made, and its plan has no reward."""
    seed: int = 0  # seed of rehearsal workers
    time_scale: float = 0.0  # seconds that rehearsal workers sleep per second of modelled latency
    log_dir: Path | None = None  # folder of the journal of worker calls; None: no journal
    per_minute: float | None = None  # calls per minute and worker, evenly spaced; may be below 1
    kept: frozenset[str] | None = None
    """Suites whose worker replies are cached in files below `log_dir`, as their questions may be
    published; replies for other suites are cached in memory. None: no cache."""
    rank: int = 0  # index of this process in a training
    processes: int = 1  # number of processes; they share the budget equally

    def __post_init__(self) -> None:
        if self.per_minute is not None and self.per_minute <= 0:
            raise UserError(
                f"The limit of calls per minute must be above 0, not {self.per_minute}."
            )


@dataclass(slots=True)
class CachedPool(Pool):
    """A pool of workers that caches paid replies, and lists all replies, also of failed plans."""

    identities: dict[str, str] = field(default_factory=dict[str, str])
    """Worker -> text of the worker's settings that affect replies, as part of the cache key."""
    pace: RateLimiter = field(default_factory=lambda: RateLimiter({}))
    paid: PaidReplies | None = None  # the cache; None: every request is sent
    lasting: bool = True  # whether replies may be cached in a file
    replies: list[Reply] = field(default_factory=list[Reply])
    cached: int = 0  # number of replies from the cache
    refused: list[tuple[Reply, Request]] = field(default_factory=list[tuple[Reply, Request]])
    """Pairs (reply, request) of all requests that were longer than their worker's context."""

    async def _reply(self, request: Request, number: SampleIndex) -> Reply:
        role = request.role

        async def ask() -> Reply:
            await self.pace.turn(role)
            return await Pool._reply(self, request, number)

        if self.paid is None:
            reply, cached = await ask(), False
        else:
            key = key_of(
                role,
                self.identities.get(role, role),
                request_digest(request.messages),
                request.config.model_dump_json(exclude_none=True),
                number.epoch,
                number.occurrence,
            )
            reply, cached = await self.paid.reply(key, ask, lasting=self.lasting)
        self.cached += cached
        self.replies.append(reply)
        if reply.too_long:
            self.refused.append((reply, request))
        return reply

    def overflow(self, answer: Answer, question: Question) -> tuple[Status, str] | None:
        """Return status and reason if the last request exceeded a worker's context, else None."""
        final = answer.replies[-1] if answer.replies else None
        if final is None or not any(reply is final for reply, _ in self.refused):
            return None
        sent = (request for _, request in self.refused if request.role == final.worker)
        if any(_is_bare(request, question) for request in sent):
            return Status.WORKER_ERROR, f"The question alone does not fit {final.worker}'s context."
        reason = f"What it sent to {final.worker} does not fit that worker's context."
        return Status.POLICY_FAULT, reason


def _is_bare(request: Request, question: Question) -> bool:
    """Return whether a request is one message, at most twice as long as the question."""
    texts = [turn.text for turn in request.messages]
    return len(texts) == 1 and len(texts[0]) <= 2 * len(question.text)


@dataclass(frozen=True, slots=True)
class FirstRound:
    """The plan and the answer of a first planning round, from which a later round starts."""

    workflow: Workflow
    answer: Answer
    refused: tuple[Status, str] | None = None
    """Status and reason if the round has no answer, because its last request exceeded the worker's
    context; None if the round has an answer."""


class PlanAnswerer:
    """Runs plans on a pool, priced by a price book, as the `answer` function of a `Reward`."""

    def __init__(self, spec: PoolSpec, book: Book, settings: PlanSettings = PlanSettings()) -> None:
        """Prepare to run plans; UserError if the dollar limit does not allow even one call."""
        self._arguments = (spec, book, settings)
        self._spec, self._settings = spec, settings
        folder = settings.log_dir
        limited = settings.max_usd is not None and folder is not None
        earlier = spent_so_far(folder, book) if limited and folder else SpentSoFar()
        if settings.max_usd is not None:
            refuse_too_little(spec, book, settings.max_usd / settings.processes, settings.processes)
        self._spend = Spend(book, settings.max_usd, earlier.usd, unbounded=earlier.unbounded)
        self.before = self._spend.gone  # dollars spent by all processes before this one started
        if settings.max_usd is not None and settings.processes > 1:
            self.allow((settings.max_usd - self.before) / settings.processes)
        head = Head("", "", f"rewards of {spec.name}", spec.label, book.name, book.sha256)
        self._journal = TaskJournal(folder, head) if folder else None
        if self._journal:
            finalize(self, self._journal.close)  # at garbage collection or process exit
        self._paid = None if settings.kept is None else PaidReplies(folder, settings.rank)
        pace, told_apart_by = settings.per_minute, {"model", "config", "args"}
        self._pace = RateLimiter({slot.name: pace for slot in spec.slots} if pace else {})
        self._identities = {
            slot.name: f"{settings.seed} {slot.model_dump_json(include=told_apart_by)}"
            for slot in spec.slots
        }
        self._made: tuple[asyncio.AbstractEventLoop, Mapping[str, Model]] | None = None
        self.stopped = ""  # why no more calls are made, a sentence; empty while budget remains
        self.firsts: dict[str, FirstRound] = {}  # by `RewardItem.first` of later rounds

    def __reduce__(self) -> "tuple[type[PlanAnswerer], tuple[PoolSpec, Book, PlanSettings]]":
        """Return class and arguments, from which pickle rebuilds the object in another process."""
        return PlanAnswerer, self._arguments

    @property
    def usd(self) -> Decimal:
        """Dollars spent by this process and, if a limit in dollars is set, by earlier sessions."""
        return self._spend.gone

    def allow(self, usd: Decimal) -> None:
        """Limit this process to `usd` more dollars from now on."""
        self._spend.limit = self._spend.gone + usd

    def check(self, item: RewardItem) -> None:
        """Raise UserError if an item (a plan to reward) names an unknown worker or first round."""
        if self._paid:
            self._paid.open()
        strangers = [name for name in item.workers if name not in self._spec.names]
        if strangers:
            raise UserError(
                f"Pool {self._spec.name!r} has no worker {strangers[0]!r}; its workers are: "
                f"{', '.join(self._spec.names)}."
            )
        if item.first and item.first not in self.firsts:
            raise UserError(
                f"An item of question {item.question} continues the first round {item.first!r}, "
                "which does not exist. Remove `first` from this item."
            )

    async def __call__(self, item: RewardItem, question: Question) -> Rollout:
        """Run an item's plan; return the answer and its cost, or a status if there is no answer."""
        plan, later = self.read(item), bool(item.first)
        if isinstance(plan, Malformed):
            message = f"No workflow: {plan.reason}."
            return Rollout(None, Status.INVALID_ACTION, reason=message, again=later)
        if isinstance(plan, Keep):
            earlier = self.firsts[item.first]
            status, message = earlier.refused or (Status.SCORED, "")
            text = None if earlier.refused else earlier.answer.text
            return Rollout(text, status, reason=message, work=PlanTrace(()), again=True)
        pool = self._pool(item)
        text, status, reason = await self._came_to(item, plan, question, pool)
        workers = tuple(step.worker for step in plan.steps)
        usages, costs = [r.usage for r in pool.replies], [r.usd for r in pool.replies]
        return Rollout(
            text,
            status,
            None if None in usages else sum(filter(None, usages), Usage(reasoning=0)),
            None if None in costs else sum((usd for usd in costs if usd is not None), Decimal(0)),
            len(pool.replies),
            reason,
            PlanTrace(workers, plan.as_json(), pool.cached),
            later,
        )

    async def _came_to(
        self, item: RewardItem, plan: Workflow, question: Question, pool: CachedPool
    ) -> tuple[str | None, Status, str]:
        try:
            answer = await self._carried_out(item, plan, question, pool)
        except SpendLimit as error:
            self.stopped = str(error)
            return None, Status.BUDGET, str(error)
        except WorkerError as error:
            return None, Status.WORKER_ERROR, str(error)
        if refused := pool.overflow(answer, question):
            return None, *refused
        return answer.text, Status.SCORED, ""

    def read(self, item: RewardItem) -> Workflow | Malformed | Keep:
        """Return the plan in an item's completion, parsed as a first or a later round's plan."""
        workers = item.workers or self._spec.names
        reader = read_later_plan if item.first else read_plan
        return reader(self._settings.form, item.completion, workers)

    async def first_round(self, item: RewardItem, question: Question) -> FirstRound | None:
        """Run an item's plan, which a later round may continue; None if it has no valid plan."""
        plan = self.read(item)
        if not isinstance(plan, Workflow):
            return None
        pool = self._pool(item)
        answer = await self._carried_out(item, plan, question.sealed(), pool)
        return FirstRound(plan, answer, pool.overflow(answer, question))

    async def _carried_out(
        self, item: RewardItem, plan: Workflow, question: Question, pool: CachedPool
    ) -> Answer:
        sample = SampleRef(item.question, item.epoch, secrets.token_hex(8))
        earlier = self.firsts[item.first] if item.first else None
        workflow = join_rounds(earlier.workflow, plan) if earlier else plan
        answer = earlier.answer if earlier else None
        with own_transcript(), recording(self._journal, "training", sample):
            return await execute(workflow, question, pool, self._settings.budget, answer)

    def _pool(self, item: RewardItem) -> CachedPool:
        """Return a pool to run one item's plan; equal plans of a question get separate replies."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:  # clients are bound to one event loop
            settings = self._settings
            self._made = loop, pool_models(self._spec, settings.seed, settings.time_scale)
        return CachedPool(
            self._made[1],
            self._spec,
            epoch=item.epoch + item.replicate,
            spend=self._spend.for_question(),
            identities=self._identities,
            pace=self._pace,
            paid=self._paid,
            lasting=item.suite in (self._settings.kept or ()),
        )


def shown_to_policy(spec: PoolSpec) -> Callable[[Question], list[dict[str, str]]]:
    """Return a function from a question to the conductor's prompt, as chat messages for GRPO."""
    cards = [spec.worker(name).card for name in spec.names]

    def shown(question: Question) -> list[dict[str, str]]:
        turns = plan_prompt(PlanFormat(), question.text, cards)
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    return shown


class RewardConfig(BaseModel):
    """Settings of rewards in a training: the reward rule, and how plans are run on workers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["paper", "plain", "cost-aware"] = "paper"
    cost_weight: float = Field(default=0.0, ge=0, le=1)  # `CostAware.weight`
    cost_scale: float = Field(default=0.0, ge=0)  # `CostAware.scale`, in dollars or calls
    cost_by: CostBy = "usd"
    concurrency: int = Field(default=64, ge=1)  # plans run in parallel, over all processes
    rpm: int | None = Field(default=None, ge=1)  # requests per minute and worker; None: no limit
    max_usd: Decimal | None = Field(default=None, gt=0)
    """Limit in dollars of all processes together; before each step, the remainder is divided among
    the processes."""
    timeout_s: float = Field(default=120.0, gt=0)  # for one plan, without waits for rate limits
    max_masked: float = Field(default=0.3, ge=0, le=1)
    deduplicate: bool = False  # run equal plans of one group once, not once each
    resample: int = Field(default=0, ge=0, le=8)  # maximum `Resampling` rounds per batch
    ahead: bool = True  # run complete plans while others are still generated
    time_scale: float = Field(default=0.0, ge=0)  # as `PlanSettings.time_scale`


def training_reward(
    config: RewardConfig,
    plans: PlanSettings,
    spec: PoolSpec,
    book: Book,
    splits: Mapping[str, SuiteSplit],
    *,
    discount: float | None = None,
    box: Any = None,
) -> tuple[Reward, PlanAnswerer]:
    """Return a training's reward and its plan runner; UserError if a needed price is missing."""
    values = reward_values(config, discount)
    in_dollars = config.name == "cost-aware" and config.cost_by == "usd"
    if in_dollars or plans.max_usd is not None:
        option = "a cost term in dollars" if in_dollars else "--max-usd"
        for name in spec.names:
            if book.price(spec.worker(name).price_ref) is None:
                raise UserError(
                    f"Worker {name!r} of pool {spec.name!r} has no price in book {book.name!r}, "
                    f"which {option} needs. Give the worker a price in the pool file."
                )
    publishable = frozenset(name for name, split in splits.items() if split.suite.publishable)
    answerer = PlanAnswerer(spec, book, replace(plans, kept=publishable))
    calls = config.concurrency * plans.form.max_steps  # worst case: all calls go to one worker
    waits = calls * MINUTE_S / plans.per_minute if plans.per_minute else 0.0
    settings = RewardSettings(
        most=config.concurrency,
        timeout_s=config.timeout_s + waits,
        max_masked=config.max_masked,
        values=values,
        budget_masks=False,  # the answerer enforces the budget, as it knows the cache
    )
    return Reward(splits, answerer, settings, box), answerer


def reward_values(config: RewardConfig, discount: float | None = None) -> RewardRule:
    """Return a training's reward rule, with `discount` for first plans; UserError if invalid."""
    worth: RewardRule = PLAIN if config.name == "plain" else PAPER
    if config.name == "cost-aware":
        worth = CostAware(config.cost_weight, config.cost_scale, config.cost_by)
    return worth if discount is None else Discounted(worth, discount)
