"""Our token counts against Inspect's own totals, from log headers alone: a line per exam and label.

`podium audit` compares a run call by call. Here Inspect's totals in the newest log of each sitting
are enough, so a report stays quick.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from harness.ledger import Kind, Tallies, Tally
from harness.ledger.tally import failed, grades, in_table, is_cached, total
from harness.sittings import Sitting, Tokens

NOTHING: Tokens = (0, 0, 0, 0)
Cause = Literal[
    "cache reads", "score-phase calls", "failed attempts", "attempts not in this log", "unexplained"
]
"""`attempts not in this log`: after a retry, Inspect's totals of a run still have the tokens of the
attempt that failed, and its samples no longer do (at most its last call is kept)."""
Gap = tuple[Cause, Tokens]
"""A cause, and Inspect's tokens less the table's."""


def reconciliation(sittings: Sequence[Sitting]) -> tuple[str, ...]:
    """Return one sentence per exam, label and purpose."""
    groups: dict[str, list[Sitting]] = {}
    for sitting in sorted(sittings, key=_title):
        groups.setdefault(_title(sitting), []).append(sitting)
    return tuple(f"{title}: {_sentence(group)}" for title, group in groups.items())


def _title(sitting: Sitting) -> str:
    facts = sitting.facts
    choosing = ", choosing" if facts.purpose == "selection" else ""
    return f"{facts.suite} ({facts.split}), {facts.label}{choosing}"


def _sentence(sittings: Sequence[Sitting]) -> str:
    summed = [(one.spend, one.told) for one in sittings if one.told is not None]
    shown = total(tally for spend, _ in summed for kind, tally in spend.items() if in_table(kind))
    gaps = _by_cause(gap for spend, told in summed for gap in _gaps(spend, told))
    compared = f"{shown.calls:,} calls, {_tokens(_four(shown))}; {_said(gaps)}"
    missing = len(sittings) - len(summed)
    unfinished = f"not compared: unfinished logs without totals: {missing}."
    parts = ([compared] if summed else []) + ([unfinished] if missing else [])
    return " ".join(parts)


def _gaps(spend: Tallies, told: Mapping[str, Tokens]) -> list[Gap]:
    """Return Inspect's tokens less the table's, model by model, split by cause."""
    again = any(not kind.counted for kind in spend)
    gaps: list[Gap] = []
    for name in sorted({*told, *(kind.model for kind in spend)}):
        ours = {kind: tally for kind, tally in spend.items() if kind.model == name}
        gaps += _split(told.get(name, NOTHING), ours, repeated=again)
    return gaps


def _split(theirs: Tokens, ours: Tallies, *, repeated: bool) -> list[Gap]:
    again = _total(ours, failed)
    cached = _less(NOTHING, _total(ours, is_cached))
    graded = _total(ours, grades)
    rest = _less(_less(_less(theirs, _total(ours, in_table)), cached), graded)
    # After a kill, the totals of the next log start anew: they lack attempts made again in full.
    older = _total(ours, lambda kind: failed(kind) and not kind.newest)
    lost = _less(again, rest)
    known = rest if _is_part(lost, older) else again
    gaps: list[Gap] = [
        ("cache reads", cached),
        ("score-phase calls", graded),
        ("failed attempts", known),
    ]
    rest = _less(rest, known)
    gone = repeated and min(rest) >= 0
    return [*gaps, ("attempts not in this log" if gone else "unexplained", rest)]


def _is_part(part: Tokens, whole: Tokens) -> bool:
    return all(0 <= one <= all_ for one, all_ in zip(part, whole, strict=True))


def _by_cause(gaps: Iterable[Gap]) -> dict[Cause, Tokens]:
    """Add up the gaps, those without a cause by their size, so that no two cancel each other."""
    summed: dict[Cause, Tokens] = {}
    for cause, tokens in gaps:
        if tokens != NOTHING:
            one, two, three, four = tokens
            sizes = (abs(one), abs(two), abs(three), abs(four))
            before = summed.get(cause, NOTHING)
            summed[cause] = _plus(before, sizes if cause == "unexplained" else tokens)
    return summed


def _said(gaps: Mapping[Cause, Tokens]) -> str:
    if not gaps:
        return "equal to Inspect's own totals."
    more = [
        f"{cause} ({_tokens(tokens)})"
        for cause, tokens in gaps.items()
        if cause not in ("cache reads", "unexplained")
    ]
    parts = [f"Inspect counts also {', '.join(more)}"] if more else []
    if "cache reads" in gaps:
        unread = _less(NOTHING, gaps["cache reads"])
        parts.append(f"Inspect leaves out cache reads ({_tokens(unread)})")
    if "unexplained" in gaps:
        parts.append(f"UNEXPLAINED: they differ by {_tokens(gaps['unexplained'])}")
    return "; ".join(parts) + "."


def _tokens(tokens: Tokens) -> str:
    """Return tokens in (cached ones included) and out."""
    return f"{sum(tokens[:3]):,} tokens in, {tokens[3]:,} out"


def _total(spend: Tallies, belongs: Callable[[Kind], bool]) -> Tokens:
    """Add up calls; one that reported no usage is in neither of the totals compared."""
    return _four(total(tally for kind, tally in spend.items() if belongs(kind)))


def _four(tally: Tally) -> Tokens:
    return (tally.input, tally.cache_read, tally.cache_write, tally.output)


def _plus(left: Tokens, right: Tokens) -> Tokens:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3])


def _less(left: Tokens, right: Tokens) -> Tokens:
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2], left[3] - right[3])
