"""Find and read the Inspect logs that podium wrote, each file once.

The log is the record: what `podium run` knew (suite, system, pool, price book, workers) travels in
the log's metadata and is validated here, because a log comes in from outside. What the calls cost
is harness/ledger/.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.boxes import BoxFacts
from harness.errors import UserError
from harness.ledger.raw_log import refuse_oversized
from harness.pool_file import Label
from harness.prices.pricing import Service
from harness.records import PODIUM
from harness.service import service_of
from harness.suite import OFFICIAL, Prompt


class WorkerFacts(BaseModel):
    """A worker as it was when the log was written."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str
    price: str
    """Key in the embedded price book."""
    card: str = ""
    knowledge_cutoff: str = "unknown"
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Arguments of the provider, e.g. `reasoning_enabled`: identity too."""
    not_auditable: str = ""
    """Why nothing tells the dollars of its calls; empty where tokens and a price do."""

    @property
    def settings(self) -> dict[str, Any]:
        """Config and provider arguments together: what makes two workers of one model differ."""
        return {**self.config, **self.args}

    @cached_property
    def service(self) -> Service:
        """How its provider was asked to serve it."""
        return service_of(GenerateConfig.model_validate(self.config), self.args)


class RunFacts(BaseModel):
    """What the log header says about a run; written by `podium run`, never inferred."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    version: Literal[1] = Field(alias="schema")
    suite: str
    suite_version: str
    data_revision: str
    dates: str
    publishable: bool
    split: str
    prompt: Prompt = OFFICIAL
    """How the questions were put; logs that do not say are older than the choice."""
    system: str
    args: dict[str, Any]
    pool: str
    pool_sha256: str
    label: Label
    prices: dict[str, Any]
    workers: dict[str, WorkerFacts]
    box: str | None = None
    box_facts: BoxFacts | None = None
    seed: int
    time_scale: float
    purpose: Literal["eval", "selection"] = "eval"
    notes: tuple[str, ...] = ()
    uses_targets: bool = False
    reference_allowed: bool = True
    order: int | None = None
    """Place in which the run began its systems, from 1; None in logs older than the shuffle."""
    journal: int | None = None
    """Set where every call of the log is in a journal too; None in logs older than journals."""
    source: str = ""
    """Of the system, by its manifest. This and the next three are empty in older logs, whose
    `notes` hold the deviations."""
    deviations: tuple[str, ...] = ()
    calls_expected: tuple[int, int] | None = None
    """The least and the most worker calls of a question; None where nothing was promised."""
    prompt_sha256: str = ""
    """Of the system's own prompts; empty where it has none."""
    redacted: bool = False
    """True for a copy without texts, which is shared without its journals."""


def find_logs(dirs: Sequence[Path], recursive: bool = True) -> tuple[Path, ...]:
    """Return the `.eval` files of several directories, each once, in a fixed order.

    A path may also be one `.eval` file. UserError when a path does not exist or nothing is found.
    """
    found: dict[Path, Path] = {}
    for path in dirs:
        if not path.exists():
            raise UserError(f"There is no {path}; name the directory that `podium run` wrote.")
        pattern = "**/*.eval" if recursive else "*.eval"
        for log in [path] if path.is_file() else sorted(path.glob(pattern)):
            found.setdefault(Path(os.path.realpath(log)), log)  # which loops of links do not break
    if not found:
        places = ", ".join(str(path) for path in dirs)
        raise UserError(f"There is no .eval log in {places}; run `podium run` first.")
    return tuple(found.values())


def newest_logs(dirs: Sequence[Path], recursive: bool = True) -> tuple[Path, ...]:
    """Return the newest log of every task; a resumed or regraded task has several."""
    newest: dict[str, tuple[tuple[str, str], Path]] = {}
    for path in find_logs(dirs, recursive):
        header = _read(path, header_only=True)
        rank = age(header, path)
        if rank >= newest.get(header.eval.task_id, (rank, path))[0]:
            newest[header.eval.task_id] = (rank, path)
    return tuple(path for _, path in newest.values())


def read_log(path: Path) -> EvalLog | None:
    """Read one log whole; None when it carries nothing of podium's.

    UserError names a file that is truncated or no log at all.
    """
    log = _read(path, header_only=False)
    return log if isinstance((log.eval.metadata or {}).get(PODIUM), Mapping) else None


def age(log: EvalLog, path: Path) -> tuple[str, str]:
    """Return a sort key: of two logs of one task the greater one is the newer.

    A regraded log repeats the old one's creation time, and has a later time in its name.
    """
    return (log.eval.created, path.name)


def run_facts(log: EvalLog, path: Path) -> RunFacts | None:
    """Return what the log says about its run; None when `podium run` did not write it.

    UserError when it did, but says something this version does not understand.
    """
    return facts_in(log.eval.metadata, path)


def facts_in(metadata: Mapping[str, Any] | None, path: Path) -> RunFacts | None:
    """Return what `run_facts` does, of the metadata in a log's header."""
    stored: object = (metadata or {}).get(PODIUM)
    if not isinstance(stored, Mapping) or "system" not in stored:
        return None
    try:
        return RunFacts.model_validate(stored)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UserError(
            f"{path} was written by another version of podium (field {field}: {first['msg']}); "
            "read it with that version."
        ) from error


def _read(path: Path, *, header_only: bool) -> EvalLog:
    refuse_oversized(path, header_only=header_only)
    try:
        return read_eval_log(str(path), header_only=header_only)
    except Exception as error:  # a damaged file may fail anywhere in zip, JSON or pydantic
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise UserError(
            f"{path} is damaged or no Inspect log ({reason}); move it away and try again."
        ) from error
