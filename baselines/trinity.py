"""TRINITY (arXiv 2512.04695): a coordinator chooses each turn's worker and role.

After the paper's description: three roles, at most five turns that see all earlier ones, until a
verifier accepts. In `trinity` the coordinator is a linear head, trained by sep-CMA-ES.
`random-trinity`, a control, chooses at random: the same loop without a trained coordinator.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np

from podium.baselines.common import (
    Rounds,
    hash_words,
    import_extra,
    learnt_from,
    refuse_too_few,
    register,
    register_learner,
    seeded_random,
)
from podium.baselines.voting import approves
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.learning import Artifact, Floats, Round, TrainingBudget, TrialResult
from podium.harness.pool import Pool
from podium.harness.records import Answer, Kind, Question
from podium.harness.rewards.splits import refuse_unfit
from podium.harness.system import Calls, Extra, System, SystemCard, SystemMethods
from podium.harness.workflow import Step

Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
TURNS = 5  # maximum number of turns: the paper's K

THINK = (
    "You are the thinker of this turn. Do not state a final answer. Study the question and the "
    "work so far, say what is missing or doubtful, and say what should be done next."
)
WORK = (
    "You are the worker of this turn. Use the work above where it helps and carry it on to a "
    "complete answer of the question, in the form it asks for."
)
VERIFY = (
    "You are the verifier of this turn. Check the latest answer above. If it is correct and "
    "complete, repeat it in the form the question asks for and end with the line VERDICT: ACCEPT. "
    "If not, say what is wrong with it and end with the line VERDICT: REVISE."
)
"""The three roles' prompts, in our own words: the prompts of TRINITY's paper may not be copied."""
PROMPTS = {"thinker": THINK, "worker": WORK, "verifier": VERIFY}

SOURCE = "TRINITY, arXiv 2512.04695 (the Conductor's sister paper)"
DEVIATIONS = (
    "the roles' prompts are in our own words",
    "a verifier without a verdict accepts when its own answer is the worker's, as our rehearsal "
    "workers cannot say one",
    "a verdict before any worker's turn ends nothing",
)


Turn = tuple[Role, str]
"""The role of a past turn, and its reply."""
Coordinator = Callable[[Question, Sequence[Turn]], tuple[int, Role]]
"""(question, turns so far) -> index of the next worker in the pool, and its role."""
CoordinatorOf = Callable[[Question, Pool], Coordinator]  # makes a coordinator for each sample


def is_accepted(kind: Kind, turns: Sequence[Turn]) -> bool:
    """Return whether the last turn is a verifier's and accepts the latest reply of role worker."""
    latest = latest_work(turns[:-1])
    if latest is None or turns[-1][0] != "verifier":
        return False
    return approves(kind, latest, turns[-1][1], "ACCEPT", "REVISE")


def latest_work(turns: Sequence[Turn]) -> str | None:
    """Return the latest reply in the role of worker; None if there is none."""
    return next((text for role, text in reversed(turns) if role == "worker"), None)


def turns_system(coordinator_of: CoordinatorOf, turns: int = TURNS) -> System:
    """Return TRINITY's loop of turns; `coordinator_of` makes the coordinator of each sample."""
    if turns < 1:
        raise UserError(f"TRINITY needs turns of at least 1, not {turns}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        coordinator, session = coordinator_of(question, pool), Session(question, pool)
        history: list[Turn] = []
        accepted = False
        while len(history) < turns and not accepted:
            worker, role = coordinator(question, history)
            step = Step(pool.workers[worker], PROMPTS[role], reads="all")
            reply = await session.ask(step, opinion=role != "worker")
            history.append((role, reply.text))
            accepted = is_accepted(question.kind, history)
        work = latest_work(history)
        noted = {"roles": [role for role, _ in history], "accepted": accepted}
        return session.answer(history[-1][1] if work is None else work, noted)

    return answer


@register
def random_trinity_system(seed: int = 0, turns: int = TURNS) -> System:
    """Return TRINITY's loop of turns; each turn's worker and role are drawn at random."""

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        random = seeded_random("random-trinity", seed, question.id, pool.epoch)
        workers = len(pool.workers)
        return lambda _question, _turns: (random.randrange(workers), random.choice(ROLES))

    return turns_system(coordinator_of, turns)


def _expected(workers: int, args: Mapping[str, Any]) -> tuple[int, int]:
    turns = int(args.get("turns", TURNS))
    return min(2, turns), turns  # fewest: one turn to answer, one to accept


RANDOM_TRINITY = SystemCard(
    name="random-trinity",
    solver="podium/random_trinity",
    summary="Up to five turns, each by a random worker in a random role.",
    group="controls",
    source=f"podium (control); the loop of {SOURCE}",
    calls=Calls("2-5", _expected),
    prompts=(THINK, WORK, VERIFY),
    deviations=DEVIATIONS,
    spent="the latest reply in the role of worker",
)


WORDS = 8  # hashed features of the question: few, because calls are few
FEATURES = WORDS + len(ROLES) + 2
"""Number of the coordinator's inputs: hashed words, the last turn's role one-hot (or none), and the
share of turns used."""


def turn_features(question: Question, turns: Sequence[Turn]) -> Floats:
    """Return the coordinator's inputs (FEATURES,): hashed words, last role, share of turns used."""
    last_role = [float(bool(turns) and turns[-1][0] == role) for role in ROLES]
    return np.array(
        [*hash_words(question.text, WORDS), float(not turns), *last_role, len(turns) / TURNS]
    )


def head_size(workers: int) -> int:
    """Return the number of weights of a coordinator's linear head."""
    return (workers + len(ROLES)) * FEATURES


def head_coordinator(weights: Floats, workers: Sequence[int]) -> Coordinator:
    """Return the coordinator that takes the worker and the role with the highest logits."""
    head = weights.reshape(len(workers) + len(ROLES), FEATURES)

    def choose(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
        logits = head @ turn_features(question, turns)
        worker, role = logits[: len(workers)], logits[len(workers) :]
        return workers[int(np.argmax(worker))], ROLES[int(np.argmax(role))]

    return choose


NAME, WEIGHTS = "trinity", "weights"
SIGMA = 1.0  # initial step size; any value works: only the order of logits matters
MOST_QUESTIONS = 16  # questions per candidate, at most: the paper's m
MOST_GENERATIONS = 60  # as in the paper

Fitness = Sequence[Sequence[float]]  # (generations, candidates): mean grades


def population_size(dims: int) -> int:
    """Return the number of candidates per generation: 4 + 3 ln(dims), rounded up (the paper's).

    >>> population_size(10_240)
    32
    """
    return math.ceil(4 + 3 * math.log(dims))


def evolve(dims: int, seed: int, fitness: Fitness) -> tuple[Floats, Floats]:
    """Return the next generation's candidates (population, dims) and the search's mean (dims,).

    `fitness` has the mean grades of all earlier generations' candidates.
    """
    size = population_size(dims)
    search: Any = import_extra("cmaes", "routers").SepCMA(
        mean=np.zeros(dims), sigma=SIGMA, seed=seed, population_size=size
    )
    for values in fitness:
        candidates = [search.ask() for _ in range(size)]
        search.tell([(head, -value) for head, value in zip(candidates, values, strict=True)])
    return np.array([search.ask() for _ in range(size)]), np.array(search.mean)


def mean_grades(tries: Sequence[TrialResult], candidates: int) -> list[float]:
    """Return each candidate's mean grade; an ungraded candidate gets the overall mean, or 0."""
    grades: list[list[float]] = [[] for _ in range(candidates)]
    for trial in tries:
        if trial.value is not None:
            grades[trial.epoch - 1].append(trial.value)
    graded = [value for values in grades for value in values]
    usual = sum(graded) / len(graded) if graded else 0.0
    return [round(sum(values) / len(values) if values else usual, 6) for values in grades]


def first_question(generation: int, questions: int, available: int) -> int:
    """Return the index of a generation's first train question.

    No index repeats before all possible ones are used.

    >>> [first_question(at, 5, 9) for at in range(6)], first_question(3, 9, 9)
    ([0, 1, 2, 3, 4, 0], 0)
    """
    starts, stride = available - questions + 1, questions
    while math.gcd(stride, starts) != 1:
        stride += 1
    return generation * stride % starts


class TrinityExplorer:
    """Training procedure: generations of candidates, each on other questions, within the budget."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the training round of the next generation; None after the last generation.

        The last generation is number `MOST_GENERATIONS`, or the last that cannot exceed the budget.
        """
        candidates = population_size(head_size(len(given.workers)))
        each = candidates * TURNS
        refuse_too_few(NAME, given, each)
        # Our choice: as many generations as questions per candidate.
        available = len(given.questions)
        questions = max(1, min(math.isqrt(given.calls // each), MOST_QUESTIONS, available))
        spent = sum(trial.calls for tried in done for trial in tried)
        if len(done) >= MOST_GENERATIONS or spent + each * questions > given.calls:
            return None
        fitness = [mean_grades(tried, candidates) for tried in done]
        args = {"seed": given.seed, "fitness": fitness}
        start = first_question(len(done), questions, available)
        return Round("podium/try_trinity", args, questions, candidates, start, TURNS)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the artefact: the mean weights of the last generation, not its best candidate."""
        dims = head_size(len(given.workers))
        fitness = [mean_grades(tried, population_size(dims)) for tried in done]
        _, mean = evolve(dims, given.seed, fitness)
        settings = {"embedder": "hash", "turns": TURNS, "generations": len(fitness)}
        return Artifact(learnt_from(NAME, given, done, settings), {WEIGHTS: mean})


class _Evolving(SystemMethods):
    extra = Extra("routers", ("cmaes",))

    def explorer(self) -> TrinityExplorer:
        return TrinityExplorer()


TRINITY = replace(
    RANDOM_TRINITY,
    name=NAME,
    solver="podium/trinity",
    summary="Up to five turns; an evolved linear head chooses worker and role of each.",
    group="routers",
    source=SOURCE,
    methods=_Evolving(),
    deviations=(
        "features are hashed words and the state of the loop (the paper: a hidden state of a 0.6B "
        "model)",
        "evolved for the run's budget of worker calls (the paper: 30,720 evaluations); the head "
        "only, no singular values",
        "the answer is the head at the mean of the last generation, without sampling",
        *DEVIATIONS,
    ),
)


def trinity_system(learned: Artifact) -> System:
    """Return TRINITY's loop of turns with the coordinator of a trained artefact."""

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        refuse_unfit(learned, pool.workers, question)
        places = [pool.workers.index(worker) for worker in learned.about.workers]
        return head_coordinator(learned.arrays[WEIGHTS], places)

    return turns_system(coordinator_of)


register_learner(NAME, trinity_system)


@register
def try_trinity(seed: int, fitness: list[list[float]]) -> System:
    """Return a system that tries evolved coordinators: candidate n in epoch n of the run.

    `fitness`: the grades of earlier generations' candidates, from which `evolve` makes the next.
    """

    @cache
    def heads(workers: int) -> Floats:
        return evolve(head_size(workers), seed, fitness)[0]

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        workers = range(len(pool.workers))
        return head_coordinator(heads(len(workers))[pool.epoch - 1], workers)

    return turns_system(coordinator_of)
