"""Dollars spent by a run, and the promise that `--max-usd` is not passed.

Calls in flight have no price yet. So each one holds back what the dearest call of that worker has
cost so far, or what it can cost at most where that is less, and a worker's first call goes alone. A
call that could pass the limit is not made, and no other after it; those in flight are waited for,
since one that is broken off may be billed, and nobody knows how much. The limit can be passed only
by as much as a call is dearer than all before it. After a call whose price nobody can tell, no
other is made. A call that got no answer may have been billed: it counts as the most it can have
cost, or where nothing bounds that, as the dearest call of its price.

`--max-usd-per-query` is the same promise for one question, kept by a meter of its own inside the
run's (`QuestionSpend`).
"""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal

import anyio

from harness.errors import QuestionLimit, SpendLimit
from harness.prices import Book
from harness.prices.pricing import Price, Service, cost
from harness.records import Usage


@dataclass(slots=True)
class Spend:
    """The meter of one run; all its samples share one object."""

    book: Book
    limit: Decimal | None = None
    spent: Decimal = Decimal(0)
    per_question: Decimal | None = None
    """What the calls of one question may cost; judges, who are no system's cost, not included."""
    _held: Decimal = Decimal(0)
    _flying: int = 0
    """Calls with an allowance; each ends by itself."""
    _over: bool = False
    _dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    _unpriced: str | None = None
    _settled: anyio.Event | None = None
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """By price: calls that may have been billed, of which nothing says how much."""

    @property
    def gone(self) -> Decimal:
        """What is spent for all anybody knows: the limit is held against this."""
        guesses = (self._dearest.get(ref, Decimal(0)) * n for ref, n in self.unbounded.items())
        return self.spent + sum(guesses, Decimal(0))

    def lost(self, price_ref: str, most: Decimal | None) -> None:
        """Count a call that got no answer; `most` is what it can have cost, None if unbounded."""
        if most is None:
            self.unbounded[price_ref] += 1
        else:
            self.spent += most

    def for_question(self) -> "Spend":
        """Return the meter of one question: this one, where a question has no limit of its own."""
        if self.per_question is None:
            return self
        return QuestionSpend(self.book, self.per_question, run=self)

    @property
    def unpriced(self) -> str | None:
        """What was called without a price, and why it has none."""
        return self._unpriced

    def expected(self, price_ref: str, most: Decimal | None) -> Decimal | None:
        """Return what a call is expected to cost; None before a worker's first.

        That is its dearest call so far, or `most`, what this one can cost, where that is less.
        """
        dearest = self._dearest.get(price_ref)
        return dearest if dearest is None or most is None else min(dearest, most)

    @asynccontextmanager
    async def allowance(self, price_ref: str, most: Decimal | None = None) -> AsyncGenerator[None]:
        """Hold back what a call may cost while it is in flight; wait while too much is held.

        Raises `SpendLimit` when the call could pass the limit even if nothing else were in flight,
        and once one could; then only after all calls in flight have ended.
        """
        held = await self._hold(price_ref, most)
        try:
            yield
        finally:
            self._release(held)

    async def _hold(self, price_ref: str, most: Decimal | None) -> Decimal:
        """Return what is held back, once it may be; a call of unknown cost goes alone."""
        held, limit = Decimal(0), self.limit
        while limit is not None:
            left = limit - self.gone
            expected = self.expected(price_ref, most)
            held = left if expected is None else expected
            self._over = self._over or self.unpriced is not None or left <= 0 or held > left
            if self._over and not self._flying:
                raise self._refusal(limit)
            if not self._over and self._held + held <= left:
                break
            await self._wait()
        self._held += held
        self._flying += 1
        return held

    def _refusal(self, limit: Decimal) -> SpendLimit:
        if self.unpriced is not None:
            return SpendLimit(
                f"Calls of {self.unpriced}, so --max-usd cannot hold: complete the price book "
                "or leave --max-usd out; finished questions are not asked again."
            )
        return SpendLimit(
            f"${self.gone:.4f} of --max-usd {limit} is spent, and the next call could "
            "pass it; run the same command with a larger --max-usd to continue, finished "
            "questions are not asked again."
        )

    def _release(self, held: Decimal) -> None:
        self._held -= held
        self._flying -= 1
        if self._settled:
            self._settled.set()
            self._settled = None

    async def _wait(self) -> None:
        self._settled = self._settled or anyio.Event()
        await self._settled.wait()

    def add(
        self,
        price_ref: str,
        usage: Usage | None,
        service: Service = "standard",
        *,
        cached: bool = False,
    ) -> Decimal | None:
        """Count one finished call, as it was served, and return its price; None when it has none.

        With a limit, the next `allowance` is then refused: an unknown price is not zero. A reply
        that was `cached` here has a price, and nobody is paid.
        """
        price = self.book.price(price_ref)
        usd = cost(usage, price, service) if usage is not None and price is not None else None
        if usd is not None:
            self.spent += Decimal(0) if cached else usd
            self._dearest[price_ref] = max(usd, self._dearest.get(price_ref, Decimal(0)))
        elif self._unpriced is None and not cached:
            self._unpriced = f"{price_ref} have no price ({_why(usage, price, service)})"
        return usd


@dataclass(slots=True)
class QuestionSpend(Spend):
    """The meter of one question; every call counts here and in the run's meter.

    The promise is the run's: what a call is expected to cost is known from the whole run, and what
    stops is this question alone.
    """

    run: Spend | None = None

    @asynccontextmanager
    async def allowance(self, price_ref: str, most: Decimal | None = None) -> AsyncGenerator[None]:
        """Hold back what a call may cost, here and in the run's meter.

        Raises `QuestionLimit` when it could pass the question's limit, `SpendLimit` for the run's.
        """
        held = await self._hold(price_ref, most)
        try:
            async with self._of_run.allowance(price_ref, most):
                yield
        finally:
            self._release(held)

    def add(
        self,
        price_ref: str,
        usage: Usage | None,
        service: Service = "standard",
        *,
        cached: bool = False,
    ) -> Decimal | None:
        """Count one finished call in both meters; None when it has no price.

        Here one that was `cached` counts as well: what a question may cost, and so what becomes of
        it, does not depend on who asked before.
        """
        self._of_run.add(price_ref, usage, service, cached=cached)
        return Spend.add(self, price_ref, usage, service)

    def lost(self, price_ref: str, most: Decimal | None) -> None:
        """Count a call that got no answer in both meters."""
        self._of_run.lost(price_ref, most)
        Spend.lost(self, price_ref, most)

    @property
    def unpriced(self) -> str | None:
        """What this run called without a price."""
        return self._of_run.unpriced

    def expected(self, price_ref: str, most: Decimal | None) -> Decimal | None:
        """Return what the whole run says."""
        return self._of_run.expected(price_ref, most)

    @property
    def _of_run(self) -> Spend:
        assert self.run is not None, "for_question gives the run's meter"
        return self.run

    def _refusal(self, limit: Decimal) -> SpendLimit:
        if self.unpriced is not None:
            return SpendLimit(
                f"Calls of {self.unpriced}, so --max-usd-per-query cannot hold: complete the "
                "price book or leave --max-usd-per-query out."
            )
        return QuestionLimit(
            f"budget per question: another call could pass --max-usd-per-query {limit:f}; "
            "the same command with a larger one asks such questions again, and no others."
        )


def _why(usage: Usage | None, price: Price | None, service: Service) -> str:
    if usage is None:
        return "the provider reported no tokens"
    if price is None:
        return "it is not in the book"
    if service != "standard" and service not in price.services:
        return f"the book has no factor for service {service!r}"
    if cost(Usage(input=usage.input, output=usage.output), price) is None:
        return "reasoning has a rate of its own, and nobody counted it"
    return "no rate for cached tokens" if usage.input_total > usage.input else "a rate is missing"


SPEND: ContextVar[Spend | None] = ContextVar("podium_spend", default=None)
"""The meter of the run in progress, set around Inspect's eval set."""
