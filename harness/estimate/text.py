"""A dry run as text: a row per suite and system, a total, and the `--max-usd` that would do."""

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

from harness.compose import Request
from harness.estimate.cost import Take
from harness.estimate.estimate import Estimate, Line
from harness.listing import columns

COLUMNS = (
    "suite",
    "system",
    "left",
    "calls",
    "tokens in",
    "tokens out",
    "usd",
    "usd at most",
    "from",
)
CENT = Decimal("0.01")


def as_text(found: Estimate) -> str:
    """Return the table of a dry run; a dash is unknown."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Estimate) -> Iterator[str]:
    yield columns(COLUMNS, [*(_row(line) for line in found.lines), _total(found)])
    yield ""
    yield (
        f"Prices: {found.book}. usd is expected; at most: every prompt byte a token, every reply\n"
        "as long as max_tokens lets it be; HTTP retries come on top."
    )
    if found.label != "live":
        yield f"This pool is labelled {found.label}: nothing will be paid."
    for reason in found.unknown:
        yield f"Unknown: {reason}."
    yield _safe(found)


def _row(line: Line) -> tuple[str, ...]:
    cells = _cells(line.expected, line.most)
    return (line.suite, line.system, str(line.left), *cells, line.basis)


def _total(found: Estimate) -> tuple[str, ...]:
    left = sum(line.left for line in found.lines)
    return ("total", "", str(left), *_cells(found.expected, found.most), "")


def _cells(expected: Take, most: Take) -> tuple[str, ...]:
    counts = (expected.calls, expected.input, expected.output)
    return (*(_count(one) for one in counts), _dollars(expected.usd), _dollars(most.usd))


def _count(value: Decimal | None) -> str:
    return "-" if value is None else f"{value.to_integral_value():,}"


def _dollars(value: Decimal | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _safe(found: Estimate) -> str:
    most = found.most.usd
    if most is None:
        return "No --max-usd is known to be enough: see what is unknown above."
    enough = (most + found.already).quantize(CENT, rounding=ROUND_UP)
    spent = f", ${found.already:.4f} of it spent already" if found.already else ""
    return f"--max-usd {enough:f} would be enough{spent}."


def warning(found: Estimate, request: Request) -> str:
    """Return a line when a limit does not pay for one question; empty when it does, or may."""
    left = [line for line in found.lines if line.left and line.one.usd is not None]
    if not left:
        return ""
    cheapest = min(left, key=lambda line: line.one.usd or Decimal(0))
    cost = cheapest.one.usd or Decimal(0)
    what = f"one question of {cheapest.system} on {cheapest.suite} may cost ${cost:.4f}"
    if request.max_usd is not None and cost > request.max_usd - found.already:
        spent = f", of which ${found.already:.4f} is spent" if found.already else ""
        return f"{what}, more than --max-usd {request.max_usd:f} leaves{spent} ({cheapest.basis})."
    if request.max_usd_per_query is not None and cost > request.max_usd_per_query:
        limit = f"--max-usd-per-query {request.max_usd_per_query:f}"
        return f"{what}, more than {limit} ({cheapest.basis})."
    return ""
