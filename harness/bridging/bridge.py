"""The adapter that lets an agent framework answer a question with the workers of our pool.

A framework asks the model `inspect/WORKER` through OpenAI's client, built by `client_settings`.
Inspect's agent bridge takes that request up, and we hand it to `Pool.relay`, so that every call has
the journal, span, limits, replicate and price that all systems' calls have. What a framework
reaches for past that is refused (egress.py) and leaves the question unscored.

The workflow that is logged is the one that was really run: a step for each call. What a step read
is not told, so it counts as having read all that had been said when it was asked. Sampling settings
of a framework are dropped, for a worker has its own in every system; tools, the form of a reply and
system messages are passed on. Frameworks themselves are in baselines/frameworks.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from inspect_ai.agent import AgentBridge, agent_bridge, current_bridge_request
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo

from harness.bridging.egress import Watch, guarded, unguarded
from harness.errors import FrameworkError, UserError
from harness.ledger.request import Offered
from harness.pool import Pool
from harness.records import Answer, Question, Reply
from harness.system import System
from harness.workflow import Step, Workflow

PREFIX = "inspect/"
"""Begins the model names that Inspect's bridge takes up; all others would go out."""
NOWHERE = "http://127.0.0.1:9/v1"
"""An address at which nobody answers: what a framework's client is given."""
NO_KEY = "no-key-this-call-was-not-bridged"

Framework = Callable[[str, Pool], Awaitable[str]]
"""(question, pool) -> the answer; it asks the models `inspect/WORKER` of the pool's workers."""


def client_settings() -> dict[str, Any]:
    """Return what OpenAI's client of a framework is built with: no way out, no hidden retries."""
    return {"base_url": NOWHERE, "api_key": NO_KEY, "max_retries": 0}


@dataclass(slots=True)
class Bridged:
    """The calls that a framework makes on one question."""

    question: Question
    pool: Pool
    watch: Watch
    steps: list[Step] = field(default_factory=list[Step])
    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])

    @property
    def aliases(self) -> dict[str, str | Model]:
        """The model names that a framework may ask, also where Inspect has no such role."""
        return {f"{PREFIX}{name}": self.pool.models[name] for name in self.pool.workers}

    def refuse(self, name: str) -> NoReturn:
        """Refuse a model that is no worker of this pool."""
        known = ", ".join(self.aliases)
        error = UserError(f"{self.watch.framework} asked {name!r}; it may ask: {known}.")
        raise self.watch.note(error)

    async def relay(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice | None,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answer one request of the framework from the pool: Inspect's `GenerateFilter`.

        After a failure nothing more is asked: who swallows errors or retries gets the first again.
        """
        if self.watch.trouble is not None:
            raise self.watch.trouble
        asked = current_bridge_request()
        name = (asked.model if asked else None) or str(model)
        if name not in self.aliases:
            self.refuse(name)
        settings = config.model_copy(update={"extra_headers": None})
        with unguarded():
            try:
                return await self._ask(name, messages, Offered(tools, tool_choice, settings))
            except Exception as error:
                raise self.watch.note(error) from error.__cause__

    async def _ask(self, name: str, messages: list[ChatMessage], offered: Offered) -> ModelOutput:
        worker, at = name.removeprefix(PREFIX), len(self.steps)
        self.steps.append(self._step(worker, messages))
        step = f"step {at + 1}: {worker}"
        output, self.replies[at] = await self.pool.relay(worker, messages, step, offered)
        return output

    def _step(self, worker: str, messages: Sequence[ChatMessage]) -> Step:
        """Return a request as a step: its instructions, with what was said before named only."""
        users = [self._named(turn.text) for turn in messages if turn.role == "user"]
        systems = [self._named(turn.text) for turn in messages if turn.role == "system"]
        said = next((text for text in reversed(users) if text), "")
        return Step(worker, said, tuple(sorted(self.replies)), "\n\n".join(systems) or None)

    def _named(self, text: str) -> str:
        """Return a text without the question and the replies that it repeats."""
        text = text.replace(self.question.text, "[question]")
        for at, reply in self.replies.items():
            if len(reply.text) > len("[reply 10]"):  # a shorter one stands anywhere by chance
                text = text.replace(reply.text, f"[reply {at + 1}]")
        return text.strip()

    def answer(self, text: str) -> Answer:
        """Return the framework's answer with the workflow that was run."""
        done = Workflow(tuple(self.steps))
        return Answer(
            text=text,
            replies=tuple(self.replies[at] for at in sorted(self.replies)),
            depth=max(done.depths(), default=0),
            plan=done.as_json(),
        )

    async def watched(self, work: Awaitable[str]) -> Answer:
        """Return what a framework answers; raise what went wrong first, whatever it made of it."""
        try:
            text = await work
        except Exception as error:
            if self.watch.trouble is not None:
                raise self.watch.trouble from error
            kind = type(error).__name__
            said = f"{self.watch.framework} failed with {kind} after {len(self.replies)} calls."
            raise FrameworkError(said) from error
        if self.watch.trouble is not None:
            raise self.watch.trouble
        return self.answer(text)


def bridged(name: str, framework: Framework) -> System:
    """Return the system that lets a framework answer in this process."""

    async def answer(question: Question, pool: Pool) -> Answer:
        run = Bridged(question, pool, Watch(name))
        async with _bridge(run) as bridge:
            bridge.model_aliases = run.aliases
            bridge.model_resolver = run.refuse
            return await run.watched(_guarded(run, framework(question.text, pool)))

    return answer


async def _guarded(run: Bridged, work: Awaitable[str]) -> str:
    with guarded(run.watch):
        return await work


def _bridge(run: Bridged) -> AbstractAsyncContextManager[AgentBridge]:
    """Return Inspect's bridge, with nothing of a provider's own that a request could switch on."""
    return agent_bridge(
        filter=run.relay, web_search=False, code_execution=False, client_mcp_servers=False
    )
