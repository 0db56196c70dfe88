"""MasRouter's space of multi-agent systems: a mode of collaboration, who takes part, in which role.

After Yue et al. 2025, arXiv 2502.11133, from the paper's description: six modes, up to six agents
(here: steps of workers), roles, a worker for each. Prompts and roles are ours. Not here: choosing
among designs (mas_router.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np

from harness.learning.matrix import Floats
from harness.workflow import Step, Workflow

Mode = Literal["io", "cot", "chain", "full", "debate", "reflection"]
MODES: tuple[Mode, ...] = ("io", "cot", "chain", "full", "debate", "reflection")
MOST = 6
"""The paper's limit on who takes part."""
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
ROLES: tuple[tuple[str, str], ...] = (
    ("expert", ""),
    ("mathematician", "Answer as a mathematician: define what is sought, then compute exactly."),
    ("programmer", "Answer as a programmer: settle input, output and edge cases first."),
    ("scientist", "Answer as a scientist: recall the facts and laws that matter, then apply them."),
    ("analyst", "Answer as an analyst: restate what is asked, then go through the cases."),
    ("inspector", "Answer as an inspector: look for what is easily got wrong here, then answer."),
)
"""Roles and what they are told; the first is told nothing more. Ours, and few."""
PROMPTS = (COT, DEBATE, DECIDE, CRITIC, REVISE, FORWARD, *(said for _, said in ROLES if said))


@dataclass(frozen=True, slots=True)
class Member:
    """One who takes part: a worker by place in the pool, and a role by place in `ROLES`."""

    worker: int
    role: int


@dataclass(frozen=True, slots=True)
class Design:
    """A multi-agent system."""

    mode: Mode
    members: tuple[Member, ...]


def drawn(random: Random, workers: int) -> Design:
    """Draw a design: its mode, how many take part, and each one's worker and role, uniformly."""
    mode = random.choice(MODES)
    count = 1 if mode in ALONE else random.randint(2, MOST)
    members = [
        Member(random.randrange(workers), random.randrange(len(ROLES))) for _ in range(count)
    ]
    return Design(mode, tuple(members))


def workflow(design: Design, workers: Sequence[str]) -> Workflow:
    """Return the steps of a design; the last one's reply is the answer."""
    names = [workers[member.worker] for member in design.members]
    said = [ROLES[member.role][1] for member in design.members]
    first = [Step(name, text) for name, text in zip(names, said, strict=True)]
    if design.mode == "io":
        return Workflow((first[0],))
    if design.mode == "cot":
        return Workflow((Step(names[0], joined(said[0], COT)),))
    if design.mode == "debate":
        return Workflow((*first, *_second_round(names), _decision(names)))
    return Workflow(tuple(_step(design.mode, at, names, said) for at in range(len(names))))


def _step(mode: Mode, at: int, names: Sequence[str], said: Sequence[str]) -> Step:
    """Return a step of a mode in which they act one after another."""
    if at == 0:
        return Step(names[0], said[0])
    if mode == "reflection":
        last = at == len(names) - 1
        return Step(names[at], CRITIC if at % 2 and not last else REVISE, reads="all")
    return Step(names[at], joined(said[at], FORWARD), reads="all" if mode == "full" else (at - 1,))


def _second_round(names: Sequence[str]) -> list[Step]:
    """Return the round in which everybody has read everybody."""
    first = tuple(range(len(names)))
    return [Step(name, DEBATE, reads=first) for name in names]


def _decision(names: Sequence[str]) -> Step:
    second = tuple(range(len(names), 2 * len(names)))
    return Step(names[0], DECIDE, reads=second)


def joined(*parts: str) -> str:
    """Return the parts that say something, as one instruction."""
    return " ".join(part for part in parts if part)


def most_calls() -> int:
    """Return the calls of the largest design: a debate of all, two rounds and a decision."""
    return 2 * MOST + 1


def described(design: Design, workers: int) -> Floats:
    """Return a design in numbers: its mode, its size, how much each worker does, who comes last.

    Roles are left out: six more numbers would cost more calls than a budget has.
    """
    modes = [float(design.mode == mode) for mode in MODES]
    shares, last = np.zeros(workers), np.zeros(workers)
    for member in design.members:
        shares[member.worker] += 1 / len(design.members)
    decides = design.members[0 if design.mode == "debate" else -1]
    last[decides.worker] = 1
    return np.array([*modes, len(design.members) / MOST, *shares, *last])
