"""One request to a model: what is sent, its digest, which sample is wanted, its service tier.

Replies are keyed by worker, request *and* `SampleIndex`: else five samples would be one call.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from inspect_ai.model import ChatMessage, GenerateConfig, Model
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.prices.cost import Service
from podium.harness.text import storable

JSON = json.JSONEncoder(ensure_ascii=False).encode
"""As digests of texts are made; one encoder for all of a million calls."""
INSTRUCTIONS = 1024  # tokens at most that tools add; Anthropic's pages name hundreds


@dataclass(frozen=True, slots=True)
class Offered:
    """What is added to a worker's own settings: by a step, or with tools by other people's code."""

    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)

    @property
    def bytes(self) -> int:
        """UTF-8 bytes of the tools as JSON, and of what a provider says of how to use them."""
        written = sum(len(tool.model_dump_json(exclude_none=True).encode()) for tool in self.tools)
        return written + INSTRUCTIONS if written else 0


NOTHING = Offered()


@dataclass(frozen=True)
class Request:
    """What is put to a model, as far as it is written down; each figure is worked out once."""

    role: str
    model: Model
    messages: Sequence[ChatMessage]
    price_ref: str
    step: str | None = None
    offered: Offered = NOTHING

    @property
    def config(self) -> GenerateConfig:
        """What a step prescribes beside the model's own settings."""
        return self.offered.config

    @cached_property
    def _settings(self) -> GenerateConfig:
        # As Inspect merges them, without its deep copies: they take longer than all else here.
        said = {name: getattr(self.config, name) for name in self.config.model_fields_set}
        said = {name: value for name, value in said.items() if value is not None}
        return self.model.config.model_copy(update=said) if said else self.model.config

    @cached_property
    def sha256(self) -> str:
        """Digest of what the worker is sent."""
        return request_digest(self.messages)

    @cached_property
    def service(self) -> Service:
        """How a provider is asked to serve it; a tier that no book knows has no price."""
        return service_tier(self.model.config, self.model.model_args)

    @cached_property
    def max_tokens(self) -> int | None:
        """The limit that the request will have, all its choices together; None for none."""
        return max_tokens_of(self.model, self._settings)

    @property
    def requests(self) -> int:
        """As many HTTP requests one attempt may be: the first, and what its client tries again."""
        return 1 + client_retries(self.model)

    @property
    def is_bounded(self) -> bool:
        """Whether texts and settings say how much a request can be."""
        # An image has more tokens than bytes of text. Google's client asks again, with a longer
        # request, for a call of a tool that it cannot read.
        if self.offered.tools and str(self.model).startswith("google/"):
            return False
        listed = (turn.content for turn in self.messages if not isinstance(turn.content, str))
        return all(part.type == "text" for parts in listed for part in parts)

    @cached_property
    def prompt_bytes(self) -> int:
        """Return the bytes of its texts and tools, and of what a worker's settings add to them."""
        config = self._settings
        added = config.system_message or ""
        if config.response_schema is not None:
            added += config.response_schema.model_dump_json(exclude_none=True)
        texts = "".join((added, *(turn.text for turn in self.messages)))
        calls = (turn.tool_calls or () for turn in self.messages if turn.role == "assistant")
        made = "".join(str(call.arguments) for turn in calls for call in turn)
        # A model may have written half a character.
        sizes = len(texts.encode("utf-8", "surrogatepass")), len(made.encode("utf-8", "replace"))
        return sum(sizes) + self.offered.bytes


LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names of the limit of a reply in the dialects, which `extra_body` sends past Inspect's own."""


def max_tokens_of(model: Model, settings: GenerateConfig) -> int | None:
    """Return the limit of a request with merged settings, all choices together; None for none."""
    own = settings.max_tokens
    if own is None:
        own = model.api.max_tokens_for_config(settings)
    if own is None:
        own = model.api.max_tokens()
    extra = settings.extra_body or {}
    known = [value for value in (own, *map(extra.get, LIMITS)) if isinstance(value, int)]
    return max(known) * (settings.num_choices or 1) if known else None


INLINE: Mapping[str, int] = {"google": 1, "bedrock": 2, "azureai": 10}
"""Tries after the first of clients without a setting: google-genai 3.4.0, botocore, Azure."""


def client_retries(model: Model) -> int:
    """Return how often a provider's own client may try again before Inspect hears of it."""
    own: object = getattr(getattr(model.api, "client", None), "max_retries", None)
    return own if isinstance(own, int) else INLINE.get(str(model).partition("/")[0], 0)


@dataclass(frozen=True, slots=True)
class SampleIndex:
    """The k-th time (from 0) that the same request is put to the same worker in an epoch."""

    epoch: int
    occurrence: int


def request_digest(messages: Sequence[ChatMessage]) -> str:
    """Return the sha256 of what a worker is sent: roles and texts, in order, nothing else."""
    return turns_digest((message.role, message.text) for message in messages)


def turns_digest(turns: Iterable[tuple[str, str]]) -> str:
    """Return the same of roles and texts alone."""
    listed = ", ".join(f"[{JSON(role)}, {JSON(storable(text))}]" for role, text in turns)
    return hashlib.sha256(f"[{listed}]".encode()).hexdigest()


STANDARD: Service = "standard"
ORDINARY = (None, "auto", "default", "standard", "standard_only")
"""Tiers of OpenAI and Anthropic at list price. `auto` is what a project's settings make of it."""
RETRYING = frozenset({"openai", "openai-api", "openrouter", "anthropic", "fugu"})
"""Providers whose clients try up to three times before Inspect hears of it, all within one event.
They take `max_retries`; each try of Inspect's own has an event and a line in our journal."""


def service_tier(config: GenerateConfig, args: Mapping[str, Any]) -> Service:
    """Return `batch`, or the tier that a worker's settings name, else `standard`.

    `args` are the provider's own (Inspect's `-M`). A tier that no price knows has none.

    >>> service_tier(GenerateConfig(), {"service_tier": "flex"})
    'flex'
    >>> service_tier(GenerateConfig(batch=True), {})
    'batch'
    """
    if config.batch:
        return "batch"
    named = args.get("service_tier") or (config.extra_body or {}).get("service_tier")
    return STANDARD if named in ORDINARY else cast(Service, str(named))


def recorded_settings(
    model: str, config: GenerateConfig, args: Mapping[str, Any]
) -> tuple[GenerateConfig, dict[str, Any]]:
    """Return a worker's settings such that each HTTP request of it has an event of its own.

    Unless told whether summaries of reasoning are wanted, Inspect's `openai/` has a reasoning model
    say hello to find out: billed, and in no event. What a pool file says for itself stays.
    """
    provider = model.split("/", 1)[0]
    if provider == "openai" and config.reasoning_summary is None:
        config = config.model_copy(update={"reasoning_summary": "none"})
    quiet = {"max_retries": 0} if provider in RETRYING else {}
    return config, {**quiet, **args}
