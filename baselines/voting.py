"""One worker, asked several times: self-consistency votes, best-of-n lets a judge pick."""

import re
from collections import Counter
from collections.abc import Sequence

from baselines.common import registered
from baselines.single import at_least_one, calls_by, known
from harness.execute import Session
from harness.extract import normalised
from harness.pool import Pool
from harness.records import FALLBACK, Answer, Kind, Question
from harness.system import System, SystemCard
from harness.workflow import REPLIES, Sampling, Step

SAMPLES = 5  # votes of self-consistency, candidates of best-of-n

SELF_CONSISTENCY = SystemCard(
    name="self-consistency",
    solver="baselines/self_consistency",
    summary="One worker answers k times; the most frequent answer wins.",
    source="Wang et al. 2022, arXiv 2203.11171",
    calls="k, with k = 5 unless said",
    expected=calls_by("k", SAMPLES),
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
    """Return the first reply with the most frequent answer; of equals, with the first answer.

    Replies without an answer do not vote; when nobody answered, the first reply stands.
    """
    answers = [normalised(kind, reply) for reply in replies]
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return replies[0] if replies else ""
    winner = votes.most_common(1)[0][0]
    return replies[answers.index(winner)]


def self_consistency_system(
    worker: str | None = None, k: int = SAMPLES, temperature: float | None = None
) -> System:
    """Return the system that asks `worker` (default: the pool's first) k times and votes."""
    at_least_one("Self-consistency", "k", k)
    sampling = None if temperature is None else Sampling(temperature)

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        drawn = await session.ask_all([Step(known(pool, worker), sampling=sampling)] * k)
        return session.answer(vote(question.kind, [reply.text for reply in drawn]))

    return answer


self_consistency = registered(self_consistency_system)


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

UNREADABLE = "a judge's choice could not be read, so the first candidate stands"
"""Footnote of the row, with how often it happened."""

BEST_OF_N = SystemCard(
    name="best-of-n",
    solver="baselines/best_of_n",
    summary="One worker answers n times; a judge picks one of the answers.",
    source="podium (common practice: sample, then let a model pick)",
    calls="n + 1, with n = 5 unless said",
    expected=calls_by("n", SAMPLES, 1),
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
        asked = known(pool, worker)
        picking = known(pool, judge or asked)
        session = Session(question, pool)
        drawn = await session.ask_all([Step(asked)] * n)
        verdict = await session.ask(Step(picking, CHOOSE, reads="all", system=CANDIDATES))
        at = pick_candidate(question.kind, verdict.text, [reply.text for reply in drawn])
        noted = {FALLBACK: UNREADABLE} if at is None else {}
        return session.answer(drawn[at or 0].text, noted)

    return answer


best_of_n = registered(best_of_n_system)


def approves(kind: Kind, answer: str, check: str, yes: str = "CORRECT", no: str = "WRONG") -> bool:
    """Return whether the last line `VERDICT: ...` of a check approves of an answer.

    A check without a verdict approves by giving the same answer again.
    """
    verdicts = re.findall(rf"\bVERDICT\W{{1,6}}({yes}|{no})", check, re.IGNORECASE)
    if verdicts:
        return str(verdicts[-1]).upper() == yes
    found = normalised(kind, check)
    return found is not None and found == normalised(kind, answer)
