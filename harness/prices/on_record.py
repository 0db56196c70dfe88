"""Since when models can be called, and which prices were on record on which days.

A price source of today answers for any day in the past, also for days before a model existed. The
facts here are from before and are dated: history/records.toml has them, with their sources.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from harness.prices.entries import price_from
from harness.prices.pricing import Price

RECORDS = Path(__file__).parent / "history" / "records.toml"


@dataclass(frozen=True, slots=True)
class OnRecord:
    """A price as a dated source stated it, from a day on until the source changed."""

    since: date
    until: date | None
    """First day on which the source said otherwise; None when it never did while it was read."""
    price: Price


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one model at one provider."""

    launched: date
    source: str
    """Of the launch day."""
    prices: tuple[OnRecord, ...]

    def on(self, day: date) -> OnRecord | None:
        """Return what was on record on a day; None when nothing was."""
        for row in self.prices:
            if row.since <= day and (row.until is None or day < row.until):
                return row
        return None


def record_of(ref: str) -> Record | None:
    """Return what is known of a model, by its key in price books."""
    return _records().get(ref)


def launch_day(ref: str) -> str:
    """Return the first day on which a model could be called (ISO); empty when unknown."""
    found = record_of(ref)
    return found.launched.isoformat() if found else ""


@cache
def _records() -> Mapping[str, Record]:
    data: dict[str, dict[str, Any]] = tomllib.loads(RECORDS.read_text())
    return {ref: _record(ref, row) for ref, row in data.items()}


def _record(ref: str, row: Mapping[str, Any]) -> Record:
    launched = date.fromisoformat(row["launched"])
    return Record(
        launched=launched,
        source=row["source"],
        prices=tuple(_on_record(ref, launched, price) for price in row.get("prices", ())),
    )


def _on_record(ref: str, launched: date, row: Mapping[str, Any]) -> OnRecord:
    rates = {name: value for name, value in row.items() if name not in ("since", "until")}
    until = row.get("until")
    return OnRecord(
        since=date.fromisoformat(row["since"]),
        until=date.fromisoformat(until) if until else None,
        price=price_from(ref, {**rates, "launched": launched.isoformat()}, "dated"),
    )
