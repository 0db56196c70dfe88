"""Trained routers as systems: one question, one worker, its canonical request.

Embedding and routing run on this machine and call nobody. Not here: training (learning.py).
"""

from inspect_ai.solver import Solver, solver

from baselines.routing.learning import policy
from baselines.routing.router import choose
from baselines.single import alone
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.learning.fit import Artifact, read_artifact, refuse_other_workers
from harness.pool import Pool
from harness.records import Question
from harness.rewards.splits import question_digest
from harness.system import System, planned
from harness.workflow import Workflow


def routed_system(learned: Artifact, willingness: float | None = None) -> System:
    """Return the system that asks the worker its router chooses.

    `willingness` is in dollars per right answer (router.py); None looks at scores alone. UserError,
    before any question, when the artefact is damaged, its embedder is absent, or a willingness is
    given and some worker has no known price.
    """
    trained = policy(learned)
    workers, taught = learned.about.workers, frozenset(learned.about.questions)
    choose(trained.estimate(["?"]), willingness)

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_other_workers(learned, pool.workers)
        if question_digest(question.text) in taught:
            raise UserError(
                f"{learned.about.system} was taught by {question.id}, so it cannot be examined by "
                f"it: train it on other questions."
            )
        chosen = choose(trained.estimate([question.text]), willingness)
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
    return as_solver(routed_system(artefact, willingness), pool)


@solver
def router_cluster(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker that did best in the nearest cluster of train questions."""
    artefact = read_artifact(learned, "router-cluster", sha256)
    return as_solver(routed_system(artefact, willingness), pool)


@solver
def router_logistic(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker most likely to be right, by logistic regression."""
    artefact = read_artifact(learned, "router-logistic", sha256)
    return as_solver(routed_system(artefact, willingness), pool)


@solver
def router_mlp(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker of which a small neural network expects the highest score."""
    artefact = read_artifact(learned, "router-mlp", sha256)
    return as_solver(routed_system(artefact, willingness), pool)


@solver
def router_mf(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker most likely to be right, by matrix factorisation."""
    artefact = read_artifact(learned, "router-mf", sha256)
    return as_solver(routed_system(artefact, willingness), pool)


@solver
def router_contrastive(
    learned: str | None = None,
    sha256: str | None = None,
    willingness: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask the worker whose learned vector is nearest to the encoded question."""
    artefact = read_artifact(learned, "router-contrastive", sha256)
    return as_solver(routed_system(artefact, willingness), pool)
