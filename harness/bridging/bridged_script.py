"""A framework that cannot share our process: a script of its own, in a sandbox of Inspect's.

The script reads JSON from its standard input, asks `inspect/WORKER` at OPENAI_BASE_URL, and prints
JSON with its `answer` as the last line. Its calls come out of the sandbox through Inspect's bridge
and go the way of all bridged calls (bridge.py). What else it may reach is up to the
sandbox: a container without a network keeps everything in; `local`, which is for tests, nothing.
"""

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio
from inspect_ai.agent import sandbox_agent_bridge
from inspect_ai.util import sandbox

from harness.bridging.bridge import NO_KEY, Bridged
from harness.bridging.egress import Watch
from harness.bridging.inspect_sandbox import missing_sandbox
from harness.errors import FrameworkError, UserError
from harness.pool import Pool
from harness.records import Answer, Question
from harness.system import System

FILE = "framework_app.py"
_STARTING = anyio.Lock()
"""Inspect unpacks its tools in a sandbox at the first start; local ones share a folder."""


@dataclass(frozen=True, slots=True)
class Script:
    """What is run in the sandbox."""

    source: str
    """The program's text."""
    python: str
    """The interpreter there, e.g. `python3`."""
    given: Mapping[str, Any]
    """What it reads, as JSON."""
    environment: Mapping[str, str]
    """Its whole environment, beside PATH, HOME and the bridge's address: no key of ours."""


def bridged_script(name: str, script: Callable[[str, Pool], Script]) -> System:
    """Return the system that lets a script answer; `script` gets the question's text."""

    async def answer(question: Question, pool: Pool) -> Answer:
        run = Bridged(question, pool, Watch(name))
        written = script(question.text, pool)
        port = _free_port()
        bridge = sandbox_agent_bridge(
            filter=run.relay, model_aliases=run.aliases, model_resolver=run.refuse, port=port
        )
        _refuse_no_sandbox(name)
        async with AsyncExitStack() as stack:
            async with _STARTING:
                await stack.enter_async_context(bridge)
            return await run.watched(_run(name, written, port))

    return answer


def _refuse_no_sandbox(name: str) -> None:
    try:
        sandbox()
    except ProcessLookupError:  # Inspect's, where a sample has none
        raise UserError(missing_sandbox(name)) from None


async def _run(name: str, script: Script, port: int) -> str:
    await sandbox().write_file(FILE, script.source)
    words = _command(script, port)
    done = await sandbox().exec(words, input=json.dumps(dict(script.given)))
    if not done.success:
        kind = _last_line(done.stderr).partition(":")[0]
        raise FrameworkError(f"{name}'s script ended with {done.returncode} ({kind}).")
    try:
        return str(json.loads(_last_line(done.stdout))["answer"])
    except (ValueError, KeyError, TypeError):
        raise FrameworkError(f"{name}'s script printed no answer.") from None


def _command(script: Script, port: int) -> list[str]:
    """Return the command that runs a script with an environment of its own.

    Inspect's local sandbox would hand on ours, keys included.
    """
    settings = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": ".",
        "OPENAI_BASE_URL": f"http://localhost:{port}/v1",
        "OPENAI_API_KEY": NO_KEY,
        **script.environment,
    }
    return [
        "env",
        "-i",
        *(f"{key}={value}" for key, value in settings.items()),
        script.python,
        FILE,
    ]


def _last_line(text: str) -> str:
    return next(iter(reversed(text.strip().splitlines())), "")


def _free_port() -> int:
    """Return a port for the bridge's proxy: samples share this machine's in a local sandbox."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
