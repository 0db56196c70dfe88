"""One request to a model, as far as it is written down, and what foreign code may add to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, Model
from inspect_ai.tool import ToolChoice, ToolInfo


@dataclass(frozen=True, slots=True)
class Offered:
    """What other people's code adds to a request: tools, and settings that are part of its form."""

    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)

    @property
    def as_arguments(self) -> dict[str, Any]:
        """Arguments of `Model.generate`; none where no tool is offered."""
        if not self.tools:
            return {}
        return {"tools": list(self.tools), "tool_choice": self.tool_choice}

    @property
    def bytes(self) -> int:
        """UTF-8 bytes of the tools as JSON: they are part of a prompt."""
        return sum(len(tool.model_dump_json(exclude_none=True).encode()) for tool in self.tools)


@dataclass(frozen=True, slots=True)
class Request:
    """What is put to a model, as far as it is written down."""

    role: str
    model: Model
    messages: Sequence[ChatMessage]
    price_ref: str
    step: str | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    """What a step prescribes beside the model's own settings."""
    offered: Offered = field(default_factory=Offered)
    """Empty but for a bridged framework's requests."""

    @property
    def max_tokens(self) -> int | None:
        """The limit that the request will have."""
        return self.config.max_tokens or _max_tokens(self.model)

    @property
    def prompt_bytes(self) -> int:
        """Return the bytes of its texts and tools; a model may have written half a character."""
        texts = sum(len(turn.text.encode("utf-8", "surrogatepass")) for turn in self.messages)
        calls = (turn.tool_calls or () for turn in self.messages if turn.role == "assistant")
        made = sum(
            len(str(call.arguments).encode("utf-8", "replace")) for turn in calls for call in turn
        )
        return texts + made + self.offered.bytes


def _max_tokens(model: Model) -> int | None:
    """Return the limit that a request will have: of the worker, else its provider's default.

    Inspect lets a role inherit no limit from the whole eval.
    """
    own = model.config.max_tokens
    if own is None:
        own = model.api.max_tokens_for_config(model.config)
    return model.api.max_tokens() if own is None else own
