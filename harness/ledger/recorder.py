"""Every model call of podium: reserve its cost, write `intent`, call the model, write `outcome`.

The running task determines the journal of a call (a context variable that the adapters of solvers
and scorers set). Without a journal (`inspect eval` on a suite) only the spending limit applies. A
reply is stored before its outcome is written: so a reply whose outcome is in a journal is in the
reply store, and is billed once. If a process dies before it stores a reply, the call has no outcome
and is listed as in flight.
"""

import sys
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Protocol

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ModelOutput
from inspect_ai.util import current_span_id

from podium.harness.budget import Allowance, CallPrice, Spend
from podium.harness.context import current, run_context
from podium.harness.context_length import is_refused
from podium.harness.errors import SpendLimit
from podium.harness.ledger.answered_by import may_be_alias
from podium.harness.ledger.call import (
    Attempted,
    Scope,
    billable_reply,
    is_refusal,
    plain,
    upper_bound,
)
from podium.harness.ledger.draws import BoughtReply, ReplyDraw, sample_name, what_is_asked
from podium.harness.ledger.hooks import (
    COUNTED,
    PLAYED,
    NotAllowed,
    Unwritten,
    failed,
    last_event,
    listen,
    made_readable,
    outcome_of,
    short_name,
)
from podium.harness.ledger.journal import CallOutcome, Head, Journal, SampleRef, open_journal
from podium.harness.ledger.logs import responses
from podium.harness.pool_config import REPLAYING, provider_of
from podium.harness.prices import EMBEDDED
from podium.harness.records import STATED, Usage
from podium.harness.reply_cache import PaidReplies, key_of
from podium.harness.request import Request
from podium.harness.shutdown import Shutdown, current_shutdown
from podium.harness.text import pluralise
from podium.harness.usage import MODEL_HEADER, stated_usd, usage_of_reply

UNBELIEVED = (
    "podium: {} of {} came back with impossible token counts. Their cost is unknown and counts at "
    "its maximum; `podium audit` lists them."
)


@dataclass(slots=True)
class TaskJournal:
    """A task's journal, opened at the first call of this process."""

    log_dir: Path
    head: Head
    replies: PaidReplies | None = None
    """Stores the replies to the task's samples until its log has them; None: no replies stored."""
    draws: str = ""
    """Tasks with the same value share stored replies (see draws.py); empty: nothing is shared."""
    unbelieved: Counter[str] = field(default_factory=Counter[str])
    """Number of replies with impossible token counts, by worker."""
    _open: Journal | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def journal(self) -> Journal:
        """Return the task's journal, opened at the first call; OSError if it cannot be created."""
        with self._lock:
            if self._open is None:
                self._open = open_journal(self.log_dir, self.head)
                COUNTED.begin(self.head.task)
            return self._open

    def note(self, kind: Literal["request", "answer", "grade"], fields: Mapping[str, Any]) -> None:
        """Record a sample's request, answer or grade, if this process has opened the journal."""
        # If this fails, the answer is not lost: the audit reports that it has nothing to compare.
        with self._lock:
            if self._open is not None:
                with suppress(OSError):
                    self._open.write(kind, fields)

    def close(self) -> None:
        """Record the call totals of Inspect's hooks in the journal, and close it."""
        PLAYED.discard(self.head.task)
        # One warning for each worker with impossible counts.
        for worker, times in sorted(self.unbelieved.items()):
            sys.stderr.write(UNBELIEVED.format(pluralise(times, "call"), worker) + "\n")
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
    """Where calls in this context are recorded: a journal, the calls' purpose and their sample."""

    journal: TaskJournal
    scope: Scope
    sample: SampleRef | None = None
    draws: Counter[bytes] = field(default_factory=Counter[bytes])
    """Key of a request -> how often the request was made for the sample so far."""
    replays: list[str] = field(default_factory=list[str])
    """Ids of calls that took no time: the reply was stored by an earlier attempt at the sample."""


class HttpResponse(Protocol):
    """The parts of an httpx response that exist in all versions of httpx."""

    @property
    def status_code(self) -> int:
        """The HTTP status of the response."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers; their names are case-insensitive."""
        ...

    async def aread(self) -> bytes:
        """Read the response body; it can be read again later."""
        ...


@dataclass(slots=True)
class CallInFlight:
    """A call in flight: its caller sets `output`, its methods set the other fields.

    Its `intent` line is written when Inspect announces the dispatch (hooks.py). If the line were
    written earlier, a call that waits for a connection when the run is killed would count as
    possibly billed.
    """

    request: Request
    spend: Spend | None
    recorder: Recorder | None
    span: str | None
    output: ModelOutput | None = None
    usage: Usage | None = None
    price: CallPrice | None = None
    """The cost of the call's reply; None if no dollars are counted."""
    usd: Decimal | None = None
    ended: CallOutcome | None = None
    """The call's outcome, as in its journal line; None while nothing was dispatched."""
    allowance: Allowance | None = None
    """Reserves and counts the call's cost, attempt by attempt; None without a spending limit."""
    call: str | None = None
    """The call's id in the journal; None until its first attempt is sent."""
    began: float = 0.0
    attempt_began: float = 0.0
    reply_s: float | None = None
    """Seconds that the reply took, for a stored one the original time; None if unknown."""
    waits: bool = False
    """Whether an attempt has failed and the next one has not been sent."""
    response: HttpResponse | None = None
    """The HTTP response to the attempt in flight; None if the HTTP client does not report it."""
    broken: ModelOutput | None = None
    """The partial reply that the current attempt got before its provider reported a failure."""
    asked_wait: str = ""
    """Message about the wait that a provider has requested; empty: none."""
    draw: ReplyDraw | None = None
    """The storage of the call's reply (see draws.py); None if the reply is not stored."""
    kept: bool = False
    sent: bool = True
    """Whether the client began to send the current request; True if the client reports nothing."""
    _priced: tuple[Usage | None, CallPrice] | None = None
    """The last usage and its price: needed when a reply comes, and again at the call's end."""
    shutdown: Shutdown | None = None
    """Refuses further attempts once podium is being stopped."""

    @property
    def too_long(self) -> bool:
        """Whether the provider refused the request for its length, and so generated nothing."""
        return is_refused(self.output)

    @property
    def took_s(self) -> float:
        """Seconds since the call was sent; 0 before it was sent."""
        return monotonic() - self.began if self.call else 0.0

    def _attempt_s(self) -> float | None:
        """Return the seconds since the attempt was sent; None if unsent or for recorded replies."""
        if not self.attempt_began or provider_of(str(self.request.model)) == REPLAYING:
            return None
        return round(monotonic() - self.attempt_began, 6)

    @property
    def requests_lost(self) -> int:
        """Number of the call's HTTP requests that got no answer and may have been billed."""
        return self.allowance.requests_lost if self.allowance else 0

    async def goes_out(self) -> None:
        """Before an HTTP attempt: wait for budget and rate limit, then record its dispatch."""
        self.response = None
        if self.allowance:
            await self.allowance.take()
        if turns := current().turns:
            await turns.turn(provider_of(str(self.request.model)))
        if self.draw:
            self.draw.replies.refuse_full()
        if self.shutdown:
            await self.shutdown.admit(self)
        if self.recorder:
            journal, call = self.written(self.recorder)
            if self.waits:
                journal.again(call, round(self.took_s, 6))
                self.waits = False
            self.attempt_began = monotonic()

    def retried(self, attempt: int, error: str | None, status: int | None) -> None:
        """Record an attempt that failed and will be repeated, and release its reserved dollars."""
        partial = self._came()
        if self.asked_wait:
            sys.stderr.write(f"{self.asked_wait} (attempt {attempt + 1})\n")
        if self.allowance and self.spend:
            billed = partial.usage if partial else None
            self._lost(self.allowance, 0 if billed or is_refusal(status) else 1)
            if billed:
                self.allowance.paid(self._price(self.spend, billed))
            self.allowance.release()
        if self.recorder:
            self.waits = True
            journal, call = self.written(self.recorder)
            journal.retry(call, attempt, error, status, partial)
        self.broken = None
        if self.shutdown:
            self.shutdown.landed(self)

    def _came(self) -> CallOutcome | None:
        """Return the outcome of a partial reply that the provider broke off; None without one."""
        if self.broken is None:
            return None
        try:
            outcome = outcome_of(self.broken, last_event(self.span), self.took_s, refused=False)
            return self._with_headers(outcome)
        except Exception:  # podium cannot read the reply, so its cost is unknown
            return None

    def _with_headers(self, outcome: CallOutcome) -> CallOutcome:
        """Add the provider's cost and the model's name to an outcome, if headers state them."""
        headers: Mapping[str, str] = self.response.headers if self.response else {}
        usd = stated_usd(outcome.raw_usage, headers)
        model = short_name(headers.get(MODEL_HEADER))
        if model and may_be_alias(str(self.request.model), outcome.served_model):
            outcome = replace(outcome, served_model=model)
        return outcome if usd is None else replace(outcome, usd_provider=plain(usd))

    def written(self, recorder: Recorder) -> tuple[Journal, str]:
        """Write the call's `intent` line, once; return journal and call id; OSError if it fails."""
        journal, request = recorder.journal.journal(), self.request
        if self.call is None:
            fields = {name: getattr(request, name) for name in INTENT}
            ref = recorder.sample
            sample = ref and {"question": ref.question, "epoch": ref.epoch, "uuid": ref.uuid}
            fields |= {"scope": recorder.scope, "sample": sample, "span": self.span}
            fields |= {"model": str(request.model), "prompt_sha256": request.sha256}
            self.call, self.began = journal.intent(fields), monotonic()
        return journal, self.call

    def watch_request(self, client: Any) -> None:
        """Make an HTTP client set `sent` once it sends the request; until then `sent` is False."""
        # Clients other than httpx's do not report this, so their requests count as sent.
        if type(getattr(client, "_transport", None)).__name__ not in TRACED:
            return
        hooks: dict[str, list[Any]] = client.event_hooks
        if _trace_request not in hooks["request"]:
            client.event_hooks = {**hooks, "request": [*hooks["request"], _trace_request]}
        self.sent = False

    def tell_price(self, output: ModelOutput, response: Mapping[str, Any] | None) -> None:
        """Put a reply's cost into the usage field that Inspect's viewer and totals read."""
        if self.spend is None or output.usage is None:
            return
        price = self._price(self.spend, usage_of_reply(output, response))
        output.usage.total_cost = None if price.usd is None else float(price.usd)

    def keep(self, output: ModelOutput, response: Mapping[str, Any] | None) -> None:
        """Store a new reply, so that a resumed run need not buy it again; later calls do nothing.

        Raises OSError if it cannot be written.
        """
        if self.reply_s is None:
            self.reply_s = (output.metadata or {}).get(STATED, self._attempt_s())
        # Empty replies are not billed, so they are not stored.
        if self.draw and not self.kept and not output.empty:
            self.draw.keep(output, response or {}, self.call, self.reply_s)
            self.kept = True

    def end(self, error: BaseException | None = None) -> None:
        """Record the call's outcome and compute its cost; OSError if it cannot be recorded."""
        event = last_event(self.span)
        if error is not None and not event and not self.call:
            return
        self.ended = self._with_headers(self._outcome(event, error))
        self.usage = self.ended.usage
        self.set_price(self.ended)
        if self.recorder is None:
            return
        try:
            journal, call = self.written(self.recorder)
            journal.outcome(call, self.ended)
            if self.ended.unbelieved:
                self.recorder.journal.unbelieved[self.request.role] += 1
        except OSError:
            if error is None:  # else the outcome stays unknown, and the first error is raised
                raise

    def _outcome(self, event: ModelEvent | None, error: BaseException | None) -> CallOutcome:
        """Return the call's outcome; never fails because of content that a provider sent."""
        took = self.took_s
        try:
            made_readable(self.output, event)
            if error is None:
                return outcome_of(self.output, event, took, refused=self.too_long)
            outcome = failed(error, event, took, self.broken)
            # The last attempt was not sent if the call ended while it waited for this attempt, or
            # was cancelled before its client began to send.
            unsent = self.waits or not (self.sent or isinstance(error, Exception))
            return replace(outcome, event=None, refused=True) if unsent else outcome
        except Exception as odd:  # podium cannot read the reply, so its cost is unknown
            kind, uuid = type(error or odd).__name__, event.uuid if event else None
            return CallOutcome(event=uuid, usage=None, error=kind, latency_s=round(took, 6))

    def set_price(self, outcome: CallOutcome) -> None:
        """Add the cost to the outcome, so that an audit detects changes of the price book."""
        if self.spend is None:
            return
        self.price = self._price(self.spend, outcome.usage)
        if outcome.refused or (outcome.cache == "read" and outcome.usage):
            stated = self.spend.book.price(self.request.price_ref) is not None
            self.ended = replace(outcome, usd="0" if stated else None)
        elif outcome.cache != "read":
            self.ended = replace(outcome, usd=plain(self.price.usd))

    def _price(self, spend: Spend, usage: Usage | None) -> CallPrice:
        if self._priced is None or self._priced[0] != usage:
            price = spend.price(self.request.price_ref, usage, self.request.service)
            self._priced = usage, price
        return self._priced[1]

    def settle(self) -> None:
        """Count the call's cost after any outcome or error, and release the reserved amount."""
        if self.allowance is None:
            return
        if outcome := self.ended:
            # A call without an answer may have been billed; one refused as too long costs nothing.
            doubtful = outcome.error is not None or outcome.raw_usage is not None
            cache, status = outcome.cache, outcome.http_status
            bill = billable_reply(cache, outcome.usage, status, doubtful=doubtful)
            billable, cached = "no" if outcome.refused else bill, cache == "read"
            self._lost(self.allowance, 1 if billable == "unknown" else 0)
            if self.price and (billable == "yes" or cached):
                self.usd = self.allowance.paid(self.price, cached=cached)
            elif billable == "no":
                self.usd = Decimal(0)
        self.allowance.release()

    def _lost(self, allowance: Allowance, final: int) -> None:
        """Count the attempt's HTTP requests without an answer, retries by its client included."""
        if allowance.in_flight:
            within = _unanswered(last_event(self.span)) if allowance.requests > 1 else 0
            allowance.lost(within + final)


INTENT = ("role", "step", "price_ref", "service", "prompt_bytes", "max_tokens")
"""Fields of a request that are copied to the journal's `intent` line."""


TRACED = ("AsyncHTTPTransport", "LoopScopedTransport")
"""Transports of httpx, httpx2 and Inspect, which report each step of sending a request."""
SENDS = ".send_request_headers.started"
"""End of an event's name: the transport has connected and is about to send the request."""


async def _trace_request(request: Any) -> None:
    call = call_in_flight()

    async def trace(event_name: str, details: Mapping[str, Any]) -> None:
        if call and event_name.endswith(SENDS):
            call.sent = True

    request.extensions = {**request.extensions, "trace": trace}


def call_in_flight() -> CallInFlight | None:
    """Return the call in flight in this context; None if there is none."""
    call = current().in_flight
    return call if isinstance(call, CallInFlight) else None


def current_recorder() -> Recorder | None:
    """Return the recorder of calls in this context; None if calls are not recorded."""
    recorder = current().recorder
    return recorder if isinstance(recorder, Recorder) else None


def current_journal() -> TaskJournal | None:
    """Return the journal of the current task; None outside a task that has one."""
    journal = current().journal
    return journal if isinstance(journal, TaskJournal) else None


@asynccontextmanager
async def record_call(request: Request, spend: Spend | None) -> AsyncGenerator[CallInFlight]:
    """Record one call before and after it, and count its cost; the caller opens a span for it.

    Raises `SpendLimit` before a call that exceeds the limit, and OSError before a call that cannot
    be recorded.
    """
    listen()
    allowance = _allowance(request, spend) if spend else None
    recorder, span = current_recorder(), current_span_id()
    call = CallInFlight(request, spend, recorder, span, allowance=allowance)
    call.shutdown = current_shutdown()
    try:
        with run_context(in_flight=call):
            yield call
    except Unwritten as error:
        raise error.__cause__ or OSError("the journal cannot be written") from None
    except BaseException as error:  # a cancelled call may be billed as well
        call.end(error)
        if isinstance(error, NotAllowed):
            raise error.__cause__ or SpendLimit(str(error)) from None
        raise
    else:
        call.end()
    finally:
        call.settle()
        if call.shutdown:
            call.shutdown.landed(call)


def _allowance(request: Request, spend: Spend) -> Allowance:
    sizes = request.prompt_bytes, request.max_tokens
    attempted = Attempted("unknown", "none", None, request.service, *sizes)
    price = spend.book.price(request.price_ref) if request.is_bounded else None
    bound = upper_bound(attempted, price)
    if request.service == "batch" and bound is not None:
        spend.begin_together(request.price_ref, bound)
    return Allowance(spend, request.price_ref, bound, request.requests)


@asynccontextmanager
async def as_if_bought(request: Request, spend: Spend | None) -> AsyncGenerator[None]:
    """Reserve the maximum cost of a call with a stored reply; raises `SpendLimit` like a real call.

    Whether a question has reached its limit must not depend on which system paid for the reply.
    """
    if spend is None or not spend.above or spend.limit is None:
        yield
        return
    allowance = _allowance(request, spend)
    amount = await spend.hold(request.price_ref, allowance.most)
    try:
        yield
    finally:
        spend.release(request.price_ref, amount)


def _unanswered(event: ModelEvent | None) -> int:
    """Return how many HTTP attempts inside one event, its last excepted, may have been billed."""
    if event is None:
        return 0
    ids = [request_id.model_dump() for request_id in event.request_ids or ()]
    statuses = [response["status"] or 0 for response in responses(ids, event.model)]
    if event.error and is_refusal(statuses[-1] if statuses else None):
        statuses.pop()
    return max(0, (event.retries or 0) - sum(map(is_refusal, statuses)))


def read_back(request: Request, bought: BoughtReply, spend: Spend | None) -> CallInFlight:
    """Record a call whose reply was paid for before: nothing is sent or billed."""
    event = bought.event
    in_flight = CallInFlight(request, spend, current_recorder(), event.span_id, event.output)
    result = outcome_of(event.output, event, event.working_time or 0.0, refused=in_flight.too_long)
    outcome = replace(result, from_store=True, shared_from=bought.shared_from)
    in_flight.ended, in_flight.usage = outcome, outcome.usage
    in_flight.reply_s = bought.took_s
    in_flight.set_price(outcome)
    if recorder := in_flight.recorder:
        journal, call = in_flight.written(recorder)
        journal.outcome(call, in_flight.ended)
        if not bought.shared_from:
            recorder.replays.append(call)
    # Only after the journal lines: Inspect keeps the event even if this process is killed now.
    transcript()._event(event)  # pyright: ignore[reportPrivateUsage]
    if spend and in_flight.price:
        in_flight.usd = spend.add(in_flight.price, cached=True)
    return in_flight


@contextmanager
def recording(
    journal: TaskJournal | None, scope: Scope, sample: SampleRef | None = None
) -> Generator[Recorder | None]:
    """Record the calls made in this context in `journal`; if that is None, change nothing."""
    if journal is None:
        yield None
        return
    recorder = Recorder(journal, scope, sample)
    with run_context(recorder=recorder):
        yield recorder


@contextmanager
def recording_calls(log_dir: Path, scope: Scope, head: Head) -> Generator[TaskJournal]:
    """Record the calls made in this context in a new journal: for training and serving."""
    journal = TaskJournal(log_dir, head)
    try:
        with recording(journal, scope):
            yield journal
    finally:
        journal.close()


def next_draw(request: Request) -> ReplyDraw | None:
    """Return the storage (draw) of the request's next reply; None if replies are not stored."""
    recorder = current_recorder()
    if recorder is None or recorder.sample is None:
        return None
    journal, ref = recorder.journal, recorder.sample
    if journal.replies is None:
        return None
    task, scope = journal.head.task, recorder.scope
    # An embedded model's replies are not shared: they cost nothing, and count as its system's time.
    embedded = str(request.model).startswith(EMBEDDED)
    shared = "" if scope != "inference" or embedded else journal.draws
    sample = sample_name(shared or task, ref.question, ref.epoch)
    # Several runs may share draws, one for each size of a budget.
    buyer = f"{journal.log_dir.name} {task}"
    key = key_of(sample, scope, request.role, *what_is_asked(request))
    number = recorder.draws[key]
    recorder.draws[key] += 1
    return ReplyDraw(journal.replies, key_of(key.hex(), number), "" if shared else sample, buyer)
