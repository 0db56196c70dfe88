"""Dollars spent by a run, and the promise that `--max-usd` is not passed.

Calls in flight have no price yet. So each one holds back what the dearest call of that worker has
cost so far, a worker's first call goes alone, and a call that could pass the limit is not made. The
limit can be passed only by as much as a call is dearer than all before it. After a call whose price
nobody can tell, no other is made.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal

import anyio

from harness.errors import SpendLimit
from harness.prices import Book
from harness.pricing import Price, cost
from harness.records import Usage


@dataclass(slots=True)
class Spend:
    """The meter of one run; all its samples share one object."""

    book: Book
    limit: Decimal | None = None
    spent: Decimal = Decimal(0)
    _held: Decimal = Decimal(0)
    _dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    _unpriced: str | None = None
    _settled: anyio.Event | None = None

    @asynccontextmanager
    async def allowance(self, price_ref: str) -> AsyncGenerator[None]:
        """Hold back what a call may cost while it is in flight; wait while too much is held.

        Raises `SpendLimit` when the call could pass the limit even if nothing else were in flight.
        """
        held = Decimal(0) if self.limit is None else await self._hold(price_ref, self.limit)
        try:
            yield
        finally:
            self._held -= held
            if self._settled:
                self._settled.set()
                self._settled = None

    def add(self, price_ref: str, usage: Usage | None) -> Decimal | None:
        """Count one finished call and return its price; None when it has none.

        With a limit, the next `allowance` is then refused: an unknown price is not zero.
        """
        price = self.book.prices.get(price_ref)
        usd = cost(usage, price) if usage is not None and price is not None else None
        if usd is not None:
            self.spent += usd
            self._dearest[price_ref] = max(usd, self._dearest.get(price_ref, Decimal(0)))
        elif self._unpriced is None:
            self._unpriced = f"{price_ref} have no price ({_why(usage, price)})"
        return usd

    async def _hold(self, price_ref: str, limit: Decimal) -> Decimal:
        while True:
            if self._unpriced is not None:
                raise SpendLimit(
                    f"Calls of {self._unpriced}, so --max-usd cannot hold: complete the price book "
                    "or leave --max-usd out; finished questions are not asked again."
                )
            left = limit - self.spent
            expected = self._dearest.get(price_ref, left)
            if left <= 0 or expected > left:
                raise SpendLimit(
                    f"${self.spent:.4f} of --max-usd {limit} is spent, and the next call could "
                    "pass it; run the same command with a larger --max-usd to continue, finished "
                    "questions are not asked again."
                )
            if self._held + expected <= left:
                self._held += expected
                return expected
            self._settled = self._settled or anyio.Event()
            await self._settled.wait()


def _why(usage: Usage | None, price: Price | None) -> str:
    if usage is None:
        return "the provider reported no tokens"
    return "it is not in the book" if price is None else "no rate for cached tokens"


SPEND: ContextVar[Spend | None] = ContextVar("podium_spend", default=None)
"""The meter of the run in progress, set around Inspect's eval set."""
