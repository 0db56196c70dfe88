"""The one way in which our code calls a model: allowance, `intent`, the call, `outcome`.

Which journal a call is written to is known by the running task (a context variable that the
adapters of solvers and scorers set). Without a journal (`inspect eval` on a suite) only the
spending limit is kept. A reply is kept before its outcome is written: so one whose outcome is in a
journal is in the store, and is billed once. One that came and was not stored when its process died
has no outcome, and is named as in flight.
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
    draws: str = ""
    """Tasks with the same name here share the draws of their workers; empty: none are shared."""
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

    def note(self, kind: Literal["request", "answer", "grade"], fields: Mapping[str, Any]) -> None:
        """Write down what became of a sample, where any call of this process was written down."""
        # No answer is lost because it could not be: the audit then says what it cannot compare.
        with self._lock:
            if self._open is not None:
                with suppress(OSError):
                    self._open.write(kind, fields)

    def close(self) -> None:
        """Write down what Inspect's hooks counted meanwhile, and close the file."""
        PLAYED.discard(self.head.task)
        # The user is told of workers whose counts cannot be, once of each.
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
    """Where the calls of a sample are written down, and what they are made for."""

    journal: TaskJournal
    scope: Scope
    sample: SampleRef | None = None
    draws: Counter[bytes] = field(default_factory=Counter[bytes])
    """How often each request was made for the sample: which draw the next one is."""
    replays: list[str] = field(default_factory=list[str])
    """Ids of the calls whose replies an earlier attempt had bought: they took no time."""


class HttpResponse(Protocol):
    """What httpx knows of a response, in each of its versions."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in any case."""
        ...

    async def aread(self) -> bytes:
        """Read the body, for whoever reads it next as well."""
        ...


@dataclass(slots=True)
class CallInFlight:
    """A call in flight: whoever makes it sets `output`; the rest is known once it has ended.

    Its intent is written when Inspect announces the dispatch (hooks.py). Written any sooner, all
    questions that wait for a connection would count as calls that a killed run may have to pay for.
    """

    request: Request
    spend: Spend | None
    recorder: Recorder | None
    span: str | None
    output: ModelOutput | None = None
    usage: Usage | None = None
    price: CallPrice | None = None
    """What its reply cost, for whoever pays; None where nobody counts dollars."""
    usd: Decimal | None = None
    ended: CallOutcome | None = None
    """As it is written down, where that is done; None while nothing was dispatched."""
    allowance: Allowance | None = None
    """Pays for it, attempt by attempt."""
    call: str | None = None
    """Its id in the journal; None until it goes out, for it may wait in a queue."""
    began: float = 0.0
    attempt_began: float = 0.0
    reply_s: float | None = None
    """What its reply took when it was bought; None if nobody knows."""
    waits: bool = False
    """Whether an attempt has failed and the next has not gone out."""
    response: HttpResponse | None = None
    """What was answered to the attempt in flight; None unless its client tells."""
    broken: ModelOutput | None = None
    """What came in the attempt in flight before its provider reported a failure."""
    asked_wait: str = ""
    """What to print of the wait that a provider has asked for; empty: nothing."""
    draw: ReplyDraw | None = None
    """Under which its reply is kept; None where none is."""
    kept: bool = False
    sent: bool = True
    """Whether its attempt's request has begun to be sent, as far as that can be known."""
    _priced: tuple[Usage | None, CallPrice] | None = None
    """The price that was worked out last: a reply's is asked for when it comes and at its end."""
    shutdown: Shutdown | None = None
    """Which lets no new attempt be made once the command is stopped."""

    @property
    def too_long(self) -> bool:
        """Return whether a provider refused a request for its length: it then generated nothing."""
        return is_refused(self.output)

    @property
    def took_s(self) -> float:
        """Seconds since it went out."""
        return monotonic() - self.began if self.call else 0.0

    def _attempt_s(self) -> float | None:
        """Return the seconds since the attempt went out; None if none did, or a record replied."""
        if not self.attempt_began or provider_of(str(self.request.model)) == REPLAYING:
            return None
        return round(monotonic() - self.attempt_began, 6)

    @property
    def requests_lost(self) -> int:
        """Return how many of its requests got no answer and may have been billed."""
        return self.allowance.requests_lost if self.allowance else 0

    async def goes_out(self) -> None:
        """Wait for what the next attempt can cost and for its turn; write down that it goes out."""
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
        """Count an attempt that failed and is to be made again, and give back what it held."""
        came = self._came()
        if self.asked_wait:
            sys.stderr.write(f"{self.asked_wait} (attempt {attempt + 1})\n")
        if self.allowance and self.spend:
            billed = came.usage if came else None
            self._lost(self.allowance, 0 if billed or is_refusal(status) else 1)
            if billed:
                self.allowance.paid(self._price(self.spend, billed))
            self.allowance.release()
        if self.recorder:
            self.waits = True
            journal, call = self.written(self.recorder)
            journal.retry(call, attempt, error, status, came)
        self.broken = None
        if self.shutdown:
            self.shutdown.landed(self)

    def _came(self) -> CallOutcome | None:
        """Return what is known of a reply that its provider broke off; None without one."""
        if self.broken is None:
            return None
        try:
            came = outcome_of(self.broken, last_event(self.span), self.took_s, refused=False)
            return self._with_headers(came)
        except Exception:  # a reply that we cannot read; what it cost is then unknown
            return None

    def _with_headers(self, ended: CallOutcome) -> CallOutcome:
        """Note what its provider says that it cost, and whom a gateway asked."""
        headers: Mapping[str, str] = self.response.headers if self.response else {}
        usd = stated_usd(ended.raw_usage, headers)
        named = short_name(headers.get(MODEL_HEADER))
        if named and may_be_alias(str(self.request.model), ended.served_model):
            ended = replace(ended, served_model=named)
        return ended if usd is None else replace(ended, usd_provider=plain(usd))

    def written(self, recorder: Recorder) -> tuple[Journal, str]:
        """Write the intent, once; return the journal and the call's id. OSError: it cannot be."""
        journal, request = recorder.journal.journal(), self.request
        if self.call is None:
            asked = {name: getattr(request, name) for name in INTENT}
            ref = recorder.sample
            sample = ref and {"question": ref.question, "epoch": ref.epoch, "uuid": ref.uuid}
            asked |= {"scope": recorder.scope, "sample": sample, "span": self.span}
            asked |= {"model": str(request.model), "prompt_sha256": request.sha256}
            self.call, self.began = journal.intent(asked), monotonic()
        return journal, self.call

    def watch_request(self, client: Any) -> None:
        """Let an HTTP client note when it sends this call's request: until then none was sent."""
        # Of a client that is no httpx's nobody knows, so its requests count as sent.
        if type(getattr(client, "_transport", None)).__name__ not in TRACED:
            return
        hooks: dict[str, list[Any]] = client.event_hooks
        if _trace_request not in hooks["request"]:
            client.event_hooks = {**hooks, "request": [*hooks["request"], _trace_request]}
        self.sent = False

    def tell_price(self, output: ModelOutput, response: Mapping[str, Any] | None) -> None:
        """Put into a reply what it cost, where Inspect's viewer and sums look for it."""
        if self.spend is None or output.usage is None:
            return
        price = self._price(self.spend, usage_of_reply(output, response))
        output.usage.total_cost = None if price.usd is None else float(price.usd)

    def keep(self, output: ModelOutput, response: Mapping[str, Any] | None) -> None:
        """Keep a reply that has just come, once; OSError when it cannot be written."""
        if self.reply_s is None:
            self.reply_s = (output.metadata or {}).get(STATED, self._attempt_s())
        # Nothing is kept of what nobody is billed for.
        if self.draw and not self.kept and not output.empty:
            self.draw.keep(output, response or {}, self.call, self.reply_s)
            self.kept = True

    def end(self, error: BaseException | None = None) -> None:
        """Write down how it has ended, and work out what it cost; OSError: it cannot be written."""
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
            if error is None:  # else it is unknown, and what went wrong first is told
                raise

    def _outcome(self, event: ModelEvent | None, error: BaseException | None) -> CallOutcome:
        """Return how it has ended. Nothing that a provider can send keeps it from being known."""
        took = self.took_s
        try:
            made_readable(self.output, event)
            if error is None:
                return outcome_of(self.output, event, took, refused=self.too_long)
            ended = failed(error, event, took, self.broken)
            # If one waits, the attempt that was to follow never went out; nor has one that was
            # cancelled before its client had begun to send it.
            unsent = self.waits or not (self.sent or isinstance(error, Exception))
            return replace(ended, event=None, refused=True) if unsent else ended
        except Exception as odd:  # a reply that we cannot read; what it cost is then unknown
            kind, uuid = type(error or odd).__name__, event.uuid if event else None
            return CallOutcome(event=uuid, usage=None, error=kind, latency_s=round(took, 6))

    def set_price(self, ended: CallOutcome) -> None:
        """Note in the outcome what the call cost, so that a book changed later shows."""
        if self.spend is None:
            return
        self.price = self._price(self.spend, ended.usage)
        if ended.refused or (ended.cache == "read" and ended.usage):
            stated = self.spend.book.price(self.request.price_ref) is not None
            self.ended = replace(ended, usd="0" if stated else None)
        elif ended.cache != "read":
            self.ended = replace(ended, usd=plain(self.price.usd))

    def _price(self, spend: Spend, usage: Usage | None) -> CallPrice:
        if self._priced is None or self._priced[0] != usage:
            price = spend.price(self.request.price_ref, usage, self.request.service)
            self._priced = usage, price
        return self._priced[1]

    def settle(self) -> None:
        """Count the call, however it ended, whoever raised, and give back what it held."""
        if self.allowance is None:
            return
        if ended := self.ended:
            # One that got no answer may have been billed; one refused as too long costs nothing.
            doubtful = ended.error is not None or ended.raw_usage is not None
            told = billable_reply(ended.cache, ended.usage, ended.http_status, doubtful=doubtful)
            billable, cached = "no" if ended.refused else told, ended.cache == "read"
            self._lost(self.allowance, 1 if billable == "unknown" else 0)
            if self.price and (billable == "yes" or cached):
                self.usd = self.allowance.paid(self.price, cached=cached)
            elif billable == "no":
                self.usd = Decimal(0)
        self.allowance.release()

    def _lost(self, allowance: Allowance, last: int) -> None:
        """Count what got no answer in the attempt in flight, tries of its client included."""
        if allowance.in_flight:
            within = _unanswered(last_event(self.span)) if allowance.requests > 1 else 0
            allowance.lost(within + last)


INTENT = ("role", "step", "price_ref", "service", "prompt_bytes", "max_tokens")
"""Fields of a request that an intent line has as they are."""


TRACED = ("AsyncHTTPTransport", "LoopScopedTransport")
"""Transports of httpx, of httpx2 and of Inspect, which say what they do with a request."""
SENDS = ".send_request_headers.started"
"""What they say once there is a connection, and before anything is written to it."""


async def _trace_request(request: Any) -> None:
    call = call_in_flight()

    async def trace(what: str, details: Mapping[str, Any]) -> None:
        if call and what.endswith(SENDS):
            call.sent = True

    request.extensions = {**request.extensions, "trace": trace}


def call_in_flight() -> CallInFlight | None:
    """Return the call that is waited for here."""
    call = current().in_flight
    return call if isinstance(call, CallInFlight) else None


def current_recorder() -> Recorder | None:
    """Return where calls made here are written down."""
    recorder = current().recorder
    return recorder if isinstance(recorder, Recorder) else None


def current_journal() -> TaskJournal | None:
    """Return where calls of the task in the making are written."""
    journal = current().journal
    return journal if isinstance(journal, TaskJournal) else None


@asynccontextmanager
async def record_call(request: Request, spend: Spend | None) -> AsyncGenerator[CallInFlight]:
    """Let one call be made, in a span of its own: written down before and after, and paid for.

    Raises `SpendLimit` before a call that may not be paid for any more, and OSError before one that
    cannot be written down.
    """
    listen()
    allowance = _allowance(request, spend) if spend else None
    recorder, span = current_recorder(), current_span_id()
    asked = CallInFlight(request, spend, recorder, span, allowance=allowance)
    asked.shutdown = current_shutdown()
    try:
        with run_context(in_flight=asked):
            yield asked
    except Unwritten as error:
        raise error.__cause__ or OSError("the journal cannot be written") from None
    except BaseException as error:  # a cancelled call may be billed as well
        asked.end(error)
        if isinstance(error, NotAllowed):
            raise error.__cause__ or SpendLimit(str(error)) from None
        raise
    else:
        asked.end()
    finally:
        asked.settle()
        if asked.shutdown:
            asked.shutdown.landed(asked)


def _allowance(request: Request, spend: Spend) -> Allowance:
    sizes = request.prompt_bytes, request.max_tokens
    attempted = Attempted("unknown", "none", None, request.service, *sizes)
    price = spend.book.price(request.price_ref) if request.is_bounded else None
    most = upper_bound(attempted, price)
    if request.service == "batch" and most is not None:
        spend.begin_together(request.price_ref, most)
    return Allowance(spend, request.price_ref, most, request.requests)


@asynccontextmanager
async def as_if_bought(request: Request, spend: Spend | None) -> AsyncGenerator[None]:
    """Hold in the meter of a question what a call would hold there; raises as `record_call`.

    Whether a question has reached its limit must not depend on who bought a shared draw.
    """
    if spend is None or not spend.above or spend.limit is None:
        yield
        return
    allowance = _allowance(request, spend)
    held = await spend.hold(request.price_ref, allowance.most)
    try:
        yield
    finally:
        spend.release(request.price_ref, held)


def _unanswered(event: ModelEvent | None) -> int:
    """Return the tries inside one event before its last that got no answer."""
    if event is None:
        return 0
    ids = [one.model_dump() for one in event.request_ids or ()]
    statuses = [one["status"] or 0 for one in responses(ids, event.model)]
    if event.error and is_refusal(statuses[-1] if statuses else None):
        statuses.pop()
    return max(0, (event.retries or 0) - sum(map(is_refusal, statuses)))


def read_back(request: Request, bought: BoughtReply, spend: Spend | None) -> CallInFlight:
    """Write down a call whose reply was paid for before: nothing goes out, and nobody is paid."""
    event = bought.event
    asked = CallInFlight(request, spend, current_recorder(), event.span_id, event.output)
    told = outcome_of(event.output, event, event.working_time or 0.0, refused=asked.too_long)
    ended = replace(told, from_store=True, shared_from=bought.shared_from)
    asked.ended, asked.usage = ended, ended.usage
    asked.reply_s = bought.took_s
    asked.set_price(ended)
    if recorder := asked.recorder:
        journal, call = asked.written(recorder)
        journal.outcome(call, asked.ended)
        if not bought.shared_from:
            recorder.replays.append(call)
    # After the journal: Inspect keeps an event of a killed process, and none may lack its lines.
    transcript()._event(event)  # pyright: ignore[reportPrivateUsage]
    if spend and asked.price:
        asked.usd = spend.add(asked.price, cached=True)
    return asked


@contextmanager
def recording(
    journal: TaskJournal | None, scope: Scope, sample: SampleRef | None = None
) -> Generator[Recorder | None]:
    """Let the calls made within be written to a journal; None changes nothing."""
    if journal is None:
        yield None
        return
    recorder = Recorder(journal, scope, sample)
    with run_context(recorder=recorder):
        yield recorder


@contextmanager
def recording_calls(log_dir: Path, scope: Scope, head: Head) -> Generator[TaskJournal]:
    """Write down the calls that pools make within, outside any eval: training, serving."""
    journal = TaskJournal(log_dir, head)
    try:
        with recording(journal, scope):
            yield journal
    finally:
        journal.close()


def next_draw(request: Request) -> ReplyDraw | None:
    """Return which draw a request is; None where no replies are kept, as outside a run."""
    recorder = current_recorder()
    if recorder is None or recorder.sample is None:
        return None
    journal, asked = recorder.journal, recorder.sample
    if journal.replies is None:
        return None
    task, scope = journal.head.task, recorder.scope
    # A model in this process costs nothing, and its seconds are its system's own.
    embedded = str(request.model).startswith(EMBEDDED)
    shared = "" if scope != "inference" or embedded else journal.draws
    sample = sample_name(shared or task, asked.question, asked.epoch)
    # Several runs may share draws, one for each size of a budget.
    buyer = f"{journal.log_dir.name} {task}"
    whole = key_of(sample, scope, request.role, *what_is_asked(request))
    number = recorder.draws[whole]
    recorder.draws[whole] += 1
    return ReplyDraw(journal.replies, key_of(whole.hex(), number), "" if shared else sample, buyer)
