"""What Inspect can be told of a price book, and that Inspect takes it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import ModelCost, ModelUsage, compute_model_cost

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.prices import Book, read_book
from podium.harness.prices.cost import Price, Tier, list_cost
from podium.harness.prices.snapshot import InspectCosts, inspect_costs, write_inspect_costs
from podium.harness.records import Usage

SONNET, GEMINI = "anthropic/claude-sonnet-4-20250514", "google/gemini-2.5-pro"
RATES = (Decimal(1), Decimal(2))


def book_of(**changes: Price) -> Book:
    """Return a book of prices of models that Inspect knows, by the ends of their names."""
    prices = {f"openai/{name.replace('_', '-')}": price for name, price in changes.items()}
    return Book(name="mine", date="undated", source="a test", prices=prices, sha256="")


def test_what_inspect_makes_of_a_price_is_what_the_book_makes_of_it() -> None:
    book = read_book("list-2026-11-21")
    cost, price = inspect_costs(book).costs[SONNET], book.prices[SONNET]
    usage = ModelUsage(
        input_tokens=1000,
        output_tokens=500,
        input_tokens_cache_read=300,
        input_tokens_cache_write=200,
    )
    ours = price.input * 1000 + price.output * 500
    ours += (price.cache_read or 0) * 300 + (price.cache_write or 0) * 200
    assert compute_model_cost(cost, usage) == pytest.approx(float(ours) / 1_000_000)
    headline = list_cost(Usage(input=1000, output=500), price)
    plain = ModelUsage(input_tokens=1000, output_tokens=500)
    assert headline is not None
    assert compute_model_cost(cost, plain) == pytest.approx(float(headline))


def test_what_is_flatter_than_the_book_is_told() -> None:
    tier = Tier(200_000, Price(*RATES))
    found = inspect_costs(book_of(gpt_4o=Price(*RATES, tiers=(tier,), cache_read=Decimal(0))))
    assert found.costs["openai/gpt-4o"] == ModelCost(
        input=1, output=2, input_cache_read=0, input_cache_write=1
    )
    assert [note.partition(": ")[2] for note in found.notes] == [
        "requests of more than 200,000 tokens cost more, which Inspect does not support.",
        "no rate is known for cached tokens written, so they are priced as input.",
    ]


def test_what_inspect_would_get_wrong_is_left_out_with_the_reason() -> None:
    book = book_of(
        gpt_4o=Price(*RATES),
        gpt_4o_mini=Price(*RATES, request=Decimal("0.01")),
        o3=Price(*RATES, reasoning=Decimal(3)),
        nobody=Price(*RATES),
    )
    found = inspect_costs(book)
    assert [*found.costs] == ["openai/gpt-4o"]
    assert [*found.left_out] == ["openai/gpt-4o-mini", "openai/o3", "openai/nobody"]


@pytest.mark.slow
def test_the_command_writes_what_it_says_and_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "costs.yaml"
    assert main(["prices", "export", "--inspect", str(out)]) == 0
    assert "models of list-" in capsys.readouterr().out
    before = out.read_text()
    assert GEMINI in json.loads(before)
    assert main(["prices", "export", "--inspect", str(out)]) == 2
    assert "costs.yaml already exists" in capsys.readouterr().err
    assert out.read_text() == before


def test_a_book_of_models_that_inspect_does_not_know_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prices", "export", "rehearsal", "--inspect", str(tmp_path / "a.json")]) == 2
    assert "Inspect knows none of the 14 models" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_an_ending_that_inspect_does_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one of these endings"):
        write_inspect_costs(InspectCosts({}, (), {}), tmp_path / "costs.txt")
