"""A cassette: recorded replies of real models as a JSONL file, one reply a line after a header.

A reply is keyed by worker, request and replicate (harness/replicate.py); what was not recorded is
a `CassetteMiss`, never a guess. Replies that were published without their prompt are marked
`prompt_recorded: false` and filed under the canonical single-worker request alone.
Not here: replaying (harness/recorded.py) and recording (harness/record.py).
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from inspect_ai.model import StopReason
from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import CassetteMiss, UserError
from harness.file_limits import DOCUMENT, read_limited
from harness.parsing import parse_json
from harness.replicate import Replicate

IMPORTERS: dict[str, Callable[[], Path]] = {}
"""Cassettes made on demand from published data: name -> function that returns the file's path.

The plug point for suites/_registry.py, because the hub may not import a spoke. Inspect loads every
registry of ours before it makes the first model, so the table is full whenever it is read.
"""

SourceLabel = Literal["live", "rehearsal"]

Key = tuple[str, str, int, int]
"""Worker, request digest, epoch, occurrence."""


class Tokens(BaseModel):
    """Usage as recorded; the fields of `harness.records.Usage`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None
    """None when the source did not tell it apart: unknown, not zero."""


class Header(BaseModel):
    """The first line: what the file is and what it was made from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    podium_cassette: Literal[1] = 1
    """Schema version."""
    created_from: tuple[str, ...]
    """File names of the sources."""
    source_sha256: tuple[str, ...]
    source_label: SourceLabel
    """Who replied: models of real providers (`live`), or podium's own practice workers."""
    note: str = ""


class Row(BaseModel):
    """One recorded reply."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    worker: str
    digest: str
    """`request_digest` of the messages that were sent."""
    epoch: int
    occurrence: int
    text: str
    usage: Tokens | None
    """None when the provider reported none: unknown, not zero."""
    model: str
    stop_reason: StopReason = "unknown"
    question: str | None = None
    prompt_recorded: bool = True
    """False when the source kept no prompt: the request is then assumed to be the canonical one."""
    source: str

    @property
    def key(self) -> Key:
        """What the row answers."""
        return (self.worker, self.digest, self.epoch, self.occurrence)


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette in memory."""

    name: str
    header: Header
    rows: Mapping[Key, Row]
    sha256: str

    @property
    def workers(self) -> tuple[str, ...]:
        """The recorded workers, in order of first appearance."""
        return tuple(dict.fromkeys(row.worker for row in self.rows.values()))

    @property
    def epochs(self) -> int:
        """How many epochs were recorded."""
        return max((row.epoch for row in self.rows.values()), default=0)

    @property
    def prompts_recorded(self) -> bool:
        """True when every reply was recorded with its request, so that any system may ask."""
        return all(row.prompt_recorded for row in self.rows.values())

    def lookup(self, worker: str, digest: str, replicate: Replicate) -> Row:
        """Return the recorded reply; `CassetteMiss` when there is none."""
        row = self.rows.get((worker, digest, replicate.epoch, replicate.occurrence))
        if row is None:
            raise CassetteMiss(self._missing(worker, digest, replicate))
        return row

    def _missing(self, worker: str, digest: str, replicate: Replicate) -> str:
        drawn = sum(key[:2] == (worker, digest) for key in self.rows)
        wanted = f"epoch {replicate.epoch}, repetition {replicate.occurrence + 1}"
        kept = (
            f"{drawn} other {'reply' if drawn == 1 else 'replies'} to it" if drawn else "none to it"
        )
        return (
            f"Cassette {self.name} has no reply of {worker} to this request ({digest[:12]}, "
            f"{wanted}; it holds {kept}): ask only what was recorded, or record a new cassette."
        )


def open_cassette(name: str) -> Cassette:
    """Open a cassette by path (`*.jsonl`) or by the name of an importer, which may make it first.

    UserError names the known ones, a missing file, or the line that cannot be read.
    """
    if name.endswith(".jsonl"):
        path = Path(name).expanduser()
    elif name in IMPORTERS:
        path = IMPORTERS[name]()
    else:
        known = ", ".join(sorted(IMPORTERS)) or "none"
        raise UserError(
            f"There is no cassette {name!r}; give the path of a .jsonl file, or one of: {known}."
        )
    if not path.is_file():
        raise UserError(f"There is no cassette file {path}; make one with `podium record`.")
    return _read(name, path, path.stat().st_mtime_ns)


def read_cassette(path: Path) -> Cassette:
    """Read a cassette file; UserError names the line that cannot be read."""
    return open_cassette(str(path))


def write_cassette(path: Path, header: Header, rows: Iterable[Row]) -> None:
    """Write a cassette whole or not at all; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [header.model_dump_json(), *(row.model_dump_json() for row in rows)]
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unfinished.replace(path)


@lru_cache(maxsize=8)
def _read(name: str, path: Path, modified: int) -> Cassette:
    """Read a file once for all workers that share it; `modified` makes a changed file a new one."""
    content = read_limited(path, DOCUMENT)
    first, *rest = content.split(b"\n")
    try:
        header = Header.model_validate_json(first)
    except ValidationError as error:
        raise UserError(
            f"{path} is no cassette of this version of podium: its first line must be a header "
            '{"podium_cassette": 1, "source_label": ...}.'
        ) from error
    rows: dict[Key, Row] = {}
    for number, line in enumerate(rest, start=2):
        if not line.strip():
            continue
        try:
            row = Row.model_validate(parse_json(line))
        except (ValidationError, ValueError) as error:
            reason = f"{error}".splitlines()[0]
            raise UserError(f"Cassette {path}, line {number}, is damaged: {reason}.") from error
        if row.key in rows:
            raise UserError(f"Cassette {path}, line {number}, repeats the key of an earlier line.")
        rows[row.key] = row
    return Cassette(name, header, rows, hashlib.sha256(content).hexdigest())
