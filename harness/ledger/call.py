"""A `Call`: one attempt to call a model, flat, as it is exported and audited, and its dollars.

A call that was tried three times over HTTP is three rows with one `call`. What was answered has a
price, what was refused costs nothing, and of what was dispatched and never came back only bounds
are known. None is "nobody knows"; it never becomes 0.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import Annotated, Any, Literal

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

Usd = Decimal | None
"""US dollars; None is unknown."""
SuiteColumn = Annotated[str, "The suite."]
SystemColumn = Annotated[str, "What sat it: a worker, a baseline or a conductor."]
LabelColumn = Annotated[str, "`live`, `recorded` or `rehearsal`: whether anything left a purse."]
EpochColumn = Annotated[int, "1 for the first time that the question was asked."]
GpuColumn = Annotated[Usd, "The same in dollars; beside `usd`, never added to it."]
"""Columns that calls and queries share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt. Tokens are counts, times ISO 8601 or seconds, `usd_*` US dollars."""

    task: Annotated[str, "Inspect's task, e.g. `aime25 moa-lite`; empty outside an eval."]
    suite: SuiteColumn
    system: SystemColumn
    label: LabelColumn
    question: Annotated[str, "Id of the question; empty outside an eval."]
    epoch: EpochColumn
    sample: Annotated[
        str, "uuid of the sample; a question asked again after a failure has another one."
    ]
    call: Annotated[str, "Id of the journal; the event's uuid where only the log knows the call."]
    attempt: Annotated[int, "1 for the first HTTP attempt of a call."]
    event: Annotated[
        str | None,
        "uuid of the ModelEvent; None when no log has it (killed, or dropped by Inspect).",
    ]
    log: Annotated[str | None, "File name of the log that has the event."]
    journal: Annotated[
        str | None, "File name of the journal that has the call; None for logs older than journals."
    ]
    scope: Annotated[
        Scope, "`inference`, `scoring`, `training` or `serving`; never added up across them."
    ]
    role: Annotated[str, "Worker name, or `conductor`, or `grader`."]
    step: Annotated[str | None, "Name of the workflow step, e.g. `step 2: sage`."]
    counted: Annotated[
        bool, "False for the spend of an attempt at a question that failed and was not graded."
    ]
    model: Annotated[str, "As requested, provider included."]
    served_model: Annotated[str | None, "As the provider says it answered."]
    price_ref: Annotated[str, "Key in the price book."]
    service: Annotated[
        Service, "How the provider was asked to serve it: `standard`, `batch`, `flex`, `priority`."
    ]
    request_id: Annotated[
        str | None, "The provider's id of the request, for its support and its invoice."
    ]
    http_status: Annotated[int | None, "Status of the HTTP reply."]
    error: Annotated[
        str | None, "Kind of failure, e.g. `RateLimitError`; never a provider's words."
    ]
    stop: Annotated[str | None, "Why the output ended, e.g. `stop` or `max_tokens`."]
    cache: Annotated[Cache, "The local cache: `none`, `read` (paid 0) or `write`."]
    from_store: Annotated[
        bool,
        "True when an earlier attempt of the run had paid for the reply: nothing was sent again.",
    ] = False
    billable: Annotated[
        Billable,
        "`yes`, `no` or `unknown` (no reply came back, or one whose token counts cannot be).",
    ]
    usage_source: Annotated[UsageSource, "Who counted the tokens; `missing`: nobody did."]
    input_uncached: Annotated[int | None, "Prompt tokens that were in no cache of the provider."]
    cache_read: Annotated[int | None, "Prompt tokens that the provider had cached."]
    cache_write: Annotated[int | None, "Prompt tokens that the provider cached, however long."]
    cache_write_1h: Annotated[int | None, "Part of `cache_write`: kept for an hour."]
    output: Annotated[int | None, "Reasoning included."]
    reasoning: Annotated[int | None, "Part of `output`; NULL when the provider does not say."]
    orchestration_in: Annotated[
        int | None, "Prompt tokens that a product sent to its own models; in no other count."
    ]
    orchestration_in_cached: Annotated[int | None, "Part of `orchestration_in` that was cached."]
    orchestration_out: Annotated[
        int | None, "Output tokens of a product's own models; in no other count."
    ]
    total_reported: Annotated[int | None, "What the provider says that all of it comes to."]
    prompt_bytes: Annotated[
        int | None,
        "UTF-8 bytes of the request's texts: no fewer than its tokens, but for a chat template.",
    ]
    max_tokens: Annotated[int | None, "The limit that the request set; None when it set none."]
    started: Annotated[str, "When it was dispatched (ISO 8601, UTC)."]
    latency_s: Annotated[float | None, "From dispatch to the end of the reply."]
    usd_input: Annotated[Usd, "Uncached prompt tokens, in `usd`."]
    usd_cache_read: Annotated[Usd, "Prompt tokens that were read from a cache, in `usd`."]
    usd_cache_write: Annotated[Usd, "Prompt tokens that were written to a cache, in `usd`."]
    usd_output: Annotated[Usd, "Output with reasoning, in `usd`."]
    usd_orchestration: Annotated[Usd, "Orchestration, in `usd`."]
    usd_request: Annotated[Usd, "The fee per request, in `usd`."]
    usd: Annotated[
        Usd, "What the provider bills for this attempt at the book; 0 for what it does not bill."
    ]
    usd_list: Annotated[
        Usd,
        "The headline: at list price, as if nothing had been cached, locally or by the provider.",
    ]
    usd_low: Annotated[Usd, "Bounds of `usd` where `billable` is unknown; equal to it elsewhere."]
    usd_high: Annotated[Usd, "None: without `max_tokens` nothing bounds it."]
    tier: Annotated[str | None, "The tier of the price that the length of the prompt chose."]
    evidence: Annotated[
        str | None, "`dated`: a price of the book's day; `carried-back`: a later one."
    ]
    gpu_s: Annotated[Decimal | None, "GPU seconds of own hardware, by the share of output tokens."]
    usd_gpu: GpuColumn
    prompt_sha256: Annotated[str | None, "Digest of the request."]
    output_sha256: Annotated[str | None, "Digest of the reply."]
    raw_usage: Annotated[str | None, "The provider's own usage as JSON, where the log kept it."]

    @property
    def input_total(self) -> int | None:
        """The prompt, cached or not."""
        if self.input_uncached is None or self.cache_read is None or self.cache_write is None:
            return None
        return self.input_uncached + self.cache_read + self.cache_write

    @property
    def usage(self) -> Usage | None:
        """The tokens of the attempt; None when nobody counted them."""
        if self.input_total is None or self.output is None:
            return None
        told = {name: getattr(self, column) for column, name in TOKENS.items()}
        return Usage(**{name: count for name, count in told.items() if count is not None})

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values: decimals as strings, in plain notation."""
        return {name: plain(value) for name, value in asdict(self).items()}


TOKENS = {"input_uncached": "input"} | {
    one.name: one.name for one in fields(Usage) if one.name != "input"
}
"""Columns of tokens, and the field of a `Usage` that each of them holds."""
NO_USAGE: Mapping[str, int | None] = dict.fromkeys(TOKENS)


def token_columns(usage: Usage | None) -> Mapping[str, int | None]:
    """Return the columns of a row that are tokens; None each without usage."""
    if usage is None:
        return NO_USAGE
    return {column: getattr(usage, name) for column, name in TOKENS.items()}


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


def money(attempted: Attempted | Call, price: Price | None) -> Fields:
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
    return replace(call, **money(call, price))


def _known(attempted: Attempted | Call, price: Price | None) -> Fields:
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
    if parts is None:
        return {**NOTHING_KNOWN, "usd_list": list_cost(usage, price)}
    as_listed = attempted.service == "standard" and not usage.is_cached
    return {
        **NOTHING_KNOWN,
        **{column: getattr(parts, name) for column, name in PARTS.items()},
        **dict.fromkeys(BILLED, parts.total),
        "usd_list": parts.total if as_listed else list_cost(usage, price),
        "tier": parts.tier,
    }


TEMPLATE = 256
"""Tokens that a chat template may put around the texts of a request: the markers of its turns, and
the system text that some open weights have where nobody writes one."""


def upper_bound(attempted: Attempted | Call, price: Price | None) -> Decimal | None:
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


PARTS = {f"usd_{one.name}": one.name for one in fields(CallCost) if one.name != "tier"}
BILLED = ("usd", "usd_low", "usd_high")
NOTHING_KNOWN: Fields = dict.fromkeys(
    (*PARTS, *BILLED, "usd_list", "tier", "evidence", "gpu_s", "usd_gpu")
)
FREE: Fields = NOTHING_KNOWN | dict.fromkeys((*PARTS, *BILLED), ZERO)
