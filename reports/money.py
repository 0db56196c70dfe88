"""What a row says about money beside its headline: a range of what was paid, prices and hardware.

The headline is the list price with nothing cached (harness/totals.py). What is unknown stays
unknown here: a sum that lacks a call is never shown as a smaller sum.
"""

from decimal import Decimal
from typing import Any

from harness.ledger.tally import in_table, total
from harness.prices import Book, book_from_json
from harness.prices.pricing import gpu_cost
from harness.records import GRADER, Usage
from harness.sittings import Sitting
from harness.totals import SystemTotals
from reports.render import usd

ZERO = Decimal(0)


def money_columns(sitting: Sitting, totals: SystemTotals) -> dict[str, Any]:
    """Return the columns of a row that are about money."""
    book = book_from_json(sitting.facts.prices)
    paid, begun = totals.paid, len(sitting.attempts)
    return {
        "usd_paid_per_query": totals.usd_paid,
        "usd_paid_low": _each(paid.low, begun),
        "usd_paid_high": _each(paid.high, begun),
        "n_unknown_billed": paid.unknown,
        "n_unpriced": totals.n_unpriced,
        "usd_gpu_per_query": _each(_gpu(sitting, book), totals.n_graded),
        "usd_scoring_per_query": _each(_scoring(sitting), totals.n_graded),
        "price_book_date": book.date,
        "price_evidence": _evidence(sitting, book),
        "auditable": not not_auditable(sitting),
    }


def _each(value: Decimal | None, pairs: int) -> Decimal | None:
    return value / pairs if value is not None and pairs else None


def _gpu(sitting: Sitting, book: Book) -> Decimal | None:
    """Return dollars of own hardware; None when no price says what that costs.

    They go by output tokens, so they can be had from sums.
    """
    found: Decimal | None = None
    for kind, tally in sitting.spend.items():
        worker = sitting.facts.workers.get(kind.role)
        price = book.price(worker.price) if worker else None
        if price is None or price.gpu is None or not in_table(kind):
            continue
        if tally.untold:
            return None
        found = (found or ZERO) + gpu_cost(Usage(output=tally.output), price.gpu)
    return found


def _scoring(sitting: Sitting) -> Decimal | None:
    """Return what graders that are models cost at list price, of all attempts."""
    return total(tally for kind, tally in sitting.spend.items() if kind.phase == "score").listed


def _evidence(sitting: Sitting, book: Book) -> str:
    """Return how each price that was used is known; our own practice workers have no market."""
    if sitting.facts.label == "rehearsal":
        return ""
    called = sorted({kind.role for kind in sitting.spend} & sitting.facts.workers.keys())
    said: list[str] = []
    for role in called:
        if role != GRADER:
            said.append(f"{role}: {book.evidence(sitting.facts.workers[role].price)}")
    return "; ".join(said)


def not_auditable(sitting: Sitting) -> dict[str, str]:
    """Return the workers that were called and whose dollars nothing tells, each with the reason."""
    called = {kind.role for kind in sitting.spend if in_table(kind)}
    found = ((role, sitting.facts.workers.get(role)) for role in sorted(called))
    return {role: worker.not_auditable for role, worker in found if worker and worker.not_auditable}


def notes_on_money(sitting: Sitting, totals: SystemTotals) -> list[str]:
    """Return footnotes: prices that are not of their book's day, hardware, graders, open ends."""
    book = book_from_json(sitting.facts.prices)
    notes = [f"not auditable: {role} ({why})" for role, why in not_auditable(sitting).items()]
    carried = [one for one in _evidence(sitting, book).split("; ") if one.endswith("carried-back")]
    if carried:
        who = ", ".join(one.partition(":")[0] for one in carried)
        notes.append(
            f"prices carried back to {book.date} (a later price, assumed to have held): {who}"
        )
    if (seconds := totals.conductor_s) is not None and sitting.facts.label == "live":
        notes.append(f"its conductor ran on the machine that asked, {seconds:.3f} s per query")
    if (gpu := _each(_gpu(sitting, book), totals.n_graded)) is not None:
        notes.append(f"on own hardware USD {usd(gpu)} per query, where a price says so")
    if scoring := _each(_scoring(sitting), totals.n_graded):
        notes.append(f"grading by models, in no column: USD {usd(scoring)} per query at list price")
    if unknown := totals.paid.unknown:
        notes.append(f"calls that were sent and never ended: {unknown}, billed or not is unknown")
    return notes


def dollars(value: Decimal | None, unpriced: int, auditable: bool = True) -> str:
    """Return dollars per query; what lacks a price is no number, and says how many calls do."""
    if value is None and not auditable:
        return "not auditable"
    return f"—({unpriced} unpriced)" if value is None and unpriced else usd(value)


def paid_cell(
    low: Decimal | None, high: Decimal | None, unpriced: int, auditable: bool = True
) -> str:
    """Return what was paid: one number, a range, or a number from which on it is.

    >>> paid_cell(Decimal("0.0123"), Decimal("0.015"), 0)
    '0.0123–0.0150'
    """
    if low is None or (high is None and unpriced):
        return dollars(None, unpriced, auditable)
    if high is None:
        return f"{usd(low)}–?"
    return usd(low) if low == high else f"{usd(low)}–{usd(high)}"
