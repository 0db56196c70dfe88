"""Download one file that is pinned by its sha256, whole or not at all.

What comes is written beside the place it is for, and moved there once its digest is right. Nothing
is unpacked, and no file that is already there is replaced.
"""

import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from harness.errors import UserError
from harness.text import escape_controls

TIMEOUT_S = 30
"""Without a byte for so long, the other side counts as gone."""

CHUNK = 1 << 16
MOST = 8 << 30
"""Bytes after which a file of unknown size is given up."""


def download(url: str, path: Path, sha256: str, size: int | None = None) -> None:
    """Put the file at `url` at `path`, which must not exist yet.

    `size` in bytes, where it is pinned. UserError, with nothing left behind, when it cannot be had,
    is another file, or cannot be written. A break leaves nothing behind either.
    """
    if path.exists():
        raise UserError(f"{path} is there already; it is not overwritten.")
    otherwise = f"put the file at {path}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _part_of(path) as part:
            found, got = _written(url, part, size or MOST, path.name, otherwise)
            if found != sha256:
                raise UserError(_wrong(url, (got, size), (found, sha256), otherwise))
            part.flush()
            Path(part.name).rename(path)
    except OSError as error:
        raise UserError(_unwritable(path, error)) from error


@contextmanager
def _part_of(path: Path) -> Generator[IO[bytes]]:
    """Yield the file that is being written, emptied of what a killed run left; it is then gone."""
    part = path.with_name(f".{path.name}.part")
    with part.open("ab") as file:
        if not _locked(file, part):
            raise UserError(f"Another podium is downloading {path}: wait for it.")
        try:
            file.truncate(0)
            yield file
        finally:
            if _is(file, part):
                part.unlink()


def _locked(file: IO[bytes], part: Path) -> bool:
    """Lock the part; False when another run holds it, or has just moved it to its place."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is(file, part)


def _is(file: IO[bytes], part: Path) -> bool:
    """Return whether the open file is still the one of that name."""
    return part.exists() and part.stat().st_ino == os.fstat(file.fileno()).st_ino


def _written(url: str, part: IO[bytes], most: int, title: str, otherwise: str) -> tuple[str, int]:
    """Return sha256 and number of bytes of what came; UserError when nothing could be had."""
    digest, got = hashlib.sha256(), 0
    with _answer(url, otherwise) as answer, _bar(title, answer) as bar:
        while chunk := _read(answer, url, otherwise):
            got += len(chunk)
            if got > most:
                break
            digest.update(chunk)
            part.write(chunk)
            bar.advance(bar.task_ids[0], len(chunk))
    return digest.hexdigest(), got


def _answer(url: str, otherwise: str) -> Any:
    try:
        return urlopen(Request(url, headers={"User-Agent": "podium"}), timeout=TIMEOUT_S)
    except HTTPError as error:
        error.close()
        raise UserError(f"{url} {_refused(error.code)}: {otherwise}.") from error
    except (OSError, HTTPException) as error:
        raise UserError(_unreachable(url, error, otherwise)) from error


def _read(answer: Any, url: str, otherwise: str) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise UserError(_unreachable(url, error, otherwise)) from error


def _unreachable(url: str, error: Exception, otherwise: str) -> str:
    reason = str(getattr(error, "reason", "") or error) or type(error).__name__
    return f"{url} cannot be reached ({reason[:160]}): go online and try again, or {otherwise}."


def _refused(status: int) -> str:
    if status in (401, 403):
        return f"asks for an account that may see it (HTTP {status})"
    if status in (404, 410):
        return f"is no longer there (HTTP {status})"
    return f"cannot be had now (HTTP {status}); try again later"


def _wrong(
    url: str, sizes: tuple[int, int | None], digests: tuple[str, str], otherwise: str
) -> str:
    got, size = sizes
    if size is not None and got < size:
        return f"{url} was cut off after {got:,} of {size:,} bytes: try again, or {otherwise}."
    return (
        f"{url} is not the pinned file: its sha256 is {digests[0][:12]}, not {digests[1][:12]}; "
        f"nothing was kept: {otherwise}."
    )


def _unwritable(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk of {path.parent} is full; nothing was kept. Free some space and try again."
        )
    return (
        f"{path.parent} cannot be written ({error.strerror}): name a folder that can with --data, "
        "and the same in PODIUM_DATA for runs."
    )


@contextmanager
def _bar(title: str, answer: Any) -> Generator[Progress]:
    """Show how much came, on a terminal only."""
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    length = str(answer.headers.get("Content-Length") or "")
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        bar.add_task(escape_controls(title), total=int(length) if length.isdigit() else None)
        yield bar
