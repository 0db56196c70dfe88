"""AB-MCTS-A: a tree search over replies that decides, before each call, to go wider or deeper.

Wider: a worker answers the question anew. Deeper: a worker improves an earlier reply. The search is
the library treequest by the method's authors (Inoue et al., arXiv 2503.04412). Their variant
AB-MCTS-M is not included, because it needs pymc, and minutes per decision.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from podium.baselines.by_tests import best_of, is_tested, public_results
from podium.baselines.common import import_extra, register, seeded_random
from podium.baselines.single import at_least_one, calls_by
from podium.harness.envelope import BudgetSpent
from podium.harness.execute import Session
from podium.harness.extract import normalised
from podium.harness.pool import Pool
from podium.harness.records import Answer, Grade, Question
from podium.harness.system import Calls, Extra, System, SystemCard, SystemMethods
from podium.harness.workflow import Step

CALLS = 10  # worker calls per question

REFINE = (
    "The answer above is not known to be right. What is known about it:\n{feedback}\n"
    "Find what is wrong or weak in it, and answer the question again, completely and in the form "
    "it asks for."
)
"""Prompt to improve an earlier reply, in our own words: the prompts of AB-MCTS's authors suit only
their tasks."""

AGREEMENT = "{same} of {others} other answers so far agree with it."
UNREADABLE = "No answer could be read from it."
FIRST = 0.5  # score of a readable answer if there is no other to compare it with


AB_MCTS = SystemCard(
    name="ab-mcts",
    solver="podium/ab_mcts",
    summary="A tree search learns when to go deeper and whom to ask; the best reply wins.",
    source="Inoue et al. 2025, arXiv 2503.04412 (AB-MCTS-A; library treequest)",
    calls=Calls("10 by default", calls_by("calls", CALLS)),
    prompts=(REFINE, AGREEMENT, UNREADABLE),
    k="calls",
    methods=SystemMethods(Extra("routers", ("treequest",))),
    traits=frozenset({"adaptive"}),
    deviations=(
        "the budget is 10 calls; the authors spend many times as many",
        "the score is the share of public tests where questions show tests, else the share of "
        "other replies so far with the same answer (the authors have a score from the task)",
        "where agreement scores, the answer that most replies share in the end wins; a tie goes to "
        "the first that can be read",
        "the prompt that asks to improve a reply is in our own words",
        "every worker of the pool is an action, as in the authors' multi-model variant",
    ),
    spent="the reply with the best score so far",
)


def _step(trial: Any, grades: Sequence[Grade]) -> Step:
    parent: int | None = trial.parent_state
    if parent is None:
        return Step(trial.action)
    return Step(trial.action, REFINE.format(feedback=grades[parent].explanation), reads=(parent,))


async def _graded(session: Session, start: int) -> list[Grade]:
    """Grade the replies from index `start` on: by public tests, else by agreement of replies."""
    texts = [reply.text for reply in session.replies]
    if is_tested(session):
        return await public_results(session, texts[start:])
    answers = [normalised(session.question.kind, text) for text in texts]
    return [agreement(answers, index) for index in range(start, len(answers))]


def agreement(answers: Sequence[str | None], index: int) -> Grade:
    """Grade answer `index` by the share of equal other answers (`FIRST` if no others); None gets 0.

    >>> agreement(["7", "7", "8"], 0).value, agreement(["7"], 0).value, agreement([None], 0).value
    (0.5, 0.5, 0.0)
    """
    mine, peers = answers[index], len(answers) - 1
    if mine is None:
        return Grade(0.0, None, UNREADABLE)
    same = Counter(answers)[mine] - 1
    value = same / peers if peers else FIRST
    return Grade(value, mine, AGREEMENT.format(same=same, others=peers))


@contextmanager
def _global_draws(random: np.random.RandomState) -> Generator[None]:
    """Let NumPy's global draws (treequest's) come from `random` in a `with` block without await."""
    state: Any = np.random.get_state()
    np.random.set_state(random.get_state())
    try:
        yield
    finally:
        random.set_state(np.random.get_state())
        np.random.set_state(state)


@register
def ab_mcts_system(calls: int = CALLS, batch: int = 1, seed: int = 0) -> System:
    """Return the tree-search system: `calls` worker calls per question, `batch` at a time."""
    at_least_one("ab-mcts", "calls", calls)
    at_least_one("ab-mcts", "batch", batch)
    library = import_extra("treequest", "routers")

    async def answer(question: Question, pool: Pool) -> Answer:
        algorithm: Any = library.ABMCTSA()
        drawn = seeded_random(AB_MCTS.name, seed, question.id, pool.epoch)
        random = np.random.RandomState(drawn.getrandbits(32))
        session, tree = Session(question, pool), algorithm.init_tree()
        grades: list[Grade] = []  # by step index, which is also the node's state in the tree
        while (remaining := calls - len(grades)) > 0:
            with _global_draws(random):
                tree, trials = algorithm.ask_batch(tree, min(batch, remaining), list(pool.workers))
            start = len(grades)
            try:
                await session.ask_all([_step(trial, grades) for trial in trials])
            except BudgetSpent:
                if not grades:
                    raise
                break
            grades += await _graded(session, start)
            for index, trial in enumerate(trials, start=start):
                tree = algorithm.tell(tree, trial.trial_id, (index, grades[index].value))
        tested = is_tested(session)
        chosen = best_of(grades if tested else (await _graded(session, 0))[: len(grades)])
        noted: dict[str, Any] = {"step": chosen + 1, "score": round(grades[chosen].value, 4)}
        if tested:
            noted["trials"] = len(grades)
        return session.answer(session.replies[chosen].text, noted)

    return answer
