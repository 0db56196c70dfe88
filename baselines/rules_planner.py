"""`rules-planner`, a control: a hundred lines of rules that read the grammar of `practice-deep`.

Nothing is learnt and no target is seen. Each part goes to the worker whose card names its skill and
little else, once the parts that it needs are done; what one worker can do at once is one step. A
learned planner that is not above it has not been shown to plan by more than words.
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
"""What a part says, and what the card of the worker for it says; the first that fits counts."""
_PART = re.compile(r"\bLet ([a-z]) be ([^.]+)\.\s*")
_LETTER = re.compile(r"(?<![\w'])[b-z](?![\w'(])")

RULES_PLANNER = SystemCard(
    name="rules-planner",
    solver="podium/rules_planner",
    summary="Rules written for practice-deep name a worker for each part of a question.",
    source="podium (control)",
    calls=Calls("1-5", lambda n, args: (1, MAX_STEPS)),
    group="controls",
    deviations=("it knows the grammar of one suite; elsewhere it asks one worker",),
    acts="last step acts",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a question: its letter (none for the last), what it needs, who does it."""

    letter: str
    needs: frozenset[str]
    worker: str


def read_parts(text: str, cards: Sequence[tuple[str, str]]) -> list[Part]:
    """Return the parts of a question in their order; cards are (worker, card)."""
    asked = text.split("\n\n")[0]
    said = [*_PART.findall(asked), ("", _PART.sub("", asked))]
    return [Part(a, frozenset(_LETTER.findall(words)), _doer(words, cards)) for a, words in said]


def _doer(words: str, cards: Sequence[tuple[str, str]]) -> str:
    wanted = next(card for said, card in SKILLS if re.search(said, words))
    fits = [one for one in cards if re.search(wanted, one[1], re.IGNORECASE)]
    return min(fits or cards, key=_breadth)[0]


def _breadth(worker: tuple[str, str]) -> int:
    """Return how many skills a card names: who is said to do everything is asked last."""
    return sum(bool(re.search(card, worker[1], re.IGNORECASE)) for _, card in SKILLS)


def plan_parts(parts: Sequence[Part]) -> Workflow:
    """Return the workflow that does the parts in order, each step reading all that it rests on."""
    left, done, steps = list(parts), dict[str, int](), list[Step]()
    read = list[set[int]]()
    while left and len(steps) < MAX_STEPS:
        first = next((part for part in left if part.needs <= done.keys()), left[-1])
        here, direct = {first.letter}, {done[need] for need in first.needs & done.keys()}
        left.remove(first)
        for part in [one for one in left if one.worker == first.worker]:
            if part.needs <= {*done, *here}:
                here.add(part.letter)
                direct |= {done[need] for need in part.needs & done.keys()}
                left.remove(part)
        done |= dict.fromkeys(here, len(steps))
        read.append(direct.union(*(read[at] for at in direct)))
        steps.append(Step(first.worker, reads=tuple(sorted(read[-1]))))
    return Workflow(tuple(steps))


@register
def rules_planner_system() -> System:
    """Return the system that plans by the rules."""

    def plan(question: Question, pool: Pool) -> Workflow:
        cards = [(worker, pool.card(worker)) for worker in pool.workers]
        return plan_parts(read_parts(question.text, cards))

    return planned(plan)
