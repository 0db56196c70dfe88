"""Parts of a router: an embedder, an estimator of scores and dollars, and the decision rule."""

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

TIE = 1e-9  # utilities closer than this are equal: summation order changes the last bits


class Embedder(Protocol):
    """Turns texts into vectors. A router works only with the embedder it was trained with."""

    @property
    def name(self) -> str:
        """Return the embedder's name in artefacts, e.g. `tfidf`."""
        ...

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return arrays fitted to the train texts; empty if the embedder needs no fit."""
        ...

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return vectors (texts, dimensions) of norm 1, or all zero; equal texts, equal vectors."""
        ...


@dataclass(frozen=True, slots=True)
class Examples:
    """Training data of a router: row i of each array is the same question."""

    embeddings: Floats  # (questions, dimensions)
    scores: Floats  # (questions, workers), 0 to 1; NaN: not measured, ignored
    usd: Floats  # (questions, workers), cost of one call; NaN: unknown


@dataclass(frozen=True, slots=True)
class Estimates:
    """A router's predictions: expected score and dollars of each worker on each question."""

    score: Floats
    """(questions, workers), expected score; NaN for a worker without data."""
    usd: Floats  # (questions, workers), expected dollars of one call; NaN if unknown


class Router(Protocol):
    """A method that learns which worker to ask; its fields hold settings, not learned values."""

    @property
    def name(self) -> str:
        """Return the router's name in tables, e.g. `router-knn`."""
        ...

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the learned arrays; the same examples and seed give the same bits."""
        ...

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return predictions for new questions, from the arrays that `fit` returned."""
        ...


def training_examples(matrix: Matrix, embeddings: Floats) -> Examples:
    """Return a router's training data; UserError if the matrix has no known score."""
    if not matrix.questions or np.isnan(matrix.scores).all():
        raise UserError(
            f"{matrix.name}: no train question has a score, so routers cannot learn. Use graded "
            "train questions; in podium route, name another split or source."
        )
    if len(embeddings) != len(matrix.questions):
        raise ValueError(f"{len(embeddings)} embeddings of {len(matrix.questions)} questions")
    return Examples(embeddings, matrix.scores, matrix.usd)


def choose_workers(estimates: Estimates, willingness: float | None = None) -> Choices:
    """Return, per question, the worker with the highest score - usd / willingness.

    `willingness` is in dollars per right answer: what one would pay to turn a score of 0 into 1.
    None (or infinity) ignores prices, except for ties: these go to the cheaper worker (an unknown
    price counts as the dearest), then to the earlier in pool order. (RouterBench, arXiv 2403.12031:
    performance * willingness - cost has the same maximum.) UserError if a needed price is unknown.
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
    """Return each question's worker of highest utility; ties go to the cheaper, then the first."""
    if np.isnan(utility).all(axis=1).any():
        raise UserError("A router knows no worker's score. Train it on graded questions.")
    tied = utility >= np.nanmax(utility, axis=1, keepdims=True) - TIE  # False for NaN
    price = np.where(np.isnan(usd), np.inf, usd)
    cheapest = np.where(tied, price, np.inf).min(axis=1, keepdims=True)
    return np.argmax(tied & (price <= cheapest), axis=1)


TERMS = 1024  # TF-IDF keeps this many most frequent terms: our choice, to keep fits short


def unit_rows(rows: Floats) -> tuple[Floats, Floats]:
    """Return rows scaled to norm 1, and the norms before scaling (1 for a row of zeros)."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    safe = np.where(lengths > 0, lengths, 1.0)
    return rows / safe, safe


@dataclass(frozen=True, slots=True)
class TfIdf:
    """TF-IDF of words: log-scaled counts times inverse document frequency (scikit-learn)."""

    name: str = "tfidf"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return terms and inverse document frequencies; UserError if the texts have no word."""
        vectorizer = _vectorizer(max_features=TERMS)
        try:
            vectorizer.fit(list(texts))
        except ValueError as error:
            raise UserError(
                f"TF-IDF found no word in the train questions: {error}. Use `podium route "
                "--embedder wordllama`."
            ) from None
        terms = vectorizer.get_feature_names_out()
        return {
            "terms": np.array([str(term) for term in terms]),
            "idf": np.asarray(vectorizer.idf_, dtype=np.float64),
        }

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return vectors (texts, terms); a text without known terms gives zeros."""
        terms = [str(term) for term in fitted["terms"]]
        vectorizer = _vectorizer(vocabulary=terms)
        vectorizer.idf_ = np.asarray(fitted["idf"], dtype=np.float64)
        return np.asarray(vectorizer.transform(list(texts)).toarray(), dtype=np.float64)


def _vectorizer(**settings: Any) -> Any:
    from sklearn.feature_extraction import text  # pyright: ignore[reportMissingTypeStubs]

    return text.TfidfVectorizer(sublinear_tf=True, **settings)


@dataclass(frozen=True, slots=True)
class WordLlama:
    """Mean of the 256-dimensional token vectors in the package `wordllama` (MIT)."""

    name: str = "wordllama"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return only the package's version: the word vectors are already trained."""
        import_extra("wordllama", "embeddings")
        return {"version": np.array(version("wordllama"))}

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return vectors (texts, 256); embeds texts singly, as batches could change the result."""
        model = _wordllama()
        rows = [model.embed([text or " "])[0] for text in texts]
        return unit_rows(np.nan_to_num(np.array(rows, dtype=np.float64).reshape(len(rows), -1)))[0]


@cache
def _wordllama() -> Any:
    """Load WordLlama from its package's folder, so that it downloads no weights."""
    package = import_extra("wordllama", "embeddings")
    folder = Path(str(package.__file__)).parent
    return package.WordLlama.load(cache_dir=folder, disable_download=True)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"tfidf": TfIdf, "wordllama": WordLlama}
"""Embedder classes by their names in artefacts. Add your own embedder here."""


def load_embedder(name: str) -> Embedder:
    """Return the embedder called `name`; UserError if there is none."""
    if name not in EMBEDDERS:
        raise no_such("embedder", name, EMBEDDERS, "there are ")
    return EMBEDDERS[name]()
