"""The only place where providers' token counts are converted to podium's.

Inspect's counts come first; counts that Inspect drops come from the provider's own usage
(`with_raw`). Implausible usage counts as none (`believed`), and the call's cost is then unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, cast

from inspect_ai.model import ModelOutput, ModelUsage

from podium.harness.records import Usage

Raw = Mapping[str, Any]  # A provider's own usage, as in its reply
Dialect = Literal["openai-chat", "openai-responses", "anthropic", "google"]
PROVIDER_USAGE = "provider_usage"  # metadata key under which podium's providers keep the raw usage
CEILING = 100_000_000
"""Maximum tokens of a call, all requests added up: ten times the longest context on sale."""
GOOGLE = (
    ("promptTokenCount", "prompt_token_count"),
    ("candidatesTokenCount", "candidates_token_count"),
    ("totalTokenCount", "total_token_count"),
    ("thoughtsTokenCount", "thoughts_token_count"),
    ("cachedContentTokenCount", "cached_content_token_count"),
    ("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
)  # google's counts: the names of its API, and of its client
INCOMPLETE = "incomplete"
"""Field in the usage that podium's own server reports to Anthropic's clients; true if its counts
are lower bounds."""
COUNTS = (
    *("input_tokens", "output_tokens", "total_tokens", "prompt_tokens", "completion_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("orchestration_input_tokens", "orchestration_input_cached_tokens"),
    "orchestration_output_tokens",  # added by podium's server in Anthropic's dialect
    *chain.from_iterable(GOOGLE),
)  # names of counts in providers' own usage, all dialects
INSIDE = (
    *("cached_tokens", "cache_write_tokens"),
    *("orchestration_input_tokens", "orchestration_input_cached_tokens"),
)
OUTSIDE = ("reasoning_tokens", "thinking_tokens", "orchestration_output_tokens")
DETAILS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("prompt_tokens_details", "input_tokens_details"), INSIDE),
    **dict.fromkeys(("completion_tokens_details", "output_tokens_details"), OUTSIDE),
    "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
}  # names of counts one level deeper
NOTHING: Raw = {}
_PARTS = attrgetter(*Usage.__dataclass_fields__)


def usage_from(usage: ModelUsage | None) -> Usage | None:
    """Return the tokens that a provider reported; None, not 0, if it reported no usage."""
    return None if usage is None else usage_from_json(vars(usage))


def usage_from_json(usage: Raw | None) -> Usage | None:
    """Return the tokens in a `ModelUsage` in a log's JSON; None, not 0, if there is no usage."""
    if usage is None:
        return None
    get = usage.get
    return Usage(
        input=get("input_tokens") or 0,
        output=get("output_tokens") or 0,
        cache_read=get("input_tokens_cache_read") or 0,
        cache_write=get("input_tokens_cache_write") or 0,
        reasoning=get("reasoning_tokens"),
        total_reported=get("total_tokens") or None,  # Inspect's default is 0
    )


def usage_of_reply(output: ModelOutput, response: Raw | None = None) -> Usage | None:
    """Return a reply's tokens, None if unknown; `response` is the provider's own JSON, if any."""
    return usage_of_event(usage_from(output.usage), raw_usage(response, output.metadata))


def usage_of_event(counted: Usage | None, raw: Raw | None) -> Usage | None:
    """Return a call's tokens, from Inspect's counts and the provider's own; None if unknown."""
    return believed(with_raw(counted, raw), raw)


def believed(usage: Usage | None, raw: Raw | None) -> Usage | None:
    """Return token counts if they are plausible; else None, as if no usage were reported.

    Inspect reads `true` as 1, so the provider's own values are checked, too. Plausible counts that
    contradict each other are kept, for the audit.
    """
    if usage is None or not _can_be(usage):
        return None
    if not raw:
        return usage
    if raw.get(INCOMPLETE) is True or not all(map(_is_count, _counts(raw))):
        return None
    dialect = dialect_of(raw)
    theirs = usage_from_raw(dialect, raw) if dialect else None
    return usage if theirs is None or _can_be(theirs) else None


def _can_be(usage: Usage) -> bool:
    """Return whether token counts are plausible for one call, and no part exceeds its total."""
    counts = [count for count in _PARTS(usage) if count is not None]
    return (
        all(map(_is_count, counts))
        and usage.parts_total <= CEILING
        and usage.cache_write_1h <= usage.cache_write
        and usage.orchestration_in_cached <= usage.orchestration_in
    )


def _counts(raw: Raw) -> Iterator[object]:
    """Yield the values of all known count fields in a provider's own usage, of any type."""
    places = [(raw, COUNTS), *((_under(raw, name), names) for name, names in DETAILS.items())]
    for holder, names in places:
        yield from (holder[name] for name in names if holder.get(name) is not None)


def _is_count(value: object) -> bool:
    """Return whether a value can be a number of tokens; some servers write 12 as 12.0."""
    if type(value) is not int and type(value) is not float:  # `True` is an int by `isinstance`
        return False
    return 0 <= value <= CEILING and value == int(value)


def raw_usage(response: Raw | None, metadata: Raw | None = None) -> Raw | None:
    """Return the provider's own usage, from its response, else from the reply's metadata."""
    fields = map(_object(response).get, ("usage", "usageMetadata", "usage_metadata"))
    value: object = next(filter(None, fields), None) or _object(metadata).get(PROVIDER_USAGE)
    return cast(Raw, value) if isinstance(value, Mapping) else None


def _object(value: object) -> Raw:
    """Return JSON if it is an object, else an empty object; a provider may answer anything."""
    return cast(Raw, value) if isinstance(value, Mapping) else NOTHING


def with_raw(usage: Usage | None, raw: Raw | None) -> Usage | None:
    """Return Inspect's counts, completed by counts that only the provider's own usage has."""
    if usage is None or not raw:
        return usage  # raw counts alone may be incomplete
    hour = _count(_under(raw, "cache_creation"), "ephemeral_1h_input_tokens") or 0
    inside = _under(raw, "input_tokens_details") or _under(raw, "prompt_tokens_details")
    outside = _under(raw, "output_tokens_details") or _under(raw, "completion_tokens_details")
    if dialect_of(raw) == "anthropic":
        inside = outside = raw
    tokens_in = _count(inside, "orchestration_input_tokens") or 0
    tokens_out = _count(outside, "orchestration_output_tokens") or 0
    if not (hour or tokens_in or tokens_out):
        return usage  # the usual case; a report may read a million calls
    total = _count(raw, "total_tokens")  # Inspect computes one for Anthropic, which reports none
    return replace(
        usage,
        cache_write_1h=hour,
        orchestration_in=tokens_in,
        orchestration_in_cached=_count(inside, "orchestration_input_cached_tokens") or 0,
        orchestration_out=tokens_out,
        total_reported=usage.total_reported if total is None else total,
    )


def dialect_of(raw: Raw) -> Dialect | None:
    """Return the API dialect of a provider's usage, by its field names; None if unknown."""
    if any(name in raw for name in GOOGLE[0]):
        return "google"
    if "prompt_tokens" in raw:
        return "openai-chat"
    if "input_tokens" not in raw:
        return None
    # Anthropic reports no total, but a podium server in its dialect does.
    theirs = "total_tokens" not in raw or "cache_read_input_tokens" in raw
    return "anthropic" if theirs else "openai-responses"


def usage_from_raw(dialect: Dialect, raw: Raw) -> Usage | None:
    """Convert a provider's own usage, even if its counts disagree; None if it is incomplete."""
    if dialect == "google":
        return _google(raw)
    if dialect == "anthropic":
        return _anthropic(raw)
    chat = dialect == "openai-chat"  # other names for the same counts
    names = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    return _openai(raw, *names)


def _openai(raw: Raw, into: str, out: str) -> Usage | None:
    """Convert OpenAI's counts: input includes cached tokens, output includes reasoning tokens."""
    prompt, output = _count(raw, into), _count(raw, out)
    if prompt is None or output is None:
        return None
    inside, outside = _under(raw, f"{into}_details"), _under(raw, f"{out}_details")
    read, write = _count(inside, "cached_tokens") or 0, _count(inside, "cache_write_tokens") or 0
    return Usage(
        input=prompt - read - write,
        output=output,
        cache_read=read,
        cache_write=write,
        reasoning=_count(outside, "reasoning_tokens"),
        orchestration_in=_count(inside, "orchestration_input_tokens") or 0,
        orchestration_in_cached=_count(inside, "orchestration_input_cached_tokens") or 0,
        orchestration_out=_count(outside, "orchestration_output_tokens") or 0,
        total_reported=_count(raw, "total_tokens"),
    )


def _anthropic(raw: Raw) -> Usage | None:
    """Convert Anthropic's counts: input excludes cache; only podium's server reports a total."""
    prompt, output = _count(raw, "input_tokens"), _count(raw, "output_tokens")
    if prompt is None or output is None or raw.get(INCOMPLETE) is True:
        return None
    return Usage(
        input=prompt,
        output=output,
        cache_read=_count(raw, "cache_read_input_tokens") or 0,
        cache_write=_count(raw, "cache_creation_input_tokens") or 0,
        cache_write_1h=_count(_under(raw, "cache_creation"), "ephemeral_1h_input_tokens") or 0,
        reasoning=_count(_under(raw, "output_tokens_details"), "thinking_tokens"),
        orchestration_in=_count(raw, "orchestration_input_tokens") or 0,
        orchestration_in_cached=_count(raw, "orchestration_input_cached_tokens") or 0,
        orchestration_out=_count(raw, "orchestration_output_tokens") or 0,
        total_reported=_count(raw, "total_tokens"),
    )


def _google(raw: Raw) -> Usage | None:
    pairs = ([_count(raw, name) for name in names] for names in GOOGLE)
    prompt, candidates, total, thoughts, cached, tools = (
        snake if camel is None else camel for camel, snake in pairs
    )
    if prompt is None:
        return None
    return Usage(
        input=prompt - (cached or 0) + (tools or 0),
        output=(candidates or 0) + (thoughts or 0),  # a reply cut while thinking has no candidates
        cache_read=cached or 0,
        reasoning=thoughts,
        total_reported=total,
    )


def _count(raw: Raw, name: str) -> int | None:
    value = raw.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _under(raw: Raw, name: str) -> Raw:
    return _object(raw.get(name))


AMOUNTS: tuple[tuple[tuple[str, ...], Decimal], ...] = (
    (("cost",), Decimal(1)),  # OpenRouter, in credits of a dollar
    (("cost", "total_cost"), Decimal(1)),  # Perplexity
    (("estimated_cost",), Decimal(1)),  # DeepInfra
    (("cost_in_usd_ticks",), Decimal("1e-10")),  # xAI
)
"""(path of an amount in a provider's usage, value of its unit in US dollars)."""
STATED_IN = frozenset(path[0] for path, _ in AMOUNTS)
UPSTREAM = ("cost_details", "upstream_inference_cost")
"""OpenRouter's field for the charge of the provider behind it, if the user has a key there."""
HEADER = "x-litellm-response-cost"
"""LiteLLM's proxy states dollars in this header; 0 means that it knows no price."""
MODEL_HEADER = "x-litellm-model-name"
"""The model that LiteLLM's proxy called, if the reply only repeats the model group's name."""
PLACES = Decimal("1e-18")
"""Smallest unit of dollars in an exported ledger."""
MOST = Decimal(1_000_000)
"""Maximum plausible cost of one call, in dollars."""


def stated_usd(usage: Raw | None, headers: Mapping[str, str] | None = None) -> Decimal | None:
    """Return the total cost of a call that its provider states; None if it states none.

    With the user's own key, OpenRouter bills a fee, and the provider behind it the rest.

    >>> stated_usd({"cost": 0.0012}), stated_usd({"cost_in_usd_ticks": 37756000})
    (Decimal('0.001200000000000000'), Decimal('0.003775600000000000'))
    """
    usage = usage if isinstance(usage, Mapping) else NOTHING  # a log may contain anything
    if STATED_IN.isdisjoint(usage):  # the usual case; a run has a million calls
        return usd_amount((headers or NOTHING).get(HEADER)) or None
    amounts = (usd_amount(_value_at(usage, path), unit) for path, unit in AMOUNTS)
    usd = next((amount for amount in amounts if amount is not None), None)
    if usd is None:
        return usd_amount((headers or {}).get(HEADER)) or None
    own_key, upstream = usage.get("is_byok"), usd_amount(_value_at(usage, UPSTREAM))
    if own_key is True and upstream is None:
        return None
    # Older replies have no `is_byok`, and state the upstream only for the user's own key.
    both = own_key is True or (own_key is None and upstream is not None and upstream > usd)
    return usd + (upstream or 0) if both else usd


def usd_amount(value: object, unit: Decimal = Decimal(1)) -> Decimal | None:
    """Return dollars stated by a provider or a journal; None if they are no plausible cost."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        usd = Decimal(str(value)) * unit
    except InvalidOperation:
        return None
    return usd.quantize(PLACES) if usd.is_finite() and 0 <= usd <= MOST else None


def _value_at(usage: Raw, path: tuple[str, ...]) -> object:
    value: object = usage
    for name in path:
        value = (
            cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
        )
    return value
