"""Self-MoA: Mixture-of-Agents whose proposers and aggregator are one and the same worker.

Without it nobody can tell whether mixing workers helps, or only asking often (Li et al., arXiv
2502.00674).
"""

from inspect_ai.solver import Solver, solver

from baselines.mixture import AGGREGATE_AND_SYNTHESIZE, OWN_LIMIT, layered
from baselines.single import at_least_one, known
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import Workflow

SAMPLES = 6
"""As many as Mixture-of-Agents had proposers in the authors' comparison."""

SELF_MOA = SystemCard(
    name="self-moa",
    solver="baselines/self_moa",
    summary="One worker answers k times, then synthesises its own replies.",
    source="Li et al. 2025, arXiv 2502.00674 (written from the paper: its repository has no code)",
    calls="k + 1, with k = 6 unless said",
    expected=exactly(lambda n, args: int(args.get("k") or SAMPLES) + 1),
    prompts=(AGGREGATE_AND_SYNTHESIZE,),
    k="k",
    on_best=True,
    deviations=(
        "temperature 0.7 for samples and aggregator, as in Mixture-of-Agents' code; the authors' "
        "own temperature has not been verified",
        "the parallel form only, not Self-MoA-Seq's sliding window",
        OWN_LIMIT,
        "the worker is the best on our train split (the authors: on the benchmark itself)",
    ),
)


def self_moa_system(worker: str | None = None, k: int = SAMPLES) -> System:
    """Return the system that asks `worker` (default: the pool's first) k times, then once more."""
    at_least_one("Self-MoA", "k", k)

    def plan(question: Question, pool: Pool) -> Workflow:
        asked = known(pool, worker or pool.workers[0])
        return layered([asked] * k, asked, layers=2)

    return planned(plan)


@solver
def self_moa(worker: str | None = None, k: int = SAMPLES, pool: str | None = None) -> Solver:
    """Let one worker propose k times and aggregate what it proposed."""
    return as_solver(self_moa_system(worker, k), pool)
