"""Ledger rows in the words of OpenTelemetry's conventions for generative AI.

Names are those of the GenAI semantic conventions (development status), which have no word for
money: ours stand under `podium.`. Their input count includes cached tokens, ours does not.
"""

from collections.abc import Mapping
from typing import Any

ATTRIBUTES = {
    "gen_ai.operation.name": "`chat`",
    "gen_ai.provider.name": "`model` up to its first `/`",
    "gen_ai.request.model": "`model` after its first `/`",
    "gen_ai.request.max_tokens": "`max_tokens`",
    "gen_ai.response.model": "`served_model`",
    "gen_ai.response.finish_reasons": "`[stop]`",
    "gen_ai.usage.input_tokens": "`input_uncached + cache_read + cache_write`: includes cached",
    "gen_ai.usage.cache_read.input_tokens": "`cache_read`",
    "gen_ai.usage.cache_creation.input_tokens": "`cache_write`",
    "gen_ai.usage.output_tokens": "`output`: includes reasoning",
    "gen_ai.usage.reasoning.output_tokens": "`reasoning`",
    "gen_ai.workflow.name": "`system`",
    "gen_ai.agent.name": "`role`",
    "http.response.status_code": "`http_status`",
    "error.type": "`error`",
}
"""Attribute and the columns that it is made from; every other column is `podium.` and its name."""

TAKEN = frozenset({
    "max_tokens", "served_model", "stop", "cache_read", "cache_write",
    "input_uncached", "output", "reasoning", "http_status", "error",
})  # fmt: skip
"""Columns that an attribute of the conventions says in full."""


def attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row as attributes; what is unknown has none, as the conventions ask."""
    provider, _, model = str(row["model"]).partition("/")
    parts = (row["input_uncached"], row["cache_read"], row["cache_write"])
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.request.max_tokens": row["max_tokens"],
        "gen_ai.response.model": row["served_model"],
        "gen_ai.response.finish_reasons": [row["stop"]] if row["stop"] else None,
        "gen_ai.usage.input_tokens": None if None in parts else sum(parts),
        "gen_ai.usage.cache_read.input_tokens": row["cache_read"],
        "gen_ai.usage.cache_creation.input_tokens": row["cache_write"],
        "gen_ai.usage.output_tokens": row["output"],
        "gen_ai.usage.reasoning.output_tokens": row["reasoning"],
        "gen_ai.workflow.name": row["system"],
        "gen_ai.agent.name": row["role"],
        "http.response.status_code": row["http_status"],
        "error.type": row["error"],
    }
    ours = {f"podium.{name}": value for name, value in row.items() if name not in TAKEN}
    return {name: value for name, value in {**found, **ours}.items() if value is not None}
