"""A cascade: ask a cheap worker, keep its answer if a scorer trusts it, else ask a dearer one.

FrugalGPT (Chen et al. 2023, arXiv 2305.05176) and AutoMix (Aggarwal et al. 2023, arXiv 2310.12963),
written from the papers. Which workers, in which order and from which confidence on is learnt on the
train split (cascade_training.py); untrained it asks the cheapest workers first and accepts above
`THRESHOLD`. Not here: the scorers (accepting.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.calling.accepting import VERIFY, Scorer, Scoring, last, scored
from baselines.calling.cascade_training import (
    CASCADE as NAME,
)
from baselines.calling.cascade_training import (
    ORDER,
    STAGES,
    THRESHOLDS,
    WEIGHTS,
    CascadeExplorer,
)
from baselines.single import known
from harness.errors import UserError
from harness.exploring import Explorer
from harness.learned import Learned, read_learned, refuse_other_workers
from harness.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Question
from harness.session import Session
from harness.solver import as_solver
from harness.system import Manifest, System

THRESHOLD = 0.6
"""Confidence from which on an untrained cascade accepts: two of three samples agree. Ours."""


def _explorer() -> Explorer:
    return CascadeExplorer()


def _expected(n: int, args: Mapping[str, Any]) -> tuple[int, int]:
    """Return one stage with one call, and all stages."""
    scoring = Scoring(args.get("scorer", "agreement"), int(args.get("samples", 3)))
    named = args.get("workers") or ()
    stages = min(n, STAGES) if isinstance(named, str) or not named else len(named)
    first = scoring.last_calls if stages == 1 or args.get("learned") else scoring.calls
    return min(first, scoring.calls), (stages - 1) * scoring.calls + scoring.last_calls


CASCADE = Manifest(
    name=NAME,
    solver="baselines/cascade",
    summary="Up to three workers in turn; the first answer that a scorer trusts stands.",
    source="FrugalGPT, arXiv 2305.05176; AutoMix, arXiv 2310.12963",
    calls="3-9 (scorer=agreement, three samples a stage)",
    expected=_expected,
    prompts=(VERIFY,),
    explorer=_explorer,
    deviations=(
        "the default scorer is the agreement of three samples (FrugalGPT: a fitted language model; "
        "AutoMix: self-verification, scorer=verifier; scorer=logistic fits hashed words)",
        "workers and thresholds with the highest train accuracy, ties to the cheapest (FrugalGPT: "
        "within a budget; AutoMix: also a POMDP)",
        "the verifier is shown no examples",
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


def cheapest_first(pool: Pool) -> tuple[str, ...]:
    """Return the workers by output rate in the run's price book; pool order where one is unknown.

    Workers at the same rate stay in pool order.
    """
    if pool.spec is None or pool.spend is None:
        return pool.workers
    prices = {
        name: pool.spend.book.prices.get(pool.spec.worker(name).price_ref) for name in pool.workers
    }
    rates: dict[str, Decimal] = {}
    for name, price in prices.items():
        if price is None:
            return pool.workers
        rates[name] = price.output
    return tuple(sorted(pool.workers, key=rates.__getitem__))


def spread(order: Sequence[str], stages: int = STAGES) -> tuple[str, ...]:
    """Return at most so many of an order, its ends among them.

    >>> spread("abcdefgh"), spread("ab")
    (('a', 'e', 'h'), ('a', 'b'))
    """
    if len(order) <= stages:
        return tuple(order)
    at = np.linspace(0, len(order) - 1, stages).round().astype(int)
    return tuple(order[int(one)] for one in at)


def untrained(workers: Sequence[str], threshold: float, pool: Pool) -> Stages:
    """Return the stages of a cascade that has learnt nothing: those named, or a spread by price."""
    chosen = tuple(known(pool, one) for one in workers) or spread(cheapest_first(pool))
    return Stages(chosen, (threshold,) * (len(chosen) - 1), {})


def trained(learned: Learned, pool: Pool) -> Stages:
    """Return the stages that were learnt."""
    refuse_other_workers(learned, pool.workers)
    names = learned.about.workers
    weights = dict(zip(names, learned.arrays[WEIGHTS], strict=False))
    order = tuple(names[int(at)] for at in learned.arrays[ORDER])
    return Stages(order, tuple(float(one) for one in learned.arrays[THRESHOLDS]), weights)


def cascade_system(
    scoring: Scoring,
    learned: Learned | None = None,
    workers: Sequence[str] = (),
    threshold: float = THRESHOLD,
) -> System:
    """Return the cascade: learnt, or untrained over `workers` with one threshold for all stages."""
    if scoring.scorer == "logistic" and learned is None:
        raise UserError("A cascade's logistic scorer must be trained; agreement and verifier not.")
    if not 0 <= threshold <= 1:
        raise UserError(f"A cascade's threshold lies between 0 and 1, not at {threshold:g}.")

    async def answer(question: Question, pool: Pool) -> Answer:
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


def _scoring(scorer: str, samples: int) -> Scoring:
    return Scoring(cast(Scorer, scorer), samples)


@solver
def cascade(
    workers: str | list[str] | None = None,
    scorer: str = "agreement",
    samples: int = 3,
    threshold: float = THRESHOLD,
    learned: str | None = None,
    sha256: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask worker after worker until a scorer trusts an answer.

    What was learnt says which workers and thresholds; `scorer` and `samples` must be what it was
    learnt with. Without it, `workers` (`-S workers=a,b`) and one `threshold` do.
    """
    named = [workers] if isinstance(workers, str) else workers or []
    taught = read_learned(learned, NAME, sha256) if learned else None
    scoring = _scoring(scorer, samples)
    if taught:
        settings = taught.about.settings or {}
        if (settings.get("scorer"), settings.get("samples")) != (scorer, samples):
            raise UserError(
                f"{learned} was learnt with scorer {settings.get('scorer')!r} and samples "
                f"{settings.get('samples')}: give the same, or train it again."
            )
    return as_solver(cascade_system(scoring, taught, named, threshold), pool)


@solver
def try_cascade(scorer: str, samples: int, pool: str | None = None) -> Solver:
    """Ask and score one worker per epoch, in pool order."""
    return as_solver(trying_system(_scoring(scorer, samples)), pool)
