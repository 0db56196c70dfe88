"""Every system on every held-out question: routers refitted for each fold, and the anchors.

A question is judged once, by a router that did not see it. A sweep over the willingness to pay
gives each router a frontier, a list of points, where all dollars are known. Fitting is done in
memory and nothing of it is kept, so a matrix that must not be published can be judged on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from baselines.judging.anchors import (
    ORACLE_RULE,
    Figures,
    at_random,
    best_single,
    oracle,
    taken,
    unanswered,
)
from baselines.judging.splits import Fold, Split
from baselines.routing.router import Choices, Embedder, Estimates, Router, choose, examples
from harness.errors import UserError
from harness.learning.matrix import Floats, Matrix

BEST_SINGLE = "best-single"
HINDSIGHT = f"{BEST_SINGLE} (hindsight)"
ORACLE = "oracle-router"
SEVERAL = (
    "best-single is not the same worker in all folds. Who is chosen on the other folds among near "
    "equals is rather the worse one on the fold that is judged, so this reference is a little weak "
    "and moves with the seed: read the line in hindsight too, and try other seeds."
)
STEPS = 25
"""Willingnesses in a sweep, from a tenth of the cheapest query to a thousand times the dearest."""
Kind = Literal["router", "anchor", "single"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One system on all judged questions, in the order of `Judgement.questions`."""

    system: str
    kind: Kind
    figures: Figures
    chosen: Choices | None
    """None for a mixture of workers."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What a router comes to at one willingness, in US dollars per right answer; None: no limit."""

    willingness: float | None
    score: float
    usd: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """All systems on one split."""

    questions: tuple[str, ...]
    rows: tuple[Judged, ...]
    frontiers: Mapping[str, tuple[Point, ...]]
    """By router; empty where dollars are unknown."""
    refits: int
    """How often something was fitted: routers times folds."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """What is judged: routers that share an embedder, and a seed."""

    routers: Sequence[Router]
    embedder: Embedder | None
    """None when there is no router."""
    seed: int = 0


@dataclass(slots=True)
class _Choices:
    """Whom each system asks, over all questions of the matrix; filled fold by fold."""

    by_system: dict[str, Choices]
    sweeps: dict[tuple[str, float], Choices]
    size: int

    def put(self, system: str, fold: Fold, chosen: Choices | int) -> None:
        """Note a system's choices on the judged questions of a fold."""
        self.by_system.setdefault(system, np.zeros(self.size, np.intp))[fold.test] = chosen

    def swept(self, router: str, willingness: float, fold: Fold, chosen: Choices) -> None:
        """Note a router's choices at one willingness."""
        key = (router, willingness)
        self.sweeps.setdefault(key, np.zeros(self.size, np.intp))[fold.test] = chosen


def judge(matrix: Matrix, split: Split, contest: Contest) -> Judgement:
    """Judge routers and anchors on a matrix without gaps (`Matrix.whole`).

    UserError when a fold has too little to learn from, or a router refuses its examples.
    """
    if np.isnan(matrix.scores).any():
        raise UserError(f"{matrix.name}: some scores are unknown; judge on its whole rows.")
    choices = _Choices({}, {}, len(matrix.questions))
    priced = not np.isnan(matrix.usd).any()
    ladder = _ladder(matrix.rows(split.folds[0].train)) if priced else []
    for fold in split.folds:
        train, test = matrix.rows(fold.train), matrix.rows(fold.test)
        for name, worker in _always(train, priced=priced):
            choices.put(name, fold, worker)
        for router, expected in _estimates(contest, train, test):
            choices.put(router.name, fold, choose(expected))
            for willingness in ladder:
                chosen = choose(expected, willingness)
                choices.swept(router.name, willingness, fold, chosen)
    judged = np.sort(np.concatenate([fold.test for fold in split.folds]))
    exam = matrix.rows(judged)
    at = {name: chosen[judged] for name, chosen in choices.by_system.items()}
    sweeps = {key: chosen[judged] for key, chosen in choices.sweeps.items()}
    names = [router.name for router in contest.routers]
    return Judgement(
        questions=tuple(asked.id for asked in exam.questions),
        rows=tuple(_rows(exam, at, names)),
        frontiers={name: _frontier(exam, name, at[name], sweeps) for name in names if ladder},
        refits=len(names) * len(split.folds),
        notes=_notes(matrix, exam, at),
    )


def _ladder(train: Matrix) -> list[float]:
    """Return the willingnesses of a sweep; none where nothing costs."""
    usd = train.mean_usd()
    if not usd.min() > 0:
        return []
    steps: Floats = np.geomspace(float(usd.min()) / 10, float(usd.max()) * 1000, STEPS)
    return steps.tolist()


def _always(train: Matrix, *, priced: bool) -> Iterator[tuple[str, int]]:
    yield BEST_SINGLE, best_single(train)
    if priced:  # some unknown price leaves open who is the cheapest
        usd = train.mean_usd()
        yield "cheapest-single", int(np.argmin(usd))
        yield "priciest-single", int(np.argmax(usd))


def _estimates(contest: Contest, train: Matrix, test: Matrix) -> Iterator[tuple[Router, Estimates]]:
    if contest.embedder is None:
        return
    fitted = contest.embedder.fit([asked.text for asked in train.questions])
    taught, asked = (
        contest.embedder.embed(fitted, [one.text for one in part.questions])
        for part in (train, test)
    )
    for router in contest.routers:
        learnt = router.fit(examples(train, taught), contest.seed)
        yield router, router.estimate(learnt, asked)


def _rows(exam: Matrix, at: Mapping[str, Choices], routers: Sequence[str]) -> Iterator[Judged]:
    yield Judged(
        BEST_SINGLE, "anchor", taken(exam, at[BEST_SINGLE]), at[BEST_SINGLE], _who(exam, at)
    )
    for name in routers:
        yield Judged(name, "router", taken(exam, at[name]), at[name])
    yield Judged("random-worker", "anchor", at_random(exam), None, "its expected value, no draw")
    for name in ("cheapest-single", "priciest-single"):
        if name in at:
            yield Judged(name, "anchor", taken(exam, at[name]), at[name])
    hindsight = np.full(len(exam.questions), best_single(exam))
    yield Judged(
        HINDSIGHT,
        "anchor",
        taken(exam, hindsight),
        hindsight,
        "chosen on the questions it is judged on",
    )
    knows = oracle(exam)
    yield Judged(ORACLE, "anchor", taken(exam, knows), knows, "looks at every verdict")
    for worker, name in enumerate(exam.workers):
        always = np.full(len(exam.questions), worker)
        yield Judged(f"single:{name}", "single", taken(exam, always), always)


def _who(exam: Matrix, at: Mapping[str, Choices]) -> str:
    chosen: list[int] = at[BEST_SINGLE].tolist()
    names = [exam.workers[worker] for worker in dict.fromkeys(chosen)]
    return f"chosen on what teaches: {', '.join(names)}"


def _frontier(
    exam: Matrix, name: str, free: Choices, sweeps: Mapping[tuple[str, float], Choices]
) -> tuple[Point, ...]:
    """Return the points of a router, by rising willingness; equal neighbours are one point."""
    swept = [(willing, chosen) for (router, willing), chosen in sweeps.items() if router == name]
    points: list[Point] = []
    for willingness, chosen in [*swept, (None, free)]:
        figures = taken(exam, chosen)
        point = Point(willingness, float(figures.scores.mean()), float(figures.usd.mean()))
        if points and (points[-1].score, points[-1].usd) == (point.score, point.usd):
            points.pop()
        points.append(point)
    return tuple(points)


def _notes(matrix: Matrix, exam: Matrix, at: Mapping[str, Choices]) -> tuple[str, ...]:
    nobody = unanswered(exam)
    several = (SEVERAL,) if np.ptp(at[BEST_SINGLE]) else ()
    rule = f"{ORACLE_RULE} (so on {nobody} of {len(exam.questions)} questions)."
    return (*several, *matrix.notes, rule)
