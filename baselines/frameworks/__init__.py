"""Planner, executor, verifier: a common hand-written workflow, also built with agent frameworks.

A conductor must beat it to show that *learning* the plan was worth it. Frameworks get the same
instructions, roles and workers; tokens that a framework adds to requests are counted and paid.
Cards name the framework versions under test (tests/baselines/test_frameworks.py).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from podium.baselines.common import register
from podium.baselines.frameworks import with_frameworks
from podium.baselines.single import known
from podium.harness.bridge import PREFIX, Script, bridge_framework, bridge_script
from podium.harness.errors import UserError
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.run.preflight import missing_extra
from podium.harness.system import Calls, Extra, System, SystemCard, SystemMethods, exactly, planned
from podium.harness.workflow import Step, Workflow

PLAN = (
    "Do not answer the question yet. Write a short numbered plan for answering it: which facts are "
    "needed, what must be worked out, in which order."
)
EXECUTE = "Follow the plan above and answer the question, in the form it asks for."
VERIFY = (
    "Check the answer above: redo what could be wrong and correct any mistake. Then state the "
    "final answer to the question, in the form it asks for."
)
"""The three roles' prompts, in our own wording: this workflow has no published prompt."""
INSTRUCTIONS = (PLAN, EXECUTE, VERIFY)
ROLES = ("planner", "executor", "verifier")

PLANNER_EXECUTOR_VERIFIER = SystemCard(
    name="planner-executor-verifier",
    solver="podium/planner_executor_verifier",
    summary="A planner writes a plan, an executor follows it, a verifier corrects the result.",
    source="podium (a common hand-written workflow)",
    calls=Calls("3", exactly(lambda n, args: 3)),
    prompts=INSTRUCTIONS,
    deviations=("roles go to workers of those names, else in pool order: nobody is best at one",),
)


def cast(workers: Sequence[str], chosen: Sequence[str | None]) -> tuple[str, ...]:
    """Return the workers that get the roles planner, executor and verifier.

    The user's choice comes first, then a worker with the role's name, then the next worker in pool
    order that has no role yet. In a pool of fewer than three workers, a worker has several roles.

    >>> cast(["abacus", "planner", "sage"], [None, "sage", None])
    ('planner', 'sage', 'abacus')
    """
    players = [
        name or (role if role in workers else None)
        for role, name in zip(ROLES, chosen, strict=True)
    ]
    free = [worker for worker in workers if worker not in players]
    queue = iter((free or list(workers)) * len(ROLES))
    return tuple(player or next(queue) for player in players)


@register
def planner_executor_verifier_system(
    planner: str | None = None, executor: str | None = None, verifier: str | None = None
) -> System:
    """Return the planner, executor, verifier system; None: `cast` chooses a worker for the role.

    Each step reads the replies of all earlier steps.
    """

    def plan(question: Question, pool: Pool) -> Workflow:
        players = [known(pool, name) for name in cast(pool.workers, (planner, executor, verifier))]
        reads = ((), (0,), (0, 1))
        return Workflow(tuple(map(Step, players, INSTRUCTIONS, reads)))

    return planned(plan)


VARIABLE = "PODIUM_CREWAI"
"""Environment variable: the sandbox's command for a Python that has CrewAI (default `python3`)."""
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""Environment variables that switch CrewAI's telemetry off."""

_DEVIATIONS = (
    "sampling settings of the framework are dropped: each worker keeps its own",
    "what a step read is not known: it counts as having read all that had been said",
)


def _card(name: str, style: str, source: str, *modules: str) -> SystemCard:
    few = name in ("langgraph", "langchain", "openai-agents")

    extra = Extra("frameworks" if few else "all-frameworks", modules) if modules else None
    return replace(
        PLANNER_EXECUTOR_VERIFIER,
        name=name,
        solver=f"podium/{name.replace('-', '_')}",
        summary=f"Planner, executor and verifier as {style}.",
        source=f"github.com/{source}",
        group="frameworks",
        methods=SystemMethods(extra),
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
"""Cards of the frameworks that run in the same process as Inspect, by their names in tables."""
CREWAI = replace(
    _card("crewai", "a CrewAI crew, in sequence", "crewAIInc/crewAI 1.15"),
    needs=frozenset({"sandbox"}),
    deviations=(
        *_DEVIATIONS,
        "what CrewAI reaches beside the bridge is up to the sandbox: use one without a network",
    ),
)

Named = tuple[str | None, str | None, str | None]
"""The user's choice of planner, executor and verifier; None: `cast` chooses a worker of a pool."""


def team_of(pool: Pool, team: Named) -> with_frameworks.Team:
    """Return each team member's role, model and instruction; UserError for an unknown worker."""
    players = [PREFIX + known(pool, name) for name in cast(pool.workers, team)]
    return tuple(zip(ROLES, players, INSTRUCTIONS, strict=True))


def framework_system(name: str, team: Named) -> System:
    """Return planner, executor, verifier in framework `name`; UserError if it is not installed."""
    if reason := missing_extra(FRAMEWORKS[name]):
        raise UserError(reason)

    answer_with = getattr(with_frameworks, f"answer_with_{name.replace('-', '_')}")

    async def answer(question: str, pool: Pool) -> str:
        return await answer_with(question, team_of(pool, team))

    return bridge_framework(name, answer)


def crewai_system(team: Named) -> System:
    """Return CrewAI's planner, executor and verifier, run by a script in the sample's sandbox.

    CrewAI 1.15 and Inspect need different releases of OpenAI's client, so this process never
    imports CrewAI: `with_crewai.py` runs with the Python that PODIUM_CREWAI names.
    """
    source = Path(__file__).with_name("with_crewai.py").read_text()
    python = os.environ.get(VARIABLE, "python3")

    def script(question: str, pool: Pool) -> Script:
        return Script(source, python, {"question": question, "team": team_of(pool, team)}, QUIET)

    return bridge_script(CREWAI.name, script)


def _register(card: SystemCard) -> None:
    def pipeline(
        planner: str | None = None, executor: str | None = None, verifier: str | None = None
    ) -> System:
        """Return the system; an argument names a role's worker, None: `cast` chooses one."""
        team = (planner, executor, verifier)
        if card is CREWAI:
            return crewai_system(team)
        return framework_system(card.name, team)

    register(pipeline, card.name.replace("-", "_"))


for card in (*_IN_PROCESS, CREWAI):
    _register(card)
