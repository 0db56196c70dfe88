"""The fields of a request to Anthropic's Messages API; a request with other fields is refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from podium.harness.text import storable
from podium.serving.exchange import Place, checked


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _plain(text: str) -> str:
    # Inspect reads such a tag as its own note and removes it from the text.
    if "<content-internal>" in text:
        raise ValueError("remove the tag <content-internal>, which a text must not contain")
    if storable(text) != text:
        raise ValueError("remove the lone surrogate (half a character) that it contains")
    return text


Words = Annotated[str, AfterValidator(_plain)]
Name = Annotated[str, Field(min_length=1)]


class _Marked(_Fields):
    cache_control: dict[str, Any] | None = None  # prompt caching changes the cost, but no answer


class _Text(_Marked):
    type: Literal["text"]
    text: Words
    citations: None = None


class _ImageSource(_Fields):
    type: Literal["base64"]  # a URL would be opened here, with the server's rights
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: Name


class _Image(_Marked):
    type: Literal["image"]
    source: _ImageSource


class _DocumentSource(_Fields):
    type: Literal["base64", "text"]
    media_type: Literal["application/pdf", "text/plain"]
    data: Name


class _Document(_Marked):
    type: Literal["document"]
    source: _DocumentSource
    title: None = None
    context: None = None
    citations: None = None


class _ToolUse(_Marked):
    type: Literal["tool_use"]
    id: Name
    name: Name
    input: dict[str, Any]
    caller: Any = None  # podium's own replies have `caller` and `toolset_name`
    toolset_name: None = None


class _Thinking(_Fields):
    type: Literal["thinking"]
    thinking: str
    signature: str


class _RedactedThinking(_Fields):
    type: Literal["redacted_thinking"]
    data: str


_Shown = Annotated[_Text | _Image | _Document, Field(discriminator="type")]


def _is_text(value: object) -> str:
    return WORDS if isinstance(value, str) else BLOCKS


WORDS, BLOCKS = "words", "blocks"  # union tags, omitted from the field names in errors
_Either = Discriminator(_is_text)
_Content = Annotated[Annotated[Words, Tag(WORDS)] | Annotated[list[_Shown], Tag(BLOCKS)], _Either]


class _ToolResult(_Marked):
    type: Literal["tool_result"]
    tool_use_id: Name
    content: _Content | None = None
    is_error: bool | None = None


_Asked = Annotated[_Text | _Image | _Document | _ToolResult, Field(discriminator="type")]
_Answered = Annotated[_Text | _ToolUse | _Thinking | _RedactedThinking, Field(discriminator="type")]
_AskedContent = Annotated[
    Annotated[Words, Field(min_length=1), Tag(WORDS)]
    | Annotated[list[_Asked], Field(min_length=1), Tag(BLOCKS)],
    _Either,
]
_AnsweredContent = Annotated[
    Annotated[Words, Tag(WORDS)] | Annotated[list[_Answered], Tag(BLOCKS)], _Either
]
_SystemContent = Annotated[
    Annotated[Words, Tag(WORDS)] | Annotated[list[_Text], Tag(BLOCKS)], _Either
]


class _UserTurn(_Fields):
    role: Literal["user"]
    content: _AskedContent


class _AssistantTurn(_Fields):
    role: Literal["assistant"]
    content: _AnsweredContent


class _SystemTurn(_Fields):
    role: Literal["system"]
    content: _SystemContent


class _Tool(_Marked):
    type: Literal["custom"] | None = None
    name: Annotated[str, Field(min_length=1, max_length=128)]
    input_schema: dict[str, Any]
    description: str = ""
    strict: Literal[False] | None = None  # Inspect has no field for it
    defer_loading: Literal[False] | None = None
    eager_input_streaming: bool | None = None  # affects only how a tool call is streamed


class _ToolChoice(_Fields):
    type: Literal["auto", "any", "none", "tool"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class _ThinkingBudget(_Fields):
    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=1024, lt=2**31)]
    display: Literal["summarized", "omitted"] | None = None  # no effect: no reply shows thinking


class _ThinkingAsNeeded(_Fields):
    type: Literal["adaptive"]
    display: Literal["summarized", "omitted"] | None = None


class _NoThinking(_Fields):
    type: Literal["disabled"]


class _OutputConfig(_Fields):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: None = None


class _KeptThinking(_Fields):
    type: Literal["clear_thinking_20251015"]
    keep: Literal["all"]


class _ContextManagement(_Fields):
    edits: list[_KeptThinking] = []
    """Only edits that leave the conversation unchanged are supported."""


class CountFields(_Fields):
    """Fields of a request that asks Anthropic's API to count tokens."""

    model: Name
    messages: Annotated[
        list[Annotated[_UserTurn | _AssistantTurn | _SystemTurn, Field(discriminator="role")]],
        Field(min_length=1, max_length=100_000),
    ]
    system: _SystemContent | None = None
    tools: list[_Tool] | None = None
    tool_choice: _ToolChoice | None = None
    thinking: (
        Annotated[_ThinkingBudget | _ThinkingAsNeeded | _NoThinking, Field(discriminator="type")]
        | None
    ) = None
    output_config: _OutputConfig | None = None
    context_management: _ContextManagement | None = None
    cache_control: dict[str, Any] | None = None
    speed: Literal["standard"] | None = None
    mcp_servers: None = None


class MessageFields(CountFields):
    """Fields of a request that asks Anthropic's API for a message."""

    max_tokens: Annotated[int, Field(ge=1, lt=2**31)]
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    stop_sequences: list[Name] | None = None
    stream: bool | None = None
    metadata: dict[str, Any] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    container: None = None
    inference_geo: None = None
    diagnostics: None = None


Found = TypeVar("Found", bound=CountFields)


def read_fields(kind: type[Found], body: Mapping[str, Any]) -> Found:
    """Return the validated fields of a request's body; Refusal names the first invalid field."""

    def name_of(place: Place) -> str:
        return ".".join(str(key) for key in place if key not in (WORDS, BLOCKS))

    return checked(kind, dict(body), name_of)
