"""AB-MCTS-A: a tree search that decides, before each call, whether to go wider or deeper.

Inoue et al., arXiv 2503.04412; the decisions are those of the authors' library treequest. A node is
a reply; going wider asks a worker afresh, going deeper asks one to improve the reply of a node that
is there; which worker is chosen is learnt within the question. The score that guides it comes from
public tests or from agreement between replies, never from the exam's own grader.

AB-MCTS-M, the variant with a mixed model, is left out: it needs pymc, and minutes per decision.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.by_tests import best_of, public_results
from baselines.common import import_extra, seeded_random
from baselines.single import at_least_one
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Grade, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import Step

if TYPE_CHECKING:
    from collections.abc import Generator

CALLS = 10
"""Worker calls per question."""

REFINE = (
    "The answer above is not known to be right. What is known about it:\n{feedback}\n"
    "Find what is wrong or weak in it, and answer the question again, completely and in the form "
    "it asks for."
)
"""Our own words: the authors' prompts are made for their benchmarks."""

AGREEMENT = "{same} of {others} other answers so far agree with it."
UNREADABLE = "No answer could be read from it."
FIRST = 0.5
"""The score of a readable answer that stands alone: nobody has agreed or disagreed with it."""

AB_MCTS = SystemCard(
    name="ab-mcts",
    solver="baselines/ab_mcts",
    summary="A tree search goes wider or deeper, with whom it has learnt to; the best reply wins.",
    source="Inoue et al. 2025, arXiv 2503.04412 (AB-MCTS-A; library treequest)",
    calls="10 unless said",
    expected=exactly(lambda n, args: int(args.get("calls") or CALLS)),
    prompts=(REFINE, AGREEMENT, UNREADABLE),
    k="calls",
    extra="routers",
    modules=("treequest",),
    adaptive=True,
    deviations=(
        "the budget is 10 calls; the authors spend many times as many",
        "the score is the share of public tests where questions show tests, else the share of "
        "other replies so far with the same answer (the authors have a score from the task)",
        "where agreement scores, the answer that most replies share in the end wins; a tie goes to "
        "the first that can be read",
        "the prompt that asks to improve a reply is in our own words",
        "every worker of the pool is an action, as in the authors' multi-model variant",
    ),
)


@dataclass(slots=True)
class _Search:
    """One search: the tree of the library, and what the replies were worth."""

    session: Session
    random: np.random.RandomState
    algorithm: Any
    tree: Any
    grades: list[Grade] = field(default_factory=list[Grade])
    """By step; what the tree was told."""

    async def grow(self, batch: int) -> None:
        """Ask so many decisions of the library, carry them out side by side, and tell the scores.

        A decision of the library draws from numpy's global state, so that state is ours while it
        decides, and nobody else's draws are changed.
        """
        workers = list(self.session.pool.workers)
        with _global_draws(self.random):
            self.tree, trials = self.algorithm.ask_batch(self.tree, batch, workers)
        start = len(self.session.replies)
        await self.session.ask_all([self._step(trial) for trial in trials])
        self.grades += await self._graded(start)
        for at, trial in enumerate(trials, start=start):
            told = (at, self.grades[at].value)
            self.tree = self.algorithm.tell(self.tree, trial.trial_id, told)

    def best(self) -> int:
        """Return the step whose reply is the answer: the first of those with the highest score."""
        if self.is_tested:
            return best_of(self.grades)
        answers = self._answers()
        return best_of([agreement(answers, at) for at in range(len(answers))])

    @property
    def is_tested(self) -> bool:
        """Whether public tests score, and not agreement."""
        return (
            self.session.question.kind == "program" and self.session.pool.public_tests is not None
        )

    def _step(self, trial: Any) -> Step:
        parent: int | None = trial.parent_state
        if parent is None:
            return Step(trial.action)
        feedback = self.grades[parent].explanation
        return Step(trial.action, REFINE.format(feedback=feedback), reads=(parent,))

    async def _graded(self, start: int) -> list[Grade]:
        """Return what the replies from `start` on are worth."""
        if self.is_tested:
            texts = [reply.text for reply in self.session.replies[start:]]
            return await public_results(self.session, texts)
        answers = self._answers()
        return [agreement(answers, at) for at in range(start, len(answers))]

    def _answers(self) -> list[str | None]:
        kind = self.session.question.kind
        return [normalised(kind, reply.text) for reply in self.session.replies]


def agreement(answers: Sequence[str | None], at: int) -> Grade:
    """Return what share of the other answers is the same as one of them; 0 where it is unreadable.

    >>> agreement(["7", "7", "8"], 0).value, agreement(["7"], 0).value, agreement([None], 0).value
    (0.5, 0.5, 0.0)
    """
    mine, others = answers[at], len(answers) - 1
    if mine is None:
        return Grade(0.0, None, UNREADABLE)
    same = Counter(answers)[mine] - 1
    value = same / others if others else FIRST
    return Grade(value, mine, AGREEMENT.format(same=same, others=others))


@contextmanager
def _global_draws(random: np.random.RandomState) -> "Generator[None]":
    """Let numpy's global state be this one's for a moment; nothing may be awaited meanwhile."""
    kept: Any = np.random.get_state()
    np.random.set_state(random.get_state())
    try:
        yield
    finally:
        random.set_state(np.random.get_state())
        np.random.set_state(kept)


def ab_mcts_system(calls: int = CALLS, batch: int = 1, seed: int = 0) -> System:
    """Return the system that searches with `calls` worker calls, `batch` of them side by side."""
    at_least_one("ab-mcts", "calls", calls)
    at_least_one("ab-mcts", "batch", batch)
    library = import_extra("treequest", "routers")

    async def answer(question: Question, pool: Pool) -> Answer:
        algorithm: Any = library.ABMCTSA()
        drawn = seeded_random(AB_MCTS.name, seed, question.id, pool.epoch)
        random = np.random.RandomState(drawn.getrandbits(32))
        search = _Search(Session(question, pool), random, algorithm, algorithm.init_tree())
        while (left := calls - len(search.grades)) > 0:
            await search.grow(min(batch, left))
        chosen = search.best()
        noted: dict[str, Any] = {"step": chosen + 1, "score": round(search.grades[chosen].value, 4)}
        if search.is_tested:
            noted["trials"] = calls
        return search.session.answer(search.session.replies[chosen].text, noted)

    return answer


@solver
def ab_mcts(calls: int = CALLS, batch: int = 1, seed: int = 0, pool: str | None = None) -> Solver:
    """Search a tree of replies with `calls` worker calls and answer with the best of them."""
    return as_solver(ab_mcts_system(calls, batch, seed), pool)
