"""What may have been billed counts against a limit, at once and after a run was begun again."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from podium.harness.budget import Spend
from podium.harness.context import run_context
from podium.harness.errors import SpendLimit
from podium.harness.ledger.call import TEMPLATE, Attempted, upper_bound
from podium.harness.ledger.system_runs import spent_so_far
from podium.harness.prices.cost import Price, Rates, Tier
from podium.harness.records import Usage
from tests.harness.runs import BOOK, allowed
from tests.providers import flaky as moody

SAGE = "scripted/sage"
ONE = Usage(input=500_000)
"""Of the sage: one dollar."""


async def ask(spend: Spend, *, lost: bool = False, most: Decimal | None = None) -> None:
    async with allowed(spend, SAGE):
        if lost:
            spend.lost(SAGE, most)
        else:
            spend.add(spend.price(SAGE, ONE))


async def ask_times(spend: Spend, *lost: bool) -> None:
    for one in lost:
        await ask(spend, lost=one)


def test_a_call_that_got_no_answer_counts_as_the_most_it_can_have_cost() -> None:
    spend = Spend(BOOK, limit=Decimal(5))
    anyio.run(lambda: ask(spend, lost=True, most=Decimal(5)))
    assert spend.gone == 5
    with pytest.raises(SpendLimit, match=r"\$5.0000 of --max-usd 5 is spent"):
        anyio.run(lambda: ask(spend))


@pytest.mark.parametrize("order", [(False, True, True), (True, True, False)])
def test_one_that_nothing_bounds_counts_as_the_dearest_call_whenever_that_is_known(
    order: tuple[bool, ...],
) -> None:
    spend = Spend(BOOK, limit=Decimal(3))
    anyio.run(lambda: ask_times(spend, *order))
    assert (spend.spent, spend.gone) == (1, 3)
    with pytest.raises(SpendLimit):
        anyio.run(lambda: ask(spend))


def test_a_question_that_lost_a_call_has_less_left() -> None:
    run = Spend(BOOK, per_question=Decimal(4))
    question = run.for_question()
    question.lost(SAGE, Decimal(3))
    assert (question.gone, run.gone) == (3, 3)


def test_a_reply_from_the_local_cache_is_in_a_questions_budget_and_in_no_runs() -> None:
    run = Spend(BOOK, per_question=Decimal(4))
    question = run.for_question()
    assert question.add(question.price(SAGE, ONE), cached=True) == 1
    assert (question.gone, run.gone) == (1, 0)


def test_the_meter_of_a_run_and_the_sum_of_its_journals_are_one(tmp_path: Path) -> None:
    moods = ["q1: answer", "q2: die", "q3: 429 answer", "q4: 400", "q5: long", "q6: die"]
    prices = {"moody/sage": Price(Decimal(1_000_000), Decimal(2_000_000))}
    spend = Spend(replace(BOOK, prices=prices))
    with run_context(spend=spend):
        moody.sat(tmp_path, moods)
    assert spend.spent > 0
    assert spend.gone == spent_so_far(tmp_path, spend.book).usd


@pytest.mark.parametrize(
    ("price", "service", "most"),
    [
        pytest.param(Price(Decimal(2), Decimal(10)), "standard", "1200", id="plain"),
        pytest.param(
            Price(Decimal(2), Decimal(10), cache_write=Decimal("2.5"), cache_write_1h=Decimal(4)),
            "standard",
            "1400",
            id="written-to-a-cache",
        ),
        pytest.param(
            Price(Decimal(2), Decimal(10), reasoning=Decimal(20)), "standard", "2200", id="thought"
        ),
        pytest.param(
            Price(Decimal(2), Decimal(10), services={"priority": Decimal(2)}),
            "priority",
            "2400",
            id="priority",
        ),
        pytest.param(
            Price(Decimal(2), Decimal(10), services={"batch": Decimal("0.5")}),
            "batch",
            "1200",
            id="batch-may-be-served-as-usual",
        ),
        pytest.param(Price(Decimal(2), Decimal(10)), "flex", None, id="no-price"),
        pytest.param(
            Price(
                Decimal(2), Decimal(10), tiers=(Tier(50_000_000, Rates(Decimal(3), Decimal(11))),)
            ),
            "standard",
            "1400",
            id="tier",
        ),
        pytest.param(
            Price(Decimal(2), Decimal(10), orchestration_in=Decimal(1)),
            "standard",
            None,
            id="tokens-of-its-own",
        ),
    ],
)
def test_a_bound_is_the_dearest_that_the_book_allows(
    price: Price, service: str, most: str | None
) -> None:
    """A prompt of 100 MB, its template included, and a reply of 100 million tokens."""
    size = 100_000_000
    attempted = Attempted("unknown", "none", None, service, size - TEMPLATE, size)  # pyright: ignore[reportArgumentType]
    assert upper_bound(attempted, price) == (None if most is None else Decimal(most))
