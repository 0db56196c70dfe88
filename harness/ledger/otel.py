"""A call in the words of OpenTelemetry's GenAI conventions, exported or sent as a span."""

from collections.abc import Mapping
from typing import Any

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
"""Attributes of the conventions that are a column of ours."""
TAKEN = frozenset({"stop", "input_uncached", *SAME.values()}) - {"system", "role"}
"""Columns that an attribute of the conventions says in full."""


def attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row as attributes; what is unknown has none, as the conventions ask."""
    provider, _, model = str(row["model"]).partition("/")
    parts = (row["input_uncached"], row["cache_read"], row["cache_write"])
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.response.finish_reasons": [row["stop"]] if row["stop"] else None,
        "gen_ai.usage.input_tokens": None if None in parts else sum(parts),
        **{name: row[column] for name, column in SAME.items()},
    }
    ours = {f"podium.{name}": value for name, value in row.items() if name not in TAKEN}
    return {name: value for name, value in {**found, **ours}.items() if value is not None}
