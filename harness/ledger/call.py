"""A `Call`: one attempt to call a model, as a flat row for export and audit, with its cost.

A call that was tried three times over HTTP is three rows with the same `call` id. A price book
gives the cost of an answered attempt; a refused attempt costs nothing. If an attempt was sent but
got no reply, only bounds of its cost are known. None in a column means unknown; it never becomes 0.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, Literal

from podium.harness.prices.cost import (
    MTOK,
    CallCost,
    Price,
    Service,
    costs,
    gpu_cost,
    gpu_seconds,
    list_cost,
)
from podium.harness.records import Usage
from podium.harness.text import make_storable

Scope = Literal["inference", "scoring", "training", "serving", "environment"]
"""The purpose of a call; reports keep the costs of calls with different purposes apart."""
Phase = Literal["solve", "score", "environment"]
"""The phase of a call in a log. `solve`: a system answers a question; `score`: the answer is
graded; `environment`: a task's code asks another model, such as a simulated user."""
SCOPES: Mapping[Phase, Scope] = {
    "solve": "inference",
    "score": "scoring",
    "environment": "environment",
}

Billable = Literal["yes", "no", "unknown"]
"""Whether the provider bills an attempt. `unknown`: the attempt was sent and got no reply (killed,
cancelled, timed out, cut off), or a reply with impossible token counts."""

Cache = Literal["none", "read", "write"]
"""Use of a local cache of replies, Inspect's or podium's. `read`: the reply came from the cache, so
it is free; `write`: the reply was stored there."""

UsageSource = Literal["provider", "recorded", "rehearsal", "missing"]
"""The source of a call's token counts, which are never estimated; `missing`: none were reported."""

Usd = Decimal | None
"""US dollars; None if the amount is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt to call a model, as a row; schema.md describes each column and its unit."""

    task: str
    suite: str
    system: str
    label: str
    question: str
    epoch: int
    sample: str
    call: str
    attempt: int
    event: str | None
    log: str | None
    journal: str | None
    scope: Scope
    role: str
    step: str | None
    counted: bool
    model: str
    served_model: str | None
    price_ref: str
    service: Service
    request_id: str | None
    http_status: int | None
    error: str | None
    stop: str | None
    cache: Cache
    from_store: bool = False
    shared_from: str | None = None
    billable: Billable
    usage_source: UsageSource
    input_uncached: int | None
    cache_read: int | None
    cache_write: int | None
    cache_write_1h: int | None
    output: int | None
    reasoning: int | None
    orchestration_in: int | None
    orchestration_in_cached: int | None
    orchestration_out: int | None
    total_reported: int | None
    prompt_bytes: int | None
    max_tokens: int | None
    started: str
    latency_s: float | None
    usd_input: Usd
    usd_cache_read: Usd
    usd_cache_write: Usd
    usd_output: Usd
    usd_orchestration: Usd
    usd_request: Usd
    usd: Usd
    usd_list: Usd
    usd_low: Usd
    usd_high: Usd
    tier: str | None
    evidence: str | None
    gpu_s: Decimal | None
    usd_gpu: Usd
    usd_provider: Usd = None
    prompt_sha256: str | None
    output_sha256: str | None
    raw_usage: str | None

    @property
    def input_total(self) -> int | None:
        """Number of prompt tokens, cached ones included; None if a count is unknown."""
        if self.input_uncached is None or self.cache_read is None or self.cache_write is None:
            return None
        return self.input_uncached + self.cache_read + self.cache_write

    @property
    def usage(self) -> Usage | None:
        """The attempt's token counts by kind; None if the input or output count is unknown."""
        if self.input_total is None or self.output is None:
            return None
        counts = {name: getattr(self, column) for column, name in TOKENS.items()}
        return Usage(**{name: count for name, count in counts.items() if count is not None})

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values: decimals as strings without an exponent."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def contradictions(call: Call) -> Iterator[str]:
    """Yield contradictions in a call's token counts, e.g. a negative count or a wrong total."""
    uncached, read, write, output = (
        call.input_uncached,
        call.cache_read,
        call.cache_write,
        call.output,
    )
    if uncached is None or read is None or write is None or output is None:
        return
    reasoning, total = call.reasoning or 0, call.total_reported
    inner_in, inner_out = call.orchestration_in or 0, call.orchestration_out or 0
    expected = uncached + read + write + output + inner_in + inner_out
    if min(uncached, read, write, output, reasoning) < 0:
        yield "a count of tokens is negative"
    if reasoning > output:
        yield f"{reasoning} reasoning tokens are more than its {output} output tokens"
    if (call.cache_write_1h or 0) > write:
        yield "more tokens are cached for one hour than are cached in total"
    if (call.orchestration_in_cached or 0) > inner_in:
        yield "more orchestration tokens are cached than were sent"
    if total is not None and total != expected:
        yield f"unexplained tokens: {total - expected:+,} of the {total:,} that are reported"


TOKENS = {"input_uncached": "input"} | {
    field.name: field.name for field in fields(Usage) if field.name != "input"
}
"""Token column of a `Call` -> the field of `Usage` with the same count."""
NO_USAGE: Mapping[str, int | None] = dict.fromkeys(TOKENS)


def token_columns(usage: Usage | None) -> Mapping[str, int | None]:
    """Return the token columns of a `Call` row, with values; all None if the usage is unknown."""
    if usage is None:
        return NO_USAGE
    return {column: getattr(usage, name) for column, name in TOKENS.items()}


def plain(value: Any) -> Any:
    """Return a value for JSON: a Decimal as a string without an exponent, others unchanged."""
    return format(value, "f") if isinstance(value, Decimal) else value


def shortest(value: Any) -> Any:
    """Return a decimal as text without exponent and trailing zeros, other values unchanged."""
    if not isinstance(value, Decimal):
        return value
    text = plain(value)
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
"""JSON encoder of `canonical`, made once: `json.dumps` would make a new one for every value."""


def canonical(value: Any) -> bytes:
    """Return a value as canonical JSON: sorted keys, no spaces, UTF-8 without lone surrogates."""
    try:
        return _CANONICAL(value).encode()
    except UnicodeEncodeError:
        return canonical(make_storable(value))


ZERO = Decimal(0)
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attempted:
    """The facts about one attempt to call a model that decide its cost at a given price."""

    billable: Billable
    cache: Cache
    usage: Usage | None
    service: Service
    prompt_bytes: int | None
    max_tokens: int | None
    stop: str | None = None


LENGTH_REFUSED = "model_length"
"""Inspect's stop reason if the provider refused a request because it was too long."""
REFUSED = 300
"""The lowest HTTP status of a request that the provider did not serve (redirect or error)."""


def billable_reply(
    cache: Cache, usage: Usage | None, status: int | None, *, doubtful: bool
) -> Billable:
    """Return whether a reply is billed; the status decides on a `doubtful` one without usage."""
    # A reply is doubtful if it has an error, or token counts that podium cannot use.
    if cache == "read":
        return "no"
    if usage is not None or not doubtful:
        return "yes"
    return billable_failure(status)


def billable_failure(status: int | None) -> Billable:
    """Return `no` if a failed attempt has an HTTP error status (not billed), else `unknown`."""
    return "no" if is_refusal(status) else "unknown"


def is_refusal(status: object) -> bool:
    """Return whether a value is the HTTP status of a refusal or redirect: a number from 300 up."""
    return isinstance(status, int) and status >= REFUSED


def money(attempted: Attempted | Call, price: Price | None) -> Fields:
    """Return a `Call` row's cost columns: dollars, GPU seconds, the price's tier and evidence."""
    columns = _known(attempted, price)
    if price is not None:
        columns["evidence"] = price.evidence
        if price.gpu is not None and attempted.usage is not None and attempted.billable == "yes":
            columns["gpu_s"] = gpu_seconds(attempted.usage, price.gpu)
            columns["usd_gpu"] = gpu_cost(attempted.usage, price.gpu)
    return columns


def at_price(call: Call, price: Price | None) -> Call:
    """Return a call attempt with its cost columns recomputed at another price."""
    return replace(call, **money(call, price))


def _known(attempted: Attempted | Call, price: Price | None) -> Fields:
    usage = attempted.usage
    if attempted.cache == "read":
        nothing = ZERO if usage is None and attempted.stop == LENGTH_REFUSED else None
        headline = list_cost(usage, price) if usage and price else nothing
        return {**FREE, "usd_list": headline}
    if attempted.billable == "no":
        return {**FREE, "usd_list": ZERO}
    if attempted.billable == "unknown":
        return {**NOTHING_KNOWN, "usd_low": ZERO, "usd_high": upper_bound(attempted, price)}
    if usage is None or price is None:
        return {**NOTHING_KNOWN}
    amounts = costs(usage, price, attempted.service)
    if amounts is None:
        return {**NOTHING_KNOWN, "usd_list": list_cost(usage, price)}
    as_listed = attempted.service == "standard" and not usage.is_cached
    return {
        **NOTHING_KNOWN,
        **{column: getattr(amounts, name) for column, name in PARTS.items()},
        **dict.fromkeys(BILLED, amounts.total),
        "usd_list": amounts.total if as_listed else list_cost(usage, price),
        "tier": amounts.tier,
    }


TEMPLATE = 256
"""Maximum tokens that a chat template adds to the texts of a request: the markers of its turns, and
the default system text of some open models."""


def upper_bound(attempted: Attempted | Call, price: Price | None) -> Decimal | None:
    """Return the maximum dollars that one HTTP request may cost; None if no maximum is known."""
    # A text has no more tokens than bytes. Each token counts at the highest rate that may apply,
    # e.g. if the provider caches the prompt, or if a price tier or a dearer service applies.
    # None if the price or the prompt's size is unknown, if output costs money and has no
    # max_tokens, or if the product spends tokens of its own without a limit.
    if price is None or attempted.prompt_bytes is None:
        return None
    factor = Decimal(1)
    if attempted.service != "standard":
        if attempted.service not in price.services:
            return None
        factor = max(factor, price.services[attempted.service])
    size = attempted.prompt_bytes + TEMPLATE
    reachable = [price, *(tier.rates for tier in price.tiers if size > tier.above)]
    if any(rates.orchestration_in or rates.orchestration_out for rates in reachable):
        return None
    input_rate = max(
        _dearest(rates.input, rates.cache_read, rates.cache_write, rates.cache_write_1h)
        for rates in reachable
    )
    output_rate = max(_dearest(rates.output, rates.reasoning) for rates in reachable)
    if attempted.max_tokens is None and output_rate:
        return None
    tokens = size * input_rate + (attempted.max_tokens or 0) * output_rate
    return tokens * factor / MTOK + price.request


def _dearest(*rates: Decimal | None) -> Decimal:
    return max(rate for rate in rates if rate is not None)


PARTS = {f"usd_{field.name}": field.name for field in fields(CallCost) if field.name != "tier"}
BILLED = ("usd", "usd_low", "usd_high")
NOTHING_KNOWN: Fields = dict.fromkeys(
    (*PARTS, *BILLED, "usd_list", "tier", "evidence", "gpu_s", "usd_gpu")
)
FREE: Fields = NOTHING_KNOWN | dict.fromkeys((*PARTS, *BILLED), ZERO)


SAME = {
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.response.model": "served_model",
    "gen_ai.usage.cache_read.input_tokens": "cache_read",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write",
    "gen_ai.usage.output_tokens": "output",
    "gen_ai.usage.reasoning.output_tokens": "reasoning",
    "gen_ai.workflow.name": "system",
    "gen_ai.agent.name": "role",
    "http.response.status_code": "http_status",
    "error.type": "error",
}
"""OpenTelemetry attribute (GenAI conventions) -> column of `Call` with the same value."""
TAKEN = frozenset({"stop", "input_uncached", *SAME.values()}) - {"system", "role"}
"""Columns of `Call` whose values are in a standard OpenTelemetry attribute, so that they need no
attribute `podium.NAME`."""


def attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `Call` row as OpenTelemetry attributes, which omit unknown values by convention."""
    provider, _, model = str(row["model"]).partition("/")
    counts = (row["input_uncached"], row["cache_read"], row["cache_write"])
    standard: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.response.finish_reasons": [row["stop"]] if row["stop"] else None,
        "gen_ai.usage.input_tokens": None if None in counts else sum(counts),
        **{name: row[column] for name, column in SAME.items()},
    }
    ours = {f"podium.{name}": value for name, value in row.items() if name not in TAKEN}
    return {name: value for name, value in {**standard, **ours}.items() if value is not None}
