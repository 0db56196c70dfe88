"""Values that a program returned, read from the type-tagged JSON in which they leave its box.

The bytes were written by a process that the program controls. So they are data: nothing in them is
executed, only plain builtins come out, and whatever is malformed, too deep or too large to hold is
a `ValueError`, never a crash of the one who reads.
"""

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, cast

DIGITS = 50_000
"""Longest integer that is read, in decimal digits; LiveCodeBench's evaluator sets the same."""

HASHED = 1000
"""Most set elements and dictionary keys in a value, strings apart. Numbers can be chosen so that
they all collide, and then every one is compared with every other."""


def decode(result: bytes) -> object:
    """Return what the runner `call` reports, as plain builtins; ValueError when it holds none.

    >>> decode(b'{"returned": {"list": [1, {"tuple": ["a", null]}]}}')
    [1, ('a', None)]
    """
    report = read_json(result)
    if not isinstance(report, dict) or "returned" not in report:
        raise ValueError("no returned value")
    return untagged(cast("dict[str, object]", report)["returned"])


def read_json(text: str | bytes) -> object:
    """Parse JSON, long integers included; ValueError for whatever cannot be read."""
    try:
        try:
            return json.loads(text)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise
        except ValueError:  # an integer longer than Python converts on its own
            return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("values nested too deeply") from None


def untagged(value: object) -> object:
    """Return the plain value that a tagged one stands for; ValueError for anything else."""
    try:
        return _Reader().read(value)
    except (RecursionError, TypeError, KeyError, OverflowError, binascii.Error) as error:
        raise ValueError(f"not a plain value ({type(error).__name__})") from None


class _Reader:
    """Reads one value, and counts what it hashes on the way."""

    def __init__(self) -> None:
        self._hashed = 0

    def read(self, value: object) -> object:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ValueError("a list without its tag")
            return value
        ((tag, held),) = cast("dict[str, Any]", value).items()
        return READERS[tag](self, held)

    def all(self, held: list[object]) -> list[object]:
        return [self.read(one) for one in held]

    def hashable(self, held: list[object]) -> list[object]:
        found = self.all(held)
        self._hashed += sum(not isinstance(one, str) for one in found)
        if self._hashed > HASHED:
            raise ValueError(f"more than {HASHED} keys or set elements")
        return found

    def pairs(self, held: list[list[object]]) -> dict[object, object]:
        keys = self.hashable([key for key, _ in held])
        return dict(zip(keys, self.all([one for _, one in held]), strict=True))


READERS: dict[str, Callable[[_Reader, Any], object]] = {
    "list": _Reader.all,
    "tuple": lambda reader, held: tuple(reader.all(held)),
    "set": lambda reader, held: set(reader.hashable(held)),
    "frozenset": lambda reader, held: frozenset(reader.hashable(held)),
    "dict": _Reader.pairs,
    "bytes": lambda _, held: base64.b64decode(held, validate=True),
    "complex": lambda _, held: complex(*held),
}


def _integer(text: str) -> int:
    """Convert an integer of up to `DIGITS` digits; Python itself stops at 4,300."""
    if len(text) > DIGITS:
        raise ValueError("an integer of too many digits")
    try:
        return int(Decimal(text))
    except InvalidOperation:
        raise ValueError("not an integer") from None
