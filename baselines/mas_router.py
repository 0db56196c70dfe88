"""MasRouter (Yue et al. 2025, arXiv 2502.11133): choose a collaboration mode, workers and roles.

After the paper's description; prompts and roles are ours. A design is a mode with its members.
`mas-sample` runs a random design. `router-mas` tries random designs on train questions, fits a
ridge regression of grades on design and question, then draws many designs for each question and
runs the one with the highest predicted grade.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from random import Random
from typing import Literal, get_args

import numpy as np

from podium.baselines.common import (
    Rounds,
    hash_words,
    learnt_from,
    refuse_too_few,
    register,
    register_learner,
    seeded_random,
)
from podium.harness.errors import UserError
from podium.harness.learning import Artifact, Floats, Round, TrainingBudget
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.rewards.splits import refuse_unfit
from podium.harness.system import Calls, Exploring, System, SystemCard, planned
from podium.harness.workflow import Step, Workflow

Mode = Literal["io", "cot", "chain", "full", "debate", "reflection"]
MODES: tuple[Mode, ...] = get_args(Mode)
MOST = 6  # the paper's limit on members
MOST_CALLS = 2 * MOST + 1  # of the largest design: a debate of two rounds, then one decision

ALONE = ("io", "cot")
COT = "Think step by step, one line per step, before you give the final answer."
DEBATE = (
    "Above are answers to the question, your own among them. Say which steps of the others you "
    "doubt, then give your final answer in the form the question asks for."
)
DECIDE = "Weigh the answers above against each other and give one final answer to the question."
CRITIC = "Name what is wrong or missing in the answer above, without answering the question anew."
REVISE = "Improve the answer above by what was said of it, and give the final answer."
FORWARD = (
    "Use the work above where it helps, correct it where it is wrong, and answer the question."
)
ROLES = (
    "",
    "Answer as a mathematician: define what is sought, then compute exactly.",
    "Answer as a programmer: settle input, output and edge cases first.",
    "Answer as a scientist: recall the facts and laws that matter, then apply them.",
    "Answer as an analyst: restate what is asked, then go through the cases.",
    "Answer as an inspector: look for what is easily got wrong here, then answer.",
)
"""Instruction of each role of a design, in our own words; the first role has none."""
PROMPTS = (COT, DEBATE, DECIDE, CRITIC, REVISE, FORWARD, *ROLES[1:])


@dataclass(frozen=True, slots=True)
class Design:
    """A multi-agent workflow: a mode, and members as pairs (index of worker, index of role)."""

    mode: Mode
    members: tuple[tuple[int, int], ...]


def draw_design(random: Random, workers: int) -> Design:
    """Draw a design uniformly: its mode, its size, and each member's worker and role."""
    mode = random.choice(MODES)
    size = 1 if mode in ALONE else random.randint(2, MOST)
    places = [(random.randrange(workers), random.randrange(len(ROLES))) for _ in range(size)]
    return Design(mode, tuple(places))


def design_workflow(design: Design, workers: Sequence[str]) -> Workflow:
    """Return the workflow of a design; its last step's reply is the answer."""
    names = [workers[worker] for worker, _ in design.members]
    roles = [ROLES[role] for _, role in design.members]
    if design.mode == "cot":
        return Workflow((Step(names[0], _joined(roles[0], COT)),))
    if design.mode == "debate":
        n = len(names)
        second = [Step(name, DEBATE, reads=tuple(range(n))) for name in names]
        decision = Step(names[0], DECIDE, reads=tuple(range(n, 2 * n)))
        return Workflow((*map(Step, names, roles), *second, decision))
    return Workflow(tuple(_step(design.mode, index, names, roles) for index in range(len(names))))


def _step(mode: Mode, i: int, names: Sequence[str], roles: Sequence[str]) -> Step:
    if i == 0:
        return Step(names[0], roles[0])
    if mode == "reflection":
        is_last = i == len(names) - 1
        return Step(names[i], CRITIC if i % 2 and not is_last else REVISE, reads="all")
    return Step(names[i], _joined(roles[i], FORWARD), "all" if mode == "full" else (i - 1,))


def _joined(role: str, prompt: str) -> str:
    return f"{role} {prompt}" if role else prompt


def describe_design(design: Design, workers: int) -> Floats:
    """Return a design's features: mode, size, share of members per worker, last step's worker."""
    modes, size = [float(design.mode == mode) for mode in MODES], len(design.members)
    shares, closing = np.zeros((2, workers))
    for worker, _ in design.members:
        shares[worker] += 1 / size
    closing[design.members[0 if design.mode == "debate" else -1][0]] = 1
    return np.array([*modes, size / MOST, *shares, *closing])


NAME, WEIGHTS = "router-mas", "weights"
WORDS = 4  # hashed features of the question; each is multiplied with each feature of a design
RIDGE = 3.0  # ridge penalty: a small budget has far fewer training tries than features
DRAWN_DESIGNS = 200  # random designs per question; the one with the best prediction is run
SOURCE = "MasRouter, arXiv 2502.11133"


def sample_design(seed: int, question: Question, epoch: int, workers: int) -> Design:
    """Return the random design for a question and epoch; a resumed run draws the same design."""
    return draw_design(seeded_random("mas-sample", seed, question.id, epoch), workers)


def design_features(question: Question, design: Design, workers: int) -> Floats:
    """Return a design's features, and their products with the question's hashed words."""
    terms = np.array([1.0, *hash_words(question.text, WORDS)])
    features: Floats = np.outer(terms, describe_design(design, workers)).ravel()
    return features


@register
def mas_sample_system(seed: int = 0) -> System:
    """Return the system that runs a random design, drawn per question and epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        design = sample_design(seed, question, pool.epoch, len(pool.workers))
        return design_workflow(design, pool.workers)

    return planned(plan)


def mas_router_system(learned: Artifact, seed: int = 0) -> System:
    """Return the system that runs the best of many random designs, by `learned`'s predictions."""
    names, weights = learned.about.workers, learned.arrays[WEIGHTS]

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool.workers, question)
        random, n = seeded_random(NAME, seed, question.id, pool.epoch), len(names)
        designs = [draw_design(random, n) for _ in range(DRAWN_DESIGNS)]
        expected = [float(design_features(question, design, n) @ weights) for design in designs]
        return design_workflow(designs[int(np.argmax(expected))], names)

    return planned(plan)


class MasExplorer:
    """Training procedure: one random design per train question and epoch, within the budget."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the only round of training runs; None once that round is done.

        The round has as many questions, or as many whole epochs, as the budget covers.
        """
        refuse_too_few(NAME, given, MOST_CALLS)
        if done:
            return None
        spent, size = 0, len(given.questions)
        for tries in count():
            question, epoch = given.questions[tries % size], 1 + tries // size
            design = sample_design(given.seed, question, epoch, len(given.workers))
            spent += len(design_workflow(design, given.workers).steps)
            if spent > given.calls:  # exact calls are known, so `most_calls` is not set
                extent = (tries, 1) if epoch == 1 else (size, epoch - 1)
                return Round("podium/mas_sample", {"seed": given.seed}, *extent)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the artefact with the regression's weights; UserError if no run was graded."""
        questions, n = {question.id: question for question in given.questions}, len(given.workers)
        rows, grades = list[Floats](), list[float]()
        for trial in chain.from_iterable(done):
            if trial.value is not None:
                question = questions[trial.question]
                design = sample_design(given.seed, question, trial.epoch, n)
                rows.append(design_features(question, design, n))
                grades.append(trial.value)
        if not rows:
            raise UserError(f"{NAME} learnt nothing, because no try was graded. Run it again.")
        weights = ridge(np.array(rows), np.array(grades))
        settings = {"embedder": f"hashed words, {WORDS}", "tries": len(rows)}
        return Artifact(learnt_from(NAME, given, done, settings), {WEIGHTS: weights})


def ridge(rows: Floats, grades: Floats) -> Floats:
    """Fit weights (features,) to rows (n, features) to predict each grade minus the mean grade."""
    curve = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(curve, rows.T @ (grades - grades.mean())), dtype=np.float64)


MAS_SAMPLE = SystemCard(
    name="mas-sample",
    solver="podium/mas_sample",
    summary="Draws a collaboration mode, its members and their roles for each question.",
    group="controls",
    source=f"podium (control); the space of {SOURCE}",
    calls=Calls("1-13", lambda _n, _args: (1, MOST_CALLS)),
    prompts=PROMPTS,
    deviations=("modes, roles and prompts are in our own words, from the paper's description",),
    acts="last step acts",
)
ROUTER_MAS = replace(
    MAS_SAMPLE,
    name=NAME,
    solver="podium/router_mas",
    summary="A learned choice of collaboration mode, members and roles for each question.",
    group="routers",
    source=SOURCE,
    methods=Exploring(MasExplorer),
    deviations=(
        "a ridge regression on hashed words over drawn designs (the authors: four networks on "
        "sentence embeddings, trained by policy gradient)",
        "it learns from grades alone (the authors also subtract cost)",
        f"the best of {DRAWN_DESIGNS} designs drawn per question; roles are drawn, not learnt",
        *MAS_SAMPLE.deviations,
    ),
)


register_learner(NAME, mas_router_system)
