"""Compares the ledger with one invoice: amounts, differences and their possible explanations.

Compares by request id if the export has ids, otherwise by time bucket and model. A difference is
explained by unfinished calls up to their maximum cost, by calls that ended in a later bucket if
all buckets together agree, or by rounding of printed amounts. All other differences are faults.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from podium.harness.ledger.call import Call
from podium.harness.text import columns
from podium.reports.audit.invoice_columns import HELD_AGAINST, unknown_columns
from podium.reports.audit.invoice_total import (
    LISTED,
    MEASURES,
    Amounts,
    Bill,
    Billed,
    InvoiceOptions,
    Key,
    Names,
    last_place,
    line_amounts,
    listed,
    read_bill,
)
from podium.reports.audit.invoices import Invoice, InvoiceLine, Span, moment, span_text

Number = int | Decimal
Verdict = tuple[tuple[str, ...], tuple[str, ...], str]
"""Explained differences between ledger and invoice, unexplained ones, and their kind of fault."""


@dataclass(frozen=True, slots=True)
class ReconciledBucket:
    """The amounts of ledger and invoice for one time bucket and model, and the differences."""

    bucket: str
    model: str
    ledger: Amounts
    invoice: Amounts
    explained_by: tuple[str, ...]
    """Reasons why ledger and invoice may differ, each with its range; empty if they are equal."""
    wrong: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class InvoiceFault:
    """One unexplained difference between ledger and invoice."""

    kind: str
    where: str
    said: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The result of comparing the ledger of a run with one invoice."""

    file: str
    format: str
    account: str
    by: Literal["request id", "bucket and model"]
    rows: tuple[ReconciledBucket, ...]
    faults: tuple[InvoiceFault, ...]
    mapping: tuple[tuple[str, str, str], ...]
    """Model in the ledger, model in the invoice, and why both are the same."""
    foreign: tuple[str, ...]
    """Texts on invoice lines of other projects, API keys and times, which are not compared."""
    credits: tuple[str, ...]
    notes: tuple[str, ...]
    held_against: str
    """The provider's documentation that this format was checked against; see `HELD_AGAINST`."""
    unknown_columns: tuple[str, ...]
    """Columns of the invoice that podium does not know in this format and does not read."""

    @property
    def ok(self) -> bool:
        """Whether the ledger and the invoice agree, or every difference is explained."""
        return not self.faults


def _nothing() -> Amounts:
    return Amounts(0, 0, 0, 0, 0, Decimal(0))


def _call_amounts(row: Call) -> Amounts:
    """Return the amounts of a call with known tokens: one request, its tokens and its dollars."""
    tokens = (row.input_total or 0, row.cache_read or 0, row.cache_write or 0, row.output or 0)
    return Amounts(1, *tokens, row.usd or Decimal(0))


@dataclass(slots=True)
class Side:
    """The ledger's amounts for one time bucket and model."""

    known: Amounts = field(default_factory=_nothing)
    unpriced: int = 0
    refused: int = 0
    """Number of attempts that the provider refused and may count as requests without tokens."""
    open: int = 0
    """Number of calls of unknown cost: unfinished, or without token counts from the provider."""
    silent: int = 0
    """Number of the calls in `open` that were answered."""
    most: dict[str, Number | None] = field(
        default_factory=lambda: {"input": 0, "output": 0, "usd": Decimal(0)}
    )
    """Maximum tokens and dollars of the calls in `open`; None: no known maximum."""
    began_here: Amounts = field(default_factory=_nothing)
    """Amounts of calls that began in this bucket but ended, and may be billed, in a later one."""
    ended_here: Amounts = field(default_factory=_nothing)

    def add(self, row: Call) -> None:
        """Add the amounts of one row of the ledger, an attempt of a call."""
        if row.billable == "no":
            self.refused += 1
        elif row.billable == "yes" and row.input_total is not None and row.output is not None:
            self.known.add(_call_amounts(row))
            self.unpriced += row.usd is None
        else:
            self.open += 1
            self.silent += row.billable == "yes"
            bounds = {"input": row.prompt_bytes, "output": row.max_tokens, "usd": row.usd_high}
            for measure, bound in bounds.items():
                maximum = self.most[measure]
                self.most[measure] = None if maximum is None or bound is None else maximum + bound

    def in_flight(self) -> str:
        """Return a text on the calls in `open` and their maximum cost, to explain differences."""
        text = f"in flight or timed out: {self.open - self.silent} calls"
        if self.silent:
            uncounted = f"answered without token counts: {self.silent} calls"
            text = uncounted if self.silent == self.open else f"{text}, {uncounted}"
        input_bound, output_bound, usd = self.most.values()
        tokens = "no bound on tokens"
        if input_bound is not None and output_bound is not None:
            tokens = f"0-{input_bound + output_bound} tokens"
        return f"{text}, {tokens}, {'no bound on dollars' if usd is None else f'$0-{usd:f}'}"


LEFT_OUT = {
    "label": "of rehearsal or recorded workers",
    "cache": "answered from the local cache",
    "provider": "of other providers",
}


@dataclass(slots=True)
class Count:
    """Adds up the ledger's rows in the invoice's time buckets; compares ledger and invoice."""

    bill: Bill
    names: Names
    options: InvoiceOptions
    providers: tuple[str, ...]
    sides: defaultdict[Key, Side] = field(default_factory=lambda: defaultdict[Key, Side](Side))
    left_out: Counter[str] = field(default_factory=Counter[str])
    unmatched: Counter[str] = field(default_factory=Counter[str])
    faults: dict[str, list[InvoiceFault]] = field(
        default_factory=lambda: defaultdict[str, list[InvoiceFault]](list)
    )
    seen: set[str] = field(default_factory=set[str])
    resolved: int = 0
    """Number of calls of unknown cost whose request ids the invoice lists."""
    whole: Span | None = None
    """Time of the run: from the start of the first call to the end of the last; None: no call."""

    def add_all(self, rows: Iterable[Call]) -> None:
        """Add rows of the ledger; `left_out` counts rows that the invoice cannot bill."""
        layers = self.bill.layers()
        for row in rows:
            line = self.bill.requests.get(row.request_id or "")
            if row.label != "live" or row.cache == "read":
                self.left_out["label" if row.label != "live" else "cache"] += 1
            elif line is not None:
                self._add_by_id(row, line)
            elif (model := self.names.match(row.model, row.served_model)) is not None:
                start, end = self._noted(row)
                for layer in layers:
                    self._add(row, (layer(start), model), (layer(end), model))
                if self.bill.requests and row.request_id and row.billable == "yes":
                    text = f"a call of {row.model}, {row.started}"
                    self._fault("not in the invoice", row.request_id, text)
            else:
                self._leave_out(row)

    def _leave_out(self, row: Call) -> None:
        if self.providers and row.model.partition("/")[0] not in self.providers:
            self.left_out["provider"] += 1
        elif row.billable != "no":
            self.unmatched[row.model] += 1

    def _add(self, row: Call, first_key: Key, last_key: Key) -> None:
        self.sides[first_key].add(row)
        if last_key != first_key and row.billable == "yes" and row.output is not None:
            self.sides[first_key].began_here.add(_call_amounts(row))
            self.sides[last_key].ended_here.add(_call_amounts(row))

    def _add_by_id(self, row: Call, line: InvoiceLine) -> None:
        self._noted(row)
        request = line.request_id or ""
        if request in self.seen:
            self._fault("repeated request id", request, "the ledger has it more than once")
            return
        self.seen.add(request)
        side = self.sides[(line.start, line.end), line.model or line.item]
        if row.billable == "unknown":
            self.resolved += 1
            side.known.add(replace(line_amounts(line), requests=1))  # take the invoice's amounts
            return
        side.add(row)
        if text := "; ".join(_differences(row, line, self.options)):
            self._fault("request differs", request, text)

    def _noted(self, row: Call) -> Span:
        start = moment(row.started)
        end = start + timedelta(seconds=row.latency_s or 0)
        earliest, latest = self.whole or (start, end)
        self.whole = min(earliest, start), max(latest, end)
        return start, end

    def _fault(self, kind: str, place: str, message: str) -> None:
        self.faults[kind].append(InvoiceFault(kind, place, message))

    def is_during(self, span: Span) -> bool:
        """Return whether a time bucket overlaps the run's calls; True if there was no call."""
        return self.whole is None or (span[0] <= self.whole[1] and span[1] > self.whole[0])

    def _reaches_beyond(self, span: Span) -> bool:
        return self.whole is not None and (span[0] < self.whole[0] or span[1] > self.whole[1])

    def compared(self, keys: list[Key]) -> Iterator[ReconciledBucket]:
        """Yield a comparison of ledger and invoice for each time bucket and model in `keys`."""
        over: dict[str, Counter[str]] = defaultdict(Counter)
        for key in keys:
            side, billed = self.sides.get(key, Side()), self.bill.buckets.get(key, Billed())
            for measure in MEASURES:
                theirs = getattr(billed, measure) or 0
                over[key[1]][measure] += theirs - getattr(side.known, measure)
        agreeing = {
            model: {name for name in MEASURES if not totals[name]} for model, totals in over.items()
        }
        for span, model in keys:
            side, billed = self.sides.get((span, model)), self.bill.buckets.get((span, model))
            explained, wrong, kind = _verdict(side, billed, self.options, agreeing[model])
            ours = side.known if side else Amounts()
            yield ReconciledBucket(
                bucket=span_text(*span),
                model=model,
                ledger=replace(ours, usd=None) if side and side.unpriced else ours,
                invoice=Amounts(*(getattr(billed, measure, None) for measure in MEASURES)),
                explained_by=explained,
                wrong=wrong,
                kind=kind,
            )

    def unmatched_faults(self) -> Iterator[InvoiceFault]:
        """Yield a fault for each model in the ledger that the invoice lacks."""
        texts = {name.partition(" (served")[0]: text for name, text in self.names.unmatched.items()}
        for model, calls in sorted(self.unmatched.items()):
            reason = texts.get(model, "not in the invoice")
            yield InvoiceFault("unmatched model", model, f"{calls} calls; {reason}")

    def unknown_requests(self) -> Iterator[InvoiceFault]:
        """Yield a fault for each request billed during the run that is not in the ledger."""
        for request, line in self.bill.requests.items():
            span = line.start, line.end
            if request in self.seen or not self.is_during(span):
                continue
            side = self.sides.get((span, line.model or line.item), Side())
            if side.known.requests and not side.open:  # otherwise the whole bucket is reported
                yield InvoiceFault("not in the ledger", request, f"a request of {line.model}")

    def notes(self, keys: list[Key]) -> Iterator[str]:
        """Yield sentences on calls and invoice lines that were left out or compared unusually."""
        for kind, count in sorted(self.left_out.items()):
            yield f"{count} calls {LEFT_OUT[kind]}: left out"
        if self.resolved:
            yield f"{self.resolved} calls in flight were found in the invoice by their id"
        if partly := {span for span, _ in keys if self._reaches_beyond(span)}:
            yield (
                f"{len(partly)} buckets extend beyond the run's first or last call and are "
                "compared as a whole: other traffic of the same account in them appears as a "
                "difference"
            )
        if self.bill.requests and self.bill.nameless:
            yield f"{self.bill.nameless} lines without a request id, compared by bucket and model"


def _differences(row: Call, line: InvoiceLine, options: InvoiceOptions) -> Iterator[str]:
    if row.billable == "no":
        yield "the ledger states that the provider refused it, but the invoice bills it"
        return
    for name, ours, theirs in (
        ("input tokens", row.input_total, line_amounts(line).input),
        ("cached tokens", row.cache_read, line.cache_read),
        ("output tokens", row.output, line.output),
    ):
        if ours is not None and theirs is not None and abs(ours - theirs) > options.tokens:
            yield f"{name}: the invoice has {theirs}, the ledger {ours}"
    if row.usd is None or line.usd is None:
        return
    if abs(row.usd - line.usd) > last_place(line.usd) + options.usd:
        yield f"dollars: the invoice has {line.usd:f}, the ledger {row.usd:f}"


def _verdict(
    side: Side | None, billed: Billed | None, options: InvoiceOptions, agreeing: set[str]
) -> Verdict:
    if side is None:
        return (), ("the ledger has no such call",), "not in the ledger"
    if billed is None:
        return _absent(side, agreeing)
    priced = [measure for measure in MEASURES if getattr(billed, measure) is not None]
    measures = [measure for measure in priced if measure != "usd" or not side.unpriced]
    outcomes = [_measure(measure, side, billed, options, agreeing) for measure in measures]
    explained = [reason for reason, ok in outcomes if ok and reason]
    if side.unpriced and billed.usd is not None:
        explained.append(f"dollars not compared: {side.unpriced} calls have no price")
    reasons = tuple(dict.fromkeys(explained))
    if not measures:
        return reasons, ("nothing could be compared",), "nothing compared"
    return reasons, tuple(reason for reason, ok in outcomes if not ok), "difference"


def _absent(side: Side, agreeing: set[str]) -> Verdict:
    """Return the verdict on a time bucket and model of the ledger that the invoice lacks."""
    if side.known.requests == 0:
        return ("refused calls and calls in flight were not billed",), (), "difference"
    if "output" in agreeing and side.known.requests == side.began_here.requests:
        text = "all its calls ended in the next bucket; all buckets together agree"
        return (text,), (), "difference"
    return (), (f"the invoice has none of {side.known.requests} calls",), "not in the invoice"


def _measure(
    measure: str, side: Side, billed: Billed, options: InvoiceOptions, agreeing: set[str]
) -> tuple[str, bool]:
    theirs: Number = getattr(billed, measure)
    ours: Number = getattr(side.known, measure)
    over = theirs - ours
    slacks: dict[str, Number] = {"usd": billed.rounding + options.usd, "requests": 0}
    slack = slacks.get(measure, options.tokens)
    if abs(over) <= slack:
        return _within(measure, over, billed, options) if over else "", True
    limit = {"requests": side.open, **side.most}.get(measure, side.most["input"])
    if side.open and over >= -slack and (limit is None or over <= limit + slack):
        return side.in_flight(), True
    if measure == "requests" and 0 < over <= side.refused + side.open:
        return f"{side.refused} refused attempts may count as requests", True
    low, high = getattr(side.began_here, measure), getattr(side.ended_here, measure)
    if measure in agreeing and -low - slack <= over <= high + slack:
        crossed = (side.began_here.requests or 0) + (side.ended_here.requests or 0)
        return f"{crossed} calls crossed the end of the bucket; all buckets together agree", True
    sides = f"the invoice has {_figure(theirs)}, the ledger {_figure(ours)}"
    return f"{MEASURES[measure]}: {sides} ({_figure(over, signed=True)})", False


def _within(measure: str, over: Number, billed: Billed, options: InvoiceOptions) -> str:
    if measure != "usd":
        differ = f"{MEASURES[measure]} differ by {_figure(over, signed=True)}"
        return f"{differ}, within {options.tokens}"
    if abs(over) <= billed.rounding:
        return f"rounding of {billed.priced} amounts: at most ${billed.rounding:f}"
    return f"dollars differ by {over:+f}, within {options.usd:f} and rounding"


def _figure(number: Number, *, signed: bool = False) -> str:
    text = f"{number:f}" if isinstance(number, Decimal) else str(number)
    return f"+{text}" if signed and number > 0 else text


ANYONE = InvoiceOptions()
"""Default options: no tolerance; the invoice must bill only one account."""


def reconcile(
    rows: Iterable[Call], invoice: Invoice, options: InvoiceOptions = ANYONE
) -> Reconciliation:
    """Compare ledger rows with an invoice; UserError if it is malformed or its account unclear."""
    bill = read_bill(invoice, options)
    names = Names({model for _, model in bill.buckets}, options.models)
    ledger = Count(bill, names, options, invoice.providers)
    ledger.add_all(rows)
    keys = sorted(bill.buckets.keys() | ledger.sides.keys(), key=lambda key: (*key[0], key))
    inside = [key for key in keys if ledger.is_during(key[0])]
    outside = [key for key in keys if not ledger.is_during(key[0])]
    beside = [f"{span_text(*span)} {model}: before or after the run" for span, model in outside]
    buckets = tuple(ledger.compared(inside))
    faults = [
        *(
            InvoiceFault("repeated request id", id, f"the export bills it {count} times")
            for id, count in bill.repeated.items()
        ),
        *(fault for faults in ledger.faults.values() for fault in _most(faults)),
        *ledger.unmatched_faults(),
        *(
            InvoiceFault(bucket.kind, f"{bucket.bucket} {bucket.model or 'all models'}", message)
            for bucket in buckets
            for message in bucket.wrong
        ),
        *_most(list(ledger.unknown_requests())),
    ]
    return Reconciliation(
        file=Path(invoice.path).name,
        format=invoice.format,
        account=bill.account,
        by="request id" if bill.requests else "bucket and model",
        rows=buckets,
        faults=tuple(faults),
        mapping=tuple((ours, *theirs) for ours, theirs in sorted(names.made.items())),
        foreign=(*bill.foreign, *listed(beside, " buckets before or after the run")),
        credits=bill.credits,
        notes=tuple(ledger.notes(inside)),
        held_against=HELD_AGAINST[invoice.format],
        unknown_columns=unknown_columns(invoice.format, invoice.columns),
    )


def _most(faults: list[InvoiceFault]) -> list[InvoiceFault]:
    if len(faults) <= LISTED:
        return faults
    remainder = len(faults) - LISTED
    return [*faults[:LISTED], InvoiceFault(faults[0].kind, f"{remainder} more", faults[0].said)]


COLUMNS = ("bucket", "model", "requests", "input", "cached", "output", "usd", "said")


def reconciliation_text(audit: Reconciliation) -> str:
    """Return the comparison of ledger and invoice as text: a table, notes and the result."""
    head, *rows = reconciliation_table(audit)
    agree = "The ledger and the invoice agree."
    end = agree if audit.ok else f"{len(audit.faults)} faults."
    notes = reconciliation_notes(audit)
    return "\n".join([HEADING.format(audit), CELLS, "", columns(head, rows), "", *notes, end, ""])


HEADING = "Invoice {0.file} ({0.format}), compared by {0.by}, {0.account}."
CELLS = "Cells: ledger / invoice; one figure if they are equal; -: not stated."


def reconciliation_table(audit: Reconciliation) -> list[tuple[str, ...]]:
    """Return a header, and a table row for each time bucket and model.

    A cell is `ledger / invoice`, or one figure if both are equal.
    """
    return [COLUMNS, *map(_cells, audit.rows)]


def reconciliation_notes(audit: Reconciliation) -> list[str]:
    """Return the lines below the table: model names, foreign invoice lines, notes, faults."""
    sections: tuple[tuple[str, Sequence[str]], ...] = (
        ("model", [f"{ours} = {theirs or 'all'} ({note})" for ours, theirs, note in audit.mapping]),
        ("foreign, left out", audit.foreign),
        ("credit, listed only", audit.credits),
        ("note", audit.notes),
        ("format", [f"{audit.format}, {audit.held_against}"]),
        ("unknown column, not read", audit.unknown_columns),
        ("FAULT", [f"{fault.kind}: {fault.where}: {fault.said}" for fault in audit.faults]),
    )
    return [f"{title}: {line}" for title, lines in sections for line in lines]


def _cells(row: ReconciledBucket) -> tuple[str, ...]:
    message = "; ".join((*row.wrong, *row.explained_by)) or "equal"
    cells: list[str] = []
    for measure in ("requests", "input", "cache_read", "output", "usd"):
        sides = getattr(row.ledger, measure), getattr(row.invoice, measure)
        ours, theirs = ("-" if number is None else _figure(number) for number in sides)
        cells.append(ours if sides[0] == sides[1] else f"{ours} / {theirs}")
    mark = "FAULT " if row.wrong else ""
    return (row.bucket, row.model or "all", *cells, mark + message)
