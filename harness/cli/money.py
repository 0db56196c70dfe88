"""The commands about money and who can check it: prices, reprice, audit, ledger, manifest."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.catalogue import EPOCHS, dollars, up_to
from harness.errors import UserError
from harness.text import pluralise, say

if TYPE_CHECKING:
    from harness.ledger.manifest import EarlierRoot


def manifest_arguments(manifest: argparse.ArgumentParser) -> None:
    """Add what `podium manifest` takes."""
    actions = manifest.add_subparsers(dest="action", metavar="ACTION", required=True)
    write = actions.add_parser("write", help="write down what is here now; keeps earlier roots")
    verify = actions.add_parser("verify", help="find what was changed since; 1 if anything was")
    sign = actions.add_parser("sign", help="sign the manifest (extra: signing)")
    for action in (write, verify, sign):
        action.add_argument("dir", type=Path, metavar="DIR", help="log directory")
    verify.add_argument("--root", metavar="HEX", help="the root that was published")
    verify.add_argument("--public-key", type=Path, metavar="FILE", help="who must have signed")
    verify.add_argument(
        "--shared", action="store_true", help="only a part of the run is here, or redacted copies"
    )
    verify.add_argument(
        "--regrade", action="store_true", help="give all verdicts anew and compare; asks no model"
    )
    verify.add_argument(
        "--box", help="with --regrade: sandbox for suites that run programs (they are left out)"
    )
    sign.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key (PEM)")
    key = actions.add_parser("key", help="make an Ed25519 key (extra: signing)")
    key.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="private key; FILE.pub is public"
    )


def ledger_arguments(ledger: argparse.ArgumentParser) -> None:
    """Add what `podium ledger` takes."""
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write calls and queries as tables")
    export.add_argument("dir", type=Path, metavar="DIR", help="directory that a run wrote")
    export.add_argument(
        "--out", type=Path, required=True, metavar="D", help="directory for the tables"
    )
    export.add_argument(
        "--format",
        default="parquet",
        choices=("parquet", "csv", "jsonl", "otel", "md", "html"),
        help="otel has calls only, md and html queries only (parquet)",
    )
    sql = actions.add_parser("sql", help="run one SELECT over the views calls and queries")
    sql.add_argument(
        "dir", type=Path, metavar="DIR", help="directory of a run or an export, or a .parquet file"
    )
    sql.add_argument("query", metavar="SQL", help='e.g. "SELECT sum(usd_list) FROM calls"')
    sql.add_argument("--format", default="table", choices=("table", "csv", "json"), help="(table)")


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
    add = snapshot.add_argument
    add("--date", type=day, help="the day whose prices are wanted (today)")
    which = snapshot.add_mutually_exclusive_group()
    which.add_argument(
        "--models", nargs="+", metavar="MODEL", help="PROVIDER/MODEL, e.g. openai/gpt-5"
    )
    which.add_argument("--pool", help="the models of this pool (of every live pool)")
    add(
        "--launched",
        type=launch,
        action="append",
        default=[],
        metavar="MODEL=DAY",
        help="launch day of a model of which none is on record; repeat",
    )
    add("--out", type=Path, required=True, metavar="FILE", help="book to write: new, .toml")


def reprice_arguments(reprice: argparse.ArgumentParser) -> None:
    """Add what `podium reprice` takes."""
    add = reprice.add_argument
    add("dir", type=Path, metavar="DIR", help="log directory")
    add("--book", required=True, metavar="B", help="book name or .toml file")
    add("--out", type=Path, metavar="D", help="also write reprice.json there")


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


def prices_command(args: argparse.Namespace) -> int:
    """List, verify, compare or make price books."""
    actions = {"list": _list, "verify": _verify_book, "diff": _diff, "snapshot": _snapshot}
    return actions[args.action](args)


def reprice_command(args: argparse.Namespace) -> int:
    """Show what the runs of a directory would have cost at another price book."""
    from harness.ledger.runs import system_runs_below
    from harness.prices import read_book
    from harness.prices.reprice import free_place, repriced, show_repriced, write_repriced

    book = read_book(args.book)
    if args.out:
        free_place(args.out)
    found = [repriced(files, book) for files in system_runs_below(args.dir)]
    rows = sorted((row for row in found if row), key=lambda row: (row.suite, row.label, row.system))
    say(show_repriced(rows))
    if args.out:
        say(f"Wrote {write_repriced(rows, args.out)}.")
    return 0


def _list(args: argparse.Namespace) -> int:
    from harness.prices import read_book
    from harness.prices.snapshot import show_book, show_books

    say(show_book(read_book(args.book)) if args.book else show_books())
    return 0


def _diff(args: argparse.Namespace) -> int:
    from harness.prices import read_book
    from harness.prices.snapshot import changes, show_changes

    old, new = read_book(args.old), read_book(args.new)
    found = changes(old, new)
    heads = (f"{old.name}", f"{new.name}")
    say(show_changes(found, heads) if found else "Both books state the same prices.")
    return 1 if found else 0


def _verify_book(args: argparse.Namespace) -> int:
    from harness.prices import BOOKS
    from harness.prices.book import book_path
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
    say(f"{pluralise(len(names), 'book')}, {len(wrong)} to look at.{read_only}")
    return 1 if wrong else 0


def _verified(name: str, source: "object | None") -> bool:
    """Print what is wrong with a book and what differs; return whether nothing does."""
    from harness.prices import read_book
    from harness.prices.snapshot import PriceSource, compared, show_changes

    try:
        book = read_book(name)
        beside = compared(book, source) if isinstance(source, PriceSource) else None
    except UserError as error:
        say(f"{name}: {error}")
        return False
    read = f"{name}: {pluralise(len(book.prices), 'price')} read"
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
    from harness.prices.snapshot import SnapshotRequest, snapshot, write_new

    today = _today()
    wanted = SnapshotRequest(tuple(_models(args)), args.date or today, dict(args.launched))
    text, notes = snapshot(wanted, args.out, today)
    write_new(text, args.out)
    for note in notes:
        say(f"- {note}")
    say(f"Wrote {args.out}: {pluralise(len(wanted.models), 'model')}, prices of {wanted.day}.")
    return 0


def _models(args: argparse.Namespace) -> list[str]:
    """Return the models to price: named ones, a pool's, or those of all live pools shipped."""
    from harness.pool_config import POOLS, read_pool

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


def audit_command(args: argparse.Namespace) -> int:
    """Check sixteen invariants of a run's money, from its files alone; exit 1 when one fails."""
    if args.query is not None or args.system or args.epoch is not None:
        say(_query(args))
        return 0
    from harness.audit import as_json, as_text, audit, given_anew
    from harness.cli.grade import regraded

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
    from harness.cli.grade import refuse_box
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
    from harness.ledger.show import QuestionFilter, query_text

    if not args.query:
        raise UserError("--query, --system and --epoch show one question: name a question's id.")
    if args.strict or args.invoice or args.json or args.regrade:
        raise UserError("--query shows one question and audits nothing: leave the rest out.")
    return query_text(args.dir, QuestionFilter(args.query, args.system, args.epoch))


def _bills(args: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Hold the ledger against each invoice: what I10 says of it, and the comparison as text."""
    if not args.invoice:
        return
    from harness.audit import AuditFault, InvariantCheck
    from harness.audit.invoice_files import read_invoice
    from harness.audit.reconcile import InvoiceOptions, reconcile, reconciliation_text
    from harness.errors import UserError
    from harness.ledger.join import rows_of
    from harness.ledger.runs import system_runs_below

    system_runs = system_runs_below(args.dir)
    options = InvoiceOptions(
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
        rows = (row for files in system_runs for row in rows_of(files) if row.label == "live")
        result = reconcile(rows, read_invoice(path), options)
        said = [
            AuditFault("I10", result.file, one.where, f"{one.kind}: {one.said}")
            for one in result.faults
        ]
        yield InvariantCheck(said), reconciliation_text(result)


def ledger_command(args: argparse.Namespace) -> int:
    """Export every call and query as a table (Parquet, CSV, ...), or ask them in SQL."""
    if args.action == "export":
        from harness.ledger.export import export

        say(export(args.dir, args.out, args.format))
        return 0
    from harness.ledger.export import STYLES, ask

    for line in STYLES[args.format](ask(args.dir, args.query)):
        say(line)
    return 0


NAMED = 5
"""Files outside a manifest that are named."""
ABSENT = (
    "whoever ran it should supply MANIFEST.json (a run that was killed has none until it is "
    "resumed); of your own run, `podium manifest write` makes one"
)


def manifest_command(args: argparse.Namespace) -> int:
    """Write, verify or sign what a run's directory held, or make a key to sign with."""
    actions = {"write": _write, "verify": _verify_manifest, "sign": _sign, "key": _key}
    return actions[args.action](args)


def _write(args: argparse.Namespace) -> int:
    from harness.ledger.manifest import FILE as MANIFEST
    from harness.ledger.manifest import write_manifest
    from harness.run.experiment import FILE, lock_experiment

    if not any(args.dir.rglob(FILE)) and not any(args.dir.rglob("*.eval")):
        raise UserError(f"{args.dir} holds no run; name the directory that `podium run` wrote.")
    path = args.dir / MANIFEST
    before = path.read_bytes() if path.is_file() else b""
    with lock_experiment(args.dir):
        made = write_manifest(args.dir)
    say(f"{path}: {len(made.files)} files")
    if before and path.read_bytes() != before:
        _print_replaced(made.history[-1])
    say(_root(made.root))
    say("Publish it, or sign the manifest: else nothing shows a wholesale rewrite.")
    return 0


def _print_replaced(earlier: "EarlierRoot") -> None:
    """Say which manifest another one replaces, and what has changed since, for good."""
    say(f"It replaces {earlier}")
    for said in earlier.changed:
        say(f"  {said}: `podium manifest verify` and `podium audit` fail on it")
    for what, names in (("added", earlier.added), ("grown", earlier.grown)):
        for name in names:
            say(f"  {name}: {what}")


def _verify_manifest(args: argparse.Namespace) -> int:
    from harness.audit.verify import LIMITS, verify
    from harness.cli.grade import refuse_box
    from harness.ledger.manifest import uncovered

    refuse_box(args)
    found = verify(args.dir, args.root or "", shared=args.shared)
    if any(one.kind == "absent" for one in found):
        raise UserError(f"There is no manifest in {args.dir}: {ABSENT}.")
    for one in found:
        say(one)
    for earlier in _history(args.dir):
        say(f"It replaces {earlier}")
    say(f"Integrity: {'the files are not those of the manifest' if found else 'holds'}.")
    say(_root_of(args.dir, holds=not found))
    said, vouched = _authenticity(args)
    say(f"Authenticity: {said}.")
    if args.shared:
        say("Of a redacted log only the digests of its originals are checked, not its numbers.")
    grades, same = _grades(args)
    say("\n".join(grades))
    say("Not proved: " + ";\n  ".join(LIMITS) + ".")
    if outside := uncovered(args.dir):
        say(f"  {_named_faults(outside)}.")
    return 0 if vouched and not found and same else 1


def _grades(args: argparse.Namespace) -> tuple[list[str], bool]:
    """Say which verdicts were given anew, and which not and why; return whether all were alike."""
    from harness.cli.grade import regraded

    if not args.regrade:
        return ["Grades: none was given anew (--regrade does, without asking any model)."], True
    logs, said = regraded(args), list[str]()
    for log in logs:
        left = "".join(f"; {count:,} not: {why}" for why, count in sorted(log.left.items()))
        said.append(f"Grades of {log.log.name}: {log.same:,} given anew and the same{left}.")
        said += [f"  {where}: {other}" for where, other in log.others]
    return said, not any(log.others for log in logs)


def _history(folder: Path) -> "tuple[EarlierRoot, ...]":
    from harness.ledger.manifest import FILE, read_manifest

    try:
        return read_manifest(folder / FILE).history
    except UserError:  # which is a finding
        return ()


def _root_of(folder: Path, *, holds: bool) -> str:
    """Return the root that a manifest states; where it cannot be read, why there is none."""
    from harness.ledger.manifest import FILE, read_manifest

    try:
        root = read_manifest(folder / FILE).root
        return _root(root) if holds else f"Root: {root}"
    except UserError as error:
        return f"Root: none ({error})"


def _root(root: str) -> str:
    return f"Root: {root}\n  This is what to publish: compare with --root what was published."


def _named_faults(outside: Sequence[str]) -> str:
    names = ", ".join(one if one.isprintable() else ascii(one) for one in outside[:NAMED])
    more = f" and {len(outside) - NAMED:,} more" if len(outside) > NAMED else ""
    are = "file here is" if len(outside) == 1 else "files here are"
    return f"{len(outside):,} {are} not covered: {names}{more}"


def _authenticity(args: argparse.Namespace) -> tuple[str, bool]:
    from harness.audit.verify import check

    signed = check(args.dir, args.public_key)
    asked = args.public_key is not None
    says = {
        "unsigned": "not signed",
        "signed": f"signed by {signed.key}, whom you must know",
        "known": f"signed by the key you named, {signed.key}",
        "invalid": "the signature is not of this manifest, which was changed or extended since",
        "other-key": f"signed by {signed.key}, which is not the key you named",
    }
    bad = signed.verdict in ("invalid", "other-key") or (asked and signed.verdict == "unsigned")
    published = "compared with the published root" if args.root else "no published root was named"
    return f"{says[signed.verdict]}; {published}", not bad


def _sign(args: argparse.Namespace) -> int:
    from harness.audit.verify import check, sign, verify

    found = verify(args.dir)
    if found and found[0].kind == "absent":
        raise UserError(f"There is no manifest in {args.dir}; `podium manifest write` makes one.")
    if found:
        raise UserError(f"{found[0]}: what does not hold is not signed; write the manifest first.")
    say(f"{sign(args.dir, args.key)}: signed by {check(args.dir).key}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from harness.audit.verify import make_key

    say(f"{args.out}: keep it to yourself. {make_key(args.out)}: publish it.")
    return 0
