"""maj@k of k-epoch logs: what the most frequent answer would have got, without one more call."""

from typing import Any

from harness.sittings import Sitting
from reports.intervals import Values, accuracy
from reports.stats.tries import maj_at

FEWEST = 3
"""Of one or two tries the majority is one of them."""


def majority(sitting: Sitting, k: int | None = None) -> tuple[int, Values] | None:
    """Return k and question -> expected grade of the majority of k tries; all epochs for no k.

    A question with fewer than k graded tries is left out. None where k is below 3, above the
    epochs, or where no answer that could be compared was logged.
    """
    k = sitting.epochs if k is None else k
    if not FEWEST <= k <= sitting.epochs:
        return None
    tries: dict[str, list[tuple[str | None, float]]] = {}
    for one in sitting.attempts:
        if one.value is not None:
            tries.setdefault(one.question, []).append((one.vote, one.value))
    whole = {question: made for question, made in tries.items() if len(made) >= k}
    if not any(vote for made in whole.values() for vote, _ in made):
        return None
    return k, {
        question: [maj_at([vote for vote, _ in made], [value for _, value in made], k)]
        for question, made in whole.items()
    }


def majority_columns(sitting: Sitting, k: int | None) -> dict[str, Any]:
    """Return a row's columns on the majority of its tries; none where it has none."""
    found = majority(sitting, k)
    return {} if found is None else {"maj_k": found[0], "maj_accuracy": accuracy(found[1])}
