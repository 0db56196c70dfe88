"""Our token counts against Inspect's own totals, from log headers alone: a line per exam and label.

harness/reconcile.py compares one log sample by sample and model by model; that needs every event
again. Here Inspect's totals of the newest log of each sitting are enough, so a report stays quick.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ModelUsage

from harness.logs import find_logs
from harness.reconcile import Cause, failed, grades, in_table, is_cached
from harness.records import Call
from harness.sittings import Sitting

Tokens = tuple[int, int, int, int]
"""Input, cache reads, cache writes, output."""
NOTHING: Tokens = (0, 0, 0, 0)
Gap = tuple[Cause, Tokens]
"""A cause, and Inspect's tokens less the table's."""


def reconciliation(sittings: Sequence[Sitting], dirs: Sequence[Path]) -> tuple[str, ...]:
    """Return one sentence per exam, label and purpose."""
    paths = {path.name: path for path in find_logs(dirs)}
    groups: dict[str, list[Sitting]] = {}
    for sitting in sorted(sittings, key=_title):
        groups.setdefault(_title(sitting), []).append(sitting)
    return tuple(f"{title}: {_sentence(group, paths)}" for title, group in groups.items())


def _title(sitting: Sitting) -> str:
    facts = sitting.facts
    choosing = ", choosing" if facts.purpose == "selection" else ""
    return f"{facts.suite} ({facts.split}), {facts.label}{choosing}"


def _sentence(sittings: Sequence[Sitting], paths: Mapping[str, Path]) -> str:
    headers = [read_eval_log(str(paths[one.logs[0]]), header_only=True) for one in sittings]
    pairs = list(zip(sittings, headers, strict=True))
    summed = [(one, header) for one, header in pairs if _has_totals(header)]
    calls = [call for one, _ in summed for call in one.calls if in_table(call)]
    gaps = _by_cause(gap for one, header in summed for gap in _gaps(one, header))
    compared = f"{len(calls):,} calls, {_tokens(_total(calls))}; {_said(gaps)}"
    missing = len(pairs) - len(summed)
    unfinished = f"not compared: unfinished logs without totals: {missing}."
    parts = ([compared] if summed else []) + ([unfinished] if missing else [])
    return " ".join(parts)


def _has_totals(header: EvalLog) -> bool:
    """Inspect writes its totals when a run ends; a killed run has none."""
    return header.status != "started" or bool(header.stats.model_usage)


def _gaps(sitting: Sitting, header: EvalLog) -> list[Gap]:
    """Return Inspect's tokens less the table's, model by model, split by cause."""
    theirs = header.stats.model_usage
    gaps: list[Gap] = []
    for name in sorted({*theirs, *(call.model for call in sitting.calls)}):
        ours = [call for call in sitting.calls if call.model == name]
        gaps += _split(_told(theirs.get(name)), ours, sitting)
    return gaps


def _split(theirs: Tokens, ours: Sequence[Call], sitting: Sitting) -> list[Gap]:
    again = [call for call in ours if failed(call)]
    cached = _less(NOTHING, _total(filter(is_cached, ours)))
    graded = _total(filter(grades, ours))
    rest = _less(_less(_less(theirs, _total(filter(in_table, ours))), cached), graded)
    # After a kill, the totals of the next log start anew: they lack attempts made again in full.
    older = _total(call for call in again if call.log != sitting.logs[0])
    lost = _less(_total(again), rest)
    known = rest if _is_part(lost, older) else _total(again)
    gaps: list[Gap] = [
        ("cache reads", cached),
        ("score-phase calls", graded),
        ("failed attempts", known),
    ]
    rest = _less(rest, known)
    repeated = any(not call.counted for call in sitting.calls)
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


def _told(usage: ModelUsage | None) -> Tokens:
    """Return one of Inspect's totals; a model it does not list was told to use nothing."""
    if usage is None:
        return NOTHING
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    return (usage.input_tokens, read, written, usage.output_tokens)


def _total(calls: Iterable[Call]) -> Tokens:
    """Add up calls; one that reported no usage is in neither of the totals compared."""
    total = NOTHING
    for used in (call.usage for call in calls):
        if used is not None:
            total = _plus(total, (used.input, used.cache_read, used.cache_write, used.output))
    return total


def _plus(left: Tokens, right: Tokens) -> Tokens:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3])


def _less(left: Tokens, right: Tokens) -> Tokens:
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2], left[3] - right[3])
