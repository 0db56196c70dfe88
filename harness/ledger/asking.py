"""The one way in which our code calls a model: allowance, `intent`, the call, `outcome`.

`Pool.ask` and judges put every call through `asking`. Which journal it is written to is known by
the running task (a context variable that the adapters of solvers and scorers set), so no system,
suite or pool has to carry one. Without a journal (`inspect eval` on a suite) only the spending
limit is kept. Not here: what a line looks like (journal.py), what a call costs
(harness/prices/pricing.py).
"""

import threading
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from time import monotonic

from inspect_ai.event import ModelEvent
from inspect_ai.model import Model, ModelOutput
from inspect_ai.util import current_span_id

from harness.errors import SpendLimit
from harness.ledger.billing import Attempted, upper_bound
from harness.ledger.counting import COUNTED, PAYING, WAITING, NotAllowed, Unwritten, listen
from harness.ledger.events import responses
from harness.ledger.journal import Head, Intent, Journal, Outcome, SampleRef, open_journal
from harness.ledger.observed import failed, last_event, outcome_of
from harness.ledger.request import Request
from harness.ledger.row import Scope, plain
from harness.ledger.writing import REFUSED
from harness.ledger.writing import ended as told
from harness.prices.pricing import Service, cost
from harness.records import Usage
from harness.replicate import request_digest
from harness.reply_cache import PaidReplies
from harness.service import service_of
from harness.spend import Allowance, Spend
from harness.usage import usage_of_reply


@dataclass(slots=True)
class TaskJournal:
    """A task's journal, opened when the first call of this process is made."""

    log_dir: Path
    head: Head
    replies: PaidReplies | None = None
    """Where the replies of its samples are kept until its log has them; None: nowhere."""
    _open: Journal | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def journal(self) -> Journal:
        """Return the open journal; OSError when it cannot be made."""
        with self._lock:
            if self._open is None:
                self._open = open_journal(self.log_dir, self.head)
                COUNTED.begin(self.head.task)
            return self._open

    def close(self) -> None:
        """Write down what Inspect's hooks counted meanwhile, and close the file."""
        with self._lock:
            if self._open is None:
                return
            for totals in COUNTED.end(self.head.task):
                self._open.write("totals", totals)
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
    """As it was written down; None where nothing is, or nothing was dispatched."""

    @property
    def too_long(self) -> bool:
        """Return whether a provider refused a request for its length: it then generated nothing.

        Inspect's providers turn such an error into a reply that stops for `model_length`. A reply
        that was cut there, for there was no more room, has tokens and is a reply.
        """
        if self.output is None or self.output.stop_reason != "model_length":
            return False
        return not (self.output.usage and self.output.usage.output_tokens)


@asynccontextmanager
async def asking(request: Request, spend: Spend | None) -> AsyncGenerator[Asked]:
    """Let one call be made, in a span of its own: written down before and after, and paid for.

    Raises `SpendLimit` before a call that may not be paid for any more, and OSError before one that
    cannot be written down. A request that was refused as too long is not billed.
    """
    asked = Asked()
    payment = _payment(request, spend) if spend else None
    token = PAYING.set(payment)
    try:
        with _written_down(request, asked, spend):
            yield asked
        if asked.output and asked.usage is None:
            asked.usage = usage_of_reply(asked.output)
        if payment:
            payment.reply(asked)
    except NotAllowed as stop:
        raise stop.__cause__ or SpendLimit(str(stop)) from None
    except BaseException as error:
        if payment:
            payment.broken_off(asked, error)
        raise
    finally:
        PAYING.reset(token)
        if payment:
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
        self._lost(1 if status is None or status < REFUSED else 0)
        self.allowance.release()

    def reply(self, asked: Asked) -> None:
        """Count the reply to a call; one that was refused as too long costs nothing."""
        self._lost(0)
        if asked.too_long:
            asked.usd = Decimal(0)
            return
        cached = asked.ended is not None and asked.ended.cache == "read"
        asked.usd = self.allowance.paid(asked.usage, self.service, cached=cached)

    def broken_off(self, asked: Asked, error: BaseException) -> None:
        """Count a call without a reply of its own: one that went out may have been billed."""
        if not self.allowance.in_flight:
            return
        ended = asked.ended or failed(error, last_event(self.span), 0.0)
        billable = told(1, asdict(ended), None).billable
        self._lost(1 if billable == "unknown" else 0)
        if billable == "yes":
            asked.usd = self.allowance.paid(ended.usage, self.service)

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
    if event.error and statuses and statuses[-1] >= REFUSED:
        statuses.pop()
    refused = sum(status >= REFUSED for status in statuses)
    return max(0, (event.retries or 0) - refused)


@dataclass(slots=True)
class InFlight:
    """A call that is being made: `call` is None until it goes out, for it may wait in a queue.

    Its intent is written when Inspect announces the dispatch (harness/ledger/counting.py). Written
    any sooner, all questions that wait for a connection would count as calls that a killed run may
    have to pay for.
    """

    journal: Journal
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
    recorder = RECORDER.get()
    if recorder is None:
        yield
        return
    flight = InFlight(recorder.journal.journal(), request, recorder, current_span_id())
    token = WAITING.set(flight)
    try:
        yield
    except Unwritten as error:
        raise error.__cause__ or OSError("the journal cannot be written") from None
    except BaseException as error:  # a cancelled call may be billed as well
        event = last_event(flight.span)
        if flight.call or event:
            ended = failed(error, event, flight.took_s)
            if flight.waits:  # the attempt that was to follow never went out
                ended = replace(ended, event=None, refused=True)
            asked.ended = ended
            with suppress(OSError):  # then it is unknown, and what went wrong first is told
                flight.journal.outcome(flight.dispatched(), _priced(ended, request, spend))
        raise
    finally:
        WAITING.reset(token)
    took, event = flight.took_s, last_event(flight.span)
    ended = asked.ended = outcome_of(asked.output, event, took, refused=asked.too_long)
    asked.usage = ended.usage  # the event may have the provider's own, which says more
    flight.journal.outcome(flight.dispatched(), _priced(ended, request, spend))


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
        named = request.price_ref, asked.usage, _service(request.model)
        asked.usd = spend.add(*named, cached=True)
    return asked


def _payment(request: Request, spend: Spend) -> Payment:
    """Return what pays for a call; its allowance knows the most that one HTTP request can cost."""
    listen()
    price, service = spend.book.prices.get(request.price_ref), _service(request.model)
    most = None
    if request.is_bounded:
        sizes = request.prompt_bytes, request.max_tokens
        most = upper_bound(Attempted("unknown", "none", None, service, *sizes), price)
    allowance = Allowance(spend, request.price_ref, most, request.requests)
    return Payment(allowance, service, current_span_id())


def _priced(ended: Outcome, request: Request, spend: Spend | None) -> Outcome:
    """Return an outcome with what it cost, so that a book or a count changed later shows."""
    price = spend.book.prices.get(request.price_ref) if spend else None
    if price is None or (ended.usage is None and not ended.refused):
        return ended
    if ended.refused or ended.cache == "read":
        return replace(ended, usd="0")
    usd = cost(ended.usage or Usage(), price, _service(request.model))
    return replace(ended, usd=plain(usd))


def _intent(request: Request, recorder: Recorder, span: str | None) -> Intent:
    return Intent(
        scope=recorder.scope,
        sample=recorder.sample,
        role=request.role,
        step=request.step,
        model=str(request.model),
        price_ref=request.price_ref,
        service=_service(request.model),
        prompt_sha256=request_digest(request.messages),
        prompt_bytes=request.prompt_bytes,
        max_tokens=request.max_tokens,
        span=span,
    )


def _service(model: Model) -> Service:
    """Return how a provider is asked to serve a call; a tier that no book knows has no price."""
    return service_of(model.config, model.model_args)


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
