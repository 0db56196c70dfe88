"""From a matrix to an artefact and back: what was learnt, from which rows, with which embedder.

Not here: how a router learns (a file each), where artefacts lie and who trains (harness/run/entries.py,
harness/cli/train.py).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from baselines.routing.cluster import ClusterRouter
from baselines.routing.contrastive import ContrastiveRouter
from baselines.routing.embedders import TfIdf, embedder
from baselines.routing.factors import FactorsRouter
from baselines.routing.knn import KnnRouter
from baselines.routing.logistic import LogisticRouter
from baselines.routing.mlp import MlpRouter
from baselines.routing.router import Embedder, Estimates, Router, examples
from harness.errors import UserError
from harness.learning.fit import Arrays, Artifact, ArtifactSource
from harness.learning.matrix import Floats, Matrix
from harness.rewards.splits import question_digest

ROUTERS: Mapping[str, Callable[..., Router]] = {
    "router-knn": KnnRouter,
    "router-cluster": ClusterRouter,
    "router-logistic": LogisticRouter,
    "router-mlp": MlpRouter,
    "router-mf": FactorsRouter,
    "router-contrastive": ContrastiveRouter,
}
"""By name as in tables; called without arguments for the defaults."""

_OF_EMBEDDER = "embedder/"
_OF_ROUTER = "router/"


@dataclass(frozen=True, slots=True)
class Policy:
    """A trained router, ready to be asked."""

    learned: Artifact
    router: Router
    embedder: Embedder

    def estimate(self, texts: Sequence[str]) -> Estimates:
        """Return what it expects of each worker, in the order of `learned.about.workers`."""
        vectors = self.embedder.embed(_part(self.learned.arrays, _OF_EMBEDDER), texts)
        return self.router.estimate(_part(self.learned.arrays, _OF_ROUTER), vectors)


def train(
    router: Router, matrix: Matrix, seed: int = 0, with_embedder: Embedder | None = None
) -> Artifact:
    """Return what a router learns from a train matrix; the same bytes for the same matrix and seed.

    UserError when a question's text or every score is unknown, when there is too little to learn
    from, when an extra is absent, and for a matrix that must not be published: an artefact holds
    words of its questions.
    """
    used = with_embedder or TfIdf()
    if not matrix.publishable:
        raise UserError(
            f"{matrix.name} must not be published, and an artefact would hold words of its "
            f"questions: judge routers on it without saving any."
        )
    texts = texts_of(matrix)
    reading = used.fit(texts)
    fitted = router.fit(examples(matrix, used.embed(reading, texts)), seed)
    about = ArtifactSource(
        system=router.name,
        rows_sha256=rows_sha256(matrix),
        suites=(matrix.name,),
        questions=tuple(question_digest(text) for text in texts),
        workers=matrix.workers,
        embedder=used.name,
        calls=int((~np.isnan(matrix.scores)).sum()) * matrix.draws,
        settings={"seed": seed, **settings_of(router)},
    )
    return Artifact(about, {**_named(_OF_EMBEDDER, reading), **_named(_OF_ROUTER, fitted)})


def policy(learned: Artifact, wanted: str = "") -> Policy:
    """Return a trained router from its artefact.

    UserError when it is no router's, needs an embedder that is absent or is not the `wanted` one,
    or lacks what its router needs.
    """
    about = learned.about
    if wanted and wanted != about.embedder:
        raise UserError(
            f"This {about.system} was trained on {about.embedder!r} embeddings; with {wanted!r} "
            f"it must be trained anew."
        )
    if about.system not in ROUTERS:
        raise UserError(f"{about.system} is no router; routers are {', '.join(ROUTERS)}.")
    settings = {name: value for name, value in (about.settings or {}).items() if name != "seed"}
    try:
        made = Policy(learned, ROUTERS[about.system](**settings), embedder(about.embedder))
        expected = made.estimate(["?"])
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError(
            f"This artefact of {about.system} is damaged ({error}): train anew."
        ) from None
    if (
        expected.score.shape != (1, len(about.workers))
        or expected.usd.shape != expected.score.shape
    ):
        raise UserError(f"This artefact of {about.system} is damaged: train anew.")
    return made


def texts_of(matrix: Matrix) -> list[str]:
    """Return the questions' texts; UserError when one is unknown."""
    lacking = sum(not asked.text.strip() for asked in matrix.questions)
    if lacking:
        raise UserError(
            f"{matrix.name}: {lacking} of {len(matrix.questions)} questions have no text, and a "
            f"router reads nothing else."
        )
    return [asked.text for asked in matrix.questions]


def settings_of(router: Router) -> dict[str, Any]:
    """Return a router's hyperparameters, as its constructor takes them."""
    fields: dict[str, Any] = asdict(router)  # pyright: ignore[reportArgumentType] - all are dataclasses
    return {name: value for name, value in fields.items() if name != "name"}


def rows_sha256(matrix: Matrix) -> str:
    """Return the digest of a matrix's ids, workers, scores and costs."""
    digest = hashlib.sha256("\n".join((*matrix.workers, "")).encode())
    for at, asked in enumerate(matrix.questions):
        row: tuple[Floats, Floats] = (matrix.scores[at], matrix.usd[at])
        digest.update(f"{asked.id} {[part.tolist() for part in row]!r}\n".encode())
    return digest.hexdigest()


def _named(prefix: str, arrays: Arrays) -> dict[str, Any]:
    return {f"{prefix}{name}": values for name, values in arrays.items()}


def _part(arrays: Arrays, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
