"""The arguments of `podium route`; what it does is harness/cli/routing.py."""

import argparse
from pathlib import Path

SEEDS = 2**32


def seed(text: str) -> int:
    """Return a seed that every generator takes: 32 bits."""
    if not (text.isascii() and text.isdigit() and int(text) < SEEDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {SEEDS - 1}")
    return int(text)


def route_arguments(route: argparse.ArgumentParser) -> None:
    """Add what `podium route` takes."""
    route.add_argument(
        "source", nargs="?", metavar="SOURCE", help="verdicts to judge on; --list names them"
    )
    route.add_argument("--list", action="store_true", help="list the sources and what they hold")
    route.add_argument(
        "--router", nargs="+", action="extend", metavar="NAME", help="routers to judge (all)"
    )
    route.add_argument(
        "--split",
        metavar="HOW",
        help="date:0.3, share:0.5, folds:5, folds:5:group or declared (declared where the source "
        "declares one, else folds:5)",
    )
    route.add_argument(
        "--conductor",
        nargs="+",
        type=Path,
        action="extend",
        metavar="DIR",
        help="checkpoints of a study of this source and split: a row each, and of their mean",
    )
    route.add_argument(
        "--drop-shared",
        action="store_true",
        help="leave questions that would teach and be judged out of what teaches",
    )
    route.add_argument("--seed", type=seed, default=0, help="of folds and of learning (0)")
    route.add_argument(
        "--embedder", default="tfidf", metavar="NAME", help="tfidf (default) or wordllama"
    )
    route.add_argument(
        "--save", type=Path, metavar="FILE", help="also keep what the one --router has learnt"
    )
    route.add_argument("--out", type=Path, help="directory for route.md, route.csv, route.json")
    route.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of local data (PODIUM_DATA)"
    )
