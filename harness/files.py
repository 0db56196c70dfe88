"""Read untrusted TOML, JSON, CSV and zip files within size limits; write files safely."""

import csv
import gzip
import io
import json
import os
import re
import stat
import sys
import tomllib
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from io import BufferedReader, BytesIO, RawIOBase
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NoReturn, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.records import Question

if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
    import zstandard

    BROKEN = (zstandard.ZstdError, zlib.error)
else:
    from compression import zstd

    BROKEN = (zstd.ZstdError, zlib.error)

MIB, GIB = 1 << 20, 1 << 30
SETTINGS = 4 * MIB  # a pool, a price book, a config, cards, a key: the largest has 12 kB
DOCUMENT = 2 * GIB  # A JSON file that is read whole: a manifest of 10 million samples fits
LINE = 512 * MIB  # a line of JSON Lines or CSV: a program's hidden tests are a field of 100 MB
MEMBER = 4 * GIB  # A member of an archive: one question with all calls that were made for it
SMALL = 64 * MIB  # unpacked bytes of a member allowed at any ratio; of an archive, four times that
RATIO = 250  # maximum ratio of unpacked to packed bytes, above `SMALL`
MEMBERS = 2_000_000
PIECE = 1 * MIB  # Bytes that are unpacked at a time
ZSTD = 93


class TooLarge(ValueError):
    """A file, or its unpacked content, is larger than the limit for this kind of file."""


def regular_size(path: Path) -> int:
    """Return the size of a regular file; UserError for a directory, a pipe or a device."""
    # Opening a pipe waits for ever, and `/dev/zero` has no end.
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise UserError(f"{path} is {kind}; name a file.")
    return status.st_size


def refuse_absent(path: Path) -> None:
    """Raise UserError if `path` does not exist or is a directory."""
    if path.is_dir():
        raise UserError(f"{path} is a directory; name a file.")
    if not path.is_file():
        raise UserError(f"There is no file {path}; name an existing file.")


def read_limited(path: Path, limit: int) -> bytes:
    """Return a regular file's content; UserError if it has more than `limit` bytes."""
    if regular_size(path) <= limit:
        with path.open("rb") as file:
            content = file.read(limit + 1)  # it may have grown, and files of /proc have no size
        if len(content) <= limit:
            return content
    raise UserError(
        f"{path} is larger than {format_bytes(limit)}, the maximum for this kind of file. Name "
        "a smaller file."
    )


def format_bytes(size: int) -> str:
    """Return a number of bytes as text with a unit.

    >>> format_bytes(4 << 20), format_bytes(5_000_000_000)
    ('4 MiB', '4.7 GiB')
    """
    if size < MIB:
        return f"{size:,} bytes"
    value, unit = (size / GIB, "GiB") if size >= GIB else (size / MIB, "MiB")
    return f"{value:,.1f}".removesuffix(".0") + f" {unit}"


def refuse_bomb(archive: zipfile.ZipFile, size: int) -> None:
    """Raise TooLarge if a zip archive of `size` bytes states too many or too large members."""
    infos = archive.infolist()
    if len(infos) > MEMBERS:
        raise TooLarge(f"it has {len(infos):,} members")
    for info in infos:
        refuse_member(info)
    total = sum(info.file_size for info in infos)
    if total > max(4 * SMALL, RATIO * size):
        raise TooLarge(f"{format_bytes(size)} would unpack to {format_bytes(total)}")


def refuse_member(info: zipfile.ZipInfo) -> None:
    """Raise TooLarge if the unpacked size that a zip archive states for a member is too large."""
    if info.file_size > MEMBER or info.file_size > max(SMALL, RATIO * info.compress_size):
        packed, unpacked = format_bytes(info.compress_size), format_bytes(info.file_size)
        raise TooLarge(f"{info.filename[:80]}: {packed} would unpack to {unpacked}")


def inflate(packed: bytes, method: int, size: int) -> bytes:
    """Return a zip member's unpacked bytes; TooLarge above `size` bytes, `BROKEN` if damaged."""
    return b"".join(_counted(packed, method, size))


def _counted(packed: bytes, method: int, size: int) -> Iterator[bytes]:
    for piece in _pieces(packed, method):
        size -= len(piece)
        if size < 0:
            raise TooLarge("it unpacks to more bytes than its index states")
        yield piece


def _pieces(packed: bytes, method: int) -> Iterator[bytes]:
    if method == zipfile.ZIP_STORED:
        yield packed
    elif method == zipfile.ZIP_DEFLATED:
        unpacker, remaining = zlib.decompressobj(-15), packed
        while remaining and not unpacker.eof:
            yield unpacker.decompress(remaining, PIECE)
            remaining = unpacker.unconsumed_tail
        yield unpacker.flush()
    elif method == ZSTD:
        yield from _unzstd(packed)
    else:
        raise NotImplementedError(f"compressed by method {method}")


if sys.version_info < (3, 14):

    def _unzstd(packed: bytes) -> Iterator[bytes]:
        """Yield the unpacked data of all zstd frames; Inspect begins a new frame every 200 MiB."""
        unpacker = zstandard.ZstdDecompressor()
        with unpacker.stream_reader(packed, read_across_frames=True) as reader:
            while piece := reader.read(PIECE):
                yield piece

else:

    def _unzstd(packed: bytes) -> Iterator[bytes]:
        """Yield the unpacked data of all zstd frames; Inspect begins a new frame every 200 MiB."""
        remaining = packed
        while remaining:
            unpacker = zstd.ZstdDecompressor()
            piece = unpacker.decompress(remaining, PIECE)
            while piece or not (unpacker.eof or unpacker.needs_input):
                yield piece
                piece = unpacker.decompress(b"", PIECE) if not unpacker.eof else b""
            remaining = unpacker.unused_data


def member_bytes(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """Return a zip member's bytes; ValueError if they do not match the archive's index."""
    refuse_member(info)
    head, packed = _packed(file, info)
    if head[:4] != b"PK\x03\x04":
        raise ValueError("it does not begin where the index says")
    data = inflate(packed, info.compress_type, info.file_size)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("its size or checksum does not match the index")
    return data


def _packed(file: BinaryIO, info: zipfile.ZipInfo) -> tuple[bytes, bytes]:
    file.seek(info.header_offset)
    head = file.read(30)
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    return head, file.read(info.compress_size)


def refuse_false_sizes(path: Path, accept: Callable[[str], bool] = bool) -> None:
    """Unpack zip members that `accept` allows, as a check; TooLarge if larger than they state."""
    size = regular_size(path)
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        refuse_bomb(archive, size)
        for info in archive.infolist():
            if not accept(info.filename):
                continue
            deque(_counted(_packed(file, info)[1], info.compress_type, info.file_size), maxlen=0)


def unpack_gzip(content: bytes) -> bytes:
    """Unpack the bytes of a .gz file; TooLarge above the size limit, gzip's errors if damaged."""
    stream = Limited(gzip.GzipFile(fileobj=BytesIO(content)), len(content))
    return BufferedReader(stream, PIECE).read()


class Limited(RawIOBase):
    """A stream that unpacks a file (.gz); reading raises TooLarge if it yields too many bytes."""

    def __init__(self, stream: Any, packed: int) -> None:
        """Store an unpacking stream; its limit grows with the packed file's size in bytes."""
        self._stream, self._left = stream, max(4 * SMALL, RATIO * packed)

    def readable(self) -> bool:
        """Return True: the stream can be read, as `io.RawIOBase` asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with unpacked bytes and return their number; TooLarge above the limit."""
        count = self._stream.readinto(buffer) or 0
        self._left -= count
        if self._left < 0:
            raise TooLarge("it would unpack to far more than a file of its kind")
        return count

    def close(self) -> None:
        """Close this stream and the unpacking stream inside."""
        self._stream.close()
        super().close()


DEEP = "brackets are nested too deeply"
DOTS = 100  # maximum parts of a dotted key in TOML: its reader takes quadratic time
DIGITS = 400  # maximum characters of a number: a token count has 10, an amount in dollars 30


def parse_toml(content: str | bytes) -> dict[str, Any]:
    """Return a TOML text's tables, ignoring a byte order mark; ValueError if it is invalid."""
    text = _text(content)
    if any(line.partition("=")[0].count(".") > DOTS for line in text.splitlines()):
        raise ValueError(f"a key has more than {DOTS} parts")
    return _plainly(tomllib.loads, text, parse_float=_finite)


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's tables; UserError as `read_limited`, ValueError if it is invalid."""
    return parse_toml(read_limited(path, SETTINGS))


def parse_json(
    content: str | bytes, parse_float: Callable[[str], Any] | None = None
) -> Any:  # JSON may be of any type
    """Return a JSON text's value; ValueError if invalid, or for NaN, Infinity and huge numbers."""
    numbers = {"parse_float": parse_float or _finite, "parse_constant": _no_constant}
    return _plainly(json.loads, _text(content), **numbers)


def _text(content: str | bytes) -> str:
    return content.decode("utf-8-sig") if isinstance(content, bytes) else content


def _plainly(read: Callable[..., Any], text: str, **options: Callable[[str], Any]) -> Any:
    """Return `read(text)`; its errors become ValueErrors with a message for users."""
    try:
        return read(text, **options)
    except RecursionError:
        raise ValueError(DEEP) from None
    except ValueError as error:
        message = first_line(error)
        digits = "integer string conversion" in message
        raise ValueError("a number has thousands of digits" if digits else message) from None


def json_with_nan(content: bytes) -> Any:
    """Parse JSON that may contain NaN, as in Inspect's logs."""
    return _plainly(json.loads, _text(content))


def json_lines(path: Path) -> list[bytes]:
    """Return the lines of a JSON Lines file, without line breaks; OSError if it cannot be read."""
    # `str.splitlines` would also split at U+2028 and the like, which JSON texts may hold.
    return path.read_bytes().splitlines()


def read_json(path: Path) -> Any:
    """Return a JSON file's value; UserError as `read_limited`, ValueError as `parse_json`."""
    return parse_json(read_limited(path, DOCUMENT))


def rows_of_csv(lines: Iterator[str], *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the row's last line, from 1; row) for each row of a CSV text."""
    csv.field_size_limit(LINE)
    table = csv.reader(lines, strict=strict)
    try:
        for row in table:
            yield table.line_num, row
    except csv.Error as error:
        raise ValueError(first_line(error)) from error


def dicts_of_csv(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (last line number, {column: value}) for each row of CSV; None for missing values."""
    rows = rows_of_csv(lines, strict=True)
    names = next((row for _, row in rows if row), list[str]())
    if twice := next((name for name, times in Counter(names).items() if name and times > 1), None):
        raise ValueError(f"its column {twice[:80]} appears twice")
    for number, row in rows:
        if row:
            yield number, dict(zip_longest(names, row[: len(names)]))


def lines_of(file: io.TextIOBase, longest: int = LINE) -> Iterator[str]:
    """Yield the lines of a text file; TooLarge if a line has `longest` characters or more."""
    while line := file.readline(longest):
        if len(line) == longest:
            raise TooLarge(f"a line is longer than {format_bytes(longest)}")
        yield line


def decimal_of(text: str) -> Decimal:
    """Return a text as a Decimal; ValueError if it is not finite or has too many digits.

    >>> decimal_of("0.5")
    Decimal('0.5')
    """
    try:
        value = Decimal(text) if len(text) <= DIGITS else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or (value and abs(value.adjusted()) > DIGITS):
        raise ValueError(f"{text[:40]!r} is not a number that podium can calculate with")
    return value


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 300 characters."""
    message = str(error).strip() or type(error).__name__
    return re.split(r"[\r\n]", message, maxsplit=1)[0][:300]


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


JsonRow: TypeAlias = dict[str, Any]
RowT = TypeVar("RowT", bound=BaseModel)
ZIP = ".gz"
FIX = "Correct it, or fetch the file again."


def read_rows(path: Path) -> Generator[tuple[int, JsonRow]]:
    """Yield (line number from 1, row) of a CSV or JSON Lines file; blank lines are skipped.

    `name.csv` and `name.csv.gz` are CSV with a header, any other name is JSON Lines. UserError if
    the file is missing or is not text, or a line is not a JSON object.
    """
    refuse_absent(path)
    kind = "CSV" if path.name.removesuffix(ZIP).endswith(".csv") else "JSON Lines"
    try:
        with open_text(path) as lines:
            yield from dicts_of_csv(lines_of(lines)) if kind == "CSV" else _jsonl(lines, path)
    except (ValueError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read as {kind} in UTF-8: {error}. {FIX}") from error


def check_rows(model: type[RowT], path: Path) -> Iterator[RowT]:
    """Yield a file's rows, validated as `model`; UserError names file, line and wrong field."""
    for line, row in read_rows(path):
        yield check_row(model, row, f"{path}, line {line}")


def check_row(model: type[RowT], row: object, place: str) -> RowT:
    """Return a row, validated as `model`; UserError names its place and the first wrong field."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        field, problem = first_fault(error)
        raise UserError(f"{place}: {field or 'it'}: {problem}. {FIX}") from None


def plain_or_packed(path: Path) -> Path:
    """Return the path of a text file: `path`, or `path` with `.gz` added if only that exists."""
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() and not path.is_file() else path


def read_questions(path: Path, make: Callable[[JsonRow, str], Question]) -> list[Question]:
    """Return a question for each row of a file; `make` builds it from (row, "FILE, line N").

    Raises UserError as `read_rows` does, and if there are no rows.
    """
    questions = [make(row, f"{path}, line {number}") for number, row in read_rows(path)]
    if not questions:
        raise UserError(f"{path} has no rows. Name a file with at least one row.")
    return questions


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a text file, unpacked if its name ends in .gz; the caller closes it."""
    if path.suffix == ZIP:
        packed = gzip.open(path, "rb")  # noqa: SIM115 - the caller closes it
        file = BufferedReader(Limited(packed, path.stat().st_size), PIECE)
    else:
        file = path.open("rb")
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def _jsonl(lines: io.TextIOWrapper, path: Path) -> Generator[tuple[int, JsonRow]]:
    for number, line in enumerate(lines_of(lines), start=1):
        if not line.strip():
            continue
        try:
            row: object = parse_json(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number} is not JSON: {error}. {FIX}") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number} is not a JSON object. {FIX}")
        yield number, cast(JsonRow, row)


def refuse_unwritable_file(out: Path, option: str) -> None:
    """Raise UserError if file `out` cannot be written: a directory, a pipe, a broken link, ..."""
    refuse_no_file(out, f"name another {option}")
    refuse_unwritable(out.parent, option)


def refuse_other_suffix(out: Path, option: str, suffix: str) -> None:
    """Raise UserError if the file that an option names does not end in `suffix`."""
    if out.suffix != suffix:
        raise UserError(f"{option} needs a file that ends in {suffix}, not {out}.")


def not_overwritten(out: Path, writer: str, option: str) -> UserError:
    """Return the error for an existing file that `writer` ("podium", "a gate") did not write."""
    return UserError(
        f"{out} exists and was not written by {writer}, so it is not overwritten. Name another "
        f"{option}."
    )


def refuse_no_file(out: Path, fix: str) -> None:
    """Raise UserError, with the fix, if `out` is a directory, a pipe, a device or a broken link."""
    # A pipe waits for a reader, `/dev/zero` has no end, and a link could be changed meanwhile.
    try:
        mode = out.stat().st_mode
    except FileNotFoundError:
        if out.is_symlink():
            raise UserError(f"{out} is a link to a missing file; {fix}.") from None
        return
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long or invalid
        reason = error.strerror if isinstance(error, OSError) else first_line(error)
        raise UserError(f"{out} cannot be written ({reason}); {fix}.") from None
    if stat.S_ISDIR(mode):
        raise UserError(f"{out} is a directory; {fix}.")
    if not stat.S_ISREG(mode):
        raise UserError(f"{out} is not a regular file; {fix}.")


def refuse_unwritable(out: Path, option: str) -> None:
    """Raise UserError if directory `out` cannot be made or written to; no file is left in it."""
    for link in (path for path in (out, *out.absolute().parents) if path.is_symlink()):
        if not link.exists():  # a loop of links does not exist, either
            raise UserError(f"{link} is a link to a missing file; name another {option}.")
    place = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise UserError(f"{place} is not a directory; name another {option}.")
    try:
        with TemporaryFile(dir=place):
            pass
    except OSError:
        raise UserError(f"{place} is not writable; name another {option}.") from None


SCRATCH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags to open a temporary file: links are not followed, and opening a pipe does not wait."""


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file and rename it to `path`; keep the mode of an old file."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        handle = os.open(scratch, SCRATCH, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        with suppress(FileNotFoundError):
            scratch.chmod(stat.S_IMODE(path.stat().st_mode))
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def cache_folder() -> Path:
    """Return podium's folder below the user's cache (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium"
