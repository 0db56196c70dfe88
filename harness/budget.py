"""Enforces `--max-usd`: counts dollars spent, and the amount that each call holds back.

Each request in flight, retries included, holds back the most that it can cost and goes out only if
all that is spent and held stays within the limit; it is refused if it does not fit with nothing
in flight. A worker's first call goes alone, and so does one without a bound (it holds back its
dearest call so far) or whose reply cost more than its bound. After a call without a price no other
is made; a request without an answer counts as the most it can have cost.

A call may count in several meters, each with a limit of its own: a question's and its run's; a
served request's, its key's and its day's. It goes out once it fits into all of them.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_UP, Context, Decimal
from logging import getLogger
from typing import Protocol

import anyio

from podium.harness.errors import DayLimit, QuestionLimit, SpendLimit
from podium.harness.prices import Book
from podium.harness.prices.cost import Price, Service, cost
from podium.harness.records import Usage

ZERO = Decimal(0)
TWO_DIGITS = Context(prec=2, rounding=ROUND_UP)


@dataclass(frozen=True, slots=True)
class LimitName:
    """The name of a limit in refusals, and how these sentences end."""

    option: str
    then: str = "."
    """The end of a refusal because the limit is reached."""
    unpriced: str = "."
    """The end of a refusal after a call without a price."""
    one: str = ""
    """What it bounds, if that is a single question or request: this one ends, others go on."""
    ends: datetime | None = None
    """When a new day begins, for a limit of a day."""


class Lease(Protocol):
    """A part of a limit that several processes share; a process can request more of it."""

    @property
    def granted(self) -> Decimal | None:
        """Limit of this process in dollars, earlier attempts included; None: no limit."""
        ...

    async def more(self, most: Decimal | None, *, idle: bool) -> bool:
        """Ask for dollars up to `most`, None for all there are; return whether to look again."""
        ...

    def keep(self, usd: Decimal) -> None:
        """Give back what exceeds this amount, if others wait for it."""
        ...


class Turns(Protocol):
    """Decides when a call may begin."""

    async def turn(self, who: str) -> None:
        """Wait until a call of `who` may begin; SpendLimit if none may any more."""
        ...


class ShardLimits(Lease, Turns, Protocol):
    """The lease of a shard's process: dollars and turns, as long as it is renewed."""

    @property
    def generation(self) -> int:
        """Which process of its shard this is, from 1 on."""
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


@dataclass(slots=True)
class Spend:
    """The meter of a run, of a question, a request, a key or a day, and the meters above it."""

    book: Book
    limit: Decimal | None = None
    spent: Decimal = ZERO
    per_question: Decimal | None = None  # limit on the calls of one question, without judges
    _held: Decimal = ZERO
    _flying: Counter[str] = field(default_factory=Counter[str])  # by price: calls with an allowance
    _dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    _unpriced: str | None = None
    _settled: anyio.Event | None = None
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """By price: calls that may have been billed an unknown amount."""
    _passed: set[str] = field(default_factory=set[str])  # prices of which a reply passed its bound
    above: tuple["Spend", ...] = ()  # In the order in which calls are allowed; the last has all
    name: LimitName = A_RUN
    lease: Lease | None = None  # of a shard, whose limit is the amount granted
    ended: SpendLimit | None = None  # why a question makes no more calls; of a run others may fit

    @property
    def gone(self) -> Decimal:
        """Dollars spent, with an estimate of unknown calls: the limit is compared with this."""
        dearest = self._whole._dearest
        guesses = (dearest.get(ref, ZERO) * n for ref, n in self.unbounded.items())
        return self.spent + sum(guesses, ZERO)

    @property
    def meters(self) -> tuple["Spend", ...]:
        """The meters that a call needs an allowance of."""
        return (self, *self.above)

    def lost(self, price_ref: str, bound: Decimal | None) -> None:
        """Count a request without an answer; `bound` is its maximum cost, if that is known."""
        for meter in self.meters:
            if bound is None:
                meter.unbounded[price_ref] += 1
            else:
                meter.spent += bound

    def for_question(self) -> "Spend":
        """Return the meter of one question: this one, if nothing is limited."""
        if self.per_question is None and self.limit is None:
            return self
        return Spend(self.book, self.per_question, above=(self,), name=A_QUESTION)

    @property
    def _whole(self) -> "Spend":
        return self.meters[-1]

    @property
    def unpriced(self) -> str | None:
        """The model that was called without a price, and why it has none."""
        return self._whole._unpriced

    def exceeded(self, price_ref: str, usd: Decimal, bound: Decimal) -> None:
        """Remember, and warn once, that a reply cost more than its request could."""
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
        """Let the first calls of a price start together within their bounds: they are one batch."""
        self._whole._dearest.setdefault(price_ref, bound)

    def expected(self, price_ref: str, bound: Decimal | None) -> Decimal | None:
        """Return what a call holds back: its maximum cost; None if unknown."""
        # The dearest call so far counts if there is no bound, or a reply has passed one.
        dearest = self._whole._dearest.get(price_ref)
        if bound is None:
            return dearest
        return max(bound, dearest or ZERO) if price_ref in self._whole._passed else bound

    async def hold(self, price_ref: str, bound: Decimal | None) -> Decimal:
        """Hold back a request's cost once it fits, and return it; SpendLimit if it never fits."""
        amount = self.expected(price_ref, bound) or ZERO  # a limit may be set meanwhile
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
        """Raise the limit of a lease to what a call needs; return whether that may still change."""
        lease, needed = self.lease, self.expected(price_ref, bound)
        if lease is None or self.unpriced is not None:
            return False
        flying, used = self._flying.total(), self.gone + self._held
        if needed is None and flying:
            return False  # it takes all there is, once it is alone
        target = None if needed is None else used + needed
        again = await lease.more(target, idle=not flying)
        self.limit = lease.granted
        fits = self.limit is not None and target is not None and target <= self.limit
        # Other calls may have taken it meanwhile, or ended: the need may have changed.
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
        """Return why a call is not made; `needed` is what it could cost, if that is known."""
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
        """Give back the amount held for a request, and wake the waiting calls."""
        self._held -= amount
        self._flying[price_ref] -= 1
        if self._settled:
            self._settled.set()
            self._settled = None
        if self.lease:
            self.lease.keep(self.gone + self._held)
            self.limit = self.lease.granted

    def price(self, ref: str, usage: Usage | None, service: Service = "standard") -> "CallPrice":
        """Return the cost of a finished call at the run's book, as it was served."""
        price = self.book.price(ref)
        usd = cost(usage, price, service) if usage is not None and price is not None else None
        return CallPrice(ref, usd, _why(usage, price, service) if usd is None else "")

    def add(self, price: "CallPrice", *, cached: bool = False) -> Decimal | None:
        """Count one finished call, and return its price; None when it has none."""
        # With a limit, the next call is then refused: an unknown price is not zero. For a
        # reply that was `cached` here nothing is paid, yet its price counts for the question, whose
        # result must not depend on earlier requests.
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
    """The cost of one finished call: computed once, for the journal and for every meter."""

    ref: str
    usd: Decimal | None
    why: str = ""  # It is unknown


@dataclass(slots=True)
class Allowance:
    """The allowance of one call in flight: each of its attempts holds back its maximum cost."""

    spend: Spend
    price_ref: str
    most: Decimal | None = None  # Maximum cost of one HTTP request; None if it has no bound
    requests: int = 1  # HTTP requests that an attempt may be: a client may try again by itself
    requests_lost: int = 0
    _holds: list[tuple[Spend, Decimal]] = field(default_factory=list[tuple[Spend, Decimal]])

    @property
    def in_flight(self) -> bool:
        """Whether an attempt has an allowance."""
        return bool(self._holds)

    async def take(self) -> None:
        """Hold back an attempt's maximum cost before it goes out; wait while too much is held."""
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
        """Count requests that got no answer: they may have been billed."""
        self.requests_lost += requests
        for _ in range(requests):
            self.spend.lost(self.price_ref, self.most)

    def paid(self, price: CallPrice, *, cached: bool = False) -> Decimal | None:
        """Count the reply, and return its price; a worker that passes its bound is remembered."""
        usd = self.spend.add(price, cached=cached)
        if usd is not None and self.most is not None and usd > self.most and not cached:
            self.spend.exceeded(self.price_ref, usd, self.most)
        return usd

    def release(self) -> None:
        """Give back the amounts held; bills are counted by now."""
        for meter, amount in self._holds:
            meter.release(self.price_ref, amount)
        self._holds.clear()


def _by(needed: Decimal | None) -> str:
    """Return the possible cost of a refused call as text, if that is known."""
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
