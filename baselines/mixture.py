"""Mixture-of-Agents (arXiv 2406.04692), and Self-MoA of one worker (arXiv 2502.00674)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.baselines.common import register, seeded_random
from podium.baselines.single import at_least_one, calls_by, known
from podium.harness.errors import UserError
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.system import Calls, System, SystemCard, exactly, planned
from podium.harness.workflow import REPLIES, Sampling, Step, Workflow

AGGREGATE_AND_SYNTHESIZE = f"""\
You have been provided with a set of responses from various open-source models to the latest user \
query. Your task is to synthesize these responses into a single, high-quality response. It is \
crucial to critically evaluate the information provided in these responses, recognizing that some \
of it may be biased or incorrect. Your response should not simply replicate the given answers but \
should offer a refined, accurate, and comprehensive reply to the instruction. Ensure your response \
is well-structured, coherent, and adheres to the highest standards of accuracy and reliability.

Responses from models:
{REPLIES}"""
"""The prompt of Mixture-of-Agents' authors, word for word (it calls all models open-source): arXiv
2406.04692, table 1; togethercomputer/MoA, utils.py, commit 14c0f35 (Apache-2.0, Together AI)."""

WARM = Sampling(temperature=0.7)
"""Temperature of proposers and aggregator in `utils.py`, the code of Mixture-of-Agents' authors."""

AGGREGATED = "an aggregation of the replies so far; if no call is left for it, their vote"
LAYERS = 3  # as the authors use (arXiv 2406.04692, section 3.1)

OWN_LIMIT = "each worker keeps its own token limit (the authors: 2048)"
_DEVIATIONS = (
    OWN_LIMIT,
    "a proposer without a reply leaves the question unscored (the authors drop that proposer)",
    "proposers of a layer run at once (the authors: one after another; same requests)",
    "every worker of the pool proposes, weak ones too, unless named (the authors: six they chose)",
)
_AGGREGATOR = (
    "the aggregator is the best single worker on train questions where the run chooses one, else "
    "the pool's first, unless named (the authors: a strong one, chosen for it)"
)


def _calls(n: int, args: Mapping[str, Any]) -> int:
    proposers = args.get("proposers") or n
    count = proposers if isinstance(proposers, int) else len(as_names(proposers))
    return (int(args.get("layers") or LAYERS) - 1) * count + 1


def as_names(workers: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return worker names as a tuple: a string is one name, None gives an empty tuple."""
    return (workers,) if isinstance(workers, str) else tuple(workers or ())


MOA_LITE = SystemCard(
    name="moa-lite",
    solver="podium/moa_lite",
    summary="Every worker answers; an aggregator synthesises their replies.",
    source="Wang et al. 2024, arXiv 2406.04692; github.com/togethercomputer/MoA",
    calls=Calls("n + 1", exactly(lambda n, args: n + 1)),
    prompts=(AGGREGATE_AND_SYNTHESIZE,),
    deviations=(*_DEVIATIONS, _AGGREGATOR),
    acts="last step acts",
    spent=AGGREGATED,
)
MOA_3 = replace(
    MOA_LITE,
    name="moa-3",
    solver="podium/moa_3",
    summary="Two layers of all workers, then an aggregator.",
    calls=Calls("(layers - 1) * n + 1, with 3 layers by default", exactly(_calls)),
)
MOA_PAPER = replace(
    MOA_LITE,
    name="moa-paper",
    solver="podium/moa_paper",
    summary="Every worker answers; an aggregator drawn at random synthesises their replies.",
    source="the Mixture-of-Agents row of the Conductor paper, arXiv 2512.04388; prompt: Wang et "
    "al. 2024, arXiv 2406.04692",
    calls=replace(MOA_LITE.calls, words="n + 1: the paper's 8 with its 7 workers"),
    deviations=(
        OWN_LIMIT.replace("the authors: 2048", "the paper: 4096 output tokens"),
        "the aggregator is drawn anew for each question and epoch (the paper: at random, and not "
        "how often)",
        "prompt and temperature 0.7 are the defaults of Mixture-of-Agents' code, which the paper "
        "says it ran (its workers elsewhere: 0.2)",
        _DEVIATIONS[1],
    ),
)


def layered(proposers: Sequence[str], aggregator: str, layers: int) -> Workflow:
    """Return the workflow: `layers - 1` layers of proposers, then an aggregator as last layer."""
    steps: list[Step] = []
    previous: tuple[int, ...] = ()
    for workers in (*[tuple(proposers)] * (layers - 1), (aggregator,)):
        system = AGGREGATE_AND_SYNTHESIZE if previous else None
        start = len(steps)
        steps.extend(Step(name, reads=previous, system=system, sampling=WARM) for name in workers)
        previous = tuple(range(start, len(steps)))
    return Workflow(tuple(steps))


def moa_system(
    layers: int = 2, proposers: Sequence[str] = (), aggregator: str | None = None
) -> System:
    """Return Mixture-of-Agents; by default all workers propose and the pool's first aggregates."""
    if layers < 2:
        raise UserError(f"Mixture-of-Agents needs at least 2 layers, not {layers}.")

    def plan(question: Question, pool: Pool) -> Workflow:
        chosen = [known(pool, worker) for worker in proposers or pool.workers]
        return layered(chosen, known(pool, aggregator), layers)

    return planned(plan, keeps=1)


@register
def moa_paper_system(seed: int = 0) -> System:
    """Return Mixture-of-Agents of all workers, with an aggregator drawn per question and epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        random = seeded_random(MOA_PAPER.name, seed, question.id, pool.epoch)
        return layered(pool.workers, random.choice(pool.workers), 2)

    return planned(plan, keeps=1)


@register
def moa_3(
    layers: int = LAYERS, proposers: str | list[str] | None = None, aggregator: str | None = None
) -> System:
    """Return Mixture-of-Agents; `proposers` names the workers that propose (None: all workers)."""
    return moa_system(layers, as_names(proposers), aggregator)


@register
def moa_lite(aggregator: str | None = None) -> System:
    """Return Mixture-of-Agents with one layer of proposers: all workers, then the aggregator."""
    return moa_system(2, (), aggregator)


SAMPLES = 6  # as in the authors' comparison, whose Mixture-of-Agents had six proposers

SELF_MOA = SystemCard(
    name="self-moa",
    solver="podium/self_moa",
    summary="One worker answers k times, then synthesises its own replies.",
    source="Li et al. 2025, arXiv 2502.00674 (written from the paper: its repository has no code)",
    calls=Calls("k + 1, with k = 6 by default", calls_by("k", SAMPLES, 1)),
    prompts=(AGGREGATE_AND_SYNTHESIZE,),
    k="k",
    traits=frozenset({"best worker"}),
    deviations=(
        "temperature 0.7 for samples and aggregator, as in Mixture-of-Agents' code; the authors' "
        "own temperature has not been verified",
        "the parallel form only, not Self-MoA-Seq's sliding window",
        OWN_LIMIT,
        "the worker is the best on our train split (the authors: on the benchmark itself)",
    ),
    acts="last step acts",
    spent=AGGREGATED,
)


@register
def self_moa_system(worker: str | None = None, k: int = SAMPLES) -> System:
    """Return the system in which `worker` answers `k` times, then merges its own replies."""
    at_least_one("Self-MoA", "k", k)

    def plan(question: Question, pool: Pool) -> Workflow:
        return layered([known(pool, worker)] * k, known(pool, worker), 2)

    return planned(plan, keeps=1)
