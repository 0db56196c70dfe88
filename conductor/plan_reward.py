"""Completions that are workflows, carried out for a reward: the reply is what the suite grades.

`planned` makes an `Answerer` for `harness.rewards.reward.Reward`: a completion is read by the form of
its conductor, run on a pool as an evaluation runs it, and its last reply is the answer. Whose doing
a failure is, is told apart here; what it is worth is said in harness/rewards/outcome.py. The pool
never sees a target. Not here: pace and replies that are paid already (asked_pool.py).
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from weakref import finalize

from inspect_ai.model import ChatMessage, Model

from conductor.asked_pool import AskedPool, Asking, identities
from conductor.form import Form
from conductor.pacing import Pace, Rates
from conductor.prompt import request
from conductor.reading import read
from conductor.recursion import Keep, join, read_again
from harness.budget import Spend
from harness.errors import SpendLimit, UserError, WorkerError
from harness.execute import Begun, Budget, execute_more
from harness.ledger.hooks import own_transcript
from harness.ledger.journal import Head, SampleRef
from harness.ledger.recorder import TaskJournal, recording
from harness.ledger.totals import SpentSoFar, spent_so_far
from harness.pool import pool_models
from harness.pool_config import PoolSpec
from harness.prices import Book
from harness.records import Answer, Question, Reply, Usage
from harness.reply_cache import PaidReplies
from harness.rewards.outcome import PlanTrace, RewardItem, Rollout, Status
from harness.run.preflight import refuse_too_little
from harness.workflow import Malformed, Workflow


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How workflows are carried out."""

    budget: Budget = field(default_factory=Budget)
    """Of one workflow. A workflow that it stops is graded as it stands, as in an evaluation."""
    form: Form = field(default_factory=Form)
    """How a completion is read."""
    max_usd: Decimal | None = None
    """Of all of them, with what `log_dir` has spent before: a call that could pass it is not made,
    and its item has no value."""
    seed: int = 0
    """Of rehearsal workers."""
    time_scale: float = 0.0
    """Rehearsal latency is slept times this."""
    log_dir: Path | None = None
    """Every call of a worker is written to a journal below it; None: nowhere."""
    rates: Rates = field(default_factory=Rates)
    kept: frozenset[str] | None = None
    """Suites whose replies are kept below `log_dir`, for their questions may be published; those of
    others are kept in memory. None: nothing is; an item that is rewarded again is asked anew."""
    rank: int = 0
    """Which process of a training this is."""
    processes: int = 1
    """How many there are: each may spend an equal part of what is left of `max_usd`."""


@dataclass(frozen=True, slots=True)
class First:
    """What a first plan came to: where a later round begins."""

    workflow: Workflow
    answer: Answer


def planned(spec: PoolSpec, book: Book, settings: PlanSettings = PlanSettings()) -> "Planned":
    """Return the answerer that carries workflows out on the pool `spec`, priced by `book`.

    UserError where dollars are limited, and what was spent before has no price, or the limit is
    less than one call can cost.
    """
    return Planned(spec, book, settings)


class Planned:
    """An `Answerer`; it pickles, without its models, its replies and what it noted."""

    def __init__(self, spec: PoolSpec, book: Book, settings: PlanSettings) -> None:
        """Keep the pool; its models are made in the event loop that first asks them."""
        self._arguments = (spec, book, settings)
        self._spec, self._settings = spec, settings
        folder = settings.log_dir
        limited = settings.max_usd is not None and folder is not None
        before = spent_so_far(folder, book) if limited and folder else SpentSoFar()
        if settings.max_usd is not None:
            refuse_too_little(spec, book, settings.max_usd / settings.processes, settings.processes)
        self._spend = Spend(book, settings.max_usd, before.usd, unbounded=before.unbounded)
        self.before = self._spend.gone
        """What was spent when this process began, by all of them."""
        if settings.max_usd is not None and settings.processes > 1:
            self.allow((settings.max_usd - self.before) / settings.processes)
        self._journal = TaskJournal(folder, _head(spec, book)) if folder else None
        if self._journal:
            finalize(self, self._journal.close)  # at the latest when the process ends
        paid = None if settings.kept is None else PaidReplies(folder, settings.rank)
        self._asking = Asking(identities(spec, settings.seed), Pace(settings.rates), paid)
        self._made: tuple[asyncio.AbstractEventLoop, Mapping[str, Model]] | None = None
        self._stopped = ""
        self.firsts: dict[str, First] = {}
        """By the id that items of later rounds name; whoever plans rounds adds to them."""

    def __reduce__(self) -> "tuple[type[Planned], tuple[PoolSpec, Book, PlanSettings]]":
        """Say how another process makes this answerer anew."""
        return Planned, self._arguments

    @property
    def stopped(self) -> str:
        """Why no more calls are made, in one sentence; empty while there is money."""
        return self._stopped

    @property
    def usd(self) -> Decimal:
        """What this process has spent, with all of earlier sittings in the same folder."""
        return self._spend.gone

    def allow(self, more: Decimal) -> None:
        """Let this process spend so many dollars more, and no others."""
        self._spend.limit = self._spend.gone + more

    def check(self, item: RewardItem) -> None:
        """Raise UserError for an item whose workers or first round are not there.

        Also where the replies that were paid for cannot be read.
        """
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
        plan = self.read(item)
        if isinstance(plan, Malformed):
            said = f"No workflow: {plan.reason}."
            return Rollout(None, Status.INVALID_ACTION, reason=said, again=bool(item.first))
        if isinstance(plan, Keep):
            return Rollout(self.firsts[item.first].answer.text, work=PlanTrace(()), again=True)
        pool = self._pool(item)
        try:
            answer = await self._carried_out(item, plan, question, pool)
        except SpendLimit as error:
            self._stopped = str(error)
            return _ended(item, plan, pool, (Status.BUDGET, str(error)))
        except WorkerError as error:
            return _ended(item, plan, pool, (Status.WORKER_ERROR, str(error)))
        last = answer.replies[-1] if answer.replies else None
        if last is not None and last.too_long:
            said = f"What it sent to {last.worker} does not fit that worker's context."
            return _ended(item, plan, pool, (Status.POLICY_FAULT, said))
        return _ended(item, plan, pool, answer.text)

    def read(self, item: RewardItem) -> Workflow | Malformed | Keep:
        """Return what an item's completion asks for, as its form and its round allow it."""
        workers = item.workers or self._spec.names
        reader = read_again if item.first else read
        return reader(self._settings.form, item.completion, workers)

    async def first_round(self, item: RewardItem, question: Question) -> First | None:
        """Carry a first plan out, for a later round to go on; None for text that is no plan.

        Raises WorkerError or SpendLimit; replies are paid for once, also if the plan is rewarded.
        """
        plan = self.read(item)
        if not isinstance(plan, Workflow):
            return None
        pool = self._pool(item)
        return First(plan, await self._carried_out(item, plan, question.sealed(), pool))

    async def _carried_out(
        self, item: RewardItem, plan: Workflow, question: Question, pool: AskedPool
    ) -> Answer:
        asked = SampleRef(item.question, item.epoch, secrets.token_hex(8))
        begun = Begun(plan)
        if item.first:
            first = self.firsts[item.first]
            whole = join(first.workflow, plan)
            begun = Begun(whole, first.answer.replies, first.answer.depth)
        with own_transcript(), recording(self._journal, "training", asked):
            return await execute_more(begun, question, pool, self._settings.budget)

    def _pool(self, item: RewardItem) -> AskedPool:
        """Return a pool for one item.

        Its number is the item's epoch, as in an evaluation, plus its replicate: equal workflows of
        a group get replies of their own, and a recording of several epochs serves them.
        """
        return AskedPool(
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
    spec: PoolSpec, form: Form | None = None
) -> Callable[[Question], list[dict[str, str]]]:
    """Return what a policy is sent for a question, as chat messages: the conductor's own prompt."""
    asked_by = form or Form()
    cards = [spec.worker(name).card for name in spec.names]

    def shown(question: Question) -> list[dict[str, str]]:
        turns: list[ChatMessage] = request(asked_by, question.text, cards)
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    return shown


def _head(spec: PoolSpec, book: Book) -> Head:
    return Head("", "", f"rewards of {spec.name}", spec.label, book.name, book.sha256)


def _ended(
    item: RewardItem, plan: Workflow, pool: AskedPool, came_to: str | tuple[Status, str]
) -> Rollout:
    """Return the answer that a workflow came to, or why there is none, with what was paid."""
    text, (status, reason) = (
        (came_to, (Status.SCORED, ""))
        if isinstance(came_to, str)
        else (
            None,
            came_to,
        )
    )
    work = PlanTrace(tuple(step.worker for step in plan.steps), plan.as_json(), pool.cached)
    replies = pool.replies
    return Rollout(
        text, status, _usage(replies), _usd(replies), len(replies), reason, work, bool(item.first)
    )


def _usage(replies: Sequence[Reply]) -> Usage | None:
    """Return the sum, None as soon as one worker reported none."""
    total = Usage(reasoning=0)
    for reply in replies:
        if reply.usage is None:
            return None
        total += reply.usage
    return total


def _usd(replies: Sequence[Reply]) -> Decimal | None:
    total = Decimal(0)
    for reply in replies:
        if reply.usd is None:
            return None
        total += reply.usd
    return total
