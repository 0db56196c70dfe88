"""Inspect logs without Inspect's data model: zip, zstd and JSON, twenty times as fast.

A million calls cannot pass through pydantic in a minute. Everything that only reads a log (report,
audit, export) reads it here, one sample at a time; what changes a log goes through Inspect.
What the calls in a sample are is harness/ledger/events.py.
"""

import json
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from harness.errors import UserError

if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
    import zstandard

    def unzstd(data: bytes, size: int) -> bytes:
        """Return decompressed bytes; Inspect begins a new frame every 200 MiB of a sample."""
        if size <= ONE_FRAME:
            whole = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
            if len(whole) == size:
                return whole
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return reader.read(size)

    BROKEN = (zstandard.ZstdError, zlib.error)
else:
    from compression import zstd

    def unzstd(data: bytes, size: int) -> bytes:
        """Return decompressed bytes, of all frames."""
        return zstd.decompress(data)[:size]

    BROKEN = (zstd.ZstdError, zlib.error)

ONE_FRAME = 64 << 20
"""What is larger is read piece by piece: a file's word on its size is no reason to take memory."""
ZSTD = 93
HEADERS = ("header.json", "_journal/start.json")
"""A run that ended has the first one; one that was killed, or still runs, only the second."""
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
        file = path.open("rb")
    except OSError as error:
        raise damaged(path, str(error)) from error
    with file:
        try:
            archive = zipfile.ZipFile(file)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
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
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def damaged(path: Path, why: str) -> UserError:
    """Return the error that names a file nobody can read."""
    said = why.splitlines()[0][:200] if why else "unreadable"
    return UserError(f"{path} is damaged or no Inspect log ({said}); move it away and try again.")


def _parsed(path: Path, file: BinaryIO, info: zipfile.ZipInfo) -> Json:
    try:
        data = _loads(_member(file, info))
    except (OSError, ValueError, NotImplementedError, MemoryError, *BROKEN) as error:
        raise damaged(path, f"{info.filename}: {error}") from error
    if not isinstance(data, dict):
        raise damaged(path, f"{info.filename} holds no object")
    return cast(Json, data)


def _loads(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)  # takes the NaN that Inspect writes for an unscored sample


def _member(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """Return one member's bytes: what `ZipFile.read` does, without its stream and over frames."""
    file.seek(info.header_offset)
    head = file.read(30)
    if head[:4] != b"PK\x03\x04":
        raise ValueError("it does not begin where the index says")
    skipped = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    file.seek(skipped, 1)
    packed = file.read(info.compress_size)
    if info.compress_type == ZSTD:
        data = unzstd(packed, info.file_size)
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        data = zlib.decompress(packed, -15)
    elif info.compress_type == zipfile.ZIP_STORED:
        data = packed
    else:
        raise NotImplementedError(f"compressed by method {info.compress_type}")
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("its bytes are not those that were written")
    return data
