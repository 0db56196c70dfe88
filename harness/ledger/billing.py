"""What one attempt costs by a price book, as the fields of a row.

An attempt that a provider answered has a price; one that it refused costs nothing; of one that was
dispatched and never came back only bounds are known. Not here: which attempts there were
(harness/ledger/merge.py), and rates and tiers (harness/prices/pricing.py).
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from harness.ledger.row import Billable, Cache
from harness.prices.pricing import (
    MTOK,
    Costs,
    Price,
    Service,
    costs,
    gpu_cost,
    gpu_seconds,
    list_cost,
)
from harness.records import Usage

ZERO = Decimal(0)
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attempted:
    """What decides the price of one attempt."""

    billable: Billable
    cache: Cache
    usage: Usage | None
    service: Service
    prompt_bytes: int | None
    max_tokens: int | None


REFUSED = 300
"""HTTP statuses from here on say that a request was not served: sent elsewhere, or refused."""


def billable_reply(
    cache: Cache, usage: Usage | None, status: int | None, *, doubtful: bool
) -> Billable:
    """A reply is billed; doubtful without usage are a failure, and counts that cannot be."""
    if cache == "read":
        return "no"
    if usage is not None or not doubtful:
        return "yes"
    return billable_failure(status)


def billable_failure(status: int | None) -> Billable:
    """A provider that answers with an error status bills nothing; silence says nothing."""
    return "no" if is_refusal(status) else "unknown"


def is_refusal(status: object) -> bool:
    """Say whether an HTTP status says that a request was not served; 200 may end in an error."""
    return isinstance(status, int) and status >= REFUSED


def money(attempted: Attempted, price: Price | None) -> Fields:
    """Return the fields of a row that are dollars, and the tier and evidence of its price."""
    found = _known(attempted, price)
    if price is not None:
        found["evidence"] = price.evidence
        if price.gpu is not None and attempted.usage is not None and attempted.billable == "yes":
            found["gpu_s"] = gpu_seconds(attempted.usage, price.gpu)
            found["usd_gpu"] = gpu_cost(attempted.usage, price.gpu)
    return found


def _known(attempted: Attempted, price: Price | None) -> Fields:
    usage = attempted.usage
    if attempted.cache == "read":
        headline = list_cost(usage, price) if usage and price else None
        return {**FREE, "usd_list": headline}
    if attempted.billable == "no":
        return {**FREE, "usd_list": ZERO}
    if attempted.billable == "unknown":
        return {**NOTHING_KNOWN, "usd_low": ZERO, "usd_high": upper_bound(attempted, price)}
    if usage is None or price is None:
        return {**NOTHING_KNOWN}
    parts = costs(usage, price, attempted.service)
    if parts is not None and attempted.service == "standard" and not usage.is_cached:
        return _priced(parts, parts.total)  # the headline is what is billed
    return _priced(parts, list_cost(usage, price))


def _priced(parts: Costs | None, headline: Decimal | None) -> Fields:
    if parts is None:
        return {**NOTHING_KNOWN, "usd_list": headline}
    total = parts.total
    return {
        "usd_input": parts.input,
        "usd_cache_read": parts.cache_read,
        "usd_cache_write": parts.cache_write,
        "usd_output": parts.output,
        "usd_orchestration": parts.orchestration,
        "usd_request": parts.request,
        "usd": total,
        "usd_list": headline,
        "usd_low": total,
        "usd_high": total,
        "tier": parts.tier,
        "evidence": None,
        "gpu_s": None,
        "usd_gpu": None,
    }


TEMPLATE = 256
"""Tokens that a chat template may put around the texts of a request: the markers of its turns, and
the system text that some open weights have where nobody writes one."""


def upper_bound(attempted: Attempted, price: Price | None) -> Decimal | None:
    """Return the most that one HTTP request can cost: what an attempt without a reply can have.

    A text has no more tokens than bytes, and each is billed at the dearest rate that it can have: a
    provider may have written the prompt to its cache, a tier may hold, a service may cost more.
    None without a price, without a limit on a reply that costs something, and where a product
    spends tokens of its own, which nothing limits.
    """
    if price is None or attempted.prompt_bytes is None:
        return None
    factor = Decimal(1)
    if attempted.service != "standard":
        if attempted.service not in price.services:
            return None
        factor = max(factor, price.services[attempted.service])
    size = attempted.prompt_bytes + TEMPLATE
    reachable = [price.base, *(tier.rates for tier in price.tiers if size > tier.above)]
    if any(one.orchestration_in or one.orchestration_out for one in reachable):
        return None
    asked = max(
        _dearest(one.input, one.cache_read, one.cache_write, one.cache_write_1h)
        for one in reachable
    )
    said = max(_dearest(one.output, one.reasoning) for one in reachable)
    if attempted.max_tokens is None and said:
        return None
    return (size * asked + (attempted.max_tokens or 0) * said) * factor / MTOK + price.request


def _dearest(*rates: Decimal | None) -> Decimal:
    return max(rate for rate in rates if rate is not None)


PARTS = (
    "usd_input",
    "usd_cache_read",
    "usd_cache_write",
    "usd_output",
    "usd_orchestration",
    "usd_request",
)
NOTHING_KNOWN: Fields = dict.fromkeys(
    (*PARTS, "usd", "usd_list", "usd_low", "usd_high", "tier", "evidence", "gpu_s", "usd_gpu")
)
FREE: Fields = {
    **NOTHING_KNOWN,
    **dict.fromkeys((*PARTS, "usd", "usd_low", "usd_high"), ZERO),
}
