"""How figures look: one place for rounding, so that table.md, the terminal and the plot agree."""

from collections.abc import Sequence
from decimal import Decimal

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
