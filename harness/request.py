"""One request to a model: its contents, digest, sample index and service tier.

Replies are keyed by worker, request *and* `SampleIndex` (the repetition): otherwise five samples
would be one call.
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
"""The encoder for digests of texts; made once, because a run may have a million calls."""
INSTRUCTIONS = 1024  # maximum tokens that tools add; Anthropic's documentation has hundreds


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools and settings that one request sends, in addition to the worker's own settings."""

    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)

    @property
    def bytes(self) -> int:
        """UTF-8 bytes of the tools as JSON, and of the provider's instructions for using tools."""
        written = sum(len(tool.model_dump_json(exclude_none=True).encode()) for tool in self.tools)
        return written + INSTRUCTIONS if written else 0


NOTHING = Offered()


@dataclass(frozen=True)
class Request:
    """A request to a model, and the properties of it that are logged, each computed once."""

    role: str
    model: Model
    messages: Sequence[ChatMessage]
    price_ref: str
    step: str | None = None
    offered: Offered = NOTHING

    @property
    def config(self) -> GenerateConfig:
        """Settings of the request, in addition to the model's own settings."""
        return self.offered.config

    @cached_property
    def _settings(self) -> GenerateConfig:
        # Merged as Inspect does, but without its deep copies, which would be the slowest part here.
        overrides = {name: getattr(self.config, name) for name in self.config.model_fields_set}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        return self.model.config.model_copy(update=overrides) if overrides else self.model.config

    @cached_property
    def sha256(self) -> str:
        """Digest of the request's messages."""
        return request_digest(self.messages)

    @cached_property
    def service(self) -> Service:
        """The requested service tier; a call has no price if the price book lacks its tier."""
        return service_tier(self.model.config, self.model.model_args)

    @cached_property
    def max_tokens(self) -> int | None:
        """The request's token limit for all its choices together; None if it has none."""
        return max_tokens_of(self.model, self._settings)

    @property
    def requests(self) -> int:
        """Maximum HTTP requests of one attempt: the first, and the client's own retries."""
        return 1 + client_retries(self.model)

    @property
    def is_bounded(self) -> bool:
        """Whether the request has a maximum size that follows from its texts and settings."""
        # An image has more tokens than bytes of text. Google's client sends a longer request again
        # if it cannot parse a tool call.
        if self.offered.tools and str(self.model).startswith("google/"):
            return False
        listed = (turn.content for turn in self.messages if not isinstance(turn.content, str))
        return all(item.type == "text" for items in listed for item in items)

    @cached_property
    def prompt_bytes(self) -> int:
        """Bytes of the request's texts and tools, and of texts that the worker's settings add."""
        config = self._settings
        added = config.system_message or ""
        if config.response_schema is not None:
            added += config.response_schema.model_dump_json(exclude_none=True)
        texts = "".join((added, *(turn.text for turn in self.messages)))
        calls = (turn.tool_calls or () for turn in self.messages if turn.role == "assistant")
        inputs = "".join(str(call.arguments) for turn in calls for call in turn)
        # A model may have written half of a surrogate pair.
        sizes = len(texts.encode("utf-8", "surrogatepass")), len(inputs.encode("utf-8", "replace"))
        return sum(sizes) + self.offered.bytes


LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Providers' names for a reply's token limit, which a worker's `extra_body` may set in addition to
Inspect's setting."""


def max_tokens_of(model: Model, settings: GenerateConfig) -> int | None:
    """Return a request's output token limit, for all choices together; None if it has none."""
    limit = settings.max_tokens
    if limit is None:
        limit = model.api.max_tokens_for_config(settings)
    if limit is None:
        limit = model.api.max_tokens()
    extra = settings.extra_body or {}
    limits = [value for value in (limit, *map(extra.get, LIMITS)) if isinstance(value, int)]
    return max(limits) * (settings.num_choices or 1) if limits else None


INLINE: Mapping[str, int] = {"google": 1, "bedrock": 2, "azureai": 10}
"""Provider -> retries of its client, if they cannot be set: google-genai 3.4.0, botocore, Azure."""


def client_retries(model: Model) -> int:
    """Return how often a provider's own client may retry before Inspect gets the error."""
    retries: object = getattr(getattr(model.api, "client", None), "max_retries", None)
    return retries if isinstance(retries, int) else INLINE.get(str(model).partition("/")[0], 0)


@dataclass(frozen=True, slots=True)
class SampleIndex:
    """The k-th time (from 0) that the same worker gets the same request in an epoch."""

    epoch: int
    occurrence: int


def request_digest(messages: Sequence[ChatMessage]) -> str:
    """Return the sha256 of a worker's messages: roles and texts, in order, nothing else."""
    return turns_digest((message.role, message.text) for message in messages)


def turns_digest(turns: Iterable[tuple[str, str]]) -> str:
    """Return the sha256 of messages, given as (role, text), as `request_digest` does."""
    listed = ", ".join(f"[{JSON(role)}, {JSON(storable(text))}]" for role, text in turns)
    return hashlib.sha256(f"[{listed}]".encode()).hexdigest()


STANDARD: Service = "standard"
ORDINARY = (None, "auto", "default", "standard", "standard_only")
"""Values of `service_tier` at OpenAI and Anthropic that are billed at list price. `auto` depends on
the project's settings."""
RETRYING = frozenset({"openai", "openai-api", "openrouter", "anthropic", "fugu"})
"""Providers whose clients make up to three attempts in one event of Inspect. podium sets their
`max_retries` to 0: then each attempt has its own event and its own line in podium's journal."""


def service_tier(config: GenerateConfig, args: Mapping[str, Any]) -> Service:
    """Return `batch`, or the tier in a worker's settings, else `standard`.

    `args` are the provider's own (Inspect's `-M`). A call has no price if its price lacks the tier.

    >>> service_tier(GenerateConfig(), {"service_tier": "flex"})
    'flex'
    >>> service_tier(GenerateConfig(batch=True), {})
    'batch'
    """
    if config.batch:
        return "batch"
    tier = args.get("service_tier") or (config.extra_body or {}).get("service_tier")
    return STANDARD if tier in ORDINARY else cast(Service, str(tier))


def recorded_settings(
    model: str, config: GenerateConfig, args: Mapping[str, Any]
) -> tuple[GenerateConfig, dict[str, Any]]:
    """Return a worker's settings, changed so that each HTTP request has a separate event in logs.

    If `reasoning_summary` is unset, Inspect's `openai/` sends reasoning models a test request that
    is billed but not recorded, so it is set to `none`. The pool file's settings have precedence.
    """
    provider = model.split("/", 1)[0]
    if provider == "openai" and config.reasoning_summary is None:
        config = config.model_copy(update={"reasoning_summary": "none"})
    quiet = {"max_retries": 0} if provider in RETRYING else {}
    return config, {**quiet, **args}
