"""The commands about costs and their verification: prices, reprice, audit, ledger, manifest."""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.cli.arguments import (
    HERE,
    Arguments,
    day,
    launch,
    say_listing,
    say_or_write,
    taken,
)
from podium.harness.errors import UserError, shipped_file
from podium.harness.files import MIB, read_limited, refuse_absent, refuse_unwritable_file
from podium.harness.text import fitted_text, pluralise, say

if TYPE_CHECKING:
    from podium.harness.prices.snapshot import PriceSource
    from podium.reports.audit import InvariantCheck
    from podium.reports.audit.reconcile import Reconciliation


def prices(add: Arguments) -> None:
    """List, verify, compare, make or export price books."""
    action = add.actions()
    listed = action("list", "list the books, or every price of one")
    listed("book", "book name or .toml file", nargs="?")
    verify = action("verify", "check books, and compare them with genai-prices")
    verify("books BOOK", "book names or files (all)", nargs="*")
    diff = action("diff", "list the differences between two books")
    diff("old A", "book name or .toml file")
    diff("new B", "book name or .toml file")
    for command in (listed, verify, diff):
        command.listing()
    snapshot = action("snapshot", "make a book from genai-prices")
    choice = Arguments(snapshot.parser.add_mutually_exclusive_group())
    choice("--models MODEL", "PROVIDER/MODEL, e.g. openai/gpt-5", nargs="+")
    choice("--pool", "pool whose models to include (every live pool)")
    launched = "launch day of a model that has none on record; repeat"
    snapshot.repeated("--launched MODEL=DAY", launched, launch)
    snapshot("--out FILE", "book to write: new, .toml", Path, required=True)
    update = action("update", "make a book of all prices of genai-prices, and show the changes")
    older = "book to compare with; entries with sources of their own are kept (the newest list)"
    update("--against BOOK", older)
    update("--fetch URL", "download newer data from genai-prices, or from URL", nargs="?", const="")
    update("--out FILE", "book to write: new, .toml (list-DATE.toml)", Path)
    for command in (snapshot, update):
        command("--date", "day whose prices to use (today)", day)
    export = action("export", "write a book in the format of Inspect's --model-cost-config")
    export("book", "book name or .toml file (the newest list)", nargs="?")
    export("--inspect FILE", "file to write: new, .json or .yaml", Path, required=True)


def prices_command(args: argparse.Namespace) -> int:
    """Run a command on price books; return 1 if `verify` or `diff` found a difference, else 0."""
    actions = {
        "list": _list,
        "verify": _verify_book,
        "diff": _diff,
        "snapshot": _snapshot,
        "update": _update,
        "export": _export,
    }
    return actions[args.action](args)


def reprice_command(args: argparse.Namespace) -> int:
    """Show what runs would have cost by another price book, and write it to --out; return 0."""
    from podium.harness.ledger.runs import system_runs_below
    from podium.harness.prices import read_book
    from podium.harness.prices.reprice import free_place, repriced, show_repriced, write_repriced

    book = read_book(args.book)
    if args.out:
        free_place(args.out)
    runs = [repriced(files, book) for files in system_runs_below(args.dir)]
    rows = sorted((row for row in runs if row), key=lambda row: (row.suite, row.label, row.system))
    say(fitted_text(show_repriced(rows)))
    if args.out:
        say(f"Wrote {write_repriced(rows, args.out)}.")
    return 0


def _list(args: argparse.Namespace) -> int:
    from podium.harness.prices import read_book
    from podium.harness.prices.snapshot import show_book, show_books

    if args.book:
        book = read_book(args.book)
        say_listing(args, book.as_json(), show_book(book))
    else:
        say_listing(args, *show_books())
    return 0


def _diff(args: argparse.Namespace) -> int:
    from podium.harness.prices import read_book
    from podium.harness.prices.snapshot import changes, show_changes

    old, new = read_book(args.old), read_book(args.new)
    differences = changes(old, new)
    text = show_changes(differences, (old.name, new.name)) if differences else SAME_PRICES
    say_listing(args, differences, text)
    return 1 if differences else 0


SAME_PRICES = "Both books state the same prices."


def _verify_book(args: argparse.Namespace) -> int:
    from podium.harness.prices import BOOKS
    from podium.harness.prices.snapshot import installed

    names = args.books or sorted(path.stem for path in BOOKS.glob("*.toml"))
    for name in names:
        shipped_file("price book", name, BOOKS)
    try:
        source = installed(_today())
    except UserError as error:
        source = None
        say(f"Not compared with genai-prices: {error}", file=sys.stderr)
    checked = [_verified(name, source) for name in names]
    wrong = sum(bool(facts["problem"] or facts["changes"]) for facts, _ in checked)
    read_only = "" if source else " The books were only read, not compared with genai-prices."
    lines = [line for _, texts in checked for line in texts]
    lines.append(f"{pluralise(len(names), 'book')}, {wrong} with differences or errors.{read_only}")
    say_listing(args, [facts for facts, _ in checked], "\n".join(lines))
    return 1 if wrong else 0


def _verified(name: str, source: "PriceSource | None") -> tuple[dict[str, Any], list[str]]:
    """Return a price book's error, or differences from genai-prices, as facts and as text."""
    from podium.harness.prices import read_book
    from podium.harness.prices.snapshot import compared, show_changes

    try:
        book = read_book(name)
        beside = compared(book, source) if source else None
    except UserError as error:
        return {"book": name, "problem": str(error), "changes": []}, [f"{name}: {error}"]
    read = f"{name}: {pluralise(len(book.prices), 'price')} read"
    facts = {"book": name, "problem": "", "prices": len(book.prices)}
    if beside is None:
        return {**facts, "compared": 0, "changes": []}, [f"{read}, not compared"]
    same = len(book.prices) - len(beside.others)
    lines = [f"{read}, {same} compared with genai-prices"]
    if 0 < len(beside.others) < len(book.prices):
        lines.append(f"  not from genai-prices: {', '.join(beside.others)}")
    if beside.changes:
        lines.append(show_changes(beside.changes, (book.name, "genai-prices")))
    return {**facts, "compared": same, "changes": beside.changes}, lines


def _snapshot(args: argparse.Namespace) -> int:
    from podium.harness.prices.snapshot import SnapshotRequest, snapshot, write_new

    today = _today()
    request = SnapshotRequest(tuple(_models(args)), args.date or today, dict(args.launched))
    refuse_unwritable_file(args.out, "--out")
    text, notes = snapshot(request, args.out, today)
    write_new(text, args.out)
    for note in notes:
        say(f"- {note}")
    say(f"Wrote {args.out}: {pluralise(len(request.models), 'model')}, prices of {request.day}.")
    return 0


def _update(args: argparse.Namespace) -> int:
    from podium.harness.prices import newest_list, read_book
    from podium.harness.prices.snapshot import installed, refuse_taken, write_new
    from podium.harness.prices.update import fetched, update_text, whole_book, whole_text

    today = _today()
    day = args.date or today
    out = args.out or Path(f"list-{day}.toml")
    refuse_unwritable_file(out, "--out")
    refuse_taken(out)
    if day > today:
        raise UserError(
            f"{day} is in the future, so its prices are unknown. Use a --date up to {today}."
        )
    old = read_book(args.against) if args.against else newest_list()
    source = installed(today)
    if args.fetch is not None:
        source = fetched(source, args.fetch, today)
    new = whole_book(out.stem, day, source, old, today)
    write_new(whole_text(new, out), out)
    say(update_text(old, new))
    keys = f"{len(new.book.prices):,} keys of {new.models:,} models"
    say(f"Wrote {out}: {keys}, prices of {day}. {old.name} and old logs did not change.")
    say(f'To use the new book, write prices = "{out}" in a pool file.')
    return 0


def _export(args: argparse.Namespace) -> int:
    from podium.harness.prices import newest_list, read_book
    from podium.harness.prices.snapshot import inspect_costs, write_inspect_costs

    book = read_book(args.book) if args.book else newest_list()
    if not args.inspect.parent.is_dir():
        raise UserError(
            f"There is no folder {args.inspect.parent}. Create it, or use another --inspect."
        )
    refuse_unwritable_file(args.inspect, "--inspect")
    table = inspect_costs(book)
    write_inspect_costs(table, args.inspect)
    for note in (
        *table.notes,
        *(f"{ref}: left out, {reason}." for ref, reason in table.left_out.items()),
    ):
        say(f"- {note}")
    models = pluralise(len(table.costs), "model")
    say(
        f"Wrote {args.inspect}: {models} of {book.name}; inspect eval --model-cost-config reads it."
    )
    return 0


def _models(args: argparse.Namespace) -> list[str]:
    """Return the models to price: those of --models, of --pool, or of all live built-in pools."""
    from podium.harness.pool_config import POOLS, read_pool

    if args.models:
        return sorted(set(args.models))
    pools = [args.pool] if args.pool else sorted(path.stem for path in POOLS.glob("*.toml"))
    specs = [read_pool(name) for name in pools]
    if not args.pool:
        specs = [spec for spec in specs if spec.label == "live"]
    slots = [slot for spec in specs for slot in spec.slots]
    if not args.pool:  # prices of products such as fugu are entered by hand
        slots = [slot for slot in slots if not slot.not_auditable and slot.provider != "fugu"]
        slots = [slot for slot in slots if isinstance(slot.price, str)]  # others state their own
    return sorted({slot.price_ref for slot in slots})


def _today() -> date:
    return datetime.now(UTC).date()


def audit_command(args: argparse.Namespace) -> int:
    """Audit a run or show one question of it; return 1 if an invariant fails."""
    from podium.cli.grade_commands import regraded
    from podium.reports.audit import as_json, as_text, audit, given_anew
    from podium.reports.audit.reconcile import reconciliation_text

    if args.routerarena or args.dir is None:
        return _predictions(args)
    if args.query is not None or args.system or args.epoch is not None:
        return _query(args)
    _refuse(args)
    bills = list(_bills(args))
    anew = given_anew(regraded(args)) if args.regrade else None
    checked = [check for check, _ in bills]
    report = audit(args.dir, strict=args.strict, bills=checked, anew=anew)
    text = [as_text(report), *(f"\n{reconciliation_text(bill)}" for _, bill in bills)]
    say_or_write(args.json, fitted_text("\n".join(text)), lambda: as_json(report))
    if args.site:
        from podium.reports.site import write_audit_site

        page = write_audit_site(args.dir, report, [bill for _, bill in bills], args.site)
        say(f"To look at: {page}", file=sys.stderr if args.json == Path(HERE) else None)
    return 0 if report.ok else 1


def _predictions(args: argparse.Namespace) -> int:
    """Audit prediction files of RouterArena; return 1 if one of its rules is broken, else 0."""
    from podium.reports.audit.routerarena_audit import (
        audit_predictions,
        predictions_json,
        predictions_text,
    )

    if not args.routerarena:
        raise UserError("There is nothing to audit. Give a run's directory, or --routerarena FILE.")
    query = (args.query, args.system, args.epoch, args.strict, args.regrade, args.site, args.brief)
    bill = (args.invoice, args.project, args.key, args.whole_account, args.model, args.tolerance)
    if args.dir or any((*query, *bill, args.tolerance_usd)):
        raise UserError(
            "--routerarena accepts only --costs and --json. Leave the other options out."
        )
    _refuse_json(args.json)
    audits = [audit_predictions(path, args.costs) for path in args.routerarena]
    text = "\n\n".join(map(predictions_text, audits))
    say_or_write(args.json, text, lambda: predictions_json(audits))
    return 0 if all(audit.ok for audit in audits) else 1


def _refuse(args: argparse.Namespace) -> None:
    """Raise UserError if an audit's option would have no effect, or overwrite a foreign file."""
    from podium.cli.grade_commands import refuse_box

    bill = (args.project, args.key, args.whole_account, args.model, args.tolerance)
    if not args.invoice and any((*bill, args.tolerance_usd)):
        raise UserError("Options of an invoice need --invoice. Add --invoice FILE.")
    if args.costs:
        raise UserError("--costs needs --routerarena. Add --routerarena FILE.")
    if args.brief:
        raise UserError("--brief needs --query. Add --query with the id of a question.")
    refuse_box(args)
    _refuse_json(args.json)
    if args.site:
        from podium.reports.site import refuse_foreign_site

        refuse_foreign_site(args.site)


def _refuse_json(path: Path | None) -> None:
    from podium.reports.audit import is_audit

    if path is None or path == Path(HERE):
        return
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}. Create it, or use another --json.")
    refuse_unwritable_file(path, "--json")
    if path.exists() and not is_audit(path):
        raise UserError(f"{path} exists and is not the JSON of an audit. Use another --json.")


def _query(args: argparse.Namespace) -> int:
    from podium.harness.ledger.details import QuestionFilter, details, queries_json
    from podium.harness.ledger.show import brief_text, query_text

    if not args.query:
        raise UserError(
            "--system and --epoch need a question. Add --query with the id of a question."
        )
    if args.strict or args.invoice or args.regrade:
        raise UserError(
            "--query shows one question and does not audit. Leave the other options out."
        )
    _refuse_json(args.json)
    queries = details(args.dir, QuestionFilter(args.query, args.system, args.epoch))
    text = brief_text(queries) if args.brief else query_text(queries)
    say_or_write(args.json, text, lambda: queries_json(queries, args.dir))
    return 0


def _bills(args: argparse.Namespace) -> "Iterator[tuple[InvariantCheck, Reconciliation]]":
    """Yield each invoice's check (invariant I10), and its comparison with the ledger."""
    from podium.harness.ledger.join import rows_of
    from podium.harness.ledger.runs import system_runs_below
    from podium.reports.audit import AuditFault, InvariantCheck
    from podium.reports.audit.invoices import read_invoice
    from podium.reports.audit.reconcile import InvoiceOptions, reconcile

    if not args.invoice:
        return
    system_runs = system_runs_below(args.dir)
    bounds = {"tokens": args.tolerance, "usd": args.tolerance_usd}
    options = taken(InvoiceOptions, args, models=dict(args.model), **bounds)
    for path in args.invoice:
        if not path.is_file():
            raise UserError(
                f"There is no invoice {path}. Check its path, or export it from the "
                "provider's console."
            )
        rows = (row for files in system_runs for row in rows_of(files) if row.label == "live")
        result = reconcile(rows, read_invoice(path), options)
        faults = [
            AuditFault("I10", result.file, fault.where, f"{fault.kind}: {fault.said}")
            for fault in result.faults
        ]
        yield InvariantCheck(faults), result


def ledger_command(args: argparse.Namespace) -> int:
    """Write a ledger's tables, or print the result of an SQL query; return 0."""
    from podium.harness.ledger.ledger_tables import STYLES, ask, export

    if args.action == "export":
        say(export(args.dir, args.out, args.format))
        return 0
    for line in STYLES[args.format](ask(args.dir, args.query)):
        say(line)
    return 0


NAMED = 5  # maximum files outside a manifest that are listed
ABSENT = (
    "for your own run, make one with `podium manifest write`; for another run, ask its owner (a "
    "run that was killed has none until it is resumed)"
)


def manifest_command(args: argparse.Namespace) -> int:
    """Run a command on a run's manifest; return 1 if `verify` found a change, else 0."""
    actions = {
        "write": _write,
        "verify": _verify_manifest,
        "sign": _sign,
        "anchor": _anchor,
        "key": _key,
    }
    if args.action == "key":
        refuse_unwritable_file(args.out, "--out")
    elif not args.dir.is_dir():
        raise UserError(f"There is no directory {args.dir}. Give the one that `podium run` wrote.")
    return actions[args.action](args)


def _write(args: argparse.Namespace) -> int:
    from podium.harness.ledger.manifest import FILE as MANIFEST
    from podium.harness.ledger.manifest import write_manifest
    from podium.harness.ledger.runs import has_system_runs
    from podium.harness.run.experiment import FILE as EXPERIMENT
    from podium.harness.run.experiment import lock_experiment

    if not any(args.dir.rglob(EXPERIMENT)) and not has_system_runs(args.dir):
        raise UserError(f"{args.dir} holds no run. Give the directory that `podium run` wrote.")
    path = args.dir / MANIFEST
    previous = path.read_bytes() if path.is_file() else b""
    with lock_experiment(args.dir):
        manifest = write_manifest(args.dir, anew=True)
    say(f"{path}: {len(manifest.files)} files")
    if previous and path.read_bytes() != previous:
        earlier = manifest.history[-1]
        say(f"It replaces {earlier}")
        for change in earlier.changed:
            say(f"  {change}: `podium manifest verify` and `podium audit` fail on it")
        for kind, names in (("added", earlier.added), ("grown", earlier.grown)):
            for name in names:
                say(f"  {name}: {kind}")
    say(_root(manifest.root))
    say("Publish it, or sign the manifest. Otherwise a complete rewrite cannot be detected.")
    return 0


def _verify_manifest(args: argparse.Namespace) -> int:
    from podium.cli.grade_commands import refuse_box
    from podium.harness.ledger.manifest import FILE as MANIFEST
    from podium.harness.ledger.manifest import read_manifest, uncovered
    from podium.reports.audit.verify import LIMITS, verify

    refuse_box(args)
    if args.ca is not None:
        refuse_absent(args.ca)
    findings = verify(args.dir, args.root or "", shared=args.shared)
    if any(finding.kind == "absent" for finding in findings):
        raise UserError(f"There is no manifest in {args.dir}: {ABSENT}.")
    for finding in findings:
        say(finding)
    findings = [finding for finding in findings if finding.grave]
    sealed: set[str] = set()
    try:
        stored = read_manifest(args.dir / MANIFEST)
        root = f"Root: {stored.root}" if findings else _root(stored.root)
        sealed = {file.path for file in stored.files}
        for earlier in stored.history:
            say(f"It replaces {earlier}")
    except UserError as error:  # printed as part of the result
        root = f"Root: none ({error})"
    say(f"Integrity: {'the files differ from the manifest' if findings else 'holds'}.")
    say(root)
    authenticity, vouched = _authenticity(args)
    say(f"Authenticity: {authenticity}.")
    timely, stamped = _time(args)
    say(f"Time: {timely}.")
    if args.shared:
        say("For redacted logs, only the digests of the originals are checked, not the numbers.")
    grades, same = _grades(args)
    say("\n".join(grades))
    say("Not proved: " + ";\n  ".join(LIMITS) + ".")
    if outside := [path for path in uncovered(args.dir) if path not in sealed]:
        names = ", ".join(path if path.isprintable() else ascii(path) for path in outside[:NAMED])
        suffix = f" and {len(outside) - NAMED:,} more" if len(outside) > NAMED else ""
        are = "file here is" if len(outside) == 1 else "files here are"
        say(f"  {len(outside):,} {are} not covered: {names}{suffix}.")
    return 0 if vouched and stamped and not findings and same else 1


def _grades(args: argparse.Namespace) -> tuple[list[str], bool]:
    """Return lines on regraded and skipped answers, and whether all verdicts stayed the same."""
    from podium.cli.grade_commands import regraded

    if not args.regrade:
        return ["Grades: not checked (--regrade grades all answers again; calls no model)."], True
    logs, lines = regraded(args), list[str]()
    for log in logs:
        gaps = "".join(f"; {count:,} not: {reason}" for reason, count in sorted(log.left.items()))
        lines.append(
            f"Grades of {log.log.name}: {log.same:,} graded again with the same result{gaps}."
        )
        lines += [f"  {place}: {difference}" for place, difference in log.others]
    return lines, not any(log.others for log in logs)


def _root(root: str) -> str:
    return f"Root: {root}\n  Publish this root. --root compares the manifest with a published root."


def _authenticity(args: argparse.Namespace) -> tuple[str, bool]:
    from podium.reports.audit.verify import check

    signed = check(args.dir, args.public_key)
    says = {
        "unsigned": "not signed",
        "signed": f"signed by {signed.key}; check that you know this key",
        "known": f"signed by the key you named, {signed.key}",
        "invalid": "the signature does not match: the manifest was changed or extended after it",
        "other-key": f"signed by {signed.key}, which is not the key you named",
    }
    bad = {"invalid", "other-key"} | ({"unsigned"} if args.public_key else set[str]())
    published = "compared with the published root" if args.root else "no published root was named"
    return f"{says[signed.verdict]}; {published}", signed.verdict not in bad


def _time(args: argparse.Namespace) -> tuple[str, bool]:
    from podium.reports.audit.anchor import stamp_of

    stamp = stamp_of(args.dir, args.ca)
    says = {
        "none": "not stamped",
        "unchecked": "stamped, but not checked: give the trusted certificates with --ca FILE",
        "stamped": f"stamped: the root existed by {stamp.said}, according to the authority of --ca",
        "other-root": f"the stamp is for another root than this manifest's: {stamp.said}",
        "invalid": stamp.said.rstrip("."),
    }
    good = stamp.verdict in ("stamped", "unchecked") or (stamp.verdict == "none" and not args.ca)
    return says[stamp.verdict], good


def _anchor(args: argparse.Namespace) -> int:
    from podium.harness.ledger.manifest import STAMP
    from podium.reports.audit.anchor import ask, request, store

    _refuse_changed(args.dir, "stamped")
    if args.request and args.ca:
        raise UserError(
            "--request does not use --ca, since a query needs no certificates. Leave --ca out."
        )
    if args.request:
        query = request(args.dir)
        kind = "-H 'content-type: application/timestamp-query'"
        say(f"{query}: send only this file to a time-stamping authority; for example:")
        say(f"  curl --data-binary @{query} {kind} URL -o FILE")
        say(f"  podium manifest anchor {args.dir} --reply FILE --ca CERTIFICATES")
        return 0
    if args.ca is None:
        raise UserError(
            "A stamp is stored only if it is verified. Add --ca with the authority's certificates."
        )
    refuse_absent(args.ca)
    if args.reply:
        refuse_absent(args.reply)
        reply = read_limited(args.reply, MIB)
    else:
        reply = ask(args.authority, request(args.dir).read_bytes())
    when = store(args.dir, reply, args.ca)
    say(f"{args.dir / STAMP}: the root existed by {when.isoformat()}")
    return 0


def _refuse_changed(log_dir: Path, verb: str) -> None:
    from podium.reports.audit.verify import verify

    flaws = verify(log_dir)
    if flaws and flaws[0].kind == "absent":
        raise UserError(
            f"There is no manifest in {log_dir}. Make one: `podium manifest write {log_dir}`."
        )
    if flaws:
        raise UserError(
            f"{flaws[0]}. A manifest that does not match is not {verb}. Write it again with "
            "`podium manifest write` first."
        )


def _sign(args: argparse.Namespace) -> int:
    from podium.reports.audit.verify import check, sign

    _refuse_changed(args.dir, "signed")
    say(f"{sign(args.dir, args.key)}: signed by {check(args.dir).key}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from podium.reports.audit.verify import make_key

    say(f"{args.out}: keep this file secret. {make_key(args.out)}: publish this file.")
    return 0
