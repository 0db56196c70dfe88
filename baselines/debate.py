"""Multi-agent debate: copies of one worker answer, read each other and answer again, then vote.

After Du et al. 2023, arXiv 2305.14325: 3 agents, 2 rounds, the majority of the last round. Nobody
judges. An agent's own earlier answers are turns of its conversation; what the others said comes in
the next user message.
"""

from collections.abc import Sequence

from inspect_ai.solver import Solver, solver

from baselines.single import at_least_one, known
from baselines.voting import vote
from harness.execute import Session
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Question, Reply
from harness.system import System, SystemCard, exactly
from harness.workflow import Step

OTHERS = "Other agents were asked the same question. Their latest answers:"
AGAIN = (
    "Take these answers as advice that may be wrong: compare them with your own reasoning, then "
    "give your updated answer to the question, in the form it asks for."
)
"""Our own words, from the paper's description: the authors' repository has no licence."""

AGENTS, ROUNDS = 3, 2
"""The authors' setting in most of their tables."""

DEBATE = SystemCard(
    name="debate",
    solver="baselines/debate",
    summary="Three copies of one worker answer twice, the second time after reading each other.",
    source="Du et al. 2023, arXiv 2305.14325",
    calls="agents * rounds, 3 * 2 unless said",
    expected=exactly(
        lambda n, args: int(args.get("agents") or AGENTS) * int(args.get("rounds") or ROUNDS)
    ),
    prompts=(OTHERS, AGAIN),
    k="agents",
    on_best=True,
    deviations=(
        "the prompt is in our own words, and does not repeat the question, which opens the "
        "conversation (the authors' repository has no licence)",
        "the majority is over normalised answers, a tie goes to the first agent; programs vote by "
        "identical text",
        "agents of a round answer at once (the authors: one after another; same requests)",
        "samples at the worker's own temperature",
    ),
)


def show_others(others: Sequence[Reply]) -> str:
    """Return the message that shows an agent what the others said."""
    said = (f"Agent {number}:\n{reply.text}" for number, reply in enumerate(others, start=1))
    return "\n\n".join((OTHERS, *said, AGAIN))


def debate_system(worker: str | None = None, agents: int = AGENTS, rounds: int = ROUNDS) -> System:
    """Return the debate of `agents` copies of `worker` (default: the pool's first)."""
    at_least_one("A debate", "agents", agents)
    at_least_one("A debate", "rounds", rounds)

    async def answer(question: Question, pool: Pool) -> Answer:
        asked = known(pool, worker or pool.workers[0])
        session = Session(question, pool)
        latest = await session.ask_all([Step(asked)] * agents)
        for number in range(1, rounds):
            steps = [_turn(asked, latest, agent, number) for agent in range(agents)]
            latest = await session.ask_all(steps)
        return session.answer(vote(question.kind, [reply.text for reply in latest]))

    return answer


def _turn(worker: str, latest: Sequence[Reply], agent: int, number: int) -> Step:
    """Return an agent's turn in round `number` (from 0): its own past, and the others' latest."""
    others = [reply for at, reply in enumerate(latest) if at != agent]
    own = tuple(earlier * len(latest) + agent for earlier in range(number))
    return Step(worker, show_others(others), reads=own)


@solver
def debate(
    worker: str | None = None, agents: int = AGENTS, rounds: int = ROUNDS, pool: str | None = None
) -> Solver:
    """Let copies of one worker debate and vote."""
    return as_solver(debate_system(worker, agents, rounds), pool)
