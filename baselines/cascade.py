"""Cascades: ask a cheap worker, keep its answer if a scorer trusts it, else ask a dearer one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, Literal, cast

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.common import hash_words, learnt_from, refuse_taught, refuse_too_few
from baselines.routers.optimisers import ridge_logistic, sigmoid
from baselines.single import known
from baselines.voting import vote
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Artifact,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import Expected, System, SystemCard
from harness.workflow import Step

# § Ask one worker and say how much its answer is to be trusted: the stages of a cascade.
# §
# § Three scorers: `agreement` (k samples, the share that agrees), `verifier` (the worker
# § checks its own
# § answer k times, as AutoMix does), `logistic` (a fitted score of question and answer, as
# § FrugalGPT's,
# § in numbers where that has a language model). Every call of theirs is a step, and billed.
# § Not here:
# § what is done with a confidence (cascade.py).


Scorer = Literal["agreement", "verifier", "logistic"]
SCORERS: tuple[Scorer, ...] = ("agreement", "verifier", "logistic")

VERIFY = (
    "Check your answer above: redo what could be wrong with it. End with the line VERDICT: CORRECT "
    "if it is right as it stands, or with the line VERDICT: WRONG if it is not."
)
"""Our own wording of AutoMix's self-verification (arXiv 2310.12963), without examples."""

_VERDICT = re.compile(r"\bVERDICT\W{1,6}(CORRECT|WRONG)", re.IGNORECASE)
WORDS = 32
"""Hashed features of the question, and again of the reply."""
FEATURES = 2 * WORDS + 3
DECIMALS = 4
"""Of features in a log."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How answers are scored."""

    scorer: Scorer = "agreement"
    samples: int = 3
    """Samples that are to agree, or checks of the verifier; `logistic` makes none."""

    def __post_init__(self) -> None:
        """Refuse what is no scorer."""
        if self.scorer not in SCORERS or self.samples < 1:
            known = ", ".join(SCORERS)
            raise UserError(
                f"A cascade's scorer is one of {known}, with samples of at least 1, not "
                f"{self.scorer!r} with {self.samples}."
            )

    @property
    def calls(self) -> int:
        """Calls of a stage that is scored."""
        return {"agreement": self.samples, "verifier": 1 + self.samples, "logistic": 1}[self.scorer]

    @property
    def last_calls(self) -> int:
        """Calls of the last stage, whose answer stands whatever its score."""
        return self.samples if self.scorer == "agreement" else 1

    @property
    def confidences(self) -> tuple[float, ...]:
        """Confidences from which on it may be right to accept."""
        if self.scorer == "logistic":
            return (0.3, 0.5, 0.7, 0.9)
        return tuple(k / self.samples for k in range(1, self.samples + 1))


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """What a worker answers, and how sure the scorer is."""

    text: str
    confidence: float
    """Between 0 and 1; 0 for a reply without an answer."""
    features: tuple[float, ...] = ()
    """What `logistic` is fitted to."""


async def score_answer(
    session: Session, worker: str, scoring: Scoring, weights: Floats | None = None
) -> ScoredAnswer:
    """Ask a worker and score its answer; `weights` are what `logistic` learnt, None for nothing."""
    kind = session.question.kind
    if scoring.scorer == "agreement":
        replies = await session.ask_all([Step(worker)] * scoring.samples)
        return score_agreement(kind, [reply.text for reply in replies])
    said = (await session.ask(Step(worker))).text
    if scoring.scorer == "verifier":
        checks = [Step(worker, VERIFY, reads=(len(session.steps) - 1,))] * scoring.samples
        votes = [says_correct(kind, said, one.text) for one in await session.ask_all(checks)]
        return ScoredAnswer(said, sum(votes) / len(votes))
    seen = answer_features(session.question, said)
    sure = float(sigmoid(seen @ weights)) if weights is not None else 0.5
    return ScoredAnswer(said, sure, tuple(round(float(one), DECIMALS) for one in seen))


async def last_answer(session: Session, worker: str, scoring: Scoring) -> str:
    """Return the answer of a cascade's last stage: as it is scored elsewhere, without a score."""
    replies = await session.ask_all([Step(worker)] * scoring.last_calls)
    return vote(session.question.kind, [reply.text for reply in replies])


def score_agreement(kind: Kind, replies: Sequence[str]) -> ScoredAnswer:
    """Return the most frequent answer and the share of replies that give it."""
    chosen = vote(kind, replies)
    answer = normalised(kind, chosen)
    if answer is None:
        return ScoredAnswer(chosen, 0.0)
    same = sum(normalised(kind, reply) == answer for reply in replies)
    return ScoredAnswer(chosen, same / len(replies))


def says_correct(kind: Kind, answer: str, check: str) -> bool:
    """Return whether a check says that an answer is right.

    A check without a verdict says so by giving the same answer again.
    """
    verdicts = _VERDICT.findall(check)
    if verdicts:
        return str(verdicts[-1]).upper() == "CORRECT"
    found = normalised(kind, check)
    return found is not None and found == normalised(kind, answer)


def answer_features(question: Question, reply: str) -> Floats:
    """Return (FEATURES,) numbers of a question and a reply, a constant among them."""
    answered = float(normalised(question.kind, reply) is not None)
    shape = [1.0, answered, min(1.0, len(reply) / 4000)]
    return np.array([*shape, *hash_words(question.text, WORDS), *hash_words(reply, WORDS)])


# § Learn a cascade: try every worker with its scorer, then take the best order and
# § thresholds.
# §
# § A try is one question with one worker: the worker is the epoch. Lists of at most three
# § workers and
# § all thresholds are enumerated, as FrugalGPT does; a train split of a few questions
# § overfits, which
# § the table's other rows show.


ORDER, THRESHOLDS, WEIGHTS = "order", "thresholds", "weights"
STAGES = 3
"""FrugalGPT's longest list."""
RIDGE = np.ones(FEATURES)
"""Ridge on each weight of a fitted scorer."""
FOLDS = 5
"""Of the questions on which a fitted scorer's thresholds are chosen."""


@dataclass(frozen=True, slots=True)
class CascadeTries:
    """What was tried, (questions, workers) each."""

    values: Floats
    confidences: Floats
    costs: Floats
    """Of a stage that is scored: dollars, or calls where a price is unknown."""
    last_share: float
    """Share of that cost which a last stage has."""


@dataclass(frozen=True, slots=True)
class CascadeChain:
    """Workers by place in the pool, with what they do on the tries."""

    order: tuple[int, ...]
    thresholds: tuple[float, ...]
    value: float
    cost: float


def measure_chain(
    tries: CascadeTries, order: Sequence[int], thresholds: Sequence[float]
) -> CascadeChain:
    """Return a cascade's mean grade and cost on the tries."""
    value = np.zeros(len(tries.values))
    cost = np.zeros(len(tries.values))
    open_ = np.ones(len(tries.values), dtype=bool)
    for at, threshold in zip(order, thresholds, strict=False):
        cost += np.where(open_, tries.costs[:, at], 0)
        accept = open_ & (tries.confidences[:, at] >= threshold)
        value += np.where(accept, tries.values[:, at], 0)
        open_ &= ~accept
    value += np.where(open_, tries.values[:, order[-1]], 0)
    cost += np.where(open_, tries.costs[:, order[-1]] * tries.last_share, 0)
    return CascadeChain(tuple(order), tuple(thresholds), float(value.mean()), float(cost.mean()))


def enumerate_chains(tries: CascadeTries, levels: Sequence[float]) -> Iterator[CascadeChain]:
    """Yield every cascade of at most `STAGES` workers."""
    workers = range(tries.values.shape[1])
    for length in range(1, min(STAGES, len(workers)) + 1):
        for order in permutations(workers, length):
            for thresholds in product(levels, repeat=length - 1):
                yield measure_chain(tries, order, thresholds)


def best_chain(found: Iterator[CascadeChain]) -> CascadeChain:
    """Return the most accurate cascade; ties go to the cheapest, then to the first."""
    return min(found, key=lambda one: (-round(one.value, 9), round(one.cost, 12)))


@dataclass(frozen=True, slots=True)
class CascadeExplorer:
    """Tries every worker with its scorer on as many questions as the budget pays for."""

    name: str
    scoring: Scoring

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the one round there is."""
        each = self.scoring.calls * len(given.workers)
        refuse_too_few(self.name, given, each)
        if done:
            return None
        args = {"scorer": self.scoring.scorer, "samples": self.scoring.samples}
        most = min(len(given.questions), given.calls // each)
        workers = len(given.workers)
        return Round("baselines/try_cascade", args, most, workers, most_calls=self.scoring.calls)

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the best list of workers with its thresholds, and the scorer's weights."""
        rows = _complete([one for tried in done for one in tried], len(given.workers))
        weights = self._weights(rows, len(given.workers))
        tries = self._tables(rows)
        chosen = best_chain(enumerate_chains(tries, self.scoring.confidences))
        settings = {
            "scorer": self.scoring.scorer,
            "samples": self.scoring.samples,
            "questions": len(rows),
            "train_accuracy": chosen.value,
        }
        arrays = {
            ORDER: np.array(chosen.order, dtype=np.int64),
            THRESHOLDS: np.array(chosen.thresholds, dtype=np.float64),
            WEIGHTS: weights,
        }
        return Artifact(learnt_from(self.name, given, done, settings), arrays)

    def _weights(self, rows: Sequence[Sequence[TrialResult]], workers: int) -> Floats:
        """Return (workers, FEATURES) logistic weights; no rows for the other scorers."""
        if self.scoring.scorer != "logistic":
            return np.zeros((0, FEATURES))
        seen = np.array([[one.noted["features"] for one in row] for row in rows], dtype=np.float64)
        seen = seen.reshape(len(rows), workers, FEATURES)
        right = np.array([[one.value for one in row] for row in rows], dtype=np.float64)
        right = right.reshape(len(rows), workers)
        return np.array([ridge_logistic(seen[:, at], right[:, at], RIDGE) for at in range(workers)])

    def _out_of_fold(self, rows: Sequence[Sequence[TrialResult]]) -> list[list[float]]:
        """Return (questions, workers) confidences by scorers that have not seen the question.

        On what it was fitted to, a scorer with more features than questions is nearly always sure
        and right, and every threshold looks good.
        """
        sure = [[0.0] * len(row) for row in rows]
        for fold in range(min(FOLDS, len(rows))):
            taught = [row for at, row in enumerate(rows) if at % FOLDS != fold]
            weights = self._weights(taught, len(rows[0]))
            for at in range(fold, len(rows), FOLDS):
                for worker, one in enumerate(rows[at]):
                    seen = np.array(one.noted["features"], dtype=np.float64)
                    sure[at][worker] = float(sigmoid(seen @ weights[worker]))
        return sure

    def _tables(self, rows: Sequence[Sequence[TrialResult]]) -> CascadeTries:
        priced = all(one.usd is not None for row in rows for one in row)
        sure = [[float(one.noted["confidence"]) for one in row] for row in rows]
        if self.scoring.scorer == "logistic":
            sure = self._out_of_fold(rows)
        costs = [[one.usd if priced else one.calls for one in row] for row in rows]
        return CascadeTries(
            values=np.array([[one.value for one in row] for row in rows], dtype=np.float64),
            confidences=np.array(sure, dtype=np.float64),
            costs=np.array(costs, dtype=np.float64),
            last_share=self.scoring.last_calls / self.scoring.calls,
        )


def _complete(tries: Sequence[TrialResult], workers: int) -> list[list[TrialResult]]:
    """Return the tries by question, in epoch order, of questions that every worker was graded on.

    UserError when there is none.
    """
    by_question: dict[str, dict[int, TrialResult]] = {}
    for one in tries:
        if one.value is not None:
            by_question.setdefault(one.question, {})[one.epoch] = one
    rows = [[row[at] for at in sorted(row)] for row in by_question.values() if len(row) == workers]
    if not rows:
        raise UserError(
            "A cascade learnt nothing: no train question was answered by all workers; run it again."
        )
    return rows


# § A cascade: ask a cheap worker, keep its answer if a scorer trusts it, else ask a dearer
# § one.
# §
# § FrugalGPT (Chen et al. 2023, arXiv 2305.05176) and AutoMix (Aggarwal et al. 2023, arXiv
# § 2310.12963),
# § written from the papers. Which workers, in which order and from which confidence on is
# § learnt on the
# § train split (cascade_training.py); untrained it asks the workers that are named and
# § accepts from
# § `THRESHOLD` on. Not here: the scorers (accepting.py).


THRESHOLD = 0.6
"""Confidence from which on an untrained cascade accepts: two of three samples agree. Ours."""

_DEVIATIONS = (
    "workers, order and thresholds with the highest train accuracy, ties to the cheapest "
    "(FrugalGPT: within a budget of dollars)",
)


AGREEMENT, VERIFIER, LOGISTIC = (
    Scoring("agreement", 3),
    Scoring("verifier", 3),
    Scoring("logistic", 1),
)


def _expected(scoring: Scoring) -> Expected:
    """Return one stage at its cheapest, and all stages."""

    def calls(n: int, args: Mapping[str, Any]) -> tuple[int, int]:
        named = args.get("workers") or ()
        stages = min(n, STAGES) if isinstance(named, str) or not named else len(named)
        samples = int(args.get("samples", scoring.samples))
        used = Scoring(scoring.scorer, samples)
        first = used.last_calls if stages == 1 or args.get("learned") else used.calls
        return min(first, used.calls), (stages - 1) * used.calls + used.last_calls

    return calls


CASCADE = SystemCard(
    name="cascade",
    solver="baselines/cascade",
    summary="Up to three workers in turn; the first answer that samples agree on stands.",
    group="routers",
    source="podium; the cascade of FrugalGPT, arXiv 2305.05176",
    calls="3-9",
    expected=_expected(AGREEMENT),
    explorer=lambda: CascadeExplorer("cascade", AGREEMENT),
    deviations=(
        "the scorer is the agreement of three samples (FrugalGPT: a fitted language model); "
        "programs agree by identical text",
        *_DEVIATIONS,
    ),
)
AUTOMIX = SystemCard(
    name="cascade-automix",
    solver="baselines/cascade_automix",
    summary="Up to three workers in turn; the first answer that its worker verifies stands.",
    group="routers",
    source="AutoMix, arXiv 2310.12963",
    calls="1-9",
    expected=_expected(VERIFIER),
    prompts=(VERIFY,),
    explorer=lambda: CascadeExplorer("cascade-automix", VERIFIER),
    deviations=(
        "three checks without examples, in our own words, at the worker's own temperature (the "
        "authors: eight or more, with examples, at temperature 1)",
        "a check without a verdict agrees by giving the same answer",
        "any workers in any order (the authors: one small and one large model)",
        "thresholds only (the authors: also a POMDP)",
        *_DEVIATIONS,
    ),
)
FRUGAL = SystemCard(
    name="cascade-frugal",
    solver="baselines/cascade_frugal",
    summary="Up to three workers in turn; the first answer that a fitted scorer trusts stands.",
    group="routers",
    source="FrugalGPT, arXiv 2305.05176",
    calls="1-3",
    expected=_expected(LOGISTIC),
    explorer=lambda: CascadeExplorer("cascade-frugal", LOGISTIC),
    deviations=(
        "the scorer is a logistic regression on hashed words of question and reply (the authors: a "
        "DistilBERT); thresholds are chosen on confidences that it has out of fold",
        *_DEVIATIONS,
    ),
)


@dataclass(frozen=True, slots=True)
class Stages:
    """Who is asked in turn, and from which confidence on an answer stands."""

    workers: tuple[str, ...]
    thresholds: tuple[float, ...]
    """One less than workers: the last answer stands."""
    weights: Mapping[str, Floats]
    """Of the logistic scorer, by worker; empty when it has learnt nothing."""


def untrained_stages(workers: Sequence[str], threshold: float, pool: Pool) -> Stages:
    """Return the stages of a cascade that has learnt nothing: the workers that were named."""
    chosen = tuple(known(pool, one) for one in workers)
    return Stages(chosen, (threshold,) * (len(chosen) - 1), {})


def learnt_stages(learned: Artifact, pool: Pool) -> Stages:
    """Return the stages that were learnt."""
    refuse_other_workers(learned, pool.workers)
    names = learned.about.workers
    weights = dict(zip(names, learned.arrays[WEIGHTS], strict=False))
    order = tuple(names[int(at)] for at in learned.arrays[ORDER])
    return Stages(order, tuple(float(one) for one in learned.arrays[THRESHOLDS]), weights)


def cascade_system(
    scoring: Scoring,
    learned: Artifact | None = None,
    workers: Sequence[str] = (),
    threshold: float = THRESHOLD,
) -> System:
    """Return the cascade: learnt, or untrained over `workers` with one threshold for all stages."""
    if learned is None and not workers:
        raise UserError(
            "A cascade that is not trained needs its workers in order, cheapest first: "
            "-S workers=a,b; or let `podium run` train it."
        )
    if not 0 <= threshold <= 1:
        raise UserError(f"A cascade's threshold lies between 0 and 1, not at {threshold:g}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        if learned:
            refuse_taught(learned, question)
        stages = (
            learnt_stages(learned, pool) if learned else untrained_stages(workers, threshold, pool)
        )
        session, sure = Session(question, pool), list[float]()
        for worker, needed in zip(stages.workers, stages.thresholds, strict=False):
            found = await score_answer(session, worker, scoring, stages.weights.get(worker))
            sure.append(round(found.confidence, 6))
            if found.confidence >= needed:
                return session.answer(found.text, {"stage": worker, "confidences": sure})
        final = stages.workers[-1]
        text = await last_answer(session, final, scoring)
        return session.answer(text, {"stage": final, "confidences": sure})

    return answer


def cascade_tries_system(scoring: Scoring) -> System:
    """Return the system that asks and scores the worker whose place in the pool is the epoch."""

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        found = await score_answer(session, pool.workers[pool.epoch - 1], scoring)
        noted = {"confidence": found.confidence, "features": list(found.features)}
        return session.answer(found.text, noted)

    return answer


@dataclass(frozen=True, slots=True)
class CascadeArguments:
    """The arguments of a cascade's solver."""

    scoring: Scoring
    learned: str | None
    sha256: str | None
    pool: str | None
    workers: str | list[str] | None = None
    threshold: float = THRESHOLD


def _cascade_solver(manifest: SystemCard, given: CascadeArguments) -> Solver:
    """Return the solver of a cascade; UserError for samples other than it was learnt with."""
    taught = read_artifact(given.learned, manifest.name, given.sha256) if given.learned else None
    samples = (taught.about.settings or {}).get("samples") if taught else given.scoring.samples
    if samples != given.scoring.samples:
        raise UserError(f"{given.learned} was learnt with samples={samples}: give the same.")
    named = [given.workers] if isinstance(given.workers, str) else given.workers or []
    system = cascade_system(given.scoring, taught, named, given.threshold)
    return as_solver(system, given.pool)


@solver
def cascade(
    workers: str | list[str] | None = None,
    samples: int = AGREEMENT.samples,
    threshold: float = THRESHOLD,
    learned: str | None = None,
    sha256: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask worker after worker until one's samples agree.

    What was learnt says which workers and thresholds. Without it, `workers` (`-S workers=a,b`) and
    one `threshold` do.
    """
    scoring = Scoring("agreement", samples)
    return _cascade_solver(
        CASCADE, CascadeArguments(scoring, learned, sha256, pool, workers, threshold)
    )


@solver
def cascade_automix(
    workers: str | list[str] | None = None,
    samples: int = VERIFIER.samples,
    threshold: float = THRESHOLD,
    learned: str | None = None,
    sha256: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask worker after worker until one verifies its own answer in `samples` checks."""
    scoring = Scoring("verifier", samples)
    return _cascade_solver(
        AUTOMIX, CascadeArguments(scoring, learned, sha256, pool, workers, threshold)
    )


@solver
def cascade_frugal(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Ask worker after worker until a fitted scorer trusts an answer."""
    read_artifact(learned, FRUGAL.name, sha256)  # it must be trained
    return _cascade_solver(FRUGAL, CascadeArguments(LOGISTIC, learned, sha256, pool))


@solver
def try_cascade(scorer: str, samples: int, pool: str | None = None) -> Solver:
    """Ask and score one worker per epoch, in pool order."""
    return as_solver(cascade_tries_system(Scoring(cast(Scorer, scorer), samples)), pool)
