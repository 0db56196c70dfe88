"""Synthetic usage exports for tests, made from ledger rows.

`write(rows, "openai-usage", path)` writes what such a provider would export of these rows, with its
field names. Making rows is invoice_rows.py. Nothing here reads an export back.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.ledger.call import Call
from tests.reports.audit.invoice_rows import grouped

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
PROJECT, KEY = "proj_podium", "key_podium"


def openai_usage(rows: Iterable[Call], **changes: Any) -> str:
    """Return a page of OpenAI's completions usage API, hourly, by project, key and model."""
    data = [
        {
            "object": "bucket",
            "start_time": int(group.start.timestamp()),
            "end_time": int(group.end.timestamp()),
            "results": [
                {
                    "object": "organization.usage.completions.result",
                    "input_tokens": group.input,
                    "input_cached_tokens": group.sum("cache_read"),
                    "output_tokens": group.sum("output"),
                    "num_model_requests": len(group.rows),
                    "project_id": PROJECT,
                    "api_key_id": KEY,
                    "model": group.model,
                    "batch": False,
                    **changes,
                }
            ],
        }
        for group in grouped(rows, HOUR)
    ]
    return json.dumps({"object": "page", "data": data, "has_more": False, "next_page": None})


def openai_costs(rows: Iterable[Call]) -> str:
    """Return a page of OpenAI's costs API, daily, by project and line item."""
    data = [
        {
            "object": "bucket",
            "start_time": int(group.start.timestamp()),
            "end_time": int(group.end.timestamp()),
            "results": [
                {
                    "object": "organization.costs.result",
                    "amount": {"value": float(group.usd), "currency": "usd"},
                    "line_item": f"{group.model}, input",
                    "project_id": PROJECT,
                }
            ],
        }
        for group in grouped(rows, DAY)
    ]
    return json.dumps({"object": "page", "data": data, "has_more": False, "next_page": None})


def openai_csv(rows: Iterable[Call]) -> str:
    """Return the usage page's CSV."""
    return table(
        {
            "start_time": int(group.start.timestamp()),
            "end_time": int(group.end.timestamp()),
            "start_time_iso": group.start.isoformat(),
            "end_time_iso": group.end.isoformat(),
            "project_id": PROJECT,
            "num_model_requests": f"{len(group.rows)}.0",
            "api_key_id": KEY,
            "model": group.model,
            "input_tokens": group.input,
            "output_tokens": group.sum("output"),
            "input_cached_tokens": group.sum("cache_read"),
        }
        for group in grouped(rows, HOUR)
    )


def anthropic_usage(rows: Iterable[Call]) -> str:
    """Return a page of Anthropic's messages usage report, hourly."""
    data = [
        {
            "starting_at": f"{group.start:%Y-%m-%dT%H:%M:%SZ}",
            "ending_at": f"{group.end:%Y-%m-%dT%H:%M:%SZ}",
            "results": [
                {
                    "uncached_input_tokens": group.sum("input_uncached"),
                    "cache_read_input_tokens": group.sum("cache_read"),
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": group.sum("cache_write")
                        - group.sum("cache_write_1h"),
                        "ephemeral_1h_input_tokens": group.sum("cache_write_1h"),
                    },
                    "output_tokens": group.sum("output"),
                    "server_tool_use": {"web_search_requests": 0},
                    "model": group.model,
                    "api_key_id": KEY,
                    "workspace_id": None,
                    "service_tier": "standard",
                    "context_window": "0-200k",
                }
            ],
        }
        for group in grouped(rows, HOUR)
    ]
    return json.dumps({"data": data, "has_more": False, "next_page": None})


def anthropic_costs(rows: Iterable[Call]) -> str:
    """Return a page of Anthropic's cost report, daily, in cents."""
    data = [
        {
            "starting_at": f"{group.start:%Y-%m-%dT%H:%M:%SZ}",
            "ending_at": f"{group.end:%Y-%m-%dT%H:%M:%SZ}",
            "results": [
                {
                    "amount": str(group.usd * 100),
                    "currency": "USD",
                    "cost_type": "tokens",
                    "description": f"{group.model} Usage",
                    "model": group.model,
                    "token_type": "output_tokens",
                    "workspace_id": "wrkspc_podium",
                }
            ],
        }
        for group in grouped(rows, DAY)
    ]
    return json.dumps({"data": data, "has_more": False, "next_page": None})


def google_rows(rows: Iterable[Call]) -> list[dict[str, Any]]:
    """Return billing rows: one per bucket, model and kind of token; all dollars on the output."""
    found: list[dict[str, Any]] = []
    for group in grouped(rows, HOUR):
        name = group.model.replace("-", " ")
        kinds = (
            ("input", group.sum("input_uncached")),
            ("cached input", group.sum("cache_read")),
            ("output", group.sum("output")),
        )
        found += [
            {
                "billing_account_id": "000000-000000-000000",
                "service": {"id": "AEFD", "description": "Gemini API"},
                "sku": {
                    "id": kind,
                    "description": f"Generate content {kind} token count {name} short input text",
                },
                "usage_start_time": f"{group.start:%Y-%m-%d %H:%M:%S} UTC",
                "usage_end_time": f"{group.end:%Y-%m-%d %H:%M:%S} UTC",
                "project": {"id": PROJECT},
                "usage": {"amount": tokens, "unit": "count"},
                "cost": str(group.usd if kind == "output" else Decimal(0)),
                "currency": "USD",
                "cost_type": "regular",
                "credits": [],
            }
            for kind, tokens in kinds
        ]
    return found


def google_jsonl(rows: Iterable[Call]) -> str:
    """Return billing rows as JSON lines."""
    return "".join(json.dumps(one) + "\n" for one in google_rows(rows))


def google_csv(rows: Iterable[Call]) -> str:
    """Return billing rows as a flat CSV."""
    nests = ("service", "sku", "project", "usage")
    return table(
        {
            **{name: value for name, value in one.items() if name not in (*nests, "credits")},
            **{f"{nest}.{name}": value for nest in nests for name, value in one[nest].items()},
        }
        for one in google_rows(rows)
    )


def own_csv(rows: Iterable[Call]) -> str:
    """Return our CSV, one row per request."""
    return table(
        {
            "request_id": one.request_id or "",
            "model": one.served_model or one.model.partition("/")[2],
            "time": one.started,
            "input_tokens": one.input_total,
            "cached_tokens": one.cache_read,
            "output_tokens": one.output,
            "usd": f"{one.usd:f}",
            "api_key": KEY,
        }
        for one in rows
        if one.label == "live" and one.billable == "yes"
    )


def openrouter_csv(rows: Iterable[Call]) -> str:
    """Return OpenRouter's activity export."""
    return table(
        {
            "generation_id": one.request_id,
            "created_at": one.started.replace("T", " ").removesuffix("+00:00"),
            "cost_total": f"{one.usd:f}",
            "tokens_prompt": one.input_total,
            "tokens_completion": one.output,
            "tokens_reasoning": 0,
            "tokens_cached": one.cache_read,
            "model_permaslug": one.model.partition("/")[2],
            "provider_name": "somebody",
            "api_key_name": KEY,
        }
        for one in rows
        if one.billable == "yes"
    )


EXPORTS: Mapping[str, Callable[[Iterable[Call]], str]] = {
    "openai-usage": openai_usage,
    "openai-costs": openai_costs,
    "openai-usage-csv": openai_csv,
    "anthropic-usage": anthropic_usage,
    "anthropic-costs": anthropic_costs,
    "google-billing": google_jsonl,
    "csv": own_csv,
    "openrouter-csv": openrouter_csv,
}
"""Every format by the name that podium gives it."""


def write(rows: Iterable[Call], format: str, path: Path) -> Path:
    """Write rows as a provider would export them."""
    path.write_text(EXPORTS[format](rows))
    return path


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV, the header first."""
    out = io.StringIO()
    found = list(rows)
    writer = csv.DictWriter(out, list(found[0]) if found else ["model"])
    writer.writeheader()
    writer.writerows(found)
    return out.getvalue()
