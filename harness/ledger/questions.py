"""What each question got, and what its calls come to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple, cast

from harness.errors import UserError
from harness.ledger.answers import PLANNING, SECRET, answer_key, fault_of
from harness.ledger.logs import (
    CallEvent,
    Json,
    Phase,
    events_of,
    lost_in,
    naming,
    open_log,
    solver_seconds,
)
from harness.ledger.runs import RunFacts, facts_in
from harness.prices import EMBEDDED, Book, book_from_json
from harness.prices.cost import Price, Service, cost, list_cost
from harness.records import CONDUCTOR, FALLBACK, PODIUM, Usage
from harness.suite import redacted_message

# § Sums over calls, added up one call at a time so that no million calls are ever held at
# § once.
# §
# § A sum says how much of it is known and how many calls it lacks; whoever shows it decides
# § whether a
# § part that is missing makes it unknown (harness/ledger/totals.py).


ZERO = Decimal(0)
Money = tuple[Decimal | None, Decimal | None]
"""What a provider bills for a call, and its list price as if nothing had been cached."""


class CallKind(NamedTuple):
    """What calls have in common that are added up."""

    newest: bool
    """True for calls that were read from the newest log of a sitting."""
    role: str
    model: str
    phase: Phase
    counted: bool
    """False for the spend of an attempt that failed and was not graded."""
    billable: bool
    """False for reads from a local cache: would-be price, nothing paid."""


@dataclass(slots=True)
class CallSum:
    """Sums over some calls. Tokens and dollars are those that are known."""

    calls: int = 0
    failed: int = 0
    """Calls that ended in an error."""
    untold: int = 0
    """Calls that reported no usage."""
    unthought: int = 0
    """Calls that do not say how much of their output was reasoning."""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    usd: Decimal = ZERO
    """At the rates that a provider bills."""
    usd_list: Decimal = ZERO
    unbilled: int = 0
    """Calls for which `usd` is unknown."""
    unlisted: int = 0
    """Calls for which `usd_list` is unknown."""
    unpriced: int = 0
    """Of those without a billed price, calls with a reply: their worker lacks a price."""

    def add(self, call: CallEvent, money: Money) -> None:
        """Count one call."""
        self.calls += 1
        if call.usage is None:
            self.untold += 1
            self.unthought += 1
        else:
            self._tokens(call.usage)
        failed = call.pending or bool(call.error)
        self.failed += failed
        usd, listed = money
        if usd is None:
            self.unbilled += 1
            self.unpriced += not failed
        else:
            self.usd += usd
        if listed is None:
            self.unlisted += 1
        else:
            self.usd_list += listed

    def _tokens(self, usage: Usage) -> None:
        self.input += usage.input
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.output += usage.output
        if usage.reasoning is None:
            self.unthought += 1
        else:
            self.reasoning += usage.reasoning

    def plus(self, other: "CallSum") -> "CallSum":
        """Return both together."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in NAMES)
        return CallSum(*(one + two for one, two in pairs))

    @property
    def tokens_in(self) -> int | None:
        """Cached input included; None when a call reported no usage."""
        return None if self.untold else self.input + self.cache_read + self.cache_write

    @property
    def tokens_out(self) -> int | None:
        """Reasoning included."""
        return None if self.untold else self.output

    @property
    def tokens_reasoning(self) -> int | None:
        """None when a call did not say."""
        return None if self.unthought else self.reasoning

    @property
    def billed(self) -> Decimal | None:
        """Dollars; None when the price of a call is unknown."""
        return None if self.unbilled else self.usd

    @property
    def listed(self) -> Decimal | None:
        """Dollars at list price, nothing cached; None when a call has no price."""
        return None if self.unlisted else self.usd_list


NAMES = tuple(CallSum.__dataclass_fields__)

CallSums = Mapping[CallKind, CallSum]
"""Every call of a sitting once, added up by kind."""


def total(tallies: Iterable[CallSum]) -> CallSum:
    """Return the sum of some tallies."""
    found = CallSum()
    for tally in tallies:
        found = found.plus(tally)
    return found


@dataclass(frozen=True, slots=True)
class QueryTotals:
    """One (question, epoch) pair: the calls that answered it. None: a part is unknown."""

    calls: int
    tokens_in: int | None
    """Cached input included."""
    tokens_out: int | None
    tokens_reasoning: int | None
    """Part of `tokens_out`."""
    worker_tokens_out: int | None
    """Output of workers alone: the token count of the Conductor paper (reference for Table 6)."""
    conductor_tokens: int | None
    """Input and output of the model that plans."""
    usd: Decimal | None
    """At list price, as if nothing had been cached."""
    conductor_s: float | None = None
    """Seconds in which a model that plans in this process worked; None where none did, or where
    they are unknown."""
    worker_calls: int = 0
    """Those of workers that had a reply: what a manifest says beforehand."""


def last_tries(calls: Iterable[tuple[CallEvent, Money]]) -> Sequence[tuple[CallEvent, Money]]:
    """Return calls without the tries over HTTP that failed and were followed by another.

    A comparison cannot count on a provider's failures; what they may have cost is in what was paid.
    Inspect writes an event for every try, all in the span of the call.
    """
    every = list(calls)
    if not any(call.error for call, _ in every):
        return every  # as nearly always
    last: dict[tuple[str, str, str], str] = {}
    for call, _ in every:
        if call.span and (not call.error or (call.span, call.role, call.model) not in last):
            last[call.span, call.role, call.model] = call.id
    return [
        (call, money)
        for call, money in every
        if not call.error or not call.span or last[call.span, call.role, call.model] == call.id
    ]


def query_totals(calls: Iterable[tuple[CallEvent, Money]]) -> QueryTotals:
    """Add up the calls that answered one question; those that grade are left out."""
    workers, conductor = CallSum(), CallSum()
    embedded: list[float | None] = []
    for call, money in last_tries(calls):
        if call.phase == "solve":
            (conductor if call.role == CONDUCTOR else workers).add(call, money)
            if call.role == CONDUCTOR and call.model.startswith(EMBEDDED):
                embedded.append(call.working_s)
    whole = workers.plus(conductor) if conductor.calls else workers
    planning = conductor.input + conductor.cache_read + conductor.cache_write + conductor.output
    return QueryTotals(
        calls=whole.calls,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        tokens_reasoning=whole.tokens_reasoning,
        worker_tokens_out=workers.tokens_out,
        conductor_tokens=None if conductor.untold else planning,
        usd=whole.listed,
        conductor_s=_seconds(embedded),
        worker_calls=workers.calls - workers.failed,
    )


def _seconds(times: Sequence[float | None]) -> float | None:
    known = [one for one in times if one is not None]
    return sum(known) if times and len(known) == len(times) else None


def priced(call: CallEvent, price: Price | None, service: Service) -> Money:
    """Return a call's two prices: as its worker is served, and at list price.

    A request that was refused for its length is not billed.
    """
    if call.refused:
        return ZERO, ZERO
    usage = call.usage
    if usage is None or price is None:
        return None, None
    billed = cost(usage, price, service)
    if service != "standard" or usage.is_cached:
        return billed, list_cost(usage, price)
    return billed, billed  # nothing was cached, as with most calls of a million


def in_table(kind: CallKind) -> bool:
    """Return whether calls stand in a table's figures per query."""
    return kind.phase == "solve" and kind.counted


def is_cached(kind: CallKind) -> bool:
    """Return whether calls of the table were read from a local cache, which Inspect leaves out."""
    return in_table(kind) and not kind.billable


def grades(kind: CallKind) -> bool:
    """Return whether calls were made by graders, which Inspect counts and a table does not."""
    return kind.phase == "score" and kind.counted and kind.billable


def failed(kind: CallKind) -> bool:
    """Return whether calls belong to attempts that failed, which Inspect's run totals count."""
    return not kind.counted and kind.billable


# § What each question got, and what all calls of a sitting come to, read from Inspect logs
# § alone.
# §
# § Calls are told apart by event uuid, because the logs of a resumed run repeat each other,
# § and
# § Inspect's own totals leave out cache reads and failed attempts. Logs are read raw and one
# § sample at
# § a time, newest log first; calls are added up as they pass (harness/ledger/questions.py).
# § What is in one
# § event is harness/ledger/logs.py; which logs make a sitting is harness/ledger/totals.py.


GROUPINGS = ("difficulty", "platform")
"""Facts of a question by which a report breaks an exam down, in this order."""
NOTHING: Json = {}


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One (question, epoch) pair as its newest log left it: verdict, shape of the work, tokens."""

    question: str
    epoch: int
    sample: str
    value: float | None
    """None when unscored: we failed, or the run has not got there."""
    reason: str
    """Why it is unscored; empty when it was graded."""
    parsed: bool
    """False when it was graded wrong because no answer could be found in the reply."""
    kind: str
    topic: str
    steps: int | None
    depth: int | None
    stopped: str | None
    latency_s: float | None
    """Wall time of the solver, as measured in this run."""
    totals: QueryTotals
    """What its calls come to."""
    official: float | None = None
    """The published evaluator's verdict, where the suite gives one beside its own."""
    fragile: bool = False
    """True when a little more or less time might have changed the verdict."""
    erratum: bool = False
    """True when the question is known to be faulty."""
    vote: str | None = None
    """Digest of the answer that was found, the same for what means the same in another order of
    options; None where none was. For counting votes alone: it shows no text."""
    fallback: str = ""
    """What its system noted of falling back: a sentence of our own."""
    planned: bool = False
    """Whether a model was asked for the plan."""
    plan_fault: str | None = None
    """What kind of fault its plan had, so that nothing was carried out; None for one that was."""
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the question belongs to, e.g. its difficulty; one of `GROUPINGS` to a key."""

    @property
    def graded(self) -> bool:
        """Say whether there is a verdict."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What the logs of a sitting come to."""

    attempts: tuple[QuestionResult, ...]
    """One for each pair that was begun, sorted by question and epoch."""
    spend: CallSums
    """Every call of all attempts once, by kind."""


def read_figures(paths: Sequence[Path]) -> RunFigures:
    """Read the logs of one sitting, newest first; each pair counts as the newest log has it.

    UserError for a damaged log, and for one that `podium run` did not write.
    """
    attempts: dict[tuple[str, int], QuestionResult] = {}
    spend: dict[CallKind, CallSum] = {}
    seen: set[str] = set()
    for entry in entries(paths):
        with naming(entry.about.path):
            paid = [(call, entry.about.money(call)) for call in entry.calls]
            attempt = _attempt(entry, query_totals(paid)) if entry.current else None
            counted = attempt is not None and attempt.graded
            for call, money in paid:
                if call.id not in seen:
                    kind = _kind(entry, call, counted)
                    spend.setdefault(kind, CallSum()).add(call, money)
                    _see(seen, call)
        if attempt:
            attempts[attempt.question, attempt.epoch] = attempt
    return RunFigures(tuple(attempts[pair] for pair in sorted(attempts)), spend)


def _see(seen: set[str], call: CallEvent) -> None:
    if call.id:  # events of very old logs have no uuid, and are no copies of each other
        seen.add(call.id)


@dataclass(frozen=True, slots=True)
class PricedLog:
    """What a log says of all its samples."""

    path: Path
    facts: RunFacts
    book: Book
    served: Mapping[str, tuple[Price | None, Service]]
    """The price of each worker, and how it is served."""

    def money(self, call: CallEvent) -> Money:
        """Return what a call costs at the book in the log."""
        if found := self.served.get(call.role):
            return priced(call, *found)
        return priced(call, self.book.price(call.model), "standard")


@dataclass(frozen=True, slots=True)
class SampleCalls:
    """The calls of one attempt at a sample."""

    about: PricedLog
    sample: Json
    """Of an attempt that was made again, its names alone."""
    calls: tuple[CallEvent, ...]
    current: bool
    """True in the newest log that has the pair."""
    newest: bool
    """True for the newest log of all."""


def entries(paths: Sequence[Path]) -> Iterator[SampleCalls]:
    """Yield the samples of some logs, newest log first; at last what is left of failed attempts."""
    pairs: set[tuple[str, int]] = set()
    lost: list[SampleCalls] = []
    for path in paths:
        with open_log(path) as log:
            about, newest = about_log(log.header, path), path == paths[0]
            for sample in log.samples():
                with naming(path):
                    pair = (str(sample["id"]), sample["epoch"])
                    calls, gone = tuple(events_of(sample)), tuple(lost_in(sample))
                    names = {name: sample.get(name) for name in ("id", "epoch", "uuid")}
                if gone:
                    lost.append(SampleCalls(about, names, gone, current=False, newest=newest))
                yield SampleCalls(about, sample, calls, pair not in pairs, newest)
                pairs.add(pair)
    yield from lost


def about_log(header: Json, path: Path) -> PricedLog:
    """Return what a log's header says of its run; UserError when podium did not write it."""
    with naming(path):
        facts = facts_in(header["eval"].get("metadata"), path)
    if facts is None:
        raise UserError(
            f"{path} was not written by `podium run`: it names no system and no prices."
        )
    book = book_from_json(facts.prices)
    served: dict[str, tuple[Price | None, Service]] = {
        name: (book.price(worker.price), worker.service) for name, worker in facts.workers.items()
    }
    return PricedLog(path, facts, book, served)


def _kind(entry: SampleCalls, call: CallEvent, counted: bool) -> CallKind:
    billable = call.cache != "read"
    return CallKind(entry.newest, call.role, call.model, call.phase, counted, billable)


def _attempt(entry: SampleCalls, totals: QueryTotals) -> QuestionResult:
    sample, metadata = entry.sample, entry.sample.get("metadata") or NOTHING
    score = _score(sample)
    found: Json = score.get("metadata") or NOTHING
    shape: Json = metadata.get(PODIUM) or NOTHING
    value = verdict(sample)
    planned = any(_asks_for_plan(call) for call in entry.calls)
    return QuestionResult(
        question=str(sample["id"]),
        epoch=sample["epoch"],
        sample=sample.get("uuid") or "",
        value=value,
        reason="" if value is not None else redacted_message(_why_unscored(sample), _shown(entry)),
        parsed=bool(found.get("parsed", True)),
        kind=str(metadata.get("kind", "")),
        topic=str(metadata.get("topic", "")),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        latency_s=solver_seconds(sample),
        totals=totals,
        official=None if found.get("official") is None else float(found["official"]),
        fragile=bool(found.get("fragile")),
        erratum=bool(found.get("errata")),
        vote=answer_key(metadata, score.get("answer")),
        fallback=str((shape.get("noted") or NOTHING).get(FALLBACK) or ""),
        planned=planned,
        plan_fault=_plan_fault(shape) if planned else None,
        groups=_groups(metadata, found),
    )


def _asks_for_plan(call: CallEvent) -> bool:
    return call.role == CONDUCTOR and (call.step or "").startswith(PLANNING)


def _plan_fault(shape: Json) -> str | None:
    """Return the kind of fault of a sample's plan; older redacted copies do not say which."""
    plan = shape.get("plan")
    hidden = str(plan).startswith("sha256:") and not shape.get("steps") and not shape.get("stopped")
    return SECRET if hidden else fault_of(plan)


def _shown(entry: SampleCalls) -> bool:
    return entry.about.facts.publishable


def _score(sample: Json) -> Json:
    return (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING


def verdict(sample: Json) -> float | None:
    """Return a sample's grade; Inspect writes "unscored" as not-a-number."""
    value = _score(sample).get("value")
    if sample.get("error") or not isinstance(value, int | float) or isnan(value):
        return None
    return float(value)


def _groups(metadata: Json, found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a question belongs to, from its grade or from its own facts."""
    question: object = metadata.get("question")
    own = cast(Json, question) if isinstance(question, dict) else NOTHING
    named = {name: found.get(name) or own.get(name) for name in GROUPINGS}
    return {name: str(value) for name, value in named.items() if value}


def _why_unscored(sample: Json) -> str:
    if sample.get("error"):
        return sample["error"]["message"]
    score = _score(sample)
    if not score:
        return "no score in the log"
    return score.get("explanation") or str(score.get("reason") or "unscored")
