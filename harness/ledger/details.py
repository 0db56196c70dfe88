"""Queries in full: their calls step by step, and every text that was sent and came back."""

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
"""A question and an epoch."""


@dataclass(frozen=True, slots=True)
class RunQueries:
    """The queries of one system run, joined, without their texts."""

    files: RunFiles
    rows: Mapping[Pair, Sequence[Call]]
    """Of every query, sorted."""
    answers: Mapping[Pair, AnswerRecord]
    shown: bool
    """False where a log says that no text may be published."""
    served: Mapping[Pair, ServedQuery] = field(default_factory=dict[Pair, ServedQuery])
    """Those that no log has because a server took them."""


def run_queries(files: RunFiles) -> RunQueries:
    """Read the queries of one system run; UserError for damage."""
    with naming_system_run(files):
        return _run_queries(merged(gather(files, answers=True)))


def _run_queries(found: Merged) -> RunQueries:
    answers = {(one.question, one.epoch): one for one in answers_of(found)}
    groups: dict[Pair, list[Call]] = {pair: [] for pair in answers}
    for row in found.rows:
        if row.question and row.scope in OF_QUERIES:
            groups.setdefault((row.question, row.epoch), []).append(row)
    shown = all(one.header.shown for one in answers.values()) and all(
        log.facts is None or log.facts.publishable for log in found.logs
    )
    served = {(one.trace, 1): one for one in queries_of(found, found.rows)}
    return RunQueries(found.files, dict(sorted(groups.items())), answers, shown, served)


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One step of the workflow, or calls outside it."""

    name: str
    rows: tuple[Call, ...]
    number: int | None = None
    worker: str | None = None
    subtask: str = ""
    reads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTexts:
    """What is known of a query beside its rows; nothing where texts are withheld."""

    log: str | None = None
    """Name of the file that the verdict was read from."""
    input: str | None = None
    """As its epoch put the question."""
    choices: tuple[str, ...] | None = None
    reply: str | None = None
    """The answer as it was graded, in full."""
    rule: str | None = None
    """What decided the verdict, where its suite says so, e.g. `exact` or `symbolic`."""
    tests: tuple[int, int] | None = None
    """How many of the verdict's tests passed, of how many."""
    calls: Mapping[str, CallText] = field(default_factory=dict[str, CallText])
    """By event; of what was served, by call."""
    turns: tuple[Turn, ...] = ()
    """Of a sample of an Inspect task; none where a suite asks once."""
    refused: tuple[str, ...] = ()
    """A sentence for each text that was kept and is not what the journal has a digest of."""

    def of(self, row: Call) -> CallText | None:
        """Return the texts of an attempt; one that failed had no reply."""
        told = self.calls.get(row.event or row.call)
        return replace(told, reply=None) if told and row.error and not row.event else told


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query in full."""

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
        """Every row, in the order in which it is shown."""
        stepped = (row for step in (*self.conductor, *self.steps) for row in step.rows)
        return (*stepped, *self.graders, *self.discarded)


def in_full(run: RunQueries, pairs: Iterable[Pair] | None = None) -> Iterator[QueryDetail]:
    """Yield the queries of a system run (None: all, sorted), one sample held at a time."""
    with ExitStack() as stack:
        logs = [stack.enter_context(open_log(path)) for path in run.files.logs]
        for pair in run.rows if pairs is None else pairs:
            yield _detail(run, pair, logs)


def _detail(run: RunQueries, pair: Pair, logs: Sequence[RawLog]) -> QueryDetail:
    rows, answer, served = run.rows[pair], run.answers.get(pair), run.served.get(pair)
    if served and run.shown:
        answer, texts = _kept(served)
    else:
        texts = _texts(pair, {row.event for row in rows if row.event}, logs, shown=run.shown)
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
    """Return the answer of a request and its texts, as far as these were kept."""
    kept, answer = kept_texts(served), served.answer
    whole = replace(answer, answer=kept.answer, plan=kept.plan or answer.plan)
    return whole, QueryTexts(input=kept.input, calls=kept.calls, refused=tuple(kept.refused))


def _steps(rows: Sequence[Call], plan: str | None) -> Iterator[StepDetail]:
    workflow = workflow_of(plan) or Workflow(())
    steps = workflow.steps
    for at, step in enumerate(steps, 1):
        own = tuple(row for row in rows if step_number(row.step) == at)
        reads = tuple(read + 1 for read in workflow.reads(at - 1))
        yield StepDetail(f"step {at}: {step.worker}", own, at, step.worker, step.subtask, reads)
    yield from _unplanned(
        row for row in rows if not 1 <= (step_number(row.step) or 0) <= len(steps)
    )


def _unplanned(rows: Iterable[Call]) -> Iterator[StepDetail]:
    groups: dict[str, list[Call]] = {}
    for row in rows:
        groups.setdefault(row.step or row.role, []).append(row)
    yield from (StepDetail(name, tuple(own)) for name, own in groups.items())


def _texts(pair: Pair, events: set[str], logs: Sequence[RawLog], *, shown: bool) -> QueryTexts:
    """Return the texts of a query: the log of its verdict comes first, older ones have the rest."""
    facts: dict[str, Any] = {}
    calls: dict[str, CallText] = {}
    for log in logs:
        if facts and (not shown or events <= calls.keys()):
            break
        with naming(log.path):
            sample = log.sample(*pair)
            if sample is None or (str(sample["id"]), int(sample["epoch"])) != pair:
                continue
            if not facts:
                turns = tuple(turns_in(sample, partial(_text, sample=sample)))
                facts = {"log": log.path.name, "turns": turns, **_facts(sample, shown=shown)}
            calls = {**dict(_call_texts(sample)), **calls} if shown else {}
    return QueryTexts(**facts, calls=calls)


def _facts(sample: Json, *, shown: bool) -> dict[str, Any]:
    """Return what decided the verdict and, where it may be shown, what was asked."""
    found: Json = score_in(sample).get("metadata") or NOTHING
    counts = [found.get(name) for name in ("tests_passed", "tests_total")]
    tests = tuple(counts) if all(isinstance(one, int) for one in counts) else None
    if not shown:
        return {"tests": tests}
    rule = ", ".join(str(found[name]) for name in RULES if found.get(name)) or None
    return {"tests": tests, "rule": rule, "reply": answer_in(sample), **_asked(sample)}


def _asked(sample: Json) -> dict[str, Any]:
    metadata: Json = sample.get("metadata") or NOTHING
    # A later epoch has words and an order of choices of its own.
    asked: Json = metadata.get("asked") or metadata.get("question") or NOTHING
    said, choices = asked.get("text", sample.get("input")), asked.get("choices")
    turns = [{"content": said}] if isinstance(said, str) else cast(Sequence[Json], said or ())
    return {
        "input": "\n\n".join(_text(one, sample) for one in turns),
        "choices": tuple(map(str, choices)) if choices else None,
    }


RULES = (READ_BY, "rule", "look")
"""Keys under which graders name the rule that read a reply, and what compared its value."""


def _call_texts(sample: Json) -> Iterator[tuple[str, CallText]]:
    for event, turns in calls_in(sample, lambda one: (str(one.get("role")), _text(one, sample))):
        said: Sequence[Json] = (event.get("output") or NOTHING).get("choices") or ()
        reply = _text(said[0]["message"], sample) if said and not event.get("error") else None
        yield str(event.get("uuid")), CallText(tuple(turns), reply)


def _text(message: Json, sample: Json) -> str:
    """Return a message in full: what is no text of it (reasoning, calls of tools) stands above."""
    text, others = message_parts(message, partial(attached, sample=sample))
    return "\n\n".join([*(f"[{kind}] {_said(parts)}" for kind, *parts in others), text])


def _said(parts: Iterable[object]) -> str:
    return " ".join(str(one) for one in parts if one)


FIGURES = (
    *("calls", "attempts", "retries", "failed", "cached_calls", "discarded_calls", "steps"),
    *("depth", "stopped", "conductor_in", "conductor_out", "worker_in", "worker_out", "reasoning"),
    *("cache_read", "cache_write", "orchestration", "grader_calls", "grader_in", "grader_out"),
    *("usd", "usd_list", "usd_low", "usd_high", "usd_scoring", "usd_discarded", "n_unpriced"),
    *("n_unknown", "gpu_s", "usd_gpu", "elapsed_s", "latency_s"),
    *("critical_path_s", "started"),
)
"""Columns of a row that are figures, or no texts of others."""
FREE_TEXTS = ("raw_usage",)
"""Columns of a call that a provider fills as it likes: none of a suite that is not shown."""


def as_json(detail: QueryDetail, folder: Path) -> Json:
    """Return a query as plain JSON values, made key by key: a text that is withheld is null."""
    row, texts, shown = detail.row, detail.texts, detail.shown
    places = {id(one): at for at, one in enumerate(detail.calls)}

    def at(rows: Iterable[Call]) -> list[int]:
        return [places[id(one)] for one in rows]

    plan = row.plan if row.plan is None or shown else _shape(row.plan)
    return {
        **{name: getattr(row, name) for name in ("suite", "system", "label", "purpose")},
        **{name: getattr(row, name) for name in ("question", "epoch", "sample")},
        "log": texts.log,
        "run": PurePath(folder.resolve().name, detail.files.folder).as_posix(),
        "shown": shown,
        "input": texts.input,
        "choices": texts.choices and list(texts.choices),
        "target": row.target if shown else None,
        **{
            name: getattr(row, name)
            for name in ("verdict", "score", "parsed", "too_long", "reason")
        },
        "answer": row.answer if shown else None,
        "rule": texts.rule,
        "tests": texts.tests and dict(zip(("passed", "total"), texts.tests, strict=True)),
        "plan": plan,
        "plan_sha256": row.plan_sha256,
        "steps": [_step(one, at(one.rows), shown) for one in detail.steps],
        "conductor": at(one for step in detail.conductor for one in step.rows),
        "graders": at(detail.graders),
        "discarded": at(detail.discarded),
        "calls": [_call(one, detail) for one in detail.calls],
        "sums": {name: plain(getattr(row, name)) for name in FIGURES},
        **_turns(detail),
        **_served(detail),
    }


def _turns(detail: QueryDetail) -> Json:
    """Return what only a query of several turns has."""
    turns = detail.texts.turns
    return {"turns": turns_json(turns, detail.calls, shown=detail.shown)} if turns else {}


def _served(detail: QueryDetail) -> Json:
    """Return what only a request has that a server took."""
    if detail.served is None:
        return {}
    return {"served": detail.served.facts, "refused_texts": list(detail.texts.refused)}


def trace_json(query: ServedQuery, log_dir: Path) -> Json:
    """Return one served request as `podium audit LOG_DIR --query ID --json` has it."""
    pair, files = (query.trace, 1), RunFiles("", query.system, (), (query.journal.path,))
    (detail,) = in_full(
        RunQueries(files, {pair: query.rows}, {pair: query.answer}, True, {pair: query})
    )
    return as_json(detail, log_dir)


def _shape(plan: str) -> str | None:
    """Return who reads whom of a plan whose texts are withheld; None of a malformed one."""
    return without_texts(plan) if workflow_of(plan) else None


def _step(step: StepDetail, calls: list[int], shown: bool) -> Json:
    return {
        "number": step.number,
        "name": step.name,
        "worker": step.worker,
        "subtask": step.subtask if shown else None,
        "reads": list(step.reads),
        "calls": calls,
    }


def _call(row: Call, detail: QueryDetail) -> Json:
    told = detail.texts.of(row)
    hidden = dict.fromkeys(() if detail.shown else FREE_TEXTS)
    prompt = told and [{"role": role, "text": text} for role, text in told.prompt]
    return {**row.as_json(), **hidden, "prompt": prompt, "reply": told and told.reply}


SCHEMA = "podium-query-1"


def queries_json(found: Sequence[QueryDetail], folder: Path) -> bytes:
    """Return queries of a folder as canonical JSON; the same files give the same bytes."""
    return canonical({"schema": SCHEMA, "queries": [as_json(one, folder) for one in found]}) + b"\n"


Known = dict[str, set[tuple[str, str]]]
"""Who was asked each question: suites and systems."""
WHO = 3


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


def details(folder: Path, wanted: QuestionFilter) -> list[QueryDetail]:
    """Return the queries that fit, sorted; UserError with near matches when there is none."""
    known: Known = {}
    found: list[QueryDetail] = []
    for files in system_runs_below(folder):
        found.extend(_of_system_run(files, wanted, known))
    if not found:
        for trace, system in traces_below(folder):
            known.setdefault(trace, set()).add((SERVED_SUITE, system))
        raise UserError(_unknown(wanted, known))
    return sorted(found, key=lambda one: (one.row.suite, one.row.question, one.row.system))


def _of_system_run(files: RunFiles, wanted: QuestionFilter, known: Known) -> Iterator[QueryDetail]:
    if is_served(files):
        yield from _of_server(files, wanted)
        return
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
    run = run_queries(files)
    whose = {pair: rows[0] for pair, rows in run.rows.items() if rows}
    whose |= {pair: one.header for pair, one in run.answers.items()}
    asked = [pair for pair in run.rows if wanted.fits(whose[pair].suite, pair[0])]
    for found in in_full(run, [pair for pair in asked if wanted.epoch in (None, pair[1])]):
        if wanted.system in (None, found.row.system):
            yield found


def _of_server(files: RunFiles, wanted: QuestionFilter) -> Iterator[QueryDetail]:
    """Yield the request that is wanted: only its own lines are read."""
    found = gather_trace(files, wanted.question.rpartition("/")[2])
    for one in in_full(_run_queries(merged(found))) if found and wanted.epoch in (None, 1) else ():
        if wanted.system in (None, one.row.system):
            yield one


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
