"""The command that trains a conductor's ablations, evaluates them and makes one table.

One training at a time, each in a process of its own, so that a kill loses a step at most. What is
finished is skipped: the same command goes on. Evaluated by the ordinary run, on validation splits.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.cli.parts import catalogue, controls
from harness.errors import UserError
from harness.escape import say


@dataclass(frozen=True, slots=True)
class Trial:
    """One training of one ablation: its configuration, and where its files are."""

    row: Any
    training: Any
    seed: int
    logs: Path

    @property
    def run(self) -> Path:
        """Return its run folder."""
        return self.training.request.out

    @property
    def name(self) -> str:
        """Return what lines call it."""
        return f"{self.row.name}, seed {self.seed}"


def ablate_command(args: argparse.Namespace) -> int:
    """Train a conductor's ablations alike, evaluate each on validation, and make one table."""
    from conductor.training.ablations import SHIPPED, chosen, read_ablations
    from reports.ablations import refuse_foreign_ablations

    listed = read_ablations(args.file or SHIPPED)
    if args.list:
        for one in listed.rows:
            say(f"{one.name}: {one.says}" + (f" Not run: {one.not_run}." if one.not_run else ""))
        return 0
    wanted, seeds = chosen(listed, args.names), sorted(set(args.seed or [0]))
    trials = [_trial(one, seed, args) for seed in seeds for one in wanted.rows if not one.not_run]
    refuse_foreign_ablations(args.out / "report")
    if not args.table:
        _refuse_moved(trials)
        for at, trial in enumerate(trials, 1):
            say(f"[{at}/{len(trials)}] {trial.name}", flush=True)
            _train(trial, [*args.begin, *(one.run for one in trials)])
            _evaluate(trial)
            _table(listed, args.out)
    say(_table(listed, args.out))
    return 0


def _refuse_moved(trials: list[Trial]) -> None:
    """Raise UserError where one has begun with other graders, which are another reward."""
    from conductor.training.folder import MANIFEST, describe, refuse_moved_graders

    for trial in trials:
        if (path := trial.run / MANIFEST).is_file():
            refuse_moved_graders(json.loads(path.read_text()), describe(trial.training))


def _trial(row: Any, seed: int, args: argparse.Namespace) -> Trial:
    """Return one training, found and checked; nothing is written."""
    from conductor.training.job import Parts, TrainRequest, found

    name = f"{row.name}-seed-{seed}"
    request = TrainRequest(args.out / "runs" / name)
    training = found(row.training_config(seed), request, Parts(catalogue(), controls().bare))
    if any(sign.isspace() for sign in str(args.out.resolve())):
        raise UserError(f"--out has no white space in its path: {args.out}.")
    return Trial(row, training, seed, args.out / "evaluations" / name)


def _train(trial: Trial, others: list[Path]) -> None:
    """Train to the end, unless that is done; a warm start that another made is not made again."""
    from conductor.training.ablations import begin_from, finished

    if finished(trial.training.config, trial.run):
        say("  trained already", flush=True)
        return
    if shared := begin_from(trial.training, others):
        say(f"  begins with the warm start of {shared.name}, which is the same", flush=True)
    words = [trial.row.config, "--seed", str(trial.seed), "--out", str(trial.run)]
    words += [part for one in trial.row.settings for part in ("--set", one)]
    if (trial.run / "manifest.json").exists():
        words.append("--resume")
    code = _waited([sys.executable, "-m", "harness.cli", "train", *words])
    if code or not finished(trial.training.config, trial.run):
        raise UserError(f"Training {trial.name} has not ended; the same command goes on with it.")


def _waited(command: list[str]) -> int:
    """Return a command's exit code; Ctrl-C reaches it too, and it ends with a checkpoint."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def _evaluate(trial: Trial) -> None:
    """Run the best checkpoint on the validation splits; what has an answer is not asked again."""
    from harness.compose import Request
    from harness.run import run

    config, best = trial.training.config, (trial.run / "best").resolve()
    if not best.is_dir():
        raise UserError(f"{trial.run} has no best checkpoint: no validation could be graded.")
    request = Request(
        suites=tuple(config.suites.names),
        systems=(f"conductor@{best}",),
        pool=config.pool.name,
        log_dir=trial.logs,
        split="validation",
        box=config.suites.box,
    )
    outcome = run(request, catalogue(), controls())
    if not outcome.finished:
        raise UserError(f"{trial.name} is not evaluated: {outcome.trouble[0]}")


def _table(listed: Any, out: Path) -> str:
    """Write the table of everything that is in the folder; return it for a terminal."""
    from reports.ablations import AblationRuns, write_ablations

    found: list[AblationRuns] = []
    for row in listed.rows:
        runs, logs = _folders(row.name, out)
        found.append(AblationRuns(row.name, row.says, row.not_run, runs, logs, _words(logs)))
    text, files = write_ablations(found, listed.reference.name, out / "report")
    return f"{text}\nWritten to {files[0].parent}: {', '.join(path.name for path in files)}"


def _folders(name: str, out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the evaluated trainings of an ablation, a seed each, and their evaluations."""
    logs = sorted(
        one
        for one in (out / "evaluations").glob(f"{name}-seed-*")
        if one.name.removeprefix(f"{name}-seed-").isdigit() and any(one.glob("*.eval"))
    )
    return tuple(out / "runs" / one.name for one in logs), tuple(logs)


def _words(logs: tuple[Path, ...]) -> dict[str, float | None]:
    """Return what the evaluated plans say, as columns."""
    from conductor.training.wording import said_in_logs, wording
    from reports.ablations import WORDS

    if not logs:
        return {}
    said = wording([plan for folder in logs for plan in said_in_logs(folder)])
    found = {**asdict(said), "accuracy_unleaked": said.right_unleaked}
    return {name: found[name] for name in WORDS}
