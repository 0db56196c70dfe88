"""A `Call`: one attempt to call a model, flat, as it is exported and audited, and its dollars.

A call that was tried three times over HTTP is three rows with one `call`. What was answered has a
price, what was refused costs nothing, and of what was dispatched and never came back only bounds
are known. None is "nobody knows"; it never becomes 0.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Literal, cast

from harness.prices.cost import (
    MTOK,
    CallCost,
    Price,
    Service,
    costs,
    gpu_cost,
    gpu_seconds,
    list_cost,
)
from harness.records import Usage
from harness.text import make_storable

Scope = Literal["inference", "scoring", "training", "serving"]
"""What a call was made for; spend is never added up across scopes without saying so."""

Billable = Literal["yes", "no", "unknown"]
"""`unknown`: dispatched, and no reply came back (killed, cancelled, timed out, cut off), or one
whose token counts cannot be."""

Cache = Literal["none", "read", "write"]
"""Inspect's local cache: a read is paid 0."""

UsageSource = Literal["provider", "recorded", "rehearsal", "missing"]
"""Who counted the tokens. There is no estimate: what nobody counted is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt. Tokens are counts, times ISO 8601 or seconds, `usd_*` US dollars."""

    task: str
    """Inspect's task, e.g. `aime25 moa-lite`; empty outside an eval."""
    suite: str
    system: str
    label: str
    """`live`, `recorded` or `rehearsal`: whether anything left a purse."""
    question: str
    epoch: int
    sample: str
    """uuid of the sample; a question asked again after a failure has another one."""
    call: str
    """Id of the journal; the event's uuid where only the log knows the call."""
    attempt: int
    """1 for the first HTTP attempt of a call."""
    event: str | None
    """uuid of the ModelEvent; None when no log has it (killed, or dropped by Inspect)."""
    log: str | None
    """File name of the log that has the event."""
    journal: str | None
    """File name of the journal that has the call; None for logs older than journals."""
    scope: Scope
    role: str
    """Worker name, or `conductor`, or `grader`."""
    step: str | None
    """Name of the workflow step, e.g. `step 2: sage`."""
    counted: bool
    """False for the spend of an attempt at a question that failed and was not graded."""
    model: str
    """As requested, provider included."""
    served_model: str | None
    """As the provider says it answered."""
    price_ref: str
    """Key in the price book."""
    service: str
    request_id: str | None
    http_status: int | None
    error: str | None
    """Kind of failure, e.g. `RateLimitError`; never a provider's words."""
    stop: str | None
    cache: Cache
    from_store: bool = False
    """True when an earlier attempt of the run had paid for the reply: nothing was sent again."""
    billable: Billable
    usage_source: UsageSource
    input_uncached: int | None
    cache_read: int | None
    cache_write: int | None
    cache_write_1h: int | None
    output: int | None
    """Reasoning included."""
    reasoning: int | None
    orchestration_in: int | None
    orchestration_in_cached: int | None
    orchestration_out: int | None
    total_reported: int | None
    prompt_bytes: int | None
    """UTF-8 bytes of the request's texts: no fewer than its tokens, but for a chat template."""
    max_tokens: int | None
    """The limit that the request set; None when it set none."""
    started: str
    latency_s: float | None
    usd_input: Decimal | None
    usd_cache_read: Decimal | None
    usd_cache_write: Decimal | None
    usd_output: Decimal | None
    usd_orchestration: Decimal | None
    usd_request: Decimal | None
    usd: Decimal | None
    """What the provider bills for this attempt at the book; 0 for what it does not bill."""
    usd_list: Decimal | None
    """The headline: at list price, as if nothing had been cached, locally or by the provider."""
    usd_low: Decimal | None
    """Bounds of `usd` where `billable` is unknown; equal to it elsewhere."""
    usd_high: Decimal | None
    """None: without `max_tokens` nothing bounds it."""
    tier: str | None
    evidence: str | None
    gpu_s: Decimal | None
    usd_gpu: Decimal | None
    prompt_sha256: str | None
    output_sha256: str | None
    raw_usage: str | None
    """The provider's own usage as JSON, where the log kept it."""

    @property
    def input_total(self) -> int | None:
        """The prompt, cached or not."""
        if self.input_uncached is None or self.cache_read is None or self.cache_write is None:
            return None
        return self.input_uncached + self.cache_read + self.cache_write

    @property
    def usage(self) -> Usage | None:
        """The tokens of the attempt; None when nobody counted them."""
        counted = (self.input_uncached, self.cache_read, self.cache_write, self.output)
        if None in counted:
            return None
        return Usage(
            input=self.input_uncached or 0,
            output=self.output or 0,
            cache_read=self.cache_read or 0,
            cache_write=self.cache_write or 0,
            reasoning=self.reasoning,
            cache_write_1h=self.cache_write_1h or 0,
            orchestration_in=self.orchestration_in or 0,
            orchestration_in_cached=self.orchestration_in_cached or 0,
            orchestration_out=self.orchestration_out or 0,
            total_reported=self.total_reported,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values: decimals as strings, in plain notation."""
        return {name: plain(value) for name, value in asdict(self).items()}

    @property
    def digest(self) -> str:
        """sha256 of the row's canonical JSON: what a manifest's tree is made of."""
        return hashlib.sha256(canonical(self.as_json())).hexdigest()


def plain(value: Any) -> Any:
    """Return a value for JSON: a Decimal as a string without an exponent."""
    return format(value, "f") if isinstance(value, Decimal) else value


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
"""One encoder for all: `json.dumps` would make one for each of a run's lines."""


def canonical(value: Any) -> bytes:
    """Return JSON that has one form only: sorted keys, no spaces, storable UTF-8."""
    try:
        return _CANONICAL(value).encode()
    except UnicodeEncodeError:
        return canonical(make_storable(value))


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


def at_price(call: Call, price: Price | None) -> Call:
    """Return a call as it would be at another price."""
    sizes = call.prompt_bytes, call.max_tokens
    service = cast(Service, call.service)
    attempted = Attempted(call.billable, call.cache, call.usage, service, *sizes)
    return replace(call, **money(attempted, price))


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


def _priced(parts: CallCost | None, headline: Decimal | None) -> Fields:
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
    """Return the most that one HTTP request can cost: what an attempt without a reply can have."""
    # A text has no more tokens than bytes, and each is billed at the dearest rate that it can have:
    # a provider may have written the prompt to its cache, a tier may hold, a service may cost more.
    # None without a price, without a limit on a reply that costs something, and where a product
    # spends tokens of its own, which nothing limits.
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
