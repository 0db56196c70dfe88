"""What a trained conductor must reach, held against a contest: reached, or missed by how much.

The targets are fixed before the exam is opened. All of several comparisons must hold for one target
to be reached, so that no single one needs a stricter level (Berger 1982, Technometrics 24(4)). A
best worker or system is the best in hindsight, on the very questions: nobody is favoured by a bad
choice. Not here: how they are shown (reports/target_text.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.contest import Contest, Contestant, Kind
from reports.render import interval, percent, points
from reports.stats.arrays import Bounds, Floats
from reports.stats.crossed import Crossed, crossed, crossed_means, percentile

MARGIN = 0.02
"""Not inferior: less than this below."""
SHARE = 0.8
"""Of the way from the best single worker to the oracle."""
GAP = 0.1
"""Where that way is at least so long."""
CALLS = 0.4
"""Of the reference mixture's worker calls."""
TEMPLATE, MIXTURE, ORACLE = "template-router", "moa-lite", "oracle"


@dataclass(frozen=True, slots=True)
class Against:
    """A trained contestant less another one, on the questions that both were graded on."""

    other: str
    kind: Kind
    found: Crossed
    bootstrap: Bounds | None
    suites: Mapping[str, Crossed]
    """The same, suite by suite."""
    questions: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of the way from the best single worker to the oracle was gone."""

    suite: str
    """Empty for the mean over suites."""
    best: str
    best_mean: float
    oracle_mean: float
    share: float | None
    """None where there is no way to go."""
    interval: Bounds | None

    @property
    def gap(self) -> float:
        """Oracle less the best single worker."""
        return self.oracle_mean - self.best_mean


@dataclass(frozen=True, slots=True)
class Target:
    """One demand, and what was found."""

    name: str
    wanted: str
    found: str
    reached: bool | None
    """None where the logs cannot say."""
    short: str = ""
    """By how much it was missed, and by whom."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trained contestant against all others."""

    who: Contestant
    mean: Crossed
    bootstrap: Bounds | None
    suites: Mapping[str, Crossed]
    against: tuple[Against, ...]
    reach: tuple[Reach, ...]
    """The mean over suites first."""
    dominating: tuple[str, ...]
    """Baselines that are cheaper and more accurate."""
    targets: tuple[Target, ...]


def judged(found: Contest) -> tuple[Judged, ...]:
    """Return every trained contestant, held against all others."""
    return tuple(_judged(found, one) for one in found.of("trained"))


def _judged(found: Contest, who: Contestant) -> Judged:
    strata = [_strata(who, suite) for suite in found.suites]
    others = [one for one in found.contestants if one is not who]
    against = tuple(compared(found.suites, who, other) for other in others)
    reach = _reaches(found, who)
    better = tuple(one.name for one in others if _dominates(one, who))
    return Judged(
        who,
        crossed(strata),
        percentile(crossed_means(strata)),
        {suite: crossed([one]) for suite, one in zip(found.suites, strata, strict=True)},
        against,
        reach,
        better,
        _targets(found, who, against, (reach, better)),
    )


def compared(suites: Sequence[str], who: Contestant, other: Contestant) -> Against:
    """Return a trained contestant less another one, of which the members' mean counts."""
    deltas = {suite: _deltas(who, other, suite) for suite in suites}
    strata = [deltas[suite] for suite in suites]
    return Against(
        other.name,
        other.kind,
        crossed(strata),
        percentile(crossed_means(strata)),
        {suite: crossed([one]) for suite, one in deltas.items()},
        sum(one.shape[1] for one in strata),
    )


def _strata(who: Contestant, suite: str) -> Floats:
    """Return one suite's scores: (members, questions)."""
    return np.stack(list(who.scores[suite].values()), axis=1)


def _deltas(who: Contestant, other: Contestant, suite: str) -> Floats:
    ours, theirs = who.scores[suite], other.scores[suite]
    both = [one for one in ours if one in theirs]
    return np.stack([ours[one] - theirs[one].mean() for one in both], axis=1)


def _reaches(found: Contest, who: Contestant) -> tuple[Reach, ...]:
    singles, oracle = found.of("single"), found.named(ORACLE)
    if not singles or oracle is None:
        return ()
    whole = _reach("", found.suites, who, (_best(singles, lambda one: one.mean), oracle))
    parts = [
        _reach(suite, [suite], who, (_best(singles, lambda one, at=suite: one.means[at]), oracle))
        for suite in found.suites
    ]
    return (whole, *parts)


def _best(singles: Sequence[Contestant], worth: Callable[[Contestant], float]) -> Contestant:
    return max(singles, key=worth)


def _reach(
    name: str, suites: Sequence[str], who: Contestant, ends: tuple[Contestant, Contestant]
) -> Reach:
    """Return the share of the way; resamples draw seeds and questions for all three alike."""
    best, oracle = ends
    strata: tuple[list[Floats], list[Floats], list[Floats]] = ([], [], [])
    for suite in suites:
        known = [one.scores[suite] for one in (who, best, oracle)]
        both = [one for one in known[0] if all(one in each for each in known)]
        for at, scores in enumerate(known):
            columns = [scores[one] if at == 0 else scores[one][:1] for one in both]
            strata[at].append(np.stack(columns, axis=1))
    low, high = (float(np.mean([one.mean() for one in each])) for each in strata[1:])
    if high <= low:
        return Reach(name, best.name, low, high, None, None)
    mine = float(np.mean([one.mean() for one in strata[0]]))
    ours, least, most = (crossed_means(each) for each in strata)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (ours - least) / (most - least)
    return Reach(name, best.name, low, high, (mine - low) / (high - low), percentile(shares))


def _dominates(other: Contestant, who: Contestant) -> bool:
    """Say whether a baseline is cheaper and more accurate; what looks at targets is none."""
    if other.kind in ("bound", "trained") or other.costs.usd is None or who.costs.usd is None:
        return False
    return other.costs.usd < who.costs.usd and other.mean > who.mean


def _targets(
    found: Contest,
    who: Contestant,
    against: Sequence[Against],
    rest: tuple[Sequence[Reach], Sequence[str]],
) -> tuple[Target, ...]:
    reach, better = rest
    return (
        _superior("every single worker", "single", against),
        _superior("every untrained ensemble", "ensemble", against),
        _superior("every one-step router", "router", against),
        _not_inferior(next((one for one in against if one.other == TEMPLATE), None)),
        *(_share(one) for one in reach if one.gap >= GAP),
        _calls(who, found.named(MIXTURE)),
        _undominated(who, better),
    )


def _superior(whom: str, kind: Kind, against: Sequence[Against]) -> Target:
    """Demand an interval above zero against each of a kind."""
    them = [one for one in against if one.kind == kind]
    name, wanted = f"superior to {whom}", "interval above 0"
    if not them:
        return Target(name, wanted, "none of them is in these logs", None)
    low = min(them, key=_least)
    missed = sorted((one for one in them if not _least(one) > 0), key=_least)
    short = "; ".join(f"{one.other} {_said(one.found)}" for one in missed)
    found = f"nearest of {len(them)}: {low.other} {_said(low.found)}"
    return Target(name, wanted, found, not missed, short)


def _not_inferior(one: Against | None) -> Target:
    name, wanted = f"not inferior to {TEMPLATE}", f"interval above {points(-MARGIN)}"
    if one is None:
        return Target(name, wanted, "it is not in these logs", None)
    reached = _least(one) > -MARGIN
    short = "" if reached else f"by {100 * (-MARGIN - _least(one)):.1f} points"
    return Target(name, wanted, _said(one.found), reached, short)


def _share(one: Reach) -> Target:
    where = one.suite or "the mean over suites"
    name = f"share of oracle less {one.best} on {where}"
    between = "" if one.interval is None else f" {interval(*one.interval)}"
    share = one.share or 0.0
    found = f"{percent(share)} %{between} of {100 * one.gap:.1f} points"
    reached = share >= SHARE
    short = "" if reached else f"by {100 * (SHARE - share):.1f} % of that way"
    return Target(name, f"at least {percent(SHARE)} %", found, reached, short)


def _calls(who: Contestant, mixture: Contestant | None) -> Target:
    name, wanted = f"worker calls beside {MIXTURE}", f"at most {CALLS:g} x"
    theirs = mixture.costs.worker_calls if mixture else None
    if not theirs or who.costs.worker_calls is None:
        return Target(name, wanted, "unknown", None)
    ratio = who.costs.worker_calls / theirs
    found = f"{ratio:.2f} x ({who.costs.worker_calls:.2f} of {theirs:.2f} a question)"
    return Target(
        name, wanted, found, ratio <= CALLS, "" if ratio <= CALLS else f"by {ratio - CALLS:.2f} x"
    )


def _undominated(who: Contestant, better: Sequence[str]) -> Target:
    name, wanted = "no baseline both cheaper and more accurate", "none"
    if who.costs.usd is None:
        return Target(name, wanted, "its dollars are unknown", None)
    return Target(name, wanted, ", ".join(better) or "none", not better, ", ".join(better))


def _least(one: Against) -> float:
    """Return the lower end; a difference without spread is its own."""
    return one.found.interval.low if one.found.interval else one.found.mean


def _said(found: Crossed) -> str:
    ends = found.interval
    return points(found.mean) + (f" {interval(*ends, signed=True)}" if ends else "")
