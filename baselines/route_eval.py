"""Routers evaluated on recorded verdicts: splits, reference rows, a sweep over prices."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baselines.routers.router import (
    Choices,
    Embedder,
    Estimates,
    Router,
    best_workers,
    choose_workers,
    training_examples,
)
from harness.errors import UserError
from harness.learning.matrix import Floats, Matrix, MatrixQuestion
from harness.rewards.splits import question_digest
from harness.text import pluralise

# § Judging routers on a matrix: splits, the anchors they are held against, and a sweep over
# § prices.
# §
# § Reading order: `splits.py` (who learns from what), `anchors.py` (rows that no learning
# § makes),
# § `judged.py` (every system on every held-out question). Figures only: intervals and tables
# § are
# § reports/routes.py. Not here: routers themselves (baselines/routing/), where verdicts are
# § from
# § (baselines/matrices/).


# § Which questions teach and which are judged: by date, drawn, or as the source declares.
# §
# § Nothing that is judged has taught, neither under its id nor under another one: questions
# § whose texts
# § differ in form only (harness/rewards/splits.py) are one question here. Not here: whether a
# § paraphrase
# § is the same question; nobody looks for that.


Rows = NDArray[np.intp]
FORMS = "date:SHARE, share:SHARE, folds:K, folds:K:group or declared"


@dataclass(frozen=True, slots=True)
class Fold:
    """Indices of questions: those that teach, and those that are then judged."""

    train: Rows
    test: Rows


@dataclass(frozen=True, slots=True)
class Split:
    """One or more folds; no question is judged in two of them."""

    name: str
    """How it was made, in words: `the last 30 % by date`."""
    folds: tuple[Fold, ...]
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """Questions that are judged."""
        return sum(len(fold.test) for fold in self.folds)


def split_matrix(matrix: Matrix, how: str, seed: int, *, drop_shared: bool = False) -> Split:
    """Return the split that `how` names: `date:0.3`, `share:0.5`, `folds:5`, ... or `declared`.

    UserError for another word, for a split that a matrix does not allow, and when a question would
    teach and be judged; `drop_shared` leaves those out of what teaches, which a note says.
    """
    kind, _, rest = how.partition(":")
    if kind == "date":
        found = split_by_date(matrix, _share(rest, how))
    elif kind == "share":
        found = split_drawn(matrix, _share(rest, how), seed)
    elif kind == "folds":
        count, _, unit = rest.partition(":")
        if unit not in ("", "group"):
            raise UserError(f"There is no split {how!r}: name {FORMS}.")
        found = split_in_folds(matrix, _count(count, how), seed, by_group=bool(unit))
    elif how == "declared":
        found = split_declared(matrix)
    else:
        raise UserError(f"There is no split {how!r}: name {FORMS}.")
    return _without_shared(matrix, found, drop_shared=drop_shared)


def split_by_date(matrix: Matrix, share: float) -> Split:
    """Return the split that judges the last `share` of the questions by date, rounded up.

    Questions of one day are ordered by id, so that the share is met exactly. UserError when a
    question has no date.
    """
    undated = sum(not asked.date for asked in matrix.questions)
    if undated:
        raise UserError(f"{matrix.name}: {undated} questions have no date; split by folds:5.")
    n = len(matrix.questions)
    at = n - math.ceil(n * share - 1e-9)
    order = sorted(range(n), key=lambda one: _by_day(matrix.questions[one]))
    if not 0 < at < n:
        raise UserError(f"{matrix.name}: {n} questions cannot be split at a share of {share:g}.")
    first, last = matrix.questions[order[0]].date, matrix.questions[order[-1]].date
    cut = matrix.questions[order[at]].date
    name = f"the last {100 * share:g} % by date ({cut} to {last}), taught by {at} from {first} on"
    return Split(name, (Fold(np.array(order[:at]), np.array(order[at:])),))


def _by_day(asked: MatrixQuestion) -> tuple[str, str]:
    return asked.date, asked.id


def split_drawn(matrix: Matrix, share: float, seed: int) -> Split:
    """Return the split that judges a share of the questions, drawn once; equal ones together.

    For what is too dear to learn anew in every fold. UserError when a side would be empty.
    """
    n = len(matrix.questions)
    units: dict[str, list[int]] = {}
    for at, asked in enumerate(matrix.questions):
        units.setdefault(question_key(asked), []).append(at)
    order = list(units.values())
    Random(f"share/{seed}").shuffle(order)
    test: list[int] = []
    while order and len(test) < math.ceil(n * share - 1e-9):
        test += order.pop()
    train = sorted(at for unit in order for at in unit)
    if not train:
        raise UserError(f"{matrix.name}: {n} questions cannot be split at a share of {share:g}.")
    name = f"{100 * share:g} % drawn with seed {seed}, taught by the other {len(train)}"
    return Split(name, (Fold(np.array(train), np.array(sorted(test))),))


def split_in_folds(matrix: Matrix, k: int, seed: int, *, by_group: bool = False) -> Split:
    """Return k folds: each question is judged once, by who has learnt from the other folds.

    What belongs together stays in one fold: equal questions, or with `by_group` all of a group.
    """
    units: dict[str, list[int]] = {}
    for at, asked in enumerate(matrix.questions):
        units.setdefault(asked.group if by_group else question_key(asked), []).append(at)
    if not 2 <= k <= len(units):
        what = "groups" if by_group else "questions"
        raise UserError(f"{matrix.name}: {k} folds need 2 to {len(units)} ({what}).")
    order = list(units.values())
    Random(f"folds/{seed}").shuffle(order)
    order.sort(key=len, reverse=True)  # stable: shuffled among equals
    folds: list[list[int]] = [[] for _ in range(k)]
    for unit in order:
        min(folds, key=len).extend(unit)
    every = np.arange(len(matrix.questions))
    made = (Fold(np.setdiff1d(every, fold), np.array(sorted(fold))) for fold in folds)
    grouped = " by group" if by_group else ""
    return Split(f"{k} folds{grouped}, seed {seed}, each question judged once", tuple(made))


def split_declared(matrix: Matrix) -> Split:
    """Return the split that a source declares; UserError when it declares none."""
    sides = [
        [at for at, one in enumerate(matrix.questions) if one.split == side] for side in _SIDES
    ]
    if not all(sides):
        raise UserError(f"{matrix.name} declares no train and eval questions; split by folds:5.")
    train, test = (np.array(side) for side in sides)
    name = f"as declared by its source: {len(train)} teach, {len(test)} are judged"
    return Split(name, (Fold(train, test),))


_SIDES = ("train", "eval")


def question_key(asked: MatrixQuestion) -> str:
    """Return what is equal for equal questions: a digest of the text, or the id without one."""
    return question_digest(asked.text) if asked.text else asked.id


def _without_shared(matrix: Matrix, split: Split, *, drop_shared: bool) -> Split:
    keys = [question_key(asked) for asked in matrix.questions]
    folds: list[Fold] = []
    dropped = 0
    for fold in split.folds:
        shared = _shared(matrix.questions, keys, fold)
        if shared and not drop_shared:
            raise UserError(_shared_refusal(matrix, keys, fold, shared))
        dropped += len(shared)
        folds.append(Fold(np.setdiff1d(fold.train, shared), fold.test) if shared else fold)
    if not dropped:
        return split
    note = f"{pluralise(dropped, 'question')} taught nobody: judged too, under this or another id."
    return replace(split, folds=tuple(folds), notes=(*split.notes, note))


def _shared(questions: Sequence[MatrixQuestion], keys: Sequence[str], fold: Fold) -> list[int]:
    judged: list[int] = fold.test.tolist()
    taught: list[int] = fold.train.tolist()
    asked = {keys[at] for at in judged} | {questions[at].id for at in judged}
    return [at for at in taught if keys[at] in asked or questions[at].id in asked]


def _shared_refusal(matrix: Matrix, keys: Sequence[str], fold: Fold, shared: Sequence[int]) -> str:
    first = shared[0]
    judged: list[int] = fold.test.tolist()
    same = [matrix.questions[at].id for at in judged if keys[at] == keys[first]]
    return (
        f"{matrix.name}: {pluralise(len(shared), 'question')} would teach and be judged, first "
        f"{matrix.questions[first].id}, which is {', '.join(same)}: leave them out of what teaches "
        "with --drop-shared."
    )


def _share(text: str, how: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise UserError(f"{how!r}: a share lies between 0 and 1, e.g. date:0.3.")
    return share


def _count(text: str, how: str) -> int:
    if not text.isdecimal():
        raise UserError(f"{how!r}: name how many folds, e.g. folds:5.")
    return int(text)


# § Rows that no learning makes: one worker always, one at random, the best in hindsight.
# §
# § What a router is held against. The best single worker is chosen on the questions that
# § teach; chosen
# § on those that are judged, the best of n looks better than it is, and is flagged.


@dataclass(frozen=True, slots=True)
class ChosenFigures:
    """One system on some questions, (questions,) each; NaN is unknown."""

    scores: Floats
    usd: Floats
    tokens_out: Floats


def chosen_figures(matrix: Matrix, chosen: Choices) -> ChosenFigures:
    """Return the entries of the chosen workers."""
    rows = np.arange(len(chosen))
    return ChosenFigures(
        *(part[rows, chosen] for part in (matrix.scores, matrix.usd, matrix.tokens_out))
    )


def random_figures(matrix: Matrix) -> ChosenFigures:
    """Return what asking a random worker comes to, exactly: each row's mean, no draw."""
    scores, usd, tokens = (
        part.mean(axis=1) for part in (matrix.scores, matrix.usd, matrix.tokens_out)
    )
    return ChosenFigures(scores, usd, tokens)


def best_single_worker(train: Matrix) -> int:
    """Return the worker with the highest accuracy; a tie goes to the first."""
    return int(np.argmax(train.mean_scores()))


ORACLE_RULE = (
    "oracle-router knows every verdict: it asks the cheapest among the best scorers of a question, "
    "and the cheapest worker where nobody scores"
)


def oracle_choices(matrix: Matrix) -> Choices:
    """Return the cheapest among the best scorers of each question; the first where prices tie.

    Where nobody scores all are best, so the cheapest is asked. An unknown price counts as the
    dearest: the scores are the same, and the dollars of its row are unknown.
    """
    return best_workers(matrix.scores, matrix.usd)


def count_unanswered(matrix: Matrix) -> int:
    """Return how many questions nobody scores on."""
    return int((matrix.scores.max(axis=1) <= 0).sum())


# § Every system on every held-out question: routers refitted for each fold, and the anchors.
# §
# § A question is judged once, by a router that did not see it. A sweep over the willingness
# § to pay
# § gives each router a frontier, a list of points, where all dollars are known. Fitting is
# § done in
# § memory and nothing of it is kept, so a matrix that must not be published can be judged on.


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
RowKind = Literal["router", "anchor", "single"]


@dataclass(frozen=True, slots=True)
class EvaluatedSystem:
    """One system on all judged questions, in the order of `Judgement.questions`."""

    system: str
    kind: RowKind
    figures: ChosenFigures
    chosen: Choices | None
    """None for a mixture of workers."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """What a router comes to at one willingness, in US dollars per right answer; None: no limit."""

    willingness: float | None
    score: float
    usd: float


@dataclass(frozen=True, slots=True)
class RouterEvaluation:
    """All systems on one split."""

    questions: tuple[str, ...]
    rows: tuple[EvaluatedSystem, ...]
    frontiers: Mapping[str, tuple[SweepPoint, ...]]
    """By router; empty where dollars are unknown."""
    refits: int
    """How often something was fitted: routers times folds."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RouterField:
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


def evaluate_routers(matrix: Matrix, split: Split, contest: RouterField) -> RouterEvaluation:
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
            choices.put(router.name, fold, choose_workers(expected))
            for willingness in ladder:
                chosen = choose_workers(expected, willingness)
                choices.swept(router.name, willingness, fold, chosen)
    judged = np.sort(np.concatenate([fold.test for fold in split.folds]))
    exam = matrix.rows(judged)
    at = {name: chosen[judged] for name, chosen in choices.by_system.items()}
    sweeps = {key: chosen[judged] for key, chosen in choices.sweeps.items()}
    names = [router.name for router in contest.routers]
    return RouterEvaluation(
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
    yield BEST_SINGLE, best_single_worker(train)
    if priced:  # some unknown price leaves open who is the cheapest
        usd = train.mean_usd()
        yield "cheapest-single", int(np.argmin(usd))
        yield "priciest-single", int(np.argmax(usd))


def _estimates(
    contest: RouterField, train: Matrix, test: Matrix
) -> Iterator[tuple[Router, Estimates]]:
    if contest.embedder is None:
        return
    fitted = contest.embedder.fit([asked.text for asked in train.questions])
    taught, asked = (
        contest.embedder.embed(fitted, [one.text for one in part.questions])
        for part in (train, test)
    )
    for router in contest.routers:
        learnt = router.fit(training_examples(train, taught), contest.seed)
        yield router, router.estimate(learnt, asked)


def _rows(
    exam: Matrix, at: Mapping[str, Choices], routers: Sequence[str]
) -> Iterator[EvaluatedSystem]:
    yield EvaluatedSystem(
        BEST_SINGLE,
        "anchor",
        chosen_figures(exam, at[BEST_SINGLE]),
        at[BEST_SINGLE],
        _chosen_note(exam, at),
    )
    for name in routers:
        yield EvaluatedSystem(name, "router", chosen_figures(exam, at[name]), at[name])
    yield EvaluatedSystem(
        "random-worker", "anchor", random_figures(exam), None, "its expected value, no draw"
    )
    for name in ("cheapest-single", "priciest-single"):
        if name in at:
            yield EvaluatedSystem(name, "anchor", chosen_figures(exam, at[name]), at[name])
    hindsight = np.full(len(exam.questions), best_single_worker(exam))
    yield EvaluatedSystem(
        HINDSIGHT,
        "anchor",
        chosen_figures(exam, hindsight),
        hindsight,
        "chosen on the questions it is judged on",
    )
    knows = oracle_choices(exam)
    yield EvaluatedSystem(
        ORACLE, "anchor", chosen_figures(exam, knows), knows, "looks at every verdict"
    )
    for worker, name in enumerate(exam.workers):
        always = np.full(len(exam.questions), worker)
        yield EvaluatedSystem(f"single:{name}", "single", chosen_figures(exam, always), always)


def _chosen_note(exam: Matrix, at: Mapping[str, Choices]) -> str:
    chosen: list[int] = at[BEST_SINGLE].tolist()
    names = [exam.workers[worker] for worker in dict.fromkeys(chosen)]
    return f"chosen on what teaches: {', '.join(names)}"


def _frontier(
    exam: Matrix, name: str, free: Choices, sweeps: Mapping[tuple[str, float], Choices]
) -> tuple[SweepPoint, ...]:
    """Return the points of a router, by rising willingness; equal neighbours are one point."""
    swept = [(willing, chosen) for (router, willing), chosen in sweeps.items() if router == name]
    points: list[SweepPoint] = []
    for willingness, chosen in [*swept, (None, free)]:
        figures = chosen_figures(exam, chosen)
        point = SweepPoint(willingness, float(figures.scores.mean()), float(figures.usd.mean()))
        if points and (points[-1].score, points[-1].usd) == (point.score, point.usd):
            points.pop()
        points.append(point)
    return tuple(points)


def _notes(matrix: Matrix, exam: Matrix, at: Mapping[str, Choices]) -> tuple[str, ...]:
    nobody = count_unanswered(exam)
    several = (SEVERAL,) if np.ptp(at[BEST_SINGLE]) else ()
    rule = f"{ORACLE_RULE} (so on {nobody} of {len(exam.questions)} questions)."
    return (*several, *matrix.notes, rule)
