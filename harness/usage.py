"""The one place where Inspect's token counts become ours."""

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import ModelUsage

from harness.records import Usage


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


def usage_from_json(usage: Mapping[str, Any] | None) -> Usage | None:
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
