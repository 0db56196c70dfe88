"""What one worker gains from more turns or more room: the Conductor paper's two 5x controls.

Nobody tells the worker whether it was right: feedback from tests is by_tests.py.
"""

from baselines.common import registered
from baselines.single import ONE_CALL, at_least_one, calls_by, known
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, planned
from harness.workflow import Sampling, Step, Workflow

REVIEW = (
    "Review your work so far. Look for mistakes in every attempt above, correct what is wrong, and "
    "then give your final answer to the question, in the form it asks for."
)
"""Our own words: the paper (arXiv 2512.04388) does not print its prompt."""

TIMES = 5  # prompts of self-reflection in all, and the token limit's factor: arXiv 2512.04388

PAPER = "the 5x rows of the Conductor paper, arXiv 2512.04388"

SELF_REFLECTION = SystemCard(
    name="self-reflection",
    solver="baselines/self_reflection",
    summary="One worker answers, then reviews its answer k - 1 times in one conversation.",
    source=PAPER,
    calls="k, with k = 5 unless said",
    expected=calls_by("k", TIMES),
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
    expected=ONE_CALL,
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
        asked = known(pool, worker)
        reviews = (Step(asked, REVIEW, reads="all") for _ in range(k - 1))
        return Workflow((Step(asked), *reviews))

    return planned(plan)


def long_context_system(worker: str | None = None, times: int = TIMES) -> System:
    """Return the system that asks once, with the worker's own token limit times `times`."""
    at_least_one("Long context", "times", times)

    more = Sampling(times_max_tokens=times)
    return planned(lambda _, pool: Workflow((Step(known(pool, worker), sampling=more),)))


self_reflection = registered(self_reflection_system)
long_context = registered(long_context_system)
