"""TRINITY's loop: in each turn a worker is chosen and a role, until a Verifier accepts.

Written from the paper's description (TRINITY, Sakana AI): three roles, at most five turns, all
earlier turns visible. `random-trinity` chooses at random: what the loop is worth without a
coordinator. Not here: the coordinator that is evolved (trinity.py).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from inspect_ai.solver import Solver, solver

from baselines.draws import draws
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import System, SystemCard
from harness.workflow import Step

Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
TURNS = 5
"""The paper's K."""

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
"""Our own wording: the paper describes the roles, and its prompts are not ours to copy."""
PROMPTS = {"thinker": THINK, "worker": WORK, "verifier": VERIFY}

_VERDICT = re.compile(r"\bVERDICT\W{1,6}(ACCEPT|REVISE)", re.IGNORECASE)
SOURCE = "TRINITY, arXiv 2512.04695 (the Conductor's sister paper)"
DEVIATIONS = (
    "the roles' prompts are in our own words",
    "a verifier without a verdict accepts when its own answer is the worker's, as our rehearsal "
    "workers cannot say one",
    "a verdict before any worker's turn ends nothing",
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn that was taken."""

    worker: str
    role: Role
    text: str


Policy = Callable[[Question, Sequence[Turn]], tuple[int, Role]]
"""(question, turns so far) -> the next worker, by its place in the pool, and its role."""


def accepted(kind: Kind, turns: Sequence[Turn]) -> bool:
    """Return whether the last turn is a verifier's that accepts the latest worker's reply."""
    latest = latest_work(turns[:-1])
    if not turns or turns[-1].role != "verifier" or latest is None:
        return False
    verdicts = _VERDICT.findall(turns[-1].text)
    if verdicts:
        return str(verdicts[-1]).upper() == "ACCEPT"
    own = normalised(kind, turns[-1].text)
    return own is not None and own == normalised(kind, latest)


def latest_work(turns: Sequence[Turn]) -> str | None:
    """Return what a worker said last; None when no turn was a worker's."""
    return next((turn.text for turn in reversed(turns) if turn.role == "worker"), None)


def turns_system(policy_of: Callable[[Question, Pool], Policy], turns: int = TURNS) -> System:
    """Return the loop; `policy_of` gives each sample its coordinator.

    The answer is the latest worker's reply, or the last reply where no turn was a worker's.
    """
    if turns < 1:
        raise UserError(f"TRINITY needs turns of at least 1, not {turns}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        policy, session = policy_of(question, pool), Session(question, pool)
        taken: list[Turn] = []
        while len(taken) < turns and not (taken and accepted(question.kind, taken)):
            at, role = policy(question, taken)
            worker = pool.workers[at]
            reply = await session.ask(Step(worker, PROMPTS[role], reads="all"))
            taken.append(Turn(worker, role, reply.text))
        said = latest_work(taken)
        roles = [turn.role for turn in taken]
        noted = {"roles": roles, "accepted": accepted(question.kind, taken)}
        return session.answer(taken[-1].text if said is None else said, noted)

    return answer


def random_policy(random: Random, workers: int) -> Policy:
    """Return the coordinator that draws worker and role uniformly."""

    def choose(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
        return random.randrange(workers), random.choice(ROLES)

    return choose


def random_trinity_system(seed: int = 0, turns: int = TURNS) -> System:
    """Return the loop without a coordinator; draws depend on seed, question and epoch only."""

    def policy_of(question: Question, pool: Pool) -> Policy:
        random = draws("random-trinity", seed, question.id, pool.epoch)
        return random_policy(random, len(pool.workers))

    return turns_system(policy_of, turns)


def least_turns(turns: int) -> int:
    """Return the fewest turns that can end the loop: one to work, one to accept."""
    return min(2, turns)


RANDOM_TRINITY = SystemCard(
    name="random-trinity",
    solver="baselines/random_trinity",
    summary="Up to five turns, each by a random worker in a random role.",
    group="controls",
    source=f"podium (control); the loop of {SOURCE}",
    calls="2-5",
    expected=lambda _, args: (
        least_turns(int(args.get("turns", TURNS))),
        int(args.get("turns", TURNS)),
    ),
    prompts=(THINK, WORK, VERIFY),
    deviations=DEVIATIONS,
)


@solver
def random_trinity(seed: int = 0, turns: int = TURNS, pool: str | None = None) -> Solver:
    """Take at most `turns` turns, worker and role of each drawn at random."""
    return as_solver(random_trinity_system(seed, turns), pool)
