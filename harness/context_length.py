"""Recognise every server's error for a request that is longer than its model's context.

Inspect turns OpenAI's error into a reply with stop reason `model_length`; other servers' errors
stay exceptions. Here each becomes that same reply: nothing was generated, nothing is billed, and
the request is not retried. `DIALECTS` has the servers' error texts, `LOOKALIKES` similar texts of
other errors.
"""

import json
import re
import tomllib
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from inspect_ai.model import ModelOutput
from pydantic import TypeAdapter

from podium.harness.errors import PodiumError
from podium.harness.ledger.hooks import kind_and_status
from podium.harness.records import Grade
from podium.harness.text import storable

TOO_LONG = "too_long"
"""Key in a grade's metadata: true if the request was refused for its length."""


@dataclass(frozen=True, slots=True)
class LengthRefusal:
    """One server's error message for a request that is too long, and its usual HTTP status."""

    server: str
    status: int
    words: str
    """An example of the server's error message."""
    pattern: str
    """A regular expression for the message, searched in the texts of an error's body, ignoring
    case."""
    source: str


@dataclass(frozen=True, slots=True)
class Lookalike:
    """An error message that resembles "request too long" but has another cause, `about`."""

    server: str
    status: int
    words: str
    about: str


@dataclass(frozen=True, slots=True)
class _Wordings:
    dialect: tuple[LengthRefusal, ...]
    lookalike: tuple[Lookalike, ...]


_WORDINGS = TypeAdapter(_Wordings).validate_python(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
)
DIALECTS, LOOKALIKES = _WORDINGS.dialect, _WORDINGS.lookalike

CODES = frozenset(
    {
        "context_length_exceeded", "context_window_exceeded", "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded", "tokens_limit_reached", "model_context_window_exceeded",
    }
)  # fmt: skip
"""Values of an error's `code` or `type` that mean "request too long"; the message is ignored."""
REFUSING, SERVER_ERROR = frozenset({400, 403, 413, 422}), 500
"""HTTP statuses that may mean "request too long"; llama.cpp and gateways send 500 or above. A
rate limit has status 429 or names a period, such as "per minute"."""
_PATTERN = re.compile("|".join(f"(?:{row.pattern})" for row in DIALECTS), re.IGNORECASE | re.DOTALL)
_BY_TIME = re.compile(r"per (min|minute|hour|day)\b|\bTPM\b|quota|throttl", re.IGNORECASE)
_SAID = ("message", "error", "detail", "msg", "code", "type", "metadata", "raw", "error_code")
"""Keys of an error's body that hold its message; other keys may quote the request."""
DEEPEST, LONGEST = 6, 10_000
"""Maximum nesting of an error's body that is read, and maximum characters of each text in it."""


def refusal(error: BaseException) -> str | None:
    """Return the provider's message if an error means "request too long", else None."""
    _, status = kind_and_status(error)
    may_be = status is None or status in REFUSING or status >= SERVER_ERROR
    if isinstance(error, PodiumError) or not may_be:
        return None
    texts = [*_texts(_body(error))]
    if any(map(_BY_TIME.search, texts)):
        return None
    words = next(filter(_PATTERN.search, texts), None)
    if words is None and CODES.intersection(texts):
        words = max(texts, key=len)
    return words and storable(words)


def _body(error: BaseException) -> object:
    """Return the response body that a client stored in its exception; else the error's text."""
    for name in ("body", "details", "response"):
        if isinstance(value := getattr(error, name, None), str | Mapping | list) and value:
            return cast(object, value)
    return str(error)


def _texts(node: object, level: int = 0) -> Iterator[str]:
    if isinstance(node, str):
        inner = _read(node)
        yield from [node[:LONGEST]] if inner is None else _texts(inner, level + 1)
    elif isinstance(node, Mapping) and level < DEEPEST:
        table = {str(key).lower(): raw for key, raw in cast(Mapping[object, object], node).items()}
        for name in filter(table.__contains__, _SAID):
            yield from _texts(table[name], level + 1)
    elif isinstance(node, list) and level < DEEPEST:
        for item in cast(Sequence[object], node):
            yield from _texts(item, level + 1)


def _read(text: str) -> object:
    """Return a text parsed as JSON (gateways quote a provider's body); None if it is not JSON."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


async def read_refusal(call: Awaitable[Any], model: str) -> Any:
    """Await a provider's call; turn an error "request too long" into a reply (`refused_reply`)."""
    try:
        result = await call
    except Exception as error:
        if (words := refusal(error)) is None:
            raise
        return refused_reply(model, words)
    output, *extra = cast("tuple[Any, ...]", result if isinstance(result, tuple) else (result,))
    if isinstance(output, Exception) and (words := refusal(output)) is not None:
        return (refused_reply(model, words), *extra)
    return cast(Any, result)


def refused_reply(model: str, words: str) -> ModelOutput:
    """Return a reply with stop reason `model_length` and the server's message as its text."""
    return ModelOutput.from_content(model, words, stop_reason="model_length")


def is_refused(output: ModelOutput | None) -> bool:
    """Return whether a reply means "request too long": the provider generated nothing."""
    # A reply that was cut off at a full context has the same stop reason, but output tokens.
    if output is None or output.empty or output.stop_reason != "model_length":
        return False
    return not (output.usage and output.usage.output_tokens)


def graded_refusal(words: str) -> Grade:
    """Return grade 0 for an answer that is missing because its request was too long."""
    return Grade(0.0, None, f"The request was refused for its length. {words}", {TOO_LONG: True})
