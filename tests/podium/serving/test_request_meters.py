"""No meter above a request is passed, none forgets a call, and a restart forgets nothing either."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError
from podium.harness.ledger.call import Call
from podium.harness.records import Usage
from podium.serving.access_keys import Caller
from podium.serving.admission import Admission, ServingLimits, SpentBefore
from podium.serving.exchange import Refusal
from tests.harness.ledger.ledger_rows import row
from tests.harness.runs import allowed
from tests.podium.serving.let_in import (
    ALICE,
    BOB,
    DOLLARS,
    EVENING,
    LOCAL,
    MODEL,
    WORKERS,
    Wall,
    let_in,
    refused,
    spend_by,
    usd,
)


@dataclass(frozen=True)
class Served:
    """A request as journals have it."""

    key: str | None
    day: date
    rows: Sequence[Call]


@dataclass(frozen=True)
class Asked:
    """One call: what it may cost, what it costs, and how long it takes to begin and to end."""

    worker: str
    most: int | None
    usd: int
    lost: bool
    waits: tuple[int, int]

    @property
    def row(self) -> Call:
        """What the ledger has of it."""
        if not self.lost:
            return row(price_ref=self.worker, usd=Decimal(self.usd), usd_high=Decimal(self.usd))
        return row(price_ref=self.worker, billable="unknown", usd=None, usd_high=usd(self.most))


@dataclass(frozen=True)
class Drawn:
    """A request: who makes it, when, and its calls, which go side by side."""

    caller: Caller
    late: bool
    calls: Sequence[Asked]


@st.composite
def calls(draw: st.DrawFn, *, bounded: bool) -> Asked:
    most = draw(st.integers(0, 9))
    cost, lost = draw(st.integers(0, most)), draw(st.booleans())
    waits = draw(st.tuples(st.integers(0, 4), st.integers(0, 6)))
    bound = most if bounded or draw(st.booleans()) else None
    return Asked(draw(st.sampled_from(WORKERS)), bound, cost, lost, waits)


def some_limit(most: int) -> st.SearchStrategy[Decimal | None]:
    return st.none() | st.integers(1, most).map(Decimal)


callers = st.builds(
    lambda each, day: [replace(one, max_usd=each, max_usd_per_day=day) for one in (ALICE, BOB)],
    some_limit(20),
    some_limit(15),
).map(lambda keyed: [*keyed, LOCAL])
limits = st.builds(
    ServingLimits,
    max_usd=some_limit(40),
    max_usd_per_query=some_limit(15),
    max_usd_per_day=some_limit(30),
    max_usd_per_key=some_limit(25),
)


def requests(*, bounded: bool) -> st.SearchStrategy[list[Drawn]]:
    some_calls = st.lists(calls(bounded=bounded), min_size=1, max_size=5)
    return callers.flatmap(
        lambda known: st.lists(
            st.builds(Drawn, st.sampled_from(known), st.booleans(), some_calls), max_size=8
        )
    )


@dataclass
class Watch:
    """Requests side by side over midnight, and what was seen of them."""

    limits: ServingLimits
    clock: Wall = field(default_factory=Wall)
    served: list[Served] = field(default_factory=list[Served])
    bills: list[tuple[Drawn, Spend, list[Asked]]] = field(
        default_factory=list[tuple[Drawn, Spend, list[Asked]]]
    )
    stops: list[SpendLimit] = field(default_factory=list[SpendLimit])
    refused: int = 0

    def run(self, drawn: Sequence[Drawn]) -> "Watch":
        self.admission = Admission(DOLLARS, self.limits, self.clock)

        async def all_of_them() -> None:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as tasks:
                    for late in (False, True):
                        for one in drawn:
                            if one.late is late:
                                tasks.start_soon(self.request, one)
                        for _ in range(5):
                            await anyio.sleep(0)
                        self.clock.now = EVENING + timedelta(minutes=2)

        anyio.run(all_of_them)
        return self

    async def request(self, drawn: Drawn) -> None:
        try:
            with self.admission.admit(drawn.caller, MODEL) as spend:
                made: list[Asked] = []
                self.bills.append((drawn, spend, made))
                day = self.clock.now.date()
                async with anyio.create_task_group() as tasks:
                    for call in drawn.calls:
                        tasks.start_soon(self.call, spend, call, made)
                self.served.append(Served(drawn.caller.name, day, [one.row for one in made]))
        except Refusal as refusal:
            assert refusal.kind == "out_of_budget"  # noqa: PT017 - others are expected
            self.refused += len(drawn.calls)

    async def call(self, spend: Spend, call: Asked, made: list[Asked]) -> None:
        for _ in range(call.waits[0]):
            await anyio.sleep(0)
        try:
            async with allowed(spend, call.worker, usd(call.most)) as allowance:
                made.append(call)
                for _ in range(call.waits[1]):
                    await anyio.sleep(0)
                if call.lost:
                    allowance.lost()
                else:
                    allowance.paid(spend.price(call.worker, Usage(input=call.usd)))
        except SpendLimit as stop:
            self.refused += 1
            if stop not in self.stops and call.most is not None:
                # Calls beside it end for the same reason; this one could have passed a limit.
                left = [one.limit - one.gone for one in spend.meters if one.limit is not None]
                assert min(left) < call.most or min(left) <= 0
            self.stops.append(stop)

    def meters(self) -> dict[int, tuple[Spend, list[Asked]]]:
        """Return every meter once, with the calls that were made below it."""
        found: dict[int, tuple[Spend, list[Asked]]] = {}
        for _, spend, made in self.bills:
            for meter in spend.meters:
                found.setdefault(id(meter), (meter, []))[1].extend(made)
        return found


@given(requests(bounded=True), limits)
@settings(max_examples=120)
def test_no_meter_is_passed_and_each_has_all_that_was_billed_below_it(
    drawn: list[Drawn], limits: ServingLimits
) -> None:
    watch = Watch(limits).run(drawn)
    for meter, made in watch.meters().values():
        assert meter.gone == sum((one.most or 0) if one.lost else one.usd for one in made)
        assert meter.limit is None or meter.gone <= meter.limit
        assert (meter._held, meter._flying.total()) == (0, 0)
    asked = sum(len(made) for _, _, made in watch.bills)
    assert asked + watch.refused == sum(len(one.calls) for one in drawn)
    assert watch.admission.in_flight == 0


@given(requests(bounded=False))
@settings(max_examples=40)
def test_without_limits_everybody_is_served_at_once(drawn: list[Drawn]) -> None:
    free = [replace(one, caller=Caller(one.caller.name)) for one in drawn]
    assert Watch(ServingLimits()).run(free).refused == 0


def still_open(meter: Spend, dearest: Container[str]) -> Counter[str]:
    """Return what was lost of prices that nobody has learned."""
    return Counter({ref: n for ref, n in meter.unbounded.items() if ref not in dearest})


@given(requests(bounded=False), limits)
@settings(max_examples=120)
def test_a_new_process_begins_with_the_meters_that_the_last_one_had(
    drawn: list[Drawn], limits: ServingLimits
) -> None:
    """What was lost counts as the dearest of its price once that is known, whoever asked it."""
    watch = Watch(limits).run(drawn)
    again = Admission(DOLLARS, limits, watch.clock, SpentBefore.of(watch.served))
    assert again.spend.gone == watch.admission.spend.gone
    for caller in {drawn.caller for drawn, _, _ in watch.bills}:
        one, other = (each._above(caller) for each in (watch.admission, again))
        assert [meter.gone for meter in one] == [meter.gone for meter in other]
        dearest = watch.admission.spend._dearest
        left, after = ([still_open(meter, dearest) for meter in each] for each in (one, other))
        assert left == after


TODAY, YESTERDAY = EVENING.date(), EVENING.date() - timedelta(days=1)


def served(key: str | None, day: date, *rows: Call) -> Served:
    return Served(key, day, rows)


def paid(amount: int, worker: str = "ada") -> Call:
    return row(price_ref=worker, usd=Decimal(amount), usd_high=Decimal(amount))


LOST = row(price_ref="ada", billable="unknown", usd=None, usd_high=None)
BEFORE = SpentBefore.of(
    [
        served("alice", YESTERDAY, paid(2), paid(1)),
        served("alice", TODAY, paid(4, "bob")),
        served("bob", TODAY, LOST),
        served(None, YESTERDAY, row(billable="no", usd=Decimal(0))),
    ]
)
"""Of the lost call nobody knows more than that the dearest of its worker was two dollars."""


@pytest.mark.parametrize(
    ("limits", "caller", "stops"),
    [
        ({"max_usd": 9}, ALICE, True),
        ({"max_usd": 10}, ALICE, False),
        ({"max_usd_per_day": 6}, ALICE, True),
        ({"max_usd_per_day": 7}, ALICE, False),
        ({"max_usd_per_key": 7}, ALICE, True),
        ({"max_usd_per_key": 8}, ALICE, False),
        ({"max_usd_per_key": 2}, BOB, True),
        ({"max_usd_per_key": 3}, BOB, False),
        ({"max_usd_per_key": 1}, LOCAL, False),
        ({}, replace(ALICE, max_usd_per_day=usd(4)), True),
        ({}, replace(ALICE, max_usd_per_day=usd(5)), False),
    ],
)
def test_a_restart_gives_nobody_their_dollars_back(
    limits: dict[str, int], caller: Caller, stops: bool
) -> None:
    admission = let_in(limits, before=BEFORE)
    assert admission.spend.gone == 9
    if stops:
        assert refused(admission, caller).kind == "out_of_budget"
    else:
        spend_by(admission, caller, 1)


UNPRICED = SpentBefore.of([served("alice", TODAY, row(usd=None, role="clerk"))])
NO_PRICE = (
    r"Calls of 'clerk' in one.jsonl have no price, so a limit of dollars cannot be enforced\. "
)


@pytest.mark.parametrize("name", ["max_usd", "max_usd_per_day", "max_usd_per_key"])
def test_where_calls_before_had_no_price_no_limit_can_be_set(name: str) -> None:
    with pytest.raises(UserError, match=NO_PRICE):
        let_in({name: 5}, before=UNPRICED)


def test_where_calls_before_had_no_price_a_key_with_a_limit_is_not_let_in() -> None:
    admission = Admission(DOLLARS, ServingLimits(max_usd_per_query=usd(5)), Wall(), UNPRICED)
    spend_by(admission, ALICE, 1)
    refusal = refused(admission, replace(ALICE, max_usd=usd(5)))
    assert refusal.kind == "out_of_budget"
    assert str(refusal).startswith("Calls of 'clerk' in one.jsonl have no price")
