"""Kinds (clusters) of train questions, found without labels and without storing their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from podium.harness.learning import Arrays, Floats, MatrixQuestion, one_thread
from podium.harness.records import Kind, Question

FORMS = ("value", "choice", "program")
"""Forms of an answer: a value or text, the letter of an option, or a program."""
_FORM_OF: Mapping[Kind, int] = {"integer": 0, "text": 0, "choice": 1, "program": 2}

Labels = NDArray[np.int64]
HASHED = 512  # size of the hash vectors of words: a trained system stores no words
MOST_KINDS = 3  # maximum kinds per suite and answer form
LEAST_QUESTIONS = 12  # minimum mean questions per kind
STARTS = 4  # initialisations of k-means


@dataclass(frozen=True, slots=True)
class TrainKinds:
    """Kinds (clusters) of questions: each kind's centre of hashed words, and form of answers."""

    centres: Floats  # (kinds, HASHED)
    forms: Labels  # (kinds,), index into FORMS
    lengths: Floats  # (kinds,), mean characters of a question

    def __len__(self) -> int:
        """Return the number of kinds."""
        return len(self.forms)

    def of(self, questions: Sequence[Question | MatrixQuestion]) -> Labels:
        """Return the index of each question's nearest kind, of the same answer form if possible."""
        vectors = _hashed([question.text for question in questions])
        far = (self.centres**2).sum(axis=1)[None, :] - 2 * vectors @ self.centres.T
        own_forms = np.array([form_of(question.kind) for question in questions])
        mismatch = self.forms[None, :] != own_forms[:, None]
        mismatch &= np.isin(own_forms, self.forms)[:, None]
        return np.argmin(np.where(mismatch, np.inf, far), axis=1).astype(np.int64)

    def arrays(self) -> Arrays:
        """Return the kinds as arrays, to store with a trained system."""
        return {"centres": self.centres, "forms": self.forms, "lengths": self.lengths}


def find_kinds(
    questions: Sequence[Question | MatrixQuestion], sources: Sequence[str], seed: int
) -> TrainKinds:
    """Return the kinds of some train questions: k-means (Lloyd 1982) in each suite and answer form.

    `sources` has each question's suite. The kind of a new question is found without its suite.
    """
    # The import takes most of a second, and few commands need it.
    from sklearn.cluster import KMeans  # pyright: ignore[reportMissingTypeStubs]

    vectors = _hashed([question.text for question in questions])
    lengths = np.array([float(len(question.text)) for question in questions])
    forms, centres, sizes = list[int](), list[Floats](), list[float]()
    groups = [(source, form_of(q.kind)) for source, q in zip(sources, questions, strict=True)]
    for group in sorted(set(groups)):
        rows = np.flatnonzero([pair == group for pair in groups])
        different = len(np.unique(vectors[rows], axis=0))
        count = max(1, min(MOST_KINDS, len(rows) // LEAST_QUESTIONS, different))
        with one_thread():
            means: Any = KMeans(n_clusters=count, n_init=cast(Any, STARTS), random_state=seed)
            labels = means.fit_predict(vectors[rows])
        centres += list(np.asarray(means.cluster_centers_, dtype=np.float64))
        forms += [group[1]] * count
        sizes += [float(lengths[rows[labels == label]].mean()) for label in range(count)]
    return TrainKinds(np.array(centres), np.array(forms), np.array(sizes))


def form_of(kind: Kind) -> int:
    """Return the index in `FORMS` of the form of answers of kind `kind`, e.g. `choice`."""
    return _FORM_OF[kind]


def _hashed(texts: Sequence[str]) -> Floats:
    """Return a vector of norm 1 for each text's hashed words; zeros for a text without words."""
    from sklearn.feature_extraction.text import (  # pyright: ignore[reportMissingTypeStubs]
        HashingVectorizer,
    )

    vectorizer: Any = HashingVectorizer(
        n_features=HASHED, stop_words="english", alternate_sign=False, binary=True
    )
    return np.asarray(vectorizer.transform(list(texts)).toarray(), dtype=np.float64)
