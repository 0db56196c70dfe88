"""Cassettes, files of recorded model replies (JSON Lines): make them from logs, and replay them."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import BaseModel, ConfigDict, ValidationError

from podium.harness.context import sample_index
from podium.harness.errors import CassetteMiss, UserError, no_such
from podium.harness.files import DOCUMENT, parse_json, read_limited, replace_file
from podium.harness.ledger.logs import refuse_oversized
from podium.harness.pool_config import REHEARSING, REPLAYING, PoolSpec, WorkerSpec
from podium.harness.prices import BOOKS, book_from_json, read_book
from podium.harness.prices.book import book_text, toml
from podium.harness.records import CONDUCTOR, GRADER, PODIUM, Question
from podium.harness.request import SampleIndex, request_digest
from podium.harness.suite import Suite, Varied, publishable, refuse_redacted
from podium.harness.usage import usage_of_reply

IMPORTERS: dict[str, Callable[[], Path]] = {}
"""Name of a cassette that is made on demand -> function that makes its file and returns the path
(see suites/_registry.py)."""
SourceLabel = Literal["live", "rehearsal"]
Key = tuple[str, str, int, int]  # worker, request digest, epoch, occurrence (0: first such request)


class RecordedTokens(BaseModel):
    """Token usage of one recorded reply; fields as in `harness.records.Usage`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None  # None if not counted separately: unknown, not zero


class CassetteHeader(BaseModel):
    """The first line of a cassette file: its format version, and the files it was made from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    podium_cassette: Literal[1] = 1
    created_from: tuple[str, ...]  # File names of the sources
    source_sha256: tuple[str, ...]
    source_label: SourceLabel  # models of real providers, or podium's practice workers
    note: str = ""


class RecordedReply(BaseModel):
    """A line of a cassette: one recorded reply, and the request that was answered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    worker: str
    digest: str  # `request_digest` of the messages that were sent
    epoch: int
    occurrence: int
    text: str
    usage: RecordedTokens | None  # None when the provider reported none: unknown, not zero
    model: str
    stop_reason: StopReason = "unknown"
    question: str | None = None
    prompt_recorded: bool = True  # False: the question alone is assumed as request
    source: str

    @property
    def key(self) -> Key:
        """The row's key: worker, request digest, epoch and repetition of the request."""
        return (self.worker, self.digest, self.epoch, self.occurrence)


@dataclass(frozen=True, slots=True)
class Cassette:
    """The recorded replies of a cassette file, in memory."""

    name: str
    header: CassetteHeader
    rows: Mapping[Key, RecordedReply]
    sha256: str

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the recorded workers, in order of first appearance."""
        return tuple(dict.fromkeys(row.worker for row in self.rows.values()))

    @property
    def epochs(self) -> int:
        """Number of recorded epochs, that is, passes over the questions."""
        return max((row.epoch for row in self.rows.values()), default=0)

    @property
    def prompts_recorded(self) -> bool:
        """Whether the requests of all replies were recorded, not only the bare questions."""
        return all(row.prompt_recorded for row in self.rows.values())

    def lookup(self, worker: str, digest: str, replicate: SampleIndex) -> RecordedReply:
        """Return a worker's recorded reply to a request; raise `CassetteMiss` if there is none."""
        if row := self.rows.get((worker, digest, replicate.epoch, replicate.occurrence)):
            return row
        drawn = sum(key[:2] == (worker, digest) for key in self.rows)
        place = f"epoch {replicate.epoch}, repetition {replicate.occurrence + 1}"
        available = f"{drawn} other {'reply' if drawn == 1 else 'replies'}" if drawn else "none"
        raise CassetteMiss(
            f"Cassette {self.name} has no reply of {worker} to this request ({digest[:12]}, "
            f"{place}; it holds {available} to it): ask only what was recorded, or record a new "
            "cassette."
        )


def open_cassette(name: str) -> Cassette:
    """Open a cassette by path (`*.jsonl`) or by a name in `IMPORTERS`; UserError if absent."""
    if name.endswith(".jsonl"):
        path = Path(name).expanduser()
    elif name in IMPORTERS:
        path = IMPORTERS[name]()
    else:
        lead = "give the path of a .jsonl file, or one of: "
        raise no_such("cassette", name, sorted(IMPORTERS), lead)
    if not path.is_file():
        raise UserError(f"There is no cassette file {path}; make one with `podium record`.")
    return _read_cached(name, path, path.stat().st_mtime_ns)


def write_cassette(path: Path, header: CassetteHeader, rows: Iterable[RecordedReply]) -> None:
    """Write a cassette whole or not at all; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{line.model_dump_json()}\n" for line in (header, *rows))
    replace_file(path, "".join(lines).encode())


@lru_cache(maxsize=8)
def _read_cached(name: str, path: Path, modified: int) -> Cassette:
    """Read a cassette file, once per modification time, for all workers that replay it."""
    content = read_limited(path, DOCUMENT)
    header_line, *lines = content.split(b"\n")
    try:
        header = CassetteHeader.model_validate_json(header_line)
    except ValidationError as error:
        raise UserError(
            f"{path} is not a cassette of this version of podium: its first line must be a header "
            '{"podium_cassette": 1, "source_label": ...}. Make it again with `podium record`.'
        ) from error
    rows: dict[Key, RecordedReply] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            row = RecordedReply.model_validate(parse_json(line))
        except (ValidationError, ValueError) as error:
            reason = f"{error}".splitlines()[0]
            raise UserError(
                f"Cassette {path}, line {number}, is damaged: {reason}. Restore it, or record it "
                "again."
            ) from error
        if row.key in rows:
            raise UserError(
                f"Cassette {path}, line {number}, repeats the key of an earlier line. Restore it, "
                "or record it again."
            )
        rows[row.key] = row
    return Cassette(name, header, rows, hashlib.sha256(content).hexdigest())


def _tapes(spec: PoolSpec) -> Iterator[tuple[WorkerSpec, Cassette]]:
    for worker in spec.slots:
        if worker.provider == REPLAYING:
            yield worker, open_cassette(str(worker.args.get("cassette", "")))


def cassette_digests(spec: PoolSpec) -> dict[str, str]:
    """Return {file name without its folder: sha256} of the cassettes that a pool replays."""
    return {Path(tape.name).name: tape.sha256 for _, tape in _tapes(spec)}


def prompts_recorded(spec: PoolSpec) -> bool:
    """Return whether a pool's cassettes have the recorded request of every reply."""
    return all(tape.prompts_recorded for _, tape in _tapes(spec))


def refuse_unrecorded(
    spec: PoolSpec, questions: Sequence[Question], epochs: int, suite: Suite[Any] | None = None
) -> None:
    """Raise UserError if a pool's cassette without recorded requests lacks a question or epoch."""
    for worker, tape in _tapes(spec):
        if tape.prompts_recorded:
            continue
        if epochs > tape.epochs:
            raise UserError(
                f"--epochs {epochs} exceeds the recording: {worker.name} has replies for "
                f"{tape.epochs} epoch{'s' if tape.epochs > 1 else ''}: use --epochs {tape.epochs}."
            )
        name = worker.model.partition("/")[2]  # its name inside the cassette
        digests = {row.digest for row in tape.rows.values() if row.worker == name}
        if lost := [q.id for q in questions if not _digests(q, epochs, suite) <= digests]:
            raise UserError(
                f"{worker.name} has no recorded reply to {len(lost)} of {len(questions)} questions "
                f"({lost[0]} is the first): use the suite and the prompt that were recorded."
            )


def _digests(question: Question, epochs: int, suite: Suite[Any] | None) -> set[str]:
    forms = [question]
    if isinstance(suite, Varied):
        forms = [suite.at_epoch(question, epoch) for epoch in range(1, epochs + 1)]
    return {request_digest([ChatMessageUser(content=form.text)]) for form in forms}


class RecordedAPI(ModelAPI):
    """An Inspect provider of recorded replies: `get_model("recorded/WORKER", cassette=FILE)`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        """Open the cassette; UserError if the cassette or the worker in it does not exist."""
        super().__init__(model_name, base_url, api_key, [], config)
        name = model_args.get("cassette")
        if not name:
            raise UserError(f"recorded/{model_name} needs a cassette: -M cassette=PATH.jsonl.")
        self.cassette: Cassette = open_cassette(str(name))
        if model_name not in self.cassette.workers:
            names = ", ".join(self.cassette.workers)
            raise UserError(f"Cassette {name} has no worker {model_name!r}; it has: {names}.")
        self.asked: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the recorded reply to a request; raise `CassetteMiss` if there is none."""
        digest = request_digest(input)
        row = self.cassette.lookup(self.model_name, digest, sample_index(digest, self.asked))
        return _output(row, self.cassette)

    def connection_key(self) -> str:
        """Return one key for all workers of a cassette: they share a connection limit."""
        return f"recorded/{self.cassette.name}"

    def max_connections(self) -> int:
        """Return a high limit of parallel requests, because replaying is a look-up."""
        return 100


def _output(row: RecordedReply, cassette: Cassette) -> ModelOutput:
    output = ModelOutput.from_content(row.model, row.text, stop_reason=row.stop_reason)
    if tokens := row.usage:
        output.usage = ModelUsage(
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            total_tokens=tokens.input + tokens.output + tokens.cache_read + tokens.cache_write,
            input_tokens_cache_read=tokens.cache_read,
            input_tokens_cache_write=tokens.cache_write,
            reasoning_tokens=tokens.reasoning,
        )
    facts = {
        "source": row.source,
        "source_label": cassette.header.source_label,
        "prompt_recorded": row.prompt_recorded,
        "cassette_sha256": cassette.sha256,
    }
    output.metadata = {"recorded": facts}
    return output


def recorded_pool(
    cassette: Path,
    models: Mapping[str, str],
    facts: Sequence[Mapping[str, Any]],
    source_label: SourceLabel,
) -> dict[Path, str]:
    """Return {path: text} of a cassette's pool file and, unless podium ships it, its price book."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", cassette.stem):
        raise UserError(
            f"{cassette.stem!r} cannot name a pool: use letters, digits, `.`, `_`, `-`."
        )
    workers = {name: entry for fact in facts for name, entry in fact.get("workers", {}).items()}
    name, book = _book(cassette, [fact["prices"] for fact in facts if fact.get("prices")])
    lines = [
        f"# Replays {cassette.name}: podium run --pool {cassette.with_suffix('.toml').name}",
        f"label = {toml('rehearsal' if source_label == 'rehearsal' else 'recorded')}",
        f"prices = {toml(name)}",
    ]
    for worker, model in sorted(models.items(), key=lambda item: item[0] == CONDUCTOR):
        if worker != GRADER:
            lines += ["", *_slot(worker, model, workers.get(worker, {}), cassette)]
    return {cassette.with_suffix(".toml"): "\n".join(lines) + "\n", **book}


def _slot(worker: str, model: str, fact: Mapping[str, Any], cassette: Path) -> list[str]:
    fields: dict[str, Any] = {
        "name": worker,
        "model": f"recorded/{worker}",
        "price": fact.get("price") or model,
        "card": fact.get("card") or "",
        "knowledge_cutoff": fact.get("knowledge_cutoff") or "unknown",
        "args": {"cassette": cassette.name},
        **({"config": fact["config"]} if fact.get("config") else {}),
    }
    head = "[conductor]" if worker == CONDUCTOR else "[[workers]]"
    comment = model if model.isprintable() else toml(model)  # a line break would end the comment
    return [f"# recorded from {comment}", head, *(f"{key} = {toml(fields[key])}" for key in fields)]


def _book(cassette: Path, embedded: Sequence[Mapping[str, Any]]) -> tuple[str, dict[Path, str]]:
    if not embedded:
        return "none", {}  # the book without a price (harness/prices/none.toml)
    if len({str(data["sha256"]) for data in embedded}) > 1:
        raise UserError("The logs were written with different price books: record them separately.")
    book = book_from_json(embedded[0])
    if (BOOKS / f"{book.name}.toml").is_file() and read_book(book.name).sha256 == book.sha256:
        return book.name, {}
    path = cassette.with_name(f"{cassette.stem}.prices.toml")
    return path.name, {path: book_text(book)}


@dataclass(slots=True)
class RecordSummary:
    """Counts of replies that were recorded into a cassette, and of replies left out."""

    cassette: Path
    workers: Mapping[str, int] = field(default_factory=dict[str, int])  # Rows by worker
    repeats: int = 0  # Replies found again in a later log, as in the second log of a resumed run
    errors: int = 0
    cache_reads: int = 0
    unfinished_samples: int = 0

    @property
    def rows(self) -> int:
        """The number of recorded replies, over all workers."""
        return sum(self.workers.values())

    def __str__(self) -> str:
        text = ", ".join(f"{worker} {rows}" for worker, rows in self.workers.items())
        notes = (
            f"left out: {self.errors} failed calls, {self.cache_reads} reads from a cache, "
            f"{self.unfinished_samples} unfinished samples; {self.repeats} found twice"
        )
        pool = self.cassette.with_suffix(".toml")
        return f"{self.cassette}: {self.rows} replies ({text}); {notes}.\nReplay: --pool {pool}"


def record(logs: Sequence[Path], out: Path) -> RecordSummary:
    """Write the cassette `out` from Inspect logs, with a pool file beside it; return a summary."""
    refuse_written(out)
    summary = RecordSummary(out)
    rows: dict[Key, RecordedReply] = {}
    facts: list[Mapping[str, Any]] = []
    sources: dict[SourceLabel, str] = {}
    for path in logs:
        log = _read_log(path)
        facts.append((log.eval.metadata or {}).get(PODIUM, {}))
        row_groups = (_sample_rows(sample, path, summary) for sample in log.samples or [])
        for row, event in chain.from_iterable(row_groups):
            sources.setdefault(_source_label(event, facts[-1]), path.name)
            if len(sources) > 1:
                raise UserError(
                    f"{sources['live']} holds replies of real models and {sources['rehearsal']} "
                    "replies of rehearsal workers: record them into separate cassettes."
                )
            _add(rows, row, summary)
    if not rows:
        read = ", ".join(path.name for path in logs) or "no logs"
        raise UserError(f"There is nothing to record in {read}. Name logs with replies of models.")
    summary.workers = Counter(row.worker for row in rows.values())
    header = CassetteHeader(
        created_from=tuple(path.name for path in logs),
        source_sha256=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in logs),
        source_label=next(iter(sources)),
    )
    write_recorded(out, header, [*rows.values()], facts)
    return summary


def refuse_written(out: Path) -> None:
    """Raise UserError if a new cassette is not named *.jsonl, or if it or its pool file exists."""
    if out.suffix != ".jsonl":
        name = out.stem.strip(".") or "tape"  # `.` and `/` have no stem
        raise UserError(f"A cassette is a .jsonl file: name it {name}.jsonl.")
    _refuse(out, out.with_suffix(".toml"))


def write_recorded(
    out: Path,
    header: CassetteHeader,
    rows: Sequence[RecordedReply],
    facts: Sequence[Mapping[str, Any]],
) -> None:
    """Write a cassette, its pool file and, unless podium ships it, its price book."""
    models = {row.worker: row.model for row in rows}
    files = recorded_pool(out, models, facts, header.source_label)
    _refuse(*files)
    write_cassette(out, header, rows)
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")


def _refuse(*outputs: Path) -> None:
    for path in outputs:
        if path.exists():
            raise UserError(f"{path} exists already: choose another name or move it away.")


def _read_log(path: Path) -> EvalLog:
    """Return an Inspect log; UserError if it is damaged, redacted, or must not be published."""
    if not path.is_file():
        raise UserError(f"There is no log {path}. Name an existing .eval or .json file.")
    refuse_oversized(path)
    try:
        # "full": without it long messages are references into the log's attachments.
        log = read_eval_log(str(path), resolve_attachments="full")
    except Exception as error:  # a damaged file may fail anywhere in zip, JSON or pydantic
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise UserError(f"{path} is damaged or no Inspect log ({reason}). Restore it.") from error
    refuse_redacted(log.eval.metadata, path.name)
    if not publishable(log.eval.metadata):
        raise UserError(
            f"No cassette was written, because {path.name} has questions that must not be "
            "published. To share this run, make a copy of it with podium redact."
        )
    return log


def _source_label(event: ModelEvent, facts: Mapping[str, Any]) -> SourceLabel:
    """Return whether a live or a rehearsal model wrote a reply, also if the reply was replayed."""
    recorded: object = (event.output.metadata or {}).get("recorded")
    if isinstance(recorded, Mapping):
        rehearsed = cast(Mapping[str, Any], recorded).get("source_label") == "rehearsal"
    else:
        rehearsed = event.model.startswith(f"{REHEARSING}/") or facts.get("label") == "rehearsal"
    return "rehearsal" if rehearsed else "live"


def _sample_rows(
    sample: EvalSample, path: Path, summary: RecordSummary
) -> Iterator[tuple[RecordedReply, ModelEvent]]:
    if sample.error is not None or sample.completed_at is None:
        summary.unfinished_samples += 1
        return
    counts: Counter[tuple[str, str]] = Counter()
    events = [event for event in sample.events if isinstance(event, ModelEvent)]
    once = {event.uuid or str(index): event for index, event in enumerate(events)}
    for event in sorted(once.values(), key=lambda event: event.timestamp):
        worker = event.role or event.model.rpartition("/")[2]
        if worker == GRADER:
            continue
        if event.error is not None or event.pending or event.output.empty:
            summary.errors += 1
            continue
        digest = request_digest(event.input)
        occurrence = counts[worker, digest]  # as `Pool` counts: every reply, cached or not
        counts[worker, digest] += 1
        if event.cache == "read":
            summary.cache_reads += 1
            continue
        yield _row(sample, event, (worker, digest, sample.epoch, occurrence), path), event


def _row(sample: EvalSample, event: ModelEvent, key: Key, path: Path) -> RecordedReply:
    if event.output.message.tool_calls:
        raise UserError(f"{path.name} holds tool calls; cassettes replay text only. Leave it out.")
    usage = usage_of_reply(event.output, event.call.response if event.call else None)
    counts = {name: getattr(usage, name, None) for name in RecordedTokens.model_fields}
    worker, digest, epoch, occurrence = key
    return RecordedReply(
        worker=worker,
        digest=digest,
        epoch=epoch,
        occurrence=occurrence,
        text=event.output.completion,
        usage=RecordedTokens.model_validate(counts) if usage else None,
        model=event.model,
        stop_reason=event.output.stop_reason,
        question=str(sample.id),
        source=path.name,
    )


def _add(rows: dict[Key, RecordedReply], row: RecordedReply, summary: RecordSummary) -> None:
    """Add a recorded reply to `rows`; UserError if its key already has a different reply."""
    earlier = rows.setdefault(row.key, row)
    if earlier.text != row.text:
        raise UserError(
            f"{earlier.source} and {row.source} hold different replies of {row.worker} to the same "
            f"request (question {row.question}, epoch {row.epoch}): "
            "record them into separate cassettes."
        )
    summary.repeats += earlier is not row
