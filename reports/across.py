"""Each system's means over two or more suites that share label, pool and price book."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from statistics import fmean

from podium.harness.ledger.totals import SystemRun
from podium.reports.blocks import pinned_name, prompt_words
from podium.reports.columns import label, narrow_label
from podium.reports.comparison_rows import Pair
from podium.reports.render import (
    UNKNOWN,
    Columns,
    count,
    figures_table,
    fitted,
    interval,
    left_out,
    percent,
    tabulate,
    usd,
    usd_sum,
    whole_mean,
    wrapped,
)
from podium.reports.row import TableRow, block_of
from podium.reports.stats import Bounds

TITLE = "Over all suites"
SAID = (
    "Mean of the suites' accuracies, each with equal weight; the 95 % interval adds the distances "
    "to the ends of the suites' own intervals in squares (Zou and Donner 2008). *USD/query* and "
    "tokens are means over suites, too; *USD in all* is the list price of all graded queries. A "
    "system without results on a suite has no mean. `*`: looks at targets or was chosen in "
    "hindsight."
)


@dataclass(frozen=True, slots=True)
class AcrossRow:
    """One system's means over all suites with the same label, pool, seed, prompt and prices."""

    system: str
    args: str
    """The system's arguments; empty unless a suite has this system twice."""
    rows: tuple[TableRow, ...]
    """The rows from which the means are taken, one for each suite that the system ran on."""
    missing: tuple[str, ...]
    """Suites on which this system has no row, no accuracy, or two rows: then it has no mean."""
    accuracy: float | None
    """Mean of the suites' accuracies; None if any is missing. Next two fields: 95 % interval."""
    ci_low: float | None
    ci_high: float | None
    n_questions: int
    n_graded: int
    """Number of graded (question, epoch) pairs."""
    usd_total: Decimal | None
    """Total dollars of all graded pairs at list price; None if a price is unknown."""
    usd_per_query: Decimal | None
    """Mean of the suites' dollars per query; each suite has equal weight, as in `accuracy`."""
    tokens_in: float | None
    """Mean of the suites' input tokens per query; `tokens_out` is the same for output tokens."""
    tokens_out: float | None

    @property
    def name(self) -> str:
        """The system's name, with `*` if it saw the right answers or was chosen in hindsight."""
        late = any(row.uses_targets or not row.reference_allowed for row in self.rows)
        return f"{self.system}*" if late else self.system

    @property
    def first(self) -> TableRow:
        """The system's first row; all its rows have the same label, pool and price book."""
        return self.rows[0]


def across_rows(pairs: Sequence[Pair]) -> tuple[AcrossRow, ...]:
    """Return each system's means over suites with the same pool, prices and label, best first.

    Rows whose pool, price book and label occur on one suite only are left out.
    """
    groups: dict[tuple[object, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(block_of(pair[0])[1:], []).append(pair)
    return tuple(row for group in groups.values() for row in _group(group))


def _group(pairs: Sequence[Pair]) -> list[AcrossRow]:
    suites = tuple(dict.fromkeys(row.suite for row, _ in pairs))
    if len(suites) < 2:
        return []
    places = [(row.suite, row.system) for row, _ in pairs]
    twice = {system for i, (suite, system) in enumerate(places) if (suite, system) in places[:i]}
    systems: dict[tuple[str, str], list[Pair]] = {}
    for row, system_run in pairs:
        args = row.args if row.system in twice else ""
        systems.setdefault((row.system, args), []).append((row, system_run))
    rows = [_across(name, group, suites) for name, group in systems.items()]
    return sorted(rows, key=lambda row: (-(row.accuracy or -1.0), row.system, row.args))


def _across(name: tuple[str, str], runs: Sequence[Pair], suites: Sequence[str]) -> AcrossRow:
    rows = tuple(row for row, _ in runs)
    sat = [row.suite for row in rows if row.accuracy is not None]
    missing = tuple(
        f"{suite} (sat twice)" if suite in sat else suite
        for suite in suites
        if sat.count(suite) != 1
    )
    bounds = [(row.accuracy or 0.0, row.ci_low or 0.0, row.ci_high or 0.0) for row in rows]
    low, high = (None, None) if missing else mean_interval(bounds)
    priced = [] if missing else [row.usd_per_query for row in rows]
    total = usd_sum(priced)
    return AcrossRow(
        *name,
        rows=rows,
        missing=missing,
        accuracy=None if missing else fmean(accuracy for accuracy, _, _ in bounds),
        ci_low=low,
        ci_high=high,
        n_questions=sum(
            len({attempt.question for attempt in run.attempts if attempt.graded}) for _, run in runs
        ),
        n_graded=sum(row.n_graded for row in rows),
        usd_total=usd_sum([_usd(run) for _, run in runs]),
        usd_per_query=total / len(priced) if total is not None and priced else None,
        tokens_in=None if missing else whole_mean([row.tokens_in for row in rows]),
        tokens_out=None if missing else whole_mean([row.tokens_out for row in rows]),
    )


def _usd(system_run: SystemRun) -> Decimal | None:
    return usd_sum([attempt.totals.usd for attempt in system_run.attempts if attempt.graded])


def mean_interval(suites: Sequence[tuple[float, float, float]]) -> Bounds:
    """Return the 95 % interval of the mean of independent suites, each (accuracy, low, high).

    This is the usual formula for the variance of a mean, with standard errors replaced by the
    distances from each accuracy to the ends of its Wilson interval (MOVER: Zou and Donner 2008,
    Statistics in Medicine 27(10)). At an accuracy of 1 the standard error would be 0, although the
    accuracy is not known exactly. The suites' intervals already take epochs into account.
    """
    mean = fmean(accuracy for accuracy, _, _ in suites)
    below = sum((accuracy - low) ** 2 for accuracy, low, _ in suites) ** 0.5 / len(suites)
    above = sum((high - accuracy) ** 2 for accuracy, _, high in suites) ** 0.5 / len(suites)
    return Bounds(mean - below, mean + above)


LEFT_OUT = (narrow_label("tokens_in"), narrow_label("tokens_out"), "questions", "USD in all")
"""Columns that are dropped, in this order, if the terminal is too narrow."""
COLUMNS: Columns[AcrossRow] = (
    ("mean %", lambda row: percent(row.accuracy)),
    (label("ci_low"), lambda row: interval(row.ci_low, row.ci_high)),
    ("questions", lambda row: count(row.n_questions)),
    (label("usd_per_query"), lambda row: usd(row.usd_per_query)),
    ("USD in all", lambda row: usd(row.usd_total)),
    (narrow_label("tokens_in"), lambda row: count(row.tokens_in)),
    (narrow_label("tokens_out"), lambda row: count(row.tokens_out)),
    ("lacks", lambda row: ", ".join(row.missing) or UNKNOWN),
)


def across_text(rows: Sequence[AcrossRow]) -> str:
    """Return tables of means over suites for a terminal; empty if there are no such means."""
    columns: Columns[AcrossRow] = (("system", lambda row: row.name), *COLUMNS)
    tables: list[str] = []
    for title, of in across_tables(rows):
        lines, gone = fitted(tabulate(columns, of), LEFT_OUT)
        tables.append("\n".join((*wrapped(f"{TITLE}: {title}"), *lines, *left_out(gone))))
    return "\n\n".join(tables)


def across_markdown(rows: Sequence[AcrossRow]) -> str:
    """Return the section of table.md on means over suites; empty if there are no such means."""
    columns: Columns[AcrossRow] = (
        ("system", lambda row: f"`{row.name}`" + (f" {row.args}" if row.args else "")),
        *COLUMNS,
    )
    tables = [
        f"**{title}**\n\n{figures_table(tabulate(columns, of))}"
        for title, of in across_tables(rows)
    ]
    return "\n\n".join((f"## {TITLE}", SAID, *tables)) if tables else ""


def across_tables(rows: Sequence[AcrossRow]) -> list[tuple[str, list[AcrossRow]]]:
    """Return the tables of means, each with a title: suites, label, pool, prices, seed."""
    groups: dict[str, list[AcrossRow]] = {}
    for row in rows:
        groups.setdefault(group_title(row), []).append(row)
    return [
        (f"{', '.join(dict.fromkeys(each.suite for row in of for each in row.rows))} ({title})", of)
        for title, of in groups.items()
    ]


def group_title(row: AcrossRow) -> str:
    """Return the title of a table of means: what its rows share, e.g. `live, pool mine, ...`."""
    top = row.first
    split = "" if top.split == "eval" else f"{top.split} split, "
    book = pinned_name(top.price_book, top.price_book_sha256)
    facts = (f"pool {pinned_name(top.pool, top.pool_sha256)}", f"prices {book}", f"seed {top.seed}")
    return f"{split}{top.label}{prompt_words(top.prompt, top.equal)}, {', '.join(facts)}"


def across_data(row: AcrossRow, places: Mapping[int, int]) -> dict[str, object]:
    """Return a row of means for table.json; `places`: id(suite's row) -> its index in the file."""
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    shared = {name: getattr(row.first, name) for name in ("label", "pool", "price_book", "seed")}
    return {**shared, **values, "rows": [places[id(each)] for each in row.rows]}
