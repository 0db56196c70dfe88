"""LangChain's client asked for a model that is not bridged: prints what becomes of the question."""

import json
import sys

from inspect_ai import eval
from inspect_ai.solver import Solver, solver

from podium.harness.bridge import bridge_framework, client_settings
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.suites._registry import practice_integer


async def answer(question: str, pool: Pool) -> str:
    """Forget the prefix, at an address where somebody would answer; then make do without."""
    from langchain_openai import ChatOpenAI

    settings = client_settings() | {"base_url": sys.argv[1]}
    try:
        return str((await ChatOpenAI(model="gpt-5", **settings).ainvoke(question)).text)
    except Exception:
        return "ANSWER: 7"


@solver
def escaping() -> Solver:
    """Return the framework as a contestant."""
    return as_solver(bridge_framework("langchain", answer), "rehearsal")


(log,) = eval(practice_integer(), solver=escaping(), limit=1, display="none", log_dir=sys.argv[2])
(sample,) = log.samples or []
said = sample.error.message if sample.error else ""
print(json.dumps({"status": log.status, "said": said, "scores": len(sample.scores or {})}))
