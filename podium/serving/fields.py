"""How a request's fields are refused, in every dialect: by name, with what to do about it."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from podium.serving.exchange import Refusal

Found = TypeVar("Found", bound=BaseModel)
Place = tuple[int | str, ...]
UNHONOURED = ("extra_forbidden", "none_required", "literal_error", "union_tag_invalid")
"""Pydantic's words for what another server may honour."""
PIECE = 160  # characters: a text that arrives whole is still read as it comes


def checked(kind: type[Found], found: Any, name_of: Callable[[Place], str]) -> Found:
    """Return an object's fields; Refusal names the first one that is wrong, as a dialect does."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    name, context = name_of(first["loc"]), first.get("ctx", {})
    if first["type"] == "missing":
        raise Refusal(400, "invalid_request", f"`{name}` is missing: send it.", param=name)
    if first["type"] not in UNHONOURED:
        raise invalid(name, first["msg"].removeprefix("Value error, "))
    expected = context.get("expected_tags") or context.get("expected")
    raise unsupported(name, f"it can only be {expected} here" if expected else "leave it out")


def invalid(name: str, why: str) -> Refusal:
    """Return the refusal of a field that is wrong in any server."""
    said = f"`{name:.120}` is wrong: {why[:1].lower()}{why[1:]}."
    return Refusal(400, "invalid_request", said, param=name[:120])


def unsupported(name: str, remedy: str) -> Refusal:
    """Return the refusal of a field that cannot be honoured here."""
    said = f"`{name:.120}` cannot be honoured here: {remedy}."
    return Refusal(400, "unsupported_parameter", said, param=name[:120])


def text_pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces."""
    yield from (text[at : at + PIECE] for at in range(0, len(text), PIECE))
