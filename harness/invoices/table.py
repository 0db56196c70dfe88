"""A reconciliation as text: what was compared, both sides, every difference and its name."""

from collections.abc import Iterator

from harness.invoices.result import Amounts, Reconciled, Reconciliation
from harness.listing import columns

COLUMNS = (
    "bucket",
    "model",
    "requests",
    "input",
    "cached",
    "output",
    "usd",
    "said",
)


def as_text(found: Reconciliation) -> str:
    """Return the table of a reconciliation; each cell is ledger / invoice, one figure when equal.

    A dash is "not said".
    """
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Reconciliation) -> Iterator[str]:
    yield f"Invoice {found.file} ({found.format}), compared by {found.by}, {found.account}."
    yield "Cells: ledger / invoice; one figure where they are equal; - is not said."
    yield ""
    yield columns(COLUMNS, [_cells(row) for row in found.rows])
    yield ""
    for title, said in (
        ("model", [f"{ours} = {theirs or 'all'} ({why})" for ours, theirs, why in found.mapping]),
        ("foreign, left out", found.foreign),
        ("credit, listed only", found.credits),
        ("note", found.notes),
        ("FAULT", [f"{one.kind}: {one.where}: {one.said}" for one in found.faults]),
    ):
        yield from (f"{title}: {line}" for line in said)
    yield "The ledger and the invoice agree." if found.ok else f"{len(found.faults)} faults."


def _cells(row: Reconciled) -> tuple[str, ...]:
    said = "; ".join((*row.wrong, *row.explained_by)) or "equal"
    numbers = (
        _pair(row.ledger, row.invoice, measure)
        for measure in ("requests", "input", "cache_read", "output", "usd")
    )
    mark = "" if row.ok else "FAULT "
    return (row.bucket, row.model or "all", *numbers, mark + said)


def _pair(ledger: Amounts, invoice: Amounts, measure: str) -> str:
    ours, theirs = getattr(ledger, measure), getattr(invoice, measure)
    if ours == theirs:
        return _shown(ours)
    return f"{_shown(ours)} / {_shown(theirs)}"


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:f}" if not isinstance(value, int) else str(value)
