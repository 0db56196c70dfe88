"""The dollars that providers state in their replies, against those of the price book."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from podium.harness.ledger.call import ZERO, Call, shortest
from podium.reports.audit.evidence import InvariantCheck
from podium.reports.audit.invoice_total import last_place

ROUNDING = Decimal("0.0000005")
"""Largest difference that is none, per call: half a millionth of a dollar, or half of the last
place that the provider gives."""
OWN_KEY = '"is_byok":true'
"""Stands in OpenRouter's usage where a key of the user's own paid the provider behind it."""
WITH_KEY = " with a key of your own, its fee and the provider behind it"
FEE = "calls of {} with a key of your own: the provider states its fee alone, which is not compared"


def compare_dollars(rows: Iterable[Call], found: InvariantCheck) -> None:
    """Note workers whose provider states other dollars than the price book: weak, no fault."""
    by_worker: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for row in rows:
        own_key = OWN_KEY in (row.raw_usage or "")
        if row.billable != "yes" or row.usd is None:
            continue
        if row.usd_provider is not None:
            by_worker[row.role, WITH_KEY if own_key else ""].append(row)
        elif own_key:
            found.weak[FEE.format(row.role)] += 1
    for (role, key), stated in sorted(by_worker.items()):
        if said := _difference(stated):
            found.weak[f"calls of {role}{key}: {said}"] += len(stated)


def _difference(rows: list[Call]) -> str:
    """Return how the two sums differ; empty if they are equal but for rounding."""
    theirs, ours = _sum(row.usd_provider for row in rows), _sum(row.usd for row in rows)
    rounding = sum((_rounding(row.usd_provider) for row in rows), ZERO)
    if abs(theirs - ours) <= rounding:
        return ""
    share = f", {(theirs - ours) / ours:+.1%}" if ours else ""
    sign = "+" if theirs > ours else "-"
    difference = f"{sign}${shortest(abs(theirs - ours))}{share}"
    return (
        f"the provider states ${shortest(theirs)}, the price book ${shortest(ours)} ({difference})"
    )


def _rounding(usd: Decimal | None) -> Decimal:
    return min(ROUNDING, last_place(usd.normalize())) if usd else ROUNDING


def _sum(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount or ZERO for amount in amounts), ZERO)
