"""A training budget, the tries it is spent on, and the artifact that comes of them, as a file.

An artifact is a `.npz` without pickles. It is known by its digest, which stands in the log of every
run that used it. Every try is an Inspect sample like any other: logged, priced and resumable.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from harness.context import current
from harness.errors import UserError
from harness.files import replace_file
from harness.records import EMPTY, Question
from harness.suite import TaskRefusal

Arrays = Mapping[str, NDArray[Any]]
_META = "podium_json"


@dataclass(frozen=True, slots=True)
class ArtifactSource:
    """The declared split that taught an artefact."""

    system: str
    rows_sha256: str  # of the rows: ids, scores and costs
    suites: tuple[str, ...]  # whose train splits, or the name of the recorded matrix
    questions: tuple[str, ...]
    """Digests of what was asked (harness/rewards/splits.py), so that an overlap can be refused."""
    workers: tuple[str, ...]  # in pool order; a pool with other workers needs another artefact
    embedder: str = ""
    calls: int = 0  # worker calls that were spent on learning
    settings: Mapping[str, Any] | None = None  # plain hyperparameters, seed included


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artefact: numbers by name, and where they are from."""

    about: ArtifactSource
    arrays: Arrays

    def as_bytes(self) -> bytes:
        """Return the artefact's file; the same artefact has the same bytes."""
        meta = json.dumps(asdict(self.about), sort_keys=True, ensure_ascii=False)
        held = {_META: np.array(meta), **dict(sorted(self.arrays.items()))}
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            for name, values in held.items():
                entry = zipfile.ZipInfo(f"{name}.npy")  # always of 1980-01-01
                entry.compress_type = zipfile.ZIP_DEFLATED
                with file.open(entry, "w") as into:
                    np.lib.format.write_array(into, np.asarray(values), allow_pickle=False)
        return buffer.getvalue()

    @property
    def sha256(self) -> str:
        """Digest of the file."""
        return hashlib.sha256(self.as_bytes()).hexdigest()


_ABOUT = TypeAdapter(ArtifactSource)


def write_artifact(learned: Artifact, path: Path) -> None:
    """Write an artefact, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, learned.as_bytes())


def read_artifact(name: str | None, system: str, sha256: str | None = None) -> Artifact:
    """Return what a system has learnt; relative paths start at the run's log directory.

    UserError when there is no file, when it is damaged, another one than `sha256` says, or another
    system's. Nothing in it is executed.
    """
    if not name:
        raise TaskRefusal(
            f"{system} is not trained: let `podium run` train it, or give the file that `podium "
            f"route --save` wrote, as -S learned=FILE."
        )
    path = current().log_dir / name
    try:
        content = path.read_bytes()
        with np.load(BytesIO(content), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        about = _ABOUT.validate_json(str(arrays.pop(_META)))
    except FileNotFoundError:
        raise TaskRefusal(f"{system} is not trained: there is no file {path}.") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, ValidationError) as error:
        raise UserError(f"{path} is no artefact of podium's: {error}.") from None
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file this run was begun with; restore it.")
    if about.system != system:
        raise UserError(f"{path} was learnt by {about.system}, not by {system}.")
    return Artifact(about, arrays)


def refuse_other_workers(learned: Artifact, workers: tuple[str, ...]) -> None:
    """Raise UserError when a pool has not the workers that an artefact knows."""
    lacking = [name for name in learned.about.workers if name not in workers]
    if lacking:
        raise UserError(
            f"{learned.about.system} was trained on workers that this pool lacks "
            f"({', '.join(lacking)}): train it on this pool."
        )


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """What there is to learn from, and with how much."""

    questions: tuple[Question, ...]  # of the declared train split, sealed, in a fixed order
    workers: tuple[str, ...]
    calls: int  # worker calls that may be spent: the same for every tunable system of a run
    seed: int
    suites: tuple[str, ...]
    publishable: bool = True  # False when an artefact must hold no words of these questions


@dataclass(frozen=True, slots=True)
class Round:
    """Tries to make next: `questions` of the split from `first` on, each `epochs` times.

    The solver decides by its arguments alone what it tries, so that a resumed round tries the same.
    """

    solver: str  # registry name, e.g. `baselines/try_templates`.
    args: Mapping[str, Any]
    questions: int
    epochs: int
    first: int = 0
    """Index of the first of them in `TrainingBudget.questions`, so that rounds may see others."""
    most_calls: int | None = None
    """The most worker calls of one try, which cuts a round to the budget; None where its plans are
    counted (harness/run/forecast.py), else five are taken for granted."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One try."""

    question: str
    epoch: int
    value: float | None  # None when we failed to answer or to grade it: nothing is learnt from it
    calls: int
    usd: float | None
    plan: str  # the workflow that was run, as JSON
    noted: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """What the system noted of how it decided (`Answer.noted`)."""


class Explorer(Protocol):
    """How a system learns by trying."""

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return what to try after the rounds so far; None when there is enough, or no budget."""
        ...

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return what the tries have taught."""
        ...
