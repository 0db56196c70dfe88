"""Kinds of question, told by words alone, and what the cards of workers have in common with them.

TF-IDF over word stems, k-means over questions. A kind's affinity to a worker is how much its
questions' words are in that worker's card. No target, no topic and no reply is looked at, so this
is what a warm start may know. Not here: plans (corpus.py).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import (  # pyright: ignore[reportMissingTypeStubs]
    kmeans2,  # pyright: ignore[reportUnknownVariableType]
)

Floats = NDArray[np.float64]

STEM = 6
"""Letters of a word that count: so `divisors` and `divisor` are one, without a stemmer."""
MOST_COMMON = 0.3
"""A stem in more than this share of the questions is form ("give your answer"), not content."""

EVERYWHERE = {"that", "what", "with", "into", "above", "down", "from", "some", "this", "each"}
ASKING = {"which", "does", "have", "their", "them", "than", "needs", "needed"}
GENERIC = frozenset(EVERYWHERE | ASKING | {"question", "answer", "final"})
"""Words that say nothing about who should do what."""

_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Kinds:
    """How questions are told apart."""

    stems: dict[str, int]
    weights: Floats
    """(stems,): inverse document frequencies."""
    centres: Floats
    """(kinds, stems)."""

    def of(self, text: str) -> int:
        """Return the kind of a question: the nearest centre."""
        vector = _vector(text, self.stems, self.weights)
        return int(np.argmin(((self.centres - vector) ** 2).sum(axis=1)))

    def affinities(self, card: str) -> Floats:
        """Return (kinds,): the cosine of each kind's centre and a worker's card, 0 or more."""
        return np.asarray(self.centres @ _vector(card, self.stems, self.weights), dtype=np.float64)


def overlaps(text: str, others: Sequence[str]) -> Floats:
    """Return (others,): how much of a text each other one shares; zeros where nobody shares any.

    A stem weighs the more, the fewer of the others have it.

    >>> overlaps("look up facts", ["Looks up facts.", "Knows no facts.", "Writes code."]).argmax()
    np.int64(0)
    """
    wanted = set(_stems(text))
    held = [set(_stems(one)) for one in others]
    count = {stem: sum(stem in one for one in held) for stem in wanted}
    rare = {stem: 1.0 / times for stem, times in count.items() if times}
    return np.array([sum(rare.get(stem, 0.0) for stem in wanted & one) for one in held])


def told_apart(texts: Sequence[str], count: int, seed: int) -> Kinds:
    """Return `count` kinds of the questions, fewer where there are fewer questions."""
    counts = Counter(stem for text in texts for stem in set(_stems(text)))
    most = max(1.0, MOST_COMMON * len(texts))
    kept = sorted(stem for stem, times in counts.items() if times <= most)
    if not kept:  # nothing tells them apart: they are of one kind
        return Kinds({}, np.zeros(0), np.zeros((1, 0)))
    index = {stem: at for at, stem in enumerate(kept)}
    weights = np.array([1.0 + np.log((1 + len(texts)) / (1 + counts[one])) for one in kept])
    vectors = np.array([_vector(text, index, weights) for text in texts])
    wanted = min(count, len(np.unique(vectors, axis=0)))
    centres, _ = kmeans2(vectors, wanted, minit="++", rng=seed)
    return Kinds(index, weights, np.asarray(centres, dtype=np.float64))


def _stems(text: str) -> list[str]:
    return [word[:STEM] for word in _WORD.findall(text.lower()) if word not in GENERIC]


def _vector(text: str, index: dict[str, int], weights: Floats) -> Floats:
    """Return (stems,) of length 1: sublinear counts times weights; zeros where no stem is known."""
    vector = np.zeros(len(index))
    for stem in _stems(text):
        if stem in index:
            vector[index[stem]] += 1.0
    vector = np.log1p(vector) * weights
    length = float(np.sqrt((vector**2).sum()))
    return vector / length if length else vector
