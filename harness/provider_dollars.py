"""What providers themselves say that a call cost, in US dollars: in its usage, or in a header."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import cast

from podium.harness.usage import NOTHING, Raw

AMOUNTS: tuple[tuple[tuple[str, ...], Decimal], ...] = (
    (("cost",), Decimal(1)),  # OpenRouter, in credits of a dollar
    (("cost", "total_cost"), Decimal(1)),  # Perplexity
    (("estimated_cost",), Decimal(1)),  # DeepInfra
    (("cost_in_usd_ticks",), Decimal("1e-10")),  # xAI
)
"""Where a provider's usage has its dollars, and the unit in dollars."""
STATED_IN = frozenset(path[0] for path, _ in AMOUNTS)
UPSTREAM = ("cost_details", "upstream_inference_cost")
"""What OpenRouter says that the provider behind it charges a key of the user's own."""
HEADER = "x-litellm-response-cost"
"""LiteLLM's proxy says it in a header; 0 there is a model of which it knows no price."""
PLACES = Decimal("1e-18")
"""As exact as an exported ledger is."""
MOST = Decimal(1_000_000)
"""No call costs more."""


def stated_usd(usage: Raw | None, headers: Mapping[str, str] | None = None) -> Decimal | None:
    """Return what a provider says that a call cost in all; None if it does not say.

    With a key of the user's own OpenRouter bills a fee, and the provider behind it the rest.

    >>> stated_usd({"cost": 0.0012}), stated_usd({"cost_in_usd_ticks": 37756000})
    (Decimal('0.001200000000000000'), Decimal('0.003775600000000000'))
    """
    usage = usage if isinstance(usage, Mapping) else NOTHING  # a log may hold anything
    if STATED_IN.isdisjoint(usage):  # nearly every provider: a run has a million calls
        return usd_amount((headers or NOTHING).get(HEADER)) or None
    amounts = (usd_amount(_under(usage, path), unit) for path, unit in AMOUNTS)
    usd = next((amount for amount in amounts if amount is not None), None)
    if usd is None:
        return usd_amount((headers or {}).get(HEADER)) or None
    own_key, upstream = usage.get("is_byok"), usd_amount(_under(usage, UPSTREAM))
    if own_key is True and upstream is None:
        return None
    # Older replies have no `is_byok`, and name the upstream only for a key of the user's own.
    both = own_key is True or (own_key is None and upstream is not None and upstream > usd)
    return usd + (upstream or 0) if both else usd


def usd_amount(value: object, unit: Decimal = Decimal(1)) -> Decimal | None:
    """Return an amount that a provider or a journal states; None for what no call can cost."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        usd = Decimal(str(value)) * unit
    except InvalidOperation:
        return None
    return usd.quantize(PLACES) if usd.is_finite() and 0 <= usd <= MOST else None


def _under(usage: Raw, path: tuple[str, ...]) -> object:
    value: object = usage
    for name in path:
        value = (
            cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
        )
    return value
