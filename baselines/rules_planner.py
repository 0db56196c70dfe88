"""`rules-planner`, a control: a hundred lines of rules that read the grammar of `practice-deep`.

It learns nothing and sees no target. Each part of a question (`Let x be ...`) goes to the worker
whose card (description) names its skill and the fewest others, after the parts that it depends on.
Parts that the same worker can do together are one step. A learned planner must beat this control to
show more than keyword matching.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.baselines.common import register
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.system import Calls, System, SystemCard, planned
from podium.harness.workflow import MAX_STEPS, Step, Workflow

SKILLS = (
    (r"element with|atomic number|protons|English name", r"periodic table|element"),
    (r"position of", r"planet"),
    (r"divisor|multiple|prime", r"divisor"),
    (r"binomial|committee|subsets", r"committee|subset"),
    (r"digit|base", r"digit"),
    (r"", r"\bsums?\b|arithmetic"),
)
"""Pairs: a pattern of a question's part, and a pattern of the card of a worker that suits the part.
The first match counts."""
_PART = re.compile(r"\bLet ([a-z]) be ([^.]+)\.\s*")
_LETTER = re.compile(r"(?<![\w'])[b-z](?![\w'(])")

RULES_PLANNER = SystemCard(
    name="rules-planner",
    solver="podium/rules_planner",
    summary="Rules written for practice-deep choose a worker for each part of a question.",
    source="podium (control)",
    calls=Calls("1-5", lambda n, args: (1, MAX_STEPS)),
    group="controls",
    deviations=("it knows the grammar of one suite; elsewhere it asks one worker",),
    acts="last step acts",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a question: its variable ("" for the last), variables needed, chosen worker."""

    letter: str
    needs: frozenset[str]
    worker: str


def read_parts(text: str, cards: Sequence[tuple[str, str]]) -> list[Part]:
    """Return the parts of a question in order; `cards` are pairs (worker, the worker's card)."""
    question = text.split("\n\n")[0]
    clauses = [*_PART.findall(question), ("", _PART.sub("", question))]
    return [Part(a, frozenset(_LETTER.findall(words)), _doer(words, cards)) for a, words in clauses]


def _doer(words: str, cards: Sequence[tuple[str, str]]) -> str:
    skill = next(card for pattern, card in SKILLS if re.search(pattern, words))
    fits = [worker for worker in cards if re.search(skill, worker[1], re.IGNORECASE)]
    return min(fits or cards, key=_breadth)[0]


def _breadth(worker: tuple[str, str]) -> int:
    """Return the number of skills that a worker's card names; `_doer` prefers a small number."""
    return sum(bool(re.search(card, worker[1], re.IGNORECASE)) for _, card in SKILLS)


def plan_parts(tasks: Sequence[Part]) -> Workflow:
    """Return the workflow that does all parts; each step reads the replies that it depends on."""
    remaining, finished, steps = list(tasks), dict[str, int](), list[Step]()
    read = list[set[int]]()
    while remaining and len(steps) < MAX_STEPS:
        task = next((t for t in remaining if t.needs <= finished.keys()), remaining[-1])
        here, direct = {task.letter}, {finished[need] for need in task.needs & finished.keys()}
        remaining.remove(task)
        for peer in [candidate for candidate in remaining if candidate.worker == task.worker]:
            if peer.needs <= {*finished, *here}:
                here.add(peer.letter)
                direct |= {finished[need] for need in peer.needs & finished.keys()}
                remaining.remove(peer)
        finished |= dict.fromkeys(here, len(steps))
        read.append(direct.union(*(read[step] for step in direct)))
        steps.append(Step(task.worker, reads=tuple(sorted(read[-1]))))
    return Workflow(tuple(steps))


@register
def rules_planner_system() -> System:
    """Return the control that plans by this module's rules for questions of `practice-deep`."""

    def plan(question: Question, pool: Pool) -> Workflow:
        cards = [(worker, pool.card(worker)) for worker in pool.workers]
        return plan_parts(read_parts(question.text, cards))

    return planned(plan)
