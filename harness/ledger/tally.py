"""Sums over calls, added up one call at a time so that no million calls are ever held at once.

A sum says how much of it is known and how many calls it lacks; whoever shows it decides whether a
part that is missing makes it unknown (harness/totals.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from harness.ledger.events import CallEvent, Phase
from harness.prices import EMBEDDED
from harness.prices.pricing import Price, Service, cost, list_cost
from harness.records import CONDUCTOR, Usage

ZERO = Decimal(0)
Money = tuple[Decimal | None, Decimal | None]
"""What a provider bills for a call, and its list price as if nothing had been cached."""


class Kind(NamedTuple):
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
class Tally:
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

    def plus(self, other: "Tally") -> "Tally":
        """Return both together."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in NAMES)
        return Tally(*(one + two for one, two in pairs))

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


NAMES = tuple(Tally.__dataclass_fields__)

Tallies = Mapping[Kind, Tally]
"""Every call of a sitting once, added up by kind."""


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of some tallies."""
    found = Tally()
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
    workers, conductor = Tally(), Tally()
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


def in_table(kind: Kind) -> bool:
    """Return whether calls stand in a table's figures per query."""
    return kind.phase == "solve" and kind.counted


def is_cached(kind: Kind) -> bool:
    """Return whether calls of the table were read from a local cache, which Inspect leaves out."""
    return in_table(kind) and not kind.billable


def grades(kind: Kind) -> bool:
    """Return whether calls were made by graders, which Inspect counts and a table does not."""
    return kind.phase == "score" and kind.counted and kind.billable


def failed(kind: Kind) -> bool:
    """Return whether calls belong to attempts that failed, which Inspect's run totals count."""
    return not kind.counted and kind.billable
