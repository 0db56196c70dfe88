"""Runs of systems, read from logs: the result of each question, and the sums of all calls.

A resumed or enlarged run leaves several logs. Each (question, epoch) pair is taken from the newest
log that has it, and a call that is in several logs (with the same uuid) counts once. Logs are read
raw, newest first, one sample at a time; several processes read large sets of logs.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Generic, TypeVar, cast

from podium.harness.context_length import TOO_LONG
from podium.harness.errors import UserError
from podium.harness.ledger.answers import SECRET, why_unscored
from podium.harness.ledger.call import Call, Scope
from podium.harness.ledger.critical_path import answer_times
from podium.harness.ledger.join import journal_calls, logged_call, of_event, write
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.logs import (
    NOTHING,
    CallEvent,
    Json,
    RawLog,
    events_of,
    find_logs,
    last_tries,
    lost_in,
    naming,
    open_log,
    score_in,
    shape_in,
    verdict,
)
from podium.harness.ledger.runs import (
    Gathered,
    LogReading,
    LogRecord,
    RunFacts,
    RunFiles,
    facts_in,
    header_record,
    journals_of,
    naming_system_run,
    plain_facts,
    read_journals,
)
from podium.harness.ledger.totals import (
    ByScope,
    CallKind,
    CallSum,
    CallSums,
    QueryTotals,
    QuestionResult,
    SpentSoFar,
    SystemRun,
    query_totals,
    spent_by,
    sums_by,
)
from podium.harness.parallel import LARGE, map_over_processes, without_collector
from podium.harness.prices import EMBEDDED, Book, book_from_json
from podium.harness.records import (
    CONDUCTOR,
    FALLBACK,
    ORDER,
    TOOL_CALL_COUNT,
    TURN_COUNT,
    UNUSED,
    Usage,
)
from podium.harness.shards.figures import joined, read_figures_of, whole_plan
from podium.harness.shards.plan import outside_shards, parent_of, shard_dirs
from podium.harness.suite import redacted_message
from podium.harness.usage import usage_from_json
from podium.harness.workflow import MALFORMED, workflow_of

GROUPINGS = ("difficulty", "platform")
"""Metadata fields of a question by which a report groups a suite's results, in this order."""
PLANNING = f"{CONDUCTOR}: plan"
"""Prefix of the step name of each call that requests a plan; routing calls have another prefix."""
DIGITS = 16
OTHER_FAULT = "another fault"
FAULTS = {
    "no complete plan": r"there is no complete |the three lists do not |the JSON object has no key "
    r"|(steps|\w+) must be a list|step \d+ (must be a JSON object|has no key )",
    "lists that cannot be read": r"\w+ may hold only strings|\w+ is not a valid Python list"
    r"|the plan is not valid JSON|a key of the JSON object stands |\S+ is no JSON",
    "lists of different lengths": r"the three lists have different lengths",
    "no step": r"three empty lists |a workflow needs at least one step",
    "too many steps": r"\d+ steps, at most ",
    "worker number out of range": r"step \d+: (there is no Model |unknown worker )",
    "a worker that is no number": r"step \d+: model_id must be an integer",
    "a subtask that is no text": r"step \d+: the subtask ",
    "access to a step that has not run": r"step \d+ (may read earlier steps |reads step \d+, )",
    "access that cannot be read": r"step \d+: access |step \d+ reads the same step twice",
}
"""Class of a plan's fault -> pattern of the beginnings of its error messages (conductor/parse.py,
json_form.py, reading.py, harness/workflow.py). Messages may quote a model, classes do not."""


Made = TypeVar("Made")
Stamp = tuple[tuple[Path, int, int], ...]


@dataclass(frozen=True)
class Beside(Generic[Made]):
    """Stores the values that `make` computes from system runs while `load_runs` reads them."""

    make: Callable[[Gathered], Made]
    system_runs: Sequence[RunFiles]
    _made: dict[RunFiles, tuple[Stamp, Made]] = field(default_factory=dict[RunFiles, Any])

    def of_logs(self, paths: Sequence[Path]) -> RunFiles | None:
        """Return the system run with exactly these logs, given newest first; None if no run has."""
        return self._by_logs.get(tuple(paths))

    @cached_property
    def _by_logs(self) -> Mapping[tuple[Path, ...], RunFiles]:
        return {files.logs: files for files in self.system_runs}

    def keep(self, files: RunFiles, stamp: Stamp, value: Made) -> None:
        """Store the value made from files with these sizes and modification times (`stamp`)."""
        self._made[files] = stamp, value

    def made_of(self, files: RunFiles) -> Made | None:
        """Return the value made from a system run; None if there is none, or its files changed."""
        stamp, value = self._made.get(files, (None, None))
        return value if stamp == _stamp(files) else None


def _stamp(files: RunFiles) -> Stamp:
    stats = ((path, path.stat()) for path in (*files.logs, *files.journals))
    return tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats)


@without_collector()
def load_runs(
    dirs: Sequence[Path],
    recursive: bool = True,
    deep: bool = False,
    beside: Beside[Any] | None = None,
) -> tuple[tuple[SystemRun, ...], tuple[Path, ...]]:
    """Return the system runs below `dirs`, and logs of other programs; UserError without a run.

    `deep`: read the logs even if a shard (a part of a run) has stored its results.
    """
    places = dirs if recursive else [path for top in dirs for path in (top, *shard_dirs(top))]
    groups: dict[object, list[SystemRun]] = {}
    remaining, foreign = list[Path](), list[Path]()
    for folder, logs in _by_folder(find_logs(places, recursive)).items():
        parent = parent_of(folder)
        figures = None if deep or parent is None else read_figures_of(folder, logs)
        for run in figures or ():
            groups.setdefault((_place(parent), *_identity(run.facts)), []).append(run)
        remaining += logs if figures is None else ()
    for key, run in _read_runs(remaining, foreign, beside):
        groups.setdefault(key, []).append(run)
    if not groups:
        raise UserError(
            f"{foreign[0]} was not written by `podium run`, nor was any other log here. Name the "
            "directory of a run."
        )
    return tuple(_whole(runs, dirs) for runs in groups.values()), tuple(foreign)


def _by_folder(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        groups.setdefault(path.parent, []).append(path)
    return groups


def _place(folder: Path | None) -> str:
    return str(folder.resolve()) if folder else ""


def _whole(runs: Sequence[SystemRun], dirs: Sequence[Path]) -> SystemRun:
    parent = parent_of(runs[0].paths[0].parent)
    return joined(runs, whole_plan(parent, dirs)) if parent else runs[0]


def _read_runs(
    paths: Iterable[Path], foreign: list[Path], beside: Beside[Any] | None
) -> Iterator[tuple[tuple[object, ...], SystemRun]]:
    """Yield (key, system run) for each group of logs; all shards of one run have the same key."""
    groups: dict[object, list[_Head]] = {}
    for path in paths:
        head = _read_head(path)
        if head is None:
            foreign.append(path)
        else:
            _join(groups, head)
    once = {id(group): group for group in groups.values()}
    ordered = [sorted(group, key=lambda head: head.age, reverse=True) for group in once.values()]
    logs = [tuple(head.path for head in group) for group in ordered]
    tasks = [(paths, beside.of_logs(paths) if beside else None) for paths in logs]
    size = sum(path.stat().st_size for paths in logs for path in paths)
    read = partial(_sums, make=beside.make if beside else None)
    sums = map_over_processes(read, tasks, many=size >= LARGE)
    for group, (attempts, spend, paid, extra) in zip(ordered, sums, strict=True):
        newest = group[0]
        if beside and extra:
            beside.keep(*extra)
        parent = parent_of(newest.path.parent)
        run = replace(
            newest.run,
            paths=tuple(head.path for head in group),
            asked=max(newest.run.asked, len(attempts)),
            attempts=attempts,
            spend=spend,
            paid=paid,
        )
        yield (_place(parent), *_identity(run.facts)) if parent else (newest.task,), run


_Kept = tuple[RunFiles, Stamp, Any]


def _sums(
    task: tuple[Sequence[Path], RunFiles | None], make: Callable[[Gathered], Any] | None
) -> tuple[tuple[QuestionResult, ...], CallSums, ByScope | None, _Kept | None]:
    paths, files = task
    extra: _Kept | None = None
    if make and files:
        with naming_system_run(files):
            stamp, gathered = _stamp(files), read_journals(files)
            figures = read_figures(paths, gathered)
            extra = files, stamp, make(gathered)
    else:
        figures = read_figures(paths)
    return *figures, _paid([head for path in paths if (head := _read_head(path))]), extra


def _paid(group: Sequence["_Head"]) -> ByScope | None:
    """Return a run's paid dollars by scope, from its journals: only journals have every call.

    None for a run without live workers, which cost nothing, and for logs older than journals.
    """
    facts = group[0].run.facts
    if facts.label != "live" or not all(head.run.facts.journal for head in group):
        return None
    folders = sorted({head.path.parent for head in group})
    journals = [path for folder in folders for path in journals_of(folder, group[0].name)]
    attempts = _journalled(journals, book_from_json(facts.prices), set())
    sums: dict[Scope, CallSum] = sums_by(attempts, lambda call: call.scope)
    return {scope: call_sum.paid for scope, call_sum in sums.items()} if journals else None


def _join(groups: dict[object, list["_Head"]], head: "_Head") -> None:
    """Add a log to the groups with its task id and with its run identity: they become one group."""
    same_task, same_run = groups.get(head.task, []), groups.get(head.identity, [])
    group = [*same_task, *(() if same_task is same_run else same_run), head]
    for member in group:
        groups[member.task] = groups[member.identity] = group


@dataclass(frozen=True, slots=True)
class _Head:
    path: Path
    age: tuple[str, str]
    name: str
    task: str
    identity: tuple[str, ...]
    """Key of the log's run: stays equal if the run is enlarged, though its task id may change."""
    run: SystemRun
    """The run as far as the log's header describes it."""


def _read_head(path: Path) -> _Head | None:
    with open_log(path) as log, naming(path):
        about: Json = log.header["eval"]
        facts = facts_in(about.get("metadata"), path) or plain_facts(log.header)
        if facts is None:
            return None
        epochs = (about.get("config") or NOTHING).get("epochs") or 1
        count = len((about.get("dataset") or NOTHING).get("sample_ids") or ()) * epochs
        return _Head(
            path=path,
            # A regraded log repeats the old log's creation time, with a later time in its name.
            age=(about["created"], path.name),
            name=str(about.get("task", "")),
            task=about["task_id"],
            identity=(str(path.parent.resolve()), *_identity(facts)),
            run=SystemRun(facts, (path,), count, epochs, (), {}),
        )


def _identity(facts: RunFacts) -> tuple[str, ...]:
    image = facts.box_facts.image_id if facts.box_facts else None
    suite = (facts.suite, facts.suite_version, facts.data_revision, facts.split, facts.prompt)
    system = (facts.system, sorted(facts.args.items()), facts.pool_sha256, facts.label, facts.seed)
    return tuple(map(str, (*suite, facts.box, image, *system, facts.purpose)))


def read_figures(
    paths: Sequence[Path], gathered: Gathered | None = None
) -> tuple[tuple[QuestionResult, ...], CallSums]:
    """Return a result per (question, epoch), and sums of calls by kind; `paths`: newest first."""
    attempts: dict[tuple[str, int], QuestionResult] = {}
    spend: dict[CallKind, CallSum] = {}
    event_ids: set[str] = set()
    for entry in entries(paths, gathered):
        with naming(entry.path):
            rows = tuple(map(entry.call, entry.calls))
            attempt = _attempt(entry, rows) if entry.current else None
            counted = attempt is not None and attempt.graded
            for event, row in zip(entry.calls, rows, strict=True):
                if event.id not in event_ids:
                    paid = event.cache != "read"
                    origin = event.role, event.model, event.phase
                    kind = CallKind(entry.newest, *origin, counted, paid)
                    spend.setdefault(kind, CallSum()).add(row)
                    if event.id:  # events of very old logs have no uuid: count each
                        event_ids.add(event.id)
        if attempt:
            attempts[attempt.question, attempt.epoch] = attempt
    return tuple(attempts[pair] for pair in sorted(attempts)), spend


@dataclass(frozen=True, slots=True)
class SampleCalls:
    """The calls of one attempt at a sample, and the log that has them."""

    log: LogRecord
    facts: RunFacts
    book: Book
    path: Path
    sample: Json
    """The logged sample; only `id`, `epoch` and `uuid` if the attempt was repeated."""
    calls: tuple[CallEvent, ...]
    current: bool
    newest: bool

    def call(self, event: CallEvent) -> Call:
        """Return a call's row from its log alone, priced at the log's price book."""
        uuid = str(self.sample.get("uuid") or "")
        sample_key = str(self.sample["id"]), self.sample["epoch"], uuid
        base, price = logged_call(self.log, self.book, event, sample_key, counted=self.current)
        return write({**base, "attempt": 1}, price, of_event(event))


def entries(paths: Sequence[Path], gathered: Gathered | None = None) -> Iterator[SampleCalls]:
    """Yield each sample's calls, newest log first, then the logged calls of failed attempts."""
    pairs, read_pairs = set[tuple[str, int]](), set[tuple[str, int]]()
    lost: list[SampleCalls] = []
    for path in paths:
        with open_log(path) as log:
            about, newest = _about(log), path == paths[0]
            reading = None if gathered is None else LogReading(log, read_pairs, digests=True)
            for sample in log.samples():
                with naming(path):
                    pair = (str(sample["id"]), sample["epoch"])
                    calls, gone = tuple(events_of(sample)), tuple(lost_in(sample))
                    if reading:
                        reading.take(sample, calls, gone)
                    names = {name: sample.get(name) for name in ("id", "epoch", "uuid")}
                if gone:
                    lost.append(SampleCalls(*about, path, names, gone, False, newest))
                yield SampleCalls(*about, path, sample, calls, pair not in pairs, newest)
                pairs.add(pair)
            if gathered and reading:
                with naming(path):
                    gathered.logs.append(reading.end())
    yield from lost


def _about(log: RawLog) -> tuple[LogRecord, RunFacts, Book]:
    with naming(log.path):
        record = header_record(log)
        record.facts = record.facts or plain_facts(log.header)
    if record.facts is None:
        raise UserError(
            f"{log.path} was not written by `podium run`: it names no system and no prices. "
            "Name a log of `podium run`."
        )
    return record, record.facts, book_from_json(record.facts.prices)


def _totals(entry: SampleCalls, rows: Sequence[Call]) -> QueryTotals:
    row_of = {id(event): row for event, row in zip(entry.calls, rows, strict=True)}
    solving = [event for event in last_tries(entry.calls) if event.phase == "solve"]
    conducting = (event for event in solving if event.role == CONDUCTOR)
    times = [event.working_s for event in conducting if event.model.startswith(EMBEDDED)]
    durations = [time for time in times if time is not None]
    seconds = sum(durations) if durations and len(durations) == len(times) else None
    return query_totals((row_of[id(event)] for event in solving), seconds)


def _attempt(entry: SampleCalls, rows: Sequence[Call]) -> QuestionResult:
    sample, metadata = entry.sample, entry.sample.get("metadata") or NOTHING
    score, shape = score_in(sample), shape_in(sample)
    grading: Json = score.get("metadata") or NOTHING
    value = verdict(sample)
    reason = redacted_message(why_unscored(sample), entry.facts.publishable)
    planned = any(
        call.role == CONDUCTOR and (call.step or "").startswith(PLANNING) for call in entry.calls
    )
    times = answer_times(sample, entry.calls, entry.facts.label)
    return QuestionResult(
        question=str(sample["id"]),
        epoch=sample["epoch"],
        sample=sample.get("uuid") or "",
        value=value,
        reason=reason if value is None else "",
        parsed=bool(grading.get("parsed", True)),
        kind=str(metadata.get("kind", "")),
        topic=str(metadata.get("topic", "")),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        critical_path_s=times.critical_path_s,
        overhead_s=times.overhead_s,
        totals=_totals(entry, rows),
        official=None if grading.get("official") is None else float(grading["official"]),
        fragile=bool(grading.get("fragile")),
        erratum=bool(grading.get("errata")),
        turns=shape.get(TURN_COUNT),
        tool_calls=shape.get(TOOL_CALL_COUNT),
        unused=shape.get(UNUSED),
        limit=(sample.get("limit") or NOTHING).get("type"),
        vote=answer_key(metadata, score.get("answer")),
        fallback=str((shape.get("noted") or NOTHING).get(FALLBACK) or ""),
        planned=planned,
        plan_shape=_plan_shape(shape) if planned or entry.facts.plans_uncalled else None,
        plan_fault=_plan_fault(shape) if planned else None,
        groups=_groups(metadata, grading),
        overstated=_is_overstated(entry),
        too_long=bool(grading.get(TOO_LONG)),
    )


def _is_overstated(entry: SampleCalls) -> bool:
    """Return whether Inspect's token total of a sample exceeds the sum of its calls."""
    # The total may be lower: Inspect omits replies from its cache and calls of later grading.
    totals: Json = entry.sample.get("model_usage") or NOTHING if entry.calls else NOTHING
    for model, total in totals.items():
        stated = usage_from_json(total) or Usage()
        counted = (call.counted for call in entry.calls if call.model == model)
        calls_total = sum((usage for usage in counted if usage), Usage())
        if stated.input_total > calls_total.input_total or stated.output > calls_total.output:
            return True
    return False


def _plan_shape(shape: Json) -> str | None:
    plan = workflow_of(shape.get(ORDER) or shape.get("plan"))
    return plan.shape if plan else None


def _plan_fault(shape: Json) -> str | None:
    """Return the class of fault of a sample's plan; `withheld` if an old redacted log hides it."""
    plan = shape.get("plan")
    hidden = str(plan).startswith("sha256:") and not shape.get("steps") and not shape.get("stopped")
    return SECRET if hidden else fault_of(plan)


def fault_of(plan: str | None) -> str | None:
    """Return the class of a malformed plan's fault; None for any other text.

    >>> fault_of("malformed: step 2: there is no Model 3, only 0 to 1")
    'worker number out of range'
    """
    if plan is None or not plan.startswith(MALFORMED):
        return None
    reason = plan.removeprefix(MALFORMED)
    faults = (name for name, begins in FAULTS.items() if name == reason or re.match(begins, reason))
    return next(faults, OTHER_FAULT)


def answer_key(metadata: Mapping[str, Any], answer: object) -> str | None:
    """Return a digest of the answer that a grader found in a reply; None if it found none."""
    # A letter may mean another option in another epoch, so options are identified by their rank in
    # the alphabet (`permutation` in the metadata). None without it, as in a log without texts.
    if answer is None or answer == "":
        return None
    text = str(answer).rstrip()
    places = _permutation(metadata)
    if places is not None:
        index = ascii_uppercase.find(text) if len(text) == 1 else -1
        if not 0 <= index < len(places):
            return None
        text = f"option {places[index]}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def _permutation(metadata: Mapping[str, Any]) -> list[int] | None:
    for key in ("asked", "question"):  # `asked`: the order of options in a later epoch
        facts: object = metadata.get(key)
        if isinstance(facts, Mapping) and "permutation" in facts:
            return list(cast(Mapping[str, Any], facts)["permutation"])
    return None


def _groups(metadata: Json, grading: Mapping[str, Any]) -> Mapping[str, str]:
    question: object = metadata.get("question")
    facts = cast(Json, question) if isinstance(question, dict) else NOTHING
    values = {name: grading.get(name) or facts.get(name) for name in GROUPINGS}
    return {name: str(value) for name, value in values.items() if value}


def spent(log_dir: Path, book: Book) -> Decimal:
    """Return the dollars spent so far in a run's directory, at a price book; 0 before any call."""
    return spent_so_far(log_dir, book).usd


def spent_so_far(log_dir: Path, book: Book) -> SpentSoFar:
    """Return the spend of all attempts below a run's directory, at the run's price book."""
    # Journals have every call, also those that no log kept. Calls that only a log has (it is older,
    # or its journal is gone) count as well, at the log's price book.
    journal_ids: set[str] = set()
    logs = sorted(log_dir.glob("**/*.eval")) if log_dir.is_dir() else ()
    logs = outside_shards(log_dir, logs)  # leases record the spend of shards
    journals = sorted(log_dir.glob(f"{FOLDER}/*/*.jsonl"))
    return spent_by(chain(_journalled(journals, book, journal_ids), _logged(logs, journal_ids)))


def _journalled(paths: Iterable[Path], book: Book, journal_ids: set[str]) -> Iterator[Call]:
    """Yield the call attempts in journals; add span ids and event uuids to `journal_ids`."""
    for path in paths:
        for record, calls in journal_calls(path, book):
            names = record.intent.get("span"), (record.outcome or {}).get("event")
            journal_ids.update(name for name in names if name)
            yield from calls


def _logged(logs: Iterable[Path], journal_ids: Set[str]) -> Iterator[Call]:
    log_ids: set[str] = set()
    for path in logs:
        with open_log(path) as log, naming(path):
            ours = facts_in(log.header["eval"].get("metadata"), path) is not None
        for entry in entries([path]) if ours else ():
            for event in entry.calls:
                is_new = event.id not in log_ids and not journal_ids & {event.id, event.span}
                if event.cache != "read" and is_new:
                    log_ids.add(event.id)
                    yield entry.call(event)
