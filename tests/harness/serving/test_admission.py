"""Who is let in and for how much: no meter above a request is passed, and none forgets a call."""

import logging
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.budget import Spend
from harness.errors import DayLimit, QuestionLimit, SpendLimit, UserError
from harness.ledger.call import Call
from harness.prices.cost import Price
from harness.records import Usage
from harness.serving.access_keys import Caller
from harness.serving.admission import Admission, ServingLimits, SpentBefore
from harness.serving.exchange import Refusal
from tests.harness.ledger.ledger_rows import row
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


@dataclass(frozen=True)
class Served:
    """A request as journals have it."""

    key: str | None
    day: date
    rows: Sequence[Call]


def usd(amount: int | None) -> Decimal | None:
    return None if amount is None else Decimal(amount)


def let_in(
    clock: Callable[[], datetime] | None = None,
    before: SpentBefore | None = None,
    **limits: int,
) -> Admission:
    """Return who lets in within limits of dollars."""
    known = replace(ServingLimits(), **{name: Decimal(one) for name, one in limits.items()})
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
    with pytest.raises(Refusal) as stop, admission.admit(caller, *(names or (MODEL,))):
        pass
    return stop.value


def test_more_requests_at_once_than_a_key_may_have_are_refused_for_a_second() -> None:
    admission = Admission(DOLLARS, ServingLimits(concurrency=2), Wall())
    few = replace(BOB, concurrency=1)
    with ExitStack() as open_requests:
        for caller in (ALICE, ALICE, few, LOCAL, LOCAL):
            open_requests.enter_context(admission.admit(caller, MODEL))
        for caller, most in ((ALICE, 2), (few, 1), (LOCAL, 2)):
            refusal = refused(admission, caller)
            assert (refusal.status, refusal.kind, refusal.retry_after_s) == (429, "too_many", 1)
            assert str(refusal).startswith(f"{most} requests of this key are in flight")
        assert admission.in_flight == 5
    assert admission.in_flight == 0
    with admission.admit(ALICE, MODEL):
        pass


def test_a_request_that_fails_leaves_its_place_to_the_next() -> None:
    admission = Admission(DOLLARS, ServingLimits(concurrency=1), Wall())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), admission.admit(ALICE, MODEL):
            raise ZeroDivisionError


def test_a_model_that_a_key_may_not_ask_by_any_of_its_names_is_forbidden() -> None:
    admission, caller = let_in(), replace(ALICE, models=("podium/mini",))
    refusal = refused(admission, caller, "podium/ultra", "podium/ultra-20261123-0123")
    assert (refusal.status, refusal.kind, refusal.param) == (403, "forbidden", "model")
    assert "podium/ultra." in str(refusal)
    with admission.admit(caller, "podium/moa-lite", "podium/mini"):
        pass


@pytest.mark.parametrize(
    ("limits", "caller", "said", "wait"),
    [
        ({"max_usd": 3}, ALICE, "--max-usd 3", None),
        ({"max_usd_per_day": 3}, ALICE, "--max-usd-per-day 3", 60),
        ({"max_usd_per_key": 3}, ALICE, "--max-usd-per-key 3", None),
        ({"max_usd_per_key": 3}, LOCAL, "--max-usd-per-key 3", None),
        ({"max_usd_per_key": 9}, replace(ALICE, max_usd=usd(3)), "alice.max_usd 3", None),
        ({}, replace(ALICE, max_usd_per_day=usd(3)), "alice.max_usd_per_day 3", 60),
        ({"max_usd": 3, "max_usd_per_day": 3}, ALICE, "--max-usd 3", None),
    ],
)
def test_once_the_dollars_are_gone_nobody_is_let_in_and_the_limit_is_named(
    limits: dict[str, int], caller: Caller, said: str, wait: int | None
) -> None:
    admission = let_in(**limits)
    spend_by(admission, caller, 1, 2)
    refusal = refused(admission, caller)
    assert (refusal.status, refusal.kind) == (429, "out_of_budget")
    assert refusal.retry_after_s == wait
    assert str(refusal).startswith(f"$3.0000 of {said} is spent, and the next call could pass it")
    assert ("; a new day begins at 00:00 UTC." in str(refusal)) == (wait is not None)
    assert "same command" not in str(refusal)


@pytest.mark.parametrize(
    ("limits", "caller", "said", "error"),
    [
        ({"max_usd": 3}, ALICE, "of --max-usd 3 is spent", SpendLimit),
        ({"max_usd_per_day": 3}, ALICE, "of --max-usd-per-day 3 is spent", DayLimit),
        ({"max_usd_per_key": 3}, ALICE, "of --max-usd-per-key 3 is spent", SpendLimit),
        ({}, replace(ALICE, max_usd=usd(3)), "of alice.max_usd 3 is spent", SpendLimit),
        ({}, replace(ALICE, max_usd_per_day=usd(3)), "alice.max_usd_per_day 3 is", DayLimit),
        ({"max_usd_per_query": 3}, ALICE, "could pass --max-usd-per-query 3 (", QuestionLimit),
    ],
)
def test_a_call_that_could_pass_a_limit_is_not_made_and_the_limit_is_named(
    limits: dict[str, int], caller: Caller, said: str, error: type[SpendLimit]
) -> None:
    clock = Wall()
    admission = let_in(clock, **limits)

    async def two_calls() -> None:
        with admission.admit(caller, MODEL) as spend:
            await ask(spend, 2, 2)
            await ask(spend, 2, 2)

    with pytest.raises(SpendLimit) as stop:
        anyio.run(two_calls)
    assert type(stop.value) is error
    assert said in str(stop.value)
    assert str(stop.value).count("(it could cost up to $2)") == 1
    assert "same command" not in str(stop.value)
    refusal = admission.refusal(stop.value)
    assert (refusal.status, refusal.kind) == (429, "out_of_budget")
    assert refusal.retry_after_s == (60 if error is DayLimit else None)
    clock.now += timedelta(minutes=5)  # its day is over: asking again helps at once
    assert admission.refusal(stop.value).retry_after_s == (1 if error is DayLimit else None)


def test_a_key_without_dollars_leaves_the_others_theirs() -> None:
    admission = let_in(max_usd_per_key=3)
    spend_by(admission, ALICE, 3)
    refused(admission, ALICE)
    spend_by(admission, BOB, 3)
    assert admission.spend.gone == 6


def test_a_new_day_has_new_dollars_and_a_request_in_flight_counts_where_it_was_let_in() -> None:
    clock = Wall()
    admission = let_in(clock, max_usd_per_day=3, max_usd=7)

    async def over_midnight() -> None:
        with admission.admit(ALICE, MODEL) as late:
            await ask(late, 2, 2)
            clock.now += timedelta(minutes=2)
            with admission.admit(ALICE, MODEL) as early:
                await ask(early, 3, 3)
                with pytest.raises(DayLimit):
                    await ask(early)
                await ask(late)
                with pytest.raises(DayLimit):
                    await ask(late)

    anyio.run(over_midnight)
    refusal = refused(admission, ALICE)
    assert "--max-usd-per-day 3" in str(refusal)
    assert refusal.retry_after_s == 24 * 3600 - 60
    assert admission.spend.gone == 6


def test_a_clock_that_is_set_back_gives_no_day_its_dollars_twice() -> None:
    clock = Wall()
    admission = let_in(clock, max_usd_per_day=3)
    clock.now += timedelta(minutes=2)
    spend_by(admission, ALICE, 3)
    for minutes in (-2, 2):
        clock.now += timedelta(minutes=minutes)
        refused(admission, ALICE)


def test_a_clock_in_another_zone_has_the_same_days() -> None:
    clock = Wall()
    admission = let_in(clock, max_usd_per_day=3)
    spend_by(admission, ALICE, 3)
    clock.now = EVENING.astimezone(ZoneInfo("Asia/Tokyo"))
    assert refused(admission, ALICE).retry_after_s == 60


def test_a_limit_that_is_changed_in_a_keys_table_holds_from_the_next_request_on() -> None:
    admission = let_in()
    spend_by(admission, ALICE, 3)
    refused(admission, replace(ALICE, max_usd=usd(3)))
    spend_by(admission, replace(ALICE, max_usd=usd(4)), 1)
    refused(admission, replace(ALICE, max_usd=usd(4)))
    spend_by(admission, ALICE, 1)


def test_a_limit_that_is_set_while_calls_are_in_flight_counts_them() -> None:
    admission, limited = let_in(), replace(ALICE, max_usd=usd(3))

    async def beside() -> None:
        with admission.admit(ALICE, MODEL) as first:
            async with allowed(first, "bob", usd(2)) as allowance, anyio.create_task_group() as all:
                with admission.admit(limited, MODEL) as second:
                    all.start_soon(too_much, second)
                    await anyio.wait_all_tasks_blocked()
                    assert asked == []  # it waits: two dollars of three are held
                    allowance.paid(first.price("bob", Usage(input=2)))
                    allowance.release()
        assert asked == ["refused"]

    async def too_much(spend: Spend) -> None:
        with pytest.raises(SpendLimit, match=r"of alice\.max_usd 3 is spent"):
            await ask(spend, 2, 2)
        asked.append("refused")

    asked: list[str] = []
    anyio.run(beside)


def test_after_a_call_without_a_price_no_limited_request_is_let_in() -> None:
    admission = let_in(max_usd_per_day=100)
    spend_by(admission, ALICE, None)
    refusal = refused(admission, BOB)
    assert (refusal.kind, refusal.retry_after_s) == ("out_of_budget", None)
    assert str(refusal).endswith(
        "so --max-usd-per-day cannot hold: complete the price book or leave --max-usd-per-day out."
    )
    free = let_in()
    spend_by(free, ALICE, None, 1)


def test_a_reply_above_its_bound_is_told_once_where_a_key_alone_has_a_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admission = let_in(max_usd_per_key=9)

    async def lies() -> None:
        for _ in range(2):
            with admission.admit(ALICE, MODEL) as spend:
                await ask(spend, cost=2, most=1)

    with caplog.at_level(logging.WARNING):
        anyio.run(lies)
    assert [one.getMessage().split(" cost")[0] for one in caplog.records] == ["A reply of ada"]


# ---- Any requests side by side ----


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


# ---- What earlier processes have spent ----

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
    admission = let_in(before=BEFORE, **limits)
    assert admission.spend.gone == 9
    if stops:
        assert refused(admission, caller).kind == "out_of_budget"
    else:
        spend_by(admission, caller, 1)


UNPRICED = SpentBefore.of([served("alice", TODAY, row(usd=None, role="clerk"))])
NO_PRICE = r"Calls of 'clerk' in one.jsonl have no price, so a limit of dollars cannot hold: "


@pytest.mark.parametrize("name", ["max_usd", "max_usd_per_day", "max_usd_per_key"])
def test_where_calls_before_had_no_price_no_limit_can_be_set(name: str) -> None:
    with pytest.raises(UserError, match=NO_PRICE):
        let_in(before=UNPRICED, **{name: 5})


def test_where_calls_before_had_no_price_a_key_with_a_limit_is_not_let_in() -> None:
    admission = Admission(DOLLARS, ServingLimits(max_usd_per_query=usd(5)), Wall(), UNPRICED)
    spend_by(admission, ALICE, 1)
    refusal = refused(admission, replace(ALICE, max_usd=usd(5)))
    assert refusal.kind == "out_of_budget"
    assert str(refusal).startswith("Calls of 'clerk' in one.jsonl have no price")


def test_days_that_are_over_are_let_go() -> None:
    clock = Wall()
    admission = let_in(clock)
    for _ in range(50):
        spend_by(admission, ALICE, 1)
        clock.now += timedelta(days=1)
    counted = Counter(purse.day is None for purse in admission._meters)
    assert counted == {True: 2, False: 2}
