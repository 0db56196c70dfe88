"""An invoice added up: by bucket and model where it is an aggregate, by request where it is not.

Read in one pass, whatever its size; requests are kept one by one only where lines have ids. Which
account is the run's is known when all have been seen, so each is added up apart.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from harness.invoices.accounts import Account, chosen
from harness.invoices.lines import HOUR, Invoice, InvoiceLine, span_text
from harness.invoices.result import Fault, Options
from harness.invoices.sums import Billed

LISTED = 20
"""How many of one kind are listed by name; the rest are counted."""

Span = tuple[datetime, datetime]
Key = tuple[Span, str]
"""Bucket and model."""
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(slots=True)
class Bill:
    """What an invoice bills the run's account."""

    account: str
    buckets: dict[Key, Billed]
    requests: dict[str, InvoiceLine]
    """Lines by request id; they are in `buckets` as well."""
    repeated: tuple[Fault, ...]
    foreign: tuple[str, ...]
    credits: tuple[str, ...]
    nameless: int = 0
    """Lines of an export with ids that have none."""
    layers: tuple["Layer", ...] = ()

    @property
    def models(self) -> frozenset[str]:
        """The models it names."""
        return frozenset(model for _, model in self.buckets)


@dataclass(frozen=True, slots=True)
class Layer:
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
    """The lines of one account."""

    buckets: dict[Key, Billed] = field(default_factory=dict[Key, Billed])
    requests: dict[str, InvoiceLine] = field(default_factory=dict[str, InvoiceLine])
    nameless: int = 0


def read_bill(invoice: Invoice, options: Options) -> Bill:
    """Add up an invoice; UserError when it is malformed or not clearly the run's."""
    piles: dict[Account, _Pile] = defaultdict(_Pile)
    credits: dict[str, list[Decimal]] = defaultdict(list)
    repeated: dict[str, int] = {}
    for line in invoice.lines():
        account = (line.project, line.key)
        if line.credit:
            said = f"{span_text(line.start, line.end)} {line.item or line.model or 'credit'}"
            credits[said].append(line.usd or Decimal(0))
        elif line.request_id and line.request_id in piles[account].requests:
            repeated[line.request_id] = repeated.get(line.request_id, 1) + 1
            _add(piles[account], line)
        else:
            _add(piles[account], line)
    ours, title = chosen(piles.keys(), options, invoice.path)
    mine = _joined([pile for account, pile in piles.items() if ours(account)])
    return Bill(
        account=title,
        buckets=mine.buckets,
        requests=mine.requests,
        repeated=tuple(
            Fault("repeated request id", one, f"the export bills it {count} times")
            for one, count in repeated.items()
        ),
        foreign=_foreign({one: pile for one, pile in piles.items() if not ours(one)}),
        credits=_credits(credits),
        nameless=mine.nameless,
        layers=_layers(mine.buckets),
    )


def _add(pile: _Pile, line: InvoiceLine) -> None:
    key = ((line.start, line.end), line.model or line.item)
    if key not in pile.buckets:
        pile.buckets[key] = Billed()
    pile.buckets[key].add(line)
    if line.request_id:
        pile.requests.setdefault(line.request_id, line)
    else:
        pile.nameless += 1


def _joined(piles: list[_Pile]) -> _Pile:
    """Return one pile; accounts that share a bucket and model are added up."""
    whole = piles[0] if piles else _Pile()
    for pile in piles[1:]:
        for key, billed in pile.buckets.items():
            kept = whole.buckets.setdefault(key, Billed())
            kept.join(billed)
        whole.requests.update(pile.requests)
        whole.nameless += pile.nameless
    return whole


def _layers(buckets: dict[Key, Billed]) -> tuple[Layer, ...]:
    starts: dict[timedelta, set[datetime]] = defaultdict(set)
    for (start, end), _ in buckets:
        starts[end - start].add(start)
    found = (Layer(width, tuple(sorted(begun))) for width, begun in sorted(starts.items()))
    return tuple(found) or (Layer(HOUR, ()),)


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
