"""What a call costs is exact, per call, and unknown where a rate is."""

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from podium.harness.prices import read_book
from podium.harness.prices.cost import (
    Gpu,
    Price,
    Service,
    Tier,
    cost,
    costs,
    gpu_cost,
    gpu_seconds,
    list_cost,
)
from podium.harness.records import Usage

FLAT = Price(Decimal("1.25"), Decimal("10"))
CACHING = Price(
    Decimal("3"),
    Decimal("15"),
    cache_read=Decimal("0.3"),
    cache_write=Decimal("3.75"),
    cache_write_1h=Decimal("6"),
)
GEMINI = read_book("list-2026-11-21").prices["google/gemini-2.5-pro"]
FUGU = read_book("list-2026-11-21").prices["fugu/fugu-ultra"]
ROWS = 50_000


def test_fifty_thousand_cent_fractions_sum_exactly() -> None:
    """The same sum in whole numbers of the smallest unit: 1e-15 dollars."""
    price = Price(Decimal("0.137"), Decimal("1.000000001"), cache_read=Decimal("0.0333"))
    chance = random.Random("cents")
    total, whole = Decimal(0), 0
    for _ in range(ROWS):
        usage = Usage(
            input=chance.randrange(9999),
            output=chance.randrange(777),
            cache_read=chance.randrange(50),
        )
        call_cost = cost(usage, price)
        assert call_cost is not None
        total += call_cost
        whole += usage.input * 137_000_000 + usage.output * 1_000_000_001
        whole += usage.cache_read * 33_300_000
    assert total * 10**15 == whole
    assert total == total.quantize(Decimal("1e-15"))


def test_the_third_partys_fugu_example_costs_what_it_truly_cost() -> None:
    usage = Usage(input=212, output=522, orchestration_in=5463, orchestration_out=1053)
    assert usage.parts_total == 7250
    call_cost = costs(usage, FUGU)
    assert call_cost is not None
    assert call_cost.total == Decimal("0.075625")
    assert (call_cost.input, call_cost.output, call_cost.orchestration) == (
        Decimal("0.00106"),
        Decimal("0.01566"),
        Decimal("0.058905"),
    )


def test_a_tier_is_chosen_by_one_prompt_and_never_by_a_sum() -> None:
    call = Usage(input=150_000, output=1_000)
    each, both = cost(call, GEMINI), cost(call + call, GEMINI)
    assert each == Decimal("0.1975")
    assert both == Decimal("0.78")
    assert both != Decimal("0.1975") * 2


@pytest.mark.parametrize(
    ("usage", "tier"),
    [
        pytest.param(Usage(input=200_000), "base", id="at-the-bound"),
        pytest.param(Usage(input=200_001), ">200000", id="above-it"),
        pytest.param(Usage(input=1, cache_read=200_000), ">200000", id="cached-tokens-count"),
        pytest.param(Usage(input=1, output=900_000), "base", id="output-does-not"),
    ],
)
def test_a_tier_holds_for_the_whole_request(usage: Usage, tier: str) -> None:
    call_cost = costs(usage, GEMINI)
    assert call_cost is not None
    assert call_cost.tier == tier


def test_each_kind_of_orchestration_token_has_its_own_rate() -> None:
    """400 of 1,000 input tokens were read from a cache: only the other 600 cost the full rate."""
    rates = {"in": "7", "in_cached": "2", "out": "11"}
    price = replace(FLAT, **{f"orchestration_{kind}": Decimal(rates[kind]) for kind in rates})
    usage = Usage(orchestration_in=1000, orchestration_in_cached=400, orchestration_out=10)
    assert cost(usage, price) == Decimal("0.00511")  # (600 * 7 + 400 * 2 + 10 * 11) / 1e6
    assert cost(usage, replace(price, orchestration_in_cached=None)) is None
    assert list_cost(usage, price) == Decimal("0.00711")  # (1000 * 7 + 10 * 11) / 1e6


def test_a_sum_of_internal_requests_is_no_long_prompt() -> None:
    call_cost = costs(Usage(input=10, orchestration_in=400_000), FUGU)
    assert call_cost is not None
    assert (call_cost.tier, call_cost.orchestration) == ("base", Decimal("2"))


def test_of_several_tiers_the_highest_that_is_passed_counts() -> None:
    steps = tuple(
        Tier(at, replace(FLAT.base, input=Decimal(rate))) for at, rate in ((10, 2), (20, 3))
    )
    tiered = replace(FLAT, tiers=steps)
    rates, names = zip(*map(tiered.rates_for, (10, 11, 20, 21)), strict=True)
    assert [rate.input for rate in rates] == [Decimal("1.25"), 2, 2, 3]
    assert names == ("base", ">10", ">10", ">20")


def test_cached_tokens_cost_the_same_in_both_conventions() -> None:
    """OpenAI counts cached tokens within the input, Anthropic beside it; ours is beside."""
    within_total, cached = 10_000, 4_000
    openai = Usage(input=within_total - cached, cache_read=cached)
    anthropic = Usage(input=6_000, cache_read=cached)
    assert cost(openai, CACHING) == cost(anthropic, CACHING) == Decimal("0.0192")
    assert openai.input_total == within_total


def test_writes_that_are_kept_for_an_hour_have_their_own_rate() -> None:
    usage = Usage(cache_write=3_000_000, cache_write_1h=1_000_000)
    assert cost(usage, CACHING) == 2 * Decimal("3.75") + 6


def test_reasoning_is_billed_as_output_where_it_has_no_rate() -> None:
    thinking = Usage(output=1_000_000, reasoning=900_000)
    assert cost(thinking, FLAT) == 10
    assert cost(replace(thinking, reasoning=None), FLAT) == 10


def test_reasoning_with_a_rate_of_its_own_must_be_counted() -> None:
    apart = replace(FLAT, reasoning=Decimal("2"))
    assert cost(Usage(output=1_000_000, reasoning=900_000), apart) == 1 + Decimal("1.8")
    assert cost(Usage(output=1_000_000, reasoning=1_000_000), apart) == 2
    assert cost(Usage(output=1_000_000, reasoning=1_000_001), apart) is None
    assert cost(Usage(output=1_000_000), apart) is None
    assert cost(Usage(input=1), apart) is not None


@pytest.mark.parametrize(
    ("service", "usd"),
    [
        pytest.param("standard", Decimal("2.875"), id="standard"),
        pytest.param("batch", Decimal("1.50"), id="half-but-for-cached-tokens"),
        pytest.param("flex", None, id="no-such-service"),
    ],
)
def test_a_service_changes_the_rates_that_it_names(service: Service, usd: Decimal | None) -> None:
    price = replace(GEMINI, tiers=())
    usage = Usage(input=1_400_000, output=100_000, cache_read=1_000_000)
    assert cost(usage, price, service) == usd


def test_a_fee_per_request_is_added_once() -> None:
    assert cost(Usage(input=1_000_000), replace(FLAT, request=Decimal("0.01"))) == Decimal("1.26")


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(Usage(input=5, cache_read=1), id="read"),
        pytest.param(Usage(input=5, cache_write=1), id="write"),
        pytest.param(Usage(input=5, cache_write=1, cache_write_1h=1), id="write-1h"),
        pytest.param(Usage(input=5, orchestration_out=1), id="orchestration"),
    ],
)
def test_a_token_without_a_rate_leaves_its_call_without_a_price(usage: Usage) -> None:
    assert costs(usage, FLAT) is None
    assert cost(usage, FLAT) is None


def test_the_headline_counts_nothing_as_cached() -> None:
    usage = Usage(input=1_000_000, cache_read=1_000_000, cache_write=1_000_000)
    assert list_cost(usage, CACHING) == 9
    assert list_cost(usage, FLAT) == Decimal("3.75")


def test_a_long_cached_prompt_keeps_its_tier_in_the_headline() -> None:
    assert (
        list_cost(Usage(input=1, cache_read=200_000), GEMINI)
        == 200_001 * Decimal("2.5") / 1_000_000
    )


def test_nothing_used_costs_nothing_and_nothing_known_is_not_nothing() -> None:
    assert cost(Usage(), FLAT) == 0
    assert cost(Usage(), FLAT, "batch") is None


def test_gpu_time_is_shared_by_output_tokens() -> None:
    gpu = Gpu("H100", 2, Decimal("3.60"), Decimal("1000"), "made up for this test")
    assert gpu_seconds(Usage(output=5_000), gpu) == 10
    assert gpu_cost(Usage(output=5_000), gpu) == Decimal("0.01")
    assert gpu_seconds(Usage(output=1_250), gpu) == Decimal("2.5")


def test_parts_add_up_to_the_whole_for_odd_rates() -> None:
    chance = random.Random("parts")
    for _ in range(200):
        rates = [Decimal(chance.randrange(1, 10**9)).scaleb(-7) for _ in range(6)]
        price = Price(rates[0], rates[1], cache_read=rates[2], reasoning=rates[5])
        usage = Usage(*(chance.randrange(10**6) for _ in range(2)), cache_read=7, reasoning=3)
        call_cost = costs(replace(usage, output=usage.output + 3), price)
        assert call_cost is not None
        exact = sum(
            Fraction(tokens) * Fraction(rate) / 10**6
            for tokens, rate in (
                (usage.input, price.input),
                (7, rates[2]),
                (usage.output, price.output),
                (3, rates[5]),
            )
        )
        assert Fraction(call_cost.total) == exact
