"""What items and outcomes look like as JSON: the native shape of `POST /score`, both ways.

Standard library only, for the client runs in a trainer's own environment. What comes in from
outside is checked elsewhere: requests in bodies.py, replies in client.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, cast

from harness.records import Usage
from harness.rewards.items import RewardItem, RewardOutcome, Status, Work

MASKED = "too_many_masked"
"""The `kind` of the 503 that says: too large a share has no value, and this will not pass."""

BUSY = "unscored"
"""The `kind` of a 503 that says: this item has no value; another try may."""


def items_json(items: Sequence[RewardItem]) -> dict[str, Any]:
    """Return the body of a request to score items; a plain item has no key of a workflow's."""
    return {"items": [_item_json(item) for item in items]}


def outcomes_json(outcomes: Sequence[RewardOutcome]) -> dict[str, Any]:
    """Return the body of the reply to it; dollars are a string, for they are exact."""
    return {"outcomes": [_outcome_json(outcome) for outcome in outcomes]}


def outcomes_from(body: Mapping[str, Any]) -> list[RewardOutcome]:
    """Return the outcomes of a reply; KeyError, TypeError or ValueError where it is none."""
    return [_outcome_from(cast(Mapping[str, Any], row)) for row in body["outcomes"]]


def _item_json(item: RewardItem) -> dict[str, Any]:
    said = asdict(item)
    return {key: value for key, value in said.items() if value or key not in ("workers", "first")}


def _outcome_json(outcome: RewardOutcome) -> dict[str, Any]:
    return {
        "value": outcome.value,
        "status": outcome.status.value,
        "components": dict(outcome.components),
        "usage": None if outcome.usage is None else asdict(outcome.usage),
        "usd": None if outcome.usd is None else str(outcome.usd),
        "calls": outcome.calls,
        "latency_s": outcome.latency_s,
        "grading_s": outcome.grading_s,
        "shared": outcome.shared,
        "reason": outcome.reason,
        "work": None if outcome.work is None else asdict(outcome.work),
    }


def _outcome_from(row: Mapping[str, Any]) -> RewardOutcome:
    value, usd = row["value"], row["usd"]
    return RewardOutcome(
        value=None if value is None else float(value),
        status=Status(row["status"]),
        components={
            str(name): None if part is None else float(part)
            for name, part in row["components"].items()
        },
        usage=None if row["usage"] is None else Usage(**row["usage"]),
        usd=None if usd is None else Decimal(usd),
        calls=int(row["calls"]),
        latency_s=float(row["latency_s"]),
        grading_s=float(row.get("grading_s", 0.0)),  # services of earlier versions do not say
        shared=bool(row["shared"]),
        reason=str(row["reason"]),
        work=_work_from(row.get("work")),
    )


def _work_from(row: Mapping[str, Any] | None) -> Work | None:
    """Return what was carried out; services of earlier versions say nothing of it."""
    if row is None:
        return None
    workers = tuple(str(name) for name in row["workers"])
    return Work(workers, str(row["plan"]), int(row["cached"]), row["leaked"])
