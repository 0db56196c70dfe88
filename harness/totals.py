"""Totals of a ledger: what a question cost, and what a system costs per question.

Two kinds of dollars, never mixed. *Would-be*: the calls of the graded attempts at the list price in
the log's book, as if nothing had been cached anywhere, so that systems can be compared. *Paid*: the
calls of all attempts that a provider billed, by the journals where there are any; nothing for
recorded and rehearsal workers. Calls that grade are in neither.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.ledger import Phase, QueryTotals
from harness.ledger.paid import Paid
from harness.ledger.row import Scope
from harness.ledger.tally import total
from harness.pool_file import REPLAYING
from harness.sittings import Sitting


@dataclass(frozen=True, slots=True)
class SystemTotals:
    """A system on an exam. Figures per query are means over the graded pairs."""

    n_asked: int
    n_graded: int
    n_unparsed: int
    """Wrong because no answer was found in the reply; where a plan failed there was no reply."""
    calls: float | None
    tokens_in: float | None
    tokens_out: float | None
    tokens_reasoning: float | None
    worker_tokens_out: float | None
    conductor_tokens: float | None
    usd: Decimal | None
    paid: Paid
    """All that was paid for answers, failed attempts included."""
    usd_paid: Decimal | None
    """The same over the pairs begun so far, and not divided; None when it is a range."""
    usd_spent: Decimal | None
    usd_grading: Decimal | None
    """Paid to graders that are models; in no figure per query."""
    steps: float | None
    depth: float | None
    latency_s: float | None
    n_unpriced: int
    """Calls with a reply and no price: the reason when there is no dollar figure."""
    n_planned: int
    """Graded pairs for which a model was asked for a plan."""
    plan_faults: Mapping[str, int]
    """Of those, what was wrong with plans that could not be carried out, and how often."""
    conductor_s: float | None
    """Of a model that plans in this process, on this machine's processor; None without one."""
    n_failed: int
    """Calls that ended in an error; what a provider billed for them is unknown."""

    @property
    def usd_at_least(self) -> Decimal:
        """What is known of what was paid: a call without an end may have been billed as well."""
        return self.paid.low


def system_totals(sitting: Sitting) -> SystemTotals:
    """Average a system's queries, and add up what all its attempts have spent."""
    graded = [attempt for attempt in sitting.attempts if attempt.graded]
    rows = [attempt.totals for attempt in graded]
    begun, whole = len(sitting.attempts), total(sitting.spend.values())
    answering, scoring = _paid(sitting, "inference", "solve"), _paid(sitting, "scoring", "score")
    spent = answering.exact
    return SystemTotals(
        n_asked=sitting.asked,
        n_graded=len(graded),
        n_unparsed=sum(not one.parsed and not one.plan_fault for one in graded),
        calls=_mean([row.calls for row in rows]),
        tokens_in=_mean([row.tokens_in for row in rows]),
        tokens_out=_mean([row.tokens_out for row in rows]),
        tokens_reasoning=_mean([row.tokens_reasoning for row in rows]),
        worker_tokens_out=_mean([row.worker_tokens_out for row in rows]),
        conductor_tokens=_mean([row.conductor_tokens for row in rows]),
        usd=_mean_usd(rows),
        paid=answering,
        usd_paid=spent / begun if spent is not None and begun else None,
        usd_spent=spent,
        usd_grading=scoring.exact,
        steps=_mean([attempt.steps for attempt in graded]),
        depth=_mean([attempt.depth for attempt in graded]),
        # A replayed reply comes at once: how long the real one took is not known.
        latency_s=None if _replayed(sitting) else _mean([one.latency_s for one in graded]),
        n_unpriced=whole.unpriced,
        n_planned=sum(attempt.planned for attempt in graded),
        plan_faults=Counter(one.plan_fault for one in graded if one.plan_fault),
        conductor_s=_mean([row.conductor_s for row in rows]),
        n_failed=whole.failed,
    )


def _paid(sitting: Sitting, scope: Scope, phase: Phase) -> Paid:
    """Return what left a purse; by the logs for runs that are older than journals.

    A call that failed without saying whether it was billed has no upper bound there. Journals that
    have less than the logs are not all here, so what was paid has no upper bound either.
    """
    if sitting.facts.label != "live":
        return Paid()
    kinds = ((kind, tally) for kind, tally in sitting.spend.items() if kind.phase == phase)
    billed = total(tally for kind, tally in kinds if kind.billable)
    if sitting.paid is None:
        failed = billed.unbilled - billed.unpriced
        return Paid(billed.usd, billed.billed, failed, billed.unpriced)
    paid = sitting.paid.get(scope, Paid())
    if billed.usd <= paid.low:
        return paid
    return Paid(billed.usd, None, paid.unknown, paid.unpriced)  # a journal is gone


def _replayed(sitting: Sitting) -> bool:
    """Say whether replies came from a cassette; rehearsal replies may, too."""
    models = [worker.model for worker in sitting.facts.workers.values()]
    return sitting.facts.label == "recorded" or any(
        model.startswith(f"{REPLAYING}/") for model in models
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if values and len(known) == len(values) else None


def _mean_usd(rows: Sequence[QueryTotals]) -> Decimal | None:
    known = [row.usd for row in rows if row.usd is not None]
    return sum(known, Decimal(0)) / len(rows) if rows and len(known) == len(rows) else None
