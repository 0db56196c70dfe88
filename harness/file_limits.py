"""How much a file that somebody else made may hold, and how an archive is unpacked within that.

Every ceiling stands here. Real files stay far below: a run of a million calls in 1,000 logs has
members of at most some megabytes, packed by a factor of 5 to 30; its MANIFEST.json has 130 bytes a
sample. What an archive says of its sizes is checked before anything is unpacked, and what comes out
is counted while it does, since an archive may lie. Whatever breaks a limit is a ValueError of one
line (`TooLarge`), so that readers name their file in a sentence of their own.
"""

import gzip
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import UserError

if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
    import zstandard

    BROKEN = (zstandard.ZstdError, zlib.error)
else:
    from compression import zstd

    BROKEN = (zstd.ZstdError, zlib.error)

MIB, GIB = 1 << 20, 1 << 30

SETTINGS = 4 * MIB
"""A pool, a price book, a training config, cards, a key: the largest that is shipped has 12 kB."""
DOCUMENT = 2 * GIB
"""A JSON file that is read whole: a manifest of 10 million samples fits."""
LINE = 512 * MIB
"""A line of JSON Lines or a row of CSV: a program's hidden tests are one field of 100 MB."""
MEMBER = 4 * GIB
"""A member of an archive: one question with all calls that were made for it."""
SMALL = 64 * MIB
"""So much may come out of a member, or of a whole archive four times, at any ratio: texts that
repeat themselves pack well, and this much harms nobody."""
RATIO = 250
"""Above that a member or an archive may be so many times as large as its packed bytes."""
MEMBERS = 2_000_000
PIECE = 1 * MIB
"""Bytes that are unpacked at a time."""
ZSTD = 93


class TooLarge(ValueError):
    """More than a file of its kind holds, or would unpack to."""


def regular(path: Path) -> int:
    """Return the size of a regular file; UserError for a directory, a pipe or a device.

    Opening a pipe waits for ever, and `/dev/zero` has no end. OSError as `stat` raises it.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise UserError(f"{path} is {kind}; name a file.")
    return found.st_size


def read_limited(path: Path, most: int) -> bytes:
    """Return a regular file's bytes; UserError when there are more than `most`."""
    size = regular(path)
    if size <= most:
        with path.open("rb") as file:
            content = file.read(most + 1)  # it may have grown, and files of /proc have no size
        if len(content) <= most:
            return content
    raise UserError(f"{path} has more than {amount(most)}, the most for a file of its kind.")


def amount(size: int) -> str:
    """Return a number of bytes in words.

    >>> amount(4 << 20), amount(5_000_000_000)
    ('4 MiB', '4.7 GiB')
    """
    if size < MIB:
        return f"{size:,} bytes"
    value, unit = (size / GIB, "GiB") if size >= GIB else (size / MIB, "MiB")
    return f"{value:,.1f}".removesuffix(".0") + f" {unit}"


def refuse_bomb(archive: zipfile.ZipFile, size: int) -> None:
    """Raise TooLarge, by what an archive of `size` bytes says of its members."""
    infos = archive.infolist()
    if len(infos) > MEMBERS:
        raise TooLarge(f"it has {len(infos):,} members")
    for info in infos:
        refuse_member(info)
    total = sum(info.file_size for info in infos)
    if total > max(4 * SMALL, RATIO * size):
        raise TooLarge(f"{amount(size)} would unpack to {amount(total)}")


def refuse_member(info: zipfile.ZipInfo) -> None:
    """Raise TooLarge, by what an archive says of one member."""
    if info.file_size > MEMBER or info.file_size > max(SMALL, RATIO * info.compress_size):
        packed, whole = amount(info.compress_size), amount(info.file_size)
        raise TooLarge(f"{info.filename[:80]}: {packed} would unpack to {whole}")


def inflated(packed: bytes, method: int, size: int) -> bytes:
    """Return a member's bytes, of which there should be `size`; TooLarge as soon as there are more.

    What `BROKEN` names is raised for damaged bytes, NotImplementedError for an unknown method.
    """
    if method == ZSTD and size <= SMALL:
        whole = _one_frame(packed, size)
        if len(whole) == size:
            return whole
    found = bytearray()
    for piece in _pieces(packed, method):
        found += piece
        if len(found) > size:
            raise TooLarge(f"it unpacks to more than the {size:,} bytes that it says")
    return bytes(found)


def _pieces(packed: bytes, method: int) -> Iterator[bytes]:
    if method == zipfile.ZIP_STORED:
        yield packed
    elif method == zipfile.ZIP_DEFLATED:
        yield from _deflated(packed)
    elif method == ZSTD:
        yield from _unzstd(packed)
    else:
        raise NotImplementedError(f"compressed by method {method}")


def _deflated(packed: bytes) -> Iterator[bytes]:
    unpacker, rest = zlib.decompressobj(-15), packed
    while rest and not unpacker.eof:
        yield unpacker.decompress(rest, PIECE)
        rest = unpacker.unconsumed_tail
    yield unpacker.flush()


if sys.version_info < (3, 14):

    def _one_frame(packed: bytes, size: int) -> bytes:
        """Return what the first frame holds at once, as nearly every member has one; or nothing.

        What a frame says of itself wins over a limit that is given, so it is asked first.
        """
        if zstandard.frame_content_size(packed) > size:
            return b""
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)

    def _unzstd(packed: bytes) -> Iterator[bytes]:
        """Yield what frames hold; Inspect begins a new one every 200 MiB of a sample."""
        unpacker = zstandard.ZstdDecompressor()
        with unpacker.stream_reader(packed, read_across_frames=True) as reader:
            while piece := reader.read(PIECE):
                yield piece

else:

    def _one_frame(packed: bytes, size: int) -> bytes:
        """Return what the first frame holds at once, as nearly every member has one."""
        return zstd.ZstdDecompressor().decompress(packed, size + 1)

    def _unzstd(packed: bytes) -> Iterator[bytes]:
        """Yield what frames hold; Inspect begins a new one every 200 MiB of a sample."""
        rest = packed
        while rest:
            unpacker = zstd.ZstdDecompressor()
            piece = unpacker.decompress(rest, PIECE)
            while piece or not (unpacker.eof or unpacker.needs_input):
                yield piece
                piece = unpacker.decompress(b"", PIECE) if not unpacker.eof else b""
            rest = unpacker.unused_data


def member_bytes(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """Return one member's bytes, checked against its size and sum: `ZipFile.read`, within limits.

    ValueError for a member that is not what the archive's index says.
    """
    refuse_member(info)
    file.seek(info.header_offset)
    head = file.read(30)
    if head[:4] != b"PK\x03\x04":
        raise ValueError("it does not begin where the index says")
    skipped = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    file.seek(skipped, 1)
    data = inflated(file.read(info.compress_size), info.compress_type, info.file_size)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("its bytes are not those that were written")
    return data


def refuse_false_sizes(path: Path, wanted: Callable[[str], bool] = bool) -> None:
    """Unpack members of an archive, those whose names are wanted, and keep nothing of them.

    For readers that are not ours and believe what an archive says of itself. ValueError for what
    breaks a limit or is damaged, OSError, `BROKEN` and BadZipFile as the readers raise them.
    """
    size = regular(path)
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        refuse_bomb(archive, size)
        for info in archive.infolist():
            if wanted(info.filename):
                _refuse_false(file, info)


def _refuse_false(file: BinaryIO, info: zipfile.ZipInfo) -> None:
    file.seek(info.header_offset + 26)
    sizes = file.read(4)
    skipped = int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little")
    file.seek(skipped, 1)
    found = 0
    for piece in _pieces(file.read(info.compress_size), info.compress_type):
        found += len(piece)
        if found > info.file_size:
            raise TooLarge(f"{info.filename[:80]} unpacks to more than it says")


def unpacked(content: bytes) -> bytes:
    """Return what a .gz file's bytes hold, within limits; errors as gzip raises them."""
    stream = Limited(gzip.GzipFile(fileobj=BytesIO(content)), len(content))
    return BufferedReader(stream, PIECE).read()


class Limited(RawIOBase):
    """A stream that is unpacked, such as a .gz file, until it has given too much: TooLarge."""

    def __init__(self, stream: Any, packed: int) -> None:
        """Wrap a stream that comes of `packed` bytes."""
        self._stream, self._left = stream, max(4 * SMALL, RATIO * packed)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer and return how many bytes came."""
        got = self._stream.readinto(buffer) or 0
        self._left -= got
        if self._left < 0:
            raise TooLarge("it would unpack to far more than a file of its kind")
        return got

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()
