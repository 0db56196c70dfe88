"""Routers as systems: trained on a grade matrix and stored as artefacts, or a prompted model."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from inspect_ai.model import ChatMessageUser

from podium.baselines.common import (
    add_prefix,
    register,
    register_learner,
    strip_prefix,
)
from podium.baselines.routers import (
    Embedder,
    Estimates,
    Router,
    TfIdf,
    choose_workers,
    load_embedder,
    training_examples,
)
from podium.baselines.routers.learners import (
    ClusterRouter,
    ContrastiveRouter,
    FactorsRouter,
    KnnRouter,
    LogisticRouter,
    MlpRouter,
)
from podium.baselines.single import ONE_CALL, alone
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.learning import Artifact, ArtifactSource, Matrix, rows_sha256
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, Answer, Question
from podium.harness.rewards.splits import question_digest, refuse_unfit
from podium.harness.system import Calls, System, SystemCard, SystemMethods, planned
from podium.harness.workflow import Step, Workflow

ROUTERS: Mapping[str, Callable[..., Router]] = {
    "router-knn": KnnRouter,
    "router-cluster": ClusterRouter,
    "router-logistic": LogisticRouter,
    "router-mlp": MlpRouter,
    "router-mf": FactorsRouter,
    "router-contrastive": ContrastiveRouter,
}
"""Router classes by their names in tables; a call without arguments gives default settings."""

_OF_EMBEDDER, _OF_ROUTER = "embedder/", "router/"  # prefixes of array names in an artefact


Estimator = Callable[[Sequence[str]], Estimates]
"""Question texts -> a trained router's predictions, with workers in the artefact's order."""


def train_router(
    router: Router, matrix: Matrix, seed: int = 0, with_embedder: Embedder | None = None
) -> Artifact:
    """Train a router on a grade matrix and return its artefact: same input, same bytes."""
    used = with_embedder or TfIdf()
    if not matrix.publishable:
        raise UserError(
            f"{matrix.name} must not be published, but an artefact would hold words of its "
            f"questions. Evaluate routers on it without saving one."
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


def load_router(learned: Artifact) -> Estimator:
    """Return an artefact's router as a function; UserError if damaged or its embedder is absent."""
    about = learned.about
    if about.system not in ROUTERS:
        raise UserError(f"{about.system} is not a router. Routers are: {', '.join(ROUTERS)}.")
    settings = {name: value for name, value in (about.settings or {}).items() if name != "seed"}
    reading = strip_prefix(_OF_EMBEDDER, learned.arrays)
    fitted = strip_prefix(_OF_ROUTER, learned.arrays)

    def estimate(texts: Sequence[str]) -> Estimates:
        return router.estimate(fitted, embedder.embed(reading, texts))

    damage = f"This artefact of {about.system} is damaged"
    try:
        router, embedder = ROUTERS[about.system](**settings), load_embedder(about.embedder)
        expected = estimate(["?"])
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError(f"{damage} ({error}). Train it again.") from None
    if not expected.score.shape == expected.usd.shape == (1, len(about.workers)):
        raise UserError(f"{damage}. Train it again.")
    return estimate


def question_texts(matrix: Matrix) -> list[str]:
    """Return the texts of a matrix's questions; UserError if a question has none."""
    if lacking := sum(not question.text.strip() for question in matrix.questions):
        raise UserError(
            f"{matrix.name}: {lacking} of {len(matrix.questions)} questions have no text, which "
            "routers need. `podium route --list` says how to get the texts."
        )
    return [question.text for question in matrix.questions]


_EMBEDDING = (
    "reads questions by TF-IDF (1,024 terms), unless trained with another embedder, and not by its "
    "authors' neural embeddings"
)
_DOLLARS = "expects of each worker its mean dollars on the train split, whatever the question"
_HELD_OUT = "its state is chosen on a held-out fifth of the train split"


STICKY, TURN = MODES = ("sticky", "turn")
"""In a task of several turns, a router chooses a worker once per sample (`sticky`) or at each turn.
The provider of a newly chosen worker does not have the earlier turns in its prompt cache."""
CHOSEN = "chosen"  # key of the chosen worker in `Pool.kept`, the state of a sample


def _card(name: str, summary: str, source: str, *deviations: str) -> SystemCard:
    class _Learning(SystemMethods):
        def learn(self, matrix: Matrix, seed: int) -> Artifact:
            return train_router(ROUTERS[name](), matrix, seed)

        def arguments(self, x: str) -> Mapping[str, Any]:
            if x not in ("", *MODES):
                raise UserError(f"{name}@{x} is unknown. Use {' or '.join(MODES)} (the default).")
            return {"mode": x} if x else {}

    return SystemCard(
        name=name,
        solver=f"podium/{name.replace('-', '_')}",
        summary=summary,
        source=source,
        calls=Calls("1", ONE_CALL),
        k="mode",
        needs=frozenset({"train"}),
        methods=_Learning(),
        group="routers",
        traits=frozenset({"recorded"}),
        deviations=(_EMBEDDING, *deviations),
        acts="passes",
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
        "money is weighed by one willingness to pay for all clusters; the authors' alpha scales "
        "accuracy and cost within each cluster",
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


def router_system(learned: Artifact, willingness: float | None = None, mode: str = TURN) -> System:
    """Return the system that asks the worker a trained router chooses, by score and dollars.

    The worker has the highest score - usd / `willingness`. With mode `sticky` the router chooses
    once per sample, by the first turn's text.
    """
    estimate = load_router(learned)
    choose_workers(estimate(["?"]), willingness)

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool.workers, question)
        if mode == STICKY and CHOSEN in pool.kept:
            return alone(pool.kept[CHOSEN])
        chosen = choose_workers(estimate([question.text]), willingness)
        pool.kept[CHOSEN] = worker = learned.about.workers[int(chosen[0])]
        return alone(worker)

    return planned(plan)


for name in ROUTERS:
    register_learner(name, router_system)


ROUTE = """\
You send questions to language models. You never answer a question yourself: you name the one model
that will.

Below you find a user question and a numbered list of the available models. Choose at most 1 model,
the one that is most likely to answer the question correctly. Think briefly. Then end with exactly
one line of this form, where N is a whole number from the list:

model_id = [N]

USER QUESTION:
{question}

AVAILABLE LANGUAGE MODELS:
{models}"""
"""The router's prompt, in our words and the form of conductor/prompt.py. A control for
trained routers and conductors: same information, no training, a plan of one step."""

_NAMED = re.compile(r"^\W*model_id\s*=\s*\[\s*(\d{1,6})\s*\]", re.MULTILINE)

ROUTER_LLM = SystemCard(
    name="router-llm",
    solver="podium/router_llm",
    summary="The pool's conductor chooses one worker for each question, which answers alone.",
    group="routers",
    source="podium (a common control); no training",
    calls=Calls("1, plus 1 of the conductor", ONE_CALL, conductor=1),
    prompts=(ROUTE,),
    needs=frozenset({"conductor"}),
    deviations=("a reply that names no worker of the list sends the question to the first worker",),
    acts="passes",
)


def routing_prompt(question: str, cards: Sequence[str]) -> str:
    """Return the router's prompt; `cards` has a description of each worker, or "" to hide it."""
    models = [f"Model {n}: {card}" if card else f"Model {n}" for n, card in enumerate(cards)]
    return ROUTE.format(question=question, models="\n".join(models))


def named_worker(reply: str, workers: int) -> int | None:
    r"""Return the index (from 0) of the worker that a reply names last; None if not in the list.

    >>> named_worker("Model 2 is best.\nmodel_id = [2]", 3), named_worker("2", 3)
    (2, 2)
    >>> named_worker("model_id = [3]", 3)
    """
    numbers = _NAMED.findall(reply) or re.findall(r"\A\s*(\d{1,6})\s*\Z", reply)
    return int(numbers[-1]) if numbers and int(numbers[-1]) < workers else None


@register
def router_llm_system(*, cards: bool = True) -> System:
    """Return the system in which the pool's conductor model chooses the worker that answers."""

    async def answer(question: Question, pool: Pool) -> Answer:
        if CONDUCTOR not in pool.models:
            raise UserError(
                "This pool has no conductor to route with. Add a [conductor] table to the pool "
                "file, or give --model-role conductor=PROVIDER/MODEL."
            )
        card_texts = [pool.card(worker) if cards else "" for worker in pool.workers]
        request = [ChatMessageUser(content=routing_prompt(question.text, card_texts))]
        routing = await pool.ask(CONDUCTOR, request, f"{CONDUCTOR}: route")
        choice = named_worker(routing.text, len(pool.workers))
        session = Session(question, pool)
        reply = await session.ask(Step(pool.workers[choice or 0]))
        return session.answer(reply.text, {"route": choice, "fallback": choice is None})

    return answer
