"""Which files belong together: the logs and the journals of every sitting below a directory.

A *sitting* is one Inspect task of one run directory, with all its logs and all its journals. It is
the unit of work of audit and export, so that memory is bounded and two processes can share them.
"""

from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.ledger.journal import FOLDER, folder_of
from harness.ledger.raw_log import open_log
from harness.logs import find_logs

UP = 4
"""A log lies at most so many folders below the directory that has its run's journals."""
LOGS, JOURNALS = "**/*.eval", f"**/{FOLDER}/*/*.jsonl"
"""Where the files of sittings lie, below any directory."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one sitting."""

    folder: str
    """Where its logs lie, below the directory that was named; empty for that directory."""
    task: str
    """Inspect's task name; that of the journals' folder where there is no log."""
    logs: tuple[Path, ...]
    """Newest first."""
    journals: tuple[Path, ...]
    """By name, which is by time."""

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(path.stat().st_size for path in (*self.logs, *self.journals))


def has_sittings(folder: Path) -> bool:
    """Say whether there is a log or a journal below a directory."""
    return any(folder.glob(LOGS)) or any(folder.glob(JOURNALS))


def sittings_below(folder: Path) -> tuple[Files, ...]:
    """Return the sittings below a directory, sorted; journals without a log are sittings too.

    UserError when there is neither a log nor a journal, and for a damaged log.
    """
    if not folder.exists():
        raise UserError(f"There is no {folder}; name the directory that `podium run` wrote.")
    journals = {path.parent for path in folder.glob(JOURNALS)}
    has_logs = folder.is_file() or any(folder.glob(LOGS))
    groups: dict[tuple[Path, str], list[tuple[tuple[str, str], Path]]] = {}
    for path in find_logs([folder]) if has_logs or not journals else ():
        with open_log(path) as log:
            eval_ = log.header["eval"]
        key = (path.parent, str(eval_.get("task", "")))
        groups.setdefault(key, []).append(((str(eval_.get("created", "")), path.name), path))
    found: list[Files] = []
    used: set[Path] = set()
    for (parent, task), logs in groups.items():
        place = _journals_of(parent, task)
        used.add(place)
        newest = tuple(path for _, path in sorted(logs, reverse=True))
        found.append(Files(_below(parent, folder), task, newest, _jsonl(place)))
    for place in sorted(journals - used):
        parent = place.parent.parent
        found.append(Files(_below(parent, folder), place.name, (), _jsonl(place)))
    return tuple(sorted(found, key=lambda one: (one.folder, one.task)))


def _below(parent: Path, folder: Path) -> str:
    try:
        return parent.relative_to(folder).as_posix().removeprefix(".")
    except ValueError:  # one file was named, not a directory
        return ""


def _journals_of(parent: Path, task: str) -> Path:
    """Return the folder of a task's journals: beside its logs, or further up."""
    places = [folder_of(one, task) for one in (parent, *parent.parents)][: UP + 1]
    return next((place for place in places if place.is_dir()), places[0])


def journals_of(parent: Path, task: str) -> tuple[Path, ...]:
    """Return the journals of the task whose logs lie in a folder; none of runs older than them."""
    return _jsonl(_journals_of(parent, task))


def _jsonl(place: Path) -> tuple[Path, ...]:
    return tuple(sorted(place.glob("*.jsonl")))
