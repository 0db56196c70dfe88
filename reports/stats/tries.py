"""Several tries at a question: pass@k (one of k is right) and maj@k (the answer of most is right).

Both are expectations over k tries drawn without replacement from the n that were made, so they are
unbiased and use every try. pass@1 and maj@1 are the accuracy.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from math import comb

import numpy as np

from reports.stats.arrays import SEED

EXACT = 2_000
"""Up to so many subsets are all counted; above that as many are drawn."""


def pass_at(n: int, right: int, k: int) -> float:
    """Return the chance that k of n tries, drawn without replacement, hold one of `right` ones.

    1 - C(n - right, k) / C(n, k): Chen et al. 2021, arXiv 2107.03374, equation 1.

    >>> pass_at(10, 1, 5), pass_at(10, 6, 5), pass_at(10, 0, 10)
    (0.5, 1.0, 0.0)
    """
    return 1 - comb(n - right, k) / comb(n, k)


def maj_at(
    answers: Sequence[Hashable | None], values: Sequence[float], k: int, seed: int = SEED
) -> float:
    """Return the expected grade of the answer that most of k tries give.

    `answers` need only be equal where they mean the same; None is no answer and has no vote. Of
    answers with equally many votes each wins equally often. A try's grade in `values` goes with
    its answer; where all k tries have no answer the grade is 0. ValueError for k above the tries.
    """
    n = len(answers)
    if not 1 <= k <= n:
        raise ValueError(f"maj@{k} needs {k} tries, and there are {n}")
    names: dict[Hashable, int] = {}
    codes = np.array([-1 if one is None else names.setdefault(one, len(names)) for one in answers])
    if not names:
        return 0.0
    grades = np.array([np.mean([v for v, c in zip(values, codes, strict=True) if c == at])
                       for at in range(len(names))])  # fmt: skip
    if comb(n, k) <= EXACT:
        picks = np.array(list(combinations(range(n), k)))
    else:
        rng = np.random.default_rng(seed)
        picks = rng.permuted(np.tile(np.arange(n), (EXACT, 1)), axis=1)[:, :k]
    chosen = codes[picks]
    votes = (chosen[:, :, None] == np.arange(len(names))).sum(axis=1)
    most = votes.max(axis=1, keepdims=True)
    wins = (votes == most) & (most > 0)
    shares = wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)
    return float((shares @ grades).mean())
