"""Raw LiveCodeBench rows in any form: JSONL, gzipped JSONL, or CSV with the hub's columns.

Only plain JSONL can be read at an offset, so the other forms are first written out as that, to a
temporary folder that lasts as long as the process.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import UserError
from harness.files import Limited, dicts_of_csv, lines_of, open_text
from suites.livecodebench_rows import Index, indexed, note_places, one_pass

BLOCK = 1 << 20
"""Bytes unzipped at a time."""

_SPOOLS: list[TemporaryDirectory[str]] = []
"""Kept until the process ends, when each removes itself."""


def raw_rows(path: Path) -> Index:
    """Return the index of a file of raw rows; UserError when it has others or cannot be read."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix == ".csv":
        index = _written_out(path, _csv_lines(path))
    elif path.suffix == ".gz":
        index = _written_out(path, _unzipped(path))
    else:
        index = indexed(path)
    if not index.entries:
        raise UserError(f"{path} has no rows.")
    return index


def _written_out(path: Path, lines: Iterator[bytes]) -> Index:
    spool = TemporaryDirectory(prefix="podium-rows-")
    _SPOOLS.append(spool)
    plain = Path(spool.name) / "rows.jsonl"
    with plain.open("wb") as file:
        file.writelines(lines)
    stat = path.stat()
    index = one_pass(plain, (str(path), stat.st_size, stat.st_mtime_ns), path)
    note_places(index, plain)
    return index


def _unzipped(path: Path) -> Iterator[bytes]:
    try:
        with Limited(gzip.open(path, "rb"), path.stat().st_size) as file:
            while block := file.read(BLOCK):
                yield block
    except (ValueError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} cannot be unzipped ({error}).") from error


def _csv_lines(path: Path) -> Iterator[bytes]:
    try:
        with open_text(path) as file:
            for _, row in dicts_of_csv(lines_of(file)):
                yield json.dumps(row).encode() + b"\n"
    except (ValueError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} cannot be read as CSV ({error}).") from error
