"""Completions that are workflows, carried out for a reward: the reply is what the suite grades.

`planned` makes an `Answerer` for `harness.rewards.core.Reward`: a completion is read as a conductor
writes it, run on a pool as an evaluation runs it, and its last reply is the answer. Whose doing a
failure is, is told apart here; what it is worth is said in core.py. The pool never sees a target.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from weakref import finalize

from inspect_ai.model import ChatMessage, Model

from conductor.parse import parse
from conductor.prompt import plan_request
from harness.errors import SpendLimit, WorkerError
from harness.execute import Budget, execute
from harness.ledger.asking import TaskJournal, recording
from harness.ledger.journal import Head, SampleRef
from harness.pool import Pool, pool_models
from harness.pool_file import PoolSpec
from harness.prices import Book
from harness.records import Question, Reply, Usage
from harness.rewards.core import Answered
from harness.rewards.items import RewardItem, Status
from harness.spend import Spend
from harness.workflow import MAX_STEPS, Malformed, Sampling


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How workflows are carried out."""

    budget: Budget = field(default_factory=Budget)
    """Of one workflow. A workflow that it stops is graded as it stands, as in an evaluation."""
    max_steps: int = MAX_STEPS
    max_usd: Decimal | None = None
    """Of all of them: a call that could pass it is not made, and its item has no value."""
    seed: int = 0
    """Of rehearsal workers."""
    time_scale: float = 0.0
    """Rehearsal latency is slept times this."""
    log_dir: Path | None = None
    """Every call of a worker is written to a journal below it; None: nowhere."""


def planned(spec: PoolSpec, book: Book, settings: PlanSettings = PlanSettings()) -> "Planned":
    """Return the answerer that carries workflows out on the pool `spec`, priced by `book`."""
    return Planned(spec, book, settings)


class Planned:
    """An `Answerer`; it pickles, without its models and with nothing spent."""

    def __init__(self, spec: PoolSpec, book: Book, settings: PlanSettings) -> None:
        """Keep the pool; its models are made in the event loop that first asks them."""
        self._arguments = (spec, book, settings)
        self._spec, self._settings = spec, settings
        self._spend = Spend(book, settings.max_usd)
        folder = settings.log_dir
        self._journal = TaskJournal(folder, _head(spec, book)) if folder else None
        if self._journal:
            finalize(self, self._journal.close)  # at the latest when the process ends
        self._made: tuple[asyncio.AbstractEventLoop, Mapping[str, Model]] | None = None

    def __reduce__(self) -> "tuple[type[Planned], tuple[PoolSpec, Book, PlanSettings]]":
        """Say how another process makes this answerer anew."""
        return Planned, self._arguments

    async def __call__(self, item: RewardItem, question: Question) -> Answered:
        """Return the answer that the item's workflow comes to, or why there is none.

        Tokens and dollars are those of the replies that came; a call that failed has reported none.
        """
        plan = parse(item.completion, self._spec.names, self._settings.max_steps)
        if isinstance(plan, Malformed):
            return Answered(None, Status.INVALID_ACTION, reason=f"No workflow: {plan.reason}.")
        pool = self._pool(item)
        asked = SampleRef(item.question, item.epoch, secrets.token_hex(8))
        try:
            with recording(self._journal, "training", asked):
                answer = await execute(plan, question.sealed(), pool, self._settings.budget)
        except SpendLimit as error:
            return _unanswered(Status.BUDGET, str(error), pool.replies)
        except WorkerError as error:
            return _unanswered(Status.WORKER_ERROR, str(error), pool.replies)
        last = answer.replies[-1] if answer.replies else None
        if last is not None and last.too_long:
            said = f"What it sent to {last.worker} does not fit that worker's context."
            return _unanswered(Status.POLICY_FAULT, said, pool.replies)
        return Answered(
            answer.text,
            usage=_usage(pool.replies),
            usd=_usd(pool.replies),
            calls=len(pool.replies),
        )

    def _pool(self, item: RewardItem) -> "_NotingPool":
        """Return a pool for one item.

        Its number is the item's epoch, as in an evaluation, plus its replicate: equal workflows of
        a group get replies of their own, and a recording of several epochs serves them.
        """
        number = item.epoch + item.replicate
        return _NotingPool(self._models(), self._spec, epoch=number, spend=self._spend)

    def _models(self) -> Mapping[str, Model]:
        """Return the models of the running event loop: a client serves the loop it was made in."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            made = pool_models(self._spec, self._settings.seed, self._settings.time_scale)
            self._made = (loop, made)
        return self._made[1]


def shown_to_policy(
    spec: PoolSpec, max_steps: int = MAX_STEPS
) -> Callable[[Question], list[dict[str, str]]]:
    """Return what a policy is sent for a question, as chat messages: the conductor's own prompt."""
    cards = [spec.worker(name).card for name in spec.names]

    def shown(question: Question) -> list[dict[str, str]]:
        request: list[ChatMessage] = plan_request(question.text, cards, max_steps)
        return [{"role": turn.role, "content": turn.text} for turn in request]

    return shown


@dataclass(slots=True)
class _NotingPool(Pool):
    """A pool that keeps the replies it gave: they are paid for, whatever becomes of the rest."""

    replies: list[Reply] = field(default_factory=list[Reply])

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        reply = await Pool.ask(self, worker, messages, step, sampling)
        self.replies.append(reply)
        return reply


def _head(spec: PoolSpec, book: Book) -> Head:
    return Head("", "", f"rewards of {spec.name}", spec.label, book.name, book.sha256)


def _unanswered(status: Status, reason: str, replies: Sequence[Reply]) -> Answered:
    return Answered(None, status, _usage(replies), _usd(replies), len(replies), reason)


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
