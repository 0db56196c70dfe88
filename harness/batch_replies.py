"""Replies of OpenAI-shaped batches as a cassette: requests, joined with their results."""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from podium.harness.batch_rows import (
    BatchReply,
    BatchRequest,
    BatchResult,
    read_replies,
)
from podium.harness.cassette import (
    CassetteHeader,
    RecordedReply,
    RecordedTokens,
    RecordSummary,
    refuse_written,
    write_recorded,
)
from podium.harness.errors import UserError
from podium.harness.files import check_row, json_with_nan, lines_of, open_text, refuse_absent
from podium.harness.prices import newest_list
from podium.harness.request import request_digest
from podium.harness.text import make_storable, pluralise

UNREADABLE = (ValueError, gzip.BadGzipFile, EOFError, zlib.error)
SHOWN = 5  # rows that are left out and named
RowModel = TypeVar("RowModel", BatchRequest, BatchResult)


@dataclass(slots=True)
class BatchSummary(RecordSummary):
    """What was recorded of a batch, and which rows were left out."""

    unreadable: list[str] = field(default_factory=list[str])
    """A sentence for each row that cannot be read: its file, line, field and what is wrong."""
    broken_off: list[str] = field(default_factory=list[str])
    """Replies that were recorded, and whose finish reason says that a failure ended them."""

    def __str__(self) -> str:
        lines = [RecordSummary.__str__(self)]
        if self.unreadable:
            rows = pluralise(len(self.unreadable), "row")
            lines.append(f"Left out: {rows} that cannot be read (--strict refuses them).")
            lines += _listed(self.unreadable)
        if self.broken_off:
            replies = "replies" if len(self.broken_off) > 1 else "reply"
            lines.append(
                f"Recorded: {len(self.broken_off):,} {replies} that a failure may have cut."
            )
            lines += _listed(self.broken_off)
        return "\n".join(lines)


def _listed(sentences: Sequence[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences[:SHOWN]] + _rest(sentences)


def _rest(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - SHOWN
    return [f"- and {more:,} more"] if more > 0 else []


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that can be replayed."""

    request: BatchRequest
    digest: str


def record_batch(results: Path, requests: Path, out: Path, *, strict: bool = False) -> BatchSummary:
    """Write the cassette `out` of a batch and the pool file beside it; return what was done."""
    refuse_written(out)
    summary = BatchSummary(out)
    batch = _Batch(results.name, requests.name, _requests(requests, summary), summary)
    for where, line in _lines(results):
        batch.add(where, line)
    _refuse_unfit(batch, results, strict=strict)
    summary.unfinished_samples = len(batch.waiting)
    summary.workers = Counter(row.worker for row in batch.rows)
    files = (results, requests)
    header = CassetteHeader(
        created_from=tuple(path.name for path in files),
        source_sha256=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files),
        source_label="live",
    )
    write_recorded(out, header, batch.rows, [{"prices": newest_list().as_json()}])
    return summary


def _refuse_unfit(batch: "_Batch", results: Path, *, strict: bool) -> None:
    """Raise UserError if nothing can be recorded, or a strict reader may not leave a row out."""
    unreadable = batch.summary.unreadable
    named = " ".join([*unreadable[:SHOWN], *_rest(unreadable)])
    if strict and unreadable:
        count = pluralise(len(unreadable), "row")
        raise UserError(f"{count} cannot be read: {named} Correct them, or leave --strict out.")
    if not batch.rows:
        raise UserError(f"{results} has no reply: there is nothing to record. {named}".strip())


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file, each with its place; UserError for no file, or no text."""
    refuse_absent(path)
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines_of(lines), start=1):
                if line.strip():
                    yield f"{path}, line {number}", line
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as JSON Lines in UTF-8: {error}.") from error


def _row(model: type[RowModel], line: str, where: str) -> RowModel:
    """Return a line as a row; UserError names the field that cannot be read."""
    try:
        row: object = json_with_nan(line.encode("utf-8", "surrogatepass"))  # NaN as a logprob
    except ValueError as error:
        raise UserError(f"{where}: it is not JSON: {error}.") from error
    return check_row(model, make_storable(row), where)


def _requests(path: Path, summary: BatchSummary) -> dict[str, _Asked | None]:
    """Return the requests of a batch by their ids; None for what cannot be replayed."""
    asked: dict[str, _Asked | None] = {}
    for where, line in _lines(path):
        try:
            request = _row(BatchRequest, line, where)
            twice = request.custom_id in asked
            asked[request.custom_id] = None
            if twice:  # nobody can say which of them was answered
                raise UserError(f"{where}: its custom_id stands in an earlier line, too.")
            digest = request_digest(request.conversation(where))
            asked[request.custom_id] = _Asked(request, digest)
        except UserError as error:
            summary.unreadable.append(str(error))
    if not asked and not summary.unreadable:
        raise UserError(f"{path} has no request: name the file that was sent as the batch.")
    return asked


@dataclass(slots=True)
class _Batch:
    """A batch while its results are read."""

    results: str
    requests: str
    asked: Mapping[str, _Asked | None]
    summary: BatchSummary
    rows: list[RecordedReply] = field(default_factory=list[RecordedReply])
    draws: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    waiting: set[str] = field(default_factory=set[str])
    """Requests without a result."""
    answered: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.waiting = {id for id, asked in self.asked.items() if asked}

    def add(self, where: str, line: str) -> None:
        """Record the replies of a result; count it where it has none, or cannot be read."""
        try:
            result = _row(BatchResult, line, where)
            self.waiting.discard(result.custom_id)
            if result.custom_id not in self.asked or result.custom_id in self.answered:
                raise UserError(f"{where}: {self.requests} has no such custom_id, or none more.")
            if asked := self.asked[result.custom_id]:  # else the request is named already
                self._add_replies(asked, result, where)
        except UserError as error:
            self.summary.unreadable.append(str(error))

    def _add_replies(self, asked: _Asked, result: BatchResult, where: str) -> None:
        endpoint, body = asked.request.endpoint, result.body
        place = f"{where}: response.body"
        replies = read_replies(endpoint, body, place) if endpoint and body is not None else []
        self.summary.errors += not replies
        rows = [self._reply_row(asked, reply, place) for reply in replies]
        self.rows += rows
        if rows:  # a call that failed may have been sent again
            self.answered.add(result.custom_id)
        self.summary.broken_off += [
            f"{where}: its finish_reason is {reply.failed_as!r}."
            for reply in replies
            if reply.failed_as
        ]

    def _reply_row(self, asked: _Asked, reply: BatchReply, place: str) -> RecordedReply:
        model = str(asked.request.body.get("model") or reply.model)
        if not model:
            raise UserError(f"{place}: model: it is absent here and in the request.")
        worker = re.sub(r"[^A-Za-z0-9._-]+", "-", model.rpartition("/")[2]).lstrip("._-") or "model"
        self.draws[worker, asked.digest] += 1
        counts = {name: getattr(reply.usage, name, None) for name in RecordedTokens.model_fields}
        return RecordedReply(
            worker=worker,
            digest=asked.digest,
            epoch=self.draws[worker, asked.digest],
            occurrence=0,
            text=reply.text,
            usage=RecordedTokens.model_validate(counts) if reply.usage else None,
            model=model if "/" in model else f"openai/{model}",
            stop_reason=reply.stop,
            question=asked.request.custom_id,
            source=self.results,
        )
