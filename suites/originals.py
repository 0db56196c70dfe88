"""Public files that ours are or are made of: downloaded at a commit, held to a digest, converted.

A download that broke off goes on where it stopped; what is not the pinned file is never kept.
"""

import errno
import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, cast
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from harness.errors import UserError
from harness.files import parse_json
from harness.text import escape_controls
from suites.data import DataSource, Original, parquet_rows

MIRROR = "PODIUM_MIRROR"
"""Names another address of the same files: ADDRESS/OWNER/NAME/COMMIT/PATH."""
GITHUB = "https://raw.githubusercontent.com"
TIMEOUT_S = 30
CHUNK = 1 << 16


class Unreachable(UserError):
    """Nothing answers at an address, or it does not have the file."""


def address(original: Original) -> str:
    """Return where a file is downloaded: on GitHub, or at the mirror that PODIUM_MIRROR names."""
    base = os.environ.get(MIRROR) or GITHUB
    return "/".join((base.rstrip("/"), original.at.replace("@", "/"), quote(original.path)))


def fetch_public(source: DataSource, path: Path) -> None:
    """Put a source's file at `path`, which must not exist yet; UserError says what to do."""
    if path.exists():
        raise UserError(f"{path} is there already; it is not overwritten.")
    if source.made:
        return make_file(path, source.made, source.originals, source.sha256)
    (original,) = source.public
    return download(address(original), path, original.sha256, original.size)


def download(url: str, path: Path, sha256: str, size: int) -> None:
    """Put the file at `url` at `path`, whole or not at all.

    UserError when it cannot be had, is another file, or cannot be written. What a break leaves
    behind is where the next download goes on.
    """
    with _refusing_disk(path.parent), _part_of(path) as part:
        got = _write_part(url, part, size, path)
        if got < size:
            cut = f"{url} was cut off after {got:,} of {size:,} bytes"
            raise UserError(f"{cut}: the same command goes on there, or put the file at {path}.")
        with Path(part.name).open("rb") as written:
            found = hashlib.file_digest(written, "sha256").hexdigest()
        if found != sha256:
            Path(part.name).unlink()
            other = f"its sha256 is {found[:12]}, not {sha256[:12]}; nothing was kept"
            raise UserError(f"{url} is not the pinned file: {other}: put the file at {path}.")
        Path(part.name).rename(path)


@contextmanager
def _refusing_disk(folder: Path) -> Generator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            full = f"The disk of {folder} is full: free some space"
            raise UserError(f"{full} and give the same command again.") from error
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): name a folder that can with "
            "--data, and the same in PODIUM_DATA for runs."
        ) from error


@contextmanager
def _part_of(path: Path) -> Generator[IO[bytes]]:
    """Yield the file that is being written, at the end of what an earlier run wrote of it."""
    part = path.with_name(f".{path.name}.part")
    with part.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = part.exists() and part.stat().st_ino == os.fstat(file.fileno()).st_ino
        except BlockingIOError:
            held = False
        if not held:  # another run writes it, or has just moved it to its place
            raise UserError(f"Another podium is downloading {path}: wait for it.")
        try:
            yield file
        finally:
            if part.exists() and not part.stat().st_size:
                part.unlink()


def _write_part(url: str, part: IO[bytes], size: int, path: Path) -> int:
    """Append what is missing and return how many bytes there are now, at most one too many."""
    if (got := part.seek(0, os.SEEK_END)) >= size:
        part.truncate(got := 0)
    asked = {"User-Agent": "podium", **({"Range": f"bytes={got}-"} if got else {})}
    with _reaching(url, path):
        answer: Any = urlopen(Request(url, headers=asked), timeout=TIMEOUT_S)
    if answer.status != 206:  # it sends the whole file, whatever was asked for
        part.truncate(got := 0)
    with answer, _progress_bar(path.name, got, size) as bar:
        while got <= size:
            with _reaching(url, path):
                chunk: bytes = answer.read1(min(CHUNK, size + 1 - got))
            if not chunk:
                break
            got += part.write(chunk)
            bar.advance(bar.task_ids[0], len(chunk))
    part.flush()
    return got


@contextmanager
def _reaching(url: str, path: Path) -> Generator[None]:
    try:
        yield
    except HTTPError as error:
        error.close()
        said = f"cannot be had now (HTTP {error.code}); try again later"
        if error.code in (401, 403):
            said = f"asks for an account that may see it (HTTP {error.code})"
        elif error.code in (404, 410):
            said = f"is no longer there (HTTP {error.code})"
        raise Unreachable(f"{url} {said}: put the file at {path}.") from error
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        said = f"cannot be reached ({reason[:160]}): go online and try again"
        raise Unreachable(f"{url} {said}, or put the file at {path}.") from error


@contextmanager
def _progress_bar(title: str, got: int, size: int) -> Generator[Progress]:
    console = Console(file=sys.stderr)
    named = TextColumn("{task.description}")
    columns = (named, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        bar.add_task(escape_controls(title), total=size, completed=got)
        yield bar


def make_file(path: Path, made: str, originals: Sequence[Original], sha256: str) -> None:
    """Download the originals of a file and make it; UserError when it is not the pinned one."""
    folder = path.with_name(f".{path.name}.originals")
    copies = {one.path: folder / one.sha256[:12] for one in originals}
    with _refusing_disk(folder):
        for one in originals:
            copy = copies[one.path]
            if not copy.is_file():
                download(address(one), copy, one.sha256, one.size)
        make, ascii_only = MAKERS[made]
        rows = make(copies)
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode()
        if hashlib.sha256(text).hexdigest() != sha256:
            raise UserError(
                f"{path} cannot be made of its originals: the outcome is not the pinned file. "
                "Please report it with the version of pyarrow."
            )
        part = folder / path.name
        part.write_bytes(text)
        part.rename(path)
        for copy in copies.values():
            copy.unlink()
        folder.rmdir()


def numbered_problems(copies: Mapping[str, Path]) -> Iterable[dict[str, Any]]:
    """Yield AIME's problems, numbered by paper and without the instruction behind each."""
    (file,) = copies.values()
    suffix = "\nPlease reason step by step, and put your final answer within \\boxed{}."
    for at, line in enumerate(file.read_bytes().splitlines()):
        row = cast(dict[str, Any], parse_json(line))
        name = f"aime25-{'I' * (1 + at // 15)}-{1 + at % 15}"
        yield {"id": name, "problem": row["prompt"].removesuffix(suffix), "answer": row["answer"]}


def lighteval_replies(copies: Mapping[str, Path]) -> Iterable[dict[str, Any]]:
    """Yield the replies in Lighteval's details, with the numbers of tokens in place of tokens."""
    details = {name: copy for name, copy in copies.items() if name.endswith(".parquet")}
    problems = {name: copy for name, copy in copies.items() if name not in details}
    ids = {str(row["answer"]): row["id"] for row in numbered_problems(problems)} if problems else {}
    for name, copy in details.items():
        model, task = name.split("/")[3], name.rpartition("details_custom_")[2].partition("_0_")[0]
        for at, row in enumerate(parquet_rows(copy)):
            yield {
                "task": task,
                "model": model,
                "item": at,
                "sample": 0,
                "problem_id": ids.get(row["gold"][0]),
                "gold": row["gold"][0],
                "metric": row["metrics"]["extractive_match"],
                "extracted_gold": row["specifics"]["extracted_golds"],
                "extracted_pred": row["specifics"]["extracted_predictions"],
                "out_tokens": len(row["cont_tokens"][0][0]),
                "in_tokens": len(row["input_tokens"][0]),
                "prompt": None if problems else row["example"],
                "output": row["predictions"][0],
            }


Maker = Callable[[Mapping[str, Path]], Iterable[dict[str, Any]]]
MAKERS: Mapping[str, tuple[Maker, bool]] = {
    "numbered": (numbered_problems, False),
    "lighteval": (lighteval_replies, False),
    "lighteval-ascii": (lighteval_replies, True),
}
"""Name in sources.toml -> what makes rows of the originals by their paths; whether in ASCII."""
