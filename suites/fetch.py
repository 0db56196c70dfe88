"""Fetch a suite's rows as they are pinned in suites/sources.toml: a local file, else the hub.

A local file is checked by sha256 and row count, the hub by revision and row count. Nothing is
downloaded that the cache holds (suites/hub.py), and a missing source is one sentence that says
where to put it. `podium data` is suites/data_checks.py and suites/data_downloads.py.
"""

import hashlib
import os
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.errors import UserError
from harness.records import Question
from suites.hub import cached_rows, hub_rows, refusal
from suites.row_files import Rows, parsed_rows

SOURCES = Path(__file__).parent / "sources.toml"
DATA = Path(__file__).resolve().parents[2] / "shared/data"
"""Where the data lies beside a checkout; PODIUM_DATA names another folder."""


class Source(BaseModel):
    """One table of sources.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    sha256: str = ""
    """Empty where nobody could read the file to pin it: its digest then is the data's revision."""
    rows: int | None = None
    """None where nobody could count them."""
    size: int | None = None
    """Bytes, for files so large that a download cut off should be told before all is read."""
    licence: str
    hub: str | None = None
    """Dataset on the hub; None when it was never published there."""
    revision: str | None = None
    split: str = "test"
    config: str | None = None
    """The dataset's configuration (subset) on the hub, where it has several."""
    hub_file: str | None = None
    """A file of that dataset, read in place of a split; named as `file`, it is that very file."""
    url: str | None = None
    """Where the very file can be downloaded, by `podium data fetch`."""
    instead_of: str | None = None
    """Another table whose questions this one has too: one of the two will do."""
    columns: tuple[str, ...] = ()
    """Columns that every row must have; a missing one is named."""


@cache
def sources() -> dict[str, Source]:
    """Return every pinned source by name."""
    tables = tomllib.loads(SOURCES.read_text(encoding="utf-8"))
    return {name: Source.model_validate(table) for name, table in tables.items()}


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder of local data: the given one, PODIUM_DATA, or shared/data.

    Where there is no shared/data beside the checkout, it is `data` in podium's cache folder.
    """
    named = data or os.environ.get("PODIUM_DATA")
    return Path(named or (DATA if DATA.is_dir() else cache_folder() / "data")).expanduser()


def cache_folder() -> Path:
    """Return podium's folder below the user's cache (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium"


def fetch_rows(name: str, data: str | Path | None = None) -> Rows:
    """Return a source's rows, from the local file where there is one, else from the hub.

    UserError when the file is not the pinned one, or when neither can be had.
    """
    source = sources()[name]
    if (data_folder(data) / source.file).is_file() or source.hub is None:
        return local_rows(name, data)
    return pinned_hub_rows(source, data)


def pinned_hub_rows(source: Source, data: str | Path | None = None) -> Rows:
    """Return the rows of a source's dataset, from the hub's cache or else downloaded, checked.

    UserError, also with the way without the hub, when they cannot be had or are others.
    """
    asked = (str(source.hub), source.config, source.revision, source.split)
    rows = cached_rows(*asked)
    if rows is None or source.rows not in (None, len(rows)):
        try:
            rows = hub_rows(*asked)
        except Exception as error:
            raise refusal(error, asked[0], by_hand(source, data)) from error
    return checked_rows(list(rows), source, f"{source.hub} at {source.revision}")


def by_hand(source: Source, data: str | Path | None = None) -> str:
    """Return what to do where a source cannot be downloaded: which file to put where."""
    path = data_folder(data) / source.file
    return f"put the file at {path} (PODIUM_DATA names another folder)"


def revision(name: str, data: str | Path | None = None) -> str:
    """Return what pins the rows that `fetch_rows` returns: the local file's digest or the hub's."""
    source = sources()[name]
    if (data_folder(data) / source.file).is_file() or source.hub is None:
        return f"{source.file}@sha256:{(source.sha256 or _digest(name, data))[:12]}"
    return f"{source.hub}@{source.revision}"


def local_path(name: str, data: str | Path | None = None) -> Path:
    """Return the path of a source's local file; UserError says where to put it when absent."""
    source = sources()[name]
    path = data_folder(data) / source.file
    if not path.is_file():
        raise UserError(
            f"There is no {path}: put {source.file} there, or name its folder in PODIUM_DATA."
        )
    return path


def local_rows(name: str, data: str | Path | None = None) -> Rows:
    """Return the rows of a local file; UserError when it is absent or not the pinned one."""
    source, path = sources()[name], local_path(name, data)
    return checked_rows(parsed_rows(local_bytes(name, data), path), source, str(path))


def local_bytes(name: str, data: str | Path | None = None) -> bytes:
    """Return a local file's content; UserError when it is absent or not the pinned one."""
    source, path = sources()[name], local_path(name, data)
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if source.sha256 and found != source.sha256:
        raise UserError(
            f"{path} is not the pinned file: its sha256 is {found[:12]}, not {source.sha256[:12]}; "
            "move it away, then `podium data fetch` gets the pinned one."
        )
    return content


def checked_rows(rows: Rows, source: Source, where: str) -> Rows:
    """Return the rows; UserError for another number of them or a column that is not there."""
    if source.rows is not None and len(rows) != source.rows:
        raise UserError(f"{where} has {len(rows)} rows, not the pinned {source.rows}.")
    for number, row in enumerate(rows, start=1):
        for column in source.columns:
            if column not in row:
                raise UserError(f"{where}, row {number} has no column {column!r}.")
    return rows


def refuse_duplicates(questions: Sequence[Question], where: str) -> Sequence[Question]:
    """Return the questions; UserError when two have the same id."""
    seen = set[str]()
    for question in questions:
        if question.id in seen:
            raise UserError(f"{where} has the id {question.id!r} twice.")
        seen.add(question.id)
    return questions


def _digest(name: str, data: str | Path | None) -> str:
    """Return the sha256 of a local file that nobody pinned; hashed again only once it changes."""
    path = local_path(name, data)
    stat = path.stat()
    return _hashed(path, stat.st_mtime_ns, stat.st_size)


@cache
def _hashed(path: Path, mtime_ns: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
