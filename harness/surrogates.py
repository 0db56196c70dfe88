r"""Lone surrogates: half a character, which JSON can spell, Python can hold and no file can keep.

A provider may send `"\ud800"`. Inspect's log keeps it as those six characters, backslash and all,
and fails on one in the name of a field. So a reply is rewritten that way before anybody uses it,
once (harness/ledger/asking.py): whoever reads it later, a worker, a judge, the scorer or an export,
reads the text that the log has, and the journal's digest is of that text.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

DEEPEST = 200
"""Levels of a reply that are looked at; pydantic writes no more than 255."""


def storable(text: str) -> str:
    r"""Return a text that UTF-8 can hold: each lone surrogate as its six-character escape.

    >>> storable("half a \ud83d")
    'half a \\ud83d'
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def made_storable(value: Any, depth: int = 0) -> Any:
    """Return JSON with storable texts and names; a pydantic model is changed in place."""
    if isinstance(value, str):
        return storable(value)
    if depth > DEEPEST:
        return value
    if isinstance(value, BaseModel):
        if _has_utf8(value):  # nearly all
            return value
        vars(value).update(made_storable(dict(vars(value)), depth + 1))
        return value
    if isinstance(value, Mapping):
        found = cast(Mapping[Any, Any], value).items()
        return {
            made_storable(name, depth + 1): made_storable(one, depth + 1) for name, one in found
        }
    if isinstance(value, list):
        return [made_storable(one, depth + 1) for one in cast(list[Any], value)]
    return value


def _has_utf8(value: BaseModel) -> bool:
    try:
        type(value).__pydantic_serializer__.to_json(value)
    except ValueError:
        return False
    return True
