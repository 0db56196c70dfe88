"""Text to vectors without a network: TF-IDF, and a word embedder whose weights come with it.

Another embedder is any object with `name`, `fit` and `embed` (router.py), put into `EMBEDDERS`.
scikit-learn and wordllama are extras and imported only where they are used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from baselines.extras import needed
from baselines.routing.router import Embedder
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats

TERMS = 1024
"""Most terms that TF-IDF keeps, the most frequent ones: a choice of ours, to keep fits short."""


def unit(rows: Floats) -> Floats:
    """Return the rows scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Words: sublinear counts times inverse document frequency (scikit-learn)."""

    name: str = "tfidf"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return the terms and their weights; UserError when the texts hold no word."""
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
    sklearn = needed("sklearn.feature_extraction.text", "routers")
    return sklearn.TfidfVectorizer(sublinear_tf=True, **settings)


@dataclass(frozen=True, slots=True)
class WordLlama:
    """Mean of 256-dimensional token vectors that the package `wordllama` brings along (MIT)."""

    name: str = "wordllama"

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return nothing: it was trained by its authors. Its version goes along."""
        needed("wordllama", "embeddings")
        return {"version": np.array(version("wordllama"))}

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return (texts, 256), each text by itself, so that no batch changes it."""
        model = _wordllama()
        rows = [model.embed([text or " "])[0] for text in texts]
        return unit(np.nan_to_num(np.array(rows, dtype=np.float64).reshape(len(rows), -1)))


@cache
def _wordllama() -> Any:
    """Return the embedder, from its own folder: it must not look for weights on a network."""
    package = needed("wordllama", "embeddings")
    folder = Path(str(package.__file__)).parent
    return package.WordLlama.load(cache_dir=folder, disable_download=True)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"tfidf": TfIdf, "wordllama": WordLlama}
"""By name as in artefacts. Add another one here before an artefact that names it is read."""


def embedder(name: str) -> Embedder:
    """Return an embedder by name; UserError names those there are."""
    if name not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise UserError(f"There is no embedder {name!r}; there are {known}.")
    return EMBEDDERS[name]()
