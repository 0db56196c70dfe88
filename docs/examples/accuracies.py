"""Accuracies: one line of CSV for each suite and system of some runs."""

from collections.abc import Sequence
from pathlib import Path

from podium import load_runs

COLUMNS = ["suite", "system", "accuracy", "usd_per_query"]


def accuracies(dirs: Sequence[Path], out: Path) -> list[Path]:
    """Write accuracies.csv into a folder that is not there yet; return the files written."""
    out.mkdir(parents=True)
    path = out / "accuracies.csv"
    load_runs(*dirs).runs[COLUMNS].to_csv(path, index=False)
    return [path]
