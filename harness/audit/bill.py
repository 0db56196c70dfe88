"""An invoice added up, for the account that is the run's, and what a comparison says.

A run can only be compared where nobody else asked: a project or key of its own is named, or it is
the only one in the export. Requests are kept one by one only where lines have ids.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from harness.audit.invoices import HOUR, Invoice, InvoiceLine, span_text
from harness.errors import UserError
from harness.ledger.call import Call

InvoiceFaultKind = Literal[
    "difference",
    "not in the ledger",
    "not in the invoice",
    "request differs",
    "repeated request id",
    "unmatched model",
    "nothing compared",
]


@dataclass(frozen=True, slots=True)
class InvoiceOptions:
    """Whose traffic is compared, and how closely."""

    project: str | None = None
    """Only lines of this project or workspace; others are foreign traffic."""
    key: str | None = None
    """Only lines of this API key, by the id or name that the export gives."""
    whole_account: bool = False
    """True when the account did nothing but this run, and the export names no project or key."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model of the ledger -> model of the invoice, where their names do not say it."""
    tokens: int = 0
    """Largest difference that is none, per bucket, model and kind of token."""
    usd: Decimal = Decimal(0)
    """The same in dollars, beside the rounding of the invoice's own amounts."""


NOTHING = (0, 0, 0, 0, 0, Decimal(0))
MEASURES = {
    "requests": "requests",
    "input": "input tokens",
    "cache_read": "cached tokens",
    "cache_write": "tokens written to the cache",
    "output": "output tokens",
    "usd": "dollars",
}


@dataclass(slots=True)
class Amounts:
    """Calls, tokens (input: the prompt, cached or not) and dollars; None where nobody says."""

    requests: int | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    usd: Decimal | None = None

    def add(self, more: "Amounts") -> None:
        """Add what is said."""
        for measure in MEASURES:
            value = getattr(more, measure)
            if value is not None:
                setattr(self, measure, (getattr(self, measure) or 0) + value)


def call_amounts(row: Call) -> Amounts:
    """Return what a call whose tokens are known comes to."""
    tokens = (row.input_total or 0, row.cache_read or 0, row.cache_write or 0, row.output or 0)
    return Amounts(1, *tokens, row.usd or Decimal(0))


@dataclass(frozen=True, slots=True)
class ReconciledBucket:
    """One bucket and model, both sides."""

    bucket: str
    model: str
    ledger: Amounts
    invoice: Amounts
    explained_by: tuple[str, ...]
    """Why the sides may differ, each with its range; empty when they are equal."""
    wrong: tuple[str, ...]
    kind: InvoiceFaultKind

    @property
    def ok(self) -> bool:
        """Say whether every difference is explained."""
        return not self.wrong


@dataclass(frozen=True, slots=True)
class InvoiceFault:
    """One thing that does not add up."""

    kind: InvoiceFaultKind
    where: str
    said: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A ledger held against one invoice."""

    file: str
    format: str
    account: str
    by: Literal["request id", "bucket and model"]
    rows: tuple[ReconciledBucket, ...]
    faults: tuple[InvoiceFault, ...]
    mapping: tuple[tuple[str, str, str], ...]
    """Model of the ledger, model of the invoice, why they are one."""
    foreign: tuple[str, ...]
    """Lines of other projects, keys and times: left out."""
    credits: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Say whether the ledger and the invoice agree, or every difference is explained."""
        return not self.faults


CENT_HALF = Decimal("0.005")


@dataclass(slots=True)
class Side:
    """What the ledger has of one bucket and model."""

    known: Amounts = field(default_factory=lambda: Amounts(*NOTHING))
    unpriced: int = 0
    refused: int = 0
    """Attempts that the provider refused: no tokens, but it may count them as requests."""
    open: int = 0
    """Calls in flight, and calls whose provider counted no tokens: without a known bill."""
    silent: int = 0
    """Those of them that were answered."""
    most: dict[str, int | Decimal | None] = field(
        default_factory=lambda: {"input": 0, "output": 0, "usd": Decimal(0)}
    )
    """What the open calls can have come to; None is no bound."""
    began_here: Amounts = field(default_factory=lambda: Amounts(*NOTHING))
    """Calls that ended in a later bucket: a provider may count them there."""
    ended_here: Amounts = field(default_factory=lambda: Amounts(*NOTHING))

    def add(self, row: Call) -> None:
        """Add one attempt."""
        if row.billable == "no":
            self.refused += 1
        elif row.billable == "yes" and row.input_total is not None and row.output is not None:
            self.known.add(call_amounts(row))
            self.unpriced += row.usd is None
        else:
            self.open += 1
            self.silent += row.billable == "yes"
            bounds = {"input": row.prompt_bytes, "output": row.max_tokens, "usd": row.usd_high}
            for measure, bound in bounds.items():
                most = self.most[measure]
                self.most[measure] = None if most is None or bound is None else most + bound

    @property
    def amounts(self) -> Amounts:
        """What is known of it; dollars are None when a call has no price."""
        return replace(self.known, usd=None if self.unpriced else self.known.usd)


@dataclass(slots=True)
class Billed(Amounts):
    """What an invoice has of one bucket and model: the sum of the lines that say it."""

    place: Decimal = CENT_HALF
    """Half a unit of the last place that its amounts have: zeros at an end are not printed."""
    priced: int = 0

    def join(self, other: "Billed") -> None:
        """Add other lines."""
        self.add(other)
        self.place = min(self.place, other.place)
        self.priced += other.priced

    @property
    def rounding(self) -> Decimal:
        """How far its amounts may be off together."""
        return self.place * self.priced


def line_amounts(line: InvoiceLine) -> Billed:
    """Return what a line of an invoice says."""
    parts = (line.input_uncached, line.cache_read, line.cache_write)
    said = [part for part in parts if part is not None]
    tokens = (sum(said) if said else None, line.cache_read, line.cache_write, line.output)
    if line.usd is None:
        return Billed(line.requests, *tokens)
    return Billed(line.requests, *tokens, line.usd, last_place(line.usd), priced=1)


def last_place(amount: Decimal) -> Decimal:
    """Return half a unit of an amount's last printed place, half a cent at most.

    >>> last_place(Decimal("0.0756"))
    Decimal('0.00005')
    """
    exponent = amount.as_tuple().exponent
    return min(CENT_HALF, Decimal(5).scaleb(int(exponent) - 1))


Account = tuple[str | None, str | None]


def chosen(
    accounts: Collection[Account], options: InvoiceOptions, path: Path
) -> tuple[Collection[Account], str]:
    """Return which accounts are the run's, and their name; UserError when that is not clear."""
    projects = sorted({project for project, _ in accounts if project})
    keys = sorted({key for _, key in accounts if key})
    _refuse_absent(options.project, projects, "--project", path)
    _refuse_absent(options.key, keys, "--key", path)
    if options.project or options.key:
        wanted = options.project, options.key
        pairs = ((one, zip(wanted, one, strict=True)) for one in accounts)
        fits = [one for one, pair in pairs if all(said in (None, has) for said, has in pair)]
        return fits, _title(*wanted)
    if options.whole_account:
        return accounts, "the whole account, said to be this run's alone"
    if not projects and not keys:
        raise UserError(
            f"{path} names no project and no key, so nobody can tell whose calls it bills: export "
            "it grouped by project or key, or say --whole-account if only this run used it."
        )
    if len(accounts) > 1:
        listed = ", ".join([*projects, *keys][:8])
        raise UserError(
            f"{path} has several projects or keys ({listed}): name the run's own with --project "
            "or --key."
        )
    return accounts, f"{_title(*next(iter(accounts)))}, the only one in the export"


def _title(project: str | None, key: str | None) -> str:
    named = (("project", project), ("key", key))
    return ", ".join(f"{name} {value}" for name, value in named if value)


def _refuse_absent(named: str | None, known: list[str], flag: str, path: Path) -> None:
    if named and named not in known:
        listed = ", ".join(known[:8]) or "none"
        raise UserError(f"{path} has no {flag} {named!r}; it has: {listed}.")


LISTED = 20

Span = tuple[datetime, datetime]
Key = tuple[Span, str]
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(slots=True)
class Bill:
    """What an invoice bills the run's account."""

    account: str
    buckets: dict[Key, Billed]
    requests: dict[str, InvoiceLine]
    """Lines by request id; they are in `buckets` as well."""
    repeated: tuple[InvoiceFault, ...]
    foreign: tuple[str, ...]
    credits: tuple[str, ...]
    nameless: int = 0
    """Lines of an export with ids that have none."""
    layers: tuple["BucketLayer", ...] = ()

    @property
    def models(self) -> frozenset[str]:
        """The models it names."""
        return frozenset(model for _, model in self.buckets)


@dataclass(frozen=True, slots=True)
class BucketLayer:
    """Buckets of one width: an export of days beside one of hours has two layers."""

    width: timedelta
    starts: tuple[datetime, ...]

    def span(self, time: datetime) -> Span:
        """Return the bucket of a time; one that the export lacks is where it would be."""
        at = bisect_right(self.starts, time) - 1
        if at >= 0 and time < self.starts[at] + self.width:
            return self.starts[at], self.starts[at] + self.width
        start = EPOCH + (time - EPOCH) // self.width * self.width
        return start, start + self.width


@dataclass(slots=True)
class _Pile:
    buckets: defaultdict[Key, Billed] = field(
        default_factory=lambda: defaultdict[Key, Billed](Billed)
    )
    requests: dict[str, InvoiceLine] = field(default_factory=dict[str, InvoiceLine])
    nameless: int = 0

    def add(self, line: InvoiceLine) -> None:
        self.buckets[(line.start, line.end), line.model or line.item].join(line_amounts(line))
        if line.request_id:
            self.requests.setdefault(line.request_id, line)
        else:
            self.nameless += 1

    def join(self, other: "_Pile") -> None:
        for key, billed in other.buckets.items():
            self.buckets[key].join(billed)
        self.requests.update(other.requests)
        self.nameless += other.nameless


def read_bill(invoice: Invoice, options: InvoiceOptions) -> Bill:
    """Add up an invoice; UserError when it is malformed or not clearly the run's."""
    piles: dict[Account, _Pile] = defaultdict(_Pile)
    credits: dict[str, list[Decimal]] = defaultdict(list)
    repeated: dict[str, int] = {}
    for line in invoice.lines():
        if line.credit:
            said = f"{span_text(line.start, line.end)} {line.item or line.model or 'credit'}"
            credits[said].append(line.usd or Decimal(0))
            continue
        pile = piles[line.project, line.key]
        if line.request_id and line.request_id in pile.requests:
            repeated[line.request_id] = repeated.get(line.request_id, 1) + 1
        pile.add(line)
    ours, title = chosen(piles.keys(), options, invoice.path)
    mine = _Pile()
    for account in ours:
        mine.join(piles[account])
    return Bill(
        account=title,
        buckets=dict(mine.buckets),
        requests=mine.requests,
        repeated=tuple(
            InvoiceFault("repeated request id", one, f"the export bills it {count} times")
            for one, count in repeated.items()
        ),
        foreign=_foreign({one: pile for one, pile in piles.items() if one not in ours}),
        credits=_credits(credits),
        nameless=mine.nameless,
        layers=_layers(mine.buckets),
    )


def _layers(buckets: dict[Key, Billed]) -> tuple[BucketLayer, ...]:
    starts: dict[timedelta, set[datetime]] = defaultdict(set)
    for (start, end), _ in buckets:
        starts[end - start].add(start)
    found = (BucketLayer(width, tuple(sorted(begun))) for width, begun in sorted(starts.items()))
    return tuple(found) or (BucketLayer(HOUR, ()),)


def _foreign(piles: dict[Account, _Pile]) -> tuple[str, ...]:
    said: list[str] = []
    for (project, key), pile in sorted(piles.items(), key=lambda one: str(one[0])):
        whole = Billed()
        for billed in pile.buckets.values():
            whole.join(billed)
        counts = [count for count in (whole.input, whole.output) if count is not None]
        tokens = f", {sum(counts)} tokens" if counts else ""
        usd = "" if whole.usd is None else f", ${whole.usd:f}"
        whose = f"project {project or 'none'}, key {key or 'none'}"
        said.append(f"{whose}: {len(pile.buckets)} buckets{tokens}{usd}")
    return tuple(said)


def _credits(found: dict[str, list[Decimal]]) -> tuple[str, ...]:
    said = [f"{name}: ${sum(amounts, Decimal(0)):f}" for name, amounts in sorted(found.items())]
    more = [f"and {len(said) - LISTED} more"] if said[LISTED:] else []
    return (*said[:LISTED], *more)
