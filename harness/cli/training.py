"""The command that trains a conductor; torch is imported when a training begins."""

import argparse
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from harness.cli.parts import catalogue, controls
from harness.cli.studying import study_for
from harness.errors import UserError
from harness.escape import say


def train_command(args: argparse.Namespace) -> int:
    """Train a conductor by reward, say what that would take, draw how it went, or release it."""
    from conductor.training.config import known_configs

    if args.list:
        say("\n".join(known_configs()))
        return 0
    if args.plot:
        return _plot(args)
    if args.release:
        return _release(args)
    if args.config is None:
        raise UserError(f"Name a training config: {', '.join(known_configs())}, or a .toml path.")
    training = _training(args)
    from conductor.training.folder import is_main

    told = partial(say, flush=True) if is_main() else _nothing
    for line in _graders_before(training.config.model.path):
        told(line)
    if args.dry_run:
        from conductor.training.estimate import estimate_text

        told(estimate_text(training))
        return 0
    from conductor.training.start import train

    try:
        told(train(training, told))
    except KeyboardInterrupt:
        told("Stopped at once; --resume goes on from the newest checkpoint.")
        return 130
    return 0


def _graders_before(path: str) -> list[str]:
    """Return which graders of the checkpoint that a training begins with have moved since."""
    from harness.field import moved_graders

    with suppress(UserError):  # none of podium's: a model of the hub, or of other people
        return moved_graders([f"conductor@{path}"] if path else [], catalogue())
    return []


def _nothing(said: str) -> None:
    """Keep quiet: the first of several processes has said it."""


def _training(args: argparse.Namespace) -> Any:
    """Return the training that the arguments name, found and checked."""
    from conductor.training.config import read_config
    from conductor.training.job import Parts, TrainRequest, found

    settings = list(args.set)
    if args.seed is not None:
        settings.append(f"run.seed={args.seed}")
    config = read_config(args.config, settings)
    out = args.out or Path("training") / f"{config.name}-seed-{config.run.seed}"
    request = TrainRequest(out, args.resume, args.max_usd, args.dry_run)
    return found(config, request, Parts(catalogue(), controls().bare, study_for))


def _plot(args: argparse.Namespace) -> int:
    from reports.plot import draw_curves

    path = draw_curves(args.plot, args.to or Path("curve.png"))
    say(f"Written to {path}.")
    return 0


def _release(args: argparse.Namespace) -> int:
    """Release the median seed of some runs; torch is not needed."""
    from conductor.training.releasing import release

    if args.to is None:
        raise UserError("--release needs --to: the folder that the checkpoint goes to.")
    say(release(args.release, args.to, _prompts, args.untrained))
    return 0


def _prompts(run: Path) -> list[str]:
    """Return the prompts of a run's validation questions."""
    from conductor.training.config import as_config
    from conductor.training.folder import MANIFEST
    from conductor.training.job import Parts, TrainRequest, found

    config = as_config(json.loads((run / MANIFEST).read_text())["config"], str(run))
    request = TrainRequest(run, dry=True)
    training = found(config, request, Parts(catalogue(), controls().bare, study_for))
    rows = training.validation_rows()
    return ["".join(one["content"] for one in training.asking.messages(row)) for row in rows]
