"""Formatting of a report's numbers, tables and files, in one place for consistency."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeVar

from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable
from podium.harness.text import (
    GAP,
    aligned,
    csv_line,
    escape_markdown,
    markdown_cell,
    terminal_width,
)

UNKNOWN = "-"
Record = TypeVar("Record")
Columns = Sequence[tuple[str, Callable[[Record], str]]]
"""Columns of a table: pairs of the header and a function from a record to its cell's text."""


def percent(value: float | None) -> str:
    """Return a fraction in percent without a % sign, e.g. `46.7`, or a dash if it is unknown."""
    return UNKNOWN if value is None else f"{100 * value:.1f}"


def share(percent: float | None) -> str:
    """Return a percentage with the percent sign, e.g. `12.5 %`, or a dash if it is unknown."""
    return UNKNOWN if percent is None else f"{percent:.1f} %"


def points(value: float | None) -> str:
    """Return a difference of fractions in percentage points, e.g. `+3.3`, or a dash if unknown."""
    return UNKNOWN if value is None else f"{100 * value:+.1f}"


def interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """Return an interval of fractions in percent, e.g. `[30.2,63.9]`, or a dash if unknown."""
    if low is None or high is None:
        return UNKNOWN
    show = points if signed else percent
    return f"[{show(low)},{show(high)}]"


def interval_words(low: float | None, high: float | None) -> str:
    """Return the ends of a difference's interval, e.g. `+4.2 to +45.8`; empty if unknown."""
    return "" if low is None or high is None else f"{points(low)} to {points(high)}"


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals, e.g. `0.042` or `<0.001`, or a dash if unknown."""
    return UNKNOWN if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def usd(value: Decimal | None) -> str:
    """Return dollars with 3 significant digits or 2 decimals; `0`: exactly 0; a dash: unknown."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    places = max(2, 2 - value.adjusted())
    return f"{value:.{places}f}"


def usd_sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    """Return a sum of dollars; None if any amount is unknown."""
    present = [amount for amount in amounts if amount is not None]
    return sum(present, Decimal(0)) if len(present) == len(amounts) else None


def usd_about(value: float | None) -> str:
    """Return estimated (not billed) dollars, formatted as by `usd`.

    >>> usd_about(0.0024349), usd_about(1234.5)
    ('0.00243', '1234.50')
    """
    return UNKNOWN if value is None else usd(Decimal(repr(value)))


def whole_mean(values: Sequence[float | Decimal | None]) -> float | None:
    """Return the mean of numbers; None if a number is unknown or there is no number."""
    numbers = [float(value) for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


def count(value: float | None, places: int = 0) -> str:
    """Return a count or mean with thousands separators, e.g. `12,345`, or a dash if unknown."""
    return UNKNOWN if value is None else f"{value:,.{places}f}"


def cells(columns: Columns[Record], record: Record) -> list[str]:
    """Return a record's row of a table as texts, one cell per column."""
    return [show(record) for _, show in columns]


def tabulate(columns: Columns[Record], records: Iterable[Record]) -> list[Sequence[str]]:
    """Return a table of records: the header row, then a row per record."""
    return [[head for head, _ in columns], *(cells(columns, record) for record in records)]


def shortened(name: str, limit: int) -> str:
    """Return a name cut to `limit` characters; `~` replaces the end that was cut off."""
    return name if len(name) <= limit else f"{name[: limit - 1]}~"


WIDTH = 120
"""Width, in characters, of a table without a terminal: in files, pipes and tests."""
SHORTEST = 8
"""Minimum length, in characters, to which a name may be cut, however narrow the terminal."""


def width() -> int:
    """Return the width of tables: COLUMNS or the terminal's, at least 80; without both, `WIDTH`."""
    return terminal_width() or WIDTH


def fitted(
    table: Sequence[Sequence[str]], order: Iterable[str] = ()
) -> tuple[list[str], tuple[str, ...]]:
    """Return a table's lines, fitted to the width, and the columns dropped for that, in `order`."""
    room, gone = width(), list[str]()
    columns = [tuple(column) for column in zip(*table, strict=True)]
    for head in order:
        if _across(columns) > room and any(column[0] == head for column in columns):
            columns = [column for column in columns if column[0] != head]
            gone.append(head)
    names = max(SHORTEST, room - _across(columns[1:]) - GAP)
    columns[0] = tuple(shortened(name, names) for name in columns[0])
    return aligned(list(zip(*columns, strict=True))), tuple(gone)


def _across(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + GAP * (len(columns) - 1)


def left_out(heads: Sequence[str]) -> list[str]:
    """Return the line that lists the dropped columns of a table; empty if there are none."""
    return wrapped(f"left out at this width: {', '.join(heads)}") if heads else []


def wrapped(text: str) -> list[str]:
    """Return a sentence's lines, wrapped to the terminal's width without breaking words."""
    room = min(width(), WIDTH)
    return wrap(text, room, break_on_hyphens=False, break_long_words=False)


def footnoted(name: str, texts: Iterable[str], notes: list[str]) -> str:
    """Return a name with the numbers of its footnotes; new footnotes are added to `notes`."""
    marks = ", ".join(map(str, note_numbers(texts, notes)))
    return f"{name} ({marks})" if marks else name


def note_numbers(texts: Iterable[str], notes: list[str]) -> list[int]:
    """Return the numbers, from 1, of footnotes in the list `notes`; add new footnotes to it."""
    marks: list[int] = []
    for note in filter(None, texts):
        if note not in notes:
            notes.append(note)
        marks.append(notes.index(note) + 1)
    return marks


def numbered(notes: Sequence[str]) -> str:
    """Return notes as a numbered list, `1. ` and so on, one per line."""
    return "\n".join(f"{number}. {note}" for number, note in enumerate(notes, start=1))


def markdown_line(cells: Sequence[str]) -> str:
    """Return cells as one line of a Markdown table."""
    return "| " + " | ".join(map(markdown_cell, cells)) + " |"


def markdown_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table, header row first; the first `left` columns are left-aligned."""
    ruler = [*["---"] * left, *["---:"] * (len(rows[0]) - left)]
    return "\n".join(map(markdown_line, (rows[0], ruler, *rows[1:])))


def figures_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, header row first; columns of numbers are right-aligned."""
    heads, *body = rows
    ruler = [
        "---:" if all(cell[:1].isdigit() or cell[:1] in "+-<" for cell in column) else "---"
        for column in zip(*body, strict=True)
    ]
    return "\n".join(map(markdown_line, (heads, ruler or ["---"] * len(heads), *body)))


def rows_csv(rows: Iterable[Any], columns: Sequence[str], show: Callable[[object], object]) -> str:
    """Return records as CSV; an empty cell means an unknown value."""
    lines = [csv_line(columns)]
    for row in rows:
        values = asdict(row)
        cells = (values[name] for name in columns)
        lines.append(csv_line(None if cell is None else show(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def rounded(places: int) -> Callable[[object], object]:
    """Return a function that rounds floats to `places` digits and returns other values as is."""
    return lambda value: round(value, places) if isinstance(value, float) else value


def as_json(data: Mapping[str, object]) -> str:
    """Return data as the text of a JSON file."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def report_folder(logs: Path) -> Path:
    """Return a report's default folder: `report` in a log directory or beside a log file."""
    return (logs.parent if logs.is_file() else logs) / "report"


Content = str | Callable[[Path], object]
"""Content of a file: its text, or a function that writes it."""


def write_files(
    out: Path, contents: Mapping[str, Content], option: str = "--out directory"
) -> tuple[Path, ...]:
    """Write files into a folder, first with suffix `.new`, then renamed; UserError on failure."""
    path = out
    scratch: list[Path] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = out / f"{name}.new"
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, content)
            scratch.append(path)
        return tuple(path.replace(path.with_suffix("")) for path in scratch)
    except OSError as error:
        for new_file in scratch:
            new_file.unlink(missing_ok=True)
        reason = f"{type(error).__name__}: {error.strerror}"
        raise UserError(f"{path} cannot be written ({reason}); name another {option}.") from error


def _write(path: Path, content: Content) -> None:
    if not isinstance(content, str):
        content(path)
        return
    path.write_bytes(as_written(path.name.removesuffix(".new"), content))


def as_written(name: str, text: str) -> bytes:
    """Return a text file's bytes; Markdown is escaped after its first line, podium's mark."""
    if name.endswith(".md"):
        mark, end, body = text.partition("\n")
        text = mark + end + escape_markdown(body)
    return text.encode()


ENDS = 2000  # bytes at a file's start and end, one of which has podium's mark (Parquet: the end)


def _has(content: bytes, mark: bytes) -> bool:
    return mark in content[:ENDS] or mark in content[-ENDS:]


def refuse_existing(out: Path) -> None:
    """Raise UserError if `out` exists already or cannot be created."""
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists already, and nothing is overwritten: name another --out.")
    refuse_unwritable(out, "--out")


def refuse_foreign(out: Path, marks: Mapping[str, str]) -> None:
    """Raise UserError if `out` is not writable, or has a file named in `marks` without its mark."""
    refuse_unwritable(out, "--out directory")
    for name, mark in marks.items():
        path = out / name
        ours = path.is_file() and _has(path.read_bytes(), mark.encode())
        if path.exists() and not ours:
            raise UserError(f"{path} was not written by podium; name another --out directory.")
