"""Evolve TRINITY's head with sep-CMA-ES (the `cmaes` package), one round of tries per generation.

A try is one question with one candidate head: the candidate is the epoch. A generation follows from
the seed and the fitness of those before it, so these are all that a round's arguments hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.calling.coordinator import HASH, encoder, size
from baselines.calling.teaching import about, refuse_too_few
from baselines.calling.turns import TURNS
from baselines.extras import needed
from harness.learning.fit import Artifact, Round, TrainingBudget, TrialResult
from harness.learning.matrix import Floats

NAME = "trinity"
WEIGHTS = "weights"
SIGMA = 1.0
"""First step size; logits are compared with each other only, so their scale is free."""
MOST_QUESTIONS = 16
"""Evaluations per candidate: the paper's m."""
MOST_GENERATIONS = 60
"""The paper's."""

Fitness = Sequence[Sequence[float]]
"""(generations, candidates): mean grades."""


def population(dims: int) -> int:
    """Return how many candidates a generation has: 4 + 3 ln n, rounded up, as in the paper.

    >>> population(10_240)
    32
    """
    return math.ceil(4 + 3 * math.log(dims))


def evolved(dims: int, seed: int, fitness: Fitness) -> tuple[Floats, Floats]:
    """Return the next generation's candidates (population, dims) and the mean they vary around."""
    most = population(dims)
    search: Any = needed("cmaes", "routers").SepCMA(
        mean=np.zeros(dims), sigma=SIGMA, seed=seed, population_size=most
    )
    for values in fitness:
        asked = [search.ask() for _ in range(most)]
        search.tell([(one, -value) for one, value in zip(asked, values, strict=True)])
    return np.array([search.ask() for _ in range(most)]), np.array(search.mean)


def fitness_of(tries: Sequence[TrialResult], candidates: int) -> list[float]:
    """Return each candidate's mean grade; who has none gets the mean of all, and 0 without any."""
    grades: list[list[float]] = [[] for _ in range(candidates)]
    for one in tries:
        if one.value is not None:
            grades[one.epoch - 1].append(one.value)
    graded = [value for values in grades for value in values]
    usual = sum(graded) / len(graded) if graded else 0.0
    return [round(sum(values) / len(values) if values else usual, 6) for values in grades]


def first_question(generation: int, questions: int, known: int) -> int:
    """Return where a generation's questions start; each start comes before any comes again.

    >>> [first_question(at, 5, 9) for at in range(6)], first_question(3, 9, 9)
    ([0, 1, 2, 3, 4, 0], 0)
    """
    starts, stride = known - questions + 1, questions
    while math.gcd(stride, starts) != 1:
        stride += 1
    return generation * stride % starts


@dataclass(frozen=True, slots=True)
class TrinityExplorer:
    """Spends the budget on generations; each generation is asked other questions."""

    features: str = HASH
    turns: int = TURNS

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the next generation, None when the budget may not pay for all its turns."""
        dims = size(len(given.workers), encoder(self.features).dims)
        each = population(dims) * self.turns
        refuse_too_few(NAME, given, each)
        questions = self._questions(given, each)
        spent = sum(one.calls for tried in done for one in tried)
        if len(done) >= MOST_GENERATIONS or spent + each * questions > given.calls:
            return None
        args = {
            "seed": given.seed,
            "turns": self.turns,
            "features": self.features,
            "fitness": [fitness_of(tried, population(dims)) for tried in done],
        }
        first = first_question(len(done), questions, len(given.questions))
        most = self.turns
        return Round("baselines/try_trinity", args, questions, population(dims), first, most)

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the mean of the last generation's distribution: no single lucky candidate."""
        dims = size(len(given.workers), encoder(self.features).dims)
        fitness = [fitness_of(tried, population(dims)) for tried in done]
        _, mean = evolved(dims, given.seed, fitness)
        settings = {"embedder": self.features, "turns": self.turns, "generations": len(fitness)}
        return Artifact(about(NAME, given, done, settings), {WEIGHTS: mean})

    def _questions(self, given: TrainingBudget, each: int) -> int:
        """Return the questions per candidate: a budget buys as many of them as generations.

        The paper's own has 16 questions and 60 generations; what a smaller one is best spent on
        nobody has published.
        """
        return max(1, min(math.isqrt(given.calls // each), MOST_QUESTIONS, len(given.questions)))
