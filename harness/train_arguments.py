"""The arguments of `podium train` and `podium ablate`."""

import argparse
from pathlib import Path

from harness.arguments import SEED, dollars, up_to


def train_arguments(train: argparse.ArgumentParser) -> None:
    """Add what `podium train` takes."""
    add = train.add_argument
    add("config", nargs="?", metavar="CONFIG", help="a shipped name or the path of a TOML file")
    add("--out", type=Path, metavar="DIR", help="run folder (training/CONFIG-seed-N)")
    add("--seed", type=up_to(SEED), metavar="N", help="run.seed (the config's)")
    add("--dry-run", action="store_true", help="estimate memory, calls and dollars; train nothing")
    add("--max-usd", type=dollars, metavar="X", help="stop with a checkpoint once this is spent")
    add("--resume", action="store_true", help="go on from the newest checkpoint in --out")
    add(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change a value of the config; repeat",
    )
    add("--plot", nargs="+", type=Path, metavar="DIR", help="draw the learning curves of runs")
    add("--release", nargs="+", type=Path, metavar="DIR", help="release the median seed of runs")
    add("--to", type=Path, metavar="PATH", help="where --plot draws (curve.png), --release writes")
    add("--untrained", type=Path, metavar="DIR", help="with --release: where its warm start goes")
    add("--list", action="store_true", help="list the shipped configs")


def ablate_arguments(ablate: argparse.ArgumentParser) -> None:
    """Add what `podium ablate` takes."""
    add = ablate.add_argument
    add("names", nargs="*", metavar="NAME", help="ablations, beside the reference (all)")
    add("--out", type=Path, default=Path("ablations"), metavar="DIR", help="folder (ablations)")
    add(
        "--seed",
        type=up_to(SEED),
        action="append",
        metavar="N",
        help="train each with it; repeat (0)",
    )
    add("--file", type=Path, metavar="FILE", help="a file of ablations (the shipped one)")
    add(
        "--begin",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a training whose warm start is used where it would be the same; repeat",
    )
    add("--table", action="store_true", help="make the table of what is there; train nothing")
    add("--list", action="store_true", help="list the ablations")
