"""One query in full, as text: what `podium audit DIR --query ID` prints."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from harness.ledger.details import QueryDetail, StepDetail, Wanted, details
from harness.ledger.formats import shortest
from harness.ledger.plans import SECRET
from harness.ledger.query_row import QueryRow
from harness.ledger.row import LedgerRow

MARK = {"right": "✓", "wrong": "✗", "partly": "~", "unscored": "?"}
UNKNOWN = "unknown"
PAID = {"live": "", "": " (podium did not run it: nobody wrote down whether it was paid)"}
"""What is said of what was billed, by label; nothing was paid of the other labels."""


def query_text(folder: Path, wanted: Wanted) -> str:
    """Return every query that fits, a block each; UserError with near matches when none does."""
    return "\n\n".join(detail_text(one) for one in details(folder, wanted))


def detail_text(detail: QueryDetail) -> str:
    """Return one query as lines of text, free of control characters."""
    lines = [
        *_head(detail.row),
        *_section("conductor", detail.conductor, detail),
        *_section("workflow", detail.steps, detail),
    ]
    for title, rows in (
        ("graders (scoring, in no figure above)", detail.graders),
        ("not graded (in no figure above)", detail.discarded),
    ):
        if rows:
            lines += [f"  {title}", *(f"    {line}" for row in rows for line in _call(row, ""))]
    lines += _verdict(detail.row)
    return "\n".join(_printable(line) for line in lines)


def _head(row: QueryRow) -> Iterator[str]:
    purpose = "" if row.purpose == "eval" else f", {row.purpose}"
    name, system = f"{row.suite or 'no suite'}/{row.question}", row.system or "no system"
    yield f"{name}, epoch {row.epoch}: {system} ({row.label or 'unlabelled'}{purpose})"
    more = ((row.retries, "retries"), (row.failed, "failed attempts"))
    more = (*more, (row.cached_calls, "from the local cache"))
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
    yield f"  list price {_usd(row.usd_list)}{unpriced}; billed {_billed(row)}{paid}"
    if row.grader_calls:
        yield f"  scoring {_usd(row.usd_scoring)} in {row.grader_calls} calls"
    if row.discarded_calls:
        yield f"  not graded {_usd(row.usd_discarded)} in {row.discarded_calls} calls"
    if row.gpu_s is not None:
        yield f"  own hardware {shortest(row.gpu_s)} GPU s, {_usd(row.usd_gpu)}"
    yield f"  latency {_seconds(row.latency_s)}, critical path {_seconds(row.critical_path_s)}"


def _billed(row: QueryRow) -> str:
    if not row.n_unknown:
        return _usd(row.usd)
    bounds = f"between {_usd(row.usd_low)} and {_usd(row.usd_high)}"
    return f"{bounds} (nobody knows of {_attempts(row.n_unknown)})"


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"


def _section(title: str, steps: tuple[StepDetail, ...], detail: QueryDetail) -> Iterator[str]:
    if steps:
        yield f"  {title}"
    for step in steps:
        reads = f", reads {', '.join(map(str, step.reads))}" if step.reads else ""
        yield f"    {step.name}{reads}" + ("" if step.rows else ": not run")
        if step.step and step.step.subtask:
            yield f"      subtask: {step.step.subtask}"
        for row in step.rows:
            reply = detail.replies.get(row.event or "", "")
            yield from (f"      {line}" for line in _call(row, reply))


def _call(row: LedgerRow, reply: str) -> Iterator[str]:
    tokens = (
        f"{_or(row.input_total)} in, {_or(row.output)} out, reasoning {_or(row.reasoning)}, "
        f"cached {_or(row.cache_read)}"
    )
    if row.orchestration_in or row.orchestration_out:
        tokens += f", orchestration {_or(row.orchestration_in)} in {_or(row.orchestration_out)} out"
    ended = f"{row.error} ({_or(row.http_status)})" if row.error else row.stop or UNKNOWN
    yield f"{row.role} attempt {row.attempt}: {row.model}, {ended}, {_seconds(row.latency_s)}"
    cache = ", from the local cache" if row.cache == "read" else ""
    yield f"  {tokens}; list {_usd(row.usd_list)}, billed {_attempt_usd(row)}{cache}"
    ids = (("call", row.call), ("request", row.request_id), ("event", row.event))
    yield "  " + ", ".join(f"{name} {one}" for name, one in ids if one)
    if reply:
        yield f"  reply: {reply}"
    elif row.output_sha256:
        yield f"  reply sha256 {row.output_sha256}"


def _attempt_usd(row: LedgerRow) -> str:
    if row.billable == "unknown":
        return f"between {_usd(row.usd_low)} and {_usd(row.usd_high)}"
    return _usd(row.usd)


def _verdict(row: QueryRow) -> Iterator[str]:
    said = f": {row.reason}" if row.reason else ""
    score = "" if row.score is None else f" {row.score:g}"
    yield f"  verdict {MARK[row.verdict]} {row.verdict}{score}{said}"
    answer = (
        row.answer if row.answer is not None else "none found" if row.score is not None else "-"
    )
    yield f"    answer {answer}; target {row.target if row.target is not None else '-'}"
    if row.plan is not None and not row.plan.startswith("["):
        yield f"    plan {row.plan}"
    if row.target == SECRET:
        yield "    texts are withheld, this exam may not be published"
        yield f"    plan sha256 {_or(row.plan_sha256)}"
    yield f"    logs {row.logs}, journals {row.journals}"


def _or(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _usd(value: Decimal | None) -> str:
    return UNKNOWN if value is None else f"${shortest(value)}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f} s"


def _printable(line: str) -> str:
    return "".join(one if one.isprintable() else " " for one in line)
