"""Best of n by a judge: one worker answers n times, one more call picks an answer by its number.

The judge sees the question and the candidates, no target. A judge that answers the question
instead of naming a number has chosen too, where a candidate gives the same answer. Picking by
public tests is for programs and another system (best-of-n-tests); picking with the exam's own
grader is an oracle.
"""

import re
from collections.abc import Sequence

from inspect_ai.solver import Solver, solver

from baselines.single import at_least_one, known
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import FALLBACK, Answer, Kind, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import REPLIES, Step

CANDIDATES = f"""\
You are the judge of several candidate answers to the user's question. Some of them may be wrong; \
several may agree and still be wrong. The candidates, numbered:

{REPLIES}"""
CHOOSE = (
    "Do not answer the question yourself. Compare the candidate answers step by step and decide "
    "which one is most likely to be correct and complete. End with one line that holds the number "
    "of that candidate and nothing else, in this form:\nCHOICE: <number>"
)
"""Our own words, both."""

SAMPLES = 5
UNREADABLE = "a judge's choice could not be read, so the first candidate stands"
"""Footnote of the row, with how often it happened."""

BEST_OF_N = SystemCard(
    name="best-of-n",
    solver="baselines/best_of_n",
    summary="One worker answers n times; a judge picks one of the answers.",
    source="podium (common practice: sample, then let a model pick)",
    calls="n + 1, with n = 5 unless said",
    expected=exactly(lambda n, args: int(args.get("n") or SAMPLES) + 1),
    prompts=(CANDIDATES, CHOOSE),
    k="n",
    on_best=True,
    deviations=(
        "the judge is the same worker unless named, and its prompt is in our own words",
        "a judge that names no number, but answers the question, picks the first candidate with "
        "that answer",
        "an unreadable choice falls back to the first candidate (counted in a footnote)",
        "samples at the worker's own temperature",
    ),
)


_CHOICE = re.compile(r"CHOICE\W{0,6}(\d{1,4})\b", re.IGNORECASE)


def chosen(reply: str, n: int) -> int | None:
    r"""Return the index from 0 of the last choice in a judge's reply; None when there is none.

    >>> chosen("I would not take 1.\nCHOICE: 2", 3), chosen("CHOICE: 4", 3)
    (1, None)
    """
    found = _CHOICE.findall(reply)
    number = int(found[-1]) if found else 0
    return number - 1 if 1 <= number <= n else None


def picked(kind: Kind, verdict: str, candidates: Sequence[str]) -> int | None:
    r"""Return the index from 0 of the candidate a judge picks: by number, else by its own answer.

    A number that is no candidate's is no choice, whatever else the judge says.

    >>> picked("integer", "It is 7.\nANSWER: 7", ["ANSWER: 5", "ANSWER: 7"])
    1
    """
    if _CHOICE.search(verdict):
        return chosen(verdict, len(candidates))
    own = normalised(kind, verdict)
    answers = [normalised(kind, candidate) for candidate in candidates]
    return answers.index(own) if own is not None and own in answers else None


def best_of_n_system(
    worker: str | None = None, n: int = SAMPLES, judge: str | None = None
) -> System:
    """Return the system that asks `worker` (default: the pool's first) n times and `judge` once."""
    at_least_one("Best of n", "n", n)

    async def answer(question: Question, pool: Pool) -> Answer:
        asked = known(pool, worker or pool.workers[0])
        picking = known(pool, judge or asked)
        session = Session(question, pool)
        drawn = await session.ask_all([Step(asked)] * n)
        verdict = await session.ask(Step(picking, CHOOSE, reads="all", system=CANDIDATES))
        at = picked(question.kind, verdict.text, [reply.text for reply in drawn])
        return session.answer(
            drawn[at or 0].text, noted={FALLBACK: UNREADABLE} if at is None else {}
        )

    return answer


@solver
def best_of_n(
    worker: str | None = None,
    n: int = SAMPLES,
    judge: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Let one worker answer n times and a judge pick one; `judge` is a worker's name."""
    return as_solver(best_of_n_system(worker, n, judge), pool)
