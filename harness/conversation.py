"""Turn a conversation into a question, and answer it with a pool: in `podium serve` and in tasks.

Systems read a conversation as one text. A worker that may call tools also gets the conversation's
messages, tools and sampling settings: a worker that answers alone gets them instead of the
question; a plan's last worker gets them followed by a message with the earlier replies. The tool
calls of such a worker become the system's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, ModelOutput
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from podium.harness.ledger.critical_path import step_number
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, TOOL_CALLS, Answer, Question, Reply
from podium.harness.request import Offered
from podium.harness.system import Acts
from podium.harness.workflow import Sampling

TURNS: Mapping[str, str] = {
    "system": "Instructions",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}
LAST = "Answer the user's last message."
NEXT = "Say what the assistant should do next."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request of a client or task: messages, tools, and the sampling settings in the request."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)

    @property
    def has_tools(self) -> bool:
        """Whether the request offers tools, or an earlier turn called tools."""
        return bool(self.tools) or any(map(_is_of_tools, self.messages))


def _is_of_tools(turn: ChatMessage) -> bool:
    return turn.role == "tool" or (turn.role == "assistant" and bool(turn.tool_calls))


def acts_in(conversation: Conversation, acts: Acts) -> Acts:
    """Return `acts`; but `no` if it is `last step acts` and the conversation has no tools."""
    return acts if conversation.has_tools or acts != "last step acts" else "no"


def question_of(id: str, conversation: Conversation) -> Question:
    """Return a conversation as a question: a single user message without tools stays unchanged.

    Otherwise the question's text describes the tools and quotes all turns, with tool calls and
    their results.
    """
    turns = conversation.messages
    if len(turns) == 1 and turns[0].role == "user" and not conversation.tools:
        return Question(id, turns[0].text, "text")
    texts = [*map(_described, conversation.tools), *map(_transcribed, turns)]
    closing = NEXT if conversation.tools or turns[-1].role == "tool" else LAST
    return Question(id, "\n\n".join((*texts, closing)), "text")


def _described(tool: ToolInfo) -> str:
    parameters = ", ".join(tool.parameters.properties)
    return f"Tool of the assistant: {tool.name}({parameters}): {tool.description}"


def _transcribed(turn: ChatMessage) -> str:
    calls = turn.tool_calls if turn.role == "assistant" else None
    lines = [turn.text] if turn.text or not calls else []
    return f"{TURNS[turn.role]}: " + "\n".join([*lines, *([as_text(calls)] if calls else [])])


def as_text(calls: Sequence[ToolCall]) -> str:
    """Return tool calls as a text, the same for the same names and arguments, without ids.

    >>> as_text([ToolCall(id="1", function="look", arguments={"b": 1, "a": 2})])
    'Tool calls: [["look", {"a": 2, "b": 1}]]'
    """
    pairs = [[call.function, call.arguments] for call in calls]
    return TOOL_CALLS + json.dumps(pairs, sort_keys=True, ensure_ascii=False)


@dataclass(slots=True, kw_only=True)
class ConversationPool(Pool):
    """The workers for one turn of a conversation; workers that may call tools get all of it."""

    conversation: Conversation
    text: str
    """The question's text; `ask` replaces a request of exactly this text by the conversation."""
    acts: Acts
    outputs: list[tuple[int, ModelOutput]] = field(default_factory=list[tuple[int, ModelOutput]])
    """(step number, output) of each call that sent the conversation to a worker."""

    @classmethod
    def within(
        cls, pool: Pool, conversation: Conversation, text: str, acts: Acts
    ) -> "ConversationPool":
        """Return a pool for one turn, with the dollar meter and counts of its sample's pool."""
        return cls(
            pool.models,
            pool.spec,
            pool.epoch,
            pool.spend,
            kept=pool.kept,
            _asked=pool._asked,
            conversation=conversation,
            text=text,
            acts=acts_in(conversation, acts),
        )

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Send a request; for `passes` and `votes`, the conversation replaces a bare question."""
        canonical = [(message.role, message.text) for message in messages] == [("user", self.text)]
        if self.acts in ("passes", "votes") and canonical and worker != CONDUCTOR:
            return await self._sent(worker, step, sampling, "")
        return await Pool.ask(self, worker, messages, step, sampling)

    async def act(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
        advice: str = "",
    ) -> Reply:
        """Send a plan's last request; with tools, send the conversation and earlier replies."""
        if self.acts == "last step acts":
            return await self._sent(worker, step, sampling, advice)
        return await self.ask(worker, messages, step, sampling)

    async def _sent(self, worker: str, step: str, sampling: Sampling | None, advice: str) -> Reply:
        conversation = self.conversation
        prescribed = Pool.prescribed(self, worker, sampling)
        limits = self.limits(worker, prescribed)
        # Sampling that the client or the task sets overrides the step's own.
        config = prescribed.merge(conversation.config).merge(limits)
        turns = [*conversation.messages, *([ChatMessageUser(content=advice)] if advice else [])]
        offered = Offered(conversation.tools, conversation.tool_choice, config)
        output, reply = await self.relay(worker, turns, step, offered)
        self.outputs.append((step_number(step) or 0, output))
        return replace(reply, text=words_of(output))

    def limits(self, worker: str, config: GenerateConfig) -> GenerateConfig:
        """Return the token limit of a reply: the smaller of the worker's and the client's limit."""
        settings = self.models[worker].config
        cap = None if worker == CONDUCTOR else self.conversation.config.max_tokens
        limits = [limit for limit in (config.max_tokens or settings.max_tokens, cap) if limit]
        return GenerateConfig(max_tokens=min(limits, default=None))

    def prescribed(self, worker: str, sampling: Sampling | None) -> GenerateConfig:
        """Return the sampling settings of a step's worker, with the reply's token limit."""
        config = Pool.prescribed(self, worker, sampling)
        return config.merge(self.limits(worker, config))

    def output_of(self, answer: Answer) -> ModelOutput:
        """Return the worker's output that equals a system's answer, or else the answer's text.

        Of equal outputs, the output of the lowest step is returned, so that a replay has the same
        ids of tool calls.
        """
        text = answer.text.strip()
        same = [entry for entry in self.outputs if words_of(entry[1]).strip() == text]
        earliest = min(same, key=lambda entry: entry[0], default=None)
        return earliest[1] if earliest else ModelOutput.from_content("", answer.text)


def words_of(output: ModelOutput) -> str:
    """Return the text of an output that a system reads: its words, and its tool calls as text."""
    calls = output.message.tool_calls if output.choices else None
    return "\n".join(filter(None, (output.completion, as_text(calls) if calls else "")))


def sampling_of(config: GenerateConfig) -> GenerateConfig:
    """Return the sampling settings of a client's request, for workers: all but `NOT_SAMPLING`."""
    settings: dict[str, Any] = config.model_dump(exclude_none=True, exclude=NOT_SAMPLING)
    return GenerateConfig(**settings)


NOT_SAMPLING = {
    "max_retries", "timeout", "attempt_timeout", "max_connections", "adaptive_connections",
    "system_message", "cache", "batch", "fallback_models",
}  # fmt: skip
"""Names of settings that Inspect itself applies, such as retries: workers have their own values."""
