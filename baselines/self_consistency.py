"""Self-consistency: ask one worker k times, vote on the answers (Wang et al., arXiv 2203.11171).

The vote is over normalised answers, not over scores. For programs it is the plurality of identical
programs, which is weak; agreement on what programs compute would need a box. Offline variants
(maj@k from one k-sample run) belong to reports/.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspect_ai.solver import Solver, solver

from baselines.single import at_least_one, known
from harness.execute import execute
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import Sampling, Step, Workflow

SAMPLES = 5

SELF_CONSISTENCY = SystemCard(
    name="self-consistency",
    solver="baselines/self_consistency",
    summary="One worker answers k times; the most frequent answer wins.",
    source="Wang et al. 2022, arXiv 2203.11171",
    calls="k, with k = 5 unless said",
    expected=exactly(lambda n, args: int(args.get("k") or SAMPLES)),
    k="k",
    on_best=True,
    deviations=(
        "samples at the worker's own temperature unless one is given (the authors: 0.5 to 0.8), so "
        "that k epochs of the single worker are the same draws",
        "a tie goes to the answer that appeared first",
        "programs vote by identical text, which is weak: best-of-n-tests and compute-matched-* "
        "pick by public tests instead",
    ),
)


def vote(kind: Kind, replies: Sequence[str]) -> str:
    """Return the first reply that holds the most frequent answer.

    Replies without an answer do not vote. A tie goes to the answer that appeared first; when
    nobody answered, the first reply stands.
    """
    answers = [normalised(kind, reply) for reply in replies]
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return replies[0] if replies else ""
    winner = votes.most_common(1)[0][0]
    return replies[answers.index(winner)]


def self_consistency_system(
    worker: str | None = None, k: int = SAMPLES, temperature: float | None = None
) -> System:
    """Return the system that asks `worker` (default: the pool's first) k times and votes."""
    at_least_one("Self-consistency", "k", k)
    sampling = None if temperature is None else Sampling(temperature)

    async def answer(question: Question, pool: Pool) -> Answer:
        asked = known(pool, worker or pool.workers[0])
        workflow = Workflow(tuple(Step(asked, sampling=sampling) for _ in range(k)))
        drawn = await execute(workflow, question, pool)
        chosen = vote(question.kind, [reply.text for reply in drawn.replies])
        return replace(drawn, text=chosen)

    return answer


@solver
def self_consistency(
    worker: str | None = None,
    k: int = SAMPLES,
    temperature: float | None = None,
    pool: str | None = None,
) -> Solver:
    """Ask one worker k times at once and give the answer of the majority."""
    return as_solver(self_consistency_system(worker, k, temperature), pool)
