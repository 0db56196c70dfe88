"""Routers as systems: trained on a matrix, kept as an artefact, asked whom to ask."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.routers.contrastive import ContrastiveRouter
from baselines.routers.models import (
    ClusterRouter,
    FactorsRouter,
    KnnRouter,
    LogisticRouter,
    MlpRouter,
)
from baselines.routers.router import (
    Embedder,
    Estimates,
    Router,
    TfIdf,
    choose_workers,
    load_embedder,
    training_examples,
)
from baselines.single import alone
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Arrays,
    Artifact,
    ArtifactSource,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats, Matrix
from harness.pool import Pool
from harness.records import Question
from harness.rewards.splits import question_digest
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import Workflow

# § From a matrix to an artefact and back: what was learnt, from which rows, with which
# § embedder.
# §
# § Not here: how a router learns (a file each), where artefacts lie and who trains
# § (harness/run/entries.py,
# § harness/cli/train.py).


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
class TrainedRouter:
    """A trained router, ready to be asked."""

    learned: Artifact
    router: Router
    embedder: Embedder

    def estimate(self, texts: Sequence[str]) -> Estimates:
        """Return what it expects of each worker, in the order of `learned.about.workers`."""
        vectors = self.embedder.embed(_part(self.learned.arrays, _OF_EMBEDDER), texts)
        return self.router.estimate(_part(self.learned.arrays, _OF_ROUTER), vectors)


def train_router(
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
        settings={"seed": seed, **settings_of(router)},
    )
    return Artifact(about, {**_prefixed(_OF_EMBEDDER, reading), **_prefixed(_OF_ROUTER, fitted)})


def load_router(learned: Artifact, wanted: str = "") -> TrainedRouter:
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
        made = TrainedRouter(
            learned, ROUTERS[about.system](**settings), load_embedder(about.embedder)
        )
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


def question_texts(matrix: Matrix) -> list[str]:
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


def _prefixed(prefix: str, arrays: Arrays) -> dict[str, Any]:
    return {f"{prefix}{name}": values for name, values in arrays.items()}


def _part(arrays: Arrays, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }


# § What each learned router says about itself; how one learns when `podium run` trains it.


_EMBEDDING: Final = (
    "reads questions by TF-IDF (1,024 terms), unless trained with another embedder, and not by its "
    "authors' neural embeddings"
)
_DOLLARS: Final = (
    "expects of each worker its mean dollars on the train split, whatever the question"
)
_HELD_OUT: Final = "its state is chosen on a held-out fifth of the train split"


def _learn(name: str) -> Callable[[Matrix, int], Artifact]:
    def learn(matrix: Matrix, seed: int) -> Artifact:
        return train_router(ROUTERS[name](), matrix, seed)

    return learn


def _router(name: str, summary: str, source: str, deviations: tuple[str, ...]) -> SystemCard:
    return SystemCard(
        name=name,
        solver=f"baselines/{name.replace('-', '_')}",
        summary=summary,
        source=source,
        calls="1",
        expected=exactly(lambda n, args: 1),
        needs=frozenset({"train"}),
        extra="routers",
        modules=("sklearn",),
        learn=_learn(name),
        group="routers",
        recorded=True,
        deviations=(_EMBEDDING, *deviations),
    )


KNN = _router(
    "router-knn",
    "Asks the worker that did best on the nearest train questions.",
    "Hu et al. 2024 (RouterBench), arXiv 2403.12031",
    (
        "40 neighbours, or a fifth of the train split where that is less; theirs were 5 to 40 of "
        "thousands",
        "weighs scores against the neighbours' mean dollars, not against price per token",
    ),
)
CLUSTER = _router(
    "router-cluster",
    "Asks the worker that did best in the nearest cluster of train questions.",
    "Zhang et al. 2025 (Avengers-Pro), arXiv 2508.12631, as in LLMRouterBench",
    (
        "32 clusters, or a twentieth of the train split where that is less",
        "money is weighed by one willingness to pay for all clusters; the authors' alpha, which "
        "scales accuracy and cost within each cluster, is a setting for training",
    ),
)
LOGISTIC = _router(
    "router-logistic",
    "Asks the worker most likely to be right, by one logistic regression per worker.",
    "after the classifier of Ong et al. 2024 (RouteLLM), arXiv 2406.18665",
    (
        "a linear head per worker on frozen embeddings, not a fine-tuned BERT for two workers",
        _DOLLARS,
    ),
)
MLP = _router(
    "router-mlp",
    "Asks the worker of which a small neural network expects the highest score.",
    "Hu et al. 2024 (RouterBench), arXiv 2403.12031",
    (
        "one network with an output per worker, not a network per worker",
        f"{_HELD_OUT}, not by its training loss",
        _DOLLARS,
    ),
)
FACTORS = _router(
    "router-mf",
    "Asks the worker most likely to be right, by matrix factorisation.",
    "Ong et al. 2024 (RouteLLM), arXiv 2406.18665; Zhuang et al. 2024 (EmbedLLM), arXiv 2410.02223",
    (
        "learns whether each of n workers is right, not which of two was preferred",
        "steps of 0.003, at most 1500; RouteLLM's 0.0003 for 100 epochs is for far more labels",
        _HELD_OUT,
        _DOLLARS,
    ),
)
CONTRASTIVE = _router(
    "router-contrastive",
    "Asks the worker whose learned vector is nearest to the encoded question.",
    "Chen et al. 2024 (RouterDC), arXiv 2409.19886",
    (
        "encodes by a linear map of frozen embeddings, not by a fine-tuned mDeBERTa",
        "contrasts samples by cluster (8, by k-means on embeddings) with weight 1 and not by task, "
        "as the released script does",
        f"{_HELD_OUT}; the released script chooses on test questions",
        "equal scores are put in a random order at every step",
        "cosines are turned into chances on the train split, in the same order",
        _DOLLARS,
    ),
)

ROUTER_CARDS = (KNN, CLUSTER, LOGISTIC, MLP, FACTORS, CONTRASTIVE)


# § Trained routers as systems: one question, one worker, its canonical request.
# §
# § Embedding and routing run on this machine and call nobody. Not here: training
# § (learning.py).


def router_system(learned: Artifact, willingness: float | None = None) -> System:
    """Return the system that asks the worker its router chooses.

    `willingness` is in dollars per right answer (router.py); None looks at scores alone. UserError,
    before any question, when the artefact is damaged, its embedder is absent, or a willingness is
    given and some worker has no known price.
    """
    trained = load_router(learned)
    workers, taught = learned.about.workers, frozenset(learned.about.questions)
    choose_workers(trained.estimate(["?"]), willingness)

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_other_workers(learned, pool.workers)
        if question_digest(question.text) in taught:
            raise UserError(
                f"{learned.about.system} was taught by {question.id}, so it cannot be examined by "
                f"it: train it on other questions."
            )
        chosen = choose_workers(trained.estimate([question.text]), willingness)
        return alone(workers[int(chosen[0])])

    return planned(plan)


@solver
def router_knn(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker that did best on the nearest train questions."""
    artefact = read_artifact(learned, "router-knn", sha256)
    return as_solver(router_system(artefact, willingness), pool)


@solver
def router_cluster(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker that did best in the nearest cluster of train questions."""
    artefact = read_artifact(learned, "router-cluster", sha256)
    return as_solver(router_system(artefact, willingness), pool)


@solver
def router_logistic(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker most likely to be right, by logistic regression."""
    artefact = read_artifact(learned, "router-logistic", sha256)
    return as_solver(router_system(artefact, willingness), pool)


@solver
def router_mlp(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker of which a small neural network expects the highest score."""
    artefact = read_artifact(learned, "router-mlp", sha256)
    return as_solver(router_system(artefact, willingness), pool)


@solver
def router_mf(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker most likely to be right, by matrix factorisation."""
    artefact = read_artifact(learned, "router-mf", sha256)
    return as_solver(router_system(artefact, willingness), pool)


@solver
def router_contrastive(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker whose learned vector is nearest to the encoded question."""
    artefact = read_artifact(learned, "router-contrastive", sha256)
    return as_solver(router_system(artefact, willingness), pool)
