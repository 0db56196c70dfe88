"""What each learned router says about itself; how one learns when `podium run` trains it."""

from collections.abc import Callable
from typing import Final

from baselines.routing.learning import ROUTERS, train
from harness.learning.fit import Artifact
from harness.learning.matrix import Matrix
from harness.system import SystemCard, exactly

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
        return train(ROUTERS[name](), matrix, seed)

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

MANIFESTS = (KNN, CLUSTER, LOGISTIC, MLP, FACTORS, CONTRASTIVE)
