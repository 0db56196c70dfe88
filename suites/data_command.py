"""`podium data`: verify what lies here against sources.toml, fetch what is absent.

What is here is left as it is, right or wrong; nothing is unpacked.
"""

import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from harness.errors import UserError, no_such
from harness.suite import Split, Suite
from harness.text import escape_controls, say
from suites import SUITES
from suites.data import (
    DataSource,
    by_hand,
    cached_file,
    cached_rows,
    check_rows,
    data_folder,
    hub_file,
    hub_left_alone,
    hub_refusal,
    local_rows,
    pinned_hub_rows,
    refuse_duplicates,
    sources,
)
from suites.livecodebench import LiveCodeBench
from suites.practice import PracticeSuite

DataState = Literal["ok", "absent", "wrong"]
NOBODY = "which nobody has pinned"
TIMEOUT_S = 30
CHUNK = 1 << 16
MOST = 8 << 30


@dataclass(frozen=True, slots=True)
class DataFinding:
    """What became of one thing that was looked at."""

    state: DataState
    said: str

    def __str__(self) -> str:
        return f"  {self.state:<7} {self.said}"


GENERATED = DataFinding("ok", "generated; there is nothing to fetch")


@dataclass(frozen=True, slots=True)
class DataItem:
    """A suite with its sources, or a source that no suite has as its questions."""

    name: str
    sources: tuple[str, ...]
    suite: Suite[Any] | None = None


def verify_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Say what is right, absent and wrong of these suites (or all); return 1 for a wrong one."""
    found: list[DataFinding] = []
    for item in data_items(names):
        say(item.name)
        for one in check_item(item, data):
            found.append(one)
            say(str(one))
    counts = {state: [one.state for one in found].count(state) for state in ("absent", "wrong")}
    if counts["wrong"]:
        say(f"{counts['wrong']} wrong: move what is wrong away, then podium data fetch SUITE.")
    elif counts["absent"]:
        say(f"Nothing here is wrong; {counts['absent']} absent.")
    else:
        loose = sum(NOBODY in str(one) for one in found)
        say("All is as pinned." if not loose else f"Nothing is wrong; {loose} not pinned.")
    return 1 if counts["wrong"] else 0


def data_items(names: Sequence[str]) -> list[DataItem]:
    """Return what names stand for, in order; every listed suite and lone source without a name."""
    lone = [name for name in sources() if suite_of_source(name) is None]
    return [_item(name) for name in dict.fromkeys(names or (*SUITES, *lone))]


def _item(name: str) -> DataItem:
    if name in SUITES:
        return DataItem(name, sources_of(SUITES[name]), SUITES[name])
    if name in sources():
        return DataItem(name, (name,))
    raise no_such("suite", name, sorted(SUITES))


def check_item(item: DataItem, data: str | Path | None = None) -> Iterable[DataFinding]:
    """Yield what is found of each source, then of the questions they make."""
    if item.suite is not None and not item.sources:
        yield GENERATED
        return
    seen = [(check_source(name, data), sources()[name].instead_of) for name in item.sources]
    found = [one for one, instead in seen if not (instead and one.state == "absent")]
    yield from {one.said: one for one in found}.values()  # two tables may read one file
    if item.suite is None and found[0].state == "ok":
        try:
            yield DataFinding("ok", f"{len(local_rows(item.name, data)):,} rows")
        except UserError as error:
            yield DataFinding("wrong", str(error).removesuffix("."))
    elif item.suite is not None and all(one.state != "wrong" for one in found):
        yield from _check_questions(item.suite, data, any(one.state == "absent" for one in found))


def check_source(name: str, data: str | Path | None = None) -> DataFinding:
    """Return whether a source is here: its local file, else what the hub's cache has."""
    source = sources()[name]
    path = data_folder(data) / source.file
    if path.is_file():
        return _check_file(source, path)
    if source.hub and source.hub_file:
        cached = cached_file(source.hub, source.hub_file, source.revision)
        if cached and source.hub_file == path.name:  # it is the very file
            return _check_file(source, cached)
        if cached:
            return DataFinding("ok", f"{name}: in the hub's cache, {cached}")
    elif source.hub:
        rows = cached_rows(source.hub, source.config, source.revision, source.split)
        if rows is not None:
            return _check_rows(name, source, rows)
    pins = [f"sha256 {source.sha256[:12]}"] if source.sha256 else []
    pins += [f"{source.rows:,} rows"] if source.rows is not None else []
    here = f"put {path.name} ({', '.join(pins) or 'not pinned'}) at {path}"
    fetch = f"podium data fetch {suite_of_source(name) or name}, or "
    return DataFinding("absent", f"{name}: {fetch if source.url or source.hub else ''}{here}")


def _check_file(source: DataSource, path: Path) -> DataFinding:
    try:
        size = path.stat().st_size
        if source.size not in (None, size):
            said = f"{path} has {size:,} bytes, not the pinned {source.size:,}"
            return DataFinding("wrong", said)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return DataFinding("wrong", f"{path} cannot be read: {error.strerror}")
    if not source.sha256:
        return DataFinding("ok", f"{path} (sha256 {digest[:12]}, {NOBODY})")
    if digest != source.sha256:
        said = f"its sha256 is {digest[:12]}, not {source.sha256[:12]}"
        return DataFinding("wrong", f"{path} is not the pinned file: {said}")
    return DataFinding("ok", f"{path} (sha256 {digest[:12]})")


def _check_rows(name: str, source: DataSource, rows: Sequence[dict[str, Any]]) -> DataFinding:
    where = f"{source.hub} at {(source.revision or '')[:12]}"
    try:
        check_rows(list(rows), source, where)
    except UserError as error:
        return DataFinding("wrong", f"in the hub's cache, {error}".removesuffix("."))
    return DataFinding("ok", f"{name}: in the hub's cache, {where} ({len(rows):,} rows)")


def _check_questions(
    suite: Suite[Any], data: str | Path | None, absent: bool
) -> Iterable[DataFinding]:
    """Load each split without asking the hub; what an absent source leaves out is no news."""
    with hub_left_alone():
        for split in suite.splits:
            try:
                size = count_questions(suite, split, data)
            except UserError as error:
                if not absent:
                    yield DataFinding("wrong", str(error).removesuffix("."))
            else:
                yield DataFinding("ok", f"{split}: {size:,} questions")


def count_questions(suite: Suite[Any], split: Split, data: str | Path | None) -> int:
    """Return how many questions a split has; UserError for an id twice or another number."""
    if data is not None and is_dataclass(suite) and hasattr(suite, "data"):
        suite = replace(cast(Any, suite), data=data)
    size = len(refuse_duplicates(suite.load(split), f"{suite.name}, {split},"))
    promised = suite.card.sizes.get(split, size)
    if size != promised:
        raise UserError(f"{suite.name}, {split}, has {size} questions, its card says {promised}.")
    return size


def fetch_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Fetch what is absent of these suites and say where it is; return 1 when something is wrong.

    UserError, once all were tried, with a line for each thing that stood in the way.
    """
    wrong, refused = False, list[UserError]()
    for item in data_items(names):
        say(item.name)
        for found in _fetch_item(item, data, refused):
            wrong |= found.state == "wrong"
            say(str(found))
    if refused:
        raise UserError("\n".join(dict.fromkeys(map(str, refused))))
    if wrong:
        say("What is wrong is not overwritten: move it away and try again.")
    return 1 if wrong else 0


def _fetch_item(
    item: DataItem, data: str | Path | None, refused: list[UserError]
) -> list[DataFinding]:
    if not item.sources:
        return [GENERATED]
    found = list[DataFinding]()
    for name in item.sources:
        here = check_source(name, data)
        if here.state == "absent":
            if sources()[name].instead_of:
                continue
            try:
                download_source(sources()[name], data)
                here = check_source(name, data)
            except UserError as error:
                refused.append(error)
                here = DataFinding("absent", f"{name}: could not be fetched")
        found.append(here)
    return found


def download_source(source: DataSource, data: str | Path | None) -> None:
    """Download one source; UserError says why not, and which file to put where."""
    path = data_folder(data) / source.file
    if source.url:
        download(source.url, path, source.sha256, source.size)
    elif source.hub and source.hub_file:
        try:
            hub_file(source.hub, source.hub_file, source.revision)
        except Exception as error:
            raise hub_refusal(error, source.hub, by_hand(source, data)) from error
    elif source.hub:
        pinned_hub_rows(source, data)
    else:
        raise UserError(f"There is no {path}, and no hub has it: {by_hand(source, data)}.")


def download(url: str, path: Path, sha256: str, size: int | None = None) -> None:
    """Put the file at `url` at `path`, which must not exist yet, whole or not at all.

    UserError, with nothing left behind, when it cannot be had, is another file, or cannot be
    written. A break leaves nothing behind either.
    """
    if path.exists():
        raise UserError(f"{path} is there already; it is not overwritten.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _part_of(path) as part:
            found, got = _write_part(url, part, size or MOST, path)
            if size is not None and got < size:
                cut = f"{url} was cut off after {got:,} of {size:,} bytes"
                raise UserError(f"{cut}: try again, or put the file at {path}.")
            if found != sha256:
                other = f"its sha256 is {found[:12]}, not {sha256[:12]}; nothing was kept"
                raise UserError(f"{url} is not the pinned file: {other}: put the file at {path}.")
            part.flush()
            Path(part.name).rename(path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            full = f"The disk of {path.parent} is full; nothing was kept."
            raise UserError(f"{full} Free some space and try again.") from error
        raise UserError(
            f"{path.parent} cannot be written ({error.strerror}): name a folder that can with "
            "--data, and the same in PODIUM_DATA for runs."
        ) from error


@contextmanager
def _part_of(path: Path) -> Generator[IO[bytes]]:
    """Yield the file that is being written, emptied of what a killed run left; it is then gone."""
    part = path.with_name(f".{path.name}.part")

    def is_still(file: IO[bytes]) -> bool:
        return part.exists() and part.stat().st_ino == os.fstat(file.fileno()).st_ino

    with part.open("ab") as file:
        held = False
        with suppress(BlockingIOError):  # another run holds it
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = is_still(file)  # or has just moved it to its place
        if not held:
            raise UserError(f"Another podium is downloading {path}: wait for it.")
        try:
            file.truncate(0)
            yield file
        finally:
            if is_still(file):
                part.unlink()


def _write_part(url: str, part: IO[bytes], most: int, path: Path) -> tuple[str, int]:
    digest, got = hashlib.sha256(), 0
    with _reaching(url, path):
        answer: Any = urlopen(Request(url, headers={"User-Agent": "podium"}), timeout=TIMEOUT_S)
    with answer, _progress_bar(path.name, answer) as bar:
        while got <= most:
            with _reaching(url, path):
                chunk: bytes = answer.read(CHUNK)
            if not chunk:
                break
            got += len(chunk)
            digest.update(chunk)
            part.write(chunk)
            bar.advance(bar.task_ids[0], len(chunk))
    return digest.hexdigest(), got


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
        raise UserError(f"{url} {said}: put the file at {path}.") from error
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        said = f"cannot be reached ({reason[:160]}): go online and try again"
        raise UserError(f"{url} {said}, or put the file at {path}.") from error


@contextmanager
def _progress_bar(title: str, answer: Any) -> Generator[Progress]:
    console = Console(file=sys.stderr)
    named = TextColumn("{task.description}")
    columns = (named, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    length = str(answer.headers.get("Content-Length") or "")
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        bar.add_task(escape_controls(title), total=int(length) if length.isdigit() else None)
        yield bar


def sources_of(suite: Suite[Any]) -> tuple[str, ...]:
    """Return the tables of a suite: NAME and NAME-..., or those of its release.

    A suite NAME-... without any reads those of NAME. None where the questions are generated.
    """
    if isinstance(suite, PracticeSuite):
        return ()
    if isinstance(suite, LiveCodeBench):
        return suite.release.files
    tables = {name: suite_of_source(name) for name in sources()}
    name = suite.name
    while name and name not in tables.values():
        name = name.rpartition("-")[0]
    return tuple(table for table, suite_name in tables.items() if name and suite_name == name)


def suite_of_source(source: str) -> str | None:
    """Return the listed suite that a table belongs to, the longest name that fits; else None."""
    fitting = [name for name in SUITES if source == name or source.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def describe_sources(suite: Suite[Any]) -> list[str]:
    """Return a line per source for `podium suites NAME`."""
    return [describe_source(sources()[name]) for name in sources_of(suite)]


def describe_source(source: DataSource) -> str:
    """Return where a source is from and what it is held to."""
    found = [source.url] if source.url else []
    if source.hub:
        part = source.hub_file or " ".join(filter(None, (source.config, source.split)))
        found.append(f"hub {source.hub} at {(source.revision or '')[:12]}, {part}")
    pinned = f" (sha256 {source.sha256[:12]})" if source.sha256 else ""
    rows = f"{source.rows:,} rows" if source.rows is not None else "rows not counted"
    return "; ".join((*found, f"file {source.file}{pinned}", rows))
