"""Which questions teach and which are judged: by date, drawn, or as the source declares.

Nothing that is judged has taught, neither under its id nor under another one: questions whose texts
differ in form only (harness/rewards/splits.py) are one question here. Not here: whether a paraphrase
is the same question; nobody looks for that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.learning.matrix import Matrix, MatrixQuestion
from harness.rewards.splits import question_digest
from harness.text import pluralise

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


def split_of(matrix: Matrix, how: str, seed: int, *, drop_shared: bool = False) -> Split:
    """Return the split that `how` names: `date:0.3`, `share:0.5`, `folds:5`, ... or `declared`.

    UserError for another word, for a split that a matrix does not allow, and when a question would
    teach and be judged; `drop_shared` leaves those out of what teaches, which a note says.
    """
    kind, _, rest = how.partition(":")
    if kind == "date":
        found = by_date(matrix, _share(rest, how))
    elif kind == "share":
        found = drawn(matrix, _share(rest, how), seed)
    elif kind == "folds":
        count, _, unit = rest.partition(":")
        if unit not in ("", "group"):
            raise UserError(f"There is no split {how!r}: name {FORMS}.")
        found = in_folds(matrix, _count(count, how), seed, by_group=bool(unit))
    elif how == "declared":
        found = declared(matrix)
    else:
        raise UserError(f"There is no split {how!r}: name {FORMS}.")
    return _without_shared(matrix, found, drop_shared=drop_shared)


def by_date(matrix: Matrix, share: float) -> Split:
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


def drawn(matrix: Matrix, share: float, seed: int) -> Split:
    """Return the split that judges a share of the questions, drawn once; equal ones together.

    For what is too dear to learn anew in every fold. UserError when a side would be empty.
    """
    n = len(matrix.questions)
    units: dict[str, list[int]] = {}
    for at, asked in enumerate(matrix.questions):
        units.setdefault(key_of(asked), []).append(at)
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


def in_folds(matrix: Matrix, k: int, seed: int, *, by_group: bool = False) -> Split:
    """Return k folds: each question is judged once, by who has learnt from the other folds.

    What belongs together stays in one fold: equal questions, or with `by_group` all of a group.
    """
    units: dict[str, list[int]] = {}
    for at, asked in enumerate(matrix.questions):
        units.setdefault(asked.group if by_group else key_of(asked), []).append(at)
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


def declared(matrix: Matrix) -> Split:
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


def key_of(asked: MatrixQuestion) -> str:
    """Return what is equal for equal questions: a digest of the text, or the id without one."""
    return question_digest(asked.text) if asked.text else asked.id


def _without_shared(matrix: Matrix, split: Split, *, drop_shared: bool) -> Split:
    keys = [key_of(asked) for asked in matrix.questions]
    folds: list[Fold] = []
    dropped = 0
    for fold in split.folds:
        shared = _shared(matrix.questions, keys, fold)
        if shared and not drop_shared:
            raise UserError(_said(matrix, keys, fold, shared))
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


def _said(matrix: Matrix, keys: Sequence[str], fold: Fold, shared: Sequence[int]) -> str:
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
