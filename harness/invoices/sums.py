"""Running sums of both sides: what the ledger counted in a bucket, and what it was billed.

One object per bucket and model, however many rows. Calls of which nobody knows what they cost are
summed apart, as bounds: they can explain a difference, and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from harness.invoices.lines import InvoiceLine
from harness.invoices.result import Amounts
from harness.ledger.row import LedgerRow

TOKENS = ("input", "cache_read", "cache_write", "output")
CENT_HALF = Decimal("0.005")


@dataclass(slots=True)
class Counted:
    """Tokens, dollars and calls that are known."""

    requests: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    usd: Decimal = Decimal(0)

    def add(self, row: LedgerRow) -> None:
        """Add a call whose tokens are known."""
        self.requests += 1
        self.input += row.input_total or 0
        self.cache_read += row.cache_read or 0
        self.cache_write += row.cache_write or 0
        self.output += row.output or 0
        self.usd += row.usd or Decimal(0)


@dataclass(slots=True)
class Open:
    """Calls without a known bill: what they can have come to at most; None is no bound."""

    calls: int = 0
    silent: int = 0
    """Those of them that were answered, without a count of tokens."""
    input: int | None = 0
    output: int | None = 0
    usd: Decimal | None = Decimal(0)

    def add(self, row: LedgerRow) -> None:
        """Add a call in flight, or one whose provider counted no tokens."""
        self.calls += 1
        self.silent += row.billable == "yes"
        self.input = _plus(self.input, row.prompt_bytes)
        self.output = _plus(self.output, row.max_tokens)
        high = row.usd_high
        self.usd = None if self.usd is None or high is None else self.usd + high

    def most(self, measure: str) -> int | Decimal | None:
        """Return the most that these calls add to a measure."""
        if measure == "requests":
            return self.calls
        if measure == "usd":
            return self.usd
        return self.output if measure == "output" else self.input


def _plus(sum: int | None, more: int | None) -> int | None:
    return None if sum is None or more is None else sum + more


@dataclass(slots=True)
class Side:
    """What the ledger has of one bucket and model."""

    known: Counted = field(default_factory=Counted)
    open: Open = field(default_factory=Open)
    unpriced: int = 0
    refused: int = 0
    """Attempts that the provider refused: no tokens, but it may count them as requests."""
    began_here: Counted = field(default_factory=Counted)
    """Calls that ended in a later bucket: a provider may count them there."""
    ended_here: Counted = field(default_factory=Counted)

    def add(self, row: LedgerRow) -> None:
        """Add one attempt."""
        if row.billable == "no":
            self.refused += 1
        elif row.billable == "unknown" or row.input_total is None or row.output is None:
            self.open.add(row)
        else:
            self.known.add(row)
            self.unpriced += row.usd is None

    @property
    def amounts(self) -> Amounts:
        """What is known of it; dollars are None when a call has no price."""
        known = self.known
        usd = None if self.unpriced else known.usd
        return Amounts(
            known.requests, known.input, known.cache_read, known.cache_write, known.output, usd
        )


@dataclass(slots=True)
class Billed:
    """What an invoice has of one bucket and model: the sum of the lines that say it."""

    requests: int | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    usd: Decimal | None = None
    place: Decimal = CENT_HALF
    """Half a unit of the last place that its amounts have: zeros at an end are not printed."""
    priced: int = 0
    """How many amounts that are."""
    lines: int = 0

    def add(self, line: InvoiceLine) -> None:
        """Add one line."""
        self.lines += 1
        self.requests = _said(self.requests, line.requests)
        self.input = _said(self.input, prompt_of(line))
        self.cache_read = _said(self.cache_read, line.cache_read)
        self.cache_write = _said(self.cache_write, line.cache_write)
        self.output = _said(self.output, line.output)
        if line.usd is not None:
            self.usd = (self.usd or Decimal(0)) + line.usd
            self.place = min(self.place, last_place(line.usd))
            self.priced += 1

    def join(self, other: "Billed") -> None:
        """Add the lines of another account."""
        self.lines += other.lines
        for measure in ("requests", *TOKENS):
            setattr(self, measure, _said(getattr(self, measure), getattr(other, measure)))
        if other.usd is not None:
            self.usd = (self.usd or Decimal(0)) + other.usd
        self.place = min(self.place, other.place)
        self.priced += other.priced

    @property
    def rounding(self) -> Decimal:
        """How far its amounts may be off together."""
        return self.place * self.priced

    @property
    def amounts(self) -> Amounts:
        """The sums, as a record."""
        return Amounts(
            self.requests, self.input, self.cache_read, self.cache_write, self.output, self.usd
        )

    def said(self) -> Iterator[str]:
        """Yield the measures that the invoice has."""
        for measure in ("requests", *TOKENS, "usd"):
            if getattr(self, measure) is not None:
                yield measure


def prompt_of(line: InvoiceLine) -> int | None:
    """Return a line's prompt, cached or not."""
    parts = (line.input_uncached, line.cache_read, line.cache_write)
    said = [part for part in parts if part is not None]
    return sum(said) if said else None


def last_place(amount: Decimal) -> Decimal:
    """Return half a unit of an amount's last printed place, half a cent at most.

    >>> last_place(Decimal("0.0756"))
    Decimal('0.00005')
    """
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int):
        return CENT_HALF
    return min(CENT_HALF, Decimal(5).scaleb(exponent - 1))


def _said(sum: int | None, more: int | None) -> int | None:
    return sum if more is None else (sum or 0) + more
