"""Train the released checkpoints again, seed by seed, and release the median of each.

    make reproduce SEEDS="0 1 2" CONFIGS="practice-cpu practice-cpu-cost-aware"

A finished run is skipped and a killed one resumed, so the same command again does what is left. One
process per core at most. Needs the extra `train`.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from podium.conductor.training.config import known_configs, read_config
from podium.conductor.training.run_folder import (
    MANIFEST,
    config_of,
    newest_checkpoint,
    read_manifest,
    training_finished,
)
from podium.harness.errors import UserError

RELEASED = {
    "practice-cpu": "trained",
    "practice-cpu-cost-aware": "cost-aware",
    "practice-cpu-adaptive": "adaptive",
    "practice-cpu-recursive": "trained-recursive",  # conductor-recursive is the prompted one
}
"""Config -> folder of conductor/released/, which is a system of its own."""
AFTER = {"practice-cpu-recursive": "practice-cpu"}
"""Config -> the one whose checkpoint, of the same seed, it goes on from."""


@dataclass(frozen=True, slots=True)
class Run:
    """One seed of one config."""

    config: str
    seed: int
    runs: Path

    @property
    def folder(self) -> Path:
        return self.runs / f"{self.config}-seed-{self.seed}"

    @property
    def command(self) -> list[str]:
        """What trains it, from nothing or from where it is."""
        given = ["train", self.config, "--seed", f"{self.seed}", "--out", f"{self.folder}"]
        if self.config in AFTER:
            first = Run(AFTER[self.config], self.seed, self.runs).folder / "best"
            given += ["--set", f"model.path={first}"]
        if (self.folder / MANIFEST).is_file():
            given.append("--resume")
        return [sys.executable, "-m", "podium", *given]


def train(run: Run) -> int:
    """Train one seed in a process of its own; its output goes to FOLDER.log."""
    begun = (run.folder / MANIFEST).is_file()
    if begun and training_finished(config_of(read_manifest(run.folder)), run.folder):
        print(f"{run.folder}: finished already", flush=True)
        return 0
    started, run_log = monotonic(), Path(f"{run.folder}.log")
    run_log.parent.mkdir(parents=True, exist_ok=True)
    newest = newest_checkpoint(run.folder)
    print(f"{run.folder}: from {newest.name if newest else 'the beginning'}", flush=True)
    with run_log.open("a") as file:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(run.command, stdout=file, stderr=subprocess.STDOUT, env=env)
    said = run_log.read_text().strip().splitlines()[-1:]
    minutes = (monotonic() - started) / 60
    print(f"{run.folder}: {minutes:.1f} minutes, {said[0] if said else ''}", flush=True)
    return done.returncode


def reproduce(configs: Sequence[str], given: argparse.Namespace) -> int:
    """Train all seeds of some configs and release each; return how many failed."""
    runs = [Run(config, seed, given.runs) for config in configs for seed in given.seeds]
    with ThreadPoolExecutor(given.jobs) as threads:
        failed = sum(code != 0 for code in threads.map(train, runs))
    for config in configs if not failed and not given.no_release else ():
        release([run for run in runs if run.config == config], given.to / RELEASED[config])
    return failed


def release(runs: Sequence[Run], to: Path) -> None:
    """Release the median seed; beside `trained`, the warm start that it came from."""
    given = ["train", "--release", *(f"{run.folder}" for run in runs), "--to", f"{to}"]
    if to.name == "trained":
        given += ["--untrained", f"{to.with_name('untrained')}"]
    subprocess.run([sys.executable, "-m", "podium", *given], check=True)


def main() -> int:
    """Return 0 when every run has ended and every checkpoint is released."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--configs", nargs="+", default=list(RELEASED), choices=list(RELEASED))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--runs", type=Path, default=Path("training"), help="folder of run folders")
    parser.add_argument("--to", type=Path, default=Path("conductor/released"))
    parser.add_argument("--no-release", action="store_true", help="train only")
    given = parser.parse_args()
    strange = set(given.configs) - set(known_configs())
    if strange:
        raise UserError(f"There is no training config {min(strange)!r}.")
    for config in given.configs:
        read_config(config)
    first = [one for one in given.configs if one not in AFTER]
    failed = reproduce(first, given) if first else 0
    later = [one for one in given.configs if one in AFTER]
    failed += reproduce(later, given) if later and not failed else 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
