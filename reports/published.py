"""Published figures of our exams, from other harnesses: shown beside a table, never compared.

They stand in published.csv, as printed; what is wrong in print, or must be known to read a figure,
is its note. Does not belong here: figures that podium made.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import wrap

from reports.render import UNKNOWN, aligned

TITLE = "Published, other harness"
TEXT = (
    "From papers (source and table), as printed: other prompts, limits, prices and draws than the "
    "tables above. No comparison and no verdict takes them in."
)
WIDTH = 120


@dataclass(frozen=True, slots=True)
class Figure:
    """One published figure; empty where the source does not say."""

    source: str
    table: str
    setting: str
    """`constrained` or `unconstrained` as the Conductor paper has it, else `as published`."""
    system: str
    suite: str
    """Ours by name, or `average` over the suites of the table."""
    metric: str
    value: str
    """Percent."""
    se: str
    tokens: str
    """Output tokens of workers per question."""
    usd: str
    calls: str
    note: str


@cache
def figures() -> tuple[Figure, ...]:
    """Return all published figures, in the order of their file."""
    text = files("reports").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Figure(**row) for row in csv.DictReader(text.splitlines()))


def published(suite: str) -> list[Figure]:
    """Return the figures of one suite, best first within their setting."""
    found = [one for one in figures() if one.suite == suite]
    return sorted(found, key=lambda one: (one.setting, -float(one.value)))


def table_of(found: Sequence[Figure], notes: list[str]) -> list[tuple[str, ...]]:
    """Return the lines of a table, heads first; its notes are numbered and put into `notes`."""
    heads = (
        "published, other harness", "%", "SE", "setting", "source", "tokens out", "USD/query",
        "calls",
    )  # fmt: skip
    return [heads, *(_line(one, notes) for one in found)]


def _line(one: Figure, notes: list[str]) -> tuple[str, ...]:
    marks: list[str] = []
    for note in filter(None, one.note.split("; ")):
        if note not in notes:
            notes.append(note)
        marks.append(str(notes.index(note) + 1))
    name = f"{one.system} ({', '.join(marks)})" if marks else one.system
    spent = (part or UNKNOWN for part in (one.tokens, one.usd, one.calls))
    source = f"{one.source}, {one.table}"
    return (name, one.value, one.se or UNKNOWN, one.setting, source, *spent)


def numbered(notes: Sequence[str]) -> str:
    """Return notes as a numbered list."""
    return "\n".join(f"{number}. {note}" for number, note in enumerate(notes, start=1))


def published_text(suites: Sequence[str]) -> str:
    """Return the published figures of some suites for a terminal; empty when there are none."""
    blocks: list[str] = []
    for suite in suites:
        if found := published(suite):
            notes: list[str] = []
            lines = aligned(table_of(found, notes))
            shown = [line[:WIDTH].rstrip() for line in lines]
            foot = [part for line in numbered(notes).splitlines() for part in wrap(line, WIDTH)]
            blocks.append("\n".join((*wrap(f"{suite}: {TEXT}", WIDTH), *shown, *foot)))
    return "\n\n".join(blocks)
