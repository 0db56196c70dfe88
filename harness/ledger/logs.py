"""Reads the samples and calls of an `.eval` file directly, twenty times as fast as Inspect does.

Several logs of a resumed run may have the same call: `CallEvent.id` identifies it. Code that
changes a log uses Inspect's reader. Logs in JSON are first converted to `.eval` by Inspect.
"""

import json
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import orjson
from inspect_ai.log import EvalLog, read_eval_log

from podium.harness.errors import UserError
from podium.harness.files import (
    BROKEN,
    json_with_nan,
    member_bytes,
    refuse_bomb,
    refuse_false_sizes,
    regular_size,
)
from podium.harness.ledger.call import LENGTH_REFUSED, Cache, Phase
from podium.harness.ledger.journal import SERVED
from podium.harness.ledger.log_files import JSON, converted, is_log, logs_below, refuse_unreadable
from podium.harness.records import ANSWER, ENVIRONMENT, PODIUM, SECONDS, STATED, Usage
from podium.harness.suite import keep_files_private, publishable
from podium.harness.usage import Raw, raw_usage, usage_from_json, usage_of_event

HEADERS = ("header.json", "_journal/start.json")
"""Zip members with a log's header; before the run has ended, only the second exists."""
UNREADABLE = (
    *(OSError, ValueError, NotImplementedError, MemoryError, RuntimeError, zipfile.BadZipFile),
    *BROKEN,
)
"""Errors that a damaged zip archive raises; RuntimeError: zipfile asks for a password."""
UNFOUNDED = (
    *(KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError),
    RecursionError,
)
"""Errors from files with values that no run writes, e.g. a wrong type or a huge number."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawLog:
    """An open log; a JSON log was converted to an `.eval` file by Inspect."""

    path: Path
    header: Json
    """The header with the field names of `EvalLog`: version, status, eval, plan, results, stats,
    error, ...; only `eval` and `plan` if the run was killed."""
    zip: zipfile.ZipFile
    file: BinaryIO = field(repr=False)

    def samples(self) -> Iterator[Json]:
        """Yield the log's samples, with `EvalSample`'s field names, in the order of the file."""
        # If a sample was written twice, the last one counts, as for every reader of zip files.
        for name, info in self.zip.NameToInfo.items():
            if name.startswith("samples/") and name.endswith(".json"):
                yield _parsed(self.path, self.file, info)

    def superseded(self) -> Iterator[Json]:
        """Yield the samples that readers ignore, because a later zip member has the same name."""
        # A sample that failed and was repeated stays until Inspect repacks the log: when the run
        # succeeds, and only if superseded members are a tenth of the file.
        for info in self.zip.infolist():
            passed_over = self.zip.NameToInfo[info.filename] is not info
            if passed_over and info.filename.startswith(SAMPLES):
                yield _parsed(self.path, self.file, info)

    def sample(self, question: str, epoch: int) -> Json | None:
        """Return the sample of a question and an epoch; None if the log has none."""
        info = self.zip.NameToInfo.get(f"{SAMPLES}{question}_epoch_{epoch}.json")
        return _parsed(self.path, self.file, info) if info else None


@contextmanager
def open_log(path: Path) -> Generator[RawLog]:
    """Open a log; UserError if it is damaged or no Inspect log."""
    with ExitStack() as stack:
        try:
            packed = stack.enter_context(converted(path)) if path.suffix == JSON else path
            size = regular_size(packed)
            file = stack.enter_context(packed.open("rb"))
            archive = stack.enter_context(zipfile.ZipFile(file))
            refuse_bomb(archive, size)
        except UNREADABLE as error:
            raise damaged(path, str(error)) from error
        names = archive.NameToInfo
        member = next((names[name] for name in HEADERS if name in names), None)
        if member is None:
            raise damaged(path, "it has no header")
        header = _parsed(path, file, member)
        if _is_private(header):
            keep_files_private()
        yield RawLog(path, header, archive, file)


def _is_private(header: Json) -> bool:
    ran = header.get("eval")
    metadata = cast(Json, ran).get("metadata") if isinstance(ran, Mapping) else None
    return isinstance(metadata, Mapping) and not publishable(cast(Json, metadata))


def heed_private(paths: Iterable[Path]) -> None:
    """Open logs; if one may not be published, files written later are private."""
    for path in paths:
        with suppress(UserError), open_log(path):  # a later reader reports damaged logs
            pass


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Turn errors from a malformed log into a UserError that names the log's file."""
    try:
        yield
    except UNFOUNDED as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def refuse_oversized(path: Path, *, header_only: bool = False) -> None:
    """Raise UserError for a log that is too large to unpack, or states false member sizes."""
    # Inspect's readers trust the sizes that an archive states. Here members are unpacked, measured
    # and discarded; with `header_only`, all members except the samples.
    try:
        if path.suffix == JSON:
            return refuse_unreadable(path)
        refuse_false_sizes(
            path, (lambda name: not name.startswith("samples/")) if header_only else bool
        )
    except UNREADABLE as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> UserError:
    """Return the UserError for a log that cannot be read, with the reason."""
    detail = reason.splitlines()[0][:200] if reason.strip() else "unreadable"
    return UserError(f"{path} is damaged or no Inspect log ({detail}); move it away and try again.")


def find_logs(dirs: Sequence[Path], recursive: bool = True) -> tuple[Path, ...]:
    """Return the logs in `dirs` (directories or files), each once; UserError if there are none."""
    logs: dict[Path, Path] = {}
    for path in dirs:
        if not path.exists():
            raise UserError(f"There is no {path}; name the directory that `podium run` wrote.")
        if path.is_file() and not is_log(path):
            raise UserError(f"{path} is not an .eval log. Name a log, or the directory of a run.")
        for log in [path] if path.is_file() else sorted(logs_below(path, recursive)):
            logs.setdefault(Path(os.path.realpath(log)), log)  # it tolerates symlink loops
    if not logs:
        places = ", ".join(map(str, dirs))
        if any(path for folder in dirs for path in folder.glob(SERVED)):
            raise UserError(
                f"{places} holds served requests, but no run. Use `podium view` to show them, or "
                "`podium audit` to check them."
            )
        raise UserError(f"There is no .eval log in {places}; run `podium run` first.")
    return tuple(logs.values())


def newest_logs(dirs: Sequence[Path], recursive: bool = True) -> tuple[Path, ...]:
    """Return the newest log of every task; a resumed or regraded task has several."""
    newest: dict[str, tuple[tuple[str, str], Path]] = {}
    for path in find_logs(dirs, recursive):
        about = _eval_log(path, header_only=True).eval
        # A regraded log repeats the old one's creation time, and has a later time in its name.
        rank = (about.created, path.name)
        if rank >= newest.get(about.task_id, (rank, path))[0]:
            newest[about.task_id] = (rank, path)
    return tuple(path for _, path in newest.values())


def read_log(path: Path) -> EvalLog | None:
    """Read one log in full; None if podium did not write it, UserError if it is damaged."""
    log = _eval_log(path, header_only=False)
    return log if isinstance((log.eval.metadata or {}).get(PODIUM), Mapping) else None


def _eval_log(path: Path, *, header_only: bool) -> EvalLog:
    refuse_oversized(path, header_only=header_only)
    try:
        return read_eval_log(str(path), header_only=header_only)
    except Exception as error:  # a damaged file may fail anywhere in zip, JSON or pydantic
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _parsed(path: Path, file: BinaryIO, info: zipfile.ZipInfo) -> Json:
    try:
        data = _loads(member_bytes(file, info))
    except UNREADABLE as error:
        raise damaged(path, f"{info.filename}: {error}") from error
    if not isinstance(data, dict):
        raise damaged(path, f"{info.filename} holds no object")
    return cast(Json, data)


def _loads(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json_with_nan(data)  # NaN is Inspect's score of an unscored sample


IN_FLIGHT = "in flight when the run was stopped"
"""The error of a call that had not ended when its run was killed: it may have been billed."""
UNWRITTEN = "ended, and its outcome could not be written down"
"""The error of a call whose outcome is not recorded, although its process was not killed."""
ATTACHMENT = "attachment://"
ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "mistral-correlation-id")
"""HTTP headers with the id of a request, in the order in which Inspect looks for them."""
OWN_HEADERS = {"anthropic": "request-id", "bedrock": ID_HEADERS[2], "mistral": ID_HEADERS[3]}
"""Provider -> its HTTP header with the id of a request; default: the first of `ID_HEADERS`."""
NOTHING: Json = {}
SYSTEMS = f"{PODIUM}/"  # model name prefix of podium's systems
Place = tuple[Phase, str | None]
"""Phase of a call, and name of the innermost workflow step around it (None: no step)."""
ROOT: Place = ("solve", None)


@dataclass(slots=True)
class CallEvent:
    """One model call in a log. Not frozen: frozen objects take three times as long to create."""

    id: str
    span: str | None
    phase: Phase
    step: str | None
    role: str
    """Worker name, `conductor` or `grader`; the model's name if the call had no role."""
    model: str
    served_model: str | None
    usage: Usage | None
    """None if the provider reported no token counts, or impossible ones."""
    counted: Usage | None
    """Token counts as Inspect logged them and adds them to its totals; None if it logged none."""
    cache: Cache
    pending: bool
    error: str | None
    """The logged error message; `redacted_message` must redact it before it is shown."""
    stop: str | None
    started: str
    completed: str | None
    working_s: float | None
    retries: int
    """Number of HTTP attempts before the attempt that is logged."""
    request_ids: tuple[Json, ...]
    """`{id, header, status}` of each HTTP response of this call that had an id."""
    max_tokens: int | None
    raw_usage: Json | None
    longest_s: float | None
    """Duration of the whole sample in seconds, by a monotonic clock; None if not logged."""
    stated_s: float | None = None
    """Seconds that a rehearsal worker states for its reply, independent of the machine."""

    @property
    def refused(self) -> bool:
        """Whether the provider refused the request for its length: nothing was generated."""
        return self.stop == LENGTH_REFUSED and not (self.usage and self.usage.output)

    @property
    def latency_s(self) -> float | None:
        """Seconds from the call's start to its end, waiting included; None if unknown."""
        if self.completed:
            return _steady(seconds_between(self.started, self.completed), self.longest_s)
        return self.working_s


def events_of(sample: Json) -> Iterator[CallEvent]:
    """Yield the calls of a sample's newest attempt, in the order in which they began."""
    # A pending call of a sample without an error is left out: the sample may still be running.
    return _calls(sample, cast(list[Json], sample.get("events") or []))


def last_tries(events: Iterable[CallEvent]) -> list[CallEvent]:
    """Return call events without the failed HTTP attempts that were repeated."""
    # Inspect writes an event for each attempt, all in the span of the call. This is for logs
    # without journals: `last_attempts` does the same for joined rows.
    calls = list(events)
    if not any(call.error for call in calls):
        return calls
    newest: dict[tuple[str | None, str, str], CallEvent] = {}
    for call in calls:
        if not call.error or (call.span, call.role, call.model) not in newest:
            newest[call.span, call.role, call.model] = call
    return [
        call
        for call in calls
        if not call.error or not call.span or newest[call.span, call.role, call.model] is call
    ]


def lost_in(sample: Json) -> Iterator[CallEvent]:
    """Yield the logged calls of a sample's failed attempts, which the run has repeated."""
    # Of such an attempt Inspect keeps only the last model call and the events after it.
    for failure in sample.get("error_retries") or ():
        yield from _calls(sample, failure.get("events") or [])


def _calls(sample: Json, events: list[Json]) -> Iterator[CallEvent]:
    stopped = sample.get("error") is not None
    places = _places(events)
    for event in events:
        if event["event"] == "model" and (stopped or not event.get("pending")):
            if event["model"].startswith(SYSTEMS):  # its workers' calls are separate events
                continue
            yield _call(event, places.get(event.get("span_id"), ROOT), sample)


def _call(event: Json, place: Place, sample: Json) -> CallEvent:
    output: Json = event.get("output") or {}
    choices = output.get("choices")
    model: str = event["model"]
    error = event.get("error")
    raw = _raw(event, output)
    counted = usage_from_json(output.get("usage"))
    return CallEvent(
        event.get("uuid") or "",
        event.get("span_id"),
        place[0],
        place[1],
        event.get("role") or model,
        model,
        output.get("model") or None,
        usage_of_event(counted, raw),
        counted,
        event.get("cache") or "none",
        bool(event.get("pending")),
        attached(error, sample) if error else None,
        choices[0].get("stop_reason") if choices else None,
        event["timestamp"],
        event.get("completed"),
        event.get("working_time"),
        event.get("retries") or 0,
        tuple(responses(event.get("request_ids") or (), model)),
        (event.get("config") or NOTHING).get("max_tokens"),
        None if raw is None else dict(raw),
        sample.get("total_time"),
        (output.get("metadata") or NOTHING).get(STATED),
    )


def _raw(event: Json, output: Json) -> Raw | None:
    """Return the provider's raw usage in a model event; None for an error response."""
    call: Json = event.get("call") or NOTHING
    return None if call.get("error") else raw_usage(call.get("response"), output.get("metadata"))


def responses(ids: Iterable[Json], model: str) -> Iterator[Json]:
    """Yield one request id per HTTP response: the provider's, if a gateway (proxy) added others."""
    # Inspect lists the ids of each response in the order of `ID_HEADERS`: an id that is not later
    # than the previous one, or has another status, belongs to the next response.
    own_header = OWN_HEADERS.get(model.partition("/")[0], ID_HEADERS[0])
    response: Json | None = None
    place = -1
    for id in ids:
        header = id.get("header")
        here = ID_HEADERS.index(header) if header in ID_HEADERS else -1
        if response is not None and (here <= place or id.get("status") != response.get("status")):
            yield response
            response = None
        if response is None or header == own_header:
            response = id
        place = here
    if response is not None:
        yield response


def attached(text: str, sample: Json) -> str:
    """Return a text, read from the sample's attachments if Inspect moved it there."""
    if not text.startswith(ATTACHMENT):
        return text
    return (sample.get("attachments") or NOTHING).get(text.removeprefix(ATTACHMENT), text)


def _places(events: Iterable[Json]) -> dict[str | None, Place]:
    """Return the phase and the workflow step of each span of a sample, by the span's id."""
    # If an interrupted sample lacks the beginning of a span, the span's events belong to `ROOT`.
    places: dict[str | None, Place] = {}
    for event in events:
        if event["event"] == "span_begin":
            phase, step = places.get(event.get("parent_id"), ROOT)
            is_step = event.get("type") == "workflow_step"
            inner: Phase = "score" if event["name"] == "scorers" else phase
            if is_step and event["name"].startswith(f"{ENVIRONMENT}: "):
                inner = ENVIRONMENT
            places[event["id"]] = inner, event["name"] if is_step else step
    return places


def score_in(sample: Json) -> Json:
    """Return the score that podium's scorer gave a sample; empty if it gave none."""
    return (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING


def verdict(sample: Json) -> float | None:
    """Return a sample's grade; None if it is unscored (NaN in Inspect's logs) or failed."""
    value = None if sample.get("error") else score_value(sample)
    return None if value is None else float(value)


def score_value(sample: Json) -> float | None:
    """Return a sample's (or summary's) score, even if the sample failed; None: no score or NaN."""
    value = score_in(sample).get("value")
    return value if isinstance(value, int | float) and value == value else None


def shape_in(sample: Json) -> Json:
    """Return the facts that podium's solver recorded on a sample's workflow: steps, depth, plan."""
    return (sample.get("metadata") or NOTHING).get(PODIUM) or NOTHING


def answer_in(sample: Json) -> str:
    """Return a sample's answer; the logged output of a killed run may be a call's reply instead."""
    output: Json = sample.get("output") or NOTHING
    completion = output.get("completion") or ""
    return completion if output.get("model") == PODIUM else shape_in(sample).get(ANSWER, completion)


def solver_seconds(sample: Json) -> float | None:
    """Return the solvers' duration, in seconds; None for a sample that did not complete them."""
    # Podium's measure, by a monotonic clock, comes first; it is unknown if replies were read from
    # the reply store. Older logs have only times of day: if these give more than the whole sample
    # took by Inspect's monotonic clock, the system clock was changed.
    if SECONDS in (shape := shape_in(sample)):
        return shape[SECONDS]
    return _steady(_solver_span(sample), sample.get("total_time"))


SLACK_S = 1.0
"""Permitted difference of two clocks over the duration of a sample, in seconds."""


def _steady(seconds: float | None, longest: float | None) -> float | None:
    """Return `seconds`, measured by the system clock; None if negative or above `longest`.

    In these cases the clock was changed during the measurement.
    """
    if seconds is None or seconds < 0 or (longest is not None and seconds > longest + SLACK_S):
        return None
    return seconds


def _solver_span(sample: Json) -> float | None:
    events: list[Json] = sample.get("events") or []
    places = _places(events)
    starts: dict[str, str] = {}
    for event in events:
        kind = event["event"]
        if kind == "span_begin" and event["name"] == "solvers":
            if event.get("parent_id") not in places:
                starts[event["id"]] = event["timestamp"]
        elif kind == "span_end" and event["id"] in starts:
            return seconds_between(starts[event["id"]], event["timestamp"])
    return None


def seconds_between(begin: str, end: str) -> float:
    """Return the seconds between two ISO times."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


SAMPLES = "samples/"
INSPECTS = re.compile(
    r"header\.json|summaries\.json|reductions\.json|samples/.+_epoch_\d+\.json"
    r"|_journal/(?:start|results)\.json|_journal/(?:summaries|config_updates)/\d+\.json",
    re.DOTALL,
)
"""Names of zip members that Inspect itself writes into a log."""
UTF_8 = 0x800
"""The archive flag that marks a member's name as UTF-8."""
CLOSE = 1e-9
"""Tolerance when two means are compared, as floats may be summed in another order."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One fault of a log's archive; `grave` if two programs would read different contents."""

    where: str
    said: str
    grave: bool = True


def oddities(log: RawLog) -> Iterator[Oddity]:
    """Yield the faults in the names of an archive's members: duplicate, ambiguous, unknown."""
    # Another check compares the contents of a sample's superseded copies: `RawLog.superseded`.
    members: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
    for member in log.zip.infolist():
        members[member.filename].append(member)
    for name, copies in members.items():
        alike = len(copies) > 1 and len({_bytes(log, copy) for copy in copies}) == 1
        if alike or (len(copies) > 1 and not name.startswith(SAMPLES)):
            difference = ", all equal" if alike else ": programs read different ones"
            message = f"the archive holds it {len(copies)} times{difference}"
            yield Oddity(name, message, grave=not alike)
        if any(map(_is_read_differently, copies)):
            yield Oddity(name, "programs decode its name differently")
        if not INSPECTS.fullmatch(name):
            yield Oddity(name, "Inspect writes no such member", grave=False)


def _bytes(log: RawLog, member: zipfile.ZipInfo) -> bytes | None:
    try:
        return member_bytes(log.file, member)
    except UNREADABLE:
        return None


def _is_read_differently(member: zipfile.ZipInfo) -> bool:
    """Return whether Python reads a member's name differently from Inspect, which assumes UTF-8."""
    name = member.orig_filename
    return name != member.filename or not (name.isascii() or member.flag_bits & UTF_8)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> object:
    """Return a member's JSON; None if it cannot be read. Unlike orjson this accepts NaN."""
    try:
        return json.loads(archive.read(member))
    except Exception:  # a damaged member may fail anywhere in zip, zstd or JSON
        return None


class SampleScore(NamedTuple):
    """Fields of a sample that the log states again in member names, summaries and totals."""

    question: str
    epoch: int
    score: float | None


def disagreements(log: RawLog, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    """Yield the places where a log's member names, summaries or totals contradict its samples."""
    names = Counter(f"{SAMPLES}{sample.question}_epoch_{sample.epoch}.json" for sample in samples)
    here = {name for name in log.zip.NameToInfo if name.startswith(SAMPLES)}
    for name in sorted(here - names.keys()):
        yield Oddity(name, "it holds a different sample from the one in its name")
    for name, count in sorted(names.items()):
        if count > 1:
            yield Oddity(name, f"{count} members hold this sample: programs read different ones")
    yield from _summaries(log, samples)
    yield from _totals(log.header, samples)


def _summaries(log: RawLog, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    if not log.zip.NameToInfo.keys() >= {"header.json", "summaries.json"}:
        return  # the run was stopped
    content: Any = _read(log.zip, log.zip.getinfo("summaries.json"))
    if not isinstance(content, list):
        yield Oddity("summaries.json", "it is not a list of samples, or cannot be read")
        return
    rows = cast(Sequence[Json], content)
    listed = {(str(row["id"]), int(row["epoch"])): score_value(row) for row in rows}
    for sample in samples:
        pair = (sample.question, sample.epoch)
        place = f"sample {sample.question} epoch {sample.epoch}"
        if pair not in listed:
            yield Oddity(place, "the log's summaries do not list it")
        elif listed[pair] != sample.score:
            yield Oddity(place, f"score {sample.score}, but {listed[pair]} in its summary")
    for question, epoch in sorted(listed.keys() - {(row.question, row.epoch) for row in samples}):
        yield Oddity(f"sample {question} epoch {epoch}", "in the summaries, but not in the log")


def _totals(header: Json, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    results: Json = header.get("results") or NOTHING
    total = results.get("total_samples")
    if header.get("status") == "success" and total is not None and total != len(samples):
        yield Oddity("header", f"it states {total} samples, but the log holds {len(samples)}")
    stated = _stated(results)
    graded = [sample.score for sample in samples if sample.score is not None]
    if stated is None or len(graded) != len(samples) or not graded:
        return
    by_question: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        by_question[sample.question].append(sample.score or 0.0)
    means = [sum(some) / len(some) for some in by_question.values()]
    mean = sum(means) / len(means)
    if abs(mean - stated) > CLOSE:
        yield Oddity("header", f"it states a mean of {stated:.4f}, but the samples give {mean:.4f}")


def _stated(results: Json) -> float | None:
    scores: Sequence[Json] = results.get("scores") or ()
    for score in scores:
        metrics: Json = score.get("metrics") or {}
        if score.get("name") == PODIUM and "mean" in metrics:
            return float(metrics["mean"]["value"])
    return None
