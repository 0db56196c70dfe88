"""Agent frameworks as systems: the planner, executor and verifier of `baselines/roles.py`.

Same instructions, same cast, same workers; each framework writes the requests in its own way, and
what it adds to them is paid for like everything else. Versions are those that
tests/baselines/test_frameworks.py runs; see the extras in pyproject.toml.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from baselines.common import register
from baselines.frameworks import with_frameworks
from baselines.frameworks.with_frameworks import INSTRUCTIONS, Cast
from baselines.roles import PLANNER_EXECUTOR_VERIFIER, cast
from baselines.single import known
from harness.bridge import PREFIX, Script, bridge_framework, bridge_script
from harness.errors import UserError
from harness.pool import Pool
from harness.run.systems import missing_extra
from harness.system import System, SystemCard

VARIABLE = "PODIUM_CREWAI"
"""The Python that has CrewAI, as the sandbox knows it; by default its `python3`."""
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""Switches CrewAI's reports to its makers off."""

_DEVIATIONS = (
    "sampling settings of the framework are dropped: each worker keeps its own",
    "what a step read is not known: it counts as having read all that had been said",
)


def _card(name: str, how: str, source: str, *modules: str) -> SystemCard:
    few = name in ("langgraph", "langchain", "openai-agents")
    return replace(
        PLANNER_EXECUTOR_VERIFIER,
        name=name,
        solver=f"baselines/{name.replace('-', '_')}",
        summary=f"Planner, executor and verifier as {how}.",
        source=f"github.com/{source}",
        group="frameworks",
        extra=("frameworks" if few else "all-frameworks") if modules else "",
        modules=modules,
        deviations=_DEVIATIONS,
    )


_IN_PROCESS = (
    _card(
        "langgraph",
        "nodes of a LangGraph graph",
        "langchain-ai/langgraph 1.2",
        "langgraph",
        "langchain_openai",
    ),
    _card(
        "langchain",
        "a chain of LangChain, wired by hand",
        "langchain-ai/langchain: langchain-core 1.7, langchain-openai 1.7",
        "langchain_openai",
    ),
    _card(
        "openai-agents",
        "agents of OpenAI's Agents SDK",
        "openai/openai-agents-python 0.24",
        "agents",
    ),
    _card(
        "autogen",
        "an AutoGen group chat, in turn",
        "microsoft/autogen 0.7.5",
        "autogen_agentchat",
        "autogen_ext",
    ),
    _card("ag2", "agents of AG2", "ag2ai/ag2 1.2", "ag2"),
    _card(
        "agent-framework",
        "a sequential workflow of Microsoft's Agent Framework",
        "microsoft/agent-framework: core 1.23, openai 1.17, orchestrations 1.1",
        "agent_framework",
        "agent_framework_openai",
        "agent_framework_orchestrations",
    ),
)
FRAMEWORKS: Mapping[str, SystemCard] = {card.name: card for card in _IN_PROCESS}
"""Those that share Inspect's environment, by name as in tables."""
CREWAI = replace(
    _card("crewai", "a CrewAI crew, in sequence", "crewAIInc/crewAI 1.15"),
    needs=frozenset({"sandbox"}),
    deviations=(
        *_DEVIATIONS,
        "what CrewAI reaches beside the bridge is up to the sandbox: use one without a network",
    ),
)

Named = tuple[str | None, str | None, str | None]
"""The workers named as planner, executor and verifier; None leaves a role to the pool."""


def models(pool: Pool, named: Named) -> Cast:
    """Return the models that play, as the bridge knows them; UserError for an unknown worker."""
    planner, executor, verifier = (known(pool, one) for one in cast(pool.workers, named))
    return (PREFIX + planner, PREFIX + executor, PREFIX + verifier)


def framework_system(name: str, named: Named) -> System:
    """Return a framework's planner, executor and verifier; UserError when it is not installed."""
    if reason := missing_extra(FRAMEWORKS[name]):
        raise UserError(reason)

    answer_with = getattr(with_frameworks, f"answer_with_{name.replace('-', '_')}")

    async def answer(question: str, pool: Pool) -> str:
        return await answer_with(question, models(pool, named))

    return bridge_framework(name, answer)


def crewai_system(named: Named) -> System:
    """Return CrewAI's planner, executor and verifier, run by a script in the sample's sandbox.

    CrewAI 1.15 and Inspect need different releases of OpenAI's client, so it is never imported
    here: `with_crewai.py` runs where PODIUM_CREWAI says there is a Python with CrewAI.
    """
    source = Path(__file__).with_name("with_crewai.py").read_text()
    python = os.environ.get(VARIABLE, "python3")

    def script(question: str, pool: Pool) -> Script:
        players = models(pool, named)
        given = {"question": question, "cast": players, "instructions": INSTRUCTIONS}
        return Script(source, python, given, QUIET)

    return bridge_script(CREWAI.name, script)


def _register(card: SystemCard) -> None:
    def pipeline(
        planner: str | None = None, executor: str | None = None, verifier: str | None = None
    ) -> System:
        """Plan, execute, verify; each role is a worker's name, or left to the pool."""
        named = (planner, executor, verifier)
        if card.name == CREWAI.name:
            return crewai_system(named)
        return framework_system(card.name, named)

    register(pipeline, card.name.replace("-", "_"))


for one in (*_IN_PROCESS, CREWAI):
    _register(one)
