"""Ablations: trainings listed in a file, each with settings that differ from a reference."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from podium.conductor.checkpoint import INFO
from podium.conductor.training import run_folder
from podium.conductor.training.config import (
    CONFIGS,
    ConfigSection,
    TrainingConfig,
    read_config,
    refuse_own_suites,
)
from podium.conductor.training.job import TrainingJob
from podium.conductor.training.model_card import describe_checkpoint
from podium.harness.errors import UserError, first_fault, no_such
from podium.harness.files import read_toml
from podium.harness.ledger.logs import verdict
from podium.harness.ledger.system_runs import entries
from podium.harness.ledger.totals import SystemRun
from podium.harness.records import PODIUM, Question
from podium.harness.rewards.splits import leaks_answer
from podium.harness.workflow import workflow_of

SHIPPED = CONFIGS / "ablations" / "ablations.toml"
SHAPES = ("layout", "cards", "card_words", "words", "reply", "max_steps")
"""Fields of `PlanFormat` that change a warm start; so does the field `access`, if it is `off`."""


class _AblationRow(ConfigSection):
    says: str
    not_run: str = ""  # why it is not run; if given, `set` must be empty
    set: dict[str, Any] = Field(default_factory=dict[str, Any])


class _AblationFile(ConfigSection):
    config: str
    reference: str
    all: dict[str, Any] = Field(default_factory=dict[str, Any])  # settings of every ablation
    ablations: dict[str, _AblationRow] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Ablation:
    """One training that an ablation file lists, or the reason that this training is not run."""

    name: str
    says: str
    config: str  # name or path of the configuration that `settings` change
    settings: tuple[str, ...] = ()  # as `podium train --set` takes them: `section.key=value`
    not_run: str = ""

    def training_config(self, seed: int) -> TrainingConfig:
        """Return this training's configuration with a seed; UserError if a setting is unknown."""
        return read_config(self.config, (*self.settings, f"run.seed={seed}"))


@dataclass(frozen=True, slots=True)
class Ablations:
    """The trainings of an ablation file, in order, and the reference, to which all are compared."""

    reference: Ablation
    rows: tuple[Ablation, ...]


def read_ablations(path: Path = SHIPPED) -> Ablations:
    """Read a file of ablations (trainings); UserError with the first error in the file."""
    try:
        file = _AblationFile.model_validate(read_toml(path))
    except FileNotFoundError:
        raise UserError(f"The ablation file {path} does not exist. Give another --file.") from None
    except ValidationError as error:
        place, reason = first_fault(error)
        raise UserError(f"{path}: {place}: {reason.lower()}. Correct the file.") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as TOML: {error}. Correct it.") from error
    rows: dict[str, Ablation] = {}
    for name, row in file.ablations.items():
        if row.not_run and row.set:
            raise UserError(f"{path}: {name} has both not_run and set: remove one of the two.")
        settings = () if row.not_run else (*_settings(file.all, path), *_settings(row.set, path))
        config = _beside(file.config, path)
        rows[name] = Ablation(name, row.says, config, settings, row.not_run)
    reference = rows.get(file.reference)
    if reference is None or reference.not_run:
        names = ", ".join(name for name, row in rows.items() if not row.not_run)
        fix = f"Use one of: {names}" if names else "Remove `not_run` from an ablation, and use it"
        raise UserError(
            f"{path}: reference must be an ablation of this file without not_run, and "
            f"{file.reference!r} is not. {fix}."
        )
    return Ablations(reference, tuple(rows.values()))


def select_ablations(ablations: Ablations, names: Sequence[str]) -> Ablations:
    """Return the named ablations (or all) and the reference; UserError if a name is unknown."""
    all_names = [row.name for row in ablations.rows]
    if strange := [name for name in names if name not in all_names]:
        raise no_such("ablation", strange[0], all_names, "known: ")
    selected = {ablations.reference.name, *(names or all_names)}
    return replace(ablations, rows=tuple(row for row in ablations.rows if row.name in selected))


def _settings(nested: dict[str, Any], path: Path) -> list[str]:
    """Return nested tables as settings `section.key=value`; values are JSON that is also TOML."""
    settings = {key[1:]: value for key, value in run_folder.flatten(nested, "").items()}
    refuse_own_suites(settings.get("suites.names"), str(path))
    if "pool.name" in settings:
        settings["pool.name"] = _beside(settings["pool.name"], path)
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _beside(name: str, path: Path) -> str:
    return str((path.parent / name).resolve()) if name.endswith(".toml") else name


def warm_start_key(manifest: Mapping[str, Any]) -> str:
    """Return all inputs of a training's warm start as text; equal texts give equal weights."""
    config = manifest["config"]
    form, data = config["form"], manifest["data"]
    inputs = {
        "warm start": [config[name] for name in ("model", "warm_start")],
        "later rounds": config.get("recursion") is not None,
        "form": [*(form.get(name) for name in SHAPES), form["access"] == "off"],
        "workers": [config["pool"]["shown"], config["pool"]["order"], manifest["pool"]],
        "questions": {name: suite["train_ids_sha256"] for name, suite in data.items()},
        "data": [suite["data_revision"] for suite in data.values()],
        "seed": manifest["seed"],
        "code": manifest["code_revision"],
    }
    return json.dumps(inputs, sort_keys=True, default=str)


def _key_of(folder: Path) -> str:
    try:
        return warm_start_key(run_folder.read_manifest(folder))
    except (KeyError, TypeError, AttributeError):
        path = folder / run_folder.MANIFEST
        raise UserError(f"{path} lacks inputs of its warm start. Name another folder.") from None


def copy_warm_start(training: TrainingJob, folders: Sequence[Path]) -> Path | None:
    """Copy the warm start of the first of `folders` with equal inputs; return that one, or None."""
    out, manifest = training.out, run_folder.job_manifest(training)
    if (out / run_folder.MANIFEST).exists() or training.config.warm_start.kind == "none":
        return None
    key = warm_start_key(json.loads(json.dumps(manifest, default=str)))
    started = (path for path in folders if (path / run_folder.START / INFO).is_file())
    for folder in started:
        if _key_of(folder) == key:
            shutil.rmtree(staging := out / f"{run_folder.START}.part", ignore_errors=True)
            shutil.copytree(folder / run_folder.START, staging)
            describe_checkpoint(training, staging, 0, None)
            staging.rename(out / run_folder.START)
            run_folder.write_json(out / run_folder.MANIFEST, manifest)
            return folder
    return None


def plan_leaks(system_runs: Iterable[SystemRun]) -> dict[str, float | None]:
    """Return figures on the plans in runs: number, share that leaks, accuracy; None if unknown.

    A plan leaks if a subtask contains the answer. `accuracy_unleaked` is that of the other plans.
    """
    graded: list[tuple[float | None, bool | None]] = []
    for entry in chain.from_iterable(entries(run.paths) for run in system_runs):
        sample: dict[str, Any] = entry.sample
        metadata: dict[str, Any] = sample.get("metadata") or {}
        shape: dict[str, Any] = metadata.get(PODIUM) or {}
        plan = workflow_of(shape.get("plan")) if entry.current else None
        if plan is None:
            continue
        text, target, leaked = sample.get("input"), sample.get("target"), None
        if isinstance(text, str) and isinstance(target, str):
            kind: Any = metadata.get("kind", "text")
            question = Question(str(sample["id"]), text, kind, target=target)
            leaked = leaks_answer(question, [step.subtask for step in plan.steps])
        graded.append((verdict(sample), leaked))
    right = [(grade, leaked) for grade, leaked in graded if grade is not None]
    return {
        "plans": len(graded),
        "leaked": run_folder.mean([leaked for _, leaked in graded if leaked is not None]),
        "right": run_folder.mean([grade for grade, _ in right]),
        "accuracy_unleaked": run_folder.mean([grade for grade, leaked in right if not leaked]),
    }
