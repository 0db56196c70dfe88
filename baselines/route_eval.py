"""Evaluate routers on recorded grades: splits, reference rows, a sweep of willingness to pay."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from podium.baselines.routers import (
    Choices,
    Embedder,
    Router,
    best_workers,
    choose_workers,
    load_embedder,
    training_examples,
)
from podium.baselines.routers.router_systems import ROUTERS
from podium.harness.errors import UserError, no_such
from podium.harness.learning import (
    MEASURED,
    Floats,
    FrontierPoint,
    Matrix,
    MatrixQuestion,
    RouteComparison,
    RoutedSystem,
    RouteKind,
)
from podium.harness.rewards.splits import question_digest
from podium.harness.text import pluralise

Rows = NDArray[np.intp]
FORMS = "date:SHARE, share:SHARE, folds:K, folds:K:group or declared"


@dataclass(frozen=True, slots=True)
class Fold:
    """Indices of questions in a grade matrix: some to train on, others to evaluate on."""

    train: Rows
    test: Rows


@dataclass(frozen=True, slots=True)
class Split:
    """One or more folds of a grade matrix; no question is evaluated in two folds."""

    name: str  # a description for tables, e.g. `the last 30 % by date`
    folds: tuple[Fold, ...]
    notes: tuple[str, ...] = ()


def split_matrix(matrix: Matrix, rule: str, seed: int, *, drop_shared: bool = False) -> Split:
    """Split a matrix's questions by a rule: `date:0.3`, `share:0.5`, `folds:5`, `declared`.

    Train questions that equal a test question raise UserError; with `drop_shared` they are omitted.
    """
    kind, _, text = rule.partition(":")
    count, _, unit = text.partition(":")
    if kind in ("date", "share"):
        split = split_by_share(matrix, text, seed, by_date=kind == "date")
    elif kind == "folds" and unit in ("", "group"):
        if not count.isdecimal():
            raise UserError(f"{rule!r} has no number of folds. Write e.g. folds:5.")
        split = split_in_folds(matrix, int(count), seed, by_group=bool(unit))
    elif rule == "declared":
        split = split_declared(matrix)
    else:
        raise UserError(f"There is no split {rule!r}. Use {FORMS}.")
    return _without_shared(matrix, split, drop_shared=drop_shared)


def split_by_share(matrix: Matrix, text: str, seed: int, *, by_date: bool) -> Split:
    """Return a split that tests on a share of the questions (rounded up): random, or the latest."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        rule = f"{'date' if by_date else 'share'}:{text}"
        raise UserError(f"{rule!r}: a share must be between 0 and 1, e.g. date:0.3.")
    days = [(question.date, question.id) for question in matrix.questions]
    if by_date and (undated := sum(not day for day, _ in days)):
        raise UserError(f"{matrix.name}: {undated} questions have no date. Split by folds:5.")
    n = len(days)
    limit, test = math.ceil(n * share - 1e-9), list[int]()
    if by_date:
        order = [[index] for index in sorted(range(n), key=days.__getitem__)]
    else:
        order = _units(map(question_key, matrix.questions))
        Random(f"share/{seed}").shuffle(order)
    while order and len(test) < limit:
        test += order.pop()
    train = [index for unit in order for index in unit]
    if not train or not test:
        raise UserError(
            f"{matrix.name}: {n} questions cannot be split at a share of {share:g}. Use a share "
            "nearer to 0.5."
        )
    if not by_date:
        name = f"{100 * share:g} % drawn with seed {seed}, trained on the other {len(train)}"
        return Split(name, (Fold(np.array(sorted(train)), np.array(sorted(test))),))
    earliest, cut, latest = (days[index][0] for index in (train[0], test[-1], test[0]))
    name = f"the last {100 * share:g} % by date ({cut} to {latest}), trained on {len(train)}"
    return Split(f"{name} from {earliest} on", (Fold(np.array(train), np.array(test[::-1])),))


def split_in_folds(matrix: Matrix, k: int, seed: int, *, by_group: bool = False) -> Split:
    """Return a split of k folds; equal questions, or with `by_group` whole groups, share a fold."""
    order = _units(q.group if by_group else question_key(q) for q in matrix.questions)
    if not 2 <= k <= len(order):
        available = pluralise(len(order), "group" if by_group else "different question")
        few = "Use a source with at least two"
        fix = {0: few, 1: few, 2: "Use 2 folds"}.get(len(order), f"Use 2 to {len(order)} folds")
        raise UserError(f"{matrix.name}: {k} folds cannot be made of {available}. {fix}.")
    Random(f"folds/{seed}").shuffle(order)
    order.sort(key=len, reverse=True)  # stable: units of equal size stay shuffled
    folds: list[list[int]] = [[] for _ in range(k)]
    for unit in order:
        min(folds, key=len).extend(unit)
    every = np.arange(len(matrix.questions))
    splits = (Fold(np.setdiff1d(every, fold), np.array(sorted(fold))) for fold in folds)
    grouped = " by group" if by_group else ""
    return Split(f"{k} folds{grouped}, seed {seed}, each question judged once", tuple(splits))


def _units(keys: Iterable[str]) -> list[list[int]]:
    units = defaultdict[str, list[int]](list)
    for index, key in enumerate(keys):
        units[key].append(index)
    return list(units.values())


def split_declared(matrix: Matrix) -> Split:
    """Return the split that the matrix's source declares; UserError if it declares none."""
    train, test = (
        np.array([i for i, q in enumerate(matrix.questions) if q.split == side])
        for side in ("train", "eval")
    )
    if not (len(train) and len(test)):
        raise UserError(f"{matrix.name} declares no train and eval questions. Split by folds:5.")
    name = f"as declared by its source: {len(train)} train and {len(test)} test questions"
    return Split(name, (Fold(train, test),))


def question_key(question: MatrixQuestion) -> str:
    """Return a key that equal questions share: a digest of the text; the id if there is no text."""
    return question_digest(question.text) if question.text else question.id


def _without_shared(matrix: Matrix, split: Split, *, drop_shared: bool) -> Split:
    keys = [question_key(question) for question in matrix.questions]
    ids = [question.id for question in matrix.questions]
    folds: list[Fold] = []
    dropped = 0
    for fold in split.folds:
        judged: list[int] = fold.test.tolist()
        test_keys = {keys[i] for i in judged} | {ids[i] for i in judged}
        shared = [i for i in fold.train.tolist() if keys[i] in test_keys or ids[i] in test_keys]
        if shared and not drop_shared:
            same = ", ".join(ids[i] for i in judged if keys[i] == keys[shared[0]])
            raise UserError(
                f"{matrix.name}: {pluralise(len(shared), 'question')} would be both train and test "
                f"questions, first {ids[shared[0]]}, which equals {same}. Leave them out of the "
                "train questions with --drop-shared."
            )
        dropped += len(shared)
        folds.append(Fold(np.setdiff1d(fold.train, shared), fold.test) if shared else fold)
    if not dropped:
        return split
    note = (
        f"{pluralise(dropped, 'train question')} left out: also judged, under this or another id."
    )
    return Split(split.name, tuple(folds), (*split.notes, note))


def best_single_worker(train: Matrix) -> int:
    """Return the index of the worker with the highest mean score; a tie goes to the first."""
    return int(np.argmax(train.mean_scores()))


ORACLE_RULE = (
    "oracle-router knows every verdict: it asks the cheapest among the best scorers of a question, "
    "and the cheapest worker if no worker scores"
)


BEST_SINGLE = "best-single"
HINDSIGHT = f"{BEST_SINGLE} (hindsight)"
ORACLE = "oracle-router"
SEVERAL = (
    "best-single is not the same worker in all folds. Among near-equal workers, the one chosen on "
    "the other folds tends to be worse on the judged fold, so this reference is slightly too low "
    "and depends on the seed: read the hindsight row too, and try other seeds."
)
STEPS = 25
"""Number of values of willingness to pay in a sweep: from a tenth of the cheapest worker's mean
dollars to 1000 times the dearest worker's."""


Asked = tuple[str, float | None]  # system, willingness to pay (None: ignores prices)


@dataclass(frozen=True, slots=True)
class RouterField:
    """The routers to evaluate, and the embedder and seed that they share."""

    routers: Sequence[Router]
    embedder: Embedder | None  # None when there is no router
    seed: int = 0


def choose_routers(matrix: Matrix, names: Sequence[str], embedder: str, seed: int) -> RouterField:
    """Return the named routers; without names, all, or none if a question has no text."""
    if unknown := [name for name in names if name not in ROUTERS]:
        raise no_such("router", unknown[0], ROUTERS, "there are: ")
    if not _has_texts(matrix):
        if names:
            raise UserError(
                f"{matrix.name}: some questions have no text, which routers need. `podium "
                "route --list` says how to get the texts; or leave --router out."
            )
        return RouterField((), None, seed)
    routers = [ROUTERS[name]() for name in dict.fromkeys(names or ROUTERS)]
    return RouterField(routers, load_embedder(embedder), seed)


def _has_texts(matrix: Matrix) -> bool:
    return all(question.text.strip() for question in matrix.questions)


def evaluate_routers(matrix: Matrix, split: Split, field: RouterField) -> RouteComparison:
    """Evaluate routers and reference rows; UserError if a matrix lacks a score or a fit fails."""
    if np.isnan(matrix.scores).any():
        raise UserError(f"{matrix.name}: some scores are unknown. Pass `matrix.whole()` instead.")
    priced = not np.isnan(matrix.usd).any()
    ladder = _ladder(matrix.rows(split.folds[0].train)) if priced else None
    # Chosen workers by system and willingness, for all questions; filled fold by fold.
    choices = defaultdict[Asked, Choices](lambda: np.zeros(len(matrix.questions), np.intp))
    for fold in split.folds:
        for key, picked in _choices(field, matrix.rows(fold.train), matrix.rows(fold.test), ladder):
            choices[key][fold.test] = picked
    judged = np.sort(np.concatenate([fold.test for fold in split.folds]))
    evaluated = matrix.rows(judged)
    chosen = {key: workers[judged] for key, workers in choices.items()}
    picks = {name: workers for (name, price), workers in chosen.items() if price is None}
    names = [router.name for router in field.routers]
    return RouteComparison(
        name=matrix.name,
        source=matrix.source,
        label=matrix.label,
        split=split.name,
        workers=len(matrix.workers),
        questions=tuple(question.id for question in evaluated.questions),
        draws=matrix.draws,
        seed=field.seed,
        embedder=field.embedder.name if field.embedder else "",
        refits=len(names) * len(split.folds),
        reference=BEST_SINGLE,
        hindsight=HINDSIGHT,
        oracle=ORACLE,
        systems=tuple(_rows(evaluated, picks, names)),
        frontiers={
            name: _frontier(evaluated, {step: chosen[name, step] for step in (*ladder, None)})
            for name in names
            if ladder
        },
        notes=(*split.notes, *_notes(matrix, evaluated, picks)),
        clusters=tuple(f"{q.group} {q.date}".strip() for q in evaluated.questions),
    )


def _choices(
    field: RouterField, train: Matrix, test: Matrix, ladder: Sequence[float] | None
) -> Iterator[tuple[Asked, Choices | int]]:
    """Train the routers; yield each system's chosen workers, per willingness to pay."""
    yield (BEST_SINGLE, None), best_single_worker(train)
    if ladder is not None:
        yield ("cheapest-single", None), int(np.argmin(train.mean_usd()))
        yield ("priciest-single", None), int(np.argmax(train.mean_usd()))
    if field.embedder is None:
        return
    fitted = field.embedder.fit([question.text for question in train.questions])
    taught, tested = (
        field.embedder.embed(fitted, [q.text for q in half.questions]) for half in (train, test)
    )
    for router in field.routers:
        learnt = router.fit(training_examples(train, taught), field.seed)
        expected = router.estimate(learnt, tested)
        for willingness in (None, *(ladder or ())):
            yield (router.name, willingness), choose_workers(expected, willingness)


def _ladder(train: Matrix) -> list[float]:
    """Return the sweep's values of willingness to pay, in dollars; empty if some worker is free."""
    usd = train.mean_usd()
    if not usd.min() > 0:
        return []
    steps: Floats = np.geomspace(float(usd.min()) / 10, float(usd.max()) * 1000, STEPS)
    return steps.tolist()


def _rows(
    evaluated: Matrix, picks: Mapping[str, Choices], routers: Sequence[str]
) -> Iterator[RoutedSystem]:
    measured: dict[str, Floats] = {name: getattr(evaluated, name) for name in MEASURED}
    best = picks[BEST_SINGLE]

    def row(system: str, kind: RouteKind, chosen: Choices, note: str = "") -> RoutedSystem:
        cell, elsewhere = (np.arange(len(chosen)), chosen), float((chosen != best).mean())
        figures = {name: values[cell] for name, values in measured.items()}
        return RoutedSystem(system, kind, **figures, elsewhere=elsewhere, note=note)

    taught: list[int] = best.tolist()
    names = ", ".join(evaluated.workers[worker] for worker in dict.fromkeys(taught))
    yield row(BEST_SINGLE, "anchor", best, f"chosen on train questions: {names}")
    for name in routers:
        yield row(name, "router", picks[name])
    means = {name: values.mean(axis=1) for name, values in measured.items()}
    note = "expected value, not a draw"
    yield RoutedSystem("random-worker", "anchor", **means, elsewhere=None, note=note)
    for name in ("cheapest-single", "priciest-single"):
        if name in picks:
            yield row(name, "anchor", picks[name])
    hindsight = np.full(len(evaluated.questions), best_single_worker(evaluated))
    yield row(HINDSIGHT, "anchor", hindsight, "chosen on the questions it is judged on")
    yield row(
        ORACLE, "anchor", best_workers(evaluated.scores, evaluated.usd), "looks at every verdict"
    )
    for worker, name in enumerate(evaluated.workers):
        yield row(f"single:{name}", "single", np.full(len(evaluated.questions), worker))


def _frontier(
    evaluated: Matrix, sweep: Mapping[float | None, Choices]
) -> tuple[FrontierPoint, ...]:
    """Return a router's mean score and dollars as willingness to pay rises; merges equal points."""
    points: list[FrontierPoint] = []
    for willingness, chosen in sweep.items():
        cell = np.arange(len(chosen)), chosen
        score, usd = float(evaluated.scores[cell].mean()), float(evaluated.usd[cell].mean())
        if points and (points[-1].score, points[-1].usd) == (score, usd):
            points.pop()
        points.append(FrontierPoint(willingness, score, usd))
    return tuple(points)


def _notes(matrix: Matrix, evaluated: Matrix, picks: Mapping[str, Choices]) -> tuple[str, ...]:
    nobody = int((evaluated.scores.max(axis=1) <= 0).sum())
    several = (SEVERAL,) if np.ptp(picks[BEST_SINGLE]) else ()
    rule = f"{ORACLE_RULE} (so on {nobody} of {len(evaluated.questions)} questions)."
    omitted = f"Left out: {', '.join(ROUTERS)}; they need texts, and some questions have none."
    unread = () if _has_texts(matrix) else (omitted,)
    return (*several, *matrix.notes, *unread, rule)
