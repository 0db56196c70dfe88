"""A limit holds for any bounds, costs and order of events; what fits is allowed in the end."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit
from podium.harness.ledger.call import TEMPLATE, Attempted, upper_bound
from podium.harness.prices.cost import Price, Rates, Service, Tier, cost
from podium.harness.records import Usage
from tests.harness.runs import BOOK, allowed

WORKERS = ("ada", "bob", "cy")
PRICES = {name: Price(Decimal(1_000_000), Decimal(0)) for name in WORKERS}
DOLLARS = replace(BOOK, prices=PRICES)
"""A token of input is a dollar."""


@dataclass(frozen=True)
class Drawn:
    """One call: what it may cost, what it costs, and how long it takes to begin and to end."""

    worker: str
    most: int | None
    usd: int
    lost: bool
    question: int
    waits: tuple[int, int]


@st.composite
def calls(draw: st.DrawFn, *, honest: bool = True) -> Drawn:
    most = draw(st.integers(0, 9))
    usd = draw(st.integers(0, most if honest else 20))
    waits = draw(st.tuples(st.integers(0, 4), st.integers(0, 6)))
    worker, question = draw(st.sampled_from(WORKERS)), draw(st.integers(0, 2))
    return Drawn(worker, most, usd, draw(st.booleans()) and honest, question, waits)


@dataclass
class Watch:
    """A run of drawn calls, and what was seen of it."""

    spend: Spend
    per_call: bool = False
    in_flight: list[Drawn] = field(default_factory=list[Drawn])
    refused: list[Drawn] = field(default_factory=list[Drawn])
    asked: list[Drawn] = field(default_factory=list[Drawn])
    at_once: int = 0
    """The most calls of `bob` that were in flight together."""

    async def ask(self, call: Drawn, spend: Spend) -> None:
        for _ in range(call.waits[0]):
            await anyio.sleep(0)
        most = None if call.most is None else Decimal(call.most)
        try:
            async with allowed(spend, call.worker, most) as allowance:
                self.in_flight.append(call)
                self.asked.append(call)
                bobs = [one for one in self.in_flight if one.worker == "bob"]
                self.at_once = max(self.at_once, len(bobs))
                for _ in range(call.waits[1]):
                    await anyio.sleep(0)
                self.in_flight.remove(call)
                if call.lost:
                    allowance.lost()
                else:
                    allowance.paid(spend.price(call.worker, Usage(input=call.usd)))
        except SpendLimit:
            self.refused.append(call)
            if self.per_call:
                assert self.in_flight == []
                assert self.spend.limit is not None
                assert self.spend.gone + (most or 0) > self.spend.limit

    def run(self, drawn: Sequence[Drawn], *, questions: bool = False) -> None:
        async def all_of_them() -> None:
            meters = [self.spend.for_question() if questions else self.spend for _ in range(3)]
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    for call in drawn:
                        tasks.start_soon(self.ask, call, meters[call.question])

        anyio.run(all_of_them)


@given(st.lists(calls(), max_size=25), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_no_limit_is_passed_and_whatever_fits_is_asked(drawn: list[Drawn], limit: int) -> None:
    watch = Watch(Spend(DOLLARS, Decimal(limit)), per_call=True)
    watch.run(drawn)
    assert watch.spend.gone <= limit
    assert len(watch.asked) + len(watch.refused) == len(drawn)


@given(st.lists(calls(), max_size=25), st.integers(1, 40), st.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_neither_a_runs_limit_nor_a_questions_is_passed(
    drawn: list[Drawn], limit: int, each: int
) -> None:
    watch = Watch(Spend(DOLLARS, Decimal(limit), per_question=Decimal(each)))
    watch.run(drawn, questions=True)
    assert watch.spend.gone <= limit
    for question in range(3):
        asked = [one for one in watch.asked if one.question == question]
        assert sum((one.most or 0) if one.lost else one.usd for one in asked) <= each


@given(st.lists(calls(honest=False), max_size=25), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_replies_above_their_bounds_cost_no_more_than_their_own_excess(
    drawn: list[Drawn], limit: int
) -> None:
    watch = Watch(Spend(DOLLARS, Decimal(limit)))
    watch.run(drawn)
    excess = sum(max(0, one.usd - (one.most or 0)) for one in watch.asked)
    assert watch.spend.gone <= limit + excess


def bobs(costs: Sequence[int], most: int | None = 2) -> list[Drawn]:
    return [Drawn("bob", most, usd, lost=False, question=0, waits=(0, 3)) for usd in costs]


def test_calls_of_a_bounded_worker_run_side_by_side_once_the_first_has_come_back() -> None:
    watch = Watch(Spend(DOLLARS, Decimal(100)))
    watch.run(bobs([1]))
    assert watch.at_once == 1
    watch.run(bobs([1] * 8))
    assert watch.at_once == 8


def test_the_first_call_of_a_worker_goes_alone() -> None:
    watch = Watch(Spend(DOLLARS, Decimal(3)))
    watch.run(bobs([9] * 3, most=1))
    assert len(watch.asked) == 1


def test_a_worker_without_a_bound_is_asked_one_call_at_a_time() -> None:
    watch = Watch(Spend(DOLLARS, Decimal(100)))
    watch.run([*bobs([1] * 8, most=None), *(replace(one, worker="ada") for one in bobs([1] * 4))])
    assert (watch.at_once, len(watch.asked)) == (1, 12)


def test_without_a_limit_nobody_waits() -> None:
    watch = Watch(Spend(DOLLARS))
    watch.run(bobs([1] * 8, most=None))
    assert watch.at_once == 8


def test_a_worker_that_passed_its_bound_is_asked_one_call_at_a_time_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = Watch(Spend(DOLLARS, Decimal(1000)))
    with caplog.at_level(logging.WARNING):
        watch.run(bobs([5, 1, 7]))
        watch.at_once = 0
        watch.run(bobs([3] * 8))
    assert watch.at_once == 1
    (said,) = [one.getMessage() for one in caplog.records if one.name == "podium.harness.budget"]
    assert said.startswith(
        "A reply of bob cost $5.0000, more than the maximum of $2.0000 that "
        "was calculated for its request"
    )


def test_one_that_passed_its_bound_holds_back_its_dearest_call() -> None:
    watch = Watch(Spend(DOLLARS, Decimal(10)))
    watch.run(bobs([6]))
    watch.run(bobs([1]))
    assert (watch.spend.gone, len(watch.refused)) == (6, 1)


def test_a_call_beside_a_refused_one_of_its_question_is_not_begun() -> None:
    """It would be broken off, for its question has failed; other questions go on."""
    dear, cheap = bobs([9], most=9), bobs([1], most=1)
    watch = Watch(Spend(DOLLARS, Decimal(5)))
    watch.run([*dear, *cheap, replace(cheap[0], question=1)], questions=True)
    assert [one.question for one in watch.asked] == [1]


def test_a_call_that_fits_goes_before_an_older_one_that_does_not() -> None:
    watch = Watch(Spend(DOLLARS, Decimal(5)), per_call=True)
    watch.run([*bobs([2], most=4), *bobs([3], most=4), *bobs([1], most=1)])
    assert [one.usd for one in watch.asked] == [2, 1]


rates = st.decimals(0, 100, places=2)
some_rates = st.none() | rates


@st.composite
def prices(draw: st.DrawFn) -> Price:
    tier = Rates(draw(rates), draw(rates), *(draw(some_rates) for _ in range(4)))
    return Price(
        draw(rates),
        draw(rates),
        *(draw(some_rates) for _ in range(4)),
        tiers=draw(st.sampled_from([(), (Tier(2000, tier),)])),
        request=draw(rates),
        services={"batch": Decimal("0.5"), "priority": Decimal("1.75")},
        full_rate=draw(st.sampled_from([{}, {"priority": ("cache_read",)}])),
    )


@given(
    prices(),
    st.integers(0, 4000),
    st.integers(0, 4000),
    st.lists(st.integers(0, 100), min_size=6, max_size=6),
    st.sampled_from(["standard", "batch", "priority"]),
)
def test_no_honest_usage_costs_more_than_the_bound(
    price: Price, size: int, most: int, parts: list[int], service: Service
) -> None:
    """Input is no more than the prompt can be, however it is cached; output no more than asked."""
    prompt = size + TEMPLATE
    read, write = prompt * parts[0] // 300, prompt * parts[1] // 300
    output = most * parts[2] // 100
    usage = Usage(
        input=(prompt - read - write) * parts[3] // 100,
        output=output,
        cache_read=read,
        cache_write=write,
        cache_write_1h=write * parts[4] // 100,
        reasoning=output * parts[5] // 100,
    )
    usd = cost(usage, price, service)
    bound = upper_bound(Attempted("unknown", "none", None, service, size, most), price)
    assert bound is not None
    assert usd is None or usd <= bound
