"""Totals of a ledger: what a question cost, and what a system costs per question.

Two kinds of dollars, never mixed. *Would-be*: the calls of the graded attempts at the list price in
the log's book, as if nothing had been cached anywhere, so that systems can be compared. *Paid*: the
calls of all attempts that a provider billed; nothing for recorded and rehearsal workers. Calls that
grade are in neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.ledger import Kind, Phase, QueryTotals, Tally
from harness.ledger.tally import total
from harness.pool_file import REPLAYING, Label
from harness.sittings import Sitting


@dataclass(frozen=True, slots=True)
class SystemTotals:
    """A system on an exam. Figures per query are means over the graded pairs."""

    n_asked: int
    n_graded: int
    n_unparsed: int
    calls: float | None
    tokens_in: float | None
    tokens_out: float | None
    tokens_reasoning: float | None
    worker_tokens_out: float | None
    conductor_tokens: float | None
    usd: Decimal | None
    usd_paid: Decimal | None
    """All that was paid for answers, failed attempts included, over the pairs begun so far."""
    usd_spent: Decimal | None
    """The same, not divided. None when the price of a billed call is unknown."""
    usd_at_least: Decimal
    """What is known of it: a failed call may have been billed without saying so."""
    usd_grading: Decimal | None
    """Paid to graders that are models; in no figure per query."""
    steps: float | None
    depth: float | None
    latency_s: float | None
    n_unpriced: int
    """Calls with a reply and no price: the reason when there is no dollar figure."""
    n_failed: int
    """Calls that ended in an error; what a provider billed for them is unknown."""


def system_totals(sitting: Sitting) -> SystemTotals:
    """Average a system's queries, and add up what all its attempts have spent."""
    graded = [attempt for attempt in sitting.attempts if attempt.graded]
    rows = [attempt.totals for attempt in graded]
    label, begun, spend = sitting.facts.label, len(sitting.attempts), sitting.spend
    whole = total(spend.values())
    billed = total(tally for kind, tally in spend.items() if _is_billed(kind, "solve"))
    grading = total(tally for kind, tally in spend.items() if _is_billed(kind, "score"))
    spent = paid(label, billed)
    return SystemTotals(
        n_asked=sitting.asked,
        n_graded=len(graded),
        n_unparsed=sum(not attempt.parsed for attempt in graded),
        calls=_mean([row.calls for row in rows]),
        tokens_in=_mean([row.tokens_in for row in rows]),
        tokens_out=_mean([row.tokens_out for row in rows]),
        tokens_reasoning=_mean([row.tokens_reasoning for row in rows]),
        worker_tokens_out=_mean([row.worker_tokens_out for row in rows]),
        conductor_tokens=_mean([row.conductor_tokens for row in rows]),
        usd=_mean_usd(rows),
        usd_paid=spent / begun if spent is not None and begun else None,
        usd_spent=spent,
        usd_at_least=billed.usd if label == "live" else Decimal(0),
        usd_grading=paid(label, grading),
        steps=_mean([attempt.steps for attempt in graded]),
        depth=_mean([attempt.depth for attempt in graded]),
        # A replayed reply comes at once: how long the real one took is not known.
        latency_s=None if _replayed(sitting) else _mean([one.latency_s for one in graded]),
        n_unpriced=whole.unpriced,
        n_failed=whole.failed,
    )


def _is_billed(kind: Kind, phase: Phase) -> bool:
    return kind.phase == phase and kind.billable


def _replayed(sitting: Sitting) -> bool:
    """Say whether replies came from a cassette; rehearsal replies may, too."""
    models = [worker.model for worker in sitting.facts.workers.values()]
    return sitting.facts.label == "recorded" or any(
        model.startswith(f"{REPLAYING}/") for model in models
    )


def paid(label: Label, billed: Tally) -> Decimal | None:
    """Return the dollars that left a purse; None when the price of a billed call is unknown."""
    return billed.billed if label == "live" else Decimal(0)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if values and len(known) == len(values) else None


def _mean_usd(rows: Sequence[QueryTotals]) -> Decimal | None:
    known = [row.usd for row in rows if row.usd is not None]
    return sum(known, Decimal(0)) / len(rows) if rows and len(known) == len(rows) else None
