"""A request that is longer than its model's context, in the words of every server: one reading.

Inspect makes of OpenAI's code a reply that stops for `model_length`; the others' refusals are
exceptions there. Here each becomes that same reply: nothing was generated, nothing is billed, and
the request is not sent again. `DIALECTS` has their wording, `LOOKALIKES` similar other refusals.
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
"""Key of a grade's metadata for such a refusal."""


@dataclass(frozen=True, slots=True)
class LengthRefusal:
    """One server's wording, with the HTTP status that it usually sends."""

    server: str
    status: int
    words: str
    """A refusal as the server writes it."""
    pattern: str
    """Searched in the texts of an error's body, ignoring case."""
    source: str


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A refusal that resembles one and is another: it stays a failed call."""

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
"""Values of `code` or `type` that mean it without words."""
REFUSING, SERVER_ERROR = frozenset({400, 403, 413, 422}), 500
"""Statuses that may mean it; llama.cpp and gateways send those from 500 on. Limits by time are
refused with 429, or name the time."""
_PATTERN = re.compile("|".join(f"(?:{row.pattern})" for row in DIALECTS), re.IGNORECASE | re.DOTALL)
_BY_TIME = re.compile(r"per (min|minute|hour|day)\b|\bTPM\b|quota|throttl", re.IGNORECASE)
_SAID = ("message", "error", "detail", "msg", "code", "type", "metadata", "raw", "error_code")
"""Keys below which an error's body has its words: others may quote the request."""
DEEPEST, LONGEST = 6, 10_000
"""Levels of an error's body that are read, and characters of each text."""


def refusal(error: BaseException) -> str | None:
    """Return a provider's words if it refused a request for its length, else None."""
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
    """Return the body that a client's exception keeps, by the attributes of several clients."""
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
    """Return the JSON that a text is, as gateways pass a provider's body on; None for words."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


async def read_refusal(call: Awaitable[Any], model: str) -> Any:
    """Await a provider's API; a refusal for length becomes such a reply."""
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
    """Return the reply that Inspect makes of OpenAI's code, with any server's words."""
    return ModelOutput.from_content(model, words, stop_reason="model_length")


def is_refused(output: ModelOutput | None) -> bool:
    """Return whether a reply is a refusal for length: the provider then generated nothing."""
    # A reply that was cut there, for there was no more room, has tokens and is a reply.
    if output is None or output.empty or output.stop_reason != "model_length":
        return False
    return not (output.usage and output.usage.output_tokens)


def graded_refusal(words: str) -> Grade:
    """Return the grade of an answer that is missing because its request was too long."""
    return Grade(0.0, None, f"The request was refused for its length. {words}", {TOO_LONG: True})
