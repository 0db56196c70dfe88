"""Find LiveCodeBench rows in files of gigabytes: read once, remembered, then reached by offset.

One pass over a file takes its sha256, checks every row's tests, and notes where each row lies. What
it finds is kept in podium's cache folder for as long as the file has the same size and time, so
later runs read neither the file nor its tests until a program is graded: then one row is read.

A question carries only the digest of its tests (a log with tests would have gigabytes); `PLACES`
says where the row with that digest lies, for every file that this process has indexed.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UserError
from harness.files import parse_json
from suites.fetch import cache_folder
from suites.livecodebench_tests import digest_of, program_tests, public_cases
from suites.programs import ProgramTests

FIELDS = (
    "question_id",
    "question_title",
    "question_content",
    "platform",
    "contest_date",
    "starter_code",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
    "metadata",
)
"""What a raw row has and podium reads; all are strings."""

FORMAT = 1
"""Version of the remembered indexes."""


class Entry(BaseModel):
    """One problem without its hidden tests, and where its row lies."""

    model_config = ConfigDict(frozen=True)

    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str
    """A naive ISO date and time, as on the hub."""
    starter_code: str
    difficulty: str
    public: tuple[tuple[str, str], ...]
    """Input and output of each test that the statement shows."""
    method: str | None
    tests: int
    """How many there are, public and private."""
    digest: str
    offset: int
    length: int


class Index(BaseModel):
    """What one pass over a file found."""

    model_config = ConfigDict(frozen=True)

    format: int
    path: str
    size: int
    """Bytes."""
    mtime_ns: int
    sha256: str
    entries: tuple[Entry, ...]


class Place(BaseModel):
    """Where the row with some digest lies."""

    model_config = ConfigDict(frozen=True)

    path: Path
    offset: int
    length: int


PLACES: dict[str, Place] = {}
"""By digest, so an entry of one file can never serve another's tests."""

_INDEXES: dict[tuple[str, int, int], Index] = {}
_ONE_PASS = Lock()
"""Grading threads that need the same file wait for one pass instead of each making its own."""


def indexed(path: Path) -> Index:
    """Return the index of a JSONL file; UserError names the first line that is no good row."""
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    with _ONE_PASS:
        index = _INDEXES.get(key) or _remembered(key) or _remember(one_pass(path, key))
        _INDEXES[key] = index
        note_places(index, path)
    return index


def find_tests(digest: str, question_id: str) -> ProgramTests | None:
    """Return the tests with this digest, None when no indexed file has them.

    UserError when the file has changed since it was indexed.
    """
    place = PLACES.get(digest)
    if place is None:
        return None
    changed = f"{place.path} changed while it was in use: the tests of {question_id} are not there."
    try:
        with place.path.open("rb") as file:
            file.seek(place.offset)
            row = cast(dict[str, Any], json.loads(file.read(place.length)))
        if digest_of(row) != digest:
            raise UserError(changed)
        return program_tests(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(changed) from error


def one_pass(path: Path, key: tuple[str, int, int], shown: Path | None = None) -> Index:
    """Read a whole file once, a line at a time; `shown` is the name that messages give it."""
    digest, entries, offset = hashlib.sha256(), list[Entry](), 0
    seen = set[str]()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            digest.update(line)
            if line.strip():
                entry = _entry(line, offset, f"{shown or path}, line {number}")
                if entry.question_id in seen:
                    raise UserError(f"{shown or path} has question {entry.question_id} twice.")
                seen.add(entry.question_id)
                entries.append(entry)
            offset += len(line)
    return Index(
        format=FORMAT,
        path=key[0],
        size=key[1],
        mtime_ns=key[2],
        sha256=digest.hexdigest(),
        entries=tuple(entries),
    )


def _entry(line: bytes, offset: int, where: str) -> Entry:
    row = _row(line, where)
    try:
        if datetime.fromisoformat(row["contest_date"]).tzinfo is not None:
            raise ValueError("its contest_date has a time zone")
        tests = program_tests(row)
        public = tuple((case.input, case.output) for case in public_cases(row))
    except ValueError as error:
        raise UserError(
            f"{where}: question {row['question_id']} cannot be used: {error}."
        ) from error
    return Entry.model_validate(
        {
            **{field: row[field] for field in FIELDS if field in Entry.model_fields},
            "public": public,
            "method": tests.method,
            "tests": len(tests.cases),
            "digest": digest_of(row),
            "offset": offset,
            "length": len(line),
        }
    )


def _row(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row: object = parse_json(line)
    except ValueError:
        raise UserError(f"{where} is no JSON object.") from None
    if not isinstance(row, dict):
        raise UserError(f"{where} is no JSON object.")
    found = cast(dict[str, Any], row)
    for field in FIELDS:
        if not isinstance(found.get(field), str):
            raise UserError(f"{where} is no raw LiveCodeBench row: {field} is missing or no text.")
    return found


def note_places(index: Index, path: Path) -> None:
    """Make the tests of an index findable; a dictionary takes each by itself, so needs no lock."""
    for entry in index.entries:
        PLACES[entry.digest] = Place(path=path.absolute(), offset=entry.offset, length=entry.length)


# --- remembering ------------------------------------------------------------------------------


def _memory(name: str) -> Path:
    return cache_folder() / "livecodebench" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"


def _remembered(key: tuple[str, int, int]) -> Index | None:
    """Return what an earlier run found, unless the file is another one by now."""
    try:
        index = Index.model_validate_json(_memory(key[0]).read_bytes())
    except (OSError, ValidationError):
        return None
    same = (index.path, index.size, index.mtime_ns) == key and index.format == FORMAT
    return index if same else None


def _remember(index: Index) -> Index:
    """Keep an index for later runs; where that cannot be written, they pay for a pass again."""
    path = _memory(index.path)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(index.model_dump_json(), encoding="utf-8")
        new.replace(path)
    return index
