"""Rows that cost no call: what logs say of systems that did not sit the exam themselves.

`self-consistency(maj@k of single:W)` votes over the epochs of one worker; `oracle-router*` gives
each question to the worker that it suits best, with its answer known: a bound, and no method.
Derived rows are marked, stand apart, and change no other row's verdict.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from harness.sittings import Sitting
from reports.intervals import Difference, Values, accuracy, accuracy_interval, adjusted, difference
from reports.joint import Arrays, arrays_of
from reports.majority import majority
from reports.reference import SINGLE, graded_values
from reports.row import Row
from reports.stats.arrays import Floats
from reports.tables import Pair, against
from reports.wanted import Wanted

ORACLE_ROUTER = "oracle-router*"
ROUTED = (
    "each question to the single worker with the highest mean grade; of equal ones the cheapest, "
    "also where nobody is right"
)
KEPT = (
    "suite", "suite_version", "label", "pool", "data_revision", "price_book",
    "box", "split", "dates", "seed", "time_scale", "prompt", "pool_sha256", "price_book_sha256",
    "price_book_date", "auditable", "box_python", "box_image", "box_image_id", "box_packages",
)  # fmt: skip
"""What a derived row shares with the row that it is made from."""


def derived_rows(block: Sequence[Pair], wanted: Wanted) -> list[Row]:
    """Return the derived rows of one block, held against its reference as the others are."""
    singles = [
        (row, sitting) for row, sitting in block
        if row.system.startswith(SINGLE) and not row.uses_targets
    ]  # fmt: skip
    made = [one for row, sitting in singles if (one := _vote(row, sitting, wanted.maj))]
    routed = _routed(singles)
    return [_held(block, row, values) for row, values in (*made, *([routed] if routed else []))]


def _held(block: Sequence[Pair], row: Row, values: Values) -> Row:
    """Compare a derived row; its p-value is adjusted as one more comparison beside the others."""
    reference = next((pair for pair in block if pair[0].verdict == "reference"), None)
    if reference is None:
        return row
    others = [other.p_value for other, _ in block if other.p_value is not None]
    found = difference(values, graded_values(reference[1]))
    if found is None:
        return row
    family: list[Difference | None] = [found, *(replace(found, p_value=p) for p in others)]
    return against(row, adjusted(family)[0], (reference[0].system, reference[0].reference_rule))


def _vote(row: Row, sitting: Sitting, k: int | None) -> tuple[Row, Values] | None:
    """Return a worker's majority of k tries: k calls of it at k times its cost."""
    found = majority(sitting, k)
    if found is None:
        return None
    tries, values = found
    kind = {one.kind for one in sitting.attempts}
    weak = "; programs vote by identical text" if "program" in kind else ""
    made = _figures(_blank(row), values)
    return replace(
        made,
        system=f"self-consistency(maj@{tries} of {row.system})",
        derived=f"from {row.epochs} epochs of {row.system}: every {tries} of them, ties shared",
        notes=f"derived, no call of its own{weak}",
        usd_per_query=None if row.usd_per_query is None else tries * row.usd_per_query,
        **{
            name: None if (value := getattr(row, name)) is None else tries * value
            for name in ("tokens_in", "tokens_out", "worker_tokens_out", "tokens_reasoning")
        },
        calls=float(tries),
        steps=float(tries),
        depth=1.0,
        maj_k=tries,
        maj_accuracy=made.accuracy,
        uses_targets=False,
    ), values


def _routed(singles: Sequence[Pair]) -> tuple[Row, Values] | None:
    """Return the oracle router over the questions that every single worker was graded on."""
    if len(singles) < 2:
        return None
    block = arrays_of([sitting for _, sitting in singles])
    whole = np.asarray(~np.isnan(block.scores).any(axis=1), dtype=np.bool_)
    if not whole.any():
        return None
    scores, costs = block.scores[whole], _costs(block)[whole]
    best = scores.max(axis=1, keepdims=True)
    chosen = np.where(scores == best, costs, np.inf).argmin(axis=1)
    taken = _taken(scores, chosen)
    names = [name for name, kept in zip(block.questions, whole.tolist(), strict=True) if kept]
    values = {name: [one] for name, one in zip(names, taken.tolist(), strict=True)}
    usd, tokens = _taken(block.usd[whole], chosen), _taken(block.tokens[whole], chosen)
    nobody = int((taken == 0).sum())
    asked = "1 question" if nobody == 1 else f"{nobody} questions"
    row = _figures(_blank(singles[0][0]), values)
    unit = "dollars" if not np.isnan(block.usd).all(axis=0).any() else "output tokens"
    return replace(
        row,
        system=ORACLE_ROUTER,
        knowledge_cutoff="; ".join(filter(None, (one.knowledge_cutoff for one, _ in singles))),
        derived=f"from {len(singles)} single workers: {ROUTED} (in {unit})",
        notes=f"uses targets; derived, no call of its own; nobody right on {asked}, "
        "billed at the cheapest worker",
        usd_per_query=None if np.isnan(usd).any() else Decimal(str(round(float(usd.mean()), 12))),
        tokens_out=None if np.isnan(tokens).any() else float(tokens.mean()),
        calls=1.0,
        steps=1.0,
        depth=1.0,
        uses_targets=True,
    ), values


def _costs(block: Arrays) -> Floats:
    """Return what ties go by: dollars where all workers have prices, else output tokens."""
    unpriced = np.isnan(block.usd).all(axis=0).any()
    return np.nan_to_num(block.tokens if unpriced else block.usd, nan=np.inf)


def _taken(values: Floats, chosen: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    return np.take_along_axis(values, chosen[:, None], axis=1)[:, 0]


def _blank(row: Row) -> Row:
    """Return a row of the same exam and pool that says nothing of a system yet."""
    kept = {name: getattr(row, name) for name in KEPT}
    empty: dict[str, Any] = {
        "system": "", "n_asked": 0, "n_graded": 0, "epochs": 1, "n_unparsed": 0, "config": "",
        "knowledge_cutoff": row.knowledge_cutoff, "args": "", "uses_targets": False, "notes": "",
        "reference_allowed": False,
    }  # fmt: skip
    return Row(**kept, **empty)


def _figures(row: Row, values: Values) -> Row:
    found = accuracy_interval(values)
    return replace(
        row,
        n_asked=len(values),
        n_graded=len(values),
        accuracy=accuracy(values),
        ci_low=found and found.low,
        ci_high=found and found.high,
    )
