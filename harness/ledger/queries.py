"""The ledger's `queries` table: one row per question, epoch and system, summed from its calls."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from podium.harness.ledger.answers import AnswerRecord, LogHeader, Verdict
from podium.harness.ledger.call import Call, Scope, Usd
from podium.harness.ledger.runs import Gathered
from podium.harness.ledger.served import queries_of
from podium.harness.ledger.totals import CallSum, add_up, last_attempts, sums_by
from podium.harness.pool_config import REPLAYING
from podium.harness.records import CONDUCTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One question to one system in one epoch, as a row; schema.md describes each column."""

    task: str
    suite: str
    system: str
    purpose: str
    label: str
    question: str
    epoch: int
    sample: str | None
    verdict: Verdict
    score: float | None
    reason: str
    parsed: bool
    answer: str | None
    target: str | None
    calls: int
    attempts: int
    retries: int
    failed: int
    cached_calls: int
    discarded_calls: int
    steps: int | None
    depth: int | None
    stopped: str | None
    conductor_in: int | None
    conductor_out: int | None
    worker_in: int | None
    worker_out: int | None
    reasoning: int | None
    cache_read: int | None
    cache_write: int | None
    orchestration: int | None
    grader_calls: int
    grader_in: int | None
    grader_out: int | None
    usd: Usd
    usd_list: Usd
    usd_low: Usd
    usd_high: Usd
    usd_scoring: Usd
    usd_discarded: Usd
    n_unpriced: int
    n_unknown: int
    gpu_s: Decimal | None
    usd_gpu: Usd
    latency_s: float | None
    critical_path_s: float | None
    started: str | None
    plan: str | None
    plan_sha256: str | None
    logs: str
    journals: str
    too_long: bool
    elapsed_s: float | None


NO_ANSWER = "no log has an answer: the run was stopped before it came"

ANSWERING: tuple[Scope, ...] = ("inference", "serving")
"""Scopes of calls that produce an answer; a query has calls of only one of the two."""
OF_QUERIES = (*ANSWERING, "scoring", "environment")

Pair = tuple[str, str, str, int]


def query_rows(rows: Iterable[Call], answers: Iterable[AnswerRecord]) -> list[QueryRow]:
    """Return one row per query, sorted by suite, system, epoch; a query's last answer counts."""
    # Calls without a question (training) belong to no query.
    newest = {_pair(answer.header, answer): answer for answer in answers}
    groups: dict[Pair, list[Call]] = {pair: [] for pair in newest}
    for row in rows:
        if row.question and row.scope in OF_QUERIES:
            groups.setdefault(_pair(row, row), []).append(row)
    order = sorted(groups, key=lambda pair: (pair[0], pair[1], pair[3], pair[2]))
    return [query_row(groups[pair], newest.get(pair)) for pair in order]


def answers_of(ledger: Gathered) -> list[AnswerRecord]:
    """Return the answers in a run's logs, oldest log first, then those of served requests."""
    logged = (answer for log in reversed(ledger.logs) for answer in log.answers)
    return [*logged, *(query.answer for query in queries_of(ledger, ()))]


def query_row(rows: Sequence[Call], answer: AnswerRecord | None) -> QueryRow:
    """Return a query's row from its calls and the answer in its newest log (None: no answer)."""
    solving, scoring, discarded = parted(rows, answer)
    replayed = any(
        row.usage_source == "recorded" or row.model.startswith(f"{REPLAYING}/") for row in solving
    )
    timed = None if replayed else answer
    columns: dict[str, Any] = {
        **{name: getattr(answer, name) if answer else UNANSWERED.get(name) for name in SAID},
        **(_identity(answer.header, answer) if answer else _identity(rows[0], rows[0])),
        **_figures(solving, scoring, discarded),
        **dict.fromkeys(("elapsed_s", "latency_s"), timed.latency_s if timed else None),
        "critical_path_s": timed.critical_path_s if timed else None,
        "started": min((row.started for row in solving), default=None),
        "logs": _names(row.log for row in rows),
        "journals": _names(row.journal for row in rows),
    }
    return QueryRow(**columns)


UNANSWERED: Mapping[str, Any] = {
    "reason": NO_ANSWER,
    "parsed": True,
    "verdict": "unscored",
    "too_long": False,
}
SAID = (
    *("sample", "score", "answer", "target", "steps", "depth", "stopped", "plan", "plan_sha256"),
    *UNANSWERED,
)
"""Columns copied from a query's answer record. Without a record, they have the default in
`UNANSWERED`, else None."""


def parted(
    rows: Sequence[Call], answer: AnswerRecord | None
) -> tuple[list[Call], list[Call], list[Call]]:
    """Return three lists of a query's calls: for its answer, for grading, and discarded ones."""
    # The answer's calls are those of the graded attempt, else of the newest sample.
    answering = [row for row in rows if row.scope in ANSWERING]
    solving = [row for row in answering if row.counted] if answer else answering
    if answer and not solving:
        solving = [row for row in answering if row.sample == answer.sample]
    solving_ids = {id(row) for row in solving}
    scoring = [row for row in rows if row.scope == "scoring"]
    return solving, scoring, [row for row in answering if id(row) not in solving_ids]


def _pair(of: LogHeader | Call, query: AnswerRecord | Call) -> Pair:
    return of.suite, of.system, query.question, query.epoch


def _identity(of: LogHeader | Call, query: AnswerRecord | Call) -> Mapping[str, Any]:
    # Without a log, the task's name gives the run's purpose (harness/run/lessons.py).
    choosing = of.task.endswith("(selection)")
    return {
        **{name: getattr(of, name) for name in ("task", "suite", "system", "label")},
        "purpose": getattr(of, "purpose", "selection" if choosing else "eval"),
        "question": query.question,
        "epoch": query.epoch,
    }


def _calls(rows: Iterable[Call]) -> int:
    return len({row.call for row in rows})


def _figures(
    solving: Sequence[Call], scoring: Sequence[Call], discarded: Sequence[Call]
) -> Mapping[str, Any]:
    """Return a query's counts, tokens, list dollars by call, and paid dollars by HTTP attempt."""
    by_planning = sums_by(last_attempts(solving), lambda row: row.role == CONDUCTOR)
    workers, conductor = (by_planning.get(plans, CallSum()) for plans in (False, True))
    once, every = workers.plus(conductor), add_up(solving)
    graders, paid, calls = add_up(last_attempts(scoring)), every.paid, _calls(solving)
    return {
        "calls": calls,
        "attempts": len(solving),
        "retries": len(solving) - calls,
        "cached_calls": _calls(row for row in solving if row.cache == "read"),
        "discarded_calls": _calls(discarded),
        "grader_calls": _calls(scoring),
        "conductor_in": conductor.tokens_in,
        "conductor_out": conductor.tokens_out,
        "worker_in": workers.tokens_in,
        "worker_out": workers.tokens_out,
        "reasoning": once.tokens_reasoning,
        "cache_read": None if once.untold else once.cache_read,
        "cache_write": None if once.untold else once.cache_write,
        "orchestration": None if once.untold else once.orchestration,
        "grader_in": graders.tokens_in,
        "grader_out": graders.tokens_out,
        "usd": every.billed,
        "usd_list": once.listed,
        "usd_low": None if paid.unpriced else paid.low,
        "usd_high": paid.high,
        "usd_scoring": add_up(scoring).billed,
        "usd_discarded": add_up(discarded).billed,
        "gpu_s": every.gpu_s if every.on_gpu else None,
        "usd_gpu": every.usd_gpu if every.on_gpu else None,
        "failed": every.failed,
        "n_unpriced": once.unlisted,
        "n_unknown": every.unknown,
    }


def _names(files: Iterable[str | None]) -> str:
    return json.dumps(sorted({name for name in files if name}), ensure_ascii=False)
