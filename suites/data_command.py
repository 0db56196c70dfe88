"""`podium data`: verify suites' local data files against sources.toml, download absent ones.

Existing files are never changed, right or wrong. Public files (sources or the originals they are
made of) are downloaded at a pinned commit; an interrupted download resumes, one with a wrong digest
is deleted.
"""

import errno
import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from http.client import HTTPException
from io import BufferedRandom
from pathlib import Path
from typing import Any, Literal, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from podium.harness.errors import UserError, no_such
from podium.harness.files import format_bytes, parse_json
from podium.harness.suite import Split, Suite
from podium.harness.text import columns, pluralise, say, terminal_width
from podium.suites import SUITES
from podium.suites.data import (
    DataSource,
    Original,
    by_hand,
    cached_file,
    cached_rows,
    check_rows,
    data_folder,
    file_digest,
    held_bytes,
    hub_file,
    hub_left_alone,
    local_file,
    local_rows,
    parquet_rows,
    pinned_hub_rows,
    refuse_duplicates,
    sources,
)
from podium.suites.livecodebench import LiveCodeBench
from podium.suites.practice import PracticeSuite

DataState = Literal["ok", "absent", "wrong"]
NOBODY = "no pinned digest"
MIRROR = "PODIUM_MIRROR"
"""Environment variable: base URL of a mirror with files at BASE/OWNER/NAME/COMMIT/PATH."""
GITHUB = "https://raw.githubusercontent.com"
TIMEOUT_S = 30
CHUNK = 1 << 16


class Unreachable(UserError):
    """Raised if a download fails because the server does not answer or does not give the file."""

    def __init__(self, url: str, reason: str, otherwise: str) -> None:
        """Build the message: the URL, why its download failed, and the fix (`otherwise`)."""
        super().__init__(f"{url} {reason}{otherwise}.")
        self.summary = f"{urlsplit(url).netloc} {reason.partition(';')[0]}"


@dataclass(frozen=True, slots=True)
class DataFinding:
    """The state of one data source, or of one split of a suite, with a text about it (`said`)."""

    state: DataState
    said: str

    def __str__(self) -> str:
        return f"  {self.state:<7} {self.said}"


GENERATED = DataFinding("ok", "generated; nothing to fetch")


@dataclass(frozen=True, slots=True)
class DataItem:
    """A name in `podium data` with its data sources; `suite` is None if no suite has this name."""

    name: str
    sources: tuple[str, ...]
    suite: Suite[Any] | None = None


def verify_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Print the state of each data source of `names` (default all); return 1 if one is wrong."""
    findings: list[DataFinding] = []
    for item in data_items(names):
        say(item.name)
        for finding in check_item(item, data):
            findings.append(finding)
            say(str(finding))
    counts = Counter(finding.state for finding in findings)
    if counts["wrong"]:
        say(f"{counts['wrong']} wrong. Move the wrong files away, then podium data fetch SUITE.")
    elif counts["absent"]:
        say(f"No file is wrong; {counts['absent']} absent.")
    else:
        loose = sum(NOBODY in str(finding) for finding in findings)
        say("All files are as pinned." if not loose else f"No file is wrong; {loose} not pinned.")
    return 1 if counts["wrong"] else 0


def data_items(names: Sequence[str]) -> list[DataItem]:
    """Return the suite or data sources of each name; without names, of every name that exists."""
    lone = [name.partition(":")[0] for name in sources() if suite_of_source(name) is None]
    return [_item(name) for name in dict.fromkeys(names or (*SUITES, *lone))]


def _item(name: str) -> DataItem:
    if name in SUITES:
        return DataItem(name, sources_of(SUITES[name]), SUITES[name])
    if tables := [source for source in sources() if name in (source, source.partition(":")[0])]:
        needed = (need for table in tables for need in sources()[table].needs)
        return DataItem(name, (*dict.fromkeys(needed), *tables))
    raise no_such("suite or source", name, (item.name for item in data_items(())), "there are: ")


def check_item(item: DataItem, data: str | Path | None = None) -> Iterable[DataFinding]:
    """Yield the state of each data source of an item, then of the splits or rows made of them."""
    if not item.sources:
        yield GENERATED
        return
    pairs = [(check_source(name, data), sources()[name].instead_of) for name in item.sources]
    findings = [check for check, instead in pairs if not (instead and check.state == "absent")]
    yield from {check.said: check for check in findings}.values()  # two sources may share a file
    if item.suite is None:
        for name, check in zip(item.sources, findings, strict=True):
            if check.state == "ok" and local_file(sources()[name], data).is_file():
                yield _finding(
                    lambda name=name: f"{name}: {pluralise(len(local_rows(name, data)), 'row')}"
                )
    elif all(check.state != "wrong" for check in findings):
        yield from _check_questions(
            item.suite, data, any(check.state == "absent" for check in findings)
        )


def _finding(check: Callable[[], str]) -> DataFinding:
    """Run `check`: return state `ok` with its result, or `wrong` with its UserError's text."""
    try:
        return DataFinding("ok", check())
    except UserError as error:
        return DataFinding("wrong", str(error).removesuffix("."))


def check_source(name: str, data: str | Path | None = None) -> DataFinding:
    """Return the state of a source's local file or, without one, of its copy in the hub's cache."""
    source = sources()[name]
    path = local_file(source, data)
    if path.is_file():
        return _finding(lambda: _check_file(source, path))
    if source.hub and source.hub_file:
        cached = cached_file(source)
        if cached and source.hub_file == path.name:  # the hub's file is the pinned one
            return _finding(lambda: _check_file(source, cached))
        if cached:
            return DataFinding("ok", f"{name}: in the hub's cache, {cached}")
    elif source.hub:
        rows = cached_rows(source.hub, source.config, source.revision, source.split)
        if rows is not None:
            origin = f"in the hub's cache, {source.hub} at {(source.revision or '')[:12]}"
            return _finding(
                lambda: f"{name}: {origin} ({len(check_rows([*rows], source, origin)):,} rows)"
            )
    pins = [f"sha256 {source.sha256[:12]}"] if source.sha256 else []
    pins += [pluralise(source.rows, "row")] if source.rows is not None else []
    here = f"put {path.name} ({', '.join(pins) or 'not pinned'}) at {path}"
    fetch = f"podium data fetch {suite_of_source(name) or name}, or "
    return DataFinding("absent", f"{name}: {fetch if source.public or source.hub else ''}{here}")


ANEW = "Remove the file and fetch it again with `podium data fetch SUITE`."


def _check_file(source: DataSource, path: Path) -> str:
    try:
        stat = path.stat()
        if path.suffix == ".gz":  # the pin may be of the unpacked file
            digest = hashlib.sha256(held_bytes(source, path)).hexdigest()
        elif source.size not in (None, stat.st_size):
            sizes = f"{stat.st_size:,} bytes, not the pinned {source.size:,}"
            raise UserError(f"{path} has {sizes}. {ANEW}")
        else:
            digest = file_digest(path, stat.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if source.sha256 and digest != source.sha256:
        mismatch = f"its sha256 is {digest[:12]}, not {source.sha256[:12]}"
        raise UserError(f"{path} is not the pinned file: {mismatch}. {ANEW}")
    return f"{path} (sha256 {digest[:12]}{'' if source.sha256 else f', {NOBODY}'})"


def _check_questions(
    suite: Suite[Any], data: str | Path | None, absent: bool
) -> Iterable[DataFinding]:
    """Load each split of a suite offline and yield its state; omit failures if data is `absent`."""
    with hub_left_alone():
        for split in suite.splits:
            finding = _finding(
                lambda split=split: f"{split}: {count_questions(suite, split, data):,} questions"
            )
            if finding.state == "ok" or not absent:
                yield finding


def count_questions(suite: Suite[Any], split: Split, data: str | Path | None) -> int:
    """Return a split's number of questions; UserError if ids repeat or the suite's card differs."""
    if data is not None and is_dataclass(suite) and hasattr(suite, "data"):
        suite = replace(cast(Any, suite), data=data)
    size = len(refuse_duplicates(suite.load(split), f"{suite.name}, {split},"))
    promised = suite.card.sizes.get(split, size)
    if size != promised:
        raise UserError(
            f"{suite.name}, {split}, has {size} questions, but its card says {promised}. "
            "Fetch the data again, or correct the card's sizes."
        )
    return size


def fetch_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Download the absent data sources of `names` (default all); return 1 if a file is wrong.

    Prints the state of each source. Raises UserError, with the reasons, if a download failed.
    """
    wrong, refused = False, list[UserError]()
    for item in data_items(names):
        say(item.name)
        for finding in [*_fetch_item(item, data, refused, say)]:
            wrong |= finding.state == "wrong"
            say(str(finding))
    if refused:
        raise UserError("\n".join(dict.fromkeys(map(str, refused))))
    if wrong:
        say("Wrong files are not overwritten. Move them away and try again.")
    return 1 if wrong else 0


def _fetch_item(
    item: DataItem, data: str | Path | None, refused: list[UserError], tell: Callable[[str], None]
) -> Iterable[DataFinding]:
    if not item.sources:
        yield GENERATED
    for name in item.sources:
        here = check_source(name, data)
        if here.state == "absent" and sources()[name].instead_of:
            continue
        if here.state == "absent":
            try:
                download_source(name, data, tell)
                here = check_source(name, data)
            except UserError as error:
                refused.append(UserError(f"{name} was not fetched: {error}"))
                here = DataFinding("absent", f"{name}: could not be fetched")
        yield here


def download_source(name: str, data: str | Path | None, tell: Callable[[str], None]) -> None:
    """Print a data source's origin and licence, then download it; UserError if that fails."""
    source = sources()[name]
    path, fault = local_file(source, data), None
    if source.public:
        size = format_bytes(sum(original.size for original in source.public))
        origins = ", ".join(dict.fromkeys(original.at[:-28] for original in source.public))
        tell(f"  {name}: {size} from {origins} to {path}; licence: {source.licence}. Downloading.")
        try:
            fetch_public(source, path)
            return
        except Unreachable as error:
            if source.hub is None:
                raise
            fault = error
    if source.hub is None:
        raise UserError(
            f"There is no {path}, and no hub has it. To go on, {by_hand(source, data)}."
        )
    tell(
        f"  {name}: {source.hub} from the hub to its cache; licence: {source.licence}. Downloading."
    )
    try:
        if source.hub_file:
            hub_file(source, by_hand(source, data))
        else:
            pinned_hub_rows(source, data)
    except UserError as error:
        raise UserError(f"{fault.summary}; {error}" if fault else str(error)) from error


def list_data(names: Sequence[str], data: str | Path | None = None) -> list[dict[str, Any]]:
    """Return name, bytes, from, here, file and licence of the sources of `names` (default all)."""
    tables = [name for item in data_items(names) for name in item.sources] if names else sources()
    listed = {name: sources()[name] for name in tables}
    return [
        {
            "name": name,
            "bytes": sum(original.size for original in source.public) or source.size,
            "from": "GitHub" if source.public else "the hub" if source.hub else "nobody",
            "here": local_file(source, data).is_file(),
            "file": source.file,
            "licence": source.licence,
        }
        for name, source in listed.items()
    ]


WIDE = 120
"""Width of a terminal, in characters, below which `podium data list` omits the column `file`."""


def show_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Print a table of the data sources of `names` (default all), present or not; return 0."""
    rows = list_data(names, data)
    for row in rows:
        size = row.pop("bytes")
        row["size"] = format_bytes(size) if size else "unknown"
        row["here"] = "yes" if row["here"] else "no"
    heads = ["name", "size", "from", "here", "file", "licence"]
    if (terminal_width() or WIDE) < WIDE:
        heads.remove("file")
    say(f"Files belong in {data_folder(data)}; `podium data fetch NAME` downloads them.")
    say(columns(heads, [[row[head] for head in heads] for row in rows]))
    return 0


def sources_of(suite: Suite[Any]) -> tuple[str, ...]:
    """Return the names of a suite's data sources (LiveCodeBench: one per file); () if generated."""
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
    """Return the suite of a data source, the longest suite name that starts its name, or None."""
    fitting = [name for name in SUITES if source == name or source.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def describe_sources(suite: Suite[Any]) -> list[str]:
    """Return a line on each data source of a suite, for `podium suites NAME`."""
    return [describe_source(sources()[name]) for name in sources_of(suite)]


def describe_source(source: DataSource) -> str:
    """Return a data source's origins, file, pinned digest and row count in one line."""
    origins = [f"{original.at}, {original.path}" for original in source.public]
    if source.hub:
        subset = source.hub_file or " ".join(filter(None, (source.config, source.split)))
        origins.append(f"hub {source.hub} at {(source.revision or '')[:12]}, {subset}")
    pinned = f" (sha256 {source.sha256[:12]})" if source.sha256 else ""
    rows = f"{source.rows:,} rows" if source.rows is not None else "rows not counted"
    return "; ".join((*origins, f"file {source.file}{pinned}", rows))


def address(original: Original) -> str:
    """Return the URL of a public file: on GitHub, or at the mirror that PODIUM_MIRROR names."""
    base = os.environ.get(MIRROR) or GITHUB
    return "/".join((base.rstrip("/"), original.at.replace("@", "/"), quote(original.path)))


def fetch_public(source: DataSource, path: Path) -> None:
    """Download or build a data source's file; UserError if that fails or `path` exists already."""
    if path.exists():
        raise UserError(f"{path} exists already and is not overwritten. Move it away first.")
    if source.made:
        return make_file(path, source.made, source.originals, source.sha256)
    (original,) = source.public
    return download(address(original), path, original.sha256, original.size)


def download(url: str, path: Path, sha256: str, size: int) -> None:
    """Download a file to `path`, atomically; UserError if it is incomplete or not as pinned."""
    with _refusing_disk(path.parent), _part_of(path) as file:
        length = _write_part(url, file, size, path)
        if length < size:
            cut = f"{url} was cut off after {length:,} of {size:,} bytes"
            raise UserError(f"{cut}. Run the same command to resume, or put the file at {path}.")
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sha256:
            Path(file.name).unlink()
            mismatch = f"its sha256 is {digest[:12]}, not {sha256[:12]}; it was deleted"
            raise UserError(f"{url} is not the pinned file: {mismatch}. Put the file at {path}.")
        Path(file.name).rename(path)


@contextmanager
def _refusing_disk(folder: Path) -> Generator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            full = f"The disk of {folder} is full"
            raise UserError(f"{full}. Free some space and run the same command again.") from error
        raise UserError(
            f"{folder} cannot be written ({error.strerror}). Give a writable folder with "
            "--data, and set PODIUM_DATA to it for runs."
        ) from error


@contextmanager
def _part_of(path: Path) -> Generator[BufferedRandom]:
    """Yield a download's partial file, locked and open to append; UserError if it is locked."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = partial.exists() and partial.stat().st_ino == os.fstat(file.fileno()).st_ino
        except BlockingIOError:
            locked = False
        if not locked:  # another process writes this file or has just renamed it
            raise UserError(f"Another podium process is downloading {path}. Wait until it ends.")
        try:
            yield file
        finally:
            if partial.exists() and not partial.stat().st_size:
                partial.unlink()


def _write_part(url: str, file: BufferedRandom, size: int, path: Path) -> int:
    """Append a download's missing bytes to its partial file; return the file's length so far."""
    if (length := file.seek(0, os.SEEK_END)) >= size:
        file.truncate(length := 0)
    headers = {"User-Agent": "podium", **({"Range": f"bytes={length}-"} if length else {})}
    with _reaching(url, path):
        answer: Any = urlopen(Request(url, headers=headers), timeout=TIMEOUT_S)
    if answer.status != 206:  # the server ignores Range and sends the whole file
        file.truncate(length := 0)
    with answer:
        while length <= size:
            with _reaching(url, path):
                chunk: bytes = answer.read1(min(CHUNK, size + 1 - length))
            if not chunk:
                break
            length += file.write(chunk)
    file.flush()
    return length


@contextmanager
def _reaching(url: str, path: Path) -> Generator[None]:
    try:
        yield
    except HTTPError as error:
        error.close()
        fix = "Put"
        if error.code in (401, 403):
            problem = f"needs an account with access (HTTP {error.code})"
        elif error.code in (404, 410):
            problem = f"no longer exists (HTTP {error.code})"
        else:
            problem, fix = (
                f"cannot be downloaded now (HTTP {error.code})",
                "Try again later, or put",
            )
        raise Unreachable(url, problem, f". {fix} the file at {path}") from error
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        problem = f"cannot be reached ({reason[:160]})"
        fix = f". Go online and try again, or put the file at {path}"
        raise Unreachable(url, problem, fix) from error


def make_file(path: Path, recipe: str, originals: Sequence[Original], sha256: str) -> None:
    """Build a data file from its originals by a recipe of MAKERS; UserError if not as pinned."""
    folder = path.with_name(f".{path.name}.originals")
    copies = {original.path: folder / original.sha256[:12] for original in originals}
    with _refusing_disk(folder):
        for original in originals:
            copy = copies[original.path]
            if not copy.is_file():
                download(address(original), copy, original.sha256, original.size)
        make, ascii_only = MAKERS[recipe]
        rows = make(copies)
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode()
        if hashlib.sha256(text).hexdigest() != sha256:
            raise UserError(
                f"{path} cannot be made from its originals: the result is not the pinned file. "
                "Please report it with the version of pyarrow."
            )
        output = folder / path.name
        output.write_bytes(text)
        output.rename(path)
        for copy in copies.values():
            copy.unlink()
        folder.rmdir()


def numbered_problems(copies: Mapping[str, Path]) -> Iterable[dict[str, Any]]:
    """Yield a file's AIME 2025 problems with ids like aime25-II-3, without the last instruction."""
    (file,) = copies.values()
    suffix = "\nPlease reason step by step, and put your final answer within \\boxed{}."
    for index, line in enumerate(file.read_bytes().splitlines()):
        row = cast(dict[str, Any], parse_json(line))
        name = f"aime25-{'I' * (1 + index // 15)}-{1 + index % 15}"
        yield {"id": name, "problem": row["prompt"].removesuffix(suffix), "answer": row["answer"]}


def lighteval_replies(copies: Mapping[str, Path]) -> Iterable[dict[str, Any]]:
    """Yield a row per reply in Lighteval's `details` files, with token counts instead of tokens."""
    details = {name: copy for name, copy in copies.items() if name.endswith(".parquet")}
    problems = {name: copy for name, copy in copies.items() if name not in details}
    ids = {str(row["answer"]): row["id"] for row in numbered_problems(problems)} if problems else {}
    for name, copy in details.items():
        model, task = name.split("/")[3], name.rpartition("details_custom_")[2].partition("_0_")[0]
        for index, row in enumerate(parquet_rows(copy)):
            yield {
                "task": task,
                "model": model,
                "item": index,
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
"""Name of a recipe in sources.toml -> (function from downloaded originals to the rows of a data
file, whether the file's JSON is ASCII)."""
