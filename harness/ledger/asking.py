"""The one way in which our code calls a model: allowance, `intent`, the call, `outcome`.

`Pool.ask` and judges put every call through `asking`. Which journal it is written to is known by
the running task (a context variable that the adapters of solvers and scorers set), so no system,
suite or pool has to carry one. Without a journal (`inspect eval` on a suite) only the spending
limit is kept. Not here: what a line looks like (journal.py), what a call costs
(harness/prices/pricing.py).
"""

import sys
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from inspect_ai.event import ModelEvent
from inspect_ai.model import ModelOutput
from inspect_ai.util import current_span_id

from harness.errors import SpendLimit
from harness.ledger.billing import Attempted, billable_reply, is_refusal, upper_bound
from harness.ledger.counting import COUNTED, PAYING, WAITING, NotAllowed, Unwritten, listen
from harness.ledger.events import responses
from harness.ledger.journal import Head, Intent, Journal, Outcome, SampleRef, open_journal
from harness.ledger.observed import failed, last_event, made_readable, outcome_of
from harness.ledger.request import Request
from harness.ledger.row import Billable, Scope, plain
from harness.plural import counted
from harness.prices.pricing import Service, cost
from harness.records import Usage
from harness.reply_cache import PaidReplies
from harness.spend import Allowance, Spend

UNBELIEVED = (
    "podium: {} of {} came back with token counts that cannot be; what that cost is unknown and "
    "counts as the most it can have been, and `podium audit` names it."
)


@dataclass(slots=True)
class TaskJournal:
    """A task's journal, opened when the first call of this process is made."""

    log_dir: Path
    head: Head
    replies: PaidReplies | None = None
    """Where the replies of its samples are kept until its log has them; None: nowhere."""
    unbelieved: Counter[str] = field(default_factory=Counter[str])
    """By worker: replies with token counts that cannot be."""
    _open: Journal | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def journal(self) -> Journal:
        """Return the open journal; OSError when it cannot be made."""
        with self._lock:
            if self._open is None:
                self._open = open_journal(self.log_dir, self.head)
                COUNTED.begin(self.head.task)
            return self._open

    def note(self, kind: Literal["answer", "grade"], fields: Mapping[str, Any]) -> None:
        """Write down what became of a sample, where any call of this process was written down.

        No answer is lost because it could not be: the audit then says what it cannot compare.
        """
        with self._lock:
            if self._open is not None:
                with suppress(OSError):
                    self._open.write(kind, fields)

    def close(self) -> None:
        """Write down what Inspect's hooks counted meanwhile, and close the file.

        The user is told of workers whose counts cannot be, once of each.
        """
        for worker, times in sorted(self.unbelieved.items()):
            sys.stderr.write(UNBELIEVED.format(counted(times, "call"), worker) + "\n")
        self.unbelieved.clear()
        with self._lock:
            if self._open is None:
                return
            for totals in COUNTED.end(self.head.task):
                self._open.write("totals", totals)
            self._open.write("closed", {})
            self._open.close()
            self._open = None


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where the calls of a sample are written down, and what they are made for."""

    journal: TaskJournal
    scope: Scope
    sample: SampleRef | None = None
    draws: Counter[bytes] = field(default_factory=Counter[bytes])
    """How often each request was made for the sample: which draw the next one is."""
    replays: list[str] = field(default_factory=list[str])
    """Ids of the calls whose replies had been paid for: they took no time."""


RECORDER: ContextVar[Recorder | None] = ContextVar("podium_recorder", default=None)
"""Of the running sample; None where calls are not written down."""


@dataclass(slots=True)
class Asked:
    """A call in flight: whoever makes it sets `output`; the rest is known once it has ended."""

    output: ModelOutput | None = None
    usage: Usage | None = None
    """What the provider counted; None when it counted nothing."""
    usd: Decimal | None = None
    ended: Outcome | None = None
    """As it is written down, where that is done; None while nothing was dispatched."""

    @property
    def billable(self) -> Billable | None:
        """Say whether its last attempt is billed; None where nothing was dispatched."""
        ended = self.ended
        if ended is None or ended.refused:
            return "no" if ended else None
        doubtful = ended.error is not None or ended.raw_usage is not None
        return billable_reply(ended.cache, ended.usage, ended.http_status, doubtful=doubtful)

    @property
    def too_long(self) -> bool:
        """Return whether a provider refused a request for its length: it then generated nothing.

        Inspect's providers turn such an error into a reply that stops for `model_length`. A reply
        that was cut there, for there was no more room, has tokens and is a reply.
        """
        if self.output is None or self.output.empty or self.output.stop_reason != "model_length":
            return False
        return not (self.output.usage and self.output.usage.output_tokens)


@asynccontextmanager
async def asking(request: Request, spend: Spend | None) -> AsyncGenerator[Asked]:
    """Let one call be made, in a span of its own: written down before and after, and paid for.

    Raises `SpendLimit` before a call that may not be paid for any more, and OSError before one that
    cannot be written down. A request that was refused as too long is not billed.
    """
    listen()
    asked = Asked()
    payment = _payment(request, spend) if spend else None
    token = PAYING.set(payment)
    try:
        with _written_down(request, asked, spend):
            yield asked
    except NotAllowed as stop:
        raise stop.__cause__ or SpendLimit(str(stop)) from None
    finally:
        PAYING.reset(token)
        if payment:
            payment.settle(asked)
            payment.allowance.release()


@dataclass(frozen=True, slots=True)
class Payment:
    """Pays for one call, attempt by attempt; Inspect says when (harness/ledger/counting.py)."""

    allowance: Allowance
    service: Service
    span: str | None

    async def take(self) -> None:
        """Wait for what the next attempt can cost; SpendLimit where it may not be paid for."""
        await self.allowance.take()

    def failed(self, status: int | None) -> None:
        """Count an attempt that failed and is to be made again, and give back what it held."""
        self._lost(0 if is_refusal(status) else 1)
        self.allowance.release()

    def settle(self, asked: Asked) -> None:
        """Count a call, however it ended: who raised, and what becomes of its reply, is no matter.

        One that got no answer may have been billed; one that was refused as too long costs nothing.
        """
        if asked.ended is None:
            return
        billable, cached = asked.billable, asked.ended.cache == "read"
        self._lost(1 if billable == "unknown" else 0)
        if billable == "yes" or cached:
            asked.usd = self.allowance.paid(asked.usage, self.service, cached=cached)
        elif billable == "no":
            asked.usd = Decimal(0)

    def _lost(self, last: int) -> None:
        """Count what got no answer in the attempt in flight, tries of its client included."""
        if self.allowance.in_flight:
            within = _unanswered(last_event(self.span)) if self.allowance.requests > 1 else 0
            self.allowance.lost(within + last)


def _unanswered(event: ModelEvent | None) -> int:
    """Return the tries inside one event before its last that got no answer."""
    if event is None:
        return 0
    ids = [one.model_dump() for one in event.request_ids or ()]
    statuses = [one["status"] or 0 for one in responses(ids, event.model)]
    if event.error and is_refusal(statuses[-1] if statuses else None):
        statuses.pop()
    return max(0, (event.retries or 0) - sum(map(is_refusal, statuses)))


@dataclass(slots=True)
class InFlight:
    """A call that is being made: `call` is None until it goes out, for it may wait in a queue.

    Its intent is written when Inspect announces the dispatch (harness/ledger/counting.py). Written
    any sooner, all questions that wait for a connection would count as calls that a killed run may
    have to pay for.
    """

    request: Request
    recorder: Recorder
    span: str | None
    call: str | None = None
    began: float = 0.0
    waits: bool = False
    """Whether an attempt has failed and the next has not gone out."""

    def goes_out(self) -> None:
        """Write down that an attempt goes out; OSError when it cannot be written."""
        if self.waits:
            self.journal.again(self.dispatched(), round(self.took_s, 6))
            self.waits = False
        self.dispatched()

    @property
    def journal(self) -> Journal:
        """The open journal; OSError when it cannot be made. Who only asks for money makes none."""
        return self.recorder.journal.journal()

    def dispatched(self) -> str:
        """Write the intent, once, and return the call's id; OSError when it cannot be written."""
        if self.call is None:
            self.call = self.journal.intent(_intent(self.request, self.recorder, self.span))
            self.began = monotonic()
        return self.call

    def retried(self, attempt: int, error: str | None, status: int | None) -> None:
        """Write down that an attempt over HTTP has failed and another is to follow."""
        self.waits = True
        self.journal.retry(self.dispatched(), attempt, error, status)

    @property
    def took_s(self) -> float:
        """Seconds since it went out."""
        return monotonic() - self.began if self.call else 0.0


@contextmanager
def _written_down(request: Request, asked: Asked, spend: Spend | None) -> Generator[None]:
    """Let the intent be written as the call goes out, and then how it ended, whatever way."""
    recorder, span = RECORDER.get(), current_span_id()
    flight = InFlight(request, recorder, span) if recorder else None
    token = WAITING.set(flight)
    try:
        yield
    except Unwritten as error:
        raise error.__cause__ or OSError("the journal cannot be written") from None
    except BaseException as error:  # a cancelled call may be billed as well
        event = last_event(span)
        if event or (flight and flight.call):
            _end(asked, event, flight, error)
            with suppress(OSError):  # then it is unknown, and what went wrong first is told
                _write(asked, flight, spend)
        raise
    finally:
        WAITING.reset(token)
    _end(asked, last_event(span), flight)
    _write(asked, flight, spend)


def _end(
    asked: Asked,
    event: ModelEvent | None,
    flight: InFlight | None,
    error: BaseException | None = None,
) -> None:
    """Set how a call has ended. Nothing that a provider can send keeps it from being known."""
    took = flight.took_s if flight else 0.0
    try:
        made_readable(asked.output, event)
        if error is None:
            asked.ended = outcome_of(asked.output, event, took, refused=asked.too_long)
        else:
            asked.ended = failed(error, event, took)
            if flight and flight.waits:  # the attempt that was to follow never went out
                asked.ended = replace(asked.ended, event=None, refused=True)
    except Exception as odd:  # a reply that we cannot read; what it cost is then unknown
        kind, uuid = type(error or odd).__name__, event.uuid if event else None
        asked.ended = Outcome(event=uuid, usage=None, error=kind, latency_s=round(took, 6))
    asked.usage = asked.ended.usage


def _write(asked: Asked, flight: InFlight | None, spend: Spend | None) -> None:
    if flight and asked.ended:
        flight.journal.outcome(flight.dispatched(), _priced(asked.ended, flight.request, spend))
        if asked.ended.unbelieved:
            flight.recorder.journal.unbelieved[flight.request.role] += 1


def read_back(request: Request, event: ModelEvent, spend: Spend | None) -> Asked:
    """Write down a call whose reply was paid for before: nothing goes out, and nobody is paid."""
    asked, recorder = Asked(event.output), RECORDER.get()
    ended = replace(outcome_of(event.output, event, 0.0, refused=False), from_store=True)
    asked.ended, asked.usage = ended, ended.usage
    if recorder:
        journal = recorder.journal.journal()
        call = journal.intent(_intent(request, recorder, event.span_id))
        journal.outcome(call, _priced(ended, request, spend))
        recorder.replays.append(call)
    if spend:
        named = request.price_ref, asked.usage, request.service
        asked.usd = spend.add(*named, cached=True)
    return asked


def _payment(request: Request, spend: Spend) -> Payment:
    """Return what pays for a call; its allowance knows the most that one HTTP request can cost."""
    price, service = spend.book.price(request.price_ref), request.service
    most = None
    if request.is_bounded:
        sizes = request.prompt_bytes, request.max_tokens
        most = upper_bound(Attempted("unknown", "none", None, service, *sizes), price)
    allowance = Allowance(spend, request.price_ref, most, request.requests)
    return Payment(allowance, service, current_span_id())


def _priced(ended: Outcome, request: Request, spend: Spend | None) -> Outcome:
    """Return an outcome with what it cost, so that a book or a count changed later shows."""
    price = spend.book.price(request.price_ref) if spend else None
    if price is None or (ended.usage is None and not ended.refused):
        return ended
    if ended.refused or ended.cache == "read":
        return replace(ended, usd="0")
    usd = cost(ended.usage or Usage(), price, request.service)
    return replace(ended, usd=plain(usd))


def _intent(request: Request, recorder: Recorder, span: str | None) -> Intent:
    return Intent(
        scope=recorder.scope,
        sample=recorder.sample,
        role=request.role,
        step=request.step,
        model=str(request.model),
        price_ref=request.price_ref,
        service=request.service,
        prompt_sha256=request.sha256,
        prompt_bytes=request.prompt_bytes,
        max_tokens=request.max_tokens,
        span=span,
    )


@contextmanager
def recording(
    journal: TaskJournal | None, scope: Scope, sample: SampleRef | None = None
) -> Generator[Recorder | None]:
    """Let the calls made within be written to a journal; None changes nothing."""
    if journal is None:
        yield None
        return
    recorder = Recorder(journal, scope, sample)
    token = RECORDER.set(recorder)
    try:
        yield recorder
    finally:
        RECORDER.reset(token)


@contextmanager
def recording_calls(log_dir: Path, scope: Scope, head: Head) -> Generator[TaskJournal]:
    """Write down the calls that pools make within, outside any eval: training, serving.

    >>> from tempfile import mkdtemp
    >>> head = Head(task="", suite="", system="served", label="live", book="", book_sha256="")
    >>> with recording_calls(Path(mkdtemp()), "serving", head) as journal:
    ...     journal.head.system
    'served'
    """
    journal = TaskJournal(log_dir, head)
    try:
        with recording(journal, scope):
            yield journal
    finally:
        journal.close()
