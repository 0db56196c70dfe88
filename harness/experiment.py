"""What a log directory is about: one pool, one seed, suites at one version, the systems run so far.

`podium run --log-dir DIR` may add systems and suites to an experiment, raise its limit or its
epochs, and resume it; another pool, seed, sandbox or suite version is a different experiment and is
refused, because its rows could not be compared. The record is `DIR/experiment.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from harness.errors import UserError

FILE = "experiment.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One system on one suite: what becomes one Inspect task."""

    suite: str
    system: str
    solver: str
    """Registry name: `baselines/moa_lite`."""
    args: Mapping[str, Any]
    """Plain solver arguments, kept so that a resumed run is the same run."""
    notes: tuple[str, ...] = ()
    reference_allowed: bool = True
    """False for a best single that was chosen in hindsight."""
    uses_targets: bool = False

    @property
    def name(self) -> str:
        """What the Inspect task is called."""
        return task_name(self.suite, self.system)


def task_name(suite: str, system: str, purpose: str = "eval") -> str:
    """Return the name of an Inspect task, unique below a log directory.

    An eval set looks for finished tasks in subdirectories too, and knows them by their names.
    """
    name = f"{suite} {system}"
    return name if purpose == "eval" else f"{name} ({purpose})"


@dataclass(frozen=True, slots=True)
class Experiment:
    """The identity and extent of one log directory."""

    pool: str
    pool_sha256: str
    seed: int
    split: str
    box: str | None
    time_scale: float
    limit: int | None
    epochs: int
    suite_versions: Mapping[str, str]
    entries: tuple[Entry, ...]
    schema: Literal[1] = 1

    def joined(self, new: "Experiment") -> "Experiment":
        """Return this experiment extended by `new`; UserError when they cannot share a table."""
        for field in ("pool", "pool_sha256", "seed", "split", "time_scale"):
            _same(field, getattr(self, field), getattr(new, field))
        if self.box and new.box:
            _same("box", self.box, new.box)
        for suite in self.suite_versions.keys() & new.suite_versions.keys():
            _same(f"version of {suite}", self.suite_versions[suite], new.suite_versions[suite])
        entries = {entry.name: entry for entry in (*self.entries, *new.entries)}
        limits = (self.limit, new.limit)
        return replace(
            self,
            box=self.box or new.box,
            limit=None if None in limits else max(limit for limit in limits if limit),
            epochs=max(self.epochs, new.epochs),
            suite_versions={**self.suite_versions, **new.suite_versions},
            entries=tuple(entries.values()),
        )


_FILE = TypeAdapter(Experiment)


def open_experiment(log_dir: Path, new: Experiment) -> Experiment:
    """Return the experiment of a directory with `new` added, and write it down.

    UserError when the directory holds another experiment or files that are not ours.
    """
    stored = read_experiment(log_dir)
    if stored is None and log_dir.is_dir() and any(log_dir.iterdir()):
        raise UserError(
            f"{log_dir} is not empty and holds no podium experiment; name another --log-dir."
        )
    try:
        experiment = stored.joined(new) if stored else new
    except UserError as error:
        raise UserError(
            f"{log_dir} holds another experiment: {error}; name another --log-dir."
        ) from None
    log_dir.mkdir(parents=True, exist_ok=True)
    scratch = log_dir / f"{FILE}.new"
    scratch.write_bytes(_FILE.dump_json(experiment, indent=1) + b"\n")
    scratch.replace(log_dir / FILE)
    return experiment


def read_experiment(log_dir: Path) -> Experiment | None:
    """Return the experiment of a directory, None when it has none; UserError when it is damaged."""
    path = log_dir / FILE
    if not path.is_file():
        return None
    try:
        return _FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(
            f"{path} is damaged or of another version of podium (field {where}: {first['msg']}); "
            "restore it or name another --log-dir."
        ) from error


def _same(field: str, stored: object, asked: object) -> None:
    if stored != asked:
        raise UserError(f"its {field} is {stored!r}, not {asked!r}")
