"""A client's conversation as a question, and the pool that answers one request.

Systems that plan read one text. A worker that answers alone is sent the conversation itself, with
its tools and sampling, in place of the canonical request that its system makes of that text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, Question, Reply
from podium.harness.request import Offered, Request, SampleIndex
from podium.harness.workflow import Sampling
from podium.serving.exchange import Refusal, ServedRequest, StepBegun
from podium.serving.models import ServedModel

TURNS: Mapping[str, str] = {
    "system": "Instructions",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}
LAST = "Answer the user's last message."
WITH_PLANS = frozenset({"max_tokens"})
"""Fields of sampling that hold for systems that plan: each worker's reply is as short as asked."""


def question_of(trace: str, messages: Sequence[ChatMessage]) -> Question:
    """Return a conversation as a question: a lone user message is its text."""
    if len(messages) == 1 and messages[0].role == "user":
        return Question(trace, messages[0].text, "text")
    turns = [f"{TURNS[one.role]}: {one.text}" for one in messages]
    return Question(trace, "\n\n".join((*turns, LAST)), "text")


def refuse_unhonoured(request: ServedRequest, model: ServedModel) -> None:
    """Raise Refusal (400) for what the model cannot honour, by its name in the dialect."""
    if not request.messages:
        raise Refusal(400, "invalid_request", "There is no message to answer.", param="messages")
    if model.passes_through:
        return
    asked = request.config.model_dump(exclude_none=True).keys() - WITH_PLANS
    asked |= request.params.keys() & {"tools", "images"}
    asked |= {"tools"} if any(map(_is_of_tools, request.messages)) else set[str]()
    for name in sorted(asked):
        said = request.params.get(name, name)
        raise Refusal(
            400,
            "unsupported_parameter",
            f"{model.id} plans over several models and cannot honour {said!r}: leave it out, or "
            "ask a model that answers alone (GET /v1/models says which take tools).",
            param=said,
        )


def _is_of_tools(message: ChatMessage) -> bool:
    """Say whether a turn calls a tool or has what one answered: no transcript has the calls."""
    return message.role == "tool" or (message.role == "assistant" and bool(message.tool_calls))


@dataclass(slots=True)
class RequestGate:
    """What one request may still do: asked before each of its calls."""

    max_calls: int
    spend: Spend
    """The request's own meter: a call that waits for its turn is not made once this has ended."""
    begun: Callable[[StepBegun], None]
    calls: int = 0
    steps: int = 0
    planned: int | None = None
    closed: Refusal | None = None
    """Why no new call is made; None while some may be."""

    def close(self, why: Refusal) -> None:
        """Let no new call be made; the first reason stays."""
        if self.closed is None:
            self.closed = why
            self.spend.ended = self.spend.ended or SpendLimit(str(why))

    def enter(self, worker: str) -> None:
        """Count a call that is about to be made; Refusal where it may not be."""
        if self.closed is None and self.calls >= self.max_calls:
            said = f"This request made {self.calls} calls, and may make no more (--max-calls)."
            self.close(Refusal(402, "out_of_budget", said))
        if self.closed is not None:
            raise self.closed
        self.calls += 1
        self.steps += worker != CONDUCTOR
        number = 0 if worker == CONDUCTOR else self.steps
        self.begun(StepBegun(number, self.planned, worker))


@dataclass(slots=True, kw_only=True)
class RequestPool(Pool):
    """The workers for one request: gated, and given the conversation where one answers alone."""

    gate: RequestGate
    request: ServedRequest
    text: str
    """The question's, by which the canonical request of a worker that answers alone is known."""
    passes_through: bool
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What every request of it says beside its worker's own headers."""
    outputs: list[ModelOutput] = field(default_factory=list[ModelOutput])
    """Of workers that were sent the conversation."""

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Put a request to a worker: the conversation in place of the question alone."""
        canonical = [(one.role, one.text) for one in messages] == [("user", self.text)]
        if not (self.passes_through and canonical and worker != CONDUCTOR):
            return await Pool.ask(self, worker, messages, step, sampling)
        asked = self.request
        config = asked.config.merge(self._settings(worker, GenerateConfig()))
        offered = Offered(asked.tools, asked.tool_choice, config)
        output, reply = await self.relay(worker, asked.messages, step, offered)
        self.outputs.append(output)
        return reply

    def prescribed(self, worker: str, sampling: Sampling | None) -> GenerateConfig:
        """Return how a step has a worker sample, its reply no longer than the client asks."""
        config = Pool.prescribed(self, worker, sampling)
        return config.merge(self._settings(worker, config))

    def _settings(self, worker: str, config: GenerateConfig) -> GenerateConfig:
        own = self.models[worker].config
        asked = None if worker == CONDUCTOR else self.request.config.max_tokens
        limits = [one for one in (config.max_tokens or own.max_tokens, asked) if one]
        headers = {**(own.extra_headers or {}), **self.headers} if self.headers else None
        return GenerateConfig(max_tokens=min(limits, default=None), extra_headers=headers)

    def has_planned(self, steps: int) -> None:
        """Note how many steps there are, for those who wait."""
        self.gate.planned = steps

    async def _put(self, request: Request, number: SampleIndex) -> tuple[ModelOutput, Reply]:
        self.gate.enter(request.role)
        found: list[tuple[ModelOutput, Reply]] = []
        # Whatever becomes of the request, a call in flight is waited for: it is billed.
        with anyio.CancelScope(shield=True):
            found.append(await Pool._put(self, request, number))
        return found[0]
