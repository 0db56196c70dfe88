"""The figures of a router table: every system against the best single worker, question by question.

The reference is the best single worker as chosen on the questions that teach. Verdicts are for
routers alone, adjusted for their number; anchors and single workers get intervals, for a worker
that is best on the questions it is judged on was picked there. Takes plain records: what a router
is, nobody here knows. Not here: how a table looks (reports/route_table.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from harness.errors import UserError
from reports.intervals import Difference, Values, accuracy_interval, adjusted, difference
from reports.stats.arrays import Floats
from reports.stats.frontier import aiq
from reports.stats.means import clustered_error, standard_error

Kind = Literal["router", "anchor", "single"]


@dataclass(frozen=True, slots=True)
class Routed:
    """One system on all judged questions; arrays are (questions,), NaN is unknown."""

    system: str
    kind: Kind
    scores: Floats
    usd: Floats
    tokens_out: Floats
    elsewhere: float | None
    """Share of the questions that it sends elsewhere than the reference does; None for a mix."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A router at one willingness to pay, in US dollars per right answer; None: scores alone."""

    willingness: float | None
    score: float
    usd: float


@dataclass(frozen=True, slots=True)
class Routing:
    """What was judged, and how."""

    name: str
    source: str
    label: str
    split: str
    workers: int
    questions: tuple[str, ...]
    draws: int
    seed: int
    embedder: str
    refits: int
    reference: str
    hindsight: str
    """The best single worker on the questions that are judged: the reference that nobody has."""
    oracle: str
    """The system that knows every verdict."""
    systems: tuple[Routed, ...]
    frontiers: Mapping[str, tuple[FrontierPoint, ...]]
    notes: tuple[str, ...]
    clusters: tuple[str, ...] = ()
    """Of each question what it came with: its contest or its subject; empty where unknown."""


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One system; None is unknown or does not apply. Shares, not points."""

    system: str
    kind: Kind
    n: int
    accuracy: float
    ci_low: float | None
    ci_high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    detectable: float | None
    verdict: str
    """Against the reference; empty for what is no router."""
    hindsight: float | None
    """A router's difference to the best single worker in hindsight: the careful side."""
    hindsight_low: float | None
    hindsight_high: float | None
    p_value: float | None
    p_holm: float | None
    usd_per_query: float | None
    tokens_out_per_query: float | None
    gap_closed: float | None
    """Of the way from the reference to the oracle; None where there is no way to go."""
    elsewhere: float | None
    aiq: float | None
    note: str
    difference_se: float | None = None
    """Standard error of `difference`, questions apart."""
    difference_se_clustered: float | None = None
    """The same with the questions of a cluster taken together (CR1): a sensitivity check."""


def route_rows(routing: Routing) -> tuple[RouteRow, ...]:
    """Return one row per system, in the order given."""
    reference = _named(routing, routing.reference)
    oracle = float(_named(routing, routing.oracle).scores.mean())
    hindsight = _named(routing, routing.hindsight)
    routers = [one.system for one in routing.systems if one.kind == "router"]
    found = {one.system: _difference(routing, one, reference) for one in routing.systems}
    held = dict(zip(routers, adjusted([found[name] for name in routers]), strict=True))
    base = float(reference.scores.mean())
    way = oracle - base
    rows: list[RouteRow] = []
    for one in routing.systems:
        score = float(one.scores.mean())
        interval = accuracy_interval(_values(routing, one))
        delta = held.get(one.system) or found[one.system]
        judged = delta if one.kind == "router" else None
        later = _difference(routing, one, hindsight) if judged else None
        rows.append(
            RouteRow(
                system=one.system,
                kind=one.kind,
                n=len(routing.questions),
                accuracy=score,
                ci_low=interval and interval.low,
                ci_high=interval and interval.high,
                difference=delta.mean,
                difference_low=delta.interval and delta.interval.low,
                difference_high=delta.interval and delta.interval.high,
                detectable=delta.detectable,
                verdict=judged.verdict if judged else "",
                hindsight=later and later.mean,
                hindsight_low=later and later.interval and later.interval.low,
                hindsight_high=later and later.interval and later.interval.high,
                p_value=judged.p_value if judged else None,
                p_holm=judged.p_holm if judged else None,
                usd_per_query=_mean(one.usd),
                tokens_out_per_query=_mean(one.tokens_out),
                gap_closed=(score - base) / way if way > 0 else None,
                elsewhere=one.elsewhere,
                aiq=router_aiq(routing, one.system),
                note=one.note,
                difference_se=standard_error(one.scores - reference.scores),
                difference_se_clustered=_clustered(routing, one.scores - reference.scores),
            )
        )
    return tuple(rows)


def _named(routing: Routing, name: str) -> Routed:
    found = next((one for one in routing.systems if one.system == name), None)
    if found is None:
        raise UserError(f"There is no row {name!r} to compare with.")
    return found


def _values(routing: Routing, one: Routed) -> Values:
    scores: list[float] = one.scores.tolist()
    return {name: [score] for name, score in zip(routing.questions, scores, strict=True)}


def _difference(routing: Routing, one: Routed, reference: Routed) -> Difference:
    found = difference(_values(routing, one), _values(routing, reference))
    if found is None:
        raise UserError(f"{routing.name}: no question is judged.")
    return found


def _clustered(routing: Routing, deltas: Floats) -> float | None:
    """Return the error of a mean difference by cluster; None where every question is its own."""
    several = 1 < len(set(routing.clusters)) < len(routing.clusters)
    return clustered_error(deltas, routing.clusters) if several else None


def clustering(routing: Routing, rows: Sequence[RouteRow]) -> tuple[int, float, float] | None:
    """Return how many clusters there are, and the least and the most that they change an error.

    Of routers, as a ratio to the error of questions apart; None where it cannot be said.
    """
    found = [
        row.difference_se_clustered / row.difference_se
        for row in rows
        if row.kind == "router" and row.difference_se and row.difference_se_clustered
    ]
    return (len(set(routing.clusters)), min(found), max(found)) if found else None


def _mean(values: Floats) -> float | None:
    """Return the mean, None as soon as one question's is unknown."""
    return None if not values.size or np.isnan(values).any() else float(values.mean())


def detectable_effect(rows: Sequence[RouteRow]) -> tuple[float, float, float] | None:
    """Return the median, least and greatest detectable difference of routers that go elsewhere.

    Without a router, of the single workers. None where nobody differs from the reference.
    """
    for kind in ("router", "single"):
        found = [row.detectable for row in rows if row.kind == kind and row.detectable]
        if found:
            return median(found), min(found), max(found)
    return None


def bounds(routing: Routing) -> tuple[float, float] | None:
    """Return the dollars per query of the cheapest and the dearest single worker, if known."""
    usd = [_mean(one.usd) for one in routing.systems if one.kind == "single"]
    known = [one for one in usd if one is not None]
    return (min(known), max(known)) if known and len(known) == len(usd) else None


def router_aiq(routing: Routing, name: str) -> float | None:
    """Return AIQ of a router's frontier between the cheapest and the dearest single worker."""
    points, between = routing.frontiers.get(name), bounds(routing)
    if not points or between is None:
        return None
    costs, scores = (
        np.array(part) for part in zip(*((one.usd, one.score) for one in points), strict=True)
    )
    return aiq(costs, scores, *between)


def singles_aiq(routing: Routing) -> float | None:
    """Return AIQ of the single workers mixed at random: what a coin reaches without reading."""
    between = bounds(routing)
    if between is None:
        return None
    singles = [one for one in routing.systems if one.kind == "single"]
    costs = np.array([one.usd.mean() for one in singles])
    return aiq(costs, np.array([one.scores.mean() for one in singles]), *between)
