"""How figures look, and how a report's files are written: all or none, never over foreign ones."""

import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from harness.errors import UserError
from harness.text import escape_markdown

# § How figures look: one place for rounding, so that table.md, the terminal and the plot
# § agree.


UNKNOWN = "-"


def percent(value: float | None) -> str:
    """Return an accuracy in percent, e.g. `46.7`."""
    return UNKNOWN if value is None else f"{100 * value:.1f}"


def share(percent: float | None) -> str:
    """Return a share that is in percent already, e.g. `12.5 %`."""
    return UNKNOWN if percent is None else f"{percent:.1f} %"


def points(value: float | None) -> str:
    """Return a signed difference in percentage points, e.g. `+3.3`."""
    return UNKNOWN if value is None else f"{100 * value:+.1f}"


def interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """Return `[30.2,63.9]`, or a dash where there is none."""
    if low is None or high is None:
        return UNKNOWN
    show = points if signed else percent
    return f"[{show(low)},{show(high)}]"


def usd(value: Decimal | None) -> str:
    """Return dollars with three significant digits, e.g. `0.00243`; `0` is exactly nothing."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    places = max(2, 2 - value.adjusted())
    return f"{value:.{places}f}"


def usd_about(value: float | None) -> str:
    """Return estimated dollars with three significant digits, which are no sum that was billed.

    >>> usd_about(0.0024349), usd_about(1234.5)
    ('0.00243', '1234.50')
    """
    return UNKNOWN if value is None else usd(Decimal(repr(value)))


def count(value: float | None, places: int = 0) -> str:
    """Return a mean count with thousands separated."""
    return UNKNOWN if value is None else f"{value:,.{places}f}"


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return text columns padded to one width each, the first `left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


# § Files of a report: written all or none, and never over what podium did not write.
# §
# § Not here: what stands in them (reports/report.py, reports/routes.py).


Writer = Callable[[Path], object]
HEAD = 2000
"""Bytes from the start of a file within which its mark stands."""


def text_file(content: str) -> Writer:
    """Return the writer of a text."""
    return lambda path: path.write_text(content, encoding="utf-8")


def markdown_file(content: str, mark: str) -> Writer:
    """Return the writer of Markdown that begins with podium's mark; the rest is made harmless."""
    return text_file(mark + escape_markdown(content.removeprefix(mark)))


def write_files(out: Path, writers: Mapping[str, Writer]) -> tuple[Path, ...]:
    """Write all files beside their places, then put them there; UserError names what failed."""
    path = out
    scratch: list[Path] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in writers.items():
            path = out / f"{name}.new"
            write(path)
            scratch.append(path)
        return tuple(path.replace(path.with_suffix("")) for path in scratch)
    except OSError as error:
        for left in scratch:
            left.unlink(missing_ok=True)
        reason = f"{type(error).__name__}: {error.strerror}"
        raise UserError(
            f"{path} cannot be written ({reason}); name another --out directory."
        ) from error


def refuse_unwritable(out: Path) -> None:
    """Raise UserError before anything is read; nothing is made here, for there may be no logs."""
    place = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise UserError(f"{place} is no directory; name another --out directory.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{place} may not be written to; name another --out directory.")


def refuse_foreign(out: Path, marks: Mapping[str, str]) -> None:
    """Raise UserError when a file is there without the mark that podium's own carries."""
    for name, mark in marks.items():
        path = out / name
        ours = path.is_file() and mark.encode() in path.read_bytes()[:HEAD]
        if path.exists() and not ours:
            raise UserError(f"{path} was not written by podium; name another --out directory.")
