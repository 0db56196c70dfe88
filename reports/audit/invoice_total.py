"""Adds up an invoice for the run's account and matches its models with the ledger's."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

from podium.harness.errors import UserError
from podium.reports.audit.invoices import HOUR, Invoice, InvoiceLine, Span, span_text


@dataclass(frozen=True, slots=True)
class InvoiceOptions:
    """Options for comparing an invoice with the ledger: lines that count, and tolerances."""

    project: str | None = None
    """Compare only lines of this project or workspace; other lines are listed as foreign."""
    key: str | None = None
    """Compare only lines of this API key (its id or name in the export)."""
    whole_account: bool = False
    """True if only this run used the account: then all lines of the invoice are compared."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model in the ledger -> name in the invoice, for models that podium cannot match by name."""
    tokens: int = 0
    """Largest tolerated difference in tokens, per time bucket, model and kind of token."""
    usd: Decimal = Decimal(0)
    """Largest tolerated difference in dollars, on top of the rounding of the invoice's amounts."""


MEASURES = {
    "requests": "requests",
    "input": "input tokens",
    "cache_read": "cached tokens",
    "cache_write": "tokens written to the cache",
    "output": "output tokens",
    "usd": "dollars",
}
CENT_HALF = Decimal("0.005")


@dataclass(slots=True)
class Amounts:
    """Numbers of calls and tokens (`input` includes cached tokens), and dollars; None: unknown."""

    requests: int | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    usd: Decimal | None = None

    def add(self, amounts: "Amounts") -> None:
        """Add those numbers in `amounts` that are known."""
        for measure in MEASURES:
            value = getattr(amounts, measure)
            if value is not None:
                setattr(self, measure, (getattr(self, measure) or 0) + value)


@dataclass(slots=True)
class Billed(Amounts):
    """An invoice's amounts for one time bucket and model, added up over its lines."""

    place: Decimal = CENT_HALF
    """Maximum rounding error of one line's dollars: half a unit of the last decimal place."""
    priced: int = 0

    def join(self, billed: "Billed") -> None:
        """Add the amounts of other lines of the invoice."""
        self.add(billed)
        self.place = min(self.place, billed.place)
        self.priced += billed.priced

    @property
    def rounding(self) -> Decimal:
        """The maximum rounding error, in dollars, of the sum over all lines."""
        return self.place * self.priced


def line_amounts(line: InvoiceLine) -> Billed:
    """Return the calls, tokens and dollars in one line of an invoice."""
    inputs = (line.input_uncached, line.cache_read, line.cache_write)
    counts = [count for count in inputs if count is not None]
    tokens = (sum(counts) if counts else None, line.cache_read, line.cache_write, line.output)
    if line.usd is None:
        return Billed(line.requests, *tokens)
    return Billed(line.requests, *tokens, line.usd, last_place(line.usd), priced=1)


def last_place(amount: Decimal) -> Decimal:
    """Return half a unit of the last printed place of an amount in dollars, at most half a cent.

    >>> last_place(Decimal("0.0756"))
    Decimal('0.00005')
    """
    exponent = amount.as_tuple().exponent
    return min(CENT_HALF, Decimal(5).scaleb(int(exponent) - 1))


LISTED = 20

Key = tuple[Span, str]
Account = tuple[str | None, str | None]
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def listed(sentences: list[str], suffix: str = "") -> tuple[str, ...]:
    """Return the first `LISTED` sentences and, if there are more, a line that counts the rest."""
    remainder = [f"and {len(sentences) - LISTED} more{suffix}"] if sentences[LISTED:] else []
    return (*sentences[:LISTED], *remainder)


@dataclass(slots=True)
class Bill:
    """The amounts that an invoice bills to one account, or to all accounts of the run."""

    buckets: defaultdict[Key, Billed] = field(
        default_factory=lambda: defaultdict[Key, Billed](Billed)
    )
    requests: dict[str, InvoiceLine] = field(default_factory=dict[str, InvoiceLine])
    """Request id -> the invoice's line; `buckets` includes the amounts of these lines, too."""
    nameless: int = 0
    """Number of the invoice's lines without a request id."""
    account: str = ""
    repeated: dict[str, int] = field(default_factory=dict[str, int])
    """Request id that several lines of the invoice have -> number of these lines."""
    foreign: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()

    def add(self, line: InvoiceLine) -> None:
        """Add the amounts of one line of the invoice."""
        self.buckets[(line.start, line.end), line.model or line.item].join(line_amounts(line))
        if line.request_id:
            self.requests.setdefault(line.request_id, line)
        else:
            self.nameless += 1

    def join(self, bill: "Bill") -> None:
        """Add the amounts of another account in the same invoice."""
        for key, billed in bill.buckets.items():
            self.buckets[key].join(billed)
        self.requests.update(bill.requests)
        self.nameless += bill.nameless

    def layers(self) -> list[Callable[[datetime], Span]]:
        """Return, per width of time buckets (e.g. 1 h), a function from a time to its bucket."""
        starts: dict[timedelta, set[datetime]] = defaultdict(set)
        for (start, end), _ in self.buckets:
            starts[end - start].add(start)
        return [_layer(width, sorted(starts[width])) for width in sorted(starts) or [HOUR]]


def _layer(width: timedelta, starts: list[datetime]) -> Callable[[datetime], Span]:
    def span(time: datetime) -> Span:
        index = bisect_right(starts, time) - 1
        if index >= 0 and time < starts[index] + width:
            return starts[index], starts[index] + width
        start = EPOCH + (time - EPOCH) // width * width
        return start, start + width

    return span


def read_bill(invoice: Invoice, options: InvoiceOptions) -> Bill:
    """Add up an invoice for the run's account; UserError if malformed or the account is unclear."""
    bills: dict[Account, Bill] = defaultdict(Bill)
    credits: dict[str, Decimal] = defaultdict(Decimal)
    mine = Bill()
    for line in invoice.lines():
        if line.credit:
            name = f"{span_text(line.start, line.end)} {line.item or line.model or 'credit'}"
            credits[name] += line.usd or 0
            continue
        bill = bills[line.project, line.key]
        if line.request_id and line.request_id in bill.requests:
            mine.repeated[line.request_id] = mine.repeated.get(line.request_id, 1) + 1
        bill.add(line)
    ours, mine.account = _chosen(bills.keys(), options, invoice.path)
    for account in ours:
        mine.join(bills[account])
    mine.credits = listed([f"{name}: ${usd:f}" for name, usd in sorted(credits.items())])
    foreign = sorted(
        (item for item in bills.items() if item[0] not in ours), key=lambda item: str(item[0])
    )
    mine.foreign = tuple(_foreign(*account, bill) for account, bill in foreign)
    return mine


def _foreign(project: str | None, key: str | None, bill: Bill) -> str:
    total = Billed()
    for billed in bill.buckets.values():
        total.join(billed)
    counts = [count for count in (total.input, total.output) if count is not None]
    tokens = f", {sum(counts)} tokens" if counts else ""
    usd = "" if total.usd is None else f", ${total.usd:f}"
    whose = f"project {project or 'none'}, key {key or 'none'}"
    return f"{whose}: {len(bill.buckets)} buckets{tokens}{usd}"


def _chosen(
    accounts: Collection[Account], options: InvoiceOptions, path: Path
) -> tuple[Collection[Account], str]:
    """Return which of the invoice's accounts are the run's, and a title; UserError if unclear."""
    projects, keys = (sorted({pair[i] for pair in accounts if pair[i]}, key=str) for i in (0, 1))
    for name, names, flag in (
        (options.project, projects, "--project"),
        (options.key, keys, "--key"),
    ):
        if name and name not in names:
            has = ", ".join(map(str, names[:8])) or "none"
            raise UserError(
                f"{path} has no {flag} {name!r}; it has: {has}. Correct {flag}, or leave it out."
            )
    if options.project or options.key:
        account = options.project, options.key
        fits = [
            (project, key)
            for project, key in accounts
            if options.project in (None, project) and options.key in (None, key)
        ]
        return fits, _title(*account)
    if options.whole_account:
        return accounts, "the whole account, used by this run alone (--whole-account)"
    if not projects and not keys:
        raise UserError(
            f"{path} names no project and no key, so it does not show whose calls it bills. "
            "Export it grouped by project or key, or give --whole-account if only this run used "
            "the account."
        )
    if len(accounts) > 1:
        raise UserError(
            f"{path} has several projects or keys ({', '.join(map(str, [*projects, *keys][:8]))}): "
            "name the run's own with --project or --key."
        )
    return accounts, f"{_title(*next(iter(accounts)))}, the only one in the export"


def _title(project: str | None, key: str | None) -> str:
    pairs = (("project", project), ("key", key))
    return ", ".join(f"{name} {value}" for name, value in pairs if value)


DATE = re.compile(r"(-20\d{2}-?[01]\d-?[0-3]\d|-latest|@20\d{6}|:[a-z]+)$")
"""End of a model's id: date (`-2024-08-06`, `@20250514`), `-latest` or OpenRouter's variant."""


def undated(name: str) -> str:
    """Return a model's name without provider, date and case.

    >>> undated("openai/gpt-4o-2024-08-06"), undated("Gemini 2.5 Flash")
    ('gpt-4o', 'gemini-2.5-flash')
    """
    return DATE.sub("", name.rsplit("/", 1)[-1].lower().replace(" ", "-"))


class Names:
    """Matches models of the ledger with the model names of one invoice."""

    def __init__(self, models: Collection[str], names: Mapping[str, str]) -> None:
        """Take the invoice's `models`, and the user's matches `names`: in ledger -> in invoice."""
        self.made: dict[str, tuple[str, str]] = {}
        """Model in the ledger -> its name in the invoice, and why both match."""
        self.unmatched: dict[str, str] = {}
        """Model in the ledger -> why the invoice has no match."""
        self.match = cache(self._match)
        self._models, self._said = set(models), names

    def _match(self, model: str, served: str | None) -> str | None:
        """Return the invoice's name for a call's model; None if no name or several names match."""
        label = f"{model} (served as {served})" if served and served != model else model
        matches = [match for match in self._candidates(model, served) if match[0] in self._models]
        if self._models == {""}:
            matches = [("", "the export does not distinguish models")]
        close = self._close(served or model) or self._close(model)
        if not matches and len(close) == 1:
            matches = [(close[0], "same name but for provider, date or case")]
        if matches:
            self.made[label] = matches[0]
            return matches[0][0]
        several = (
            f"the invoice has several models of that name ({', '.join(close)}): choose one with "
        )
        several += f"--model {model}=NAME"
        self.unmatched[label] = several if close else "the invoice has no such model"
        return None

    def _close(self, name: str) -> list[str]:
        return [model for model in sorted(self._models) if undated(model) == undated(name)]

    def _candidates(self, model: str, served: str | None) -> Iterator[tuple[str, str]]:
        for name in (model, served):
            if name and name in self._said:
                yield self._said[name], "as the user states"
        if served:
            yield served, "as served"
            yield served.rsplit("/", 1)[-1], "as served, without provider"
        yield model, "same name"
        segments = model.split("/")
        for start in range(1, len(segments)):
            yield "/".join(segments[start:]), "same name without provider"
