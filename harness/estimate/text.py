"""A dry run as text: a row per suite and system, a total, and the `--max-usd` that would do."""

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

from harness.compose import Request
from harness.errors import UserError
from harness.estimate.cost import Take
from harness.estimate.estimate import Estimate
from harness.estimate.line import Line
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


def as_text(found: Estimate, request: Request | None = None) -> str:
    """Return the table of a dry run and what the limits of a request allow; a dash is unknown."""
    limits = limits_said(found, request) if request else ()
    return "\n".join((*_lines(found), *limits)) + "\n"


def _lines(found: Estimate) -> Iterator[str]:
    yield columns(COLUMNS, [*(_row(line) for line in found.lines), _total(found)])
    yield ""
    yield (
        f"Prices: {found.book}. usd is expected, by past calls: a dash where there are none.\n"
        "At most, as a limit counts it: every prompt byte a token and some for a chat template,\n"
        "every reply as long as max_tokens lets it be; HTTP retries come on top."
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
    return f"--max-usd {enough:f} would be enough but for HTTP retries{spent}."


def limits_said(found: Estimate, request: Request) -> Iterator[str]:
    """Yield a line for each limit of a request that may stop something before its end."""
    if said := too_little(found, request):
        yield said
        return
    if request.max_usd is not None:
        left = request.max_usd - found.already
        if said := _too_little((found.expected.usd, found.most.usd), left, "the run"):
            spent = f" (${found.already:.4f} of it is spent)" if found.already else ""
            yield f"--max-usd {request.max_usd:f}{spent} {said}."
    left = [line for line in found.lines if line.left]
    limit = request.max_usd_per_query
    if limit is not None and left:
        one = max(left, key=lambda line: (line.dearest is None, line.dearest or Decimal(0)))
        known = max(line.usual or Decimal(0) for line in left)
        if said := _too_little((known, one.dearest), limit, "questions"):
            yield f"--max-usd-per-query {limit:f} {said} ({one.system} on {one.suite})."


def _too_little(takes: tuple[Decimal | None, Decimal | None], left: Decimal, what: str) -> str:
    """Return how a limit stands to what is expected and at most; empty where it is enough."""
    expected, most = takes
    if expected is not None and expected > left:
        return f"is too little: ${expected:.4f} is expected"
    if most is None:
        return f"may stop {what} before the end: nothing bounds the cost"
    return f"may stop {what} before the end: up to ${most:.4f} is possible" if most > left else ""


def refuse_too_little(found: Estimate, request: Request) -> None:
    """Raise UserError where a limit is less than the first call of every question can cost."""
    if said := too_little(found, request):
        raise UserError(said)


def too_little(found: Estimate, request: Request) -> str:
    """Return why a limit would let no call go out; empty where it lets one, or may."""
    left = [line for line in found.lines if line.left]
    firsts = [line.first for line in left if line.first is not None]
    if not firsts or len(firsts) < len(left):
        return ""
    first = min(firsts, key=lambda one: one.usd)
    limits = (
        ("--max-usd", request.max_usd, found.already),
        ("--max-usd-per-query", request.max_usd_per_query, Decimal(0)),
    )
    for name, limit, already in limits:
        if limit is not None and limit - already < first.usd:
            leaves = f"leaves ${limit - already:.4f}" if already else "allows"
            return (
                f"One call of {first.worker!r} can cost ${first.usd:.4f}, more than {name} "
                f"{limit:f} {leaves}: raise it, or set a smaller max_tokens for the worker."
            )
    return ""


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
