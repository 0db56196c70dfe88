"""Results that papers published for our suites: printed beside our tables, never compared."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from podium.reports.columns import label
from podium.reports.render import UNKNOWN, fitted, footnoted, left_out, numbered, wrapped

TITLE = "Published, other harness"
TEXT = (
    "From papers (source and table), as printed: their prompts, limits, prices and draws differ "
    "from those of the tables above. No comparison or verdict uses them."
)
AVERAGE = "average"
AVERAGE_TITLE = "Means over several suites, published, other harness"
AVERAGE_TEXT = (
    "From papers (source and table), as printed: means over math500, mmlu, rlpr and livecodebench. "
    "*tokens out* are workers' output tokens alone, like our *worker out*; the papers do not "
    "state whether they include a conductor's own tokens. No comparison or verdict uses them."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A published result of a system on a suite; fields that the source does not have are empty."""

    source: str
    table: str
    setting: str
    """`constrained` or `unconstrained` (settings of the Conductor paper), else `as published`."""
    system: str
    suite: str  # our suite's name, or `average`: the table's mean over suites
    metric: str
    value: str  # percent
    se: str
    tokens: str  # output tokens of workers per question
    usd: str
    calls: str
    note: str


@cache
def figures() -> tuple[Figure, ...]:
    """Return all published results, in the order of published.csv."""
    text = files("podium.reports").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Figure(**row) for row in csv.DictReader(text.splitlines()))


def of_suite(suite: str) -> list[Figure]:
    """Return the published results on one suite, best first within each setting."""
    matches = [row for row in figures() if row.suite == suite]
    return sorted(matches, key=lambda row: (row.setting, -float(row.value)))


def averages() -> list[Figure]:
    """Return published means over suites that state tokens or dollars, most accurate first."""
    matches = [row for row in figures() if row.suite == AVERAGE and (row.tokens or row.usd)]
    return sorted(matches, key=lambda row: -float(row.value))


def table_of(rows: Sequence[Figure], notes: list[str]) -> list[tuple[str, ...]]:
    """Return a table of published results, header row first; add its footnotes to `notes`."""
    heads = (
        "published, other harness", "%", "SE", "setting", "source",
        *map(label, ("tokens_out", "usd_per_query", "calls")),
    )  # fmt: skip
    return [heads, *(_line(figure, notes) for figure in rows)]


def _line(figure: Figure, notes: list[str]) -> tuple[str, ...]:
    name = footnoted(figure.system, figure.note.split("; "), notes)
    spent = (value or UNKNOWN for value in (figure.tokens, figure.usd, figure.calls))
    source = f"{figure.source}, {'table ' if figure.table[0].isdigit() else ''}{figure.table}"
    return (name, figure.value, figure.se or UNKNOWN, figure.setting, source, *spent)


def published_text(suites: Sequence[str]) -> str:
    """Return text for a terminal: published results on these suites, and means over suites."""
    sections = [(f"{suite}: {TEXT}", of_suite(suite)) for suite in suites]
    lacking = ", ".join(suite for suite in suites if not of_suite(suite))
    blocks = [_block(text, rows) for text, rows in sections if rows]
    blocks.append(_block(f"{AVERAGE_TITLE}. {AVERAGE_TEXT}", averages()))
    if lacking:
        blocks.append("\n".join(wrapped(f"No published figures are known for {lacking}.")))
    return "\n\n".join(blocks)


def _block(text: str, rows: Sequence[Figure]) -> str:
    notes: list[str] = []
    lines, gone = fitted(list(zip(*told_columns(table_of(rows, notes)), strict=True)), LEFT_OUT)
    foot = [line for note in numbered(notes).splitlines() for line in wrapped(note)]
    return "\n".join((*wrapped(text.replace("*", "")), *lines, *left_out(gone), *foot))


LEFT_OUT = ("SE", "setting", "calls", "tokens out")
"""The order in which columns are dropped on a narrow terminal."""


def told_columns(table: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return a table's columns, header cell first, without columns unknown in all rows."""
    columns = zip(*table, strict=True)
    return [column for column in columns if {*column[1:]} != {UNKNOWN} or not column[1:]]
