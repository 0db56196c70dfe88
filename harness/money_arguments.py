"""The arguments of the commands about money: prices, reprice and audit."""

import argparse
from datetime import date
from decimal import Decimal
from pathlib import Path

from harness.arguments import EPOCHS, dollars, up_to


def day(text: str) -> date:
    """Return a day that is written as YEAR-MONTH-DAY."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2025-12-04") from None


def launch(text: str) -> tuple[str, str]:
    """Return a model and its launch day, written as MODEL=YEAR-MONTH-DAY."""
    model, _, when = text.rpartition("=")
    if not model:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODEL=YEAR-MONTH-DAY")
    return model, day(when).isoformat()


def prices_arguments(prices: argparse.ArgumentParser) -> None:
    """Add what `podium prices` takes."""
    actions = prices.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list the books, or every price of one")
    listed.add_argument("book", nargs="?", help="book name or .toml file")
    verify = actions.add_parser("verify", help="check books, and compare them with genai-prices")
    verify.add_argument("books", nargs="*", metavar="BOOK", help="book names or files (all)")
    diff = actions.add_parser("diff", help="say what a book states otherwise than another")
    diff.add_argument("old", metavar="A", help="book name or .toml file")
    diff.add_argument("new", metavar="B", help="book name or .toml file")
    _snapshot_arguments(actions.add_parser("snapshot", help="make a book from genai-prices"))


def _snapshot_arguments(snapshot: argparse.ArgumentParser) -> None:
    snapshot.add_argument("--date", type=day, help="the day whose prices are wanted (today)")
    which = snapshot.add_mutually_exclusive_group()
    which.add_argument(
        "--models", nargs="+", metavar="MODEL", help="PROVIDER/MODEL, e.g. openai/gpt-5"
    )
    which.add_argument("--pool", help="the models of this pool (of every live pool)")
    snapshot.add_argument(
        "--launched",
        type=launch,
        action="append",
        default=[],
        metavar="MODEL=DAY",
        help="launch day of a model of which none is on record; repeat",
    )
    snapshot.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="book to write: new, .toml"
    )


def reprice_arguments(reprice: argparse.ArgumentParser) -> None:
    """Add what `podium reprice` takes."""
    reprice.add_argument("dir", type=Path, metavar="DIR", help="log directory")
    reprice.add_argument("--book", required=True, metavar="B", help="book name or .toml file")
    reprice.add_argument("--out", type=Path, metavar="D", help="also write reprice.json there")


def audit_arguments(audited: argparse.ArgumentParser) -> None:
    """Add what `podium audit` takes."""
    add = audited.add_argument
    add("dir", type=Path, metavar="DIR", help="log directory, or one .eval file")
    add("--strict", action="store_true", help="gaps in the record are failures, too")
    add("--regrade", action="store_true", help="give all verdicts anew and compare; asks no model")
    add("--box", help="with --regrade: sandbox for suites that run programs (they are left out)")
    add("--query", metavar="ID", help="show this question in full instead: an id, or SUITE/ID")
    add("--system", help="with --query: as this system answered it (all)")
    add(
        "--epoch",
        type=up_to(EPOCHS),
        metavar="N",
        help="with --query: the Nth time it was asked (all)",
    )
    add("--json", type=Path, metavar="FILE", help="also write every fault there, as canonical JSON")
    add(
        "--invoice",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="usage export of OpenAI, Anthropic, Google or OpenRouter, or a CSV by request; repeat",
    )
    add("--project", help="with --invoice: only lines of this project or workspace")
    add("--key", help="with --invoice: only lines of this API key")
    add("--whole-account", action="store_true", help="with --invoice: all its lines are this run's")
    add(
        "--model",
        type=_pair,
        action="append",
        default=[],
        metavar="OURS=THEIRS",
        help="with --invoice: a model that goes by another name there; repeat",
    )
    add("--tolerance", type=_count, default=0, metavar="N", help="tokens that may differ (0)")
    add("--tolerance-usd", type=dollars, default=Decimal(0), help="dollars that may differ (0)")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    ours, _, theirs = text.rpartition("=")
    if not ours or not theirs:
        raise argparse.ArgumentTypeError(f"{text!r} is not OURS=THEIRS")
    return ours, theirs
