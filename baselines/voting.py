"""Systems that merge several replies: by vote, judge, debate, or the most central (Smoothie)."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from podium.baselines.common import (
    Rounds,
    hash_words,
    learnt_from,
    refuse_too_few,
    register,
    register_learner,
)
from podium.baselines.single import at_least_one, calls_by, known
from podium.harness.errors import UserError
from podium.harness.execute import Session, vote
from podium.harness.extract import normalised
from podium.harness.learning import Artifact, Floats, Round, TrainingBudget
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec
from podium.harness.records import FALLBACK, Answer, Kind, Question
from podium.harness.rewards.splits import refuse_unfit
from podium.harness.system import VOTED, Calls, System, SystemCard, SystemMethods, exactly
from podium.harness.workflow import REPLIES, Sampling, Step

LAST_ROUND = "the vote of its last complete round"
SAMPLES = 5  # votes of self-consistency, candidates of best-of-n

SELF_CONSISTENCY = SystemCard(
    name="self-consistency",
    solver="podium/self_consistency",
    summary="One worker answers k times; the most frequent answer wins.",
    source="Wang et al. 2022, arXiv 2203.11171",
    calls=Calls("k, with k = 5 by default", calls_by("k", SAMPLES)),
    k="k",
    traits=frozenset({"best worker"}),
    deviations=(
        "samples at the worker's own temperature unless one is given (the authors: 0.5 to 0.8), so "
        "that k epochs of the single worker are the same draws",
        "a tie goes to the answer that appeared first",
        "programs vote by identical text, which is weak: best-of-n-tests and compute-matched-* "
        "pick by public tests instead",
    ),
    acts="votes",
    spent=VOTED,
)


@register
def self_consistency_system(
    worker: str | None = None, k: int = SAMPLES, temperature: float | None = None
) -> System:
    """Return the system that asks `worker` (default: the pool's first) k times and votes."""
    at_least_one("Self-consistency", "k", k)
    sampling = None if temperature is None else Sampling(temperature)

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        steps = [Step(known(pool, worker), sampling=sampling)] * k
        drawn = await session.ask_all(steps, partly=True)
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
"""The two prompts of best-of-n's judge, in our own words."""

UNREADABLE = "a judge's choice could not be read, so the first candidate stands"
"""Footnote of a best-of-n row; the table prints it with the number of questions affected."""

BEST_OF_N = SystemCard(
    name="best-of-n",
    solver="podium/best_of_n",
    summary="One worker answers n times; a judge picks one of the answers.",
    source="podium (common practice: sample, then let a model pick)",
    calls=Calls("n + 1, with n = 5 by default", calls_by("n", SAMPLES, 1)),
    prompts=(CANDIDATES, CHOOSE),
    k="n",
    traits=frozenset({"best worker"}),
    deviations=(
        "the judge is the same worker unless named, and its prompt is in our own words",
        "a judge that names no number, but answers the question, picks the first candidate with "
        "that answer",
        "an unreadable choice falls back to the first candidate (counted in a footnote)",
        "samples at the worker's own temperature",
    ),
    acts="votes",
    spent=VOTED,
)

_CHOICE = re.compile(r"CHOICE\W{0,6}(\d{1,4})\b", re.IGNORECASE)


def choice_number(reply: str, n: int) -> int | None:
    r"""Return a judge's last `CHOICE:` number as an index from 0; None if absent or not 1 to `n`.

    >>> choice_number("I would not take 1.\nCHOICE: 2", 3), choice_number("CHOICE: 4", 3)
    (1, None)
    """
    numbers = _CHOICE.findall(reply)
    number = int(numbers[-1]) if numbers else 0
    return number - 1 if 1 <= number <= n else None


def pick_candidate(kind: Kind, verdict: str, candidates: Sequence[str]) -> int | None:
    r"""Return the index of the candidate that a judge picks: by number, else by an equal answer.

    None if no candidate has the judge's number or, if it gives no number, the judge's answer.

    >>> pick_candidate("integer", "It is 7.\nANSWER: 7", ["ANSWER: 5", "ANSWER: 7"])
    1
    """
    if _CHOICE.search(verdict):
        return choice_number(verdict, len(candidates))
    answer = normalised(kind, verdict)
    answers = [normalised(kind, candidate) for candidate in candidates]
    return answers.index(answer) if answer is not None and answer in answers else None


@register
def best_of_n_system(
    worker: str | None = None, n: int = SAMPLES, judge: str | None = None
) -> System:
    """Return best-of-n: a worker (None: the pool's first) answers `n` times, a judge picks."""
    at_least_one("Best of n", "n", n)

    async def answer(question: Question, pool: Pool) -> Answer:
        name = known(pool, worker)
        picking = known(pool, judge or name)
        session = Session(question, pool)
        drawn = await session.ask_all([Step(name)] * n, partly=True, keeps=1)
        judging = Step(picking, CHOOSE, reads="all", system=CANDIDATES)
        verdict = await session.ask(judging, opinion=True)
        picked = pick_candidate(question.kind, verdict.text, [reply.text for reply in drawn])
        noted = {FALLBACK: UNREADABLE} if picked is None else {}
        return session.answer(drawn[picked or 0].text, noted)

    return answer


def approves(kind: Kind, answer: str, check: str, yes: str = "CORRECT", no: str = "WRONG") -> bool:
    """Return whether a verifier's reply says `yes`; without verdict, if it repeats `answer`."""
    verdicts = re.findall(rf"\bVERDICT\W{{1,6}}({yes}|{no})", check, re.IGNORECASE)
    if verdicts:
        return str(verdicts[-1]).upper() == yes
    stated = normalised(kind, check)
    return stated is not None and stated == normalised(kind, answer)


OTHERS = "Other agents were asked the same question. Their latest answers:"
AGAIN = (
    "Take these answers as advice that may be wrong: compare them with your own reasoning, then "
    "give your updated answer to the question, in the form it asks for."
)
"""The debate's prompts, in our words after the paper: its authors' repository has no licence."""

AGENTS, ROUNDS = 3, 2  # as in most of the authors' tables

DEBATE = SystemCard(
    name="debate",
    solver="podium/debate",
    summary="Three copies of one worker answer, read each other's answers and answer again.",
    source="Du et al. 2023, arXiv 2305.14325",
    calls=Calls(
        "agents * rounds, 3 * 2 by default",
        exactly(
            lambda n, args: int(args.get("agents") or AGENTS) * int(args.get("rounds") or ROUNDS)
        ),
    ),
    prompts=(OTHERS, AGAIN),
    k="agents",
    traits=frozenset({"best worker"}),
    deviations=(
        "the prompt is in our own words, and does not repeat the question, which opens the "
        "conversation (the authors' repository has no licence)",
        "the majority is over normalised answers, a tie goes to the first agent; programs vote by "
        "identical text",
        "agents of a round answer at once (the authors: one after another; same requests)",
        "samples at the worker's own temperature",
    ),
    spent=LAST_ROUND,
)


@register
def debate_system(worker: str | None = None, agents: int = AGENTS, rounds: int = ROUNDS) -> System:
    """Return the debate: `agents` copies of a worker answer in `rounds`, then vote."""
    at_least_one("A debate", "agents", agents)
    at_least_one("A debate", "rounds", rounds)

    async def answer(question: Question, pool: Pool) -> Answer:
        name = known(pool, worker)
        session = Session(question, pool)
        latest = await session.ask_all([Step(name)] * agents)
        for number in range(1, rounds):
            steps: list[Step] = []
            for agent in range(agents):
                turns = tuple(earlier * agents + agent for earlier in range(number))
                peers = enumerate(latest[:agent] + latest[agent + 1 :], start=1)
                quotes = (f"Agent {n}:\n{reply.text}" for n, reply in peers)
                steps.append(Step(name, "\n\n".join((OTHERS, *quotes, AGAIN)), reads=turns))
            latest = await session.ask_all(steps)
        return session.answer(vote(question.kind, [reply.text for reply in latest]))

    return answer


TRIPLET = 3  # minimum number of workers
DIMS = 512  # embedding dimensions of an answer
APART = 2.0  # squared distance of answers with nothing in common: orthogonal unit vectors
GLOBAL, DISTANCES = "smoothie-global", "distances"
_OF_SMOOTHIE = (
    "the answers that are found in replies are embedded, by hashed words, offline (the authors: "
    "the first line of a reply, by a sentence embedder)",
    "a reply in which no answer is found agrees with nobody, and is given only where none is found "
    "in any",
    "the smallest estimate is trusted even where it is negative (the authors' code makes that a "
    "negative weight)",
    "a worker without a reply leaves the question unscored",
)


def triplet_errors(distances: Floats) -> Floats:
    """Return each worker's estimated squared error, from (n, n) squared distances of their answers.

    Worker i's error is the mean of (d_ij + d_ik - d_jk) / 2 over all pairs j, k of other workers:
    the triplet estimator (section 4 of Smoothie's paper). The paper weights workers by the inverse
    of the error, so the smallest error has the largest weight. Noise can make an error negative.

    >>> triplet_errors(np.array([[0, 3, 5], [3, 0, 6], [5, 6, 0.0]])).tolist()
    [1.0, 2.0, 4.0]
    """
    n = len(distances)
    sums = distances.sum(axis=1)
    pairs = (n - 1) * (n - 2) / 2
    return ((n - 1) * sums - distances.sum() / 2) / (2 * pairs)


def answer_distances(answers: Sequence[str | None]) -> Floats:
    """Return squared distances (n, n) of answers, 0 to 4; `APART` if one of the two is None."""
    points = np.array([hash_words(answer or "", DIMS) for answer in answers])
    squares: Floats = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    lacking = [index for index, answer in enumerate(answers) if answer is None]
    squares[lacking, :] = squares[:, lacking] = APART
    np.fill_diagonal(squares, 0.0)
    return squares


def most_trusted(distances: Floats, answers: Sequence[str | None]) -> int:
    """Return the index of the worker of least error, among those with an answer if any has one."""
    errors = np.round(triplet_errors(distances), 12)
    answered = [index for index, answer in enumerate(answers) if answer is not None]
    return min(answered or range(len(answers)), key=lambda index: errors[index])


def smoothie_system(learned: Artifact | None = None) -> System:
    """Return Smoothie: all workers answer, and the answer nearest to all others is returned.

    After the paper, Guha et al. 2024, arXiv 2412.04692. Extracted answers are embedded, not whole
    replies: refusals in equal words would be near each other, and be chosen. Distances learnt on
    train questions (`learned`) are added to those of the question.
    """

    async def answer(question: Question, pool: Pool) -> Answer:
        if len(pool.workers) < TRIPLET:
            raise UserError(
                f"Smoothie needs at least {TRIPLET} workers, and this pool has "
                f"{len(pool.workers)}. Use a larger pool."
            )
        if learned:
            refuse_unfit(learned, pool.workers, question)
        workers = learned.about.workers if learned else pool.workers
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in workers])
        answers = [normalised(question.kind, reply.text) for reply in replies]
        here = answer_distances(answers)
        trusted = most_trusted(learned.arrays[DISTANCES] + here if learned else here, answers)
        upper = here[np.triu_indices(len(workers), 1)]
        noted = {"trusted": workers[trusted], DISTANCES: [round(float(x), 6) for x in upper]}
        return session.answer(replies[trusted].text, noted)

    return answer


class SmoothieExplorer:
    """Training procedure: ask every worker as many train questions as the budget pays for."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the only round of training calls; None once that round is done."""
        each = len(given.workers)
        refuse_too_few(GLOBAL, given, max(TRIPLET, each))
        questions = min(len(given.questions), given.calls // each)
        return None if done else Round("podium/smoothie_local", {}, questions, 1, most_calls=each)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the artefact: distances of workers' answers, summed over train questions."""
        n = len(given.workers)
        total = np.zeros((n, n))
        noted = [t.noted[DISTANCES] for tried in done for t in tried if DISTANCES in t.noted]
        for upper in noted:
            total[np.triu_indices(n, 1)] += np.array(upper, dtype=np.float64)
        settings = {"embedder": f"hashed words of answers, {DIMS}", "tries": len(noted)}
        return Artifact(learnt_from(GLOBAL, given, done, settings), {DISTANCES: total + total.T})


class _Triplets(SystemMethods):
    def pool_refusal(self, x: str, spec: PoolSpec) -> str | None:
        if (has := len(spec.names)) >= TRIPLET:
            return None
        return f"needs at least {TRIPLET} workers, and pool {spec.name!r} has {has}. Use another."


class _Exploring(_Triplets):
    def explorer(self) -> SmoothieExplorer:
        return SmoothieExplorer()


SMOOTHIE_LOCAL = SystemCard(
    name="smoothie-local",
    solver="podium/smoothie_local",
    summary="Every worker answers; the answer nearest to all others wins.",
    group="routers",
    source="Guha et al. 2024, arXiv 2412.04692",
    calls=Calls("n", exactly(lambda n, _: n)),
    methods=_Triplets(),
    deviations=(
        "fitted on the replies to the question itself (the authors: also to its neighbours in the "
        "suite)",
        *_OF_SMOOTHIE,
    ),
    acts="votes",
    spent=VOTED,
)
SMOOTHIE_GLOBAL = replace(
    SMOOTHIE_LOCAL,
    name=GLOBAL,
    solver="podium/smoothie_global",
    summary="Every worker answers; the one that agreed most on train questions is trusted.",
    methods=_Exploring(),
    deviations=(
        "fitted on replies to the train split and to the question (theirs: to the whole suite)",
        *_OF_SMOOTHIE,
    ),
)


register_learner(GLOBAL, smoothie_system)
register(lambda: smoothie_system(), "smoothie_local")
