"""Equal budgets: each system answers a question within the same calls, tokens, dollars or seconds.

The first call that could pass the budget is not made, and the system answers with the best it has.
A prompted planner's and a judge's calls count like a worker's; a model inside this process costs no
call. Tokens are input and output together, dollars are at list price, and a failed attempt that may
have been billed counts as its maximum. Seconds are those of the critical path (the longest chain of
calls that waited for each other): a reply that ends later is discarded.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, cast, get_args

import anyio

from podium.harness.context import current
from podium.harness.errors import PodiumError, UserError
from podium.harness.ledger.call import TEMPLATE, Attempted, upper_bound
from podium.harness.prices.cost import Price, list_cost
from podium.harness.records import Usage
from podium.harness.request import Request

Unit = Literal["calls", "tokens", "usd", "seconds"]
UNITS = get_args(Unit)
ZERO = Decimal(0)


class BudgetSpent(PodiumError):
    """A call could exceed its question's equal budget, so it was not made, or it ended too late."""


@dataclass(frozen=True, slots=True)
class EqualBudget:
    """The limit, such as 9 calls, on every system's work for one question."""

    unit: Unit
    limit: Decimal

    def __str__(self) -> str:
        """Return the budget as text, as option `--equal` takes it: `calls=9`."""
        return f"{self.unit}={self.limit.normalize():f}"

    @property
    def is_bounded(self) -> bool:
        """Whether the budget is in tokens or dollars: each call then needs a known maximum."""
        return self.unit in ("tokens", "usd")

    def most(
        self, prompt_bytes: int, max_tokens: int | None, price: Price | None
    ) -> Decimal | None:
        """Return a call's maximum use, in the budget's unit; 0 for seconds, None if unknown."""
        if self.unit == "calls":
            return Decimal(1)
        if self.unit == "seconds":
            return ZERO
        if self.unit == "tokens":
            return None if max_tokens is None else Decimal(prompt_bytes + TEMPLATE + max_tokens)
        attempted = Attempted("unknown", "none", None, "standard", prompt_bytes, max_tokens)
        return upper_bound(attempted, price)

    def taken(self, usage: Usage | None, price: Price | None) -> Decimal | None:
        """Return what an answered call used, in calls, tokens or dollars; None if unknown."""
        if self.unit == "calls":
            return Decimal(1)
        if usage is None or (self.unit == "usd" and price is None):
            return None
        if self.unit == "usd":
            return list_cost(usage, cast(Price, price))
        return Decimal(usage.input_total + usage.output)


def equal_budgets(text: str) -> tuple[EqualBudget, ...]:
    """Parse the value of `--equal`, and return its budgets, smallest first; UserError if invalid.

    >>> [str(budget) for budget in equal_budgets("calls=9,1,3")]
    ['calls=1', 'calls=3', 'calls=9']
    """
    unit, _, sizes = text.partition("=")
    numbers = [size.strip() for size in sizes.split(",")]
    if unit not in UNITS or not all(re.fullmatch(r"\d+(\.\d+)?", number) for number in numbers):
        raise UserError(
            f"{text!r} is not an equal budget: give a unit and its sizes, such as calls=9, "
            "calls=1,3,9, tokens=8000, usd=0.01 or seconds=60."
        )
    limits = sorted({Decimal(number) for number in numbers})
    is_whole = unit in ("calls", "tokens")
    if limits[0] <= 0 or (is_whole and any(limit % 1 for limit in limits)):
        kind = "whole numbers of at least 1" if is_whole else "more than 0"
        raise UserError(f"The sizes of an equal budget in {unit} must be {kind}, not {sizes}.")
    return tuple(EqualBudget(cast(Unit, unit), limit) for limit in limits)


def single_budget(text: str | None) -> EqualBudget | None:
    """Parse the equal budget of one run (`calls=9`); None without a text, UserError for several."""
    budgets = equal_budgets(text) if text else ()
    if len(budgets) > 1:
        raise UserError(
            f"{text} describes several runs, and only `podium run` makes several: give one size."
        )
    return budgets[0] if budgets else None


@dataclass(slots=True)
class Envelope:
    """One question's equal budget: the amount used, and the amount reserved for calls in flight."""

    budget: EqualBudget
    used: Decimal = ZERO
    held: Decimal = ZERO
    now_s: float = 0.0
    """End of the latest reply, in seconds on the critical path."""
    refused: bool = False
    """Whether the equal budget prevented a call, or a reply came too late."""
    _settled: anyio.Event = field(default_factory=anyio.Event)

    @property
    def unused(self) -> Decimal:
        """The remaining budget, in calls, tokens, dollars or seconds."""
        return max(self.budget.limit - self.used, ZERO)

    async def hold(self, bound: Decimal) -> None:
        """Reserve a call's maximum use once it fits the budget; BudgetSpent if it never fits."""
        while not self._fits(bound):
            if not self.held or self.budget.unit == "calls":
                raise self._spent()
            await self._settled.wait()
        self.held += bound

    def begins_s(self) -> float:
        """Return when a call sent now begins, in seconds on the critical path."""
        begins = current().begins_s
        return self.now_s if begins is None else begins

    def _fits(self, bound: Decimal) -> bool:
        used, limit = self.used + self.held, self.budget.limit
        if self.budget.unit == "seconds":
            return self.begins_s() < limit
        # The first call may use what is kept for later ones: without it there is no answer.
        keeps = current().keeps if self.budget.unit == "calls" and used else 0
        return used + bound + keeps <= limit

    def settle(self, bound: Decimal, amount: Decimal) -> None:
        """Replace the amount reserved for a call by the amount that the call used."""
        self.held -= bound
        self.used += amount
        self._settled.set()
        self._settled = anyio.Event()

    def arrived(self, end_s: float) -> None:
        """Note the end of a reply on the critical path; BudgetSpent if the reply is too late."""
        self.now_s = max(self.now_s, end_s)
        if self.budget.unit == "seconds":
            self.used = Decimal(str(round(self.now_s, 6)))
            if end_s > self.budget.limit:
                raise self._spent()

    def _spent(self) -> BudgetSpent:
        self.refused = True
        return BudgetSpent(f"the budget of {self.budget} for this question is spent")


@dataclass(slots=True)
class CallInEnvelope:
    """A call within an equal budget: when it began, its maximum use and its actual use."""

    most: Decimal
    price: Price | None
    taken: Decimal
    """Calls, tokens or dollars that the call used; its maximum until the reply has come."""
    begins_s: float = 0.0

    def replied(self, budget: EqualBudget, usage: Usage | None, lost: int) -> None:
        """Note the amount that a reply used, plus the maximum of each of `lost` failed requests."""
        amount = budget.taken(usage, self.price)
        self.taken = (self.most if amount is None else amount) + lost * self.most


@asynccontextmanager
async def within(
    envelope: Envelope, request: Request, price: Price | None
) -> AsyncGenerator[CallInEnvelope]:
    """Make a call within the budget of its question; BudgetSpent if it does not fit."""
    budget = envelope.budget
    bound = budget.most(request.prompt_bytes, request.max_tokens, price)
    if bound is None:
        raise UserError(
            f"{request.role} has no max_tokens or no price, so {budget} cannot be enforced: set "
            "both in the pool file."
        )
    await envelope.hold(bound)
    call = CallInEnvelope(bound, price, bound, envelope.begins_s())
    try:
        yield call
    finally:
        envelope.settle(bound, call.taken)
