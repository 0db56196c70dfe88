"""What one worker gains from more turns or more room: the Conductor paper's two 5x controls.

`self-reflection` asks a worker to review its answer, again and again, with all of its attempts in
the conversation; `long-context` asks once and lets it write five times as much. Nobody tells the
worker whether it was right: feedback from tests is by_tests.py.
"""

from inspect_ai.solver import Solver, solver

from baselines.single import at_least_one, known
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import Sampling, Step, Workflow

REVIEW = (
    "Review your work so far. Look for mistakes in every attempt above, correct what is wrong, and "
    "then give your final answer to the question, in the form it asks for."
)
"""Our own words: the paper (arXiv 2512.04388) does not print its prompt."""

TIMES = 5
"""Prompts of self-reflection in all, and the token limit's factor: arXiv 2512.04388."""

PAPER = "the 5x rows of the Conductor paper, arXiv 2512.04388"

SELF_REFLECTION = SystemCard(
    name="self-reflection",
    solver="baselines/self_reflection",
    summary="One worker answers, then reviews its answer k - 1 times in one conversation.",
    source=PAPER,
    calls="k, with k = 5 unless said",
    expected=exactly(lambda n, args: int(args.get("k") or TIMES)),
    prompts=(REVIEW,),
    k="k",
    on_best=True,
    deviations=(
        "the review prompt is in our own words (the paper prints none)",
        "always k prompts (the paper: up to five), and the last reply is the answer",
        "the worker is the best on the train split (the paper: each worker, a row of its own)",
    ),
)
LONG_CONTEXT = SystemCard(
    name="long-context",
    solver="baselines/long_context",
    summary="One worker answers once and may write five times as many tokens.",
    source=PAPER,
    calls="1",
    expected=exactly(lambda n, args: 1),
    k="times",
    on_best=True,
    deviations=(
        "five times the worker's own token limit (the paper: 20 K after 4 K output tokens)",
        "a worker without a token limit is asked as it is, which makes this row a single one",
        "the worker is the best on the train split (the paper: each worker, a row of its own)",
    ),
)


def self_reflection_system(worker: str | None = None, k: int = TIMES) -> System:
    """Return the system with k prompts in all: the question, then k - 1 reviews."""
    at_least_one("Self-reflection", "k", k)

    def plan(question: Question, pool: Pool) -> Workflow:
        asked = known(pool, worker or pool.workers[0])
        reviews = (Step(asked, REVIEW, reads="all") for _ in range(k - 1))
        return Workflow((Step(asked), *reviews))

    return planned(plan)


def long_context_system(worker: str | None = None, times: int = TIMES) -> System:
    """Return the system that asks once, with the worker's own token limit times `times`."""
    at_least_one("Long context", "times", times)

    def plan(question: Question, pool: Pool) -> Workflow:
        asked = known(pool, worker or pool.workers[0])
        return Workflow((Step(asked, sampling=Sampling(times_max_tokens=times)),))

    return planned(plan)


@solver
def self_reflection(worker: str | None = None, k: int = TIMES, pool: str | None = None) -> Solver:
    """Let one worker answer and review its answer, k prompts in all."""
    return as_solver(self_reflection_system(worker, k), pool)


@solver
def long_context(worker: str | None = None, times: int = TIMES, pool: str | None = None) -> Solver:
    """Let one worker answer once with `times` its token limit."""
    return as_solver(long_context_system(worker, times), pool)
