"""Run other agent frameworks on the pool's workers, through Inspect's bridge."""

import json
import platform
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import anyio
from inspect_ai.agent import agent_bridge, current_bridge_request, sandbox_agent_bridge
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import sandbox

from podium.harness.context import current, run_context
from podium.harness.errors import Escaped, FrameworkError, UserError
from podium.harness.execute import Session
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question, Reply
from podium.harness.request import Offered
from podium.harness.system import System, missing_sandbox
from podium.harness.workflow import Step

_NETWORK = {
    **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), 1),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"), 0),
}
"""Python's audit events of network access, and the index of the event's argument with the address
(docs.python.org/3/library/audit_events.html)."""
_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"}
)  # audit events that start another program, which this guard could not watch


_installed = threading.Lock()


@contextmanager
def guard_egress(watch: Callable[[str], Exception]) -> Generator[None]:
    """Refuse all connections and new programs in the `with` block: raise `watch(reason)`.

    Not covered: threads without podium's run context, and extension modules with sockets of their
    own (grpc): such code belongs in a sandbox without a network.
    """
    if _installed.acquire(blocking=False):  # once: an audit hook cannot be removed
        platform.platform()  # OpenAI's client calls this; its first call starts a program
        sys.addaudithook(_hook)
    with run_context(watch=watch):
        yield


def _hook(event: str, args: tuple[Any, ...]) -> None:
    watch = current().watch if event in _NETWORK or event in _PROGRAMS else None
    if watch is None:
        return
    reason = f"tried to start a program ({event}); its calls cannot be seen."
    if event in _NETWORK:
        address = args[_NETWORK[event]]
        items = cast("tuple[object, ...]", address if isinstance(address, tuple) else (address,))
        place = ":".join(map(str, items[:2]))
        reason = f"tried to reach {place} without the ledger; nothing was sent."
    raise watch(reason)


PREFIX = "inspect/"  # of model names that Inspect's bridge serves; other calls leave the process
NOWHERE = "http://127.0.0.1:9/v1"  # base URL of a framework's client; nothing listens there
NO_KEY = "no-key-this-call-was-not-bridged"
Framework = Callable[[str, Pool], Awaitable[str]]
"""An agent framework: (question's text, pool) -> answer; its name for a worker is
`inspect/WORKER`."""


def client_settings() -> dict[str, Any]:
    """Return the settings of a framework's OpenAI client: no network, no hidden retries."""
    return {"base_url": NOWHERE, "api_key": NO_KEY, "max_retries": 0}


@dataclass(slots=True, eq=False)
class BridgedQuestion:
    """One question that a framework is answering, and the calls that the framework makes."""

    question: Question
    pool: Pool
    framework: str
    trouble: Exception | None = None  # the first error, even if the framework handled it
    steps: list[Step] = field(default_factory=list[Step])
    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])

    def note(self, error: Exception) -> Exception:
        """Store an error in `trouble` if it is the question's first error; return the error."""
        self.trouble = self.trouble or error
        return error

    def escaped(self, action: str) -> Exception:
        """Return the error for a refused connection or program, and store it if it is the first."""
        return self.note(Escaped(f"{self.framework} {action}"))

    @property
    def aliases(self) -> dict[str, str | Model]:
        """The model name that a framework may call -> the worker's model."""
        return {f"{PREFIX}{name}": self.pool.models[name] for name in self.pool.workers}

    def refuse(self, name: str) -> NoReturn:
        """Raise UserError if a framework calls a model that is no worker of this pool."""
        names = ", ".join(self.aliases)
        raise self.note(
            UserError(
                f"{self.framework} called {name!r}, which is not a worker of "
                f"this pool; its workers are: {names}."
            )
        )

    async def relay(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice | None,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Send a framework's request to a worker and return the output; called by Inspect."""
        # After an error no more calls are made: each later request raises the first error again.
        if self.trouble is not None:
            raise self.trouble
        request = current_bridge_request()
        name = (request.model if request else None) or str(model)
        if name not in self.aliases:
            self.refuse(name)
        settings = config.model_copy(update={"extra_headers": None})
        with run_context(watch=None):  # podium's own code may connect to the provider
            try:
                worker, index = name.removeprefix(PREFIX), len(self.steps)
                self.steps.append(self._step(worker, messages))
                step, offered = f"step {index + 1}: {worker}", Offered(tools, tool_choice, settings)
                output, reply = await self.pool.relay(worker, messages, step, offered)
                self.replies[index] = reply
                return output
            except Exception as error:
                raise self.note(error) from error.__cause__

    def _step(self, worker: str, messages: Sequence[ChatMessage]) -> Step:
        """Return a request as a step of a plan, with placeholders for the question and replies."""
        users = [self._named(turn.text) for turn in messages if turn.role == "user"]
        systems = [self._named(turn.text) for turn in messages if turn.role == "system"]
        subtask = next((text for text in reversed(users) if text), "")
        return Step(worker, subtask, tuple(sorted(self.replies)), "\n\n".join(systems) or None)

    def _named(self, text: str) -> str:
        """Replace the question and earlier replies in a text by placeholders."""
        text = text.replace(self.question.text, "[question]")
        for index, reply in self.replies.items():
            if len(reply.text) > len("[reply 10]"):  # a shorter one may match by chance
                text = text.replace(reply.text, f"[reply {index + 1}]")
        return text.strip()

    async def watched(self, work: Awaitable[str]) -> Answer:
        """Return a framework's answer; raise its first error, even if the framework handled it."""
        try:
            text = await work
        except Exception as error:
            kind = type(error).__name__
            sentence = f"{self.framework} failed with {kind} after {len(self.replies)} calls."
            raise self.trouble or FrameworkError(sentence) from error
        if self.trouble is not None:
            raise self.trouble
        replies = [self.replies[index] for index in sorted(self.replies)]
        return Session(self.question, self.pool, self.steps, replies).answer(text)


def bridge_framework(name: str, framework: Framework) -> System:
    """Return a system whose answers come from an agent framework in this process."""

    async def answer(question: Question, pool: Pool) -> Answer:
        run = BridgedQuestion(question, pool, name)
        # Switch off the provider's tools, which a request could switch on.
        bridged = agent_bridge(
            filter=run.relay, web_search=False, code_execution=False, client_mcp_servers=False
        )
        async with bridged as bridge:
            bridge.model_aliases = run.aliases
            bridge.model_resolver = run.refuse
            with guard_egress(run.escaped):
                return await run.watched(framework(question.text, pool))

    return answer


FILE = "framework_app.py"
_STARTING = anyio.Lock()  # the first bridge unpacks tools into a folder that local samples share


@dataclass(frozen=True, slots=True)
class Script:
    """A framework's program for the sandbox: source, interpreter, input and environment."""

    source: str
    python: str  # the sandbox's interpreter, e.g. `python3`
    given: Mapping[str, Any]  # Its input, as JSON
    environment: Mapping[str, str]  # variables besides PATH, HOME and the bridge's URL and key


def bridge_script(name: str, script: Callable[[str, Pool], Script]) -> System:
    """Return a system that runs the program `script(question, pool)` in the sandbox."""

    async def answer(question: Question, pool: Pool) -> Answer:
        run = BridgedQuestion(question, pool, name)
        written = script(question.text, pool)
        with socket.socket() as listener:  # samples share this machine's ports in a local sandbox
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        bridge = sandbox_agent_bridge(
            filter=run.relay, model_aliases=run.aliases, model_resolver=run.refuse, port=port
        )
        try:
            sandbox()
        except ProcessLookupError:  # Inspect's error if a sample has no sandbox
            raise UserError(missing_sandbox(name)) from None
        async with AsyncExitStack() as stack:
            async with _STARTING:
                await stack.enter_async_context(bridge)
            return await run.watched(_run(name, written, port))

    return answer


async def _run(name: str, script: Script, port: int) -> str:
    await sandbox().write_file(FILE, script.source)
    settings = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": ".",
        "OPENAI_BASE_URL": f"http://localhost:{port}/v1",
        "OPENAI_API_KEY": NO_KEY,
        **script.environment,
    }
    # Inspect's local sandbox would pass on our environment, API keys included.
    clean = ["env", "-i", *(f"{key}={value}" for key, value in settings.items())]
    payload = json.dumps(dict(script.given))
    process = await sandbox().exec([*clean, script.python, FILE], input=payload)
    if not process.success:
        kind = _last_line(process.stderr).partition(":")[0]
        raise FrameworkError(f"{name}'s script ended with {process.returncode} ({kind}).")
    try:
        return str(json.loads(_last_line(process.stdout))["answer"])
    except (ValueError, KeyError, TypeError):
        raise FrameworkError(f"{name}'s script printed no answer.") from None


def _last_line(text: str) -> str:
    return next(iter(reversed(text.strip().splitlines())), "")
