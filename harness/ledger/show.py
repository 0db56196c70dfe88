"""Queries in full, for a terminal: figures, plan, and every prompt and reply."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from podium.harness.ledger.call import Call, shortest
from podium.harness.ledger.details import QueryDetail, QueryTexts, StepDetail
from podium.harness.ledger.queries import QueryRow
from podium.harness.ledger.served import ServedQuery, as_it_was_asked
from podium.harness.text import escape_controls, pluralise

MARK = {"right": "✓", "wrong": "✗", "partly": "~", "unscored": "?"}
UNKNOWN = "unknown"
PAID = {"live": "", "": " (podium did not run it, so whether it was paid is unknown)"}
"""Label -> note on the billed dollars; runs with other labels (e.g. rehearsal) paid nothing."""
FIRST = 100
"""Number of characters of a reply that `brief_text` shows."""
Lines = Iterator[str]
Said = Callable[[Call], Lines]
"""A function that yields the output lines with the texts (prompt, reply) of a call."""


def query_text(details: Iterable[QueryDetail]) -> str:
    """Return queries as text for a terminal, with every prompt and reply in full."""
    return "\n\n".join(
        "\n".join(_lines(detail, _asked(detail), lambda row, detail=detail: _whole(row, detail)))
        for detail in details
    )


def brief_text(details: Iterable[QueryDetail]) -> str:
    """Return queries as text for a terminal, with the first `FIRST` characters of each reply."""
    return "\n\n".join(
        "\n".join(_lines(detail, (), lambda row, detail=detail: _first_words(row, detail)))
        for detail in details
    )


def _lines(detail: QueryDetail, question: Iterable[str], to_lines: Said) -> Lines:
    yield from _own(_head(detail.row))
    if detail.served:
        yield from _own(_of_server(detail.served, detail.texts))
    yield from question
    yield from _section("conductor", detail.conductor, to_lines)
    yield from _section("workflow", detail.steps, to_lines)
    apart = {"graders (scoring, in no": detail.graders, "not graded (in no": detail.discarded}
    for title, rows in apart.items():
        if rows:
            yield f"  {title} figure above)"
        for row in rows:
            yield from _set_in(4, _call(row, to_lines))
    yield from _own(_verdict(detail))


def _own(lines: Iterable[str]) -> Lines:
    """Yield lines with control characters replaced by spaces, so that each stays one line."""
    for line in lines:
        yield "".join(character if character.isprintable() else " " for character in line)


def _set_in(by: int, lines: Iterable[str]) -> Lines:
    return (f"{' ' * by}{line}" for line in lines)


def _asked(detail: QueryDetail) -> Lines:
    if detail.texts.input is not None:
        yield from _set_in(2, _block("question", detail.texts.input))


def _whole(row: Call, detail: QueryDetail) -> Lines:
    texts = detail.texts.of(row)
    for role, text in texts.prompt if texts else ():
        yield from _block(f"prompt, {role}", text)
    if texts and texts.reply is not None:
        yield from _block("reply", texts.reply)
    else:
        yield from _digest(row)


def _block(title: str, text: str) -> Lines:
    yield from _own([f"{title}:"])
    yield from (f"| {escape_controls(line)}" for line in text.replace("\r\n", "\n").split("\n"))


def _first_words(row: Call, detail: QueryDetail) -> Lines:
    texts = detail.texts.of(row)
    if texts and texts.reply:
        cut = "…" if len(texts.reply) > FIRST else ""
        yield from _own([f"reply: {texts.reply[:FIRST]}{cut}"])
    else:
        yield from _digest(row)


def _digest(row: Call) -> Lines:
    if row.output_sha256:
        yield f"reply sha256 {row.output_sha256}"


def _head(row: QueryRow) -> Lines:
    purpose = "" if row.purpose == "eval" else f", {row.purpose}"
    name, system = f"{row.suite or 'no suite'}/{row.question}", row.system or "no system"
    yield f"{name}, epoch {row.epoch}: {system} ({row.label or 'unlabelled'}{purpose})"
    counts = [(row.retries, "retries"), (row.failed, "failed attempts")]
    counts.append((row.cached_calls, "from the local cache"))
    extras = "".join(f", {count} {name}" for count, name in counts if count)
    yield f"  calls {row.calls}{extras}; steps {_or(row.steps)}, depth {_or(row.depth)}"
    if row.stopped:
        yield f"  stopped by its budget of {row.stopped}"
    yield (
        f"  tokens conductor {_or(row.conductor_in)} in, {_or(row.conductor_out)} out; workers "
        f"{_or(row.worker_in)} in, {_or(row.worker_out)} out; reasoning {_or(row.reasoning)}; "
        f"cached {_or(row.cache_read)}; orchestration {_or(row.orchestration)}"
    )
    unpriced = f" ({row.n_unpriced} without a price)" if row.n_unpriced else ""
    paid = PAID.get(row.label, " (would be; nothing was paid)")
    unknown = f"{_bounds(row)} (unknown cost of {pluralise(row.n_unknown, 'attempt')})"
    billed = unknown if row.n_unknown else _usd(row.usd)
    yield f"  list price {_usd(row.usd_list)}{unpriced}; billed {billed}{paid}"
    if row.grader_calls:
        yield f"  scoring {_usd(row.usd_scoring)} in {row.grader_calls} calls"
    if row.discarded_calls:
        yield f"  not graded {_usd(row.usd_discarded)} in {row.discarded_calls} calls"
    if row.gpu_s is not None:
        yield f"  own hardware {shortest(row.gpu_s)} GPU s, {_usd(row.usd_gpu)}"
    yield f"  latency {_seconds(row.latency_s)}, critical path {_seconds(row.critical_path_s)}"


def _of_server(served: ServedQuery, texts: QueryTexts) -> Lines:
    yield f"  {as_it_was_asked(served)}"
    yield from (f"  a text is not shown: {sentence}" for sentence in texts.refused)


def _bounds(row: QueryRow | Call) -> str:
    return f"between {_usd(row.usd_low)} and {_usd(row.usd_high)}"


def _section(title: str, steps: Sequence[StepDetail], to_lines: Said) -> Lines:
    if steps:
        yield f"  {title}"
    for step in steps:
        yield from _set_in(4, _own(_step(step)))
        for row in step.rows:
            yield from _set_in(6, _call(row, to_lines))


def _step(step: StepDetail) -> Lines:
    reads = f", reads {', '.join(map(str, step.reads))}" if step.reads else ""
    yield f"{step.name}{reads}" + ("" if step.rows else ": not run")
    if step.subtask:
        yield f"  subtask: {step.subtask}"


def _call(row: Call, to_lines: Said) -> Lines:
    yield from _own(_figures(row))
    yield from _set_in(2, to_lines(row))


def _figures(row: Call) -> Lines:
    tokens = (
        f"{_or(row.input_total)} in, {_or(row.output)} out, reasoning {_or(row.reasoning)}, "
        f"cached {_or(row.cache_read)}"
    )
    if row.cache_write:
        tokens += f", written to the cache {row.cache_write}"
    if row.orchestration_in or row.orchestration_out:
        tokens += f", orchestration {_or(row.orchestration_in)} in {_or(row.orchestration_out)} out"
    ending = f"{row.error} ({_or(row.http_status)})" if row.error else row.stop or UNKNOWN
    yield f"{row.role} attempt {row.attempt}: {row.model}, {ending}, {_seconds(row.latency_s)}"
    cache = ", from the local cache" if row.cache == "read" else ""
    cache = f", shared: call {row.shared_from} paid for it" if row.shared_from else cache
    billed = _bounds(row) if row.billable == "unknown" else _usd(row.usd)
    yield f"  {tokens}; list {_usd(row.usd_list)}, billed {billed}{cache}"
    if row.usd_provider is not None:
        yield f"  reported by its provider {_usd(row.usd_provider)}"
    ids = (("call", row.call), ("request", row.request_id), ("event", row.event))
    yield "  " + ", ".join(f"{name} {value}" for name, value in ids if value)


def _verdict(detail: QueryDetail) -> Lines:
    row, texts = detail.row, detail.texts
    reason = f": {row.reason}" if row.reason else ""
    score = "" if row.score is None else f" {row.score:g}"
    yield f"  verdict {MARK[row.verdict]} {row.verdict}{score}{reason}"
    missing = "-" if row.score is None else "none found"
    answer, target = row.answer, "-" if row.target is None else row.target
    yield f"    answer {missing if answer is None else answer}; target {target}"
    if texts.rule:
        yield f"    rule {texts.rule}"
    if texts.tests:
        yield f"    tests {texts.tests[0]} of {texts.tests[1]} passed"
    if row.plan is not None and not row.plan.startswith("["):
        yield f"    plan {row.plan}"
    if not detail.shown:
        yield "    texts are withheld: this suite may not be published"
        yield f"    plan sha256 {_or(row.plan_sha256)}"
    yield f"    logs {row.logs}, journals {row.journals}"


def _or(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _usd(value: Decimal | None) -> str:
    return UNKNOWN if value is None else f"${shortest(value)}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f} s"
