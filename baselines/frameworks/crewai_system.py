"""CrewAI as a contestant, in an environment and a sandbox of its own.

CrewAI 1.15 and Inspect need different releases of OpenAI's client, so CrewAI is never imported
here: `with_crewai.py` runs where PODIUM_CREWAI says there is a Python with CrewAI.
"""

import os
from pathlib import Path

from inspect_ai.solver import Solver, solver

from baselines.frameworks.pipeline import INSTRUCTIONS
from baselines.frameworks.systems import DEVIATIONS, Named, models
from harness.bridge import Script, bridge_script
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.system import System, SystemCard, exactly

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
