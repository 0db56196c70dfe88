"""Ask one worker and say how much its answer is to be trusted: the stages of a cascade.

Three scorers: `agreement` (k samples, the share that agrees), `verifier` (the worker checks its own
answer k times, as AutoMix does), `logistic` (a fitted score of question and answer, as FrugalGPT's,
in numbers where that has a language model). Every call of theirs is a step, and billed. Not here:
what is done with a confidence (cascade.py).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from baselines.calling.hashing import hashed
from baselines.routing.descent import sigmoid
from baselines.self_consistency import vote
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.learning.matrix import Floats
from harness.records import Kind, Question
from harness.workflow import Step

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
class Scored:
    """What a worker answers, and how sure the scorer is."""

    text: str
    confidence: float
    """Between 0 and 1; 0 for a reply without an answer."""
    features: tuple[float, ...] = ()
    """What `logistic` is fitted to."""


async def scored(
    session: Session, worker: str, scoring: Scoring, weights: Floats | None = None
) -> Scored:
    """Ask a worker and score its answer; `weights` are what `logistic` learnt, None for nothing."""
    kind = session.question.kind
    if scoring.scorer == "agreement":
        replies = await session.ask_all([Step(worker)] * scoring.samples)
        return agreement(kind, [reply.text for reply in replies])
    said = (await session.ask(Step(worker))).text
    if scoring.scorer == "verifier":
        checks = [Step(worker, VERIFY, reads=(len(session.steps) - 1,))] * scoring.samples
        votes = [correct(kind, said, one.text) for one in await session.ask_all(checks)]
        return Scored(said, sum(votes) / len(votes))
    seen = features(session.question, said)
    sure = float(sigmoid(seen @ weights)) if weights is not None else 0.5
    return Scored(said, sure, tuple(round(float(one), DECIMALS) for one in seen))


async def last(session: Session, worker: str, scoring: Scoring) -> str:
    """Return the answer of a cascade's last stage: as it is scored elsewhere, without a score."""
    replies = await session.ask_all([Step(worker)] * scoring.last_calls)
    return vote(session.question.kind, [reply.text for reply in replies])


def agreement(kind: Kind, replies: Sequence[str]) -> Scored:
    """Return the most frequent answer and the share of replies that give it."""
    chosen = vote(kind, replies)
    answer = normalised(kind, chosen)
    if answer is None:
        return Scored(chosen, 0.0)
    same = sum(normalised(kind, reply) == answer for reply in replies)
    return Scored(chosen, same / len(replies))


def correct(kind: Kind, answer: str, check: str) -> bool:
    """Return whether a check says that an answer is right.

    A check without a verdict says so by giving the same answer again.
    """
    verdicts = _VERDICT.findall(check)
    if verdicts:
        return str(verdicts[-1]).upper() == "CORRECT"
    found = normalised(kind, check)
    return found is not None and found == normalised(kind, answer)


def features(question: Question, reply: str) -> Floats:
    """Return (FEATURES,) numbers of a question and a reply, a constant among them."""
    answered = float(normalised(question.kind, reply) is not None)
    shape = [1.0, answered, min(1.0, len(reply) / 4000)]
    return np.array([*shape, *hashed(question.text, WORDS), *hashed(reply, WORDS)])
