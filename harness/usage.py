"""The one place where other people's token counts become ours.

Inspect's counts come first; what it drops is taken from the provider's own usage (`with_raw`).
Usage that cannot be is no usage (`believed`), and the call costs what nobody knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, cast

from inspect_ai.model import ModelOutput, ModelUsage

from podium.harness.records import Usage

Raw = Mapping[str, Any]  # A provider's own usage, as its reply has it
Dialect = Literal["openai-chat", "openai-responses", "anthropic", "google"]
PROVIDER_USAGE = "provider_usage"  # where our own providers keep the raw usage in metadata
CEILING = 100_000_000
"""Ten times the longest context on sale, since Inspect adds up the requests of one call."""
GOOGLE = (
    ("promptTokenCount", "prompt_token_count"),
    ("candidatesTokenCount", "candidates_token_count"),
    ("totalTokenCount", "total_token_count"),
    ("thoughtsTokenCount", "thoughts_token_count"),
    ("cachedContentTokenCount", "cached_content_token_count"),
    ("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
)  # google's counts: as its API has them, and as its client does
INCOMPLETE = "incomplete"
"""Says of Anthropic's counts, which must be integers, that they are what is known of the tokens."""
COUNTS = (
    *("input_tokens", "output_tokens", "total_tokens", "prompt_tokens", "completion_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("orchestration_input_tokens", "orchestration_input_cached_tokens"),
    "orchestration_output_tokens",  # beside the others where podium speaks Anthropic's dialect
    *chain.from_iterable(GOOGLE),
)  # names of counts in a provider's own usage, of all dialects
INSIDE = (
    *("cached_tokens", "cache_write_tokens"),
    *("orchestration_input_tokens", "orchestration_input_cached_tokens"),
)
OUTSIDE = ("reasoning_tokens", "thinking_tokens", "orchestration_output_tokens")
DETAILS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("prompt_tokens_details", "input_tokens_details"), INSIDE),
    **dict.fromkeys(("completion_tokens_details", "output_tokens_details"), OUTSIDE),
    "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
}  # names of counts one level below
NOTHING: Raw = {}
_PARTS = attrgetter(*Usage.__dataclass_fields__)


def usage_from(usage: ModelUsage | None) -> Usage | None:
    """Return the tokens that a provider reported; None, never zero, when it reported none."""
    return None if usage is None else usage_from_json(vars(usage))


def usage_from_json(usage: Raw | None) -> Usage | None:
    """Return what `usage_from` does, of a `ModelUsage` as a log's JSON has it."""
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
    """Return all that is known of a reply's tokens; `response` is the provider's, if at hand."""
    return usage_of_event(usage_from(output.usage), raw_usage(response, output.metadata))


def usage_of_event(counted: Usage | None, raw: Raw | None) -> Usage | None:
    """Return what a call took, from Inspect's counts and its provider's own; None if unknown."""
    return believed(with_raw(counted, raw), raw)


def believed(usage: Usage | None, raw: Raw | None) -> Usage | None:
    """Return counts that can be, and None for others, as if nobody had counted.

    Inspect takes `true` for 1, so the provider's own words are judged, too. Counts that can be and
    contradict each other stay, for the audit.
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
    """Say whether counts can be those of one call; a part that is taken off its whole fits in."""
    counts = [count for count in _PARTS(usage) if count is not None]
    return (
        all(map(_is_count, counts))
        and usage.parts_total <= CEILING
        and usage.cache_write_1h <= usage.cache_write
        and usage.orchestration_in_cached <= usage.orchestration_in
    )


def _counts(raw: Raw) -> Iterator[object]:
    """Yield whatever stands in a provider's own usage where a count should, if anything does."""
    places = [(raw, COUNTS), *((_under(raw, name), names) for name, names in DETAILS.items())]
    for holder, names in places:
        yield from (holder[name] for name in names if holder.get(name) is not None)


def _is_count(value: object) -> bool:
    """Say whether a value can be a number of tokens; 12.0 is how some servers write 12."""
    if type(value) is not int and type(value) is not float:  # `True` is an int by `isinstance`
        return False
    return 0 <= value <= CEILING and value == int(value)


def raw_usage(response: Raw | None, metadata: Raw | None = None) -> Raw | None:
    """Return the provider's own usage: from its response, else from where our providers keep it."""
    fields = map(_object(response).get, ("usage", "usageMetadata", "usage_metadata"))
    value: object = next(filter(None, fields), None) or _object(metadata).get(PROVIDER_USAGE)
    return cast(Raw, value) if isinstance(value, Mapping) else None


def _object(value: object) -> Raw:
    """Return some JSON where it is an object; a provider may answer with anything."""
    return cast(Raw, value) if isinstance(value, Mapping) else NOTHING


def with_raw(usage: Usage | None, raw: Raw | None) -> Usage | None:
    """Return Inspect's counts with what only the provider's own usage says."""
    if usage is None or not raw:
        return usage  # what a fragment says is no measurement of the whole
    hour = _count(_under(raw, "cache_creation"), "ephemeral_1h_input_tokens") or 0
    inside = _under(raw, "input_tokens_details") or _under(raw, "prompt_tokens_details")
    outside = _under(raw, "output_tokens_details") or _under(raw, "completion_tokens_details")
    if dialect_of(raw) == "anthropic":
        inside = outside = raw
    tokens_in = _count(inside, "orchestration_input_tokens") or 0
    tokens_out = _count(outside, "orchestration_output_tokens") or 0
    if not (hour or tokens_in or tokens_out):
        return usage  # as nearly always, and a report may read a million calls
    total = _count(raw, "total_tokens")  # Inspect adds one up for Anthropic, who says none
    return replace(
        usage,
        cache_write_1h=hour,
        orchestration_in=tokens_in,
        orchestration_in_cached=_count(inside, "orchestration_input_cached_tokens") or 0,
        orchestration_out=tokens_out,
        total_reported=usage.total_reported if total is None else total,
    )


def dialect_of(raw: Raw) -> Dialect | None:
    """Return whose usage this is, by its fields; None for one that nobody here knows."""
    if any(name in raw for name in GOOGLE[0]):
        return "google"
    if "prompt_tokens" in raw:
        return "openai-chat"
    if "input_tokens" not in raw:
        return None
    # Anthropic says no total, but a podium that speaks its dialect does.
    theirs = "total_tokens" not in raw or "cache_read_input_tokens" in raw
    return "anthropic" if theirs else "openai-responses"


def usage_from_raw(dialect: Dialect, raw: Raw) -> Usage | None:
    """Return what a provider's own usage says, contradictions too; None without a whole one."""
    if dialect == "google":
        return _google(raw)
    if dialect == "anthropic":
        return _anthropic(raw)
    chat = dialect == "openai-chat"  # it has other names for the same counts
    names = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    return _openai(raw, *names)


def _openai(raw: Raw, into: str, out: str) -> Usage | None:
    """Cached tokens are part of the input, reasoning of the output; Sakana's own of neither."""
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
    """Cached tokens are not part of the input; only a podium says orchestration and a total."""
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
"""Where a provider's usage has its dollars, and the unit in dollars."""
STATED_IN = frozenset(path[0] for path, _ in AMOUNTS)
UPSTREAM = ("cost_details", "upstream_inference_cost")
"""What OpenRouter says that the provider behind it charges a key of the user's own."""
HEADER = "x-litellm-response-cost"
"""LiteLLM's proxy says it in a header; 0 there is a model of which it knows no price."""
MODEL_HEADER = "x-litellm-model-name"
"""Whom LiteLLM's proxy asked, where the reply itself repeats the name of its group of models."""
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
    amounts = (usd_amount(_value_at(usage, path), unit) for path, unit in AMOUNTS)
    usd = next((amount for amount in amounts if amount is not None), None)
    if usd is None:
        return usd_amount((headers or {}).get(HEADER)) or None
    own_key, upstream = usage.get("is_byok"), usd_amount(_value_at(usage, UPSTREAM))
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


def _value_at(usage: Raw, path: tuple[str, ...]) -> object:
    value: object = usage
    for name in path:
        value = (
            cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
        )
    return value
