"""Cascades: ask a cheap worker, keep its answer if a scorer trusts it, else ask a costlier one.

FrugalGPT (Chen et al. 2023, arXiv 2305.05176) and AutoMix (Aggarwal et al. 2023, arXiv 2310.12963),
after the papers. The workers, their order and confidence thresholds are learnt on train splits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations, product
from typing import Any, Literal, cast

import numpy as np

from podium.baselines.common import (
    Rounds,
    hash_words,
    learnt_from,
    refuse_too_few,
    register,
    register_learner,
)
from podium.baselines.mixture import as_names
from podium.baselines.routers.optimisers import ridge_logistic, sigmoid
from podium.baselines.single import known
from podium.baselines.voting import approves, vote
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.extract import normalised
from podium.harness.learning import (
    Arrays,
    Artifact,
    Floats,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
)
from podium.harness.pool import Pool
from podium.harness.records import Answer, Kind, Question
from podium.harness.rewards.splits import refuse_unfit
from podium.harness.system import Calls, Exploring, System, SystemCard
from podium.harness.workflow import Step

Scorer = Literal["agreement", "verifier", "logistic"]
SCORERS: tuple[Scorer, ...] = ("agreement", "verifier", "logistic")

VERIFY = (
    "Check your answer above: redo what could be wrong with it. End with the line VERDICT: CORRECT "
    "if it is right as it stands, or with the line VERDICT: WRONG if it is not."
)
"""AutoMix's prompt for self-verification (arXiv 2310.12963), in our own words, without examples."""

WORDS = 32  # hashed word features of the question, and as many of the reply
FEATURES = 2 * WORDS + 3


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a cascade scores answers: the scorer, and its number of samples."""

    scorer: Scorer = "agreement"
    samples: int = 3  # answers to compare, or checks by the verifier; unused by `logistic`

    def __post_init__(self) -> None:
        if self.scorer not in SCORERS or self.samples < 1:
            names = ", ".join(SCORERS)
            raise UserError(
                f"A cascade's scorer is one of {names}, with samples of at least 1. Replace scorer "
                f"{self.scorer!r} or samples {self.samples}."
            )

    @property
    def calls(self) -> int:
        """Return the number of worker calls of a cascade stage whose answer is scored."""
        return {"agreement": self.samples, "verifier": 1 + self.samples, "logistic": 1}[self.scorer]

    @property
    def last_calls(self) -> int:
        """Return the number of worker calls of the last stage, whose answer is not scored."""
        return self.samples if self.scorer == "agreement" else 1

    @property
    def confidences(self) -> tuple[float, ...]:
        """Return the thresholds to try: the lowest confidence at which an answer is accepted."""
        if self.scorer == "logistic":
            return (0.3, 0.5, 0.7, 0.9)
        return tuple(k / self.samples for k in range(1, self.samples + 1))


Scored = tuple[str, float, Sequence[float]]
"""A worker's answer, the scorer's confidence in it, from 0 to 1, and the features that `logistic`
is fitted to (empty for other scorers)."""


async def score_answer(
    session: Session, worker: str, scoring: Scoring, weights: Floats | None = None
) -> Scored:
    """Ask one worker and score the answer; the logistic scorer without `weights` gives 0.5."""
    kind = session.question.kind
    if scoring.scorer == "agreement":
        replies = await session.ask_all([Step(worker)] * scoring.samples)
        return score_agreement(kind, [reply.text for reply in replies])
    text = (await session.ask(Step(worker))).text
    if scoring.scorer == "verifier":
        checks = [Step(worker, VERIFY, reads=(len(session.steps) - 1,))] * scoring.samples
        replies = await session.ask_all(checks, opinion=True)
        votes = [approves(kind, text, reply.text) for reply in replies]
        return text, sum(votes) / len(votes), ()
    features = answer_features(session.question, text)
    sure = float(sigmoid(features @ weights)) if weights is not None else 0.5
    return text, sure, [round(float(number), 4) for number in features]


def score_agreement(kind: Kind, replies: Sequence[str]) -> Scored:
    """Return the reply with the most frequent answer, and this answer's share (0: no answer)."""
    chosen = vote(kind, replies)
    answer = normalised(kind, chosen)
    same = sum(normalised(kind, reply) == answer for reply in replies)
    return chosen, 0.0 if answer is None else same / len(replies), ()


def answer_features(question: Question, reply: str) -> Floats:
    """Return the logistic scorer's inputs for a question and a reply: `FEATURES` numbers."""
    answered = float(normalised(question.kind, reply) is not None)
    shape = [1.0, answered, min(1.0, len(reply) / 4000)]
    return np.array([*shape, *hash_words(question.text, WORDS), *hash_words(reply, WORDS)])


ORDER, THRESHOLDS, WEIGHTS = "order", "thresholds", "weights"
STAGES = 3  # FrugalGPT's longest list
FOLDS = 5  # cross-validation folds: thresholds are chosen on out-of-fold confidences


@dataclass(frozen=True, slots=True)
class CascadeTries:
    """Training results of all workers: grades, confidences, costs; arrays (questions, workers)."""

    values: Floats
    confidences: Floats
    costs: Floats  # of a scored stage, in dollars; in calls if a price is unknown
    last_share: float  # cost of the unscored last stage, as a share of a scored stage's

    def measure(self, order: Sequence[int], thresholds: Sequence[float]) -> tuple[float, float]:
        """Return a cascade's mean grade and mean cost; `order` has pool indices of its workers."""
        value, cost = np.zeros((2, len(self.values)))
        open_ = np.ones(len(self.values), dtype=bool)
        for worker, threshold in zip(order, thresholds, strict=False):
            cost += np.where(open_, self.costs[:, worker], 0)
            accept = open_ & (self.confidences[:, worker] >= threshold)
            value += np.where(accept, self.values[:, worker], 0)
            open_ &= ~accept
        value += np.where(open_, self.values[:, order[-1]], 0)
        cost += np.where(open_, self.costs[:, order[-1]] * self.last_share, 0)
        return float(value.mean()), float(cost.mean())


Chain = tuple[tuple[int, ...], tuple[float, ...], float, float]
"""A cascade: pool indices of its workers, thresholds of all but the last, mean grade, mean cost."""


def best_chain(tries: CascadeTries, levels: Sequence[float]) -> Chain:
    """Return the most accurate cascade of at most `STAGES` workers; on a tie, the cheapest one.

    Its thresholds are among `levels`.
    """
    workers = range(tries.values.shape[1])
    chains = (
        (order, thresholds, *tries.measure(order, thresholds))
        for length in range(1, min(STAGES, len(workers)) + 1)
        for order in permutations(workers, length)
        for thresholds in product(levels, repeat=length - 1)
    )
    return min(chains, key=lambda chain: (-round(chain[2], 9), round(chain[3], 12)))


@dataclass(frozen=True, slots=True)
class CascadeExplorer:
    """Training procedure: ask and score every worker on as many questions as the budget allows."""

    name: str
    scoring: Scoring

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the only round of training calls; None once that round is done."""
        calls, workers = self.scoring.calls, len(given.workers)
        refuse_too_few(self.name, given, calls * workers)
        if done:
            return None
        questions = min(len(given.questions), given.calls // (calls * workers))
        args = asdict(self.scoring)
        return Round("podium/try_cascade", args, questions, workers, most_calls=calls)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the trained artefact: order of workers, thresholds, and the scorer's weights."""
        rows = _complete([trial for tried in done for trial in tried], len(given.workers))
        values = np.array([[trial.value for trial in row] for row in rows], np.float64)
        sure = np.array([[trial.noted["confidence"] for trial in row] for row in rows], np.float64)
        priced = all(trial.usd is not None for row in rows for trial in row)
        costs = [[trial.usd if priced else trial.calls for trial in row] for row in rows]
        weights = np.zeros((0, FEATURES))
        if self.scoring.scorer == "logistic":
            inputs = np.array([[t.noted["features"] for t in row] for row in rows], np.float64)
            weights, sure = _weights(inputs, values), _out_of_fold(inputs, values)
        share = self.scoring.last_calls / self.scoring.calls
        tries = CascadeTries(values, sure, np.array(costs, np.float64), share)
        order, thresholds, accuracy, _ = best_chain(tries, self.scoring.confidences)
        fitted = {"questions": len(rows), "train_accuracy": accuracy}
        arrays = {
            ORDER: np.array(order, np.int64),
            THRESHOLDS: np.array(thresholds, np.float64),
            WEIGHTS: weights,
        }
        about = learnt_from(self.name, given, done, {**asdict(self.scoring), **fitted})
        return Artifact(about, arrays)


def _weights(features: Floats, right: Floats) -> Floats:
    """Fit a logistic scorer to each worker's grades; return weights (workers, FEATURES)."""
    ridge = np.ones(FEATURES)
    workers = range(right.shape[1])
    return np.array([ridge_logistic(features[:, w], right[:, w], ridge) for w in workers])


def _out_of_fold(features: Floats, right: Floats) -> Floats:
    """Return confidences (questions, workers), each by a scorer fitted on other questions."""
    sure, folds = np.zeros_like(right), np.arange(len(right)) % FOLDS
    for fold in range(min(FOLDS, len(right))):
        apart = folds == fold
        for worker, weights in enumerate(_weights(features[~apart], right[~apart])):
            sure[apart, worker] = sigmoid(features[apart, worker] @ weights)
    return sure


def _complete(tries: Sequence[TrialResult], workers: int) -> list[list[TrialResult]]:
    """Return a row of results, in worker order, per question that was graded for all workers."""
    by_question: dict[str, dict[int, TrialResult]] = {}
    for trial in tries:
        if trial.value is not None:
            by_question.setdefault(trial.question, {})[trial.epoch] = trial
    rows = [[row[e] for e in sorted(row)] for row in by_question.values() if len(row) == workers]
    if not rows:
        raise UserError(
            "The cascade learnt nothing: no train question was graded for all workers. Run again."
        )
    return rows


THRESHOLD = 0.6  # of an untrained cascade: two of three samples agree (our choice)

AGREEMENT, VERIFIER = Scoring("agreement", 3), Scoring("verifier", 3)
LOGISTIC = Scoring("logistic", 1)


def _card(name: str, scoring: Scoring, trusted: str, source: str, *deviations: str) -> SystemCard:
    def expected(n: int, args: Mapping[str, Any]) -> tuple[int, int]:
        workers = args.get("workers") or ()
        stages = min(n, STAGES) if isinstance(workers, str) or not workers else len(workers)
        used = Scoring(scoring.scorer, int(args.get("samples", scoring.samples)))
        fewest = used.last_calls if stages == 1 or args.get("learned") else used.calls
        return min(fewest, used.calls), (stages - 1) * used.calls + used.last_calls

    return SystemCard(
        name=name,
        solver=f"podium/{name.replace('-', '_')}",
        summary=f"Asks up to three workers in turn and gives the first answer that {trusted}.",
        group="routers",
        source=source,
        calls=Calls(f"{scoring.last_calls}-{2 * scoring.calls + scoring.last_calls}", expected),
        prompts=(VERIFY,) if scoring.scorer == "verifier" else (),
        methods=Exploring(lambda: CascadeExplorer(name, scoring)),
        deviations=(
            *deviations,
            "workers, order and thresholds with the highest train accuracy, ties to the cheapest "
            "(FrugalGPT: within a budget of dollars)",
        ),
        acts="passes",
        spent="the vote of its last complete stage",
    )


CASCADE = _card(
    "cascade",
    AGREEMENT,
    "samples agree on",
    "podium; the cascade of FrugalGPT, arXiv 2305.05176",
    "the scorer is the agreement of three samples (FrugalGPT: a fitted language model); "
    "programs agree by identical text",
)
AUTOMIX = _card(
    "cascade-automix",
    VERIFIER,
    "its worker verifies",
    "AutoMix, arXiv 2310.12963",
    "three checks without examples, in our own words, at the worker's own temperature (the "
    "authors: eight or more, with examples, at temperature 1)",
    "a check without a verdict agrees by giving the same answer",
    "any workers in any order (the authors: one small and one large model)",
    "thresholds only (the authors: also a POMDP)",
)
FRUGAL = _card(
    "cascade-frugal",
    LOGISTIC,
    "a fitted scorer trusts",
    "FrugalGPT, arXiv 2305.05176",
    "the scorer is a logistic regression on hashed words of question and reply (the authors: a "
    "DistilBERT); thresholds are chosen on confidences that it has out of fold",
)


def cascade_system(
    scoring: Scoring,
    learned: Artifact | None = None,
    workers: Sequence[str] = (),
    threshold: float = THRESHOLD,
) -> System:
    """Return a cascade: trained, or untrained over `workers` with one threshold for all stages."""
    if learned is None and not workers:
        raise UserError(
            "A cascade that is not trained needs its workers in order, cheapest first. "
            "Give -S workers=a,b, or let `podium run` train it."
        )
    if not 0 <= threshold <= 1:
        raise UserError(f"A cascade's threshold must be between 0 and 1, not {threshold:g}.")

    names = learned.about.workers if learned else tuple(workers)
    chain = learned.arrays if learned else _untrained(len(names), threshold)
    weights = dict(zip(names, chain[WEIGHTS], strict=False))

    async def answer(question: Question, pool: Pool) -> Answer:
        if learned:
            refuse_unfit(learned, pool.workers, question)
        order = [known(pool, names[int(index)]) for index in chain[ORDER]]
        session, sure = Session(question, pool), list[float]()
        for worker, needed in zip(order, chain[THRESHOLDS], strict=False):
            text, confidence, _ = await score_answer(session, worker, scoring, weights.get(worker))
            sure.append(round(confidence, 6))
            if confidence >= needed:
                return session.answer(text, {"stage": worker, "confidences": sure})
        final = order[-1]  # the last stage is not scored
        replies = await session.ask_all([Step(final)] * scoring.last_calls)
        text = vote(question.kind, [reply.text for reply in replies])
        return session.answer(text, {"stage": final, "confidences": sure})

    return answer


def _untrained(stages: int, threshold: float) -> Arrays:
    thresholds = np.full(stages - 1, threshold)
    return {ORDER: np.arange(stages), THRESHOLDS: thresholds, WEIGHTS: np.zeros((0, FEATURES))}


def _register(name: str, usual: Scoring) -> None:
    def cascade(
        workers: str | list[str] | None = None,
        samples: int = usual.samples,
        threshold: float = THRESHOLD,
        learned: str | None = None,
        sha256: str | None = None,
    ) -> System:
        """Ask worker after worker until the scorer trusts an answer.

        The trained artefact in the file `learned` sets workers and thresholds; if `learned` is
        None, set `workers` (`-S workers=a,b`) and one `threshold` for all stages. UserError if
        `samples` differs from the artefact's.
        """
        taught = read_artifact(learned, name, sha256) if learned else None
        trained_samples = (taught.about.settings or {}).get("samples") if taught else samples
        if trained_samples != samples:
            raise UserError(
                f"{learned} was trained with samples={trained_samples}. Set samples to this value."
            )
        scoring = Scoring(usual.scorer, samples)
        return cascade_system(scoring, taught, as_names(workers), threshold)

    register(cascade, name.replace("-", "_"))


_register(CASCADE.name, AGREEMENT)
_register(AUTOMIX.name, VERIFIER)


def frugal_system(learned: Artifact) -> System:
    """Return the cascade with a logistic scorer, whose weights are in the artefact `learned`."""
    return cascade_system(LOGISTIC, learned)


register_learner(FRUGAL.name, frugal_system)


@register
def try_cascade(scorer: str, samples: int) -> System:
    """Return the training system: in epoch n, ask the pool's n-th worker and score the answer."""
    scoring = Scoring(cast(Scorer, scorer), samples)

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        text, sure, features = await score_answer(session, pool.workers[pool.epoch - 1], scoring)
        return session.answer(text, {"confidence": sure, "features": list(features)})

    return answer
