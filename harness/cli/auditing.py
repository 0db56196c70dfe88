"""The command that says whether a run's money adds up: audit."""

import argparse
from collections.abc import Iterator
from typing import Any

from harness.escape import say


def audit_command(args: argparse.Namespace) -> int:
    """Check sixteen invariants of a run's money, from its files alone; exit 1 when one fails."""
    if args.query is not None or args.system or args.epoch is not None:
        say(_query(args))
        return 0
    from harness.audit import as_json, as_text, audit, given_anew
    from harness.cli.grading import regraded

    _refuse(args)
    bills = list(_bills(args))
    anew = given_anew(regraded(args)) if args.regrade else None
    checked = [one for one, _ in bills]
    found = audit(args.dir, strict=args.strict, bills=checked, anew=anew)
    say(as_text(found))
    for _, text in bills:
        say(f"\n{text}")
    if args.json:
        args.json.write_bytes(as_json(found))
    return 0 if found.ok else 1


def _refuse(args: argparse.Namespace) -> None:
    """Raise UserError for what would be passed over, or overwrite a file that is no audit."""
    from harness.audit import is_audit
    from harness.cli.grading import refuse_box
    from harness.errors import UserError

    bill = (args.project, args.key, args.whole_account, args.model, args.tolerance)
    if not args.invoice and any((*bill, args.tolerance_usd)):
        raise UserError("Options of an invoice go with --invoice: name the FILE, too.")
    refuse_box(args)
    path = args.json
    if path is not None and not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}: make it, or name another --json.")
    if path is not None and path.exists() and not (path.is_file() and is_audit(path)):
        raise UserError(f"{path} is no audit's JSON and is not overwritten: name another --json.")


def _query(args: argparse.Namespace) -> str:
    """Return one question in full: each step's calls, tokens and dollars, the verdict and why."""
    from harness.errors import UserError
    from harness.ledger.detail_text import query_text
    from harness.ledger.details import Wanted

    if not args.query:
        raise UserError("--query, --system and --epoch show one question: name a question's id.")
    if args.strict or args.invoice or args.json or args.regrade:
        raise UserError("--query shows one question and audits nothing: leave the rest out.")
    return query_text(args.dir, Wanted(args.query, args.system, args.epoch))


def _bills(args: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Hold the ledger against each invoice: what I10 says of it, and the comparison as text."""
    if not args.invoice:
        return
    from harness.audit import Checked, Fault
    from harness.errors import UserError
    from harness.invoices import Options, as_text, read_invoice, reconcile
    from harness.ledger.merge import rows_of
    from harness.ledger.sitting_files import sittings_below

    sittings = sittings_below(args.dir)
    options = Options(
        project=args.project,
        key=args.key,
        whole_account=args.whole_account,
        models=dict(args.model),
        tokens=args.tolerance,
        usd=args.tolerance_usd,
    )
    for path in args.invoice:
        if not path.is_file():
            raise UserError(f"There is no invoice {path}; export it from the provider's console.")
        rows = (row for files in sittings for row in rows_of(files) if row.label == "live")
        result = reconcile(rows, read_invoice(path), options)
        said = [
            Fault("I10", result.file, one.where, f"{one.kind}: {one.said}") for one in result.faults
        ]
        yield Checked(said), as_text(result)
