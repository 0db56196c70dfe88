"""Inspect logs without Inspect's data model: zip, zstd and JSON, twenty times as fast.

A million calls cannot pass through pydantic in a minute. Everything that only reads a log (report,
audit, export) reads it here, one sample at a time; what changes a log goes through Inspect.
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError

if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401  # pyright: ignore[reportUnusedImport] - teaches zipfile zstd

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawLog:
    """An open `.eval` file."""

    path: Path
    header: Json
    """As `EvalLog` names it: version, status, eval, plan, results, stats, error, ...; what a run
    that was killed had written: `eval` and `plan`."""
    zip: zipfile.ZipFile

    def samples(self) -> Iterator[Json]:
        """Yield the samples as `EvalSample` names their fields, one at a time, in file order."""
        for name in self.zip.namelist():
            if name.startswith("samples/"):
                yield _json(self.zip.read(name), self.path, name)


@contextmanager
def open_log(path: Path) -> Iterator[RawLog]:
    """Open an `.eval` file; UserError names one that is damaged or no Inspect log."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise _damaged(path, str(error)) from error
    with archive:
        names = set(archive.namelist())
        found = next((one for one in ("header.json", "_journal/start.json") if one in names), None)
        if found is None:
            raise _damaged(path, "it has no header")
        yield RawLog(path, _json(archive.read(found), path, found), archive)


def _json(data: bytes, path: Path, name: str) -> Json:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:  # Inspect writes "unscored" as NaN, which only Python's own reader takes
        return json.loads(data)
    except ValueError as error:
        raise _damaged(path, f"{name}: {error}") from error


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"{path} is damaged or no Inspect log ({why}); move it away and try again.")
