"""Ledger rows for tests of invoices: by hand, by provider, or from a local provider's own bill.

`row(...)` makes a row by hand. Writing rows as a provider would export them is invoice_exports.py.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from podium.harness.ledger.call import Call
from tests.providers import Bill

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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


def row(**changes: Any) -> Call:
    """Return a row of a live call of 100 tokens in, 10 out, with some fields changed."""
    return Call(**{**NOTHING, **changes})


def in_flight(**changes: Any) -> Call:
    """Return the row of a call whose reply never came."""
    unknown = {"billable": "unknown", "usage_source": "missing", "usd": None}
    tokens = dict.fromkeys(("input_uncached", "cache_read", "cache_write", "output"))
    bounds = {"usd_low": Decimal(0), "usd_high": Decimal("0.0025")}
    return row(**{**unknown, **tokens, **bounds, **changes})


def refused(**changes: Any) -> Call:
    """Return the row of an attempt that the provider turned away."""
    return row(**{"billable": "no", "http_status": 429, "error": "RateLimitError", **changes})


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one bucket and model."""

    start: datetime
    end: datetime
    model: str
    rows: tuple[Call, ...]

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


def grouped(rows: Iterable[Call], width: timedelta) -> list[Group]:
    """Return the billed rows by bucket and model, as a provider sees them."""
    found: dict[tuple[datetime, str], list[Call]] = defaultdict(list)
    for one in rows:
        if one.label == "live" and one.billable == "yes" and one.cache != "read":
            time = datetime.fromisoformat(one.started)
            start = EPOCH + (time - EPOCH) // width * width
            found[start, one.served_model or one.model.partition("/")[2]].append(one)
    return [
        Group(start, start + width, model, tuple(members))
        for (start, model), members in sorted(found.items())
    ]


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


def rows_for(format: str, count: int = 6) -> list[Call]:
    """Return rows of the provider of a format, over three hours, some with cached tokens."""
    provider = provider_of(format)
    model = f"{PREFIX.get(provider, 'acme')}/{MODELS[provider]}"
    made: list[Call] = []
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


def one_more(one: Call) -> Call:
    """Return a row with one output token more."""
    return replace(one, output=(one.output or 0) + 1)


PROVIDERS = {"anthropic": "anthropic", "google": "google"}


def billed_rows(bill: Bill) -> list[Call]:
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


def of_provider(rows: Iterable[Call], format: str) -> list[Call]:
    """Return the rows that the provider of a format bills."""
    return [one for one in rows if one.model.startswith(f"{provider_of(format)}/")]
