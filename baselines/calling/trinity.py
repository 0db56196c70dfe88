"""TRINITY as a system: the loop of turns.py, led by an evolved head (trinity_training.py)."""

from collections.abc import Sequence

from inspect_ai.solver import Solver, solver

from baselines.calling.coordinator import HASH, Encoder, encoder, head_policy, size
from baselines.calling.teaching import refuse_taught
from baselines.calling.trinity_training import NAME, WEIGHTS, Fitness, TrinityExplorer, evolved
from baselines.calling.turns import (
    DEVIATIONS,
    RANDOM_TRINITY,
    SOURCE,
    TURNS,
    Policy,
    Role,
    Turn,
    turns_system,
)
from harness.inspect_adapters import as_solver
from harness.learning.fit import Artifact, Explorer, read_artifact, refuse_other_workers
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard


def _explorer() -> Explorer:
    return TrinityExplorer()


TRINITY = SystemCard(
    name=NAME,
    solver="baselines/trinity",
    summary="Up to five turns; an evolved linear head chooses worker and role of each.",
    group="routers",
    source=SOURCE,
    calls="2-5",
    expected=RANDOM_TRINITY.expected,
    prompts=RANDOM_TRINITY.prompts,
    extra="routers",
    modules=("cmaes",),
    explorer=_explorer,
    deviations=(
        "features are hashed words and the state of the loop (the paper: a hidden state of a 0.6B "
        "model; features=hf:PATH takes one, and its own computing is not on the ledger)",
        "evolved for the run's budget of worker calls (the paper: 30,720 evaluations); the head "
        "only, no singular values",
        "the answer is the head at the mean of the last generation, without sampling",
        *DEVIATIONS,
    ),
)


def trinity_system(learned: Artifact) -> System:
    """Return the loop led by what was learnt."""
    encode = encoder(learned.about.embedder)
    workers = learned.about.workers

    def policy_of(question: Question, pool: Pool) -> Policy:
        refuse_other_workers(learned, pool.workers)
        refuse_taught(learned, question)
        places = [pool.workers.index(worker) for worker in workers]
        choose = head_policy(learned.arrays[WEIGHTS], len(workers), encode)

        def placed(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
            at, role = choose(question, turns)
            return places[at], role

        return placed

    settings = learned.about.settings or {}
    return turns_system(policy_of, int(settings.get("turns", TURNS)))


def trying_system(seed: int, fitness: Fitness, encode: Encoder, turns: int) -> System:
    """Return the loop led by the candidate that an epoch stands for."""
    made: dict[int, Floats] = {}

    def policy_of(question: Question, pool: Pool) -> Policy:
        workers = len(pool.workers)
        if workers not in made:
            made[workers] = evolved(size(workers, encode.dims), seed, fitness)[0]
        return head_policy(made[workers][pool.epoch - 1], workers, encode)

    return turns_system(policy_of, turns)


@solver
def trinity(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Take up to five turns, led by a head that was evolved on the train split."""
    return as_solver(trinity_system(read_artifact(learned, NAME, sha256)), pool)


@solver
def try_trinity(
    seed: int,
    fitness: list[list[float]],
    features: str = HASH,
    turns: int = TURNS,
    pool: str | None = None,
) -> Solver:
    """Try one candidate head per epoch: of the generation that this fitness leads to."""
    return as_solver(trying_system(seed, fitness, encoder(features), turns), pool)
