"""Enforces `--max-usd`: counts dollars spent, and dollars reserved for calls in flight.

Each request, retries included, reserves its maximum cost. It is sent only if all dollars spent and
reserved stay within the limit; if it does not fit with nothing in flight, it is refused. Calls of
one model run one at a time in three cases: its first call, calls without a known maximum (each
reserves the highest cost so far), and all calls after a reply that cost more than its maximum.
After a call without a price no other call is made. A request without an answer counts as its
maximum cost; if that is unknown, as the highest cost so far.

A call may count in several meters, each with a limit of its own: a question's and its run's; under
`podium serve`, a request's, its API key's and its day's. It is sent once it fits into all of them.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_UP, Context, Decimal
from logging import getLogger
from typing import Protocol

import anyio

from podium.harness.errors import DayLimit, QuestionLimit, SpendLimit, UserError
from podium.harness.files import decimal_of
from podium.harness.prices import Book
from podium.harness.prices.cost import Price, Service, cost
from podium.harness.records import Usage

ZERO = Decimal(0)
TWO_DIGITS = Context(prec=2, rounding=ROUND_UP)


@dataclass(frozen=True, slots=True)
class LimitName:
    """The option that sets a dollar limit, and the endings of the limit's error messages."""

    option: str
    then: str = "."
    """The end of the error message if the limit is reached."""
    unpriced: str = "."
    """The end of the error message if a call had no price."""
    one: str = ""
    """`question` or `request` if each question or request has a limit of its own; empty for a limit
    on all of them together."""
    ends: datetime | None = None
    """Time at which the next day begins; None if the limit is not per day."""


class Lease(Protocol):
    """The part of a run's dollar limit that one shard (a parallel job of the run) may spend."""

    @property
    def granted(self) -> Decimal | None:
        """Dollars granted to the shard, its earlier processes' spend included; None: no limit."""
        ...

    async def more(self, most: Decimal | None, *, idle: bool) -> bool:
        """Request a grant of `most` dollars (None: all); return whether to check `granted` again.

        `idle`: whether the shard has no call in flight.
        """
        ...

    def keep(self, usd: Decimal) -> None:
        """Give back the granted dollars above `usd`, if other shards wait for dollars."""
        ...


class Turns(Protocol):
    """Decides when a call to a model may begin, by a rate limit or a shard's share of it."""

    async def turn(self, who: str) -> None:
        """Wait until a call to `who` (provider, worker) may begin; SpendLimit if a lease ends."""
        ...


class ShardLimits(Lease, Turns, Protocol):
    """Dollars and call starts leased to a shard's process; they expire unless renewed."""

    @property
    def generation(self) -> int:
        """Number of this process, from 1, among all processes that have run the shard."""
        ...


A_RUN = LimitName(
    "--max-usd",
    "; to continue, run the same command with a larger --max-usd: finished questions are not "
    "asked again.",
    "; finished questions are not asked again.",
)
A_QUESTION = LimitName(
    "--max-usd-per-query",
    "; to ask only such questions again, run the same command with a larger limit.",
    one="question",
)


def usd_limit(name: str, amount: Decimal | float | str | None) -> Decimal | None:
    """Return a limit in US dollars; UserError if the amount is no number above 0.

    >>> usd_limit("max_usd", 0.5), usd_limit("max_usd", None)
    (Decimal('0.5'), None)
    """
    try:
        limit = None if amount is None else decimal_of(str(amount))
    except ValueError:
        limit = ZERO
    if limit is not None and not limit > 0:
        raise UserError(f"{name} must be an amount in US dollars above 0, not {amount!r}.")
    return limit


@dataclass(slots=True)
class Spend:
    """A dollar meter of a run, question, request, API key or day; `above` are wider meters."""

    book: Book
    limit: Decimal | None = None
    spent: Decimal = ZERO
    per_question: Decimal | None = None  # limit in dollars for one question, judges excluded
    _held: Decimal = ZERO
    _flying: Counter[str] = field(default_factory=Counter[str])  # by price key: calls in flight
    _dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    _unpriced: str | None = None
    _settled: anyio.Event | None = None
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """Key in the price book -> number of its calls that may have been billed an unknown amount."""
    _passed: set[str] = field(default_factory=set[str])  # price keys: a reply cost over its maximum
    above: tuple["Spend", ...] = ()  # in order of reserving; the last counts all calls
    name: LimitName = A_RUN
    lease: Lease | None = None  # a shard's; `limit` is then the amount granted
    ended: SpendLimit | None = None  # why this question makes no more calls; other questions may

    @property
    def gone(self) -> Decimal:
        """Dollars spent plus an estimate for calls of unknown cost; compared with the limit."""
        dearest = self._whole._dearest
        guesses = (dearest.get(ref, ZERO) * n for ref, n in self.unbounded.items())
        return self.spent + sum(guesses, ZERO)

    @property
    def meters(self) -> tuple["Spend", ...]:
        """This dollar meter and the wider ones in `above`: a call must fit the limit of each."""
        return (self, *self.above)

    def lost(self, price_ref: str, bound: Decimal | None) -> None:
        """Count a request without an answer; `bound` is its maximum cost, None if unknown."""
        for meter in self.meters:
            if bound is None:
                meter.unbounded[price_ref] += 1
            else:
                meter.spent += bound

    def for_question(self) -> "Spend":
        """Return a new dollar meter for one question; this meter itself if no limit is set."""
        if self.per_question is None and self.limit is None:
            return self
        return Spend(self.book, self.per_question, above=(self,), name=A_QUESTION)

    @property
    def _whole(self) -> "Spend":
        return self.meters[-1]

    @property
    def unpriced(self) -> str | None:
        """The model that was called without a price, and why; None if all calls had a price."""
        return self._whole._unpriced

    def exceeded(self, price_ref: str, usd: Decimal, bound: Decimal) -> None:
        """Remember, and warn once, that a reply cost more than its request's calculated maximum."""
        passed = self._whole._passed
        if price_ref in passed:
            return
        passed.add(price_ref)
        if any(meter.limit is not None for meter in self.above or (self,)):
            text = f"A reply of {price_ref} cost ${usd:.4f}, more than the maximum of"
            bounded = f"${bound:.4f} that was calculated for its request."
            then = "From now on, its calls run one at a time, so that the limit holds."
            getLogger(__name__).warning("%s %s %s", text, bounded, then)

    def begin_together(self, price_ref: str, bound: Decimal) -> None:
        """Let a model's first calls run in parallel, as if one had already cost `bound` dollars."""
        self._whole._dearest.setdefault(price_ref, bound)

    def expected(self, price_ref: str, bound: Decimal | None) -> Decimal | None:
        """Return dollars to reserve: a call's maximum, else the highest cost so far, or None."""
        # The dearest call so far counts if there is no maximum, or a reply cost more than it.
        dearest = self._whole._dearest.get(price_ref)
        if bound is None:
            return dearest
        return max(bound, dearest or ZERO) if price_ref in self._whole._passed else bound

    async def hold(self, price_ref: str, bound: Decimal | None) -> Decimal:
        """Reserve and return a call's cost once it fits the limit; SpendLimit if it never fits."""
        amount = self.expected(price_ref, bound) or ZERO  # a limit may be set later
        while self.limit is not None:
            again = await self._ask_for_more(price_ref, bound)
            room, needed = self.limit - self.gone, self.expected(price_ref, bound)
            amount = room if needed is None else needed
            if self._may_go(price_ref, bound, amount, room):
                break
            if again:
                continue
            if not self._flying.total():
                raise self.refusal(needed)
            self._settled = self._settled or anyio.Event()
            await self._settled.wait()
        self._held += amount
        self._flying[price_ref] += 1
        return amount

    async def _ask_for_more(self, price_ref: str, bound: Decimal | None) -> bool:
        """Ask the shard's lease for the dollars that a call needs; return whether to ask again."""
        lease, needed = self.lease, self.expected(price_ref, bound)
        if lease is None or self.unpriced is not None:
            return False
        flying, used = self._flying.total(), self.gone + self._held
        if needed is None and flying:
            return False  # unknown cost: it asks for all, once it is alone
        target = None if needed is None else used + needed
        again = await lease.more(target, idle=not flying)
        self.limit = lease.granted
        fits = self.limit is not None and target is not None and target <= self.limit
        # Other calls may have used the grant or ended meanwhile: the need may have changed.
        moved = self.gone + self._held != used
        return (moved and not self._fits(needed)) or (again and not flying and not fits)

    def _fits(self, needed: Decimal | None) -> bool:
        used = self.gone + self._held
        return needed is not None and self.limit is not None and used + needed <= self.limit

    def _may_go(self, price_ref: str, bound: Decimal | None, need: Decimal, room: Decimal) -> bool:
        # The cost of a first reply is unknown, so it goes alone: else a provider that underreports
        # could do so in as many calls at once as the limit has room for.
        reliable = price_ref in self._whole._dearest and price_ref not in self._whole._passed
        alone = bound is None or not reliable
        if self.unpriced is not None or (alone and self._flying[price_ref]):
            return False
        return self._held + need <= room and (room > 0 or bound is not None)

    def refusal(self, needed: Decimal | None) -> SpendLimit:
        """Return the error for a refused call; `needed` is its maximum cost, None if unknown."""
        name = self.name
        if self.unpriced is not None:
            return SpendLimit(
                f"Calls of {self.unpriced}, so {name.option} cannot be enforced: complete the "
                f"price book or leave {name.option} out{name.unpriced}"
            )
        if name.one:
            return QuestionLimit(
                f"budget per {name.one}: another call could pass {name.option} {self.limit:f}"
                f"{_by(needed)}{name.then}"
            )
        if self.lease:
            text = f"The rest of {name.option} for all shards is less than the next call could cost"
            return SpendLimit(f"{text}{_by(needed)}{name.then}")
        sentence = (
            f"${self.gone:.4f} of {name.option} {self.limit} is spent, and the next call could "
            f"pass it{_by(needed)}{name.then}"
        )
        return DayLimit(sentence, name.ends) if name.ends else SpendLimit(sentence)

    def release(self, price_ref: str, amount: Decimal) -> None:
        """Give back the dollars reserved for a request, and wake the waiting calls."""
        self._held -= amount
        self._flying[price_ref] -= 1
        if self._settled:
            self._settled.set()
            self._settled = None
        if self.lease:
            self.lease.keep(self.gone + self._held)
            self.limit = self.lease.granted

    def price(self, ref: str, usage: Usage | None, service: Service = "standard") -> "CallPrice":
        """Return a finished call's cost by the run's price book and the call's service tier."""
        price = self.book.price(ref)
        usd = cost(usage, price, service) if usage is not None and price is not None else None
        return CallPrice(ref, usd, _why(usage, price, service) if usd is None else "")

    def add(self, price: "CallPrice", *, cached: bool = False) -> Decimal | None:
        """Count a finished call, and return its cost in dollars; None if it has no price."""
        # After a call without a price, a meter with a limit refuses the next call: unknown is not
        # zero. A reply that was `cached` here costs nothing, but its price counts for the question,
        # whose result must not depend on earlier requests.
        usd, root = price.usd, self._whole
        if usd is not None:
            question_meters = (self,) if self.above else ()
            for meter in question_meters if cached else self.meters:
                meter.spent += usd
            root._dearest[price.ref] = max(usd, root._dearest.get(price.ref, ZERO))
        elif root._unpriced is None and not cached:
            root._unpriced = f"{price.ref} have no price ({price.why})"
        return usd


@dataclass(frozen=True, slots=True)
class CallPrice:
    """The cost of one finished call: computed once, for the journal and for every dollar meter."""

    ref: str
    usd: Decimal | None
    why: str = ""  # reason, if `usd` is unknown


@dataclass(slots=True)
class Allowance:
    """The dollars reserved for one call in flight: the maximum cost of each attempt."""

    spend: Spend
    price_ref: str
    most: Decimal | None = None  # Maximum cost of one HTTP request; None if unknown
    requests: int = 1  # HTTP requests that an attempt may send: a client may retry by itself
    requests_lost: int = 0
    _holds: list[tuple[Spend, Decimal]] = field(default_factory=list[tuple[Spend, Decimal]])

    @property
    def in_flight(self) -> bool:
        """Whether dollars are reserved for an attempt of the call."""
        return bool(self._holds)

    async def take(self) -> None:
        """Reserve an attempt's maximum cost before sending; wait until the limit has room."""
        if self._holds:
            return
        bound = None if self.most is None else self.most * self.requests
        try:
            for meter in self.spend.meters:
                self._holds.append((meter, await meter.hold(self.price_ref, bound)))
            if self.spend.ended:
                raise self.spend.ended
        except BaseException as error:
            self.release()
            if isinstance(error, SpendLimit) and self.spend.above:
                self.spend.ended = self.spend.ended or error
            raise

    def lost(self, requests: int = 1) -> None:
        """Count requests without an answer at their maximum cost, because they may be billed."""
        self.requests_lost += requests
        for _ in range(requests):
            self.spend.lost(self.price_ref, self.most)

    def paid(self, price: CallPrice, *, cached: bool = False) -> Decimal | None:
        """Count a reply and return its cost in dollars; note a cost above the maximum."""
        usd = self.spend.add(price, cached=cached)
        if usd is not None and self.most is not None and usd > self.most and not cached:
            self.spend.exceeded(self.price_ref, usd, self.most)
        return usd

    def release(self) -> None:
        """Give back the dollars reserved for an attempt, once its actual cost is counted."""
        for meter, amount in self._holds:
            meter.release(self.price_ref, amount)
        self._holds.clear()


def _by(needed: Decimal | None) -> str:
    """Return the maximum cost of a refused call as text; empty if unknown."""
    # In two digits, rounded up: questions that stop for the same reason are counted in one line.
    return "" if needed is None else f" (it could cost up to ${needed.normalize(TWO_DIGITS):f})"


def _why(usage: Usage | None, price: Price | None, service: Service) -> str:
    if usage is None:
        return "the provider reported no tokens"
    if price is None:
        return "it is not in the book"
    if service != "standard" and service not in price.services:
        return f"the book has no factor for service {service!r}"
    if cost(Usage(input=usage.input, output=usage.output), price) is None:
        return "reasoning has a rate of its own, and its tokens were not counted"
    return "no rate for cached tokens" if usage.input_total > usage.input else "a rate is missing"
