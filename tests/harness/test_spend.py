"""A limit on dollars holds, also where nobody can say what a call cost."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from podium.cli import main
from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import system_runs_below
from podium.harness.ledger.system_runs import spent
from podium.harness.prices.cost import Service
from podium.harness.records import Usage
from podium.reports.audit import audit
from tests.harness.runs import BOOK, Crew, allowed, failing_on, sit, steps

SAGE = "scripted/sage"
PRICED = Usage(input=1_000_000)


async def ask_twice(spend: Spend, price_ref: str, usage: Usage | None) -> None:
    for _ in range(2):
        async with allowed(spend, price_ref):
            spend.add(spend.price(price_ref, usage))


@pytest.mark.parametrize(
    ("price_ref", "usage", "reason"),
    [
        pytest.param("acme/new", PRICED, "acme/new have no price .it is not in the book", id="ref"),
        pytest.param(SAGE, Usage(cache_read=5), "no rate for cached tokens", id="cached"),
        pytest.param(SAGE, None, "the provider reported no tokens", id="no-usage"),
    ],
)
def test_after_a_call_without_a_price_no_limited_call_is_made(
    price_ref: str, usage: Usage | None, reason: str
) -> None:
    with pytest.raises(SpendLimit, match=f"{reason}.*--max-usd cannot be enforced"):
        anyio.run(ask_twice, Spend(BOOK, limit=Decimal(100)), price_ref, usage)
    anyio.run(ask_twice, Spend(BOOK), price_ref, usage)


@pytest.mark.parametrize(
    ("service", "spent"),
    [
        pytest.param("standard", "2", id="standard"),
        pytest.param("batch", "1.0", id="batch"),
        pytest.param("priority", "4", id="dearer-than-the-list"),
        pytest.param("flex", None, id="no-factor"),
    ],
)
def test_the_meter_counts_a_call_as_it_was_served(service: Service, spent: str | None) -> None:
    factors: dict[Service, Decimal] = {"batch": Decimal("0.5"), "priority": Decimal(2)}
    book = replace(BOOK, prices={SAGE: replace(BOOK.prices[SAGE], services=factors)})
    spend = Spend(book, limit=Decimal(100))
    assert spend.add(spend.price(SAGE, PRICED, service)) == (
        None if spent is None else Decimal(spent)
    )
    assert (spend.unpriced is None) is (spent is not None)


def test_calls_that_wait_for_the_first_price_are_refused_with_it() -> None:
    async def both(spend: Spend) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, spend)
            tasks.start_soon(ask, spend)

    async def ask(spend: Spend) -> None:
        try:
            async with allowed(spend, SAGE):
                asked.append(SAGE)
                await anyio.sleep(0.01)
                spend.add(spend.price(SAGE, None))
        except SpendLimit as stop:
            refused.append(str(stop))

    asked: list[str] = []
    refused: list[str] = []
    anyio.run(both, Spend(BOOK, limit=Decimal(100)))
    assert (len(asked), len(refused)) == (1, 1)


def test_a_priced_call_leaves_the_next_one_its_way() -> None:
    spend = Spend(BOOK, limit=Decimal(4))
    anyio.run(ask_twice, spend, SAGE, PRICED)
    assert spend.spent == Decimal(4)


def test_a_refusal_waits_for_all_calls_in_flight_and_names_one_sum() -> None:
    """Two questions: a call of the one is in flight when one of the other is refused."""
    order: list[str] = []

    async def slow(spend: Spend, gate: anyio.Event) -> None:
        async with allowed(spend, SAGE):
            await gate.wait()
            spend.add(spend.price(SAGE, PRICED))
            order.append("ended")

    async def refused(spend: Spend, price_ref: str) -> None:
        with pytest.raises(SpendLimit) as stop:
            async with allowed(spend, price_ref):
                pass
        order.append(str(stop.value).partition(" is spent")[0])

    async def both() -> None:
        spend, gate = Spend(BOOK, limit=Decimal(5)), anyio.Event()
        spend.add(spend.price("scripted/clerk", Usage(input=500_000)))
        spend.add(spend.price(SAGE, PRICED))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow, spend, gate)
            await anyio.wait_all_tasks_blocked()
            spend.add(spend.price(SAGE, PRICED))
            for ref in (SAGE, "scripted/clerk", SAGE):
                tasks.start_soon(refused, spend, ref)
            await anyio.wait_all_tasks_blocked()
            assert order == []
            gate.set()

    anyio.run(both)
    assert order[0] == "ended"
    assert len(order) == 4
    assert len(set(order[1:])) == 1


@pytest.mark.parametrize("limits", [["--max-usd", "0.09"], ["--max-usd-per-query", "0.07"]])
def test_a_limit_breaks_off_no_call_so_that_a_strict_audit_holds(
    tmp_path: Path, limits: list[str]
) -> None:
    run = ["run", "--suite", "practice-integer", "--system", "moa-lite", "--pool", "rehearsal"]
    main(
        [*run, "--limit", "5", "--time-scale", "0.02", "--log-dir", str(tmp_path / "run"), *limits]
    )
    (files,) = system_runs_below(tmp_path / "run")
    assert {row.billable for row in rows_of(files)} == {"yes"}
    found = audit(tmp_path / "run", strict=True)
    assert {one.invariant for one in found.verdicts if one.status == "fail"} <= {"I10"}


def test_logged_replies_without_a_price_are_not_counted_as_nothing(tmp_path: Path) -> None:
    prices = {**BOOK.as_json(), "usd_per_mtok": {SAGE: {"input": "2", "output": "10"}}}
    sit(tmp_path, "pair", steps("sage", "clerk"), prices=prices)
    with pytest.raises(UserError, match=r"Calls of 'clerk' in .* have no price, so --max-usd"):
        spent(tmp_path, BOOK)


def test_a_logged_call_that_failed_counts_as_the_dearest_of_its_worker(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=failing_on("Say 3")))
    assert spent(tmp_path, BOOK) == 4 * Decimal("0.000014")
