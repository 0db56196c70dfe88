"""The one way in which our code calls a model: allowance, `intent`, the call, `outcome`.

`Pool.ask` and judges put every call through `asking`. Which journal it is written to is known by
the running task (a context variable that the adapters of solvers and scorers set), so no system,
suite or pool has to carry one. Without a journal (`inspect eval` on a suite) only the spending
limit is kept. Not here: what a line looks like (journal.py), what a call costs
(harness/prices/pricing.py).
"""

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from time import monotonic

from inspect_ai.model import Model, ModelOutput
from inspect_ai.util import current_span_id

from harness.ledger.billing import Attempted, upper_bound
from harness.ledger.counting import COUNTED, WAITING, Unwritten
from harness.ledger.journal import Head, Intent, Journal, Outcome, SampleRef, open_journal
from harness.ledger.observed import failed, last_event, outcome_of
from harness.ledger.request import Request
from harness.ledger.row import Scope, plain
from harness.ledger.writing import ended as told
from harness.prices.pricing import Service, cost
from harness.records import Usage
from harness.replicate import request_digest
from harness.service import service_of
from harness.spend import Spend
from harness.usage import usage_of_reply


@dataclass(slots=True)
class TaskJournal:
    """A task's journal, opened when the first call of this process is made."""

    log_dir: Path
    head: Head
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
    silent: int = 0
    """Attempts over HTTP that got no answer and were followed by another."""

    @property
    def lost(self) -> int:
        """Return the attempts of which nobody knows whether they were billed."""
        if self.ended is None:
            return self.silent
        return self.silent + (told(1, asdict(self.ended), None).billable == "unknown")

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
    most = _most(request, spend) if spend else None
    async with spend.allowance(request.price_ref, most) if spend else nullcontext():
        try:
            with _written_down(request, asked, spend):
                yield asked
        finally:
            if spend and asked.lost:
                for _ in range(asked.lost):
                    spend.lost(request.price_ref, most)
        if asked.output and asked.usage is None:
            asked.usage = usage_of_reply(asked.output)
        if spend:
            cached = asked.ended is not None and asked.ended.cache == "read"
            named = request.price_ref, asked.usage, _service(request.model)
            asked.usd = Decimal(0) if asked.too_long else spend.add(*named, cached=cached)


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
    asked: Asked
    call: str | None = None
    began: float = 0.0

    def dispatched(self) -> str:
        """Write the intent, once, and return the call's id; OSError when it cannot be written."""
        if self.call is None:
            self.call = self.journal.intent(_intent(self.request, self.recorder, self.span))
            self.began = monotonic()
        return self.call

    def retried(self, attempt: int, error: str | None, status: int | None) -> None:
        """Write down that an attempt over HTTP has failed and another follows."""
        self.journal.retry(self.dispatched(), attempt, error, status)
        self.asked.silent += status is None

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
    flight = InFlight(recorder.journal.journal(), request, recorder, current_span_id(), asked)
    token = WAITING.set(flight)
    try:
        yield
    except Unwritten as error:
        raise error.__cause__ or OSError("the journal cannot be written") from None
    except BaseException as error:  # a cancelled call may be billed as well
        event = last_event(flight.span)
        if flight.call or event:
            ended = asked.ended = failed(error, event, flight.took_s)
            with suppress(OSError):  # then it is unknown, and what went wrong first is told
                flight.journal.outcome(flight.dispatched(), _priced(ended, request, spend))
        raise
    finally:
        WAITING.reset(token)
    took, event = flight.took_s, last_event(flight.span)
    ended = asked.ended = outcome_of(asked.output, event, took, refused=asked.too_long)
    asked.usage = ended.usage  # the event may have the provider's own, which says more
    flight.journal.outcome(flight.dispatched(), _priced(ended, request, spend))


def _most(request: Request, spend: Spend) -> Decimal | None:
    """Return the most that an attempt without an answer can have cost; None if unbounded."""
    price, model = spend.book.price(request.price_ref), request.model
    sizes = request.prompt_bytes, request.max_tokens
    return upper_bound(Attempted("unknown", "none", None, _service(model), *sizes), price)


def _priced(ended: Outcome, request: Request, spend: Spend | None) -> Outcome:
    """Return an outcome with what it cost, so that a book or a count changed later shows."""
    price = spend.book.price(request.price_ref) if spend else None
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
) -> Generator[None]:
    """Let the calls made within be written to a journal; None changes nothing."""
    if journal is None:
        yield
        return
    token = RECORDER.set(Recorder(journal, scope, sample))
    try:
        yield
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
