"""The one place where other people's token counts become ours.

Inspect's counts come first: it adds up the requests of one call, and leaves cached tokens out of
the input of every provider. What it drops is taken from the provider's own usage (`with_raw`):
cache writes kept for an hour, and the tokens that a product spends on models of its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from inspect_ai.model import ModelOutput, ModelUsage

from harness.records import Usage

Raw = Mapping[str, Any]
"""A provider's own usage, as its reply has it."""

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "google"]

PROVIDER_USAGE = "provider_usage"
"""Key in a reply's metadata under which our own providers keep the raw usage in the log."""

NOTHING: Raw = {}


def usage_from(usage: ModelUsage | None) -> Usage | None:
    """Return the tokens that a provider reported; None, never zero, when it reported none."""
    if usage is None:
        return None
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.input_tokens_cache_read or 0,
        cache_write=usage.input_tokens_cache_write or 0,
        reasoning=usage.reasoning_tokens,
        total_reported=usage.total_tokens or None,  # Inspect's default is 0
    )


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
        total_reported=get("total_tokens") or None,
    )


def usage_of_reply(output: ModelOutput, response: Raw | None = None) -> Usage | None:
    """Return all that is known of a reply's tokens; `response` is the provider's, if at hand."""
    return with_raw(usage_from(output.usage), raw_usage(response, output.metadata))


def raw_usage(response: Raw | None, metadata: Raw | None = None) -> Raw | None:
    """Return the provider's own usage: from its response, else from where our providers keep it."""
    said, kept = response or NOTHING, metadata or NOTHING
    found: object = (
        said.get("usage")
        or said.get("usageMetadata")
        or said.get("usage_metadata")
        or kept.get(PROVIDER_USAGE)
    )
    return cast(Raw, found) if isinstance(found, Mapping) else None


def with_raw(usage: Usage | None, raw: Raw | None) -> Usage | None:
    """Return Inspect's counts with what only the provider's own usage says.

    A reply without usage has none: what a fragment says is no measurement of the whole.
    """
    if usage is None or not raw:
        return usage
    hour = _count(_under(raw, "cache_creation"), "ephemeral_1h_input_tokens") or 0
    inside = _under(raw, "input_tokens_details") or _under(raw, "prompt_tokens_details")
    outside = _under(raw, "output_tokens_details") or _under(raw, "completion_tokens_details")
    asked = _count(inside, "orchestration_input_tokens") or 0
    said = _count(outside, "orchestration_output_tokens") or 0
    if not (hour or asked or said):
        return usage  # as nearly always, and a report may read a million calls
    return replace(
        usage,
        cache_write_1h=hour,
        orchestration_in=asked,
        orchestration_in_cached=_count(inside, "orchestration_input_cached_tokens") or 0,
        orchestration_out=said,
    )


def dialect_of(raw: Raw) -> Dialect | None:
    """Return whose usage this is, by its fields; None for one that nobody here knows."""
    if "promptTokenCount" in raw or "prompt_token_count" in raw:
        return "google"
    if "prompt_tokens" in raw:
        return "openai-chat"
    if "input_tokens" not in raw:
        return None
    return "openai-responses" if "total_tokens" in raw else "anthropic"


def usage_from_raw(dialect: Dialect, raw: Raw) -> Usage | None:
    """Return what a provider's own usage says; None when prompt or output is missing from it.

    Nothing is put right: counts that contradict each other stay, for the audit to find.
    """
    readers = {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "google": _google,
    }
    return readers[dialect](raw)


def _chat(raw: Raw) -> Usage | None:
    """Chat completions: as responses, with other names for the same counts."""
    return _openai(raw, "prompt_tokens", "completion_tokens")


def _responses(raw: Raw) -> Usage | None:
    return _openai(raw, "input_tokens", "output_tokens")


def _openai(raw: Raw, into: str, out: str) -> Usage | None:
    """Cached tokens are part of the input, reasoning of the output.

    Sakana's orchestration tokens stand among the details and are part of neither
    (console.sakana.ai/pricing, read 2026-11-22); its cached ones are part of the orchestration's
    input.
    """
    prompt, output = _count(raw, into), _count(raw, out)
    if prompt is None or output is None:
        return None
    inside, outside = _details(raw, into), _details(raw, out)
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
    """Cached tokens are not part of the input; there is no total."""
    prompt, output = _count(raw, "input_tokens"), _count(raw, "output_tokens")
    if prompt is None or output is None:
        return None
    return Usage(
        input=prompt,
        output=output,
        cache_read=_count(raw, "cache_read_input_tokens") or 0,
        cache_write=_count(raw, "cache_creation_input_tokens") or 0,
        cache_write_1h=_count(_under(raw, "cache_creation"), "ephemeral_1h_input_tokens") or 0,
        reasoning=_count(_under(raw, "output_tokens_details"), "thinking_tokens"),
    )


def _google(raw: Raw) -> Usage | None:
    """Cached tokens are part of the prompt, thoughts are not part of the candidates."""
    prompt = _either(raw, "promptTokenCount", "prompt_token_count")
    said = _either(raw, "candidatesTokenCount", "candidates_token_count")
    total = _either(raw, "totalTokenCount", "total_token_count")
    if prompt is None:
        return None
    thoughts = _either(raw, "thoughtsTokenCount", "thoughts_token_count")
    cached = _either(raw, "cachedContentTokenCount", "cached_content_token_count") or 0
    tools = _either(raw, "toolUsePromptTokenCount", "tool_use_prompt_token_count") or 0
    return Usage(
        input=prompt - cached + tools,
        output=(said or 0) + (thoughts or 0),  # a reply cut while thinking has no candidates
        cache_read=cached,
        reasoning=thoughts,
        total_reported=total,
    )


def _count(raw: Raw, name: str) -> int | None:
    found = raw.get(name)
    return found if isinstance(found, int) else None


def _either(raw: Raw, camel: str, snake: str) -> int | None:
    found = _count(raw, camel)
    return _count(raw, snake) if found is None else found


def _details(raw: Raw, name: str) -> Raw:
    return _under(raw, f"{name}_details")


def _under(raw: Raw, name: str) -> Raw:
    found = raw.get(name)
    return cast(Raw, found) if isinstance(found, Mapping) else NOTHING
