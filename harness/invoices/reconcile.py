"""Hold a ledger's rows against an invoice: one pass over the rows, whatever their number.

By request id where the export carries one: each such call is compared alone, and so is the rest by
bucket and model; otherwise all of it by bucket and model. Only live calls leave a purse: rehearsal
and recorded rows, and reads from the local cache, never go to an invoice. A bucket is compared
whole, so the run must have had its project or key to itself.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from harness.invoices.bill import LISTED, Key, read_bill
from harness.invoices.check import Bucket, Verdict, compare
from harness.invoices.counted import LEFT_OUT, Count
from harness.invoices.lines import Invoice, InvoiceLine, span_text
from harness.invoices.names import Names
from harness.invoices.result import Amounts, Fault, Options, Reconciled, Reconciliation
from harness.invoices.sums import TOKENS, Billed, Side
from harness.ledger.row import LedgerRow

ANYONE = Options()
"""No tolerance, and the only account of the export."""


def reconcile(
    rows: Iterable[LedgerRow], invoice: Invoice, options: Options = ANYONE
) -> Reconciliation:
    """Return how a ledger and an invoice compare.

    UserError when the file is malformed, not in US dollars, or not clearly of the run's own project
    or key.
    """
    bill = read_bill(invoice, options)
    ledger = Count(bill, Names(bill.models, options.models), options, invoice.providers)
    for row in rows:
        ledger.add(row)
    inside, outside = _within_the_run(ledger)
    agreeing = _agreeing(ledger, inside)
    found = [_reconciled(ledger, key, agreeing[key[1]]) for key in inside]
    faults = [*bill.repeated, *_listed(ledger), *_unmatched_faults(ledger)]
    faults += [fault for one in found for fault in _bucket_faults(one)]
    faults += _unknown_requests(ledger)
    return Reconciliation(
        file=Path(invoice.path).name,
        format=invoice.format,
        account=bill.account,
        by="request id" if bill.requests else "bucket and model",
        rows=tuple(found),
        faults=tuple(faults),
        mapping=tuple((ours, *theirs) for ours, theirs in sorted(ledger.names.made.items())),
        foreign=(*bill.foreign, *outside),
        credits=bill.credits,
        notes=tuple(_notes(ledger, inside)),
    )


def _within_the_run(ledger: Count) -> tuple[list[Key], list[str]]:
    """Return the buckets to compare, and a line for those before the run or after it."""
    keys = sorted(ledger.bill.buckets.keys() | ledger.sides.keys(), key=lambda key: (*key[0], key))
    if ledger.first is None or ledger.last is None:
        return keys, []
    first, last = ledger.first, ledger.last
    inside = [key for key in keys if key[0][0] <= last and key[0][1] > first]
    outside = [key for key in keys if key not in set(inside)] if len(inside) < len(keys) else []
    said = [f"{span_text(*span)} {model}: before or after the run" for span, model in outside]
    more = [f"and {len(said) - LISTED} more buckets before or after the run"]
    return inside, said[:LISTED] + (more if said[LISTED:] else [])


def _agreeing(ledger: Count, keys: list[Key]) -> dict[str, frozenset[str]]:
    """Return, per model, the measures whose sums over all buckets are the same on both sides."""
    ours: dict[str, Counter[str]] = defaultdict(Counter)
    for key in keys:
        side, billed = ledger.sides.get(key, Side()), ledger.bill.buckets.get(key, Billed())
        for measure in ("requests", *TOKENS, "usd"):
            theirs = getattr(billed, measure) or 0
            ours[key[1]][measure] += theirs - getattr(side.known, measure)
    return {
        model: frozenset(measure for measure, over in found.items() if not over)
        for model, found in ours.items()
    }


def _reconciled(ledger: Count, key: Key, agreeing: frozenset[str]) -> Reconciled:
    side, billed = ledger.sides.get(key), ledger.bill.buckets.get(key)
    if side is not None and billed is not None:
        verdict = compare(Bucket(side, billed, ledger.options, agreeing))
    elif billed is not None:
        verdict = Verdict((), ("the ledger has no such call",), "not in the ledger")
    else:
        assert side is not None, "a key comes from one side or the other"
        verdict = _absent(side, agreeing)
    return Reconciled(
        bucket=span_text(*key[0]),
        model=key[1],
        ledger=side.amounts if side else Amounts(),
        invoice=billed.amounts if billed else Amounts(),
        explained_by=verdict.explained,
        wrong=verdict.wrong,
        kind=verdict.kind,
    )


def _absent(side: Side, agreeing: frozenset[str]) -> Verdict:
    """Say what it means that the invoice has nothing for calls of the ledger."""
    if side.known.requests == 0:
        return Verdict(("nothing was billed for refused calls and calls in flight",), ())
    if "output" in agreeing and side.known.requests == side.began_here.requests:
        said = "all its calls ended in the next bucket; all buckets together agree"
        return Verdict((said,), ())
    said = f"the invoice has none of {side.known.requests} calls"
    return Verdict((), (said,), "not in the invoice")


def _bucket_faults(one: Reconciled) -> list[Fault]:
    where = f"{one.bucket} {one.model or 'all models'}"
    return [Fault(one.kind, where, said) for said in one.wrong]


def _unmatched_faults(ledger: Count) -> list[Fault]:
    said = {name.partition(" (served")[0]: why for name, why in ledger.names.unmatched.items()}
    return [
        Fault("unmatched model", model, f"{calls} calls; {said.get(model, 'not in the invoice')}")
        for model, calls in sorted(ledger.unmatched.items())
    ]


def _unknown_requests(ledger: Count) -> list[Fault]:
    """Return the requests that nothing in the ledger may be, where ids are compared."""
    lost: list[InvoiceLine] = []
    for request, line in ledger.bill.requests.items():
        if request in ledger.seen or _is_outside(ledger, line):
            continue
        side = ledger.sides.get(((line.start, line.end), line.model or line.item), Side())
        if not side.open.calls and side.known.requests == 0:
            continue  # the whole bucket is named already
        if not side.open.calls:
            lost.append(line)
    return _most(
        [
            Fault("not in the ledger", line.request_id or "", f"a request of {line.model}")
            for line in lost
        ]
    )


def _is_outside(ledger: Count, line: InvoiceLine) -> bool:
    if ledger.first is None or ledger.last is None:
        return False
    return line.start > ledger.last or line.end <= ledger.first


def _listed(ledger: Count) -> list[Fault]:
    return [fault for faults in ledger.faults.values() for fault in _most(faults)]


def _most(faults: list[Fault]) -> list[Fault]:
    """Return the first few faults of a kind, and one that counts the others."""
    if len(faults) <= LISTED:
        return faults
    rest = len(faults) - LISTED
    return [*faults[:LISTED], Fault(faults[0].kind, f"{rest} more", faults[0].said)]


def _notes(ledger: Count, keys: list[Key]) -> list[str]:
    notes = [
        f"{count} calls {LEFT_OUT[kind]}: left out"
        for kind, count in sorted(ledger.left_out.items())
    ]
    if ledger.resolved:
        notes.append(f"{ledger.resolved} calls in flight were found in the invoice by their id")
    first, last = ledger.first, ledger.last
    partly = [span for span, _ in keys if first and last and (span[0] < first or span[1] > last)]
    if partly:
        notes.append(
            f"{len(set(partly))} buckets reach beyond the run's first or last call and are "
            "compared whole: other traffic of the same account in them shows as a difference"
        )
    if ledger.bill.requests and ledger.bill.nameless:
        notes.append(f"{ledger.bill.nameless} lines without a request id: by bucket and model")
    return notes
