"""One worker, asked several times: self-consistency votes, best-of-n lets a judge pick."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspect_ai.solver import Solver, solver

from baselines.single import at_least_one, known
from harness.execute import Session, execute
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import FALLBACK, Answer, Kind, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import REPLIES, Sampling, Step, Workflow

# § Self-consistency: ask one worker k times, vote on the answers (Wang et al., arXiv
# § 2203.11171).
# §
# § The vote is over normalised answers, not over scores. For programs it is the plurality of
# § identical
# § programs, which is weak; agreement on what programs compute would need a box. Offline
# § variants
# § (maj@k from one k-sample run) belong to reports/.


VOTES = 5

SELF_CONSISTENCY = SystemCard(
    name="self-consistency",
    solver="baselines/self_consistency",
    summary="One worker answers k times; the most frequent answer wins.",
    source="Wang et al. 2022, arXiv 2203.11171",
    calls="k, with k = 5 unless said",
    expected=exactly(lambda n, args: int(args.get("k") or VOTES)),
    k="k",
    on_best=True,
    deviations=(
        "samples at the worker's own temperature unless one is given (the authors: 0.5 to 0.8), so "
        "that k epochs of the single worker are the same draws",
        "a tie goes to the answer that appeared first",
        "programs vote by identical text, which is weak: best-of-n-tests and compute-matched-* "
        "pick by public tests instead",
    ),
)


def vote(kind: Kind, replies: Sequence[str]) -> str:
    """Return the first reply that holds the most frequent answer.

    Replies without an answer do not vote. A tie goes to the answer that appeared first; when
    nobody answered, the first reply stands.
    """
    answers = [normalised(kind, reply) for reply in replies]
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return replies[0] if replies else ""
    winner = votes.most_common(1)[0][0]
    return replies[answers.index(winner)]


def self_consistency_system(
    worker: str | None = None, k: int = VOTES, temperature: float | None = None
) -> System:
    """Return the system that asks `worker` (default: the pool's first) k times and votes."""
    at_least_one("Self-consistency", "k", k)
    sampling = None if temperature is None else Sampling(temperature)

    async def answer(question: Question, pool: Pool) -> Answer:
        asked = known(pool, worker or pool.workers[0])
        workflow = Workflow(tuple(Step(asked, sampling=sampling) for _ in range(k)))
        drawn = await execute(workflow, question, pool)
        chosen = vote(question.kind, [reply.text for reply in drawn.replies])
        return replace(drawn, text=chosen)

    return answer


@solver
def self_consistency(
    worker: str | None = None,
    k: int = VOTES,
    temperature: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask one worker k times at once and give the answer of the majority."""
    return as_solver(self_consistency_system(worker, k, temperature), pool)


# § Best of n by a judge: one worker answers n times, one more call picks an answer by its
# § number.
# §
# § The judge sees the question and the candidates, no target. A judge that answers the
# § question
# § instead of naming a number has chosen too, where a candidate gives the same answer.
# § Picking by
# § public tests is for programs and another system (best-of-n-tests); picking with the exam's
# § own
# § grader is an oracle.


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


def choice_number(reply: str, n: int) -> int | None:
    r"""Return the index from 0 of the last choice in a judge's reply; None when there is none.

    >>> choice_number("I would not take 1.\nCHOICE: 2", 3), choice_number("CHOICE: 4", 3)
    (1, None)
    """
    found = _CHOICE.findall(reply)
    number = int(found[-1]) if found else 0
    return number - 1 if 1 <= number <= n else None


def pick_candidate(kind: Kind, verdict: str, candidates: Sequence[str]) -> int | None:
    r"""Return the index from 0 of the candidate a judge picks: by number, else by its own answer.

    A number that is no candidate's is no choice, whatever else the judge says.

    >>> pick_candidate("integer", "It is 7.\nANSWER: 7", ["ANSWER: 5", "ANSWER: 7"])
    1
    """
    if _CHOICE.search(verdict):
        return choice_number(verdict, len(candidates))
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
        at = pick_candidate(question.kind, verdict.text, [reply.text for reply in drawn])
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
