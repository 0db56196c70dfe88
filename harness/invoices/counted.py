"""The ledger's rows added up as an invoice is: one pass, one sum per bucket and model.

Left out and counted: what leaves no purse, and what another provider bills.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from harness.invoices.bill import Bill, Key
from harness.invoices.lines import InvoiceLine, moment
from harness.invoices.names import Names
from harness.invoices.result import Fault, Kind, Options
from harness.invoices.sums import Side, last_place, prompt_of
from harness.ledger.row import LedgerRow

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
    options: Options
    providers: tuple[str, ...]
    sides: dict[Key, Side] = field(default_factory=dict[Key, Side])
    left_out: Counter[str] = field(default_factory=Counter[str])
    unmatched: Counter[str] = field(default_factory=Counter[str])
    faults: dict[Kind, list[Fault]] = field(
        default_factory=lambda: defaultdict[Kind, list[Fault]](list)
    )
    seen: set[str] = field(default_factory=set[str])
    resolved: int = 0
    """Calls in flight that the invoice has by their id."""
    first: datetime | None = None
    last: datetime | None = None

    def add(self, row: LedgerRow) -> None:
        """Add one row, or count it as left out."""
        if row.label != "live":
            self.left_out["label"] += 1
        elif row.cache == "read":
            self.left_out["cache"] += 1
        else:
            self._live(row)

    def _live(self, row: LedgerRow) -> None:
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
            side = self._side((span, model))
            side.add(row)
            later = layer.span(start + timedelta(seconds=row.latency_s or 0))
            if later != span and row.billable == "yes" and row.output is not None:
                side.began_here.add(row)
                self._side((later, model)).ended_here.add(row)
        if self.bill.requests and row.request_id and row.billable == "yes":
            self._fault(
                "not in the invoice", row.request_id, f"a call of {row.model}, {row.started}"
            )

    def _by_id(self, row: LedgerRow, line: InvoiceLine) -> None:
        """Compare a call with the line that has its id."""
        self._noted(row)
        request = line.request_id or ""
        if request in self.seen:
            self._fault("repeated request id", request, "the ledger has it more than once")
            return
        self.seen.add(request)
        side = self._side(((line.start, line.end), line.model or line.item))
        if row.billable == "unknown":
            self.resolved += 1
            _take(side, line)
            return
        side.add(row)
        if said := _differences(row, line, self.options):
            self._fault("request differs", request, said)

    def _unmatched(self, row: LedgerRow) -> None:
        if self.providers and row.model.partition("/")[0] not in self.providers:
            self.left_out["provider"] += 1
        elif row.billable != "no":
            self.unmatched[row.model] += 1

    def _noted(self, row: LedgerRow) -> datetime:
        start = moment(row.started)
        self.first = start if self.first is None else min(self.first, start)
        end = start + timedelta(seconds=row.latency_s or 0)
        self.last = end if self.last is None else max(self.last, end)
        return start

    def _side(self, key: Key) -> Side:
        found = self.sides.get(key)
        if found is None:
            found = self.sides[key] = Side()
        return found

    def _fault(self, kind: Kind, where: str, said: str) -> None:
        self.faults[kind].append(Fault(kind, where, said))


def _take(side: Side, line: InvoiceLine) -> None:
    """Count a call in flight as the invoice has it: that is who knows."""
    side.known.requests += 1
    side.known.input += prompt_of(line) or 0
    side.known.cache_read += line.cache_read or 0
    side.known.cache_write += line.cache_write or 0
    side.known.output += line.output or 0
    if line.usd is not None:
        side.known.usd += line.usd


def _differences(row: LedgerRow, line: InvoiceLine, options: Options) -> str:
    """Return what one request's two records disagree on; empty when they agree."""
    if row.billable == "no":
        return "the ledger says that the provider refused it, the invoice bills it"
    pairs = (
        ("input tokens", row.input_total, prompt_of(line)),
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
