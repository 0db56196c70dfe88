"""Turn Inspect logs into a cassette and a pool file that replays it (`podium record`).

One row per reply that a model gave in a finished sample. Failed attempts, reads from a local cache
(no draw of their own) and unfinished samples are counted and left out, so that a replayed reply is
always one that was really drawn for this request and this repetition.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from harness.cassette import Header, Key, Row, SourceLabel, Tokens, write_cassette
from harness.errors import UserError
from harness.ledger.raw_log import refuse_oversized
from harness.pool_file import REHEARSING
from harness.private import publishable, refuse_redacted
from harness.recorded_pool import recorded_pool
from harness.records import GRADER, PODIUM
from harness.replicate import request_digest
from harness.usage import usage_of_reply


@dataclass(slots=True)
class Summary:
    """What was recorded and what was left out."""

    cassette: Path
    pool: Path
    """The pool file that replays the cassette."""
    rows: int = 0
    repeats: int = 0
    """Replies found again in a later log, as in the second log of a resumed run."""
    errors: int = 0
    cache_reads: int = 0
    unfinished_samples: int = 0
    workers: dict[str, int] = field(default_factory=dict[str, int])
    """Rows per worker."""

    def __str__(self) -> str:
        """Say it in two lines, for the terminal."""
        kept = ", ".join(f"{worker} {rows}" for worker, rows in self.workers.items())
        left = (
            f"left out: {self.errors} failed calls, {self.cache_reads} reads from a cache, "
            f"{self.unfinished_samples} unfinished samples; {self.repeats} found twice"
        )
        return f"{self.cassette}: {self.rows} replies ({kept}); {left}.\nReplay: --pool {self.pool}"


def record(logs: Sequence[Path], out: Path) -> Summary:
    """Write the cassette `out` and, beside it, the pool file `<out>.toml`; return what was done.

    Raises UserError for a log that cannot be read, an output that exists, logs without a reply, two
    logs that answer the same request and repetition differently, and replies of real models beside
    those of rehearsal workers.
    """
    if out.suffix != ".jsonl":
        raise UserError(f"A cassette is a .jsonl file: name it {out.with_suffix('.jsonl').name}.")
    summary = Summary(cassette=out, pool=out.with_suffix(".toml"))
    _refuse(summary.cassette, summary.pool)
    rows: dict[Key, Row] = {}
    facts: list[Mapping[str, Any]] = []
    sources: dict[SourceLabel, str] = {}
    for path in logs:
        log = _read(path)
        _refuse_unpublishable(log, path)
        facts.append((log.eval.metadata or {}).get(PODIUM, {}))
        for row, event in _rows(log, path, summary):
            sources.setdefault(_source_label(event, facts[-1]), path.name)
            _refuse_mixed(sources)
            _add(rows, row, summary)
    if not rows:
        raise UserError(f"No reply of a model in {_named(logs)}: there is nothing to record.")
    summary.rows = len(rows)
    summary.workers = dict(Counter(row.worker for row in rows.values()))
    models = {row.worker: row.model for row in rows.values()}
    header = Header(
        created_from=tuple(path.name for path in logs),
        source_sha256=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in logs),
        source_label=next(iter(sources)),
    )
    files = recorded_pool(out, models, facts, header.source_label)
    _refuse(*files)
    write_cassette(out, header, rows.values())
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    return summary


def _refuse(*outputs: Path) -> None:
    for path in outputs:
        if path.exists():
            raise UserError(f"{path} exists already: choose another name or move it away.")


def _refuse_unpublishable(log: EvalLog, path: Path) -> None:
    """Raise UserError for a log whose replies are gone or may quote what must not be published."""
    refuse_redacted(log.eval.metadata, path.name)
    if not publishable(log.eval.metadata):
        raise UserError(
            f"{path.name} is of an exam whose questions must not be published, and a cassette is "
            "made to be passed on: keep the log, or share a copy by podium redact."
        )


def _read(path: Path) -> EvalLog:
    if not path.is_file():
        raise UserError(f"There is no log {path}.")
    refuse_oversized(path)
    try:
        # "full": without it long messages are references into the log's attachments.
        return read_eval_log(str(path), resolve_attachments="full")
    except Exception as error:  # a damaged file may fail anywhere in zip, JSON or pydantic
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise UserError(f"{path} is damaged or no Inspect log ({reason}).") from error


def _source_label(event: ModelEvent, facts: Mapping[str, Any]) -> SourceLabel:
    """Return who gave a reply, also where it was replayed from a cassette."""
    recorded: object = (event.output.metadata or {}).get("recorded")
    if isinstance(recorded, Mapping):
        first = cast(Mapping[str, Any], recorded).get("source_label")
        return "rehearsal" if first == "rehearsal" else "live"
    rehearsed = event.model.startswith(f"{REHEARSING}/") or facts.get("label") == "rehearsal"
    return "rehearsal" if rehearsed else "live"


def _refuse_mixed(sources: Mapping[SourceLabel, str]) -> None:
    if len(sources) > 1:
        raise UserError(
            f"{sources['live']} holds replies of real models and {sources['rehearsal']} replies of "
            "rehearsal workers: record them into separate cassettes."
        )


def _rows(log: EvalLog, path: Path, summary: Summary) -> Iterator[tuple[Row, ModelEvent]]:
    """Yield a row for every reply in the finished samples of one log, and its event."""
    for sample in log.samples or []:
        if sample.error is not None or sample.completed_at is None:
            summary.unfinished_samples += 1
            continue
        yield from _sample_rows(sample, path, summary)


def _sample_rows(
    sample: EvalSample, path: Path, summary: Summary
) -> Iterator[tuple[Row, ModelEvent]]:
    asked: Counter[tuple[str, str]] = Counter()
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
        occurrence = asked[worker, digest]  # as `Pool` counts: every reply, cached or not
        asked[worker, digest] += 1
        if event.cache == "read":
            summary.cache_reads += 1
            continue
        yield _row(sample, event, (worker, digest, sample.epoch, occurrence), path), event


def _row(sample: EvalSample, event: ModelEvent, key: Key, path: Path) -> Row:
    if event.output.message.tool_calls:
        raise UserError(f"{path.name} holds calls of tools; a cassette can replay texts only.")
    usage = usage_of_reply(event.output, event.call.response if event.call else None)
    worker, digest, epoch, occurrence = key
    return Row(
        worker=worker,
        digest=digest,
        epoch=epoch,
        occurrence=occurrence,
        text=event.output.completion,
        usage=None
        if usage is None
        else Tokens(
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
        ),
        model=event.model,
        stop_reason=event.output.stop_reason,
        question=str(sample.id),
        source=path.name,
    )


def _add(rows: dict[Key, Row], row: Row, summary: Summary) -> None:
    """Add a row; the same key with another reply is a contradiction that nobody can resolve."""
    known = rows.setdefault(row.key, row)
    if known is row:
        return
    if known.text != row.text:
        raise UserError(
            f"{known.source} and {row.source} hold different replies of {row.worker} to the same "
            f"request (question {row.question}, epoch {row.epoch}): "
            "record them into separate cassettes."
        )
    summary.repeats += 1


def _named(logs: Sequence[Path]) -> str:
    return ", ".join(path.name for path in logs) or "no logs"
