"""The best single worker with as much compute as a conductor: is planning worth what it costs?

Self-consistency over k samples, k chosen so that a query takes as many list dollars, or as many
tokens in and out, as the conductor's in the same run. Costs are no labels, so matching them on the
exam itself gives nothing away. Not here: finding k (harness/run/entries.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from math import floor

from inspect_ai.solver import Solver, solver

from baselines.by_tests import best_of, public_results
from baselines.draws import draws
from baselines.self_consistency import vote
from baselines.single import known
from harness.errors import UserError
from harness.execute import Session, execute
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Question, Reply
from harness.system import System, SystemCard
from harness.workflow import Step, Workflow

MOST_SAMPLES = 1000
"""No conductor costs as much; a k beyond it is a mistake."""


def _manifest(unit: str, what: str) -> SystemCard:
    return SystemCard(
        name=f"compute-matched-{unit}",
        solver="baselines/compute_matched",
        summary=f"The best single worker, sampled until a query takes as many {what}.",
        source="podium (control); self-consistency: Wang et al. 2022, arXiv 2203.11171",
        calls="k, so that the means are equal",
        group="controls",
        expected=lambda n, args: (_whole(args.get("k"), 0), _whole(args.get("k"), 1)),
        needs=frozenset({"match"}),
        on_best=True,
        deviations=(
            "k is a fraction: each question has one of the two whole numbers around it, drawn so "
            "that the mean is k, and never less than 1",
            "matched with what the other system cost on this exam; costs are no labels",
            "one call is what best-single's took on average on this exam, not each question's own",
            "a vote of equal answers; for programs the one that passes the most public tests where "
            "the exam shows some (best of n, the stronger and better-known), else identical texts",
        ),
    )


def _whole(k: float | None, more: int) -> int:
    if k is None:
        return 1 if not more else MOST_SAMPLES
    return floor(k) + (more if k > floor(k) else 0)


COMPUTE_MATCHED_USD = _manifest("usd", "list dollars as a conductor's")
COMPUTE_MATCHED_TOKENS = _manifest("tokens", "tokens, in and out, as a conductor's")


def samples(k: float, seed: int, question: str, epoch: int) -> int:
    """Return how often one question is asked: the floor or the ceiling of k, k on average.

    >>> samples(3.0, 0, "q", 1), {samples(1.5, 0, str(n), 1) for n in range(9)}
    (3, {1, 2})
    """
    whole = floor(k)
    return whole + (draws("compute-matched", seed, question, epoch).random() < k - whole)


def compute_matched_system(worker: str, k: float, seed: int = 0) -> System:
    """Return the system that asks one worker k times on average, and votes."""
    if not 1 <= k <= MOST_SAMPLES:
        raise UserError(f"A matched k is between 1 and {MOST_SAMPLES}, not {k}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        count = samples(k, seed, question.id, pool.epoch)
        asked = known(pool, worker)
        drawn = await execute(Workflow(tuple(Step(asked) for _ in range(count))), question, pool)
        return replace(drawn, text=await _chosen(question, pool, drawn.replies))

    return answer


async def _chosen(question: Question, pool: Pool, replies: Sequence[Reply]) -> str:
    """Return the best program by public tests where there are any, else what most replies say."""
    texts = list(dict.fromkeys(reply.text for reply in replies))
    if question.kind != "program" or pool.trial is None or len(texts) == 1:
        return vote(question.kind, [reply.text for reply in replies])
    return texts[best_of(await public_results(Session(question, pool), texts))]


@solver
def compute_matched(
    worker: str | None = None,
    k: float | None = None,
    matched_with: str = "",
    seed: int = 0,
    pool: str | None = None,
) -> Solver:
    """Ask one worker k times on average; `matched_with` travels in the log as provenance."""
    if worker is None or k is None:
        raise UserError("k is known once the system that is matched has sat the exam")
    return as_solver(compute_matched_system(worker, k, seed), pool)
