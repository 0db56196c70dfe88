"""Queries (one question, one system, one epoch) in full: each step's calls and all texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePath
from typing import Any, cast

from podium.harness.errors import UserError
from podium.harness.ledger.answers import AnswerRecord, log_header, without_texts
from podium.harness.ledger.call import Call, canonical, plain
from podium.harness.ledger.critical_path import step_number
from podium.harness.ledger.hooks import calls_in, message_parts
from podium.harness.ledger.join import Merged, merged
from podium.harness.ledger.kept_texts import CallText, kept_texts
from podium.harness.ledger.logs import (
    NOTHING,
    Json,
    RawLog,
    answer_in,
    attached,
    naming,
    open_log,
    score_in,
)
from podium.harness.ledger.queries import OF_QUERIES, QueryRow, answers_of, parted, query_row
from podium.harness.ledger.runs import RunFiles, gather, naming_system_run, system_runs_below
from podium.harness.ledger.served import SUITE as SERVED_SUITE
from podium.harness.ledger.served import (
    ServedQuery,
    gather_trace,
    is_served,
    queries_of,
    traces_below,
)
from podium.harness.ledger.turns import Turn, turns_in, turns_json
from podium.harness.records import CONDUCTOR, READ_BY
from podium.harness.workflow import Workflow, workflow_of

Pair = tuple[str, int]
"""A question's id and the epoch's number."""


@dataclass(frozen=True, slots=True)
class RunQueries:
    """The queries of one system run: their calls, joined from journals and logs, without texts."""

    files: RunFiles
    rows: Mapping[Pair, Sequence[Call]]
    """The call attempts of each query, sorted by start."""
    answers: Mapping[Pair, AnswerRecord]
    shown: bool
    """False if a log forbids publishing its texts."""
    served: Mapping[Pair, ServedQuery] = field(default_factory=dict[Pair, ServedQuery])
    """Queries that a client sent to `podium serve`: these have journals but no log."""


def run_queries(files: RunFiles) -> RunQueries:
    """Return the queries of one system run, without texts; UserError if a file is damaged."""
    with naming_system_run(files):
        return _run_queries(merged(gather(files, answers=True)))


def _run_queries(ledger: Merged) -> RunQueries:
    answers = {(answer.question, answer.epoch): answer for answer in answers_of(ledger)}
    groups: dict[Pair, list[Call]] = {pair: [] for pair in answers}
    for row in ledger.rows:
        if row.question and row.scope in OF_QUERIES:
            groups.setdefault((row.question, row.epoch), []).append(row)
    publishable = all(answer.header.shown for answer in answers.values()) and all(
        log.facts is None or log.facts.publishable for log in ledger.logs
    )
    served = {(query.trace, 1): query for query in queries_of(ledger, ledger.rows)}
    return RunQueries(ledger.files, dict(sorted(groups.items())), answers, publishable, served)


@dataclass(frozen=True, slots=True)
class StepDetail:
    """The calls of one workflow step; `number` None: calls that belong to no step of the plan."""

    name: str
    rows: tuple[Call, ...]
    number: int | None = None
    worker: str | None = None
    subtask: str = ""
    reads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTexts:
    """A query's texts, and how its verdict was found; mostly empty if the suite withholds texts."""

    log: str | None = None
    """Name of the log file that the verdict was read from."""
    input: str | None = None
    """The question in the wording of this epoch."""
    choices: tuple[str, ...] | None = None
    reply: str | None = None
    """The answer as it was graded, in full."""
    rule: str | None = None
    """The grader's rule that decided the verdict, e.g. `exact`, if the suite records the rule."""
    tests: tuple[int, int] | None = None
    """Number of tests that the answer passed, and number of all tests; None without tests."""
    calls: Mapping[str, CallText] = field(default_factory=dict[str, CallText])
    """Texts by the uuid of the call's Inspect event; for a served request, by the call's id."""
    turns: tuple[Turn, ...] = ()
    """The conversation, for a sample of an Inspect task; empty for a suite of single questions."""
    refused: tuple[str, ...] = ()
    """A sentence for each stored text that does not match the journal's digest."""

    def of(self, row: Call) -> CallText | None:
        """Return a call attempt's prompt, and its reply unless it failed; None if unknown."""
        texts = self.calls.get(row.event or row.call)
        return replace(texts, reply=None) if texts and row.error and not row.event else texts


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query: its calls, grouped by workflow step, and its texts."""

    files: RunFiles
    row: QueryRow
    conductor: tuple[StepDetail, ...]
    steps: tuple[StepDetail, ...]
    graders: tuple[Call, ...]
    discarded: tuple[Call, ...]
    shown: bool
    texts: QueryTexts
    served: ServedQuery | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """All call attempts of the query, in the order in which they are displayed."""
        stepped = (row for step in (*self.conductor, *self.steps) for row in step.rows)
        return (*stepped, *self.graders, *self.discarded)


def in_full(run: RunQueries, pairs: Iterable[Pair] | None = None) -> Iterator[QueryDetail]:
    """Yield a run's queries with their texts, one at a time; `pairs`: only these (None: all)."""
    with ExitStack() as stack:
        logs = [stack.enter_context(open_log(path)) for path in run.files.logs]
        for pair in run.rows if pairs is None else pairs:
            yield _detail(run, pair, logs)


def _detail(run: RunQueries, pair: Pair, logs: Sequence[RawLog]) -> QueryDetail:
    rows, answer, served = run.rows[pair], run.answers.get(pair), run.served.get(pair)
    if served and run.shown:
        answer, texts = _kept(served)
    else:
        texts = _texts(pair, {row.event for row in rows if row.event}, logs, public=run.shown)
    solving, scoring, discarded = parted(rows, answer)
    workers = [row for row in solving if row.role != CONDUCTOR]
    plan = answer.plan if answer else None
    return QueryDetail(
        files=run.files,
        row=query_row(rows, answer),
        conductor=tuple(_unplanned(row for row in solving if row.role == CONDUCTOR)),
        steps=tuple(_steps(workers, plan if plan is None or run.shown else without_texts(plan))),
        graders=tuple(scoring),
        discarded=tuple(discarded),
        shown=run.shown,
        texts=texts,
        served=served,
    )


def _kept(served: ServedQuery) -> tuple[AnswerRecord, QueryTexts]:
    """Return a served request's answer, and the texts of the request that were stored."""
    texts, answer = kept_texts(served), served.answer
    record = replace(answer, answer=texts.answer, plan=texts.plan or answer.plan)
    return record, QueryTexts(input=texts.input, calls=texts.calls, refused=tuple(texts.refused))


def _steps(rows: Sequence[Call], plan: str | None) -> Iterator[StepDetail]:
    workflow = workflow_of(plan) or Workflow(())
    steps = workflow.steps
    for number, step in enumerate(steps, 1):
        calls = tuple(row for row in rows if step_number(row.step) == number)
        reads = tuple(read + 1 for read in workflow.reads(number - 1))
        name = f"step {number}: {step.worker}"
        yield StepDetail(name, calls, number, step.worker, step.subtask, reads)
    yield from _unplanned(
        row for row in rows if not 1 <= (step_number(row.step) or 0) <= len(steps)
    )


def _unplanned(rows: Iterable[Call]) -> Iterator[StepDetail]:
    groups: dict[str, list[Call]] = {}
    for row in rows:
        groups.setdefault(row.step or row.role, []).append(row)
    yield from (StepDetail(name, tuple(calls)) for name, calls in groups.items())


def _texts(pair: Pair, events: set[str], logs: Sequence[RawLog], *, public: bool) -> QueryTexts:
    """Return a query's texts from the newest log; older logs add calls that this log lacks."""
    facts: dict[str, Any] = {}
    calls: dict[str, CallText] = {}
    for log in logs:
        if facts and (not public or events <= calls.keys()):
            break
        with naming(log.path):
            sample = log.sample(*pair)
            if sample is None or (str(sample["id"]), int(sample["epoch"])) != pair:
                continue
            if not facts:
                turns = tuple(turns_in(sample, partial(_text, sample=sample)))
                facts = {"log": log.path.name, "turns": turns, **_facts(sample, public=public)}
            calls = {**dict(_call_texts(sample)), **calls} if public else {}
    return QueryTexts(**facts, calls=calls)


def _facts(sample: Json, *, public: bool) -> dict[str, Any]:
    """Return the test counts and, if texts are public, the rule, the answer and the question."""
    metadata: Json = score_in(sample).get("metadata") or NOTHING
    counts = [metadata.get(name) for name in ("tests_passed", "tests_total")]
    tests = tuple(counts) if all(isinstance(count, int) for count in counts) else None
    if not public:
        return {"tests": tests}
    rule = ", ".join(str(metadata[name]) for name in RULES if metadata.get(name)) or None
    return {"tests": tests, "rule": rule, "reply": answer_in(sample), **_asked(sample)}


def _asked(sample: Json) -> dict[str, Any]:
    metadata: Json = sample.get("metadata") or NOTHING
    # Later epochs reword the question and reorder its choices.
    question: Json = metadata.get("asked") or metadata.get("question") or NOTHING
    text, choices = question.get("text", sample.get("input")), question.get("choices")
    turns = [{"content": text}] if isinstance(text, str) else cast(Sequence[Json], text or ())
    return {
        "input": "\n\n".join(_text(turn, sample) for turn in turns),
        "choices": tuple(map(str, choices)) if choices else None,
    }


RULES = (READ_BY, "rule", "look")
"""Keys in a score's metadata: the rule that found the answer, the rules that compared it."""


def _call_texts(sample: Json) -> Iterator[tuple[str, CallText]]:
    for event, turns in calls_in(sample, lambda one: (str(one.get("role")), _text(one, sample))):
        choices: Sequence[Json] = (event.get("output") or NOTHING).get("choices") or ()
        reply = _text(choices[0]["message"], sample) if choices and not event.get("error") else None
        yield str(event.get("uuid")), CallText(tuple(turns), reply)


def _text(message: Json, sample: Json) -> str:
    """Return a message as text: its non-text blocks (reasoning, tool calls), then its text."""
    text, blocks = message_parts(message, partial(attached, sample=sample))
    return "\n\n".join([*(f"[{kind}] {_said(values)}" for kind, *values in blocks), text])


def _said(values: Iterable[object]) -> str:
    return " ".join(str(value) for value in values if value)


FIGURES = (
    *("calls", "attempts", "retries", "failed", "cached_calls", "discarded_calls", "steps"),
    *("depth", "stopped", "conductor_in", "conductor_out", "worker_in", "worker_out", "reasoning"),
    *("cache_read", "cache_write", "orchestration", "grader_calls", "grader_in", "grader_out"),
    *("usd", "usd_list", "usd_low", "usd_high", "usd_scoring", "usd_discarded", "n_unpriced"),
    *("n_unknown", "gpu_s", "usd_gpu", "elapsed_s", "latency_s"),
    *("critical_path_s", "started"),
)
"""Columns of `QueryRow` without any text of a suite or a provider, so they are never withheld."""
FREE_TEXTS = ("raw_usage",)
"""Columns of a call with free-form provider data: null for suites whose texts are withheld."""


def as_json(detail: QueryDetail, folder: Path) -> Json:
    """Return a query as plain JSON values; withheld texts are null."""
    row, texts, public = detail.row, detail.texts, detail.shown
    places = {id(call): index for index, call in enumerate(detail.calls)}

    def at(rows: Iterable[Call]) -> list[int]:
        return [places[id(call)] for call in rows]

    plan = row.plan if row.plan is None or public else _shape(row.plan)
    return {
        **{name: getattr(row, name) for name in ("suite", "system", "label", "purpose")},
        **{name: getattr(row, name) for name in ("question", "epoch", "sample")},
        "log": texts.log,
        "run": PurePath(folder.resolve().name, detail.files.folder).as_posix(),
        "shown": public,
        "input": texts.input,
        "choices": texts.choices and list(texts.choices),
        "target": row.target if public else None,
        **{
            name: getattr(row, name)
            for name in ("verdict", "score", "parsed", "too_long", "reason")
        },
        "answer": row.answer if public else None,
        "rule": texts.rule,
        "tests": texts.tests and dict(zip(("passed", "total"), texts.tests, strict=True)),
        "plan": plan,
        "plan_sha256": row.plan_sha256,
        "steps": [_step(step, at(step.rows), public) for step in detail.steps],
        "conductor": at(call for step in detail.conductor for call in step.rows),
        "graders": at(detail.graders),
        "discarded": at(detail.discarded),
        "calls": [_call(call, detail) for call in detail.calls],
        "sums": {name: plain(getattr(row, name)) for name in FIGURES},
        **_turns(detail),
        **_served(detail),
    }


def _turns(detail: QueryDetail) -> Json:
    """Return the extra JSON keys of a query with several turns; empty for other queries."""
    turns = detail.texts.turns
    return {"turns": turns_json(turns, detail.calls, public=detail.shown)} if turns else {}


def _served(detail: QueryDetail) -> Json:
    """Return the extra JSON keys of a served request; empty for other queries."""
    if detail.served is None:
        return {}
    return {"served": detail.served.facts, "refused_texts": list(detail.texts.refused)}


def trace_json(query: ServedQuery, log_dir: Path) -> Json:
    """Return one served request as `podium audit LOG_DIR --query ID --json` prints it."""
    pair, files = (query.trace, 1), RunFiles("", query.system, (), (query.journal.path,))
    (detail,) = in_full(
        RunQueries(files, {pair: query.rows}, {pair: query.answer}, True, {pair: query})
    )
    return as_json(detail, log_dir)


def _shape(plan: str) -> str | None:
    """Return a plan's structure without its texts; None if the plan is malformed."""
    return without_texts(plan) if workflow_of(plan) else None


def _step(step: StepDetail, calls: list[int], public: bool) -> Json:
    return {
        "number": step.number,
        "name": step.name,
        "worker": step.worker,
        "subtask": step.subtask if public else None,
        "reads": list(step.reads),
        "calls": calls,
    }


def _call(row: Call, detail: QueryDetail) -> Json:
    texts = detail.texts.of(row)
    hidden = dict.fromkeys(() if detail.shown else FREE_TEXTS)
    prompt = texts and [{"role": role, "text": text} for role, text in texts.prompt]
    return {**row.as_json(), **hidden, "prompt": prompt, "reply": texts and texts.reply}


SCHEMA = "podium-query-1"


def queries_json(queries: Sequence[QueryDetail], folder: Path) -> bytes:
    """Return queries of a folder as canonical JSON; the same files give the same bytes."""
    records = [as_json(query, folder) for query in queries]
    return canonical({"schema": SCHEMA, "queries": records}) + b"\n"


Known = dict[str, set[tuple[str, str]]]
"""Question id -> the (suite, system) pairs whose logs or journals contain it."""
WHO = 3


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Selects queries by question, system and epoch; None selects all systems or all epochs."""

    question: str
    """A question's id, or a suite and an id: `aime25/aime25-I-1`."""
    system: str | None = None
    epoch: int | None = None

    def fits(self, suite: str, question: str) -> bool:
        """Return whether the filter selects the question with this id and suite."""
        return self.question in (question, f"{suite}/{question}")


def details(folder: Path, search: QuestionFilter) -> list[QueryDetail]:
    """Return the queries that a filter selects, sorted; UserError with similar ids if none."""
    index: Known = {}
    hits: list[QueryDetail] = []
    for files in system_runs_below(folder):
        hits.extend(_of_system_run(files, search, index))
    if not hits:
        for trace, system in traces_below(folder):
            index.setdefault(trace, set()).add((SERVED_SUITE, system))
        raise UserError(_unknown(search, index))
    return sorted(hits, key=lambda query: (query.row.suite, query.row.question, query.row.system))


def _of_system_run(files: RunFiles, search: QuestionFilter, index: Known) -> Iterator[QueryDetail]:
    if is_served(files):
        yield from _of_server(files, search)
        return
    here = not files.logs
    for path in files.logs:
        with open_log(path) as log:
            dataset: Json = log.header["eval"].get("dataset") or {}
            header = log_header(log.header)
        for question in map(str, dataset.get("sample_ids") or ()):
            index.setdefault(question, set()).add((header.suite, header.system))
            here = here or search.fits(header.suite, question)
    if not here:
        return
    run = run_queries(files)
    whose = {pair: rows[0] for pair, rows in run.rows.items() if rows}
    whose |= {pair: answer.header for pair, answer in run.answers.items()}
    pairs = [pair for pair in run.rows if search.fits(whose[pair].suite, pair[0])]
    for query in in_full(run, [pair for pair in pairs if search.epoch in (None, pair[1])]):
        if search.system in (None, query.row.system):
            yield query


def _of_server(files: RunFiles, search: QuestionFilter) -> Iterator[QueryDetail]:
    """Yield the served request that the filter selects; only its journal lines are parsed."""
    trace = gather_trace(files, search.question.rpartition("/")[2])
    for hit in in_full(_run_queries(merged(trace))) if trace and search.epoch in (None, 1) else ():
        if search.system in (None, hit.row.system):
            yield hit


def _unknown(search: QuestionFilter, index: Known) -> str:
    name = search.question if search.question in index else search.question.rpartition("/")[2]
    near = get_close_matches(name, sorted(index), n=3, cutoff=0.5)
    if not index:
        return f"No log here has a question {search.question!r}. Name the directory of its run."
    if name in index:
        sat = sorted(index[name])
        examples = ", ".join(f"{suite}/{name} by {system}" for suite, system in sat[:WHO])
        suffix = f" and {len(sat) - WHO} more" if len(sat) > WHO else ""
        hint = "Change --query, --system or --epoch."
        return f"No log here has question {_wanted(search)}. There is {examples}{suffix}. {hint}"
    hint = f"near: {', '.join(near)}" if near else f"for example {min(index)}"
    return f"There is no question {search.question!r} here ({hint}). Use another id in --query."


def _wanted(search: QuestionFilter) -> str:
    system = f" by {search.system}" if search.system else ""
    epoch = "" if search.epoch is None else f" in epoch {search.epoch}"
    return f"{search.question!r}{system}{epoch}"
