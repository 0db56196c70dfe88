"""schema.md: what every exported column says, made from the code that writes it."""

from harness.escape import cell
from harness.ledger.columns import DIGITS, PLACES, QUOTIENTS, SCHEMA, columns_of
from harness.ledger.otel import ATTRIBUTES
from harness.ledger.query_row import QueryRow
from harness.ledger.row import LedgerRow

HEAD = f"""# The exported ledger ({SCHEMA})

`calls` has one row per attempt to call a model, `queries` one per (system, question, epoch).

## Money

Dollars are `decimal({DIGITS},{PLACES})`: {PLACES} places, {DIGITS - PLACES} digits before them.
A value that does not fit is refused, never rounded, so `sum()` is exact in DuckDB, and in pandas
too while a sum has at most 28 digits (Python's default context). `avg()` and division give binary
floats: divide sums last. {" and ".join(f"`{one}`" for one in sorted(QUOTIENTS))} are shares made
by a division: these alone are rounded, half to even, at the last place.

## Unknown is NULL

What nobody knows is NULL and never 0. SQL's `sum()` skips NULL in silence, so ask first:

    SELECT system, sum(n_unpriced) AS unpriced,
           CASE WHEN count(*) = count(usd_list) THEN sum(usd_list) END AS usd_list
    FROM queries WHERE purpose = 'eval' GROUP BY system

In `queries`, `usd_list` is NULL as soon as one call of the query has no price; `n_unpriced` says
how many have none. In `calls`, `usd_list IS NULL` is an attempt without a price. `usd` is a range
from `usd_low` to `usd_high` where `n_unknown` is not 0.

Tokens and `usd_list` of a query count each call once, by its last attempt; `usd` and its bounds
count every attempt, so what failed on the way is there.

## CSV

A text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, and is no number, has a
`'` before it, so that no spreadsheet computes what a model wrote. Other formats have it as it was.

## Scopes

`inference`, `scoring`, `training` and `serving` are never added up: filter `calls` by `scope`.
Spend of attempts that were not graded has `counted = false`. Questions that were asked to choose a
system have `purpose = 'selection'` in `queries` and a `task` that ends in `(selection)`.
"""


def schema_page() -> str:
    """Return schema.md."""
    parts = [HEAD]
    for name, record in (("calls", LedgerRow), ("queries", QueryRow)):
        lines = [f"| `{one.name}` | {one.type} | {one.unit} | {'yes' if one.nullable else ''} "
                 f"| {_cell(one.meaning)} |" for one in columns_of(record)]  # fmt: skip
        head = "| column | type | unit | NULL | meaning |\n|---|---|---|---|---|"
        parts.append("\n".join([f"## {name}\n", head, *lines]) + "\n")
    lines = [f"| `{name}` | {_cell(made)} |" for name, made in ATTRIBUTES.items()]
    head = "| attribute | column |\n|---|---|"
    said = (
        "`--format otel` writes calls in the words of OpenTelemetry's GenAI conventions. Their "
        "input count\nincludes cached tokens. All other columns are `podium.` and their name."
    )
    parts.append("\n".join(["## OpenTelemetry\n", said, "", head, *lines]) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return cell(text)
