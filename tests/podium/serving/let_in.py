"""Requests that are let in, or refused, by a clock that is set by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import anyio
import pytest

from podium.harness.budget import Spend
from podium.harness.prices.cost import Price
from podium.harness.records import Usage
from podium.serving.access_keys import Caller
from podium.serving.admission import Admission, ServingLimits, SpentBefore
from podium.serving.exchange import Refusal
from tests.harness.runs import BOOK, allowed

WORKERS = ("ada", "bob", "cy")
DOLLARS = replace(BOOK, prices={one: Price(Decimal(1_000_000), Decimal(0)) for one in WORKERS})
"""A token of input is a dollar."""
EVENING = datetime(2026, 11, 23, 23, 59, 0, tzinfo=UTC)
MODEL = "podium/conductor"
ALICE, BOB, LOCAL = Caller("alice"), Caller("bob"), Caller()


@dataclass
class Wall:
    """A clock that is set by hand."""

    now: datetime = EVENING

    def __call__(self) -> datetime:
        return self.now


def usd(amount: int | None) -> Decimal | None:
    """Return dollars; None where nobody says how many."""
    return None if amount is None else Decimal(amount)


def let_in(
    limits: Mapping[str, int] | None = None,
    clock: Callable[[], datetime] | None = None,
    before: SpentBefore | None = None,
) -> Admission:
    """Return who lets in within limits of dollars."""
    known = replace(ServingLimits(), **{name: Decimal(one) for name, one in (limits or {}).items()})
    return Admission(DOLLARS, known, clock or Wall(), before)


async def ask(
    spend: Spend, cost: int | None = 1, most: int | None = 1, worker: str = "ada"
) -> None:
    """Make one call, which is a dollar's by default; without a price where `cost` is None."""
    async with allowed(spend, worker, usd(most)) as allowance:
        await anyio.sleep(0)
        usage = None if cost is None else Usage(input=cost)
        allowance.paid(spend.price(worker, usage))


def spend_by(admission: Admission, caller: Caller, *costs: int | None) -> None:
    """Let a caller ask one request a call."""

    async def all_of_them() -> None:
        for cost in costs:
            with admission.admit(caller, MODEL) as spend:
                await ask(spend, cost, cost)

    anyio.run(all_of_them)


def refused(admission: Admission, caller: Caller, *names: str) -> Refusal:
    """Return why a request is not let in."""
    with pytest.raises(Refusal) as stop, admission.admit(caller, *(names or (MODEL,))):
        pass
    return stop.value
