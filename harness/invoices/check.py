"""Compare one bucket and model of both sides: what differs, and what may explain it.

A difference is explained by calls in flight when it lies within their bounds, by calls that crossed
the bucket's edge when all buckets together agree, by rounding when it is smaller than the last
places of the invoice's amounts. Everything else is wrong.
"""

from dataclasses import dataclass
from decimal import Decimal

from harness.invoices.result import Kind, Options
from harness.invoices.sums import Billed, Side

UNITS = {
    "requests": "requests",
    "input": "input tokens",
    "cache_read": "cached tokens",
    "cache_write": "tokens written to the cache",
    "output": "output tokens",
    "usd": "dollars",
}
Number = int | Decimal


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison found."""

    explained: tuple[str, ...]
    wrong: tuple[str, ...]
    kind: Kind = "difference"
    """Of what is wrong."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Both sides of one bucket and model, and how closely they are compared."""

    side: Side
    billed: Billed
    options: Options
    agreeing: frozenset[str]
    """Measures on which all buckets together agree."""


def compare(bucket: Bucket) -> Verdict:
    """Compare the two sides of a bucket."""
    side, billed = bucket.side, bucket.billed
    explained: dict[str, None] = {}
    wrong: list[str] = []
    measures = [one for one in billed.said() if one != "usd" or not side.unpriced]
    for measure in measures:
        why, ok = _measure(measure, bucket)
        if not ok:
            wrong.append(why)
        elif why:
            explained[why] = None
    if side.unpriced and billed.usd is not None:
        explained[f"dollars not compared: {side.unpriced} calls have no price"] = None
    if not measures:
        return Verdict(tuple(explained), ("nothing could be compared",), "nothing compared")
    return Verdict(tuple(explained), tuple(wrong))


def _measure(measure: str, bucket: Bucket) -> tuple[str, bool]:
    """Return what there is to say of one measure, and whether it is all right."""
    side = bucket.side
    theirs: Number = getattr(bucket.billed, measure)
    ours: Number = getattr(side.known, measure)
    over = theirs - ours
    slack = _slack(measure, bucket)
    if abs(over) <= slack:
        return _within(measure, over, bucket), True
    most = side.open.most(measure)
    if side.open.calls and over >= -slack and (most is None or over <= most + slack):
        return _in_flight(side), True
    if measure == "requests" and 0 < over <= side.refused + side.open.calls:
        return f"{side.refused} refused attempts may count as requests", True
    low, high = getattr(side.began_here, measure), getattr(side.ended_here, measure)
    if measure in bucket.agreeing and -low - slack <= over <= high + slack:
        crossed = side.began_here.requests + side.ended_here.requests
        return f"{crossed} calls crossed the bucket's edge; all buckets together agree", True
    sides = f"the invoice has {_shown(theirs)}, the ledger {_shown(ours)}"
    return f"{UNITS[measure]}: {sides} ({_shown(over, signed=True)})", False


def _slack(measure: str, bucket: Bucket) -> Number:
    if measure == "usd":
        return bucket.billed.rounding + bucket.options.usd
    return 0 if measure == "requests" else bucket.options.tokens


def _within(measure: str, over: Number, bucket: Bucket) -> str:
    billed, options = bucket.billed, bucket.options
    if not over:
        return ""
    if measure != "usd":
        return f"{UNITS[measure]} differ by {_shown(over, signed=True)}, within {options.tokens}"
    if abs(over) <= billed.rounding:
        return f"rounding of {billed.priced} amounts: at most ${billed.rounding:f}"
    return f"dollars differ by {over:+f}, within {options.usd:f} and rounding"


def _shown(number: Number, *, signed: bool = False) -> str:
    sign = "+" if signed and number > 0 else ""
    return f"{sign}{number:f}" if isinstance(number, Decimal) else f"{sign}{number}"


def _in_flight(side: Side) -> str:
    """Name the calls that may explain a difference, with the range of what they can have cost."""
    open = side.open
    named = f"in flight or timed out: {open.calls - open.silent} calls"
    if open.silent:
        uncounted = f"answered without a count of tokens: {open.silent} calls"
        named = uncounted if open.silent == open.calls else f"{named}, {uncounted}"
    tokens = (
        "no bound on tokens"
        if open.input is None or open.output is None
        else f"0-{open.input + open.output} tokens"
    )
    dollars = "no bound on dollars" if open.usd is None else f"$0-{open.usd:f}"
    return f"{named}, {tokens}, {dollars}"
