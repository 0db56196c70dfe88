"""System runs as logs would give them, without asking anybody: grades and dollars as one says."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.ledger.runs import RunFacts
from podium.harness.ledger.totals import CallKind, CallSum, QueryTotals, QuestionResult, SystemRun
from tests.harness.runs import facts

Grades = Mapping[str, Sequence[float | None]]


def graded(*values: float | None, epochs: int = 1) -> dict[str, list[float | None]]:
    """Return a grade for each of q1, q2, ..., the same in every epoch."""
    return {f"q{at}": [value] * epochs for at, value in enumerate(values, start=1)}


def made_run(
    system: str,
    grades: Grades,
    *,
    suite: str = "numbers",
    usd: Sequence[str | None] | str | None = "0.001",
    topics: Mapping[str, str] | None = None,
    home: str = "logs",
    **changes: Any,
) -> SystemRun:
    """Return a run with these grades; `usd` of a query is one for all, or one per question."""
    about = {"suite": suite, "suite_version": "1-A", "data_revision": "r", "dates": "2026-01"}
    about |= {"schema": 1, "publishable": True, "split": "eval"}
    each = [usd] * len(grades) if isinstance(usd, str) or usd is None else usd
    attempts = tuple(
        attempt(question, epoch, value, dollars, (topics or {}).get(question, ""))
        for (question, values), dollars in zip(grades.items(), each, strict=True)
        for epoch, value in enumerate(values, start=1)
    )
    return SystemRun(
        facts=RunFacts.model_validate({**about, **facts(system, **changes)}),
        paths=(Path(home) / f"{suite} {system}.eval",),
        asked=len(attempts),
        epochs=max(map(len, grades.values())),
        attempts=attempts,
        spend=spent(len(attempts), each),
    )


def attempt(
    question: str, epoch: int, value: float | None, usd: str | None, topic: str
) -> QuestionResult:
    totals = QueryTotals(1, 30, 10, 0, 10, 0, (usd and Decimal(usd)) or None, 1, None)
    return QuestionResult(
        question, epoch, f"{question}-{epoch}", value, "" if value is not None else "gone",
        True, "integer", topic, 1, 1, None, 0.5, totals,
    )  # fmt: skip


def spent(calls: int, usd: Sequence[str | None]) -> dict[CallKind, CallSum]:
    kind = CallKind(True, "sage", "scripted/sage", "solve", True, True)
    unlisted, listed = usd.count(None), sum((Decimal(one) for one in usd if one), Decimal(0))
    return {kind: CallSum(calls=calls, usd_list=listed, unlisted=unlisted)}
