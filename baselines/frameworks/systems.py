"""The frameworks as contestants: their manifests and the solvers that Inspect finds.

Versions are those that tests/test_frameworks.py runs; see the extras in pyproject.toml.
"""

from collections.abc import Awaitable, Callable, Mapping

from inspect_ai.solver import Solver, solver

from baselines.frameworks import (
    with_ag2,
    with_agent_framework,
    with_autogen,
    with_langchain,
    with_langgraph,
    with_openai_agents,
)
from baselines.frameworks.pipeline import INSTRUCTIONS, Cast
from baselines.roles import cast
from baselines.single import known
from harness.bridge import PREFIX, bridge_framework
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.run.systems import missing_extra
from harness.system import System, SystemCard, exactly

Answers = Callable[[str, Cast], Awaitable[str]]
"""(question, models of planner, executor and verifier) -> the answer."""

DEVIATIONS = (
    "sampling settings of the framework are dropped: each worker keeps its own",
    "what a step read is not known: it counts as having read all that had been said",
)


def _manifest(name: str, summary: str, source: str, modules: tuple[str, ...]) -> SystemCard:
    first = name in ("langgraph", "langchain", "openai-agents")
    return SystemCard(
        name=name,
        solver=f"baselines/{name.replace('-', '_')}",
        summary=summary,
        source=source,
        calls="3",
        group="frameworks",
        expected=exactly(lambda n, args: 3),
        prompts=INSTRUCTIONS,
        extra="frameworks" if first else "all-frameworks",
        modules=modules,
        deviations=DEVIATIONS,
    )


LANGGRAPH = _manifest(
    "langgraph",
    "Planner, executor and verifier as nodes of a LangGraph graph.",
    "github.com/langchain-ai/langgraph 1.2",
    ("langgraph", "langchain_openai"),
)
LANGCHAIN = _manifest(
    "langchain",
    "Planner, executor and verifier as a chain of LangChain, wired by hand.",
    "github.com/langchain-ai/langchain: langchain-core 1.7, langchain-openai 1.7",
    ("langchain_openai",),
)
OPENAI_AGENTS = _manifest(
    "openai-agents",
    "Planner, executor and verifier as agents of OpenAI's Agents SDK.",
    "github.com/openai/openai-agents-python 0.24",
    ("agents",),
)
AUTOGEN = _manifest(
    "autogen",
    "Planner, executor and verifier as an AutoGen group chat, in turn.",
    "github.com/microsoft/autogen 0.7.5",
    ("autogen_agentchat", "autogen_ext"),
)
AG2 = _manifest(
    "ag2",
    "Planner, executor and verifier as agents of AG2.",
    "github.com/ag2ai/ag2 1.2",
    ("ag2",),
)
AGENT_FRAMEWORK = _manifest(
    "agent-framework",
    "Planner, executor and verifier as a sequential workflow of Microsoft's Agent Framework.",
    "github.com/microsoft/agent-framework: core 1.23, openai 1.17, orchestrations 1.1",
    ("agent_framework", "agent_framework_openai", "agent_framework_orchestrations"),
)
FRAMEWORKS: Mapping[str, SystemCard] = {
    one.name: one for one in (LANGGRAPH, LANGCHAIN, OPENAI_AGENTS, AUTOGEN, AG2, AGENT_FRAMEWORK)
}
"""By name as in tables."""

_ANSWERS: Mapping[str, Answers] = {
    "langgraph": with_langgraph.answer,
    "langchain": with_langchain.answer,
    "openai-agents": with_openai_agents.answer,
    "autogen": with_autogen.answer,
    "ag2": with_ag2.answer,
    "agent-framework": with_agent_framework.answer,
}

Named = tuple[str | None, str | None, str | None]
"""The workers named as planner, executor and verifier; None leaves a role to the pool."""


def models(pool: Pool, named: Named) -> Cast:
    """Return the models that play, as the bridge knows them; UserError for an unknown worker."""
    planner, executor, verifier = (known(pool, one) for one in cast(pool.workers, named))
    return (PREFIX + planner, PREFIX + executor, PREFIX + verifier)


def framework_system(name: str, named: Named = (None, None, None)) -> System:
    """Return a framework's planner, executor and verifier; UserError when it is not installed."""
    if reason := missing_extra(FRAMEWORKS[name]):
        raise UserError(reason)

    async def answer(question: str, pool: Pool) -> str:
        return await _ANSWERS[name](question, models(pool, named))

    return bridge_framework(name, answer)


@solver
def langgraph(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in LangGraph; each role is a worker's name, or left to the pool."""
    return as_solver(framework_system("langgraph", (planner, executor, verifier)), pool)


@solver
def langchain(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in LangChain; each role is a worker's name, or left to the pool."""
    return as_solver(framework_system("langchain", (planner, executor, verifier)), pool)


@solver
def openai_agents(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in OpenAI's Agents SDK; each role is a worker's name, or open."""
    return as_solver(framework_system("openai-agents", (planner, executor, verifier)), pool)


@solver
def autogen(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in AutoGen; each role is a worker's name, or left to the pool."""
    return as_solver(framework_system("autogen", (planner, executor, verifier)), pool)


@solver
def ag2(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in AG2; each role is a worker's name, or left to the pool."""
    return as_solver(framework_system("ag2", (planner, executor, verifier)), pool)


@solver
def agent_framework(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in Agent Framework; each role is a worker's name, or open."""
    return as_solver(framework_system("agent-framework", (planner, executor, verifier)), pool)
