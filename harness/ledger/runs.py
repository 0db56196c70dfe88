"""Groups logs and journals by system run (one system on one suite), and reads their content."""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podium.harness.boxes import BoxRecord
from podium.harness.errors import UserError, first_fault
from podium.harness.files import first_line
from podium.harness.ledger.answers import AnswerRecord, answered, log_header
from podium.harness.ledger.hooks import SampleDigests
from podium.harness.ledger.journal import (
    FOLDER,
    OLDER,
    JournalChain,
    folder_of,
    read_chain,
    read_lines,
)
from podium.harness.ledger.log_files import logs_below
from podium.harness.ledger.logs import (
    NOTHING,
    UNFOUNDED,
    CallEvent,
    Json,
    Oddity,
    RawLog,
    SampleScore,
    disagreements,
    events_of,
    find_logs,
    lost_in,
    naming,
    oddities,
    open_log,
    score_value,
    shape_in,
)
from podium.harness.pool_config import Label
from podium.harness.prices import Book, newest_list
from podium.harness.prices.cost import Service
from podium.harness.records import CONDUCTOR, FRESH, PODIUM, UNANSWERED, Draws, Overflows
from podium.harness.request import service_tier
from podium.harness.suite import OFFICIAL, Prompt

RunLabel = Label | Literal["inspect"]
PLAIN: RunLabel = "inspect"
"""Label of logs that plain `inspect eval` wrote."""


class WorkerFacts(BaseModel):
    """A worker's settings when the log was written."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str
    price: str
    card: str = ""
    knowledge_cutoff: str = "unknown"
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Provider arguments, e.g. `reasoning_enabled`; with other arguments it is another worker."""
    not_auditable: str = ""
    """Why the cost of the worker's calls is unknown; empty if tokens and a price give the cost."""

    @property
    def settings(self) -> dict[str, Any]:
        """Config and provider arguments: they distinguish the workers that have the same model."""
        return {**self.config, **self.args}

    @cached_property
    def service(self) -> Service:
        """The service tier, e.g. `batch`, that the worker requests from its provider."""
        return service_tier(GenerateConfig.model_validate(self.config), self.args)


class RunFacts(BaseModel):
    """The facts about a run in the log header; written by `podium run`, never inferred."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    version: Literal[1] = Field(alias="schema")
    suite: str
    suite_version: str
    data_revision: str
    dates: str
    paper: str = ""
    """The paper that the suite's card cites; empty in older logs."""
    publishable: bool
    split: str
    prompt: Prompt = OFFICIAL
    """The prompt of the questions: the benchmark authors' or the Conductor paper's."""
    overflows: Overflows = UNANSWERED
    """How an answer counts if its request was too long for the worker's context."""
    system: str
    args: dict[str, Any]
    pool: str
    pool_sha256: str
    label: RunLabel
    prices: dict[str, Any]
    workers: dict[str, WorkerFacts]
    box: str | None = None
    box_facts: BoxRecord | None = None
    seed: int
    time_scale: float
    purpose: Literal["eval", "selection"] = "eval"
    notes: tuple[str, ...] = ()
    uses_targets: bool = False
    reference_allowed: bool = True
    order: int | None = None
    """The system's position, from 1, in the run's random order of systems; None in older logs."""
    journal: int | None = None
    """1 if every call of the log is in a journal, too; None in logs older than journals."""
    source: str = ""
    """Origin that the system declares: a paper, a repository or `podium`. This and the next
    three fields are empty in older logs, which have the deviations in `notes`."""
    deviations: tuple[str, ...] = ()
    calls_expected: tuple[int, int] | None = None
    """Minimum and maximum worker calls per question; None if the system declares none."""
    prompt_sha256: str = ""
    """Digest of the system's own prompts; empty if it has none."""
    equal: str = ""
    """Budget of every system for one question, e.g. `calls=9`; empty: no common budget."""
    draws: Draws = FRESH
    """Whether the run's systems shared stored replies (see draws.py); older logs lack it."""
    headline: str = ""
    """The system whose result the run declared beforehand as its main one; empty: none."""
    gate_sha256: str = ""
    """Digest of the pass criteria (gate) that the run declared beforehand; empty: none."""
    run_file: Mapping[str, Any] = {}
    """Digest of the file that described the run, and extra command-line options; empty: none."""
    redacted: bool = False
    """True for a copy without texts, which is shared without its journals."""

    @property
    def plans_uncalled(self) -> bool:
        """Whether the conductor plans with parameters learnt in the run, without a model call."""
        return self.system.startswith(CONDUCTOR) and "learned" in self.args


def run_facts(log: EvalLog, path: Path) -> RunFacts | None:
    """Return the run facts in a log; None if it is not podium's, UserError if another version's."""
    return facts_in(log.eval.metadata, path)


def facts_in(metadata: Mapping[str, Any] | None, path: Path) -> RunFacts | None:
    """Return the run facts in a log header's metadata; None without any, UserError if invalid."""
    stored: object = (metadata or {}).get(PODIUM)
    if not isinstance(stored, Mapping) or "system" not in stored:
        return None
    try:
        return RunFacts.model_validate(stored)
    except ValidationError as error:
        field, message = first_fault(error)
        raise UserError(
            f"{path} was written by another version of podium (field {field}: {message}); "
            "read it with that version."
        ) from error


UP = 4
"""Maximum number of folders between a log and the directory with its run's journals."""
JOURNALS = f"**/{FOLDER}/*/*.jsonl"
"""Glob pattern of system runs' journals, below any directory."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The logs and journals of one system run (one system on one suite)."""

    folder: str
    """Folder of the run's logs, relative to the searched directory; empty if they are equal."""
    task: str
    logs: tuple[Path, ...]
    """Paths of the run's logs, newest first."""
    journals: tuple[Path, ...]

    @property
    def size(self) -> int:
        """Total size of the logs and journals, in bytes."""
        return sum(path.stat().st_size for path in (*self.logs, *self.journals))


def has_system_runs(folder: Path) -> bool:
    """Return whether there is a log or a journal below a directory."""
    return any(logs_below(folder)) or any(folder.glob(JOURNALS))


def system_runs_below(folder: Path) -> tuple[RunFiles, ...]:
    """Return the system runs below a directory, by folder and task; UserError if there are none."""
    if not folder.exists():
        raise UserError(f"There is no {folder}; name the directory that `podium run` wrote.")
    journals = {path.parent for path in folder.glob(JOURNALS)}
    has_logs = folder.is_file() or any(logs_below(folder))
    groups: dict[tuple[Path, str], list[tuple[tuple[str, str], Path]]] = {}
    for path in find_logs([folder]) if has_logs or not journals else ():
        with open_log(path) as log:
            eval_ = log.header["eval"]
        key = (path.parent, str(eval_.get("task", "")))
        groups.setdefault(key, []).append(((str(eval_.get("created", "")), path.name), path))
    runs = [
        RunFiles(
            below(parent, folder),
            task,
            tuple(path for _, path in sorted(logs, reverse=True)),
            journals_of(parent, task),
        )
        for (parent, task), logs in groups.items()
    ]
    for place in sorted(journals - {_journals_of(*group) for group in groups}):
        here = below(place.parent.parent, folder)
        runs.append(RunFiles(here, place.name, (), tuple(sorted(place.glob("*.jsonl")))))
    return tuple(sorted(runs, key=lambda run: (run.folder, run.task)))


def below(parent: Path, folder: Path) -> str:
    """Return `parent` as a path relative to `folder`; empty if equal, or if `folder` is a file."""
    try:
        return parent.relative_to(folder).as_posix().removeprefix(".")
    except ValueError:  # one file was given, not a directory
        return ""


def _journals_of(parent: Path, task: str) -> Path:
    places = [folder_of(folder, task) for folder in (parent, *parent.parents)][: UP + 1]
    return next((place for place in places if place.is_dir()), places[0])


def journals_of(parent: Path, task: str) -> tuple[Path, ...]:
    """Return the journals of a task whose logs are in `parent`; empty if there are none."""
    return tuple(sorted(_journals_of(parent, task).glob("*.jsonl")))


@dataclass(slots=True)
class SampleRecord:
    """One sample (a question in one epoch) of a log: its score, usage, plan and calls."""

    question: str
    epoch: int
    uuid: str
    score: float | None
    graded: bool
    failed: bool
    newest: bool
    """True if no newer log has this (question, epoch) pair."""
    model_usage: Mapping[str, Json]
    role_usage: Mapping[str, Json]
    plan: Mapping[str, Any]
    completed: str
    retried: int
    events: list[CallEvent]
    lost: list[CallEvent]
    chars: Mapping[str, int]
    """Length of replies in characters, by the event's uuid; empty if texts were removed."""
    digests: SampleDigests | None = None


@dataclass(slots=True)
class LogRecord:
    """One log: its header and its samples."""

    name: str
    task: str
    created: str
    eval_id: str
    status: str
    facts: RunFacts | None
    model_usage: Mapping[str, Json]
    role_usage: Mapping[str, Json]
    samples: list[SampleRecord] = field(default_factory=list[SampleRecord])
    answers: list[AnswerRecord] = field(default_factory=list[AnswerRecord])
    oddities: tuple[Oddity, ...] = ()
    superseded: tuple[SampleRecord, ...] = ()
    """Copies of samples that readers ignore: a later member of the zip has the same name."""


def header_record(log: RawLog) -> LogRecord:
    """Return the record of a log's header, without samples."""
    eval_, stats = log.header["eval"], log.header.get("stats") or NOTHING
    return LogRecord(
        name=log.path.name,
        task=str(eval_.get("task", "")),
        created=str(eval_.get("created", "")),
        eval_id=str(eval_.get("eval_id", "")),
        status=str(log.header.get("status", "started")),
        facts=facts_in(eval_.get("metadata"), log.path),
        model_usage=stats.get("model_usage") or NOTHING,
        role_usage=stats.get("role_usage") or NOTHING,
    )


class LogReading:
    """Builds the record of a log from the samples that the caller reads one by one."""

    def __init__(
        self, log: RawLog, pairs: set[tuple[str, int]], *, answers: bool = False, digests: bool
    ) -> None:
        """Read a log's header; `pairs`: (question, epoch) pairs of newer logs, updated by `end`."""
        self.record = header_record(log)
        self._log, self._seen, self._digests = log, pairs, digests
        self._whose = log_header(log.header) if answers else None

    def take(
        self,
        sample: Json,
        events: Sequence[CallEvent] | None = None,
        lost: Sequence[CallEvent] | None = None,
    ) -> None:
        """Add a sample; `events`, `lost`: its calls and failed attempts' calls, if read before."""
        sample_record = _sample(sample, self._seen, events, lost, digests=self._digests)
        self.record.samples.append(sample_record)
        if self._whose:
            self.record.answers.append(answered(sample, self._whose, sample_record.events))

    def end(self) -> LogRecord:
        """Return the log's complete record, after all samples were added."""
        record, log = self.record, self._log
        if self._digests:
            scores = [SampleScore(row.question, row.epoch, row.score) for row in record.samples]
            record.oddities = (*oddities(log), *disagreements(log, scores))
            passed_over = (_sample(copy, self._seen, digests=True) for copy in log.superseded())
            record.superseded = tuple(passed_over)
        self._seen.update((row.question, row.epoch) for row in record.samples)
        return record


def _sample(
    sample: Json,
    newer_pairs: set[tuple[str, int]],
    events: Sequence[CallEvent] | None = None,
    lost: Sequence[CallEvent] | None = None,
    *,
    digests: bool,
) -> SampleRecord:
    score = score_value(sample)
    failed = sample.get("error") is not None
    replies = (
        (event.get("uuid") or "", (event.get("output") or NOTHING).get("completion"))
        for event in sample.get("events") or ()
        if event["event"] == "model"
    )
    pair = (str(sample["id"]), int(sample["epoch"]))
    return SampleRecord(
        question=pair[0],
        epoch=pair[1],
        uuid=str(sample.get("uuid") or ""),
        score=score,
        graded=score is not None and not failed,
        failed=failed,
        newest=pair not in newer_pairs,
        model_usage=sample.get("model_usage") or NOTHING,
        role_usage=sample.get("role_usage") or NOTHING,
        plan=shape_in(sample),
        completed=str(sample.get("completed_at") or ""),
        retried=len(sample.get("error_retries") or ()),
        events=list(events_of(sample) if events is None else events),
        lost=list(lost_in(sample) if lost is None else lost),
        chars={uuid: len(text) for uuid, text in replies if isinstance(text, str)},
        digests=SampleDigests(sample) if digests else None,
    )


@dataclass(slots=True)
class JournalRecord:
    """The content of one journal, without its calls."""

    path: Path
    head: Json
    book: Json | None = None
    """The price book as JSON; None if the journal does not embed it."""
    requests: dict[str, Json] = field(default_factory=dict[str, Json])
    """The lines of requests to `podium serve`, by the sample's uuid."""
    totals: list[Json] = field(default_factory=list[Json])
    torn: int = 0
    calls: int = 0
    closed: bool = False
    """Whether the writing process ended normally: the journal has a `closed` line (in older
    journals, a `totals` line)."""

    @property
    def name(self) -> str:
        """The journal's file name."""
        return self.path.name

    @property
    def chain(self) -> JournalChain:
        """The result of checking the journal's hash chain; each access reads the file again."""
        return read_chain(self.path)


@dataclass(slots=True)
class CallRecord:
    """The journal's lines on one call: its intent (written first), failed attempts and outcome."""

    journal: JournalRecord
    intent: Json
    retries: list[Json] = field(default_factory=list[Json])
    """The `retry` lines: HTTP attempts that failed, after which another one was planned."""
    followed: int = 0
    last: Json = field(default_factory=dict[str, Any])
    """The last `again` line (another attempt is about to be sent); empty if there is none."""
    outcome: Json | None = None

    def tried(self, line: Json) -> None:
        """Add a line on a failed attempt (`retry`) or on the next attempt to be sent (`again`)."""
        if line.get("kind") == "retry":
            self.retries.append(line)
        else:
            self.last = line
        older = self.journal.head.get("schema") == OLDER
        self.followed += (line.get("kind") == "again") != older

    @property
    def waited(self) -> bool:
        """Whether the call or its process ended during the wait before another attempt."""
        return len(self.retries) > self.followed


@dataclass
class Gathered:
    """The content of all logs and journals of a system run."""

    files: RunFiles
    logs: list[LogRecord] = field(default_factory=list[LogRecord])
    """Records of the run's logs, newest first."""
    journals: list[JournalRecord] = field(default_factory=list[JournalRecord])
    calls: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    answer_lines: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    """The journals' `answer` lines, by the sample's uuid."""
    grade_lines: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    twice: list[str] = field(default_factory=list[str])
    """Sentences about calls with two intents or outcomes, or without an intent, in the journals."""


def gather(files: RunFiles, *, answers: bool = False, digests: bool = False) -> Gathered:
    """Read a system run's files, on request with answers and digests; UserError if damaged."""
    ledger = read_journals(files)
    pairs: set[tuple[str, int]] = set()
    for path in files.logs:
        with open_log(path) as log, naming(path):
            reading = LogReading(log, pairs, answers=answers, digests=digests)
            for sample in log.samples():
                reading.take(sample)
            ledger.logs.append(reading.end())
    return ledger


def read_journals(files: RunFiles) -> Gathered:
    """Return the content of a system run's journals, without its logs."""
    ledger = Gathered(files)
    for path in files.journals:
        journal = JournalRecord(path, {})
        ledger.journals.append(journal)
        for entry in read_lines(path):
            keep_line(journal, entry, ledger)
    return ledger


@contextmanager
def naming_system_run(files: RunFiles) -> Generator[None]:
    """Turn errors from reading a system run's files into a UserError that lists their folders."""
    try:
        yield
    except UNFOUNDED as error:
        places = {path.parent for path in (*files.logs, *files.journals)}
        folders = " or ".join(map(str, sorted(places)))
        raise UserError(
            f"A log or journal of {files.task!r} in {folders} has content that no run "
            f"writes ({type(error).__name__}: {first_line(error)}). Restore the file."
        ) from error


def keep_line(journal: JournalRecord, entry: Json, ledger: Gathered) -> None:
    """Add one journal line to the journal's record and to the gathered content (`ledger`)."""
    kind = entry.get("kind")
    journal.closed |= kind in ("totals", "closed")
    journal.torn += kind == "torn"
    journal.calls += kind == "intent"
    uuid = str((entry.get("sample") or NOTHING).get("uuid", ""))
    if kind == "head":
        journal.head = entry
    elif kind == "book":
        journal.book = entry.get("prices")
    elif kind == "totals":
        journal.totals.append(entry)
    elif kind == "request":
        journal.requests[uuid] = entry
    elif kind in ("answer", "grade"):
        lines = ledger.answer_lines if kind == "answer" else ledger.grade_lines
        lines.setdefault(uuid, []).append(entry)
    elif kind not in ("torn", "closed"):
        _keep_call(journal, entry, ledger)


def _keep_call(journal: JournalRecord, entry: Json, ledger: Gathered) -> None:
    kind, call = str(entry.get("kind", "")), str(entry.get("call", ""))
    record = ledger.calls.get(call)
    if kind == "intent":
        if record:
            ledger.twice.append(f"call {call} has two intents")
        ledger.calls[call] = CallRecord(journal, entry)
    elif record is None:
        ledger.twice.append(f"call {call} has a line of kind {kind!r} and no intent")
    elif kind in ("retry", "again"):
        record.tried(entry)
    elif record.outcome is not None:
        ledger.twice.append(f"call {call} has two outcomes")
    else:
        record.outcome = entry


def calls_of(path: Path) -> Collection[CallRecord]:
    """Return the calls of one journal, in the order in which they began."""
    return gather(RunFiles("", "", (), (path,))).calls.values()


NO_MODEL = "none/none"  # Inspect's value if no model was given
OURS = ("ask_differently", "offer_public_tests")
"""Solvers that podium's tasks run before all others (harness/inspect_adapters.py)."""


def plain_facts(header: Json) -> RunFacts | None:
    """Return run facts for a plain `inspect eval` log of one of podium's suites, else None."""
    about: Json = header["eval"]
    stored: object = (about.get("metadata") or NOTHING).get(PODIUM)
    if not isinstance(stored, Mapping) or "suite" not in stored or "system" in stored:
        return None
    models = dict(_models(about))
    book = newest_list().for_log(models.values())
    return RunFacts.model_validate(
        {
            **cast(Mapping[str, Any], stored),
            "system": _system(header),
            "args": about.get("solver_args") or {},
            "pool": PLAIN,
            "pool_sha256": "none",
            "label": PLAIN,
            "prices": book.as_json(),
            "workers": {name: WorkerFacts(model=id, price=id) for name, id in models.items()},
            "seed": 0,  # podium used no random numbers
            "time_scale": 1.0,
            "notes": _notes(book, sorted({*models.values()})),
        }
    )


def _system(header: Json) -> str:
    """Return a plain log's system name: the model, or its solvers if these do more than call it."""
    steps = cast(list[Json], (header.get("plan") or NOTHING).get("steps") or [])
    names = [str(step.get("solver")).rpartition("/")[2] for step in steps]
    solvers = " + ".join(name for name in names if name not in OURS)
    model = str(header["eval"].get("model", ""))
    if solvers in ("", "generate"):
        return model
    return solvers if model == NO_MODEL else f"{solvers} on {model}"


def _models(about: Json) -> Iterator[tuple[str, str]]:
    """Yield (role, model) for each model in a log; a model without a role has its name as role."""
    model, roles = str(about.get("model", "")), cast(Json, about.get("model_roles") or NOTHING)
    if model != NO_MODEL:
        yield model, model
    for role, slots in roles.items():
        for slot in cast(list[Json], slots if isinstance(slots, list) else [slots]):
            yield role, str(slot.get("model", ""))


def _notes(book: Book, models: list[str]) -> Iterator[str]:
    yield f"plain `inspect eval`: no journal, no audit; dollars at {book.name}"
    if unpriced := [model for model in models if book.price(model) is None]:
        yield f"no dollars: {book.name} has no price for {', '.join(unpriced)}"
