"""What a program reads and prints, and the samples that a task shows of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from podium.harness.python_syntax import read_literal
from podium.suites.practice.workers.program_numbers import Value

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
        return read_literal(words.get(text.strip(), text.strip().strip("`")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


class Routine(NamedTuple):
    """A piece of a program that reads or prints; its source is what is written down."""

    called: str
    does: Callable[[Any], Any]


def _ways(
    *does: Callable[[str], tuple[Any, ...]], **named: Callable[[str], tuple[Any, ...]]
) -> tuple[Routine, ...]:
    """Return routines: functions by their own names, then lambdas by those they are given."""
    own = {one.__name__.lstrip("_"): one for one in does}
    return tuple(Routine(called, one) for called, one in {**own, **named}.items())


def _counted(data: str) -> tuple[Any, ...]:
    flat = [int(word) for word in data.split()]
    return (flat[1 : 1 + flat[0]],)


def _size_others_values(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    others = [int(word) for word in lines[0].split()][1:]
    return ([int(word) for line in lines[1:] for word in line.split()], *others)


def _size_values_others(data: str) -> tuple[Any, ...]:
    flat = [int(word) for word in data.split()]
    return (flat[1 : 1 + flat[0]], *flat[1 + flat[0] :])


def _values_others(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    return ([int(word) for word in lines[0].split()], *map(int, " ".join(lines[1:]).split()))


def _others_values(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    return ([int(word) for word in lines[-1].split()], *map(int, lines[0].split()))


def _line_and_number(data: str) -> tuple[Any, ...]:
    lines = data.split("\n")
    return (lines[0], int(lines[1]))


def _number_and_line(data: str) -> tuple[Any, ...]:
    lines = data.split("\n")
    return (lines[1], int(lines[0]))


def _two_lines(data: str) -> tuple[Any, ...]:
    lines = data.split("\n")
    return (lines[0], lines[1])


def _two_lines_swapped(data: str) -> tuple[Any, ...]:
    lines = data.split("\n")
    return (lines[1], lines[0])


def _two_words(data: str) -> tuple[Any, ...]:
    words = data.split()
    return (words[0], words[1])


def _counted_words(data: str) -> tuple[Any, ...]:
    words = data.split()
    return (words[1 : 1 + int(words[0])],)


def _words_and_number(data: str) -> tuple[Any, ...]:
    lines = data.split("\n")
    return (lines[0].split(), int(lines[1]))


def _counted_words_and_number(data: str) -> tuple[Any, ...]:
    words = data.split()
    return (words[2:], int(words[1]))


def _headed_rows(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    return ([[int(word) for word in line.split()] for line in lines[1:]],)


def _bare_rows(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    return ([[int(word) for word in line.split()] for line in lines],)


def _rows_others(data: str) -> tuple[Any, ...]:
    lines = [line for line in data.split("\n") if line.strip()]
    count = int(lines[0].split()[0])
    rows = [[int(word) for word in line.split()] for line in lines[1 : 1 + count]]
    others = lines[0].split()[1:] if len(lines) == 1 + count else lines[1 + count].split()
    return (rows, *map(int, others))


_ROWS_ONLY = _ways(_headed_rows, _bare_rows)
READERS: dict[tuple[str, ...], tuple[Routine, ...]] = {
    ("ints",): _ways(
        _counted,
        uncounted=lambda data: ([int(word) for word in data.split()],),
    ),
    ("ints", "int"): _ways(
        _size_others_values, _size_values_others, _values_others, _others_values
    ),
    ("ints", "int", "int"): _ways(_size_others_values, _size_values_others, _values_others),
    **dict.fromkeys(
        [("int",) * many for many in range(1, 5)],
        _ways(whole_numbers=lambda data: tuple(int(word) for word in data.split())),
    ),
    ("text",): _ways(
        one_line=lambda data: (data.split("\n")[0].strip("\r"),),
        second_line=lambda data: (data.split("\n")[1].strip("\r"),),
    ),
    ("text", "int"): _ways(_line_and_number, _number_and_line),
    ("text", "text"): _ways(_two_lines, _two_words, _two_lines_swapped),
    ("words",): _ways(_counted_words, words_of_line=lambda data: (data.split(),)),
    ("words", "int"): _ways(_counted_words_and_number, _words_and_number),
    ("matrix",): _ROWS_ONLY,
    ("pairs",): _ROWS_ONLY,
    ("pairs", "int"): _ways(_rows_others),
    ("matrix", "int"): _ways(_rows_others),
}
"""How arguments of these kinds may lie in the input, the most usual way first."""


def readers(takes: tuple[str, ...], plain: str) -> tuple[Routine, ...]:
    """Return ways to read arguments of these kinds, the one that the statement suggests first."""
    ways = READERS.get(takes, ())
    headed = re.search(
        r"first line[^.,]{0,60}(?:\bn\b|\bt\b|an? (?:single )?integer|number of|length|size|count)"
        r"|\br and c\b"
        r"|\bm and n\b|\bn and m\b|dimensions"
        r"|two integers|\bn integers|followed by n|then n|\bn lines|\br rows|rows and columns",
        plain,
    )
    if takes in (("ints",), ("words",), ("matrix",), ("pairs",)):
        return ways if headed else ways[::-1]
    if takes == ("ints", "int"):
        if re.search(r"first line[^.]{0,40}(?:two|n and|n, )", plain):
            return ways
        return (ways[1], ways[0], *ways[2:]) if headed else ways[2:] + ways[:2]
    return ways


def _print(called: str, does: Callable[[list[Any]], str]) -> Routine:
    return Routine(called, does)


_SPACED = _print("spaced", lambda result: " ".join(map(str, result)))
_SPACED_OR = {
    "NONE": _print("spaced_or_none", lambda result: " ".join(map(str, result)) or "NONE"),
    "EMPTY": _print("spaced_or_empty", lambda result: " ".join(map(str, result)) or "EMPTY"),
}
_STACKED = _print("stacked", lambda result: "\n".join(map(str, result)))
_COUNTED_LIST = _print(
    "counted_list",
    lambda result: f"{len(result)}\n" + " ".join(map(str, result)),
)
_ROWS = (
    _print("rows", lambda result: "\n".join(" ".join(map(str, row)) for row in result)),
    _print(
        "counted_rows",
        lambda result: "\n".join([str(len(result)), *(" ".join(map(str, row)) for row in result)]),
    ),
    _print("colons", lambda result: "\n".join(f"{name}: {count}" for name, count in result)),
    _print("joined_pairs", lambda result: " ".join(f"{name}:{count}" for name, count in result)),
)
_VERDICTS = {
    "YES": _print("upper_verdict", lambda result: "YES" if result else "NO"),
    "Yes": _print("verdict", lambda result: "Yes" if result else "No"),
    "yes": _print("lower_verdict", lambda result: "yes" if result else "no"),
    "True": _print("truth", lambda result: "True" if result else "False"),
    "true": _print("lower_truth", lambda result: "true" if result else "false"),
}
_APART = re.compile(
    r"(?:one|each|every)[^.]{0,40}(?:per|on (?:a|its|their)[^.]{0,20}) ?line|own line"
    r"|separate lines?",
    re.IGNORECASE,
)


def showers(gives: str, text: str) -> tuple[Routine, ...]:
    """Return ways to print a result of this kind, the one that the statement suggests first."""
    if gives == "bool":
        named = [word for word in _VERDICTS if re.search(rf"\b{word}\b", text)]
        return (_VERDICTS[(*named, "YES")[0]],)
    if gives in ("ints", "words"):
        for empty, shower in _SPACED_OR.items():
            if re.search(rf"\b{empty}\b", text):
                return shower, _SPACED
        apart = _APART.search(text)
        return (*((_STACKED, _SPACED) if apart else (_SPACED, _STACKED)), _COUNTED_LIST)
    if gives in ("matrix", "pairs"):
        return _ROWS
    return (_print("plainly", lambda result: str(result)),)
