"""Samples in a statement, and the method that a functional task asks for."""

import ast
import re
from dataclasses import dataclass
from typing import Any

from harness.rehearsal.program_kinds import Value

_STARTER = re.compile(r"def\s+(\w+)\s*\(\s*self\s*,?\s*([^)]*)\)\s*(?:->\s*([^:\n]+))?:")
_MARK = r"^[ \t#*>_]*(?:(?:sample|example|test) )?{}(?: ?#?\d+)?\W*?(?::|\n|$)[*` \t]*"
_PAIR = re.compile(
    _MARK.format("input")
    + r"(.*?)"
    + _MARK.format("(?:expected )?output")
    + r"(.*?)(?=\n\s*\n|^[ \t#*>_]*(?:(?:sample|example|test) )?(?:input|output|explanation"
    r"|example|sample|note|constraints|test)\b|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_PROSE = re.compile(r"\b(?:line|contains|integers?|given|print|string)\b", re.IGNORECASE)
_BIGGEST = 5_000
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Starter:
    """The method that a functional task asks for."""

    name: str
    arguments: tuple[str, ...]
    kinds: tuple[str, ...]
    returns: str


def read_starter(text: str) -> Starter | None:
    """Return the method shown in a `class Solution` starter, None for a stdin task."""
    found = _STARTER.search(text) if "class Solution" in text else None
    if found is None:
        return None
    parts = [part for part in re.split(r",\s*(?![^\[]*\])", found[2]) if part.strip()]
    names = tuple(part.split(":")[0].split("=")[0].strip() for part in parts)
    kinds = tuple(_kind(part.split(":", 1)[1] if ":" in part else "") for part in parts)
    return Starter(found[1], names, kinds, _kind(found[3] or ""))


def _kind(hint: str) -> str:
    hint = hint.lower().replace(" ", "")
    for kind, pattern in (
        ("matrix", r"list\[(?:list|tuple)"),
        ("words", r"list\[str"),
        ("ints", r"list"),
        ("text", r"str"),
        ("bool", r"bool"),
        ("int", r"int"),
    ):
        if re.match(pattern, hint):
            return kind
    return "any"


def read_samples(text: str, starter: Starter | None) -> list[tuple[Any, Any]]:
    """Return (input, output) of the samples shown: texts, or arguments and a value."""
    cut = text.split("class Solution")[0] if starter else text
    shown = re.sub(r"```\w*", "", cut)
    pairs = [(given.strip("\n"), wanted.strip()) for given, wanted in _PAIR.findall(shown)]
    found = [pair for pair in pairs if not _PROSE.search(pair[0] + pair[1])]
    if starter is None:
        return [pair for pair in found if pair[1] and _small(pair[0])][:4]
    read = [(_arguments(given, len(starter.arguments)), _value(wanted)) for given, wanted in found]
    if not read:
        calls = rf"{starter.name}\((.*?)\)\s*(?:->|=+>?|→|returns?|gives)\s*`?([^\n]*)"
        read = [(_arguments(given, len(starter.arguments)), _value(wanted.strip(" `.;")))
                for given, wanted in re.findall(calls, cut)]  # fmt: skip
    return [pair for pair in read if pair[0] is not None and pair[1] is not None][:4]


def _small(given: str) -> bool:
    """Say whether a sample is small enough to be worked through by hand."""
    return len(given) <= _LONGEST and all(
        len(run) < 12 and int(run) <= _BIGGEST for run in re.findall(r"\d+", given)
    )


def _arguments(given: str, count: int) -> list[Any] | None:
    if not _small(given):
        return None
    named = re.sub(r"(?:^|(?<=[,\n]))\s*[a-zA-Z_]\w*\s*=(?!=)", " ", given).strip()
    for joined in (f"[{named}]", "[" + ",".join(named.split("\n")) + "]"):
        value = _value(joined)
        if isinstance(value, list) and len(value) == count:  # pyright: ignore[reportUnknownArgumentType]
            return value  # pyright: ignore[reportUnknownVariableType]
    return None


def _value(text: str) -> Value:
    words = {"true": "True", "false": "False"}
    try:
        return ast.literal_eval(words.get(text.strip(), text.strip().strip("`")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
