"""Load suites' data rows, pinned in sources.toml: from a local file or the Hugging Face hub.

Hub data is checked by revision and row count: offline, the library `datasets` takes the newest
cached revision in place of the requested one, so this module itself looks for rows in the hub's
cache and checks the revision of each load.
"""

import errno
import gzip
import hashlib
import io
import os
import re
import time
import tomllib
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from podium.harness.errors import UserError
from podium.harness.files import (
    cache_folder,
    dicts_of_csv,
    first_line,
    parse_json,
    plain_or_packed,
    unpack_gzip,
)
from podium.harness.records import Question

Rows = list[dict[str, Any]]
SOURCES = Path(__file__).parent / "sources.toml"
DATA = Path(__file__).resolve().parents[2] / "shared/data"
"""The default data folder, beside a source checkout; PODIUM_DATA overrides it."""
HubRows = tuple[dict[str, Any], ...]
LONGEST_REASON = 160
AGAIN = "Remove this copy of the data, then run `podium data fetch SUITE`."
REACH_S = 10.0
"""Timeout, in seconds, of the request that tests whether the Hugging Face hub answers."""
ALONE: ContextVar[bool] = ContextVar("podium_hub_alone", default=False)


def parse_rows(content: bytes, path: Path) -> Rows:
    """Parse a data file's content into rows; UserError, with the path, if that fails."""
    if path.suffix == ".parquet":
        return parquet_rows(path)
    try:
        text = unpack_gzip(content) if path.suffix == ".gz" else content
        rows = _parse_text(text, Path(path.name.removesuffix(".gz")).suffix)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile):
        # The error is not chained, because its text has parts of the data.
        raise UserError(f"{path} cannot be read. {AGAIN}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path} cannot be read: one of its rows is not a JSON object. {AGAIN}")
    return cast(Rows, rows)


def parquet_rows(path: Path) -> Rows:
    """Return the rows of a parquet file; UserError if it cannot be read as one."""
    from pyarrow import parquet  # pyright: ignore[reportMissingTypeStubs]

    try:
        return cast(Any, parquet).read_table(path).to_pylist()
    except (ValueError, NotImplementedError, OSError) as error:  # Arrow raises subclasses
        reason = first_line(error)[:160]
        raise UserError(f"{path} cannot be read as parquet ({reason}). {AGAIN}") from error


def _parse_text(text: bytes, suffix: str) -> list[object]:
    if suffix == ".csv":
        lines = io.StringIO(text.decode("utf-8-sig"), newline="")
        return [row for _, row in dicts_of_csv(lines)]
    if suffix == ".json":
        value = parse_json(text)
        return cast(list[object], value) if isinstance(value, list) else [value]
    return [parse_json(line) for line in text.splitlines() if line.strip()]


class Original(BaseModel, extra="forbid", frozen=True):
    """A file in a public GitHub repository: `at` is OWNER/NAME@COMMIT, `path` its path there."""

    at: str
    path: str
    size: int
    sha256: str


class DataSource(BaseModel, extra="forbid", frozen=True):
    """A data source, one table of sources.toml: a file, its digest, and where to get it."""

    file: str
    sha256: str = ""
    """Digest of the file. Empty: any file is accepted, and its own digest is the data revision."""
    rows: int | None = None
    size: int | None = None
    """Size in bytes, if pinned: a file of another size is reported without hashing it."""
    licence: str
    hub: str | None = None
    revision: str | None = None
    split: str = "test"
    config: str | None = None
    hub_file: str | None = None
    """A file of the dataset `hub` that is read instead of a split. If `file` has the same name, the
    two files must be identical."""
    at: str | None = None
    path: str = ""
    """Path of this file in the public GitHub repository `at`."""
    originals: tuple[Original, ...] = ()
    made: str = ""
    """Name of the recipe in data_command.py that builds the file from its originals (files on
    GitHub); empty if the file is not built."""
    needs: tuple[str, ...] = ()
    instead_of: str | None = None
    """Name of another source with the same questions: only one of the two is needed."""
    columns: tuple[str, ...] = ()

    @property
    def public(self) -> tuple[Original, ...]:
        """Files to download from GitHub: this source's file or its originals; () if none."""
        if self.at is None:
            return self.originals
        return (Original(at=self.at, path=self.path, size=self.size or 0, sha256=self.sha256),)


@cache
def sources() -> dict[str, DataSource]:
    """Return all data sources in sources.toml by their names there."""
    tables = tomllib.loads(SOURCES.read_text(encoding="utf-8"))
    return {name: DataSource.model_validate(table) for name, table in tables.items()}


def data_folder(data: str | Path | None = None) -> Path:
    """Return the local data folder: `data`, PODIUM_DATA, shared/data if present, podium's cache."""
    folder = data or os.environ.get("PODIUM_DATA")
    return Path(folder or (DATA if DATA.is_dir() else cache_folder() / "data")).expanduser()


def fetch_rows(name: str, data: str | Path | None = None) -> Rows:
    """Return a data source's rows, local or from the hub; UserError if absent or not as pinned."""
    source = sources()[name]
    if local_file(source, data).is_file() or source.hub is None:
        return local_rows(name, data)
    return pinned_hub_rows(source, data)


def pinned_hub_rows(source: DataSource, data: str | Path | None = None) -> Rows:
    """Return a source's rows from the hub's dataset; UserError if download or check fails."""
    request = (str(source.hub), source.config, source.revision, source.split)
    rows = cached_rows(*request)
    if rows is None or source.rows not in (None, len(rows)):
        try:
            rows = hub_rows(*request)
        except Exception as error:
            raise hub_refusal(error, request[0], by_hand(source, data)) from error
    return check_rows(list(rows), source, f"{source.hub} at {source.revision}")


def by_hand(source: DataSource, data: str | Path | None = None) -> str:
    """Return the end of a message on a failed download: at which path to put the source's file."""
    path = data_folder(data) / source.file
    return f"put the file at {path} (PODIUM_DATA can name another folder)"


def data_revision(name: str, data: str | Path | None = None) -> str:
    """Return the version of a source's rows: FILE@sha256:DIGEST if local, else DATASET@REVISION."""
    source = sources()[name]
    if source.hub is not None and not local_file(source, data).is_file():
        return f"{source.hub}@{source.revision}"
    digest = source.sha256
    if not digest:
        path = local_path(name, data)
        digest = file_digest(path, path.stat().st_mtime_ns)
    return f"{source.file}@sha256:{digest[:12]}"


def local_file(source: DataSource, data: str | Path | None = None) -> Path:
    """Return the path of a source's local file or its .gz copy; it may not exist."""
    return plain_or_packed(data_folder(data) / source.file)


def local_path(name: str, data: str | Path | None = None) -> Path:
    """Return the path of a source's local file; if absent, UserError says how to get the file."""
    source = sources()[name]
    path = local_file(source, data)
    if not path.is_file():
        fetch = f"Run `podium data fetch {name}`, or " if source.public else ""
        instruction = (
            f"{'put' if fetch else 'Put'} it there, or set PODIUM_DATA to the folder of all data"
        )
        raise UserError(f"There is no {path}. {fetch}{instruction}.")
    return path


def local_rows(name: str, data: str | Path | None = None) -> Rows:
    """Return the rows of a source's local file; UserError if it is absent or not as pinned."""
    path = local_path(name, data)
    rows = parse_rows(local_bytes(name, data), path.with_name(Path(sources()[name].file).name))
    return check_rows(rows, sources()[name], str(path))


def local_bytes(name: str, data: str | Path | None = None) -> bytes:
    """Return the content of a source's local file; UserError if absent or not as pinned."""
    source, path = sources()[name], local_path(name, data)
    content = held_bytes(source, path)
    digest = hashlib.sha256(content).hexdigest()
    if source.sha256 and digest != source.sha256:
        raise UserError(
            f"{path} is not the pinned file: its sha256 is {digest[:12]}, not {source.sha256[:12]}"
            f". Move it away, then download the pinned file with `podium data fetch {name}`."
        )
    return content


def held_bytes(source: DataSource, path: Path) -> bytes:
    """Return a local file's content, unpacked if `path` is its .gz copy; UserError if damaged."""
    content = path.read_bytes()
    if path.name == Path(source.file).name:
        return content
    try:
        return unpack_gzip(content)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path} cannot be read. {AGAIN}") from None


def check_rows(rows: Rows, source: DataSource, origin: str) -> Rows:
    """Return a source's rows; UserError if a column is missing or their number is not as pinned."""
    if source.rows is not None and len(rows) != source.rows:
        raise UserError(f"{origin} has {len(rows)} rows, not the pinned {source.rows}. {AGAIN}")
    for number, row in enumerate(rows, start=1):
        for column in source.columns:
            if column not in row:
                raise UserError(f"{origin}, row {number} has no column {column!r}. {AGAIN}")
    return rows


def refuse_duplicates(questions: Sequence[Question], origin: str) -> Sequence[Question]:
    """Return the questions of `origin`; UserError if two have the same id."""
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        twice = next(id for index, id in enumerate(ids) if id in ids[:index])
        raise UserError(f"{origin} has the id {twice!r} twice. Give each row its own id.")
    return questions


@cache
def file_digest(path: Path, mtime_ns: int) -> str:
    """Return the sha256 of a file, cached by its modification time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HubError(Exception):
    """Raised if the Hugging Face hub is off or unreachable, or its cache lacks the revision."""


@contextmanager
def hub_left_alone() -> Generator[None]:
    """In a `with` block, requests to the hub raise HubError; the hub's cache is still read."""
    token = ALONE.set(True)
    try:
        yield
    finally:
        ALONE.reset(token)


@cache
def hub_rows(hub: str, config: str | None, revision: str | None, split: str) -> HubRows:
    """Return a hub dataset's rows, loaded once per process; HubError, or errors of `datasets`."""
    if not Path(hub).is_dir():
        _refuse_unreachable()
    loaded: Any = _datasets().load_dataset(
        hub, config, revision=revision, split=split, trust_remote_code=False
    )
    files = [str(file["filename"]) for file in loaded.cache_files]
    if revision and not all(revision in Path(file).parts for file in files):
        raise HubError(f"the cache does not have revision {revision[:12]}")
    return tuple(dict(row) for row in loaded)


def cached_rows(hub: str, config: str | None, revision: str | None, split: str) -> HubRows | None:
    """Return a dataset's rows from the hub's cache without any request; None if not cached."""
    if not revision:
        return None
    owner, _, name = hub.rpartition("/")
    snake = _datasets().naming.camelcase_to_snakecase(name)
    folder = Path(_datasets().config.HF_DATASETS_CACHE).expanduser()
    folder /= f"{owner}___{snake}" if owner else snake
    cached = sorted(folder.glob(f"{config or '*'}/*/{revision}"))
    every = ([_of_split(path, piece) for piece in split.split("+")] for path in cached)
    matches = [tuple(chain(*shards)) for shards in every if all(shards)]
    return _arrow_rows(matches[0]) if len(matches) == 1 else None


def hub_file(source: DataSource, otherwise: str, label: str = "") -> Path:
    """Return the path of a source's file on the hub, downloaded if it is not in the hub's cache.

    If the download fails, UserError names the file or dataset (`label`) and a fix (`otherwise`).
    """
    from huggingface_hub import hf_hub_download  # pyright: ignore[reportUnknownVariableType]

    hub, file = str(source.hub), str(source.hub_file)
    try:
        if cached := cached_file(source):
            return cached
        _refuse_unreachable()
        return Path(hf_hub_download(hub, file, repo_type="dataset", revision=source.revision))
    except Exception as error:  # offline, gated, no such revision, a full disk
        raise hub_refusal(error, label or hub, otherwise) from error


def _refuse_unreachable() -> None:
    """Raise HubError if the hub does not answer or the context `hub_left_alone` switched it off."""
    if ALONE.get():
        raise HubError("it is not in the hub's cache")
    _reach_hub()


@cache
def _reach_hub() -> None:
    """Raise HubError if the hub does not answer at the second try; checked once per process."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return
    for tries_left in (1, 0):
        try:
            get_session().head(constants.ENDPOINT, timeout=REACH_S)
            return
        except Exception as error:  # its type depends on the client's HTTP library
            if not tries_left:
                raise HubError(f"nothing answers at {constants.ENDPOINT}: {error}") from error
            time.sleep(1)


def cached_file(source: DataSource) -> Path | None:
    """Return the path of a source's hub file in the hub's cache, or None; sends no request."""
    from huggingface_hub import try_to_load_from_cache

    hub, file = str(source.hub), str(source.hub_file)
    cached = try_to_load_from_cache(hub, file, repo_type="dataset", revision=source.revision)
    return Path(cached) if isinstance(cached, str) else None


def hub_refusal(error: Exception, hub: str, otherwise: str) -> UserError:
    """Return a UserError for an error of the hub's client libraries; `otherwise` is another fix."""
    chain = list(_causes(error))
    names = {type(cause).__name__ for cause in chain}
    messages = " ".join(str(cause) for cause in chain)
    if any(isinstance(cause, OSError) and cause.errno == errno.ENOSPC for cause in chain):
        full = f"{hub} cannot be loaded: the disk is full. Free some space, or name another folder"
        return UserError(f"{full} for the hub's cache in HF_HOME, or {otherwise}.")
    if "GatedRepoError" in names or "is a gated dataset" in messages:
        terms = f"Accept the terms on the hub's page of {hub} and set HF_TOKEN"
        return UserError(f"{hub} is gated. {terms}, or {otherwise}.")
    if "RevisionNotFoundError" in names or re.search(r"Revision '.*' doesn't exist", messages):
        return UserError(f"The hub's {hub} no longer has the pinned revision: {otherwise}.")
    if names & {"RepositoryNotFoundError", "DatasetNotFoundError"}:
        problem = f"The hub has no {hub}, or your account has no access to it"
        return UserError(f"{problem}. Set HF_TOKEN of an account with access, or {otherwise}.")
    if "OfflineModeIsEnabled" in names or "OfflineModeIsEnabled" in messages:
        return UserError(
            f"{hub} cannot be loaded (HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set, which forbids "
            f"requests to the hub). Unset it and try again, or {otherwise}."
        )
    line = first_line(error)
    reason = line if len(line) <= LONGEST_REASON else type(error).__name__
    return UserError(f"{hub} cannot be loaded ({reason}). Go online once, or {otherwise}.")


def _causes(error: BaseException) -> Generator[BaseException]:
    visited, queue = set[int](), list[BaseException | None]([error])
    while queue:
        cause = queue.pop(0)
        if cause is not None and id(cause) not in visited:
            visited.add(id(cause))
            yield cause
            queue += [cause.__cause__, cause.__context__]


def _of_split(folder: Path, split: str) -> list[Path]:
    name = re.compile(rf".+-{re.escape(split)}(-\d{{5}}-of-\d{{5}})?\.arrow")
    return sorted(path for path in folder.iterdir() if name.fullmatch(path.name))


@cache
def _arrow_rows(files: tuple[Path, ...]) -> HubRows:
    return tuple(dict(row) for file in files for row in _datasets().Dataset.from_file(str(file)))


def _datasets() -> Any:
    # Slow to import, and needed only without a local file; its types are partial.
    import datasets  # pyright: ignore[reportMissingTypeStubs]

    return datasets
