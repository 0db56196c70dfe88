"""One worker, asked several times: self-consistency votes, a judge picks of n, copies debate."""

import re
from collections import Counter
from collections.abc import Sequence

from baselines.common import register
from baselines.single import at_least_one, calls_by, known
from harness.execute import Session
from harness.extract import normalised
from harness.pool import Pool
from harness.records import FALLBACK, Answer, Kind, Question, Reply
from harness.system import System, SystemCard, exactly
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


@register
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


@register
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


def approves(kind: Kind, answer: str, check: str, yes: str = "CORRECT", no: str = "WRONG") -> bool:
    """Return whether the last line `VERDICT: ...` of a check approves of an answer.

    A check without a verdict approves by giving the same answer again.
    """
    verdicts = re.findall(rf"\bVERDICT\W{{1,6}}({yes}|{no})", check, re.IGNORECASE)
    if verdicts:
        return str(verdicts[-1]).upper() == yes
    found = normalised(kind, check)
    return found is not None and found == normalised(kind, answer)


OTHERS = "Other agents were asked the same question. Their latest answers:"
AGAIN = (
    "Take these answers as advice that may be wrong: compare them with your own reasoning, then "
    "give your updated answer to the question, in the form it asks for."
)
"""Our own words, from the paper's description: the authors' repository has no licence."""

AGENTS, ROUNDS = 3, 2  # the authors' setting in most of their tables

DEBATE = SystemCard(
    name="debate",
    solver="baselines/debate",
    summary="Three copies of one worker answer twice, the second time after reading each other.",
    source="Du et al. 2023, arXiv 2305.14325",
    calls="agents * rounds, 3 * 2 unless said",
    expected=exactly(
        lambda n, args: int(args.get("agents") or AGENTS) * int(args.get("rounds") or ROUNDS)
    ),
    prompts=(OTHERS, AGAIN),
    k="agents",
    on_best=True,
    deviations=(
        "the prompt is in our own words, and does not repeat the question, which opens the "
        "conversation (the authors' repository has no licence)",
        "the majority is over normalised answers, a tie goes to the first agent; programs vote by "
        "identical text",
        "agents of a round answer at once (the authors: one after another; same requests)",
        "samples at the worker's own temperature",
    ),
)


def show_others(others: Sequence[Reply]) -> str:
    """Return the message that shows an agent what the others said."""
    said = (f"Agent {number}:\n{reply.text}" for number, reply in enumerate(others, start=1))
    return "\n\n".join((OTHERS, *said, AGAIN))


@register
def debate_system(worker: str | None = None, agents: int = AGENTS, rounds: int = ROUNDS) -> System:
    """Return the debate of `agents` copies of `worker` (default: the pool's first), who then vote.

    Nobody judges. An agent's own earlier answers are turns of its conversation; what the others
    said comes in the next user message.
    """
    at_least_one("A debate", "agents", agents)
    at_least_one("A debate", "rounds", rounds)

    async def answer(question: Question, pool: Pool) -> Answer:
        asked = known(pool, worker)
        session = Session(question, pool)
        latest = await session.ask_all([Step(asked)] * agents)
        for number in range(1, rounds):
            steps: list[Step] = []
            for agent in range(agents):
                own = tuple(earlier * agents + agent for earlier in range(number))
                others = show_others(latest[:agent] + latest[agent + 1 :])
                steps.append(Step(asked, others, reads=own))
            latest = await session.ask_all(steps)
        return session.answer(vote(question.kind, [reply.text for reply in latest]))

    return answer
