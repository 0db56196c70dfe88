"""The arguments of the commands about money: prices, reprice (harness/cli/money.py)."""

import argparse
from datetime import date
from pathlib import Path


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
