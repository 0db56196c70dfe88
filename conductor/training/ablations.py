"""Ablations: the trainings of one file, which differ from a reference in the settings it names."""

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
"""What a warm start sees of a form, beside whether steps may read others."""


class _AblationRow(ConfigSection):
    says: str
    not_run: str = ""  # why it would mean nothing; then nothing is set
    set: dict[str, Any] = Field(default_factory=dict[str, Any])


class _AblationFile(ConfigSection):
    config: str
    reference: str
    all: dict[str, Any] = Field(default_factory=dict[str, Any])  # of every row
    ablations: dict[str, _AblationRow] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Ablation:
    """One training of the file, or why there is none."""

    name: str
    says: str
    config: str  # name or path of the configuration that `settings` change
    settings: tuple[str, ...] = ()  # as `podium train --set` takes them: `section.key=value`
    not_run: str = ""

    def training_config(self, seed: int) -> TrainingConfig:
        """Return its configuration; UserError for a setting that there is not."""
        return read_config(self.config, (*self.settings, f"run.seed={seed}"))


@dataclass(frozen=True, slots=True)
class Ablations:
    """The file's rows in its order, and the one that all others are held against."""

    reference: Ablation
    rows: tuple[Ablation, ...]


def read_ablations(path: Path = SHIPPED) -> Ablations:
    """Return what a file names; UserError for the first mistake in it."""
    try:
        found = _AblationFile.model_validate(read_toml(path))
    except FileNotFoundError:
        raise UserError(f"There is no file of ablations {path}.") from None
    except ValidationError as error:
        where, said = first_fault(error)
        raise UserError(f"{path}: {where}: {said.lower()}.") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as TOML: {error}.") from error
    rows: dict[str, Ablation] = {}
    for name, said in found.ablations.items():
        if said.not_run and said.set:
            raise UserError(f"{path}: {name} is not run and sets something: leave one of the two.")
        settings = () if said.not_run else (*_settings(found.all, path), *_settings(said.set, path))
        config = _beside(found.config, path)
        rows[name] = Ablation(name, said.says, config, settings, said.not_run)
    reference = rows.get(found.reference)
    if reference is None or reference.not_run:
        raise UserError(f"{path}: reference {found.reference!r} is none of its trainings.")
    return Ablations(reference, tuple(rows.values()))


def select_ablations(ablations: Ablations, names: Sequence[str]) -> Ablations:
    """Return the named rows and the reference, all without names; UserError for a strange name."""
    known = [one.name for one in ablations.rows]
    if strange := [name for name in names if name not in known]:
        raise no_such("ablation", strange[0], known, "known: ")
    wanted = {ablations.reference.name, *(names or known)}
    return replace(ablations, rows=tuple(one for one in ablations.rows if one.name in wanted))


def _settings(nested: dict[str, Any], path: Path) -> list[str]:
    """Return nested tables as `section.key=value`; JSON's plain values are TOML's too."""
    found = {key[1:]: value for key, value in run_folder.flatten(nested, "").items()}
    refuse_own_suites(found.get("suites.names"), str(path))
    if "pool.name" in found:
        found["pool.name"] = _beside(found["pool.name"], path)
    return [f"{key}={json.dumps(value)}" for key, value in found.items()]


def _beside(name: str, path: Path) -> str:
    return str((path.parent / name).resolve()) if name.endswith(".toml") else name


def warm_start_key(manifest: Mapping[str, Any]) -> str:
    """Return what a warm start depends on, as text: equal ones begin with the same weights."""
    config = manifest["config"]
    form, data = config["form"], manifest["data"]
    parts = {
        "warm start": [config[name] for name in ("model", "warm_start")],
        "later rounds": config.get("recursion") is not None,
        "form": [*(form.get(name) for name in SHAPES), form["access"] == "off"],
        "workers": [config["pool"]["shown"], config["pool"]["order"], manifest["pool"]],
        "questions": {name: one["train_ids_sha256"] for name, one in data.items()},
        "data": [one["data_revision"] for one in data.values()],
        "seed": manifest["seed"],
        "code": manifest["code_revision"],
    }
    return json.dumps(parts, sort_keys=True, default=str)


def copy_warm_start(training: TrainingJob, others: Sequence[Path]) -> Path | None:
    """Give a new training the warm start of one of these that began alike; None without one."""
    out, said = training.out, run_folder.job_manifest(training)
    if (out / run_folder.MANIFEST).exists() or training.config.warm_start.kind == "none":
        return None
    wanted = warm_start_key(json.loads(json.dumps(said, default=str)))
    begun = (one for one in others if (one / run_folder.START / INFO).is_file())
    for folder in begun:
        if warm_start_key(json.loads((folder / run_folder.MANIFEST).read_text())) == wanted:
            shutil.rmtree(part := out / f"{run_folder.START}.part", ignore_errors=True)
            shutil.copytree(folder / run_folder.START, part)
            describe_checkpoint(training, part, 0, None)
            part.rename(out / run_folder.START)
            run_folder.write_json(out / run_folder.MANIFEST, said)
            return folder
    return None


def plan_leaks(system_runs: Iterable[SystemRun]) -> dict[str, float | None]:
    """Return how many plans some runs have, and what share of them holds the answer."""
    found: list[tuple[float | None, bool | None]] = []
    for entry in chain.from_iterable(entries(one.paths) for one in system_runs):
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
        found.append((verdict(sample), leaked))
    right = [(grade, leaked) for grade, leaked in found if grade is not None]
    return {
        "plans": len(found),
        "leaked": run_folder.mean([leaked for _, leaked in found if leaked is not None]),
        "right": run_folder.mean([grade for grade, _ in right]),
        "accuracy_unleaked": run_folder.mean([grade for grade, leaked in right if not leaked]),
    }
