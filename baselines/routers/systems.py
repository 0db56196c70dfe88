"""Routers as systems: trained on a matrix, kept as an artefact, asked whom to ask."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from inspect_ai.solver import Solver

from baselines.common import add_prefix, refuse_unfit, registered, strip_prefix
from baselines.routers import (
    Embedder,
    Estimates,
    Router,
    TfIdf,
    choose_workers,
    load_embedder,
    training_examples,
)
from baselines.routers.contrastive import ContrastiveRouter
from baselines.routers.models import (
    ClusterRouter,
    FactorsRouter,
    KnnRouter,
    LogisticRouter,
    MlpRouter,
)
from baselines.single import ONE_CALL, alone
from harness.errors import UserError
from harness.learning import Artifact, ArtifactSource, Floats, Matrix, read_artifact
from harness.pool import Pool
from harness.records import Question
from harness.rewards.splits import question_digest
from harness.system import System, SystemCard, planned
from harness.workflow import Workflow

ROUTERS: Mapping[str, Callable[..., Router]] = {
    "router-knn": KnnRouter,
    "router-cluster": ClusterRouter,
    "router-logistic": LogisticRouter,
    "router-mlp": MlpRouter,
    "router-mf": FactorsRouter,
    "router-contrastive": ContrastiveRouter,
}
"""By name as in tables; called without arguments for the defaults."""

_OF_EMBEDDER, _OF_ROUTER = "embedder/", "router/"  # whose arrays, in an artefact


@dataclass(frozen=True, slots=True)
class TrainedRouter:
    """A trained router, ready to be asked."""

    learned: Artifact
    router: Router
    embedder: Embedder

    def estimate(self, texts: Sequence[str]) -> Estimates:
        """Return what it expects of each worker, in the order of `learned.about.workers`."""
        vectors = self.embedder.embed(strip_prefix(_OF_EMBEDDER, self.learned.arrays), texts)
        return self.router.estimate(strip_prefix(_OF_ROUTER, self.learned.arrays), vectors)


def train_router(
    router: Router, matrix: Matrix, seed: int = 0, with_embedder: Embedder | None = None
) -> Artifact:
    """Return what a router learns from a train matrix; the same bytes for the same matrix and seed.

    UserError for too little to learn from and for a matrix that must not be published.
    """
    used = with_embedder or TfIdf()
    if not matrix.publishable:
        raise UserError(
            f"{matrix.name} must not be published, and an artefact would hold words of its "
            f"questions: judge routers on it without saving any."
        )
    settings: dict[str, Any] = asdict(router)  # pyright: ignore[reportArgumentType] - all are dataclasses
    del settings["name"]
    texts = question_texts(matrix)
    reading = used.fit(texts)
    fitted = router.fit(training_examples(matrix, used.embed(reading, texts)), seed)
    about = ArtifactSource(
        system=router.name,
        rows_sha256=rows_sha256(matrix),
        suites=(matrix.name,),
        questions=tuple(question_digest(text) for text in texts),
        workers=matrix.workers,
        embedder=used.name,
        calls=int((~np.isnan(matrix.scores)).sum()) * matrix.draws,
        settings={"seed": seed, **settings},
    )
    return Artifact(about, {**add_prefix(_OF_EMBEDDER, reading), **add_prefix(_OF_ROUTER, fitted)})


def load_router(learned: Artifact) -> TrainedRouter:
    """Return a trained router; UserError when it is damaged or its embedder is absent."""
    about = learned.about
    if about.system not in ROUTERS:
        raise UserError(f"{about.system} is no router; routers are {', '.join(ROUTERS)}.")
    settings = {name: value for name, value in (about.settings or {}).items() if name != "seed"}
    try:
        router = ROUTERS[about.system](**settings)
        made = TrainedRouter(learned, router, load_embedder(about.embedder))
        expected = made.estimate(["?"])
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        said = f"This artefact of {about.system} is damaged ({error}): train anew."
        raise UserError(said) from None
    if not expected.score.shape == expected.usd.shape == (1, len(about.workers)):
        raise UserError(f"This artefact of {about.system} is damaged: train anew.")
    return made


def question_texts(matrix: Matrix) -> list[str]:
    """Return the questions' texts; UserError when one is unknown."""
    if lacking := sum(not asked.text.strip() for asked in matrix.questions):
        raise UserError(
            f"{matrix.name}: {lacking} of {len(matrix.questions)} questions have no text, and a "
            f"router reads nothing else."
        )
    return [asked.text for asked in matrix.questions]


def rows_sha256(matrix: Matrix) -> str:
    """Return the digest of a matrix's ids, workers, scores and costs."""
    digest = hashlib.sha256("\n".join((*matrix.workers, "")).encode())
    for at, asked in enumerate(matrix.questions):
        row: tuple[Floats, Floats] = (matrix.scores[at], matrix.usd[at])
        digest.update(f"{asked.id} {[part.tolist() for part in row]!r}\n".encode())
    return digest.hexdigest()


_EMBEDDING = (
    "reads questions by TF-IDF (1,024 terms), unless trained with another embedder, and not by its "
    "authors' neural embeddings"
)
_DOLLARS = "expects of each worker its mean dollars on the train split, whatever the question"
_HELD_OUT = "its state is chosen on a held-out fifth of the train split"


def _card(name: str, summary: str, source: str, *deviations: str) -> SystemCard:
    return SystemCard(
        name=name,
        solver=f"baselines/{name.replace('-', '_')}",
        summary=summary,
        source=source,
        calls="1",
        expected=ONE_CALL,
        needs=frozenset({"train"}),
        learn=lambda matrix, seed: train_router(ROUTERS[name](), matrix, seed),
        group="routers",
        recorded=True,
        deviations=(_EMBEDDING, *deviations),
    )


ROUTER_CARDS = (
    _card(
        "router-knn",
        "Asks the worker that did best on the nearest train questions.",
        "Hu et al. 2024 (RouterBench), arXiv 2403.12031",
        "40 neighbours, or a fifth of the train split where that is less; theirs were 5 to 40 of "
        "thousands",
        "weighs scores against the neighbours' mean dollars, not against price per token",
    ),
    _card(
        "router-cluster",
        "Asks the worker that did best in the nearest cluster of train questions.",
        "Zhang et al. 2025 (Avengers-Pro), arXiv 2508.12631, as in LLMRouterBench",
        "32 clusters, or a twentieth of the train split where that is less",
        "money is weighed by one willingness to pay for all clusters; the authors' alpha, which "
        "scales accuracy and cost within each cluster, is a setting for training",
    ),
    _card(
        "router-logistic",
        "Asks the worker most likely to be right, by one logistic regression per worker.",
        "after the classifier of Ong et al. 2024 (RouteLLM), arXiv 2406.18665",
        "a linear head per worker on frozen embeddings, not a fine-tuned BERT for two workers",
        _DOLLARS,
    ),
    _card(
        "router-mlp",
        "Asks the worker of which a small neural network expects the highest score.",
        "Hu et al. 2024 (RouterBench), arXiv 2403.12031",
        "one network with an output per worker, not a network per worker",
        f"{_HELD_OUT}, not by its training loss",
        _DOLLARS,
    ),
    _card(
        "router-mf",
        "Asks the worker most likely to be right, by matrix factorisation.",
        "Ong et al. 2024 (RouteLLM), arXiv 2406.18665; Zhuang et al. 2024 (EmbedLLM), arXiv "
        "2410.02223",
        "learns whether each of n workers is right, not which of two was preferred",
        "steps of 0.003, at most 1500; RouteLLM's 0.0003 for 100 epochs is for far more labels",
        _HELD_OUT,
        _DOLLARS,
    ),
    _card(
        "router-contrastive",
        "Asks the worker whose learned vector is nearest to the encoded question.",
        "Chen et al. 2024 (RouterDC), arXiv 2409.19886",
        "encodes by a linear map of frozen embeddings, not by a fine-tuned mDeBERTa",
        "contrasts samples by cluster (8, by k-means on embeddings) with weight 1 and not by task, "
        "as the released script does",
        f"{_HELD_OUT}; the released script chooses on test questions",
        "equal scores are put in a random order at every step",
        "cosines are turned into chances on the train split, in the same order",
        _DOLLARS,
    ),
)


def router_system(learned: Artifact, willingness: float | None = None) -> System:
    """Return the system that asks the worker its router chooses, by score - usd / `willingness`.

    UserError, before any question, for what cannot be loaded and for an unknown price that counts.
    """
    trained = load_router(learned)
    choose_workers(trained.estimate(["?"]), willingness)

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool, question)
        chosen = choose_workers(trained.estimate([question.text]), willingness)
        return alone(learned.about.workers[int(chosen[0])])

    return planned(plan)


def _router(name: str) -> Callable[..., Solver]:
    def router(
        learned: str | None = None, sha256: str | None = None, willingness: float | None = None
    ) -> System:
        """Ask the worker that the router in the file `learned` chooses."""
        return router_system(read_artifact(learned, name, sha256), willingness)

    return registered(router, name.replace("-", "_"))


router_knn, router_cluster, router_logistic, router_mlp, router_mf, router_contrastive = map(
    _router, ROUTERS
)
