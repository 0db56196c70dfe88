"""What a program reads and prints, and the samples that a task shows of it."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.rehearsal.program_numbers import Value

# § Samples in a statement, and the method that a functional task asks for.


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


# § Reading standard input and printing a result, as functions that a program carries along.


Reader = Callable[[str], tuple[Any, ...]]
Shower = Callable[[Any], str]


def _counted(data: str) -> tuple[Any, ...]:
    flat = [int(word) for word in data.split()]
    return (flat[1 : 1 + flat[0]],)


def _uncounted(data: str) -> tuple[Any, ...]:
    return ([int(word) for word in data.split()],)


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


def _whole_numbers(data: str) -> tuple[Any, ...]:
    return tuple(int(word) for word in data.split())


def _one_line(data: str) -> tuple[Any, ...]:
    return (data.split("\n")[0].strip("\r"),)


def _second_line(data: str) -> tuple[Any, ...]:
    return (data.split("\n")[1].strip("\r"),)


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


def _words_of_line(data: str) -> tuple[Any, ...]:
    return (data.split(),)


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


READERS: dict[tuple[str, ...], tuple[Reader, ...]] = {
    ("ints",): (_counted, _uncounted),
    ("ints", "int"): (_size_others_values, _size_values_others, _values_others, _others_values),
    ("ints", "int", "int"): (_size_others_values, _size_values_others, _values_others),
    ("int",): (_whole_numbers,),
    ("int", "int"): (_whole_numbers,),
    ("int", "int", "int"): (_whole_numbers,),
    ("int", "int", "int", "int"): (_whole_numbers,),
    ("text",): (_one_line, _second_line),
    ("text", "int"): (_line_and_number, _number_and_line),
    ("text", "text"): (_two_lines, _two_words, _two_lines_swapped),
    ("words",): (_counted_words, _words_of_line),
    ("words", "int"): (_counted_words_and_number, _words_and_number),
    ("matrix",): (_headed_rows, _bare_rows),
    ("pairs",): (_headed_rows, _bare_rows),
    ("pairs", "int"): (_rows_others,),
    ("matrix", "int"): (_rows_others,),
}
"""How arguments of these kinds may lie in the input, the most usual way first."""


def readers(takes: tuple[str, ...], plain: str) -> tuple[Reader, ...]:
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
        joined = re.search(r"first line[^.]{0,40}(?:two|n and|n, )", plain)
        return (
            ways
            if joined
            else (*ways[1:2], *ways[:1], *ways[2:])
            if headed
            else ways[2:] + ways[:2]
        )
    return ways


def _spaced(result: Value) -> str:
    return " ".join(map(str, result))


def _stacked(result: Value) -> str:
    return "\n".join(map(str, result))


def _plainly(result: Value) -> str:
    return str(result)


def _rows(result: Value) -> str:
    return "\n".join(" ".join(map(str, row)) for row in result)


def _counted_rows(result: Value) -> str:
    return "\n".join([str(len(result)), *(" ".join(map(str, row)) for row in result)])


def _colons(result: Value) -> str:
    return "\n".join(f"{name}: {count}" for name, count in result)


def _joined_pairs(result: Value) -> str:
    return " ".join(f"{name}:{count}" for name, count in result)


def _counted_list(result: Value) -> str:
    return f"{len(result)}\n" + " ".join(map(str, result))


def _spaced_or_none(result: Value) -> str:
    return " ".join(map(str, result)) or "NONE"


def _spaced_or_empty(result: Value) -> str:
    return " ".join(map(str, result)) or "EMPTY"


def _upper_verdict(result: Value) -> str:
    return "YES" if result else "NO"


def _verdict(result: Value) -> str:
    return "Yes" if result else "No"


def _lower_verdict(result: Value) -> str:
    return "yes" if result else "no"


def _truth(result: Value) -> str:
    return "True" if result else "False"


def _lower_truth(result: Value) -> str:
    return "true" if result else "false"


_VERDICTS: tuple[tuple[str, Shower], ...] = (
    (r"\bYES\b", _upper_verdict),
    (r"\bYes\b", _verdict),
    (r"\byes\b", _lower_verdict),
    (r"\bTrue\b", _truth),
    (r"\btrue\b", _lower_truth),
)
_APART = re.compile(
    r"(?:one|each|every)[^.]{0,40}(?:per|on (?:a|its|their)[^.]{0,20}) ?line|own line"
    r"|separate lines?",
    re.IGNORECASE,
)


def showers(gives: str, text: str) -> tuple[Shower, ...]:
    """Return ways to print a result of this kind, the one that the statement suggests first."""
    if gives == "bool":
        named = [shower for pattern, shower in _VERDICTS if re.search(pattern, text)]
        return tuple(named[:1]) or (_upper_verdict,)
    if gives in ("ints", "words"):
        if re.search(r"\bNONE\b", text):
            return (_spaced_or_none, _spaced)
        if re.search(r"\bEMPTY\b", text):
            return (_spaced_or_empty, _spaced)
        apart = _APART.search(text)
        return (*((_stacked, _spaced) if apart else (_spaced, _stacked)), _counted_list)
    if gives in ("matrix", "pairs"):
        return (_rows, _counted_rows, _colons, _joined_pairs)
    return (_plainly,)
