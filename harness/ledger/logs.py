"""An `.eval` file read raw, twenty times as fast as through Inspect: its samples and their calls.

The same call may stand in several logs of a resumed run: tell them apart by `CallEvent.id`. What
changes a log goes through Inspect, and so does a log in JSON, which is converted first.
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
"""A run that ended has the first one; one that was killed, or still runs, only the second."""
UNREADABLE = (
    *(OSError, ValueError, NotImplementedError, MemoryError, RuntimeError, zipfile.BadZipFile),
    *BROKEN,
)
"""What a damaged archive makes fail: zipfile raises RuntimeError for one with a password."""
UNFOUNDED = (
    *(KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError),
    RecursionError,
)
"""What reading fails with where a file says what no run writes: another type, a huge number."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawLog:
    """An open log; one in JSON as the `.eval` file that Inspect makes of it."""

    path: Path
    header: Json
    """As `EvalLog` names it: version, status, eval, plan, results, stats, error, ...; what a run
    that was killed had written: `eval` and `plan`."""
    zip: zipfile.ZipFile
    file: BinaryIO = field(repr=False)

    def samples(self) -> Iterator[Json]:
        """Yield the samples as `EvalSample` names their fields, one at a time, in file order."""
        # Of a sample that was written twice the last one counts, as for every reader of zip files.
        for name, info in self.zip.NameToInfo.items():
            if name.startswith("samples/") and name.endswith(".json"):
                yield _parsed(self.path, self.file, info)

    def superseded(self) -> Iterator[Json]:
        """Yield the samples that no reader takes, because a later member has their name."""
        # A sample that failed and was asked again stays until Inspect packs the log anew: when the
        # run ends well, and only if what readers pass over is a tenth of the file.
        for info in self.zip.infolist():
            passed_over = self.zip.NameToInfo[info.filename] is not info
            if passed_over and info.filename.startswith(SAMPLES):
                yield _parsed(self.path, self.file, info)

    def sample(self, question: str, epoch: int) -> Json | None:
        """Return one sample; None where the log has none of that name."""
        info = self.zip.NameToInfo.get(f"{SAMPLES}{question}_epoch_{epoch}.json")
        return _parsed(self.path, self.file, info) if info else None


@contextmanager
def open_log(path: Path) -> Generator[RawLog]:
    """Open a log; UserError names one that is damaged or no Inspect log."""
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
        found = next((names[name] for name in HEADERS if name in names), None)
        if found is None:
            raise damaged(path, "it has no header")
        header = _parsed(path, file, found)
        if _is_private(header):
            keep_files_private()
        yield RawLog(path, header, archive, file)


def _is_private(header: Json) -> bool:
    ran = header.get("eval")
    metadata = cast(Json, ran).get("metadata") if isinstance(ran, Mapping) else None
    return isinstance(metadata, Mapping) and not publishable(cast(Json, metadata))


def heed_private(paths: Iterable[Path]) -> None:
    """Open logs for what `open_log` does about private ones: before files are made of them."""
    for path in paths:
        with suppress(UserError), open_log(path):  # who reads a damaged one says so
            pass


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Turn what a malformed log makes fail into a UserError that names the file."""
    try:
        yield
    except UNFOUNDED as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def refuse_oversized(path: Path, *, header_only: bool = False) -> None:
    """Raise UserError for a log that Inspect's readers had better not unpack."""
    # They take an archive at its word. What is unpacked here is counted and thrown away: of a log
    # whose header alone is wanted, the members that go with it.
    try:
        if path.suffix == JSON:
            return refuse_unreadable(path)
        refuse_false_sizes(
            path, (lambda name: not name.startswith("samples/")) if header_only else bool
        )
    except UNREADABLE as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, why: str) -> UserError:
    """Return the error that names a file nobody can read."""
    said = why.splitlines()[0][:200] if why.strip() else "unreadable"
    return UserError(f"{path} is damaged or no Inspect log ({said}); move it away and try again.")


def find_logs(dirs: Sequence[Path], recursive: bool = True) -> tuple[Path, ...]:
    """Return the logs of directories, or files, each once; UserError if there is none."""
    found: dict[Path, Path] = {}
    for path in dirs:
        if not path.exists():
            raise UserError(f"There is no {path}; name the directory that `podium run` wrote.")
        if path.is_file() and not is_log(path):
            raise UserError(f"{path} is no .eval log; name one, or the directory of a run.")
        for log in [path] if path.is_file() else sorted(logs_below(path, recursive)):
            found.setdefault(Path(os.path.realpath(log)), log)  # which loops of links do not break
    if not found:
        places = ", ".join(map(str, dirs))
        if any(path for one in dirs for path in one.glob(SERVED)):
            raise UserError(
                f"{places} holds what was served, and no run: `podium view` shows it, and `podium "
                "audit` checks it."
            )
        raise UserError(f"There is no .eval log in {places}; run `podium run` first.")
    return tuple(found.values())


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
    """Read one log whole; None when it has nothing of podium's, UserError when it is damaged."""
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
        return json_with_nan(data)  # which Inspect writes for an unscored sample


IN_FLIGHT = "in flight when the run was stopped"
"""The error of a call that a killed run left behind: what was billed for it is unknown."""
UNWRITTEN = "ended, and its outcome could not be written down"
"""The error of a call that neither record has the end of, though its process went on."""
ATTACHMENT = "attachment://"
ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "mistral-correlation-id")
"""Headers with the id of a request, in the order in which Inspect looks for them."""
OWN_HEADERS = {"anthropic": "request-id", "bedrock": ID_HEADERS[2], "mistral": ID_HEADERS[3]}
"""The one that a provider sends, by the first part of a model's name; the first one elsewhere."""
NOTHING: Json = {}
SYSTEMS = f"{PODIUM}/"  # begins the name of a model that is a system
Place = tuple[Phase, str | None]
"""Phase, and name of the innermost workflow step."""
ROOT: Place = ("solve", None)


@dataclass(slots=True)
class CallEvent:
    """One ModelEvent. Not frozen: a million are made, and a frozen one takes three times longer."""

    id: str
    span: str | None
    phase: Phase
    step: str | None
    role: str
    """Worker name, `conductor` or `grader`; the model's name where the call had no role."""
    model: str
    served_model: str | None
    usage: Usage | None
    """None when the provider reported none, or one that cannot be."""
    counted: Usage | None
    """As Inspect counted it: what is in Inspect's totals."""
    cache: Cache
    pending: bool
    error: str | None
    """As the log has it: `redacted_message` before showing."""
    stop: str | None
    started: str
    completed: str | None
    working_s: float | None
    retries: int
    """HTTP attempts before the one that is logged."""
    request_ids: tuple[Json, ...]
    """`{id, header, status}` of each HTTP response of this call that had an id, one for each."""
    max_tokens: int | None
    raw_usage: Json | None
    longest_s: float | None
    """Of its whole sample, by a steady clock, where the log says."""
    stated_s: float | None = None
    """What a rehearsal worker takes, which is no machine's matter."""

    @property
    def refused(self) -> bool:
        """Say whether the provider refused the request for its length: nothing was generated."""
        return self.stop == LENGTH_REFUSED and not (self.usage and self.usage.output)

    @property
    def latency_s(self) -> float | None:
        """Seconds from begin to end, waiting included; None when nobody knows."""
        if self.completed:
            return _steady(seconds_between(self.started, self.completed), self.longest_s)
        return self.working_s


def events_of(sample: Json) -> Iterator[CallEvent]:
    """Yield the calls of a sample's newest attempt, in the order in which they began."""
    # A pending call of a sample without an error is left out: the sample may still be running.
    return _calls(sample, cast(list[Json], sample.get("events") or []))


def last_tries(events: Iterable[CallEvent]) -> list[CallEvent]:
    """Return events without the tries over HTTP that failed and were followed by another."""
    # Inspect writes an event for every try, all in the span of the call. What a call is without its
    # journal: `last_attempts` of what is joined.
    known = list(events)
    if not any(one.error for one in known):
        return known
    last: dict[tuple[str | None, str, str], CallEvent] = {}
    for one in known:
        if not one.error or (one.span, one.role, one.model) not in last:
            last[one.span, one.role, one.model] = one
    return [
        one
        for one in known
        if not one.error or not one.span or last[one.span, one.role, one.model] is one
    ]


def lost_in(sample: Json) -> Iterator[CallEvent]:
    """Yield what is left of attempts that failed and were made again within the run."""
    # Inspect keeps only the events from such an attempt's last model call on.
    for failure in sample.get("error_retries") or ():
        yield from _calls(sample, failure.get("events") or [])


def _calls(sample: Json, events: list[Json]) -> Iterator[CallEvent]:
    stopped = sample.get("error") is not None
    places = _places(events)
    for event in events:
        if event["event"] == "model" and (stopped or not event.get("pending")):
            if event["model"].startswith(SYSTEMS):  # whose workers' calls are events of their own
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
    """Return the provider's own usage; what an error was answered with has none."""
    call: Json = event.get("call") or NOTHING
    return None if call.get("error") else raw_usage(call.get("response"), output.get("metadata"))


def responses(ids: Iterable[Json], model: str) -> Iterator[Json]:
    """Yield one id for each HTTP response: its provider's own, where a gateway has added others."""
    # Inspect lists the ids of a response in the order of `ID_HEADERS`, response after response:
    # what does not come later in it than the id before, or has another status, is of the next
    # response.
    own = OWN_HEADERS.get(model.partition("/")[0], ID_HEADERS[0])
    one: Json | None = None
    place = -1
    for id in ids:
        header = id.get("header")
        here = ID_HEADERS.index(header) if header in ID_HEADERS else -1
        if one is not None and (here <= place or id.get("status") != one.get("status")):
            yield one
            one = None
        if one is None or header == own:
            one = id
        place = here
    if one is not None:
        yield one


def attached(text: str, sample: Json) -> str:
    """Return a text that Inspect may have put among the sample's attachments."""
    if not text.startswith(ATTACHMENT):
        return text
    return (sample.get("attachments") or NOTHING).get(text.removeprefix(ATTACHMENT), text)


def _places(events: Iterable[Json]) -> dict[str | None, Place]:
    """Return where the spans of a sample lie: Inspect's `event_tree`, without building it."""
    # A span whose beginning an interrupted sample has lost is nowhere: what it held lies at the
    # root.
    known: dict[str | None, Place] = {}
    for event in events:
        if event["event"] == "span_begin":
            phase, step = known.get(event.get("parent_id"), ROOT)
            is_step = event.get("type") == "workflow_step"
            inner: Phase = "score" if event["name"] == "scorers" else phase
            if is_step and event["name"].startswith(f"{ENVIRONMENT}: "):
                inner = ENVIRONMENT
            known[event["id"]] = inner, event["name"] if is_step else step
    return known


def score_in(sample: Json) -> Json:
    """Return what podium's scorer wrote of a sample; empty where it wrote nothing."""
    return (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING


def verdict(sample: Json) -> float | None:
    """Return a sample's grade; Inspect writes "unscored" as not-a-number."""
    value = None if sample.get("error") else score_value(sample)
    return None if value is None else float(value)


def score_value(sample: Json) -> float | None:
    """Return the score of a sample, or of its summary, also of one that failed."""
    value = score_in(sample).get("value")
    return value if isinstance(value, int | float) and value == value else None


def shape_in(sample: Json) -> Json:
    """Return the shape of the work as podium's solver wrote it: steps, depth, plan."""
    return (sample.get("metadata") or NOTHING).get(PODIUM) or NOTHING


def answer_in(sample: Json) -> str:
    """Return a sample's answer, also where Inspect made its output of a killed process's calls."""
    output: Json = sample.get("output") or NOTHING
    said = output.get("completion") or ""
    return said if output.get("model") == PODIUM else shape_in(sample).get(ANSWER, said)


def solver_seconds(sample: Json) -> float | None:
    """Return how long the solvers took; None for a sample that did not get through them."""
    # Podium's own measure comes first, by a clock that nobody sets; it is unknown where replies
    # were read from the store. Older logs have only times of day: what is longer than the whole
    # sample, by Inspect's steady clock, is a clock that was set.
    if SECONDS in (shape := shape_in(sample)):
        return shape[SECONDS]
    return _steady(_solver_span(sample), sample.get("total_time"))


SLACK_S = 1.0
"""By how much two clocks may differ over a sample."""


def _steady(seconds: float | None, longest: float | None) -> float | None:
    """Return a difference of two times of day; None where the clock was set in between."""
    if seconds is None or seconds < 0 or (longest is not None and seconds > longest + SLACK_S):
        return None
    return seconds


def _solver_span(sample: Json) -> float | None:
    events: list[Json] = sample.get("events") or []
    places = _places(events)
    begun: dict[str, str] = {}
    for event in events:
        kind = event["event"]
        if kind == "span_begin" and event["name"] == "solvers":
            if event.get("parent_id") not in places:
                begun[event["id"]] = event["timestamp"]
        elif kind == "span_end" and event["id"] in begun:
            return seconds_between(begun[event["id"]], event["timestamp"])
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
"""What Inspect calls the members of a log."""
UTF_8 = 0x800
"""The flag by which an archive says how a member's name is encoded."""
CLOSE = 1e-9
"""Means are sums of floats, in one order or another."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One thing that is wrong with an archive; `grave` where readers differ in what they see."""

    where: str
    said: str
    grave: bool = True


def oddities(log: RawLog) -> Iterator[Oddity]:
    """Yield what is wrong with the members of an archive, by their names."""
    # Copies of a sample that readers pass over are judged by what they hold: `RawLog.superseded`.
    members: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
    for one in log.zip.infolist():
        members[one.filename].append(one)
    for name, copies in members.items():
        alike = len(copies) > 1 and len({_bytes(log, one) for one in copies}) == 1
        if alike or (len(copies) > 1 and not name.startswith(SAMPLES)):
            how = ", always the same" if alike else ": readers take different ones"
            said = f"it stands in the archive {len(copies)} times{how}"
            yield Oddity(name, said, grave=not alike)
        if any(map(_is_read_differently, copies)):
            yield Oddity(name, "readers do not agree on its name")
        if not INSPECTS.fullmatch(name):
            yield Oddity(name, "Inspect writes no such member", grave=False)


def _bytes(log: RawLog, member: zipfile.ZipInfo) -> bytes | None:
    try:
        return member_bytes(log.file, member)
    except UNREADABLE:
        return None


def _is_read_differently(member: zipfile.ZipInfo) -> bool:
    """Say whether Python reads a member's name otherwise than Inspect, which takes it as UTF-8."""
    name = member.orig_filename
    return name != member.filename or not (name.isascii() or member.flag_bits & UTF_8)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> object:
    """Return a member's JSON; None where it cannot be had. Unlike orjson this takes a NaN."""
    try:
        return json.loads(archive.read(member))
    except Exception:  # a damaged member may fail anywhere in zip, zstd or JSON
        return None


class SampleScore(NamedTuple):
    """What a log's names, summaries and totals say again of a sample."""

    question: str
    epoch: int
    score: float | None


def disagreements(log: RawLog, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    """Yield where a log's names, summaries and totals are not those of its samples."""
    named = Counter(f"{SAMPLES}{one.question}_epoch_{one.epoch}.json" for one in samples)
    here = {name for name in log.zip.NameToInfo if name.startswith(SAMPLES)}
    for name in sorted(here - named.keys()):
        yield Oddity(name, "it holds another sample than its name says")
    for name, count in sorted(named.items()):
        if count > 1:
            yield Oddity(name, f"{count} members hold this sample: readers take different ones")
    yield from _summaries(log, samples)
    yield from _totals(log.header, samples)


def _summaries(log: RawLog, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    if not log.zip.NameToInfo.keys() >= {"header.json", "summaries.json"}:
        return  # the run was stopped
    found: Any = _read(log.zip, log.zip.getinfo("summaries.json"))
    if not isinstance(found, list):
        yield Oddity("summaries.json", "it is no list of samples, or cannot be read")
        return
    rows = cast(Sequence[Json], found)
    listed = {(str(one["id"]), int(one["epoch"])): score_value(one) for one in rows}
    for sample in samples:
        pair = (sample.question, sample.epoch)
        where = f"sample {sample.question} epoch {sample.epoch}"
        if pair not in listed:
            yield Oddity(where, "the log's summaries lack it")
        elif listed[pair] != sample.score:
            yield Oddity(where, f"its summary says {listed[pair]}, the sample {sample.score}")
    for question, epoch in sorted(listed.keys() - {(one.question, one.epoch) for one in samples}):
        yield Oddity(f"sample {question} epoch {epoch}", "summarised, and not in the log")


def _totals(header: Json, samples: Sequence[SampleScore]) -> Iterator[Oddity]:
    results: Json = header.get("results") or NOTHING
    asked = results.get("total_samples")
    if header.get("status") == "success" and asked is not None and asked != len(samples):
        yield Oddity("header", f"it says {asked} samples, and {len(samples)} are here")
    found = _stated(results)
    graded = [one.score for one in samples if one.score is not None]
    if found is None or len(graded) != len(samples) or not graded:
        return
    by_question: dict[str, list[float]] = defaultdict(list)
    for one in samples:
        by_question[one.question].append(one.score or 0.0)
    means = [sum(some) / len(some) for some in by_question.values()]
    mean = sum(means) / len(means)
    if abs(mean - found) > CLOSE:
        yield Oddity("header", f"it says mean {found:.4f}, the samples {mean:.4f}")


def _stated(results: Json) -> float | None:
    scores: Sequence[Json] = results.get("scores") or ()
    for score in scores:
        metrics: Json = score.get("metrics") or {}
        if score.get("name") == PODIUM and "mean" in metrics:
            return float(metrics["mean"]["value"])
    return None
