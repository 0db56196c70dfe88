"""Synthetic usage exports for tests, made from ledger rows or from a provider's own bill.

`write(rows, "openai-usage", path)` writes what such a provider would export of these rows, with its
field names. `row(...)` makes a row by hand. Nothing here reads an export back.
"""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from providers import Bill

from harness.ledger.row import LedgerRow

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROJECT, KEY = "proj_podium", "key_podium"

NOTHING: dict[str, Any] = {
    "task": "numbers moa",
    "suite": "numbers",
    "system": "moa",
    "label": "live",
    "question": "q1",
    "epoch": 1,
    "sample": "s1",
    "call": "c1",
    "attempt": 1,
    "event": "e1",
    "log": "a.eval",
    "journal": "a.jsonl",
    "scope": "inference",
    "role": "sage",
    "step": "step 1: sage",
    "counted": True,
    "model": "openai/gpt-5-mini",
    "served_model": None,
    "price_ref": "openai/gpt-5-mini",
    "service": "standard",
    "request_id": None,
    "http_status": 200,
    "error": None,
    "stop": "stop",
    "cache": "none",
    "billable": "yes",
    "usage_source": "provider",
    "input_uncached": 100,
    "cache_read": 0,
    "cache_write": 0,
    "cache_write_1h": 0,
    "output": 10,
    "reasoning": None,
    "orchestration_in": 0,
    "orchestration_in_cached": 0,
    "orchestration_out": 0,
    "total_reported": 110,
    "prompt_bytes": 400,
    "max_tokens": 1000,
    "started": "2026-02-01T10:00:00+00:00",
    "latency_s": 2.0,
    "usd_input": None,
    "usd_cache_read": None,
    "usd_cache_write": None,
    "usd_output": None,
    "usd_orchestration": None,
    "usd_request": None,
    "usd": Decimal("0.000250"),
    "usd_list": None,
    "usd_low": None,
    "usd_high": None,
    "tier": "base",
    "evidence": "dated",
    "gpu_s": None,
    "usd_gpu": None,
    "prompt_sha256": None,
    "output_sha256": None,
    "raw_usage": None,
}


def row(**changes: Any) -> LedgerRow:
    """Return a row of a live call of 100 tokens in, 10 out, with some fields changed."""
    return LedgerRow(**{**NOTHING, **changes})


def in_flight(**changes: Any) -> LedgerRow:
    """Return the row of a call whose reply never came."""
    unknown = {"billable": "unknown", "usage_source": "missing", "usd": None}
    tokens = dict.fromkeys(("input_uncached", "cache_read", "cache_write", "output"))
    bounds = {"usd_low": Decimal(0), "usd_high": Decimal("0.0025")}
    return row(**{**unknown, **tokens, **bounds, **changes})


def refused(**changes: Any) -> LedgerRow:
    """Return the row of an attempt that the provider turned away."""
    return row(**{"billable": "no", "http_status": 429, "error": "RateLimitError", **changes})


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one bucket and model."""

    start: datetime
    end: datetime
    model: str
    rows: tuple[LedgerRow, ...]

    def sum(self, name: str) -> int:
        """Return the sum of one field."""
        return sum(getattr(one, name) or 0 for one in self.rows)

    @property
    def input(self) -> int:
        """Return all prompts, cached or not."""
        return sum(one.input_total or 0 for one in self.rows)

    @property
    def usd(self) -> Decimal:
        """Return the dollars."""
        return sum((one.usd or Decimal(0) for one in self.rows), Decimal(0))


def grouped(rows: Iterable[LedgerRow], width: timedelta) -> list[Group]:
    """Return the billed rows by bucket and model, as a provider sees them."""
    found: dict[tuple[datetime, str], list[LedgerRow]] = defaultdict(list)
    for one in rows:
        if one.label == "live" and one.billable == "yes" and one.cache != "read":
            time = datetime.fromisoformat(one.started)
            start = EPOCH + (time - EPOCH) // width * width
            found[start, one.served_model or one.model.partition("/")[2]].append(one)
    return [
        Group(start, start + width, model, tuple(members))
        for (start, model), members in sorted(found.items())
    ]


def openai_usage(rows: Iterable[LedgerRow], **changes: Any) -> str:
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


def openai_costs(rows: Iterable[LedgerRow]) -> str:
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


def openai_csv(rows: Iterable[LedgerRow]) -> str:
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


def anthropic_usage(rows: Iterable[LedgerRow]) -> str:
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


def anthropic_costs(rows: Iterable[LedgerRow]) -> str:
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


def google_rows(rows: Iterable[LedgerRow]) -> list[dict[str, Any]]:
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


def google_jsonl(rows: Iterable[LedgerRow]) -> str:
    """Return billing rows as JSON lines."""
    return "".join(json.dumps(one) + "\n" for one in google_rows(rows))


def google_csv(rows: Iterable[LedgerRow]) -> str:
    """Return billing rows as a flat CSV."""
    nests = ("service", "sku", "project", "usage")
    return table(
        {
            **{name: value for name, value in one.items() if name not in (*nests, "credits")},
            **{f"{nest}.{name}": value for nest in nests for name, value in one[nest].items()},
        }
        for one in google_rows(rows)
    )


def own_csv(rows: Iterable[LedgerRow]) -> str:
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


def openrouter_csv(rows: Iterable[LedgerRow]) -> str:
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


EXPORTS: Mapping[str, Callable[[Iterable[LedgerRow]], str]] = {
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

PREFIX = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "openrouter": "openrouter",
}
MODELS = {
    "openai": "gpt-5-mini-2025-08-07",
    "anthropic": "claude-sonnet-4-20250514",
    "google": "gemini-2.5-flash",
    "openrouter": "openai/gpt-4.1",
    "csv": "acme-1",
}


def provider_of(format: str) -> str:
    """Return whose export a format is."""
    return format.partition("-")[0]


def rows_for(format: str, count: int = 6) -> list[LedgerRow]:
    """Return rows of the provider of a format, over three hours, some with cached tokens."""
    provider = provider_of(format)
    model = f"{PREFIX.get(provider, 'acme')}/{MODELS[provider]}"
    made: list[LedgerRow] = []
    for number in range(count):
        time = datetime(2026, 2, 1, 10 + number % 3, 5 * (number % 12), tzinfo=UTC)
        made.append(
            row(
                model=model,
                request_id=f"req-{number}",
                started=time.isoformat(),
                input_uncached=100 + number,
                cache_read=8 * (number % 2),
                output=20 + 3 * number,
                usd=Decimal("0.00025") + Decimal(number) / 100_000,
            )
        )
    return made


def write(rows: Iterable[LedgerRow], format: str, path: Path) -> Path:
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


def one_more(one: LedgerRow) -> LedgerRow:
    """Return a row with one output token more."""
    return replace(one, output=(one.output or 0) + 1)


PROVIDERS = {"anthropic": "anthropic", "google": "google"}


def billed_rows(bill: Bill) -> list[LedgerRow]:
    """Return what a local provider bills, as rows: for exports, so that no ledger of ours is in it.

    Dollars are left out: a usage export has none.
    """
    return [
        row(
            model=f"{PROVIDERS.get(line.dialect, 'openai')}/{line.model}",
            served_model=line.served,
            request_id=line.request_id,
            started=datetime.fromtimestamp(line.at, UTC).isoformat(),
            input_uncached=line.usage.input,
            cache_read=line.usage.cache_read,
            cache_write=line.usage.cache_write,
            cache_write_1h=line.usage.cache_write_1h,
            output=line.usage.output,
            usd=Decimal(0),
        )
        for line in bill.billed
    ]


def of_provider(rows: Iterable[LedgerRow], format: str) -> list[LedgerRow]:
    """Return the rows that the provider of a format bills."""
    return [one for one in rows if one.model.startswith(f"{provider_of(format)}/")]
