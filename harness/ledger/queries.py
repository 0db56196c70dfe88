"""The reviewers' view: one flat row per (system, question, epoch), added up from ledger rows.

Figures of an answer are those of the attempt that was graded, so that systems can be compared; what
attempts that were discarded cost stands apart, and so does what grading cost. Unknown is None and
stays None: a question with one unpriced call has no dollars. One query in full is details.py.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.ledger.answered import Answered, Exam
from harness.ledger.plans import critical_path
from harness.ledger.query_row import QueryRow
from harness.ledger.row import LedgerRow
from harness.pool_file import REPLAYING
from harness.prices.pricing import known_sum
from harness.records import CONDUCTOR

NO_ANSWER = "no log has an answer: the run was stopped before it was there"

Pair = tuple[str, str, str, int]
"""Suite, system, question, epoch."""


def query_rows(rows: Iterable[LedgerRow], answers: Iterable[Answered]) -> list[QueryRow]:
    """Return the queries of one sitting, sorted; `answers` may name a pair again: the last counts.

    Rows outside a question (training, serving) belong to no query.
    """
    last = {_pair(one.exam, one): one for one in answers}
    groups: dict[Pair, list[LedgerRow]] = {pair: [] for pair in last}
    for row in rows:
        if row.question and row.scope in ("inference", "scoring"):
            groups.setdefault(_pair(row, row), []).append(row)
    order = sorted(groups, key=lambda pair: (pair[0], pair[1], pair[3], pair[2]))
    return [query_row(groups[pair], last.get(pair)) for pair in order]


def query_row(rows: Sequence[LedgerRow], answer: Answered | None) -> QueryRow:
    """Add up one question's rows, beside what its log says of it; one of the two must be there."""
    solving = answering(rows, answer)
    kept = {id(row) for row in solving}
    scoring = [row for row in rows if row.scope == "scoring"]
    discarded = [row for row in rows if row.scope == "inference" and id(row) not in kept]
    parts: dict[str, Any] = {
        **_answer(answer),
        **(_identity(answer.exam, answer) if answer else _identity(rows[0], rows[0])),
        **_counts(solving, scoring, discarded),
        **_tokens(last_attempts(solving), last_attempts(scoring)),
        **_money(solving, scoring, discarded),
        **_times(solving, answer),
        "logs": _names(row.log for row in rows),
        "journals": _names(row.journal for row in rows),
    }
    return QueryRow(**parts)


def answering(rows: Sequence[LedgerRow], answer: Answered | None) -> list[LedgerRow]:
    """Return the calls that made the answer: of the graded attempt, else of the newest sample."""
    solving = [row for row in rows if row.scope == "inference"]
    if answer is None:
        return solving
    counted = [row for row in solving if row.counted]
    return counted or [row for row in solving if row.sample == answer.sample]


def last_attempts(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return each call once, by its last attempt: what was asked, whatever failed on the way.

    Failures of a provider depend on its day, like its caches, so a comparison cannot count on them;
    what they may have cost is in the bounds of what was billed.
    """
    last: dict[str, LedgerRow] = {}
    for row in rows:
        if row.call not in last or row.attempt > last[row.call].attempt:
            last[row.call] = row
    return list(last.values())


def tokens_sum(rows: Iterable[LedgerRow], count: Callable[[LedgerRow], int | None]) -> int | None:
    """Return a sum of tokens; None when a call that may have used some does not say.

    What was refused without a count has used none.
    """
    total = 0
    for row in rows:
        found = count(row)
        if found is None:
            if row.usage_source == "missing" and row.billable == "no":
                continue
            return None
        total += found
    return total


def orchestrated(row: LedgerRow) -> int | None:
    """Return the tokens that a product spent on models of its own, in and out."""
    if row.orchestration_in is None or row.orchestration_out is None:
        return None
    return row.orchestration_in + row.orchestration_out


def _pair(exam: Exam | LedgerRow, asked: Answered | LedgerRow) -> Pair:
    return exam.suite, exam.system, asked.question, asked.epoch


def _identity(exam: Exam | LedgerRow, asked: Answered | LedgerRow) -> Mapping[str, Any]:
    return {
        **{name: getattr(exam, name) for name in ("task", "suite", "system", "label")},
        "purpose": exam.purpose if isinstance(exam, Exam) else _purpose(exam.task),
        "question": asked.question,
        "epoch": asked.epoch,
    }


def _purpose(task: str) -> str:
    """Return what a sitting without a log was for: its name says so (harness/selection.py)."""
    return "selection" if task.endswith("(selection)") else "eval"


def _answer(answer: Answered | None) -> Mapping[str, Any]:
    names = ("sample", "score", "answer", "target", "steps", "depth", "stopped", "plan")
    more = ("plan_sha256", "reason", "parsed", "verdict")
    if answer is None:
        nothing = dict.fromkeys((*names, "plan_sha256"))
        return {**nothing, "reason": NO_ANSWER, "parsed": True, "verdict": "unscored"}
    return {name: getattr(answer, name) for name in (*names, *more)}


def _counts(
    solving: Sequence[LedgerRow], scoring: Sequence[LedgerRow], discarded: Sequence[LedgerRow]
) -> Mapping[str, Any]:
    calls = _calls(solving)
    return {
        "calls": calls,
        "attempts": len(solving),
        "retries": len(solving) - calls,
        "failed": sum(row.error is not None for row in solving),
        "cached_calls": _calls(row for row in solving if row.cache == "read"),
        "discarded_calls": _calls(discarded),
        "grader_calls": _calls(scoring),
        "n_unpriced": sum(row.usd_list is None for row in last_attempts(solving)),
        "n_unknown": sum(row.billable == "unknown" for row in solving),
    }


def _calls(rows: Iterable[LedgerRow]) -> int:
    return len({row.call for row in rows})


def _tokens(solving: Sequence[LedgerRow], scoring: Sequence[LedgerRow]) -> Mapping[str, Any]:
    conductor = [row for row in solving if row.role == CONDUCTOR]
    workers = [row for row in solving if row.role != CONDUCTOR]
    return {
        "conductor_in": tokens_sum(conductor, lambda row: row.input_total),
        "conductor_out": tokens_sum(conductor, lambda row: row.output),
        "worker_in": tokens_sum(workers, lambda row: row.input_total),
        "worker_out": tokens_sum(workers, lambda row: row.output),
        "reasoning": tokens_sum(solving, lambda row: row.reasoning),
        "cache_read": tokens_sum(solving, lambda row: row.cache_read),
        "cache_write": tokens_sum(solving, lambda row: row.cache_write),
        "orchestration": tokens_sum(solving, orchestrated),
        "grader_in": tokens_sum(scoring, lambda row: row.input_total),
        "grader_out": tokens_sum(scoring, lambda row: row.output),
    }


def _money(
    solving: Sequence[LedgerRow], scoring: Sequence[LedgerRow], discarded: Sequence[LedgerRow]
) -> Mapping[str, Any]:
    served = [row for row in solving if row.gpu_s is not None]
    return {
        "usd": known_sum(row.usd for row in solving),
        "usd_list": known_sum(row.usd_list for row in last_attempts(solving)),
        "usd_low": known_sum(row.usd_low for row in solving),
        "usd_high": known_sum(row.usd_high for row in solving),
        "usd_scoring": known_sum(row.usd for row in scoring),
        "usd_discarded": known_sum(row.usd for row in discarded),
        "gpu_s": known_sum(row.gpu_s for row in served) if served else None,
        "usd_gpu": known_sum(row.usd_gpu for row in served) if served else None,
    }


def _times(solving: Sequence[LedgerRow], answer: Answered | None) -> Mapping[str, Any]:
    replayed = any(
        row.usage_source == "recorded" or row.model.startswith(f"{REPLAYING}/") for row in solving
    )
    timed = answer is not None and not replayed
    return {
        "latency_s": answer.latency_s if answer and timed else None,
        "critical_path_s": critical_path(solving, answer.plan) if answer and timed else None,
        "started": min((row.started for row in solving), default=None),
    }


def _names(found: Iterable[str | None]) -> str:
    return json.dumps(sorted({name for name in found if name}), ensure_ascii=False)
