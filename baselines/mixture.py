"""Mixture-of-Agents: layers of proposers, then an aggregator (Wang et al., arXiv 2406.04692).

Layers are counted as in the paper, aggregator included: `moa-lite` is one layer of proposers and
the aggregator (2), `moa` has two layers of proposers (3). From the second layer on, a worker finds
the replies of the layer before it in its system message and the unchanged question after it.
"""

from collections.abc import Sequence

from inspect_ai.solver import Solver, solver

from baselines.single import known
from harness.errors import UserError
from harness.pool import Pool
from harness.records import Question
from harness.solver import as_solver
from harness.system import Manifest, System, planned
from harness.workflow import REPLIES, Step, Workflow

AGGREGATE_AND_SYNTHESIZE = f"""\
You have been provided with a set of responses from various open-source models to the latest user \
query. Your task is to synthesize these responses into a single, high-quality response. It is \
crucial to critically evaluate the information provided in these responses, recognizing that some \
of it may be biased or incorrect. Your response should not simply replicate the given answers but \
should offer a refined, accurate, and comprehensive reply to the instruction. Ensure your response \
is well-structured, coherent, and adheres to the highest standards of accuracy and reliability.

Responses from models:
{REPLIES}"""
"""The authors' prompt, word for word ("open-source" too): arXiv 2406.04692, table 1, as used in
togethercomputer/MoA, utils.py, commit 14c0f35 (Apache-2.0, Together AI)."""

_DEVIATIONS = (
    "each worker keeps its own temperature and token limit (the authors: 0.7 and 2048)",
    "a proposer without a reply leaves the question unscored (the authors drop that proposer)",
    "proposers of a layer run at once (the authors: one after another; same requests)",
    "the aggregator is the pool's first worker unless named (the authors: their strongest)",
)
MOA_LITE = Manifest(
    name="moa-lite",
    solver="baselines/moa_lite",
    summary="Every worker answers; an aggregator synthesises their replies.",
    source="Wang et al. 2024, arXiv 2406.04692; github.com/togethercomputer/MoA",
    calls="n + 1",
    deviations=_DEVIATIONS,
)
MOA = Manifest(
    name="moa",
    solver="baselines/moa",
    summary="Two layers of all workers, then an aggregator.",
    source=MOA_LITE.source,
    calls="(layers - 1) * n + 1",
    deviations=_DEVIATIONS,
)


def layered(proposers: Sequence[str], aggregator: str, layers: int) -> Workflow:
    """Return the workflow of Mixture-of-Agents: `layers - 1` layers of proposers, then one step."""
    steps: list[Step] = []
    before: tuple[int, ...] = ()
    for workers in (*[tuple(proposers)] * (layers - 1), (aggregator,)):
        system = AGGREGATE_AND_SYNTHESIZE if before else None
        start = len(steps)
        steps.extend(Step(worker, reads=before, system=system) for worker in workers)
        before = tuple(range(start, len(steps)))
    return Workflow(tuple(steps))


def moa_system(
    layers: int = 2, proposers: Sequence[str] = (), aggregator: str | None = None
) -> System:
    """Return Mixture-of-Agents over `proposers`; by default every worker, the first aggregating."""
    if layers < 2:
        raise UserError(f"Mixture-of-Agents needs at least 2 layers, not {layers}.")

    def plan(question: Question, pool: Pool) -> Workflow:
        chosen = [known(pool, worker) for worker in proposers or pool.workers]
        return layered(chosen, known(pool, aggregator or pool.workers[0]), layers)

    return planned(plan)


@solver
def moa(
    layers: int = 3,
    proposers: str | list[str] | None = None,
    aggregator: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Mixture-of-Agents; `proposers` is one worker or several (`-S proposers=a,b`), else all."""
    named = [proposers] if isinstance(proposers, str) else proposers or []
    return as_solver(moa_system(layers, named, aggregator), pool)


@solver
def moa_lite(aggregator: str | None = None, pool: str | None = None) -> Solver:
    """Mixture-of-Agents with one layer of proposers: all workers, then the aggregator."""
    return as_solver(moa_system(2, (), aggregator), pool)
