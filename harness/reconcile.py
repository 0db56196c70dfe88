"""Compare the ledger of one log with Inspect's own totals, and name the cause of each difference.

The ledger and Inspect count different things on purpose: a table needs cache reads (what the reply
would cost) and leaves out graders; Inspect leaves out cache reads and counts graders, and its
totals of a run include attempts that failed. What no cause explains is an error in one of the two.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ModelUsage

from harness.ledger import read_calls
from harness.ledger.tally import failed, grades, in_table, is_cached
from harness.records import Call, Usage
from harness.usage import usage_from

NOTHING = Usage(reasoning=0)

Cause = Literal[
    "cache reads", "score-phase calls", "failed attempts", "attempts not in this log", "unexplained"
]
"""`attempts not in this log`: after a retry, Inspect's totals of a run still have the tokens of the
attempt that failed, and its samples no longer do (at most its last call is kept)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why the ledger's solve-phase calls and one of Inspect's totals differ."""

    where: str
    """`sample <id> epoch <n>` or `run`."""
    who: str
    """`role <name>` or `model <name>`."""
    cause: Cause
    tokens: Usage
    """Inspect's tokens less the ledger's."""


def reconcile(log: EvalLog, path: Path) -> list[Difference]:
    """Return every difference between the ledger of a log and Inspect's totals; [] when equal."""
    calls = [call for call in read_calls(path) if call.usage is not None]
    by_sample: dict[str, list[Call]] = {}
    for call in calls:
        by_sample.setdefault(call.sample, []).append(call)
    found: list[Difference] = []
    for sample in log.samples or []:
        found += _of_sample(sample, by_sample.get(sample.uuid or "", []))
    retried = any(sample.error_retries for sample in log.samples or [])
    found += _compare("run", _by_model(log.stats.model_usage, calls), retried=retried)
    found += _compare("run", _by_role(log.stats.role_usage, calls), retried=retried)
    return found


@dataclass(frozen=True, slots=True)
class _Pair:
    """What Inspect and the ledger say about one model or one role."""

    who: str
    theirs: Usage
    ours: tuple[Call, ...]


def _of_sample(sample: EvalSample, calls: Sequence[Call]) -> Iterator[Difference]:
    # An attempt's own total knows nothing of whether it was graded, nor of attempts before it.
    own = {event.uuid for event in sample.events}
    mine = [replace(call, counted=True) for call in calls if call.id in own]
    where = f"sample {sample.id} epoch {sample.epoch}"
    yield from _compare(where, _by_model(sample.model_usage, mine))
    yield from _compare(where, _by_role(sample.role_usage, mine))


def _by_model(totals: Mapping[str, ModelUsage], calls: Sequence[Call]) -> Iterator[_Pair]:
    for name in sorted({*totals, *(call.model for call in calls)}):
        ours = tuple(call for call in calls if call.model == name)
        yield _Pair(f"model {name}", _told(usage_from(totals.get(name))), ours)


def _by_role(totals: Mapping[str, ModelUsage], calls: Sequence[Call]) -> Iterator[_Pair]:
    # A call without a role is listed under its model, and in no role total of Inspect's.
    with_role = [call for call in calls if call.role != call.model]
    for name in sorted({*totals, *(call.role for call in with_role)}):
        ours = tuple(call for call in with_role if call.role == name)
        yield _Pair(f"role {name}", _told(usage_from(totals.get(name))), ours)


def _compare(where: str, pairs: Iterable[_Pair], *, retried: bool = False) -> Iterator[Difference]:
    """Yield Inspect's total less the ledger's, split by cause."""
    for pair in pairs:
        rest = _minus(pair.theirs, _total(pair.ours, in_table))
        causes: tuple[tuple[Cause, Usage], ...] = (
            ("cache reads", _minus(NOTHING, _total(pair.ours, is_cached))),
            ("score-phase calls", _total(pair.ours, grades)),
            ("failed attempts", _total(pair.ours, failed)),
        )
        for cause, tokens in causes:
            rest = _minus(rest, tokens)
            if tokens != NOTHING:
                yield Difference(where, pair.who, cause, tokens)
        if rest != NOTHING:
            gone = retried and min(_five(rest)) >= 0
            cause = "attempts not in this log" if gone else "unexplained"
            yield Difference(where, pair.who, cause, rest)


def _total(calls: Iterable[Call], belongs: Callable[[Call], bool]) -> Usage:
    total = sum((_told(call.usage) for call in calls if belongs(call)), NOTHING)
    return Usage(*_five(total))


def _told(usage: Usage | None) -> Usage:
    """Return usage with 0 for what was not reported: Inspect's totals pass over it."""
    return NOTHING if usage is None else Usage(*_five(usage))


def _minus(left: Usage, right: Usage) -> Usage:
    return Usage(*(a - b for a, b in zip(_five(left), _five(right), strict=True)))


def _five(usage: Usage) -> tuple[int, int, int, int, int]:
    """Return the tokens that Inspect counts too."""
    cached = (usage.cache_read, usage.cache_write)
    return (usage.input, usage.output, *cached, usage.reasoning or 0)
