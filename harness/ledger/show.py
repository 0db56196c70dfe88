"""One question: its row for reviewers, added up from its calls, and all of it in full.

Figures of an answer are those of the attempt that was graded; what discarded attempts and grading
cost stands apart. Texts of suites that may not be published are withheld, their digests shown.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.ledger.call import Call, Usd, shortest
from harness.ledger.join import merged
from harness.ledger.logs import NOTHING, Json, attached, open_log
from harness.ledger.runs import (
    SECRET,
    AnswerRecord,
    Gathered,
    LogHeader,
    RunFiles,
    Verdict,
    gather,
    log_header,
    naming_system_run,
    system_runs_below,
    workflow_of,
)
from harness.ledger.totals import CallSum, add_up, last_attempts, sums_by
from harness.pool_config import REPLAYING
from harness.records import CONDUCTOR
from harness.text import pluralise
from harness.workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One question put to one system; schema.md says what each column means."""

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


STEP = re.compile(r"step (\d+)\b")
"""Beginning of a step's name, e.g. `step 2: sage` (harness/execute.py)."""
NO_ANSWER = "no log has an answer: the run was stopped before it was there"

Pair = tuple[str, str, str, int]


def query_rows(rows: Iterable[Call], answers: Iterable[AnswerRecord]) -> list[QueryRow]:
    """Return the queries of one run, sorted; `answers` may name a pair again: the last counts."""
    # Rows outside a question (training, serving) belong to no query.
    last = {_pair(one.header, one): one for one in answers}
    groups: dict[Pair, list[Call]] = {pair: [] for pair in last}
    for row in rows:
        if row.question and row.scope in ("inference", "scoring"):
            groups.setdefault(_pair(row, row), []).append(row)
    order = sorted(groups, key=lambda pair: (pair[0], pair[1], pair[3], pair[2]))
    return [_query_row(groups[pair], last.get(pair)) for pair in order]


def answers_of(found: Gathered) -> list[AnswerRecord]:
    """Return what was gathered of each answer, oldest log first: of a pair the last one counts."""
    return [one for log in reversed(found.logs) for one in log.answers]


def _query_row(rows: Sequence[Call], answer: AnswerRecord | None) -> QueryRow:
    solving, scoring, discarded = _parted(rows, answer)
    replayed = any(
        row.usage_source == "recorded" or row.model.startswith(f"{REPLAYING}/") for row in solving
    )
    timed = None if replayed else answer
    parts: dict[str, Any] = {
        **{name: getattr(answer, name) if answer else UNANSWERED.get(name) for name in SAID},
        **(_identity(answer.header, answer) if answer else _identity(rows[0], rows[0])),
        **_figures(solving, scoring, discarded),
        "latency_s": timed.latency_s if timed else None,
        "critical_path_s": timed.critical_path_s if timed else None,
        "started": min((row.started for row in solving), default=None),
        "logs": _names(row.log for row in rows),
        "journals": _names(row.journal for row in rows),
    }
    return QueryRow(**parts)


UNANSWERED: Mapping[str, Any] = {"reason": NO_ANSWER, "parsed": True, "verdict": "unscored"}
SAID = (
    *("sample", "score", "answer", "target", "steps", "depth", "stopped", "plan", "plan_sha256"),
    *UNANSWERED,
)
"""What a row has of its answer; what stands there without one is in `UNANSWERED`, or None."""


def _parted(
    rows: Sequence[Call], answer: AnswerRecord | None
) -> tuple[list[Call], list[Call], list[Call]]:
    """Return the calls that made the answer, those that graded it, and those of other attempts."""
    # The answer's are those of the graded attempt, else of the newest sample.
    asked = [row for row in rows if row.scope == "inference"]
    solving = [row for row in asked if row.counted] if answer else asked
    if answer and not solving:
        solving = [row for row in asked if row.sample == answer.sample]
    kept = {id(row) for row in solving}
    scoring = [row for row in rows if row.scope == "scoring"]
    return solving, scoring, [row for row in asked if id(row) not in kept]


def _pair(of: LogHeader | Call, asked: AnswerRecord | Call) -> Pair:
    return of.suite, of.system, asked.question, asked.epoch


def _identity(of: LogHeader | Call, asked: AnswerRecord | Call) -> Mapping[str, Any]:
    # What a run without a log was for, its task's name says (harness/run/lessons.py).
    choosing = of.task.endswith("(selection)")
    return {
        **{name: getattr(of, name) for name in ("task", "suite", "system", "label")},
        "purpose": getattr(of, "purpose", "selection" if choosing else "eval"),
        "question": asked.question,
        "epoch": asked.epoch,
    }


def _calls(rows: Iterable[Call]) -> int:
    return len({row.call for row in rows})


def _figures(
    solving: Sequence[Call], scoring: Sequence[Call], discarded: Sequence[Call]
) -> Mapping[str, Any]:
    """Return counts, tokens and list prices of each call once, and dollars of every attempt."""
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


def _names(found: Iterable[str | None]) -> str:
    return json.dumps(sorted({name for name in found if name}), ensure_ascii=False)


def step_number(row: Call) -> int | None:
    """Return the step (1 for the first) that a call was made for; None for the conductor's."""
    found = STEP.match(row.step or "")
    return int(found.group(1)) if found else None


Known = dict[str, set[tuple[str, str]]]
"""Who was asked each question: suites and systems."""
WHO = 3
FIRST = 100


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Which queries are asked for; None is all of them."""

    question: str
    """An id, or a suite and an id: `aime25/aime25-I-1`."""
    system: str | None = None
    epoch: int | None = None

    def fits(self, suite: str, question: str) -> bool:
        """Say whether a question is meant."""
        return self.question in (question, f"{suite}/{question}")


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One step of the workflow, or a call outside it."""

    name: str
    rows: tuple[Call, ...]
    subtask: str = ""
    reads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query in full."""

    row: QueryRow
    conductor: tuple[StepDetail, ...]
    steps: tuple[StepDetail, ...]
    graders: tuple[Call, ...]
    discarded: tuple[Call, ...]
    replies: Mapping[str, str]
    """First words of each reply, by event, `…` where cut; empty where texts are withheld."""


def details(folder: Path, wanted: QuestionFilter) -> list[QueryDetail]:
    """Return the queries that fit, sorted; UserError with near matches when there is none."""
    known: Known = {}
    found: list[QueryDetail] = []
    for files in system_runs_below(folder):
        found.extend(_of_system_run(files, wanted, known))
    if not found:
        raise UserError(_unknown(wanted, known))
    return sorted(found, key=lambda one: (one.row.suite, one.row.question, one.row.system))


def _of_system_run(files: RunFiles, wanted: QuestionFilter, known: Known) -> Iterator[QueryDetail]:
    here = not files.logs
    for path in files.logs:
        with open_log(path) as log:
            dataset: Json = log.header["eval"].get("dataset") or {}
            header = log_header(log.header)
        for one in map(str, dataset.get("sample_ids") or ()):
            known.setdefault(one, set()).add((header.suite, header.system))
            here = here or wanted.fits(header.suite, one)
    if not here:
        return
    with naming_system_run(files):
        gathered = gather(files, answers=True)
        rows = merged(gathered).rows
    answers = {
        (one.question, one.epoch): one
        for one in answers_of(gathered)
        if wanted.fits(one.header.suite, one.question)
    }
    groups: dict[tuple[str, int], list[Call]] = {pair: [] for pair in answers}
    for row in rows:
        if wanted.fits(row.suite, row.question):
            groups.setdefault((row.question, row.epoch), []).append(row)
    for pair, own in sorted(groups.items()):
        found = _detail(own, answers.get(pair), files)
        if wanted.system in (None, found.row.system) and wanted.epoch in (None, pair[1]):
            yield found


def _detail(rows: Sequence[Call], answer: AnswerRecord | None, files: RunFiles) -> QueryDetail:
    solving, scoring, discarded = _parted(rows, answer)
    workers = [row for row in solving if row.role != CONDUCTOR]
    return QueryDetail(
        row=_query_row(rows, answer),
        conductor=tuple(_unplanned(row for row in solving if row.role == CONDUCTOR)),
        steps=tuple(_steps(workers, answer.plan if answer else None)),
        graders=tuple(scoring),
        discarded=tuple(discarded),
        replies=_replies(_sample_of(files, answer)) if answer and answer.header.shown else {},
    )


def _steps(rows: Sequence[Call], plan: str | None) -> Iterator[StepDetail]:
    workflow = workflow_of(plan) or Workflow(())
    steps = workflow.steps
    for at, step in enumerate(steps, 1):
        own = tuple(row for row in rows if step_number(row) == at)
        reads = tuple(read + 1 for read in workflow.reads(at - 1))
        yield StepDetail(f"step {at}: {step.worker}", own, step.subtask, reads)
    yield from _unplanned(row for row in rows if not 1 <= (step_number(row) or 0) <= len(steps))


def _unplanned(rows: Iterable[Call]) -> Iterator[StepDetail]:
    groups: dict[str, list[Call]] = {}
    for row in rows:
        groups.setdefault(row.step or row.role, []).append(row)
    yield from (StepDetail(name, tuple(own)) for name, own in groups.items())


def _sample_of(files: RunFiles, answer: AnswerRecord) -> Json:
    """Return the raw sample that an answer was read from."""
    pair = answer.question, answer.epoch
    for path in files.logs:
        with open_log(path) as log:
            found = [one for one in log.samples() if (str(one["id"]), int(one["epoch"])) == pair]
        if found:
            return found[-1]
    return NOTHING


def _replies(sample: Json) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for event in sample.get("events") or ():
        choices = (event.get("output") or NOTHING).get("choices")
        if event.get("event") == "model" and choices:
            said = _said(choices[0]["message"].get("content"), sample)
            cut = "…" if len(said) > FIRST else ""
            found[str(event.get("uuid"))] = said[:FIRST] + cut
    return found


def _said(content: object, sample: Json) -> str:
    if isinstance(content, str):
        return attached(content, sample)
    parts = cast(list[Json], content) if isinstance(content, list) else []
    texts = (str(part.get("text") or "") for part in parts)
    return " ".join(attached(text, sample) for text in texts if text)


def _unknown(wanted: QuestionFilter, known: Known) -> str:
    name = wanted.question if wanted.question in known else wanted.question.rpartition("/")[2]
    near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if not known:
        return f"No log here has a question {wanted.question!r}; name the directory of its run."
    if name in known:
        sat = sorted(known[name])
        who = ", ".join(f"{suite}/{name} by {system}" for suite, system in sat[:WHO])
        more = f" and {len(sat) - WHO} more" if len(sat) > WHO else ""
        return f"Nobody was asked {_wanted(wanted)}; here is {who}{more}."
    said = f"near: {', '.join(near)}" if near else f"for example {min(known)}"
    return f"There is no question {wanted.question!r} here ({said})."


def _wanted(wanted: QuestionFilter) -> str:
    system = f" by {wanted.system}" if wanted.system else ""
    epoch = "" if wanted.epoch is None else f" in epoch {wanted.epoch}"
    return f"{wanted.question!r}{system}{epoch}"


MARK = {"right": "✓", "wrong": "✗", "partly": "~", "unscored": "?"}
UNKNOWN = "unknown"
PAID = {"live": "", "": " (podium did not run it: nobody wrote down whether it was paid)"}
"""What is said of what was billed, by label; nothing was paid of the other labels."""


def query_text(folder: Path, wanted: QuestionFilter) -> str:
    """Return every query that fits, a block each; UserError with near matches when none does."""
    return "\n\n".join(map(_detail_text, details(folder, wanted)))


def _detail_text(detail: QueryDetail) -> str:
    lines = [
        *_head(detail.row),
        *_section("conductor", detail.conductor, detail),
        *_section("workflow", detail.steps, detail),
    ]
    apart = {"graders (scoring, in no": detail.graders, "not graded (in no": detail.discarded}
    for title, rows in apart.items():
        if rows:
            lines.append(f"  {title} figure above)")
            lines += [f"    {line}" for row in rows for line in _call(row, "")]
    lines += _verdict(detail.row)
    return "\n".join("".join(one if one.isprintable() else " " for one in line) for line in lines)


def _head(row: QueryRow) -> Iterator[str]:
    purpose = "" if row.purpose == "eval" else f", {row.purpose}"
    name, system = f"{row.suite or 'no suite'}/{row.question}", row.system or "no system"
    yield f"{name}, epoch {row.epoch}: {system} ({row.label or 'unlabelled'}{purpose})"
    more = [(row.retries, "retries"), (row.failed, "failed attempts")]
    more.append((row.cached_calls, "from the local cache"))
    said = "".join(f", {count} {name}" for count, name in more if count)
    yield f"  calls {row.calls}{said}; steps {_or(row.steps)}, depth {_or(row.depth)}"
    if row.stopped:
        yield f"  stopped by its budget of {row.stopped}"
    yield (
        f"  tokens conductor {_or(row.conductor_in)} in, {_or(row.conductor_out)} out; workers "
        f"{_or(row.worker_in)} in, {_or(row.worker_out)} out; reasoning {_or(row.reasoning)}; "
        f"cached {_or(row.cache_read)}; orchestration {_or(row.orchestration)}"
    )
    unpriced = f" ({row.n_unpriced} without a price)" if row.n_unpriced else ""
    paid = PAID.get(row.label, " (would be; nothing was paid)")
    unknown = f"{_bounds(row)} (nobody knows of {pluralise(row.n_unknown, 'attempt')})"
    billed = unknown if row.n_unknown else _usd(row.usd)
    yield f"  list price {_usd(row.usd_list)}{unpriced}; billed {billed}{paid}"
    if row.grader_calls:
        yield f"  scoring {_usd(row.usd_scoring)} in {row.grader_calls} calls"
    if row.discarded_calls:
        yield f"  not graded {_usd(row.usd_discarded)} in {row.discarded_calls} calls"
    if row.gpu_s is not None:
        yield f"  own hardware {shortest(row.gpu_s)} GPU s, {_usd(row.usd_gpu)}"
    yield f"  latency {_seconds(row.latency_s)}, critical path {_seconds(row.critical_path_s)}"


def _bounds(row: QueryRow | Call) -> str:
    return f"between {_usd(row.usd_low)} and {_usd(row.usd_high)}"


def _section(title: str, steps: tuple[StepDetail, ...], detail: QueryDetail) -> Iterator[str]:
    if steps:
        yield f"  {title}"
    for step in steps:
        reads = f", reads {', '.join(map(str, step.reads))}" if step.reads else ""
        yield f"    {step.name}{reads}" + ("" if step.rows else ": not run")
        if step.subtask:
            yield f"      subtask: {step.subtask}"
        for row in step.rows:
            reply = detail.replies.get(row.event or "", "")
            yield from (f"      {line}" for line in _call(row, reply))


def _call(row: Call, reply: str) -> Iterator[str]:
    tokens = (
        f"{_or(row.input_total)} in, {_or(row.output)} out, reasoning {_or(row.reasoning)}, "
        f"cached {_or(row.cache_read)}"
    )
    if row.orchestration_in or row.orchestration_out:
        tokens += f", orchestration {_or(row.orchestration_in)} in {_or(row.orchestration_out)} out"
    ended = f"{row.error} ({_or(row.http_status)})" if row.error else row.stop or UNKNOWN
    yield f"{row.role} attempt {row.attempt}: {row.model}, {ended}, {_seconds(row.latency_s)}"
    cache = ", from the local cache" if row.cache == "read" else ""
    billed = _bounds(row) if row.billable == "unknown" else _usd(row.usd)
    yield f"  {tokens}; list {_usd(row.usd_list)}, billed {billed}{cache}"
    ids = (("call", row.call), ("request", row.request_id), ("event", row.event))
    yield "  " + ", ".join(f"{name} {one}" for name, one in ids if one)
    if reply:
        yield f"  reply: {reply}"
    elif row.output_sha256:
        yield f"  reply sha256 {row.output_sha256}"


def _verdict(row: QueryRow) -> Iterator[str]:
    said = f": {row.reason}" if row.reason else ""
    score = "" if row.score is None else f" {row.score:g}"
    yield f"  verdict {MARK[row.verdict]} {row.verdict}{score}{said}"
    missing = "-" if row.score is None else "none found"
    answer, target = row.answer, "-" if row.target is None else row.target
    yield f"    answer {missing if answer is None else answer}; target {target}"
    if row.plan is not None and not row.plan.startswith("["):
        yield f"    plan {row.plan}"
    if row.target == SECRET:
        yield "    texts are withheld, this suite may not be published"
        yield f"    plan sha256 {_or(row.plan_sha256)}"
    yield f"    logs {row.logs}, journals {row.journals}"


def _or(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _usd(value: Decimal | None) -> str:
    return UNKNOWN if value is None else f"${shortest(value)}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f} s"
