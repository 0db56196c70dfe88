"""Folders as `podium train` writes them, without training anything."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STEPS = 12


def line(step: int, seed: int, names: tuple[str, ...] = ("abacus", "sage")) -> dict[str, Any]:
    """Return a line of metrics.jsonl; every fourth step has a validation."""
    first, second = names
    share = (step + seed) / (2 * STEPS)
    said = {
        "parsed": 0.5 + share / 2,
        "steps": 1.5 + share,
        "calls": 2.0,
        "usd": 0.001 * (step + 1),
        "workers": {first: share, second: 1 - share},
    }
    validation = {**said, "reward": share, "correct": share, "questions": 40, "masked": 0.25}
    reward = {} if step == 0 else {**said, "reward": share, "tokens": 40.5 + step}
    return {"step": step, **reward, **({} if step % 4 else {"validation": validation})}


def trained(folder: Path, seed: int = 0, **manifest: Any) -> Path:
    """Write the folder of a training of twelve steps."""
    folder.mkdir(parents=True)
    written(folder, [line(step, seed) for step in range(STEPS + 1)])
    said: Mapping[str, Any] = {
        "config": {"name": "practice-cpu"},
        "seed": seed,
        "pool": {"name": "rehearsal", "label": "rehearsal"},
        "prices": {"name": "rehearsal"},
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(said))
    return folder


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    """Write the lines of a training."""
    text = "".join(json.dumps(one) + "\n" for one in lines)
    (folder / "metrics.jsonl").write_text(text)
    return folder
