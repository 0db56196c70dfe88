"""Agent frameworks as systems: the planner, executor and verifier of `baselines/roles.py`."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from inspect_ai.solver import Solver, solver

from baselines.frameworks import with_frameworks
from baselines.frameworks.with_frameworks import INSTRUCTIONS, Cast
from baselines.roles import cast
from baselines.single import known
from harness.bridge import PREFIX, Script, bridge_framework, bridge_script
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.run.systems import missing_extra
from harness.system import System, SystemCard, exactly

# § Agent frameworks as contestants: the planner, executor and verifier of
# § `baselines/roles.py`.
# §
# § Same instructions, same cast, same workers; each framework writes the requests in its own
# § way, and
# § what it adds to them is paid for like everything else. `with_*.py` holds what a user of a
# § framework
# § would write, and imports it inside its one function; `systems.py` makes the contestants.


# § The frameworks as contestants: their manifests and the solvers that Inspect finds.
# §
# § Versions are those that tests/test_frameworks.py runs; see the extras in pyproject.toml.


Answers = Callable[[str, Cast], Awaitable[str]]
"""(question, models of planner, executor and verifier) -> the answer."""

DEVIATIONS = (
    "sampling settings of the framework are dropped: each worker keeps its own",
    "what a step read is not known: it counts as having read all that had been said",
)


def _card(name: str, summary: str, source: str, modules: tuple[str, ...]) -> SystemCard:
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


LANGGRAPH = _card(
    "langgraph",
    "Planner, executor and verifier as nodes of a LangGraph graph.",
    "github.com/langchain-ai/langgraph 1.2",
    ("langgraph", "langchain_openai"),
)
LANGCHAIN = _card(
    "langchain",
    "Planner, executor and verifier as a chain of LangChain, wired by hand.",
    "github.com/langchain-ai/langchain: langchain-core 1.7, langchain-openai 1.7",
    ("langchain_openai",),
)
OPENAI_AGENTS = _card(
    "openai-agents",
    "Planner, executor and verifier as agents of OpenAI's Agents SDK.",
    "github.com/openai/openai-agents-python 0.24",
    ("agents",),
)
AUTOGEN = _card(
    "autogen",
    "Planner, executor and verifier as an AutoGen group chat, in turn.",
    "github.com/microsoft/autogen 0.7.5",
    ("autogen_agentchat", "autogen_ext"),
)
AG2 = _card(
    "ag2",
    "Planner, executor and verifier as agents of AG2.",
    "github.com/ag2ai/ag2 1.2",
    ("ag2",),
)
AGENT_FRAMEWORK = _card(
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
    "langgraph": with_frameworks.answer_with_langgraph,
    "langchain": with_frameworks.answer_with_langchain,
    "openai-agents": with_frameworks.answer_with_openai_agents,
    "autogen": with_frameworks.answer_with_autogen,
    "ag2": with_frameworks.answer_with_ag2,
    "agent-framework": with_frameworks.answer_with_agent_framework,
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


# § CrewAI as a contestant, in an environment and a sandbox of its own.
# §
# § CrewAI 1.15 and Inspect need different releases of OpenAI's client, so CrewAI is never
# § imported
# § here: `with_crewai.py` runs where PODIUM_CREWAI says there is a Python with CrewAI.


VARIABLE = "PODIUM_CREWAI"
"""The Python that has CrewAI, as the sandbox knows it; by default its `python3`."""
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""Switches CrewAI's reports to its makers off."""

CREWAI = SystemCard(
    name="crewai",
    solver="baselines/crewai",
    summary="Planner, executor and verifier as a CrewAI crew, in sequence.",
    source="github.com/crewAIInc/crewAI 1.15",
    calls="3",
    group="frameworks",
    expected=exactly(lambda n, args: 3),
    prompts=INSTRUCTIONS,
    needs=frozenset({"sandbox"}),
    deviations=(
        *DEVIATIONS,
        "what CrewAI reaches beside the bridge is up to the sandbox: use one without a network",
    ),
)


def crewai_system(named: Named = (None, None, None)) -> System:
    """Return CrewAI's planner, executor and verifier, run by a script in the sample's sandbox."""
    source = Path(__file__).with_name("with_crewai.py").read_text()
    python = os.environ.get(VARIABLE, "python3")

    def script(question: str, pool: Pool) -> Script:
        given = {
            "question": question,
            "cast": models(pool, named),
            "instructions": INSTRUCTIONS,
        }
        return Script(source, python, given, QUIET)

    return bridge_script(CREWAI.name, script)


@solver
def crewai(
    planner: str | None = None,
    executor: str | None = None,
    verifier: str | None = None,
    pool: str | None = None,
) -> Solver:
    """Plan, execute, verify in CrewAI; each role is a worker's name, or left to the pool."""
    return as_solver(crewai_system((planner, executor, verifier)), pool)
