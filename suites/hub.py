"""Read a pinned dataset or file of the hub: from the hub's own cache, else by a download.

`datasets` takes the newest cached revision when it is offline, whichever was asked for. So the
cache is read here by revision, without a request, and what a load returns is held to its revision.
All loaders word trouble with the hub by `refusal`.
"""

import errno
import re
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError

HubRows = tuple[dict[str, Any], ...]

LONGEST_REASON = 160
"""Characters of what a client says; of a longer message only the error's name is told."""
REACH_S = 10.0
"""Seconds in which the hub's address must answer, as long as its client waits."""

ALONE: ContextVar[bool] = ContextVar("podium_hub_alone", default=False)
"""Whether the hub is not to be asked in this context; see `hub_left_alone`."""


class OtherRevision(Exception):
    """The hub is out of reach and its cache holds the dataset at another revision."""


class Unreachable(Exception):
    """Nothing answers at the hub's address."""


class NotAsked(Exception):
    """What is not in the hub's cache, where the hub is left alone."""


@contextmanager
def hub_left_alone() -> Generator[None]:
    """Make everything below raise NotAsked where it would ask the hub; its cache is read."""
    token = ALONE.set(True)
    try:
        yield
    finally:
        ALONE.reset(token)


def hub_rows(hub: str, config: str | None, revision: str | None, split: str) -> HubRows:
    """Return a dataset's rows, loaded once a process; raises what `datasets` raises.

    `hub` is a name on the hub, or a folder (then without a revision).
    """
    if ALONE.get():
        raise NotAsked("it is not in the hub's cache")
    return _loaded(hub, config, revision, split)


@cache
def _loaded(hub: str, config: str | None, revision: str | None, split: str) -> HubRows:
    if not Path(hub).is_dir():
        _reach()
    load = cast(Callable[..., Any], _datasets().load_dataset)
    loaded = load(hub, config, revision=revision, split=split)
    files = [str(file["filename"]) for file in loaded.cache_files]
    if revision and not all(revision in Path(file).parts for file in files):
        raise OtherRevision(f"only another revision than {revision[:12]} is cached")
    return tuple(dict(row) for row in cast(Iterable[dict[str, Any]], loaded))


def cached_rows(hub: str, config: str | None, revision: str | None, split: str) -> HubRows | None:
    """Return the rows that the hub's cache has at this revision, without any request, else None.

    `split` may join several by `+`. None also where several configurations are cached and none is
    named.
    """
    if not revision:
        return None
    found = list(_cached_files(hub, config, revision, split))
    return _rows(found[0]) if len(found) == 1 else None


def hub_file(hub: str, file: str, revision: str | None) -> Path:
    """Return a file of a dataset in the hub's cache, downloaded once; raises what the hub raises.

    A cached file at a commit is returned without a request.
    """
    cached = cached_file(hub, file, revision)
    if cached:
        return cached
    if ALONE.get():
        raise NotAsked("it is not in the hub's cache")
    _reach()
    download = cast(Callable[..., str], _hub().hf_hub_download)
    return Path(download(hub, file, repo_type="dataset", revision=revision))


@cache
def _reach() -> None:
    """Raise Unreachable where nothing answers at the hub's address, asked twice.

    The client itself would try for 23 seconds and print each try, without an option for fewer; so
    it is not begun with. What breaks once the hub was there it tries again as it does.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return
    for tries_left in (1, 0):
        try:
            get_session().head(constants.ENDPOINT, timeout=REACH_S)
            return
        except Exception as error:  # of an HTTP library that is the client's own affair
            if not tries_left:
                reason = f"nothing answers at {constants.ENDPOINT}: {error}"
                raise Unreachable(reason) from error
            time.sleep(1)


def cached_file(hub: str, file: str, revision: str | None) -> Path | None:
    """Return the file if the hub's cache has it at this revision; asks nobody."""
    find = cast(Callable[..., object], _hub().try_to_load_from_cache)
    found = find(hub, file, repo_type="dataset", revision=revision)
    return Path(found) if isinstance(found, str) else None


def refusal(error: Exception, hub: str, otherwise: str) -> UserError:
    """Return what to do about an error of the hub's clients.

    `otherwise` is the way without the hub: "put FILE at PATH". The chain of causes is read, since
    `datasets` raises its own errors over those of huggingface_hub.
    """
    chain = list(_chain(error))
    names = {type(one).__name__ for one in chain}
    said = " ".join(str(one) for one in chain)
    if any(isinstance(one, OSError) and one.errno == errno.ENOSPC for one in chain):
        return UserError(
            f"{hub} cannot be loaded: the disk is full. Free some space, or name "
            f"another folder for the hub's cache in HF_HOME, or {otherwise}."
        )
    if "GatedRepoError" in names or "is a gated dataset" in said:
        return UserError(
            f"{hub} is gated: accept the terms on the hub's page of {hub} and set "
            f"HF_TOKEN, or {otherwise}."
        )
    if "RevisionNotFoundError" in names or re.search(r"Revision '.*' doesn't exist", said):
        return UserError(f"The hub's {hub} no longer has the pinned revision: {otherwise}.")
    if names & {"RepositoryNotFoundError", "DatasetNotFoundError"}:
        return UserError(
            f"The hub has no {hub}, or shows it to other accounts only: set HF_TOKEN "
            f"to one that may see it, or {otherwise}."
        )
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    reason = first if len(first) <= LONGEST_REASON else type(error).__name__
    return UserError(f"{hub} cannot be loaded ({reason}): go online once, or {otherwise}.")


def _chain(error: BaseException) -> Generator[BaseException]:
    seen = set[int]()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop(0)
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            left += [one.__cause__, one.__context__]


def _cached_files(
    hub: str, config: str | None, revision: str, split: str
) -> Generator[tuple[Path, ...]]:
    """Yield, for each cached configuration that has all of the splits, the files of its rows."""
    folder = Path(_datasets().config.HF_DATASETS_CACHE).expanduser()
    owner, _, name = hub.rpartition("/")
    snake = cast(Callable[[str], str], _datasets().naming.camelcase_to_snakecase)(name)
    parent = folder / (f"{owner}___{snake}" if owner else snake)
    for found in sorted(parent.glob(f"{config or '*'}/*/{revision}")):
        parts = [_of_split(found, one) for one in split.split("+")]
        if all(parts):
            yield tuple(file for files in parts for file in files)


def _of_split(folder: Path, split: str) -> list[Path]:
    name = re.compile(rf".+-{re.escape(split)}(-\d{{5}}-of-\d{{5}})?\.arrow")
    return sorted(path for path in folder.iterdir() if name.fullmatch(path.name))


@cache
def _rows(files: tuple[Path, ...]) -> HubRows:
    read = cast(Callable[[str], Iterable[dict[str, Any]]], _datasets().Dataset.from_file)
    return tuple(dict(row) for file in files for row in read(str(file)))


def _datasets() -> Any:
    # Heavy, and needed only where there is no local file; its types are partial.
    import datasets  # pyright: ignore[reportMissingTypeStubs]

    return datasets


def _hub() -> Any:
    import huggingface_hub

    return huggingface_hub
