"""The parts of a router: text to vectors, vectors to scores and dollars, one decision rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from podium.baselines.common import import_extra
from podium.harness.errors import UserError, no_such
from podium.harness.learning import Arrays, Floats, Matrix

Choices = NDArray[np.intp]  # (questions,), the index of the chosen worker in the matrix's order

TIE = 1e-9  # utilities closer than this are equal: the order of a sum moves its last bits


class Embedder(Protocol):
    """Text to vectors. An artefact names its embedder, and works with no other."""

    @property
    def name(self) -> str:
        """Return its name in artefacts, e.g. `tfidf`."""
        ...

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return what it fits on the train texts; empty if nothing."""
        ...

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return (texts, dimensions), each row of length 1 or all zero. Deterministic."""
        ...


@dataclass(frozen=True, slots=True)
class Examples:
    """What a router learns from: row i of each is the same question."""

    embeddings: Floats  # (questions, dimensions)
    scores: Floats  # (questions, workers), 0 to 1; NaN was not measured and is ignored
    usd: Floats  # (questions, workers) of one call; NaN is unknown


@dataclass(frozen=True, slots=True)
class Estimates:
    """A router's expectation for each worker on each question."""

    score: Floats
    """(questions, workers), expected score; NaN for a worker without data."""
    usd: Floats  # (questions, workers), expected dollars of one call; NaN if unknown


class Router(Protocol):
    """A way to learn which worker to ask. Frozen: its fields are its settings."""

    @property
    def name(self) -> str:
        """Return its name in tables, e.g. `router-knn`."""
        ...

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return its fitted arrays: the same examples and seed give the same bits."""
        ...

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return its expectation on new questions, from the result of `fit`."""
        ...


def training_examples(matrix: Matrix, embeddings: Floats) -> Examples:
    """Return the examples of a train matrix; UserError if it has no score at all."""
    if not matrix.questions or np.isnan(matrix.scores).all():
        raise UserError(f"{matrix.name}: there is no score to learn from. Give graded questions.")
    if len(embeddings) != len(matrix.questions):
        raise ValueError(f"{len(embeddings)} embeddings of {len(matrix.questions)} questions")
    return Examples(embeddings, matrix.scores, matrix.usd)


def choose_workers(estimates: Estimates, willingness: float | None = None) -> Choices:
    """Return, per question, the worker with the highest score - usd / willingness.

    `willingness` is in dollars per right answer: what one would pay to turn a score of 0 into 1.
    None (or infinity) looks at scores alone. Ties go to the cheaper, then to the earlier in pool
    order; an unknown price counts as the dearest among ties. (RouterBench, arXiv 2403.12031:
    performance * willingness - cost has the same maximum.) UserError if a price that counts is
    unknown.
    """
    score, usd = estimates.score, estimates.usd
    if willingness is None or willingness == float("inf"):
        return best_workers(score, usd)
    if not willingness > 0:
        raise UserError(
            f"A willingness, in dollars per right answer, must be above 0, not {willingness}."
        )
    if np.isnan(usd[~np.isnan(score)]).any():
        raise UserError(
            "Some worker has no known price, so scores cannot be weighed against dollars. Omit "
            "the willingness, or give every worker a price."
        )
    return best_workers(score - usd / willingness, usd)


def best_workers(utility: Floats, usd: Floats) -> Choices:
    """Return the index of each row's highest value; ties to the cheaper, then to the earlier."""
    if np.isnan(utility).all(axis=1).any():
        raise UserError("A router knows no worker's score. Train it on graded questions.")
    tied = utility >= np.nanmax(utility, axis=1, keepdims=True) - TIE  # False for NaN
    price = np.where(np.isnan(usd), np.inf, usd)
    cheapest = np.where(tied, price, np.inf).min(axis=1, keepdims=True)
    return np.argmax(tied & (price <= cheapest), axis=1)


TERMS = 1024  # the most frequent terms, which TF-IDF keeps: our choice, to keep fits short


def unit_rows(rows: Floats) -> tuple[Floats, Floats]:
    """Return rows of length 1, and the lengths they had (1 for a row of zeros)."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    safe = np.where(lengths > 0, lengths, 1.0)
    return rows / safe, safe


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Words: sublinear counts times inverse document frequency (scikit-learn)."""

    name: str = "tfidf"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return the terms and their weights; UserError if the texts hold no word."""
        vectorizer = _vectorizer(max_features=TERMS)
        try:
            vectorizer.fit(list(texts))
        except ValueError as error:
            raise UserError(f"TF-IDF found no word in the train questions: {error}.") from None
        terms = vectorizer.get_feature_names_out()
        return {
            "terms": np.array([str(term) for term in terms]),
            "idf": np.asarray(vectorizer.idf_, dtype=np.float64),
        }

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return (texts, terms); a text of unknown words is all zero."""
        terms = [str(term) for term in fitted["terms"]]
        vectorizer = _vectorizer(vocabulary=terms)
        vectorizer.idf_ = np.asarray(fitted["idf"], dtype=np.float64)
        return np.asarray(vectorizer.transform(list(texts)).toarray(), dtype=np.float64)


def _vectorizer(**settings: Any) -> Any:
    from sklearn.feature_extraction import text  # pyright: ignore[reportMissingTypeStubs]

    return text.TfidfVectorizer(sublinear_tf=True, **settings)


@dataclass(frozen=True, slots=True)
class WordLlama:
    """Mean of 256-dimensional token vectors that the package `wordllama` brings along (MIT)."""

    name: str = "wordllama"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return nothing: it was trained by its authors. Its version goes along."""
        import_extra("wordllama", "embeddings")
        return {"version": np.array(version("wordllama"))}

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return (texts, 256), each text by itself, so that no batch changes it."""
        model = _wordllama()
        rows = [model.embed([text or " "])[0] for text in texts]
        return unit_rows(np.nan_to_num(np.array(rows, dtype=np.float64).reshape(len(rows), -1)))[0]


@cache
def _wordllama() -> Any:
    """Return the embedder, from its own folder: it must not look for weights on a network."""
    package = import_extra("wordllama", "embeddings")
    folder = Path(str(package.__file__)).parent
    return package.WordLlama.load(cache_dir=folder, disable_download=True)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"tfidf": TfIdf, "wordllama": WordLlama}
"""By name as in artefacts. Add an embedder here before an artefact that names it is read."""


def load_embedder(name: str) -> Embedder:
    """Return an embedder by name; a UserError lists the known ones."""
    if name not in EMBEDDERS:
        raise no_such("embedder", name, EMBEDDERS, "there are ")
    return EMBEDDERS[name]()
