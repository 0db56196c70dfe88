"""Totals of a ledger: what a question cost, and what a system costs per question.

Two kinds of dollars, never mixed. *Would-be*: the calls of the graded attempts at the price book in
the log, cache reads included, so that systems can be compared. *Paid*: the calls of all attempts
that a provider billed; nothing for recorded and rehearsal workers. Calls that grade are in neither.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.ledger import Attempt
from harness.pool_file import REPLAYING, Label
from harness.records import CONDUCTOR, Call
from harness.sittings import Sitting


@dataclass(frozen=True, slots=True)
class QueryTotals:
    """One (question, epoch) pair. A field is None when one of its parts is unknown."""

    question: str
    epoch: int
    value: float | None
    calls: int
    tokens_in: int | None
    """Cached input included."""
    tokens_out: int | None
    tokens_reasoning: int | None
    """Part of `tokens_out`."""
    worker_tokens_out: int | None
    """Output of workers alone: the token count of the Conductor paper (reference for Table 6)."""
    conductor_tokens: int | None
    """Input and output of the model that plans."""
    usd: Decimal | None
    steps: int | None
    depth: int | None
    latency_s: float | None


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


def query_totals(attempt: Attempt) -> QueryTotals:
    """Add up the calls that answered one question."""
    calls = [call for call in attempt.calls if call.phase == "solve"]
    workers = [call for call in calls if call.role != CONDUCTOR]
    conductor = [call for call in calls if call.role == CONDUCTOR]
    return QueryTotals(
        question=attempt.question,
        epoch=attempt.epoch,
        value=attempt.value,
        calls=len(calls),
        tokens_in=_sum(map(_tokens_in, calls)),
        tokens_out=_sum(map(_tokens_out, calls)),
        tokens_reasoning=_sum(map(_reasoning, calls)),
        worker_tokens_out=_sum(map(_tokens_out, workers)),
        conductor_tokens=_sum(
            part(call) for call in conductor for part in (_tokens_in, _tokens_out)
        ),
        usd=_sum_usd(call.usd for call in calls),
        steps=attempt.steps,
        depth=attempt.depth,
        latency_s=attempt.latency_s,
    )


def system_totals(sitting: Sitting) -> SystemTotals:
    """Average a system's queries, and add up what all its attempts have spent."""
    graded = [attempt for attempt in sitting.attempts if attempt.graded]
    rows = [query_totals(attempt) for attempt in graded]
    label, begun = sitting.facts.label, len(sitting.attempts)
    spent = paid(label, (call for call in sitting.calls if call.phase == "solve"))
    return SystemTotals(
        n_asked=sitting.asked,
        n_graded=len(graded),
        n_unparsed=sum(not attempt.parsed for attempt in graded),
        calls=_mean(rows, lambda row: row.calls),
        tokens_in=_mean(rows, lambda row: row.tokens_in),
        tokens_out=_mean(rows, lambda row: row.tokens_out),
        tokens_reasoning=_mean(rows, lambda row: row.tokens_reasoning),
        worker_tokens_out=_mean(rows, lambda row: row.worker_tokens_out),
        conductor_tokens=_mean(rows, lambda row: row.conductor_tokens),
        usd=_mean_usd(rows),
        usd_paid=spent / begun if spent is not None and begun else None,
        usd_spent=spent,
        usd_at_least=_known(label, sitting.calls),
        usd_grading=paid(label, (call for call in sitting.calls if call.phase == "score")),
        steps=_mean(rows, lambda row: row.steps),
        depth=_mean(rows, lambda row: row.depth),
        # A replayed reply comes at once: how long the real one took is not known.
        latency_s=None if _replayed(sitting) else _mean(rows, lambda row: row.latency_s),
        n_unpriced=sum(call.usd is None and call.error is None for call in sitting.calls),
        n_failed=sum(call.error is not None for call in sitting.calls),
    )


def _replayed(sitting: Sitting) -> bool:
    """Say whether replies came from a cassette; rehearsal replies may, too."""
    models = [worker.model for worker in sitting.facts.workers.values()]
    return sitting.facts.label == "recorded" or any(
        model.startswith(f"{REPLAYING}/") for model in models
    )


def paid(label: Label, calls: Iterable[Call]) -> Decimal | None:
    """Return the dollars that left a purse; None when the price of a billed call is unknown."""
    if label != "live":
        return Decimal(0)
    return _sum_usd(call.usd for call in calls if call.billable)


def _known(label: Label, calls: Iterable[Call]) -> Decimal:
    solving = [call for call in calls if call.phase == "solve" and call.usd is not None]
    return paid(label, solving) or Decimal(0)


def _tokens_in(call: Call) -> int | None:
    if call.usage is None:
        return None
    return call.usage.input + call.usage.cache_read + call.usage.cache_write


def _tokens_out(call: Call) -> int | None:
    return None if call.usage is None else call.usage.output


def _reasoning(call: Call) -> int | None:
    return None if call.usage is None else call.usage.reasoning


def _sum(parts: Iterable[int | None]) -> int | None:
    """Return the sum, None when a part is unknown."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _sum_usd(parts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _mean(
    rows: Sequence[QueryTotals], figure: Callable[[QueryTotals], float | None]
) -> float | None:
    values = [figure(row) for row in rows]
    known = [value for value in values if value is not None]
    return sum(known) / len(rows) if rows and len(known) == len(rows) else None


def _mean_usd(rows: Sequence[QueryTotals]) -> Decimal | None:
    total = _sum_usd(row.usd for row in rows)
    return total / len(rows) if rows and total is not None else None
