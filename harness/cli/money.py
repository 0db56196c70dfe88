"""The commands about prices: prices and reprice."""

import argparse
import sys
from datetime import UTC, date, datetime

from harness.errors import UserError
from harness.escape import say
from harness.plural import counted


def prices_command(args: argparse.Namespace) -> int:
    """List, verify, compare or make price books."""
    actions = {"list": _list, "verify": _verify, "diff": _diff, "snapshot": _snapshot}
    return actions[args.action](args)


def reprice_command(args: argparse.Namespace) -> int:
    """Show what the runs of a directory would have cost at another price book."""
    from harness.ledger.sitting_files import sittings_below
    from harness.prices import read_book
    from harness.reprice import free_place, repriced, show_repriced, write_repriced

    book = read_book(args.book)
    if args.out:
        free_place(args.out)
    found = [repriced(files, book) for files in sittings_below(args.dir)]
    rows = sorted((row for row in found if row), key=lambda row: (row.suite, row.label, row.system))
    say(show_repriced(rows))
    if args.out:
        say(f"Wrote {write_repriced(rows, args.out)}.")
    return 0


def _list(args: argparse.Namespace) -> int:
    from harness.prices import read_book
    from harness.prices.listing import show_book, show_books

    say(show_book(read_book(args.book)) if args.book else show_books())
    return 0


def _diff(args: argparse.Namespace) -> int:
    from harness.prices import read_book
    from harness.prices.changes import changes
    from harness.prices.listing import show_changes

    old, new = read_book(args.old), read_book(args.new)
    found = changes(old, new)
    heads = (f"{old.name}", f"{new.name}")
    say(show_changes(found, heads) if found else "Both books state the same prices.")
    return 1 if found else 0


def _verify(args: argparse.Namespace) -> int:
    from harness.prices import BOOKS
    from harness.prices.books import book_path
    from harness.prices.snapshot import installed

    names = args.books or sorted(path.stem for path in BOOKS.glob("*.toml"))
    for name in names:
        book_path(name)
    try:
        source = installed(_today())
    except UserError as error:
        source = None
        say(f"Not compared with genai-prices: {error}", file=sys.stderr)
    wrong = [name for name in names if not _verified(name, source)]
    read_only = "" if source else " Books were read only, nothing was compared with genai-prices."
    say(f"{counted(len(names), 'book')}, {len(wrong)} to look at.{read_only}")
    return 1 if wrong else 0


def _verified(name: str, source: "object | None") -> bool:
    """Print what is wrong with a book and what differs; return whether nothing does."""
    from harness.prices import read_book
    from harness.prices.changes import compared
    from harness.prices.listing import show_changes
    from harness.prices.snapshot import Source

    try:
        book = read_book(name)
        beside = compared(book, source) if isinstance(source, Source) else None
    except UserError as error:
        say(f"{name}: {error}")
        return False
    read = f"{name}: {counted(len(book.prices), 'price')} read"
    if beside is None:
        say(f"{read}, not compared")
        return True
    say(f"{read}, {len(book.prices) - len(beside.others)} compared with genai-prices")
    if 0 < len(beside.others) < len(book.prices):
        say(f"  from elsewhere: {', '.join(beside.others)}")
    if beside.changes:
        say(show_changes(beside.changes, (book.name, "genai-prices")))
    return not beside.changes


def _snapshot(args: argparse.Namespace) -> int:
    from harness.prices.snapshot import Wanted, snapshot, write_new

    today = _today()
    wanted = Wanted(tuple(_models(args)), args.date or today, dict(args.launched))
    text, notes = snapshot(wanted, args.out, today)
    write_new(text, args.out)
    for note in notes:
        say(f"- {note}")
    say(f"Wrote {args.out}: {counted(len(wanted.models), 'model')}, prices of {wanted.day}.")
    return 0


def _models(args: argparse.Namespace) -> list[str]:
    """Return the models to price: named ones, a pool's, or those of all live pools shipped."""
    from harness.pool_file import POOLS, read_pool

    if args.models:
        return sorted(set(args.models))
    pools = [args.pool] if args.pool else sorted(path.stem for path in POOLS.glob("*.toml"))
    specs = [read_pool(name) for name in pools]
    if not args.pool:
        specs = [spec for spec in specs if spec.label == "live"]
    slots = [slot for spec in specs for slot in spec.slots]
    if not args.pool:  # what a product costs stands on its maker's page: those entries are by hand
        slots = [one for one in slots if not one.not_auditable and one.provider != "fugu"]
    return sorted({slot.price_ref for slot in slots})


def _today() -> date:
    return datetime.now(UTC).date()
