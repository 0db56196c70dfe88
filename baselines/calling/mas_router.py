"""Routers over multi-agent systems: `router-mas` learns which design fits, `mas-sample` draws one.

MasRouter (Yue et al. 2025, arXiv 2502.11133) samples a design from four cascaded networks and
trains them by policy gradient. Ours draws designs on the train split, fits a ridge regression of
the grade on design and question, and takes the best of many drawn designs: explore, then commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.calling.hashing import hashed
from baselines.calling.mas_space import PROMPTS, Design, described, drawn, most_calls, workflow
from baselines.calling.teaching import about, refuse_taught, refuse_too_few
from baselines.draws import draws
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Artifact,
    Explorer,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, planned
from harness.workflow import Workflow

NAME = "router-mas"
WEIGHTS = "weights"
WORDS = 4
"""Hashed features of the question; each meets each feature of a design."""
RIDGE = 3.0
"""Of the regression: many more features than a small budget has tries."""
LOOKED_AT = 200
"""Designs that are drawn for a question, of which the best is run."""
SOURCE = "MasRouter, arXiv 2502.11133"


def design_of(seed: int, question: Question, epoch: int, workers: int) -> Design:
    """Return the design that is drawn for a sample."""
    return drawn(draws("mas-sample", seed, question.id, epoch), workers)


def features(question: Question, design: Design, workers: int) -> Floats:
    """Return a design, and its products with the question's words, in numbers."""
    asked = np.array([1.0, *hashed(question.text, WORDS)])
    found: Floats = np.outer(asked, described(design, workers)).ravel()
    return found


def sampled_system(seed: int = 0) -> System:
    """Return the system that runs a design drawn per question and epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        design = design_of(seed, question, pool.epoch, len(pool.workers))
        return workflow(design, pool.workers)

    return planned(plan)


def routed_system(learned: Artifact, seed: int = 0) -> System:
    """Return the system that runs the design of which the most is expected."""
    names, weights = learned.about.workers, learned.arrays[WEIGHTS]

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_other_workers(learned, pool.workers)
        refuse_taught(learned, question)
        random, n = draws(NAME, seed, question.id, pool.epoch), len(names)
        designs = [drawn(random, n) for _ in range(LOOKED_AT)]
        expected = [float(features(question, one, n) @ weights) for one in designs]
        return workflow(designs[int(np.argmax(expected))], names)

    return planned(plan)


@dataclass(frozen=True, slots=True)
class MasExplorer:
    """Runs one drawn design on each of as many train questions as the budget pays for."""

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the one round there is: all questions, as often as the budget allows."""
        refuse_too_few(NAME, given, most_calls())
        if done:
            return None
        questions, epochs = self._extent(given)
        args = {"seed": given.seed}
        return Round("baselines/mas_sample", args, questions, epochs)  # its plans can be counted

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the regression's weights; UserError when nothing was graded."""
        asked, n = (
            {question.id: question for question in given.questions},
            len(given.workers),
        )
        rows: list[Floats] = []
        grades: list[float] = []
        for one in (one for tried in done for one in tried):
            if one.value is not None:
                design = design_of(given.seed, asked[one.question], one.epoch, n)
                rows.append(features(asked[one.question], design, n))
                grades.append(one.value)
        if not rows:
            raise UserError(f"{NAME} learnt nothing: no try was graded; run it again.")
        weights = ridge(np.array(rows), np.array(grades))
        settings = {"embedder": f"hashed words, {WORDS}", "tries": len(rows)}
        return Artifact(about(NAME, given, done, settings), {WEIGHTS: weights})

    def _extent(self, given: TrainingBudget) -> tuple[int, int]:
        """Return how many questions and epochs a budget pays for, by the calls of their designs."""
        n, spent, epoch = len(given.workers), 0, 0
        while True:
            epoch += 1
            for at, question in enumerate(given.questions):
                spent += len(
                    workflow(design_of(given.seed, question, epoch, n), given.workers).steps
                )
                if spent > given.calls:
                    return (at, 1) if epoch == 1 else (len(given.questions), epoch - 1)


def ridge(rows: Floats, grades: Floats) -> Floats:
    """Return weights for (n, features) rows that predict how far a grade is from the mean."""
    curve = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(curve, rows.T @ (grades - grades.mean())), dtype=np.float64)


def _explorer() -> Explorer:
    return MasExplorer()


MAS_SAMPLE = SystemCard(
    name="mas-sample",
    solver="baselines/mas_sample",
    summary="A mode of collaboration, its members and their roles, drawn for each question.",
    group="controls",
    source=f"podium (control); the space of {SOURCE}",
    calls="1-13",
    expected=lambda _n, _args: (1, most_calls()),
    prompts=PROMPTS,
    deviations=("modes, roles and prompts are in our own words, from the paper's description",),
)
ROUTER_MAS = SystemCard(
    name=NAME,
    solver="baselines/router_mas",
    summary="A learned choice of collaboration mode, members and roles for each question.",
    group="routers",
    source=SOURCE,
    calls="1-13",
    expected=MAS_SAMPLE.expected,
    prompts=PROMPTS,
    explorer=_explorer,
    deviations=(
        "a ridge regression on hashed words over drawn designs (the authors: four networks on "
        "sentence embeddings, trained by policy gradient)",
        "it learns from grades alone (the authors also subtract cost)",
        f"the best of {LOOKED_AT} designs drawn per question; roles are drawn, not learnt",
        *MAS_SAMPLE.deviations,
    ),
)


@solver
def mas_sample(seed: int = 0, pool: str | None = None) -> Solver:
    """Run a design drawn at random."""
    return as_solver(sampled_system(seed), pool)


@solver
def router_mas(
    seed: int = 0, learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Run the design of which the most is expected after training."""
    return as_solver(routed_system(read_artifact(learned, NAME, sha256), seed), pool)
