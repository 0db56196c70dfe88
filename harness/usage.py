"""The one place where Inspect's token counts become ours."""

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
