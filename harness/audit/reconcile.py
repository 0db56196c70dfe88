"""The ledger held against one invoice: both sides, every difference and what may explain it.

By request id where the export carries one, the rest by bucket and model. A difference is explained
by calls in flight within their bounds, by calls that crossed the bucket's edge when all buckets
together agree, by rounding within the amounts' last places. Everything else is wrong.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from harness.audit.bill import (
    LISTED,
    MEASURES,
    Amounts,
    Bill,
    Billed,
    InvoiceFault,
    InvoiceFaultKind,
    InvoiceOptions,
    Key,
    ReconciledBucket,
    Reconciliation,
    Side,
    call_amounts,
    last_place,
    line_amounts,
    read_bill,
)
from harness.audit.invoice_files import Names
from harness.audit.invoices import Invoice, InvoiceLine, moment, span_text
from harness.ledger.call import Call
from harness.text import columns

Number = int | Decimal
Verdict = tuple[tuple[str, ...], tuple[str, ...], InvoiceFaultKind]
"""What is explained, what is wrong, and of what kind that is."""


@dataclass(frozen=True, slots=True)
class BucketPair:
    """Both sides of one bucket and model, and how closely they are compared."""

    side: Side
    billed: Billed
    options: InvoiceOptions
    agreeing: frozenset[str]
    """Measures on which all buckets together agree."""


def _compare(bucket: BucketPair) -> Verdict:
    side, billed = bucket.side, bucket.billed
    said = [one for one in MEASURES if getattr(billed, one) is not None]
    measures = [one for one in said if one != "usd" or not side.unpriced]
    found = [_measure(measure, bucket) for measure in measures]
    explained = [why for why, ok in found if ok and why]
    if side.unpriced and billed.usd is not None:
        explained.append(f"dollars not compared: {side.unpriced} calls have no price")
    why = tuple(dict.fromkeys(explained))
    if not measures:
        return why, ("nothing could be compared",), "nothing compared"
    return why, tuple(why for why, ok in found if not ok), "difference"


def _measure(measure: str, bucket: BucketPair) -> tuple[str, bool]:
    side, billed, options = bucket.side, bucket.billed, bucket.options
    theirs: Number = getattr(billed, measure)
    ours: Number = getattr(side.known, measure)
    over = theirs - ours
    slacks: dict[str, Number] = {"usd": billed.rounding + options.usd, "requests": 0}
    slack = slacks.get(measure, options.tokens)
    if abs(over) <= slack:
        return _within(measure, over, bucket) if over else "", True
    most = {"requests": side.open, **side.most}.get(measure, side.most["input"])
    if side.open and over >= -slack and (most is None or over <= most + slack):
        return _in_flight(side), True
    if measure == "requests" and 0 < over <= side.refused + side.open:
        return f"{side.refused} refused attempts may count as requests", True
    low, high = getattr(side.began_here, measure), getattr(side.ended_here, measure)
    if measure in bucket.agreeing and -low - slack <= over <= high + slack:
        crossed = (side.began_here.requests or 0) + (side.ended_here.requests or 0)
        return f"{crossed} calls crossed the bucket's edge; all buckets together agree", True
    sides = f"the invoice has {_figure(theirs)}, the ledger {_figure(ours)}"
    return f"{MEASURES[measure]}: {sides} ({_figure(over, signed=True)})", False


def _within(measure: str, over: Number, bucket: BucketPair) -> str:
    billed, options = bucket.billed, bucket.options
    if measure != "usd":
        differ = f"{MEASURES[measure]} differ by {_figure(over, signed=True)}"
        return f"{differ}, within {options.tokens}"
    if abs(over) <= billed.rounding:
        return f"rounding of {billed.priced} amounts: at most ${billed.rounding:f}"
    return f"dollars differ by {over:+f}, within {options.usd:f} and rounding"


def _figure(number: Number, *, signed: bool = False) -> str:
    shown = f"{number:f}" if isinstance(number, Decimal) else str(number)
    return f"+{shown}" if signed and number > 0 else shown


def _in_flight(side: Side) -> str:
    """Name the calls that may explain a difference, with the range of what they can have cost."""
    named = f"in flight or timed out: {side.open - side.silent} calls"
    if side.silent:
        uncounted = f"answered without a count of tokens: {side.silent} calls"
        named = uncounted if side.silent == side.open else f"{named}, {uncounted}"
    asked, said, usd = side.most.values()
    tokens = "no bound on tokens" if asked is None or said is None else f"0-{asked + said} tokens"
    dollars = "no bound on dollars" if usd is None else f"$0-{usd:f}"
    return f"{named}, {tokens}, {dollars}"


LEFT_OUT = {
    "label": "of rehearsal or recorded workers",
    "cache": "answered from the local cache",
    "provider": "of other providers",
}


@dataclass(slots=True)
class Count:
    """The rows, added up as the invoice is."""

    bill: Bill
    names: Names
    options: InvoiceOptions
    providers: tuple[str, ...]
    sides: defaultdict[Key, Side] = field(default_factory=lambda: defaultdict[Key, Side](Side))
    left_out: Counter[str] = field(default_factory=Counter[str])
    unmatched: Counter[str] = field(default_factory=Counter[str])
    faults: dict[InvoiceFaultKind, list[InvoiceFault]] = field(
        default_factory=lambda: defaultdict[InvoiceFaultKind, list[InvoiceFault]](list)
    )
    seen: set[str] = field(default_factory=set[str])
    resolved: int = 0
    """Calls in flight that the invoice has by their id."""
    first: datetime | None = None
    last: datetime | None = None

    def add(self, row: Call) -> None:
        """Add one row, or count it as left out."""
        if row.label != "live":
            self.left_out["label"] += 1
        elif row.cache == "read":
            self.left_out["cache"] += 1
        else:
            self._live(row)

    def _live(self, row: Call) -> None:
        line = self.bill.requests.get(row.request_id) if row.request_id else None
        if line is not None:
            self._by_id(row, line)
            return
        model = self.names.match(row.model, row.served_model)
        if model is None:
            self._unmatched(row)
            return
        start = self._noted(row)
        for layer in self.bill.layers:
            span = layer.span(start)
            side = self.sides[span, model]
            side.add(row)
            later = layer.span(start + timedelta(seconds=row.latency_s or 0))
            if later != span and row.billable == "yes" and row.output is not None:
                side.began_here.add(call_amounts(row))
                self.sides[later, model].ended_here.add(call_amounts(row))
        if self.bill.requests and row.request_id and row.billable == "yes":
            self._fault(
                "not in the invoice", row.request_id, f"a call of {row.model}, {row.started}"
            )

    def _by_id(self, row: Call, line: InvoiceLine) -> None:
        self._noted(row)
        request = line.request_id or ""
        if request in self.seen:
            self._fault("repeated request id", request, "the ledger has it more than once")
            return
        self.seen.add(request)
        side = self.sides[(line.start, line.end), line.model or line.item]
        if row.billable == "unknown":
            self.resolved += 1
            side.known.add(replace(line_amounts(line), requests=1))  # the invoice knows
            return
        side.add(row)
        if said := _differences(row, line, self.options):
            self._fault("request differs", request, said)

    def _unmatched(self, row: Call) -> None:
        if self.providers and row.model.partition("/")[0] not in self.providers:
            self.left_out["provider"] += 1
        elif row.billable != "no":
            self.unmatched[row.model] += 1

    def _noted(self, row: Call) -> datetime:
        start = moment(row.started)
        self.first = start if self.first is None else min(self.first, start)
        end = start + timedelta(seconds=row.latency_s or 0)
        self.last = end if self.last is None else max(self.last, end)
        return start

    def _fault(self, kind: InvoiceFaultKind, where: str, said: str) -> None:
        self.faults[kind].append(InvoiceFault(kind, where, said))


def _differences(row: Call, line: InvoiceLine, options: InvoiceOptions) -> str:
    if row.billable == "no":
        return "the ledger says that the provider refused it, the invoice bills it"
    pairs = (
        ("input tokens", row.input_total, line_amounts(line).input),
        ("cached tokens", row.cache_read, line.cache_read),
        ("output tokens", row.output, line.output),
    )
    said = [
        f"{name}: the invoice has {theirs}, the ledger {ours}"
        for name, ours, theirs in pairs
        if ours is not None and theirs is not None and abs(ours - theirs) > options.tokens
    ]
    if row.usd is not None and line.usd is not None:
        slack = last_place(line.usd) + options.usd
        dollars = f"dollars: the invoice has {line.usd:f}, the ledger {row.usd:f}"
        said += [dollars] if abs(row.usd - line.usd) > slack else []
    return "; ".join(said)


ANYONE = InvoiceOptions()
"""No tolerance, and the only account of the export."""


def reconcile(
    rows: Iterable[Call], invoice: Invoice, options: InvoiceOptions = ANYONE
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
    faults = [
        *bill.repeated,
        *(fault for faults in ledger.faults.values() for fault in _most(faults)),
        *_unmatched_faults(ledger),
        *(
            InvoiceFault(one.kind, f"{one.bucket} {one.model or 'all models'}", said)
            for one in found
            for said in one.wrong
        ),
        *_unknown_requests(ledger),
    ]
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
    ours: dict[str, Counter[str]] = defaultdict(Counter)
    for key in keys:
        side, billed = ledger.sides.get(key, Side()), ledger.bill.buckets.get(key, Billed())
        for measure in MEASURES:
            theirs = getattr(billed, measure) or 0
            ours[key[1]][measure] += theirs - getattr(side.known, measure)
    return {
        model: frozenset(measure for measure, over in found.items() if not over)
        for model, found in ours.items()
    }


def _reconciled(ledger: Count, key: Key, agreeing: frozenset[str]) -> ReconciledBucket:
    side, billed = ledger.sides.get(key), ledger.bill.buckets.get(key)
    if side is not None and billed is not None:
        explained, wrong, kind = _compare(BucketPair(side, billed, ledger.options, agreeing))
    elif side is None:
        explained, wrong, kind = (), ("the ledger has no such call",), "not in the ledger"
    else:
        explained, wrong, kind = _absent(side, agreeing)
    return ReconciledBucket(
        bucket=span_text(*key[0]),
        model=key[1],
        ledger=side.amounts if side else Amounts(),
        invoice=Amounts(*(getattr(billed, measure, None) for measure in MEASURES)),
        explained_by=explained,
        wrong=wrong,
        kind=kind,
    )


def _absent(side: Side, agreeing: frozenset[str]) -> Verdict:
    """Say what it means that the invoice has nothing for calls of the ledger."""
    if side.known.requests == 0:
        return ("nothing was billed for refused calls and calls in flight",), (), "difference"
    if "output" in agreeing and side.known.requests == side.began_here.requests:
        said = "all its calls ended in the next bucket; all buckets together agree"
        return (said,), (), "difference"
    return (), (f"the invoice has none of {side.known.requests} calls",), "not in the invoice"


def _unmatched_faults(ledger: Count) -> list[InvoiceFault]:
    said = {name.partition(" (served")[0]: why for name, why in ledger.names.unmatched.items()}
    return [
        InvoiceFault(
            "unmatched model", model, f"{calls} calls; {said.get(model, 'not in the invoice')}"
        )
        for model, calls in sorted(ledger.unmatched.items())
    ]


def _unknown_requests(ledger: Count) -> list[InvoiceFault]:
    lost: list[InvoiceFault] = []
    first, last = ledger.first, ledger.last
    for request, line in ledger.bill.requests.items():
        outside = first and last and (line.start > last or line.end <= first)
        if request in ledger.seen or outside:
            continue
        side = ledger.sides.get(((line.start, line.end), line.model or line.item), Side())
        if side.known.requests and not side.open:  # else the whole bucket is named already
            lost.append(InvoiceFault("not in the ledger", request, f"a request of {line.model}"))
    return _most(lost)


def _most(faults: list[InvoiceFault]) -> list[InvoiceFault]:
    if len(faults) <= LISTED:
        return faults
    rest = len(faults) - LISTED
    return [*faults[:LISTED], InvoiceFault(faults[0].kind, f"{rest} more", faults[0].said)]


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


COLUMNS = ("bucket", "model", "requests", "input", "cached", "output", "usd", "said")


def reconciliation_text(found: Reconciliation) -> str:
    """Return a reconciliation as a table; each cell is ledger / invoice, one figure when equal."""
    lines = [
        f"Invoice {found.file} ({found.format}), compared by {found.by}, {found.account}.",
        "Cells: ledger / invoice; one figure where they are equal; - is not said.",
        "",
        columns(COLUMNS, [_cells(row) for row in found.rows]),
        "",
    ]
    for title, said in (
        ("model", [f"{ours} = {theirs or 'all'} ({why})" for ours, theirs, why in found.mapping]),
        ("foreign, left out", found.foreign),
        ("credit, listed only", found.credits),
        ("note", found.notes),
        ("FAULT", [f"{one.kind}: {one.where}: {one.said}" for one in found.faults]),
    ):
        lines += (f"{title}: {line}" for line in said)
    agree = "The ledger and the invoice agree."
    return "\n".join([*lines, agree if found.ok else f"{len(found.faults)} faults.", ""])


def _cells(row: ReconciledBucket) -> tuple[str, ...]:
    said = "; ".join((*row.wrong, *row.explained_by)) or "equal"
    numbers = (
        _pair(row.ledger, row.invoice, measure)
        for measure in ("requests", "input", "cache_read", "output", "usd")
    )
    mark = "" if row.ok else "FAULT "
    return (row.bucket, row.model or "all", *numbers, mark + said)


def _pair(ledger: Amounts, invoice: Amounts, measure: str) -> str:
    sides = getattr(ledger, measure), getattr(invoice, measure)
    ours, theirs = ("-" if one is None else _figure(one) for one in sides)
    return ours if sides[0] == sides[1] else f"{ours} / {theirs}"
