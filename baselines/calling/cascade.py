"""A cascade: ask a cheap worker, keep its answer if a scorer trusts it, else ask a dearer one.

FrugalGPT (Chen et al. 2023, arXiv 2305.05176) and AutoMix (Aggarwal et al. 2023, arXiv 2310.12963),
written from the papers. Which workers, in which order and from which confidence on is learnt on the
train split (cascade_training.py); untrained it asks the workers that are named and accepts from
`THRESHOLD` on. Not here: the scorers (accepting.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from inspect_ai.solver import Solver, solver

from baselines.calling.accepting import VERIFY, Scorer, Scoring, last, scored
from baselines.calling.cascade_training import ORDER, STAGES, THRESHOLDS, WEIGHTS, CascadeExplorer
from baselines.calling.teaching import refuse_taught
from baselines.single import known
from harness.errors import UserError
from harness.execute import Session
from harness.inspect_adapters import as_solver
from harness.learning.fit import Artifact, read_artifact, refuse_other_workers
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Question
from harness.system import Expected, System, SystemCard

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


def untrained(workers: Sequence[str], threshold: float, pool: Pool) -> Stages:
    """Return the stages of a cascade that has learnt nothing: the workers that were named."""
    chosen = tuple(known(pool, one) for one in workers)
    return Stages(chosen, (threshold,) * (len(chosen) - 1), {})


def trained(learned: Artifact, pool: Pool) -> Stages:
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
        stages = trained(learned, pool) if learned else untrained(workers, threshold, pool)
        session, sure = Session(question, pool), list[float]()
        for worker, needed in zip(stages.workers, stages.thresholds, strict=False):
            found = await scored(session, worker, scoring, stages.weights.get(worker))
            sure.append(round(found.confidence, 6))
            if found.confidence >= needed:
                return session.answer(found.text, {"stage": worker, "confidences": sure})
        final = stages.workers[-1]
        text = await last(session, final, scoring)
        return session.answer(text, {"stage": final, "confidences": sure})

    return answer


def trying_system(scoring: Scoring) -> System:
    """Return the system that asks and scores the worker whose place in the pool is the epoch."""

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        found = await scored(session, pool.workers[pool.epoch - 1], scoring)
        noted = {"confidence": found.confidence, "features": list(found.features)}
        return session.answer(found.text, noted)

    return answer


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a cascade's solver."""

    scoring: Scoring
    learned: str | None
    sha256: str | None
    pool: str | None
    workers: str | list[str] | None = None
    threshold: float = THRESHOLD


def _made(manifest: SystemCard, given: Given) -> Solver:
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
    return _made(CASCADE, Given(scoring, learned, sha256, pool, workers, threshold))


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
    return _made(AUTOMIX, Given(scoring, learned, sha256, pool, workers, threshold))


@solver
def cascade_frugal(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Ask worker after worker until a fitted scorer trusts an answer."""
    read_artifact(learned, FRUGAL.name, sha256)  # it must be trained
    return _made(FRUGAL, Given(LOGISTIC, learned, sha256, pool))


@solver
def try_cascade(scorer: str, samples: int, pool: str | None = None) -> Solver:
    """Ask and score one worker per epoch, in pool order."""
    return as_solver(trying_system(Scoring(cast(Scorer, scorer), samples)), pool)
