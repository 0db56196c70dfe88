"""Release a trained checkpoint: the median seed, its weights made small, its log beside it.

The median seed by *validation* stands for a training: the best one would be a choice in hindsight.
The log of every seed is released with it. No torch: whoever only checks a release needs none.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file as _load_file  # pyright: ignore[reportUnknownVariableType]
from safetensors.numpy import save_file as _save_file  # pyright: ignore[reportUnknownVariableType]

from conductor.checkpoint import read_about, write_about
from conductor.embedded.decode import Sampled, decode
from conductor.embedded.provider import opened
from conductor.training.folder import (
    BEST,
    LAST,
    MANIFEST,
    METRICS,
    START,
    WARM,
    read_lines,
    versions_of,
)
from conductor.training.processor import CPU
from conductor.training.progress import state_of
from harness.errors import UserError
from harness.text import pluralise

LOGS = (MANIFEST, METRICS, WARM, CPU)
"""What is released of each seed; plans and the ledger stay with the run."""
KEPT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "podium.json", "README.md")  # fmt: skip
"""Of a checkpoint. Without `training_args.bin`, which is a pickle: nobody should have to trust it.
"""
WEIGHTS = "model.safetensors"

Prompts = Callable[[Path], Sequence[str]]
"""A run's folder -> the prompts of its validation questions."""

SAID = """
## Released

Seed {seed} of {seeds}: the median by validation ({values}); equal ones go by seed. Weights are
stored as {kind}: {equal} of {asked} greedy plans on the validation questions are those of float32.
Each value is the highest of its seed's validations, so it is optimistic: the `eval` split, which
picked nothing, is what to quote.
The log of every seed is in `log/`.
"""


@dataclass(frozen=True, slots=True)
class Seed:
    """One finished run."""

    folder: Path
    seed: int
    correct: float
    """Best validation."""
    step: int


def seed_of(run: Path) -> Seed:
    """Return what a run came to; UserError where it is none, or has not ended."""
    manifest = run / MANIFEST
    if not manifest.is_file():
        raise UserError(f"{run} is no training: it has no {MANIFEST}.")
    if not finished(run):
        raise UserError(f"The training in {run} has not ended: --resume goes on.")
    state = state_of(read_lines(run / METRICS))
    if state.best is None:
        raise UserError(
            f"No validation of the training in {run} has a grade: there is no best checkpoint."
        )
    return Seed(run, int(json.loads(manifest.read_text())["seed"]), state.best, state.best_step)


def finished(run: Path) -> bool:
    """Say whether a training has made all its steps, or has ended by its own rule."""
    if not (run / LAST / "podium.json").is_file():
        return False
    config = json.loads((run / MANIFEST).read_text())["config"]
    lines, patience = read_lines(run / METRICS), config["validation"]["patience"]
    if patience is not None and state_of(lines).since >= patience:
        return True
    last = lines[-1] if lines else {"step": 0}
    return last["step"] >= int(config["grpo"]["max_steps"]) and "validation" in last


def median(seeds: Sequence[Seed]) -> Seed:
    """Return the median seed by validation; of an even number the lower one of the middle two."""
    ranked = sorted(seeds, key=lambda one: (one.correct, one.seed))
    return ranked[(len(ranked) - 1) // 2]


def release(runs: Sequence[Path], to: Path, prompts: Prompts, untrained: Path | None = None) -> str:
    """Write the median seed's best checkpoint to `to`, and its warm start to `untrained`.

    Returns a sentence. UserError for a run that has not ended, two trainings, or two runs of a
    seed. What stands there is replaced, whole or not at all.
    """
    seeds = sorted((seed_of(run) for run in runs), key=lambda one: one.seed)
    _refuse_strangers(seeds)
    chosen = median(seeds)
    asked = prompts(chosen.folder)
    said = _write(chosen.folder / BEST, to, asked, seeds)
    if untrained is not None:
        said += " " + _write(chosen.folder / START, untrained, asked, seeds)
    return said


def _refuse_strangers(seeds: Sequence[Seed]) -> None:
    """Raise UserError where runs are of several trainings, or of one seed twice."""
    numbers = [one.seed for one in seeds]
    if len(set(numbers)) < len(numbers):
        raise UserError("Two of these runs have the same seed: name each seed once.")
    kinds: set[str] = set()
    graders: set[str] = set()
    for one in seeds:
        manifest = json.loads((one.folder / MANIFEST).read_text())
        graders.add(json.dumps(versions_of(manifest), sort_keys=True))
        config = manifest["config"]
        config["run"].pop("seed")
        config["model"].pop("path")  # a later training begins with the checkpoint of its own seed
        kinds.add(json.dumps(config, sort_keys=True))
    if len(kinds) > 1:
        raise UserError("These runs were trained by different configurations: release each alone.")
    if len(graders) > 1:
        raise UserError(
            "These runs were rewarded by graders of other versions: release each alone."
        )


def _write(source: Path, to: Path, prompts: Sequence[str], seeds: Sequence[Seed]) -> str:
    """Copy one checkpoint with its log; return a sentence."""
    part = to.with_name(f"{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name in KEPT:
        if (source / name).is_file():
            shutil.copyfile(source / name, part / name)
    equal, kind = _weights(source, part, prompts)
    about = read_about(source)
    trained = source.name == BEST
    seed = median(seeds)
    which = f"seed {seed.seed} of {pluralise(len(seeds), 'seed')}"
    what = f"{about.summary}, {about.reward} reward" if trained else "its warm start, no reward yet"
    changed = replace(about, summary=f"{what}, {which}", reward=about.reward if trained else "")
    write_about(changed, part)
    values = ", ".join(f"seed {one.seed}: {one.correct:.3f}" for one in seeds)
    facts: dict[str, Any] = {"seed": seed.seed, "seeds": len(seeds), "values": values}
    with (part / "README.md").open("a") as card:
        card.write(SAID.format(**facts, kind=kind, equal=equal, asked=len(prompts)))
    _write_logs(part / "log", seeds)
    shutil.rmtree(to, ignore_errors=True)
    part.rename(to)
    size = sum(one.stat().st_size for one in to.rglob("*") if one.is_file()) / 1e6
    return f"{to}: {which} ({values}), {kind}, {size:.1f} MB."


def _weights(source: Path, part: Path, prompts: Sequence[str]) -> tuple[int, str]:
    """Write weights as float16 where every greedy plan stays as it is, else as they are.

    Returns how many plans are the same, and the kind of number that was written.
    """
    tensors = _load_file(source / WEIGHTS)
    half = {name: held.astype(np.float16) for name, held in tensors.items()}
    _save_file(half, part / WEIGHTS, metadata={"format": "pt"})
    before, after = (plans(folder, prompts) for folder in (source, part))
    equal = sum(one == other for one, other in zip(before, after, strict=True))
    if equal == len(prompts):
        return equal, "float16"
    shutil.copyfile(source / WEIGHTS, part / WEIGHTS)
    return len(prompts), "float32"


def plans(folder: Path, prompts: Sequence[str], most: int = 128) -> list[str]:
    """Return a checkpoint's greedy completions, as the embedded provider makes them."""
    found = opened(str(folder))
    made = (
        decode(found.model, found.words.tokens(prompt), Sampled(max_tokens=most))
        for prompt in prompts
    )
    return [found.words.text(one.tokens) for one in made]


def _write_logs(folder: Path, seeds: Sequence[Seed]) -> None:
    """Copy the log of every seed."""
    for one in seeds:
        place = folder / f"seed-{one.seed}"
        place.mkdir(parents=True)
        for name in LOGS:
            if (one.folder / name).is_file():
                shutil.copyfile(one.folder / name, place / name)
