"""Inspect logs without Inspect's data model: zip, zstd and JSON, twenty times as fast.

A million calls cannot pass through pydantic in a minute. Everything that only reads a log (report,
audit, export) reads it here, one sample at a time; what changes a log goes through Inspect.
What the calls in a sample are is harness/ledger/events.py.
"""

import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from harness.errors import UserError
from harness.file_limits import BROKEN, member_bytes, refuse_bomb, refuse_false_sizes, regular
from harness.parsing import json_with_nan

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
    """An open `.eval` file."""

    path: Path
    header: Json
    """As `EvalLog` names it: version, status, eval, plan, results, stats, error, ...; what a run
    that was killed had written: `eval` and `plan`."""
    zip: zipfile.ZipFile
    file: BinaryIO = field(repr=False)

    def samples(self) -> Iterator[Json]:
        """Yield the samples as `EvalSample` names their fields, one at a time, in file order.

        Of a sample that was written twice the last one counts, as for every reader of zip files.
        """
        for name, info in self.zip.NameToInfo.items():
            if name.startswith("samples/") and name.endswith(".json"):
                yield _parsed(self.path, self.file, info)


@contextmanager
def open_log(path: Path) -> Generator[RawLog]:
    """Open an `.eval` file; UserError names one that is damaged or no Inspect log."""
    try:
        size = regular(path)
        file = path.open("rb")
    except OSError as error:
        raise damaged(path, str(error)) from error
    with file:
        try:
            archive = zipfile.ZipFile(file)
            refuse_bomb(archive, size)
        except UNREADABLE as error:
            raise damaged(path, str(error)) from error
        with archive:
            names = archive.NameToInfo
            found = next((names[name] for name in HEADERS if name in names), None)
            if found is None:
                raise damaged(path, "it has no header")
            yield RawLog(path, _parsed(path, file, found), archive, file)


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Turn what a malformed log makes fail into a UserError that names the file."""
    try:
        yield
    except UNFOUNDED as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def refuse_oversized(path: Path, *, header_only: bool = False) -> None:
    """Raise UserError for a log that Inspect's readers had better not unpack.

    They take an archive at its word. What is unpacked here is counted and thrown away: of a log
    whose header alone is wanted, the members that go with it.
    """
    try:
        refuse_false_sizes(path, _is_of_header if header_only else bool)
    except UNREADABLE as error:
        raise damaged(path, str(error)) from error


def _is_of_header(name: str) -> bool:
    return not name.startswith("samples/")


def damaged(path: Path, why: str) -> UserError:
    """Return the error that names a file nobody can read."""
    said = why.splitlines()[0][:200] if why.strip() else "unreadable"
    return UserError(f"{path} is damaged or no Inspect log ({said}); move it away and try again.")


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
