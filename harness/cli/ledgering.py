"""The command that hands the ledger to others: `podium ledger export` and `podium ledger sql`."""

import argparse

from harness.escape import say


def ledger_command(args: argparse.Namespace) -> int:
    """Export every call and query as a table (Parquet, CSV, ...), or ask them in SQL."""
    if args.action == "export":
        from harness.ledger.export import export

        say(export(args.dir, args.out, args.format))
        return 0
    from harness.ledger.sql import STYLES, ask

    for line in STYLES[args.format](ask(args.dir, args.query)):
        say(line)
    return 0
