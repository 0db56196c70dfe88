"""Write a Python program for a described task: recognise the family, read, compute, print.

A code writer fails where it knows no such family, misreads which one is meant, or slips on a line.
"""

import random
import re
from dataclasses import dataclass

from harness.rehearsal.program_families import FAMILIES, Family
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.workers import Worker

_STARTER = re.compile(r"def\s+(\w+)\s*\(\s*self\s*,?\s*([^)]*)\)\s*(?:->\s*([^:\n]+))?:")
_BOOLS = (
    ("YES", "NO"),
    ("Yes", "No"),
    ("yes", "no"),
    ("True", "False"),
    ("true", "false"),
    ("TRUE", "FALSE"),
)
_SLIPS = (
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r" > ", " >= "),
    (r" < ", " <= "),
    (r" == 0\b", " == 1"),
    (r"range\(2, ", "range(1, "),
    (r"\[-2\]", "[-1]"),
    (r"\+ 1\b", "+ 2"),
    (r"\bmax\(", "min("),
    (r"\bmin\(", "max("),
    (r"sorted\(set\((\w+)\)\)", r"sorted(\1)"),
    (r", reverse=True", ""),
    (r"\.lower\(\)", ""),
    (r"= 0$", "= 1"),
    (r"\[::-1\]", "[1::-1]"),
    (r"sum\(", "len("),
    (r"% 26", "% 25"),
    (r"\[1:\]", "[2:]"),
    (r"return (\w+)$", r"return \1 or 0"),
)

READERS: dict[tuple[str, ...], str] = {
    ("ints",): "values = VALUES",
    ("ints", "int"): "values, other = WITH_ONE",
    ("int",): "n = flat[0]",
    ("int", "int"): "n, other = flat[0], flat[1]",
    ("int", "int", "int"): "n, other, third = flat[0], flat[1], flat[2]",
    (
        "text",
    ): "text = lines[-1] if len(lines) > 1 and lines[0].strip().isdigit() else (lines or [''])[0]",
    (
        "text",
        "int",
    ): (
        "other = int(next(l for l in lines if l.strip().lstrip('-').isdigit()))\ntext "
        "= next((l for l in lines if not l.strip().lstrip('-').isdigit()), '')"
    ),
    ("text", "text"): "text, second = lines[:2] if len(lines) > 1 else lines[0].split()[:2]",
    ("matrix",): "matrix = [list(map(int, line.split())) for line in lines[1:]]",
    ("pairs",): "pairs = [tuple(map(int, line.split())) for line in lines[1:]]",
}
NAMES: dict[tuple[str, ...], str] = {
    ("ints",): "values",
    ("ints", "int"): "values, other",
    ("int",): "n",
    ("int", "int"): "n, other",
    ("int", "int", "int"): "n, other, third",
    ("text",): "text",
    ("text", "int"): "text, other",
    ("text", "text"): "text, second",
    ("matrix",): "matrix",
    ("pairs",): "pairs",
}


@dataclass(frozen=True, slots=True)
class Starter:
    """The method that a functional task asks for."""

    name: str
    arguments: tuple[str, ...]
    kinds: tuple[str, ...]


def write_program(worker: Worker, text: str, paper: Scratch) -> tuple[str, str] | None:
    """Return (family, program) for a described task, None when the worker knows no such family."""
    starter = read_starter(text)
    family = recognise(text, FAMILIES[: worker.families], starter)
    if family is None:
        return None
    body = _slipped(_detailed(family.body, text), worker, paper)
    names = NAMES[family.takes]
    function = f"def solve({names}):\n{_indented(body)}\n"
    if starter:
        return family.name, f"{function}\n\n{_method(family, starter)}"
    reading = _reading(family, text)
    return (
        family.name,
        f"import sys\n\n\n{function}\n\n{reading}\nresult = "
        f"solve({names})\n{_printing(family, text)}\n",
    )


def read_starter(text: str) -> Starter | None:
    """Return the method shown in a `class Solution` starter, None for a stdin task."""
    found = _STARTER.search(text) if "class Solution" in text else None
    if found is None:
        return None
    parts = [part for part in re.split(r",\s*(?![^\[]*\])", found[2]) if part.strip()]
    names = tuple(part.split(":")[0].split("=")[0].strip() for part in parts)
    return Starter(found[1], names, tuple(_kind(part) for part in parts))


def _kind(argument: str) -> str:
    hint = argument.split(":", 1)[1].lower().replace(" ", "") if ":" in argument else ""
    for kind, pattern in (
        ("matrix", r"list\[(?:list|tuple)"),
        ("words", r"list\[str"),
        ("ints", r"list"),
        ("text", r"str"),
        ("int", r"int"),
    ):
        if hint.startswith(pattern.split("\\")[0]) and re.match(pattern, hint):
            return kind
    return "any"


def recognise(text: str, families: tuple[Family, ...], starter: Starter | None) -> Family | None:
    """Return the family whose descriptions fit best, the commoner one among equals."""
    plain = re.sub(r"\s+", " ", re.sub(r"class Solution.*", " ", text, flags=re.DOTALL)).lower()
    best, best_score = None, 0.0
    for family in families:
        if not re.search(family.asks[0], plain) or (starter and not _fits(family, starter)):
            continue
        hits = sum(1 for pattern in family.asks if re.search(pattern, plain))
        score = hits + 0.1 * len(family.asks) + _likely(family, plain)
        if score > best_score:
            best, best_score = family, score
    return best


def _fits(family: Family, starter: Starter) -> bool:
    return len(family.takes) == len(starter.kinds) and all(
        given in (kind, "any")
        or {given, kind} <= {"matrix", "pairs"}
        or (given == "words" and kind == "text")
        for given, kind in zip(sorted(starter.kinds), sorted(family.takes), strict=True)
    )


def _likely(family: Family, plain: str) -> float:
    """Weigh whether the inputs described are the inputs the family takes."""
    described = {
        "ints": r"integers|numbers|array|list|values",
        "text": r"string|text|word|sentence|letters|line of",
        "matrix": r"matrix|grid|rows",
        "pairs": r"intervals|segments|pairs|ranges",
        "int": r"\binteger\b|\bn\b|number",
    }
    return sum(0.5 if re.search(described[kind], plain) else -1.5 for kind in family.takes)


def _detailed(body: str, text: str) -> str:
    """Settle what a family leaves open by reading the statement."""
    low = text.lower()
    closed = re.search(
        r"(?:up to|at most|not exceeding|inclusive|less than or equal|no greater)", low
    )
    first = re.search(
        r"1-based|1-indexed|numbered from (?:1|one)|starting (?:from|at) (?:1|one)"
        r"|positions? start",
        low,
    )
    swap = re.search(r"count (?:followed by|then|before)|(?:\d[a-z]){2}", low) and not re.search(
        r"(?:[a-z]\d){2}", low
    )
    form = "str(j - i) + text[i]" if swap else "text[i] + str(j - i)"
    if "followed by" in low and re.search(r"(?:letter|character)[^.]{0,30} followed by", low):
        form = "text[i] + str(j - i)"
    body = body.replace("LIMIT", "n + 1" if closed else "n").replace("FORM", form)
    if re.search(r"(?:values|numbers|elements) themselves|print the two (?:numbers|values)", low):
        body = body.replace("[seen[other - value] + BASE, i + BASE]", "[other - value, value]")
    return body.replace("BASE", "1" if first else "0")


def _slipped(body: str, worker: Worker, paper: Scratch) -> str:
    lines = body.split("\n")
    for at, line in enumerate(lines):
        rate, paper.slip = paper.slip, worker.code_slip if paper.slip else 0.0
        wrong, paper.slip = paper.slips(max(1.0, len(line) / 25)), rate
        if wrong:
            lines[at] = _misread(line, paper.random)
    return "\n".join(lines)


def _misread(line: str, rng: random.Random) -> str:
    fitting = [(old, new) for old, new in _SLIPS if re.search(old, line)]
    if not fitting:
        return line
    old, new = rng.choice(fitting)
    return re.sub(old, new, line, count=1)


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in body.split("\n"))


def _method(family: Family, starter: Starter) -> str:
    kinds = list(starter.kinds)
    given: list[str] = []
    for kind in family.takes:
        fit = next(
            (
                i
                for i, k in enumerate(kinds)
                if k in (kind, "any") or {k, kind} <= {"matrix", "pairs"} or k == "words"
            ),
            0,
        )
        given.append(starter.arguments[fit])
        kinds[fit] = "used"
    call = f"solve({', '.join(given)})"
    if family.gives == "rows":
        call = f"[list(row) for row in {call}]"
    return (
        f"class Solution:\n    def {starter.name}(self, "
        f"{', '.join(starter.arguments)}):\n        return {call}\n"
    )


def _reading(family: Family, text: str) -> str:
    low = re.sub(r"\s+", " ", text.lower())
    header = re.search(
        r"first line[^.]{0,80}(?:\bn\b|an? (?:single )?integer|one integer|two integers"
        r"|number of|length|size|count|how many)"
        r"|(?:second|next|following) line[^.]{0,40}(?:\bn\b|integers|numbers)|\bn "
        r"integers|followed by n|then n",
        low,
    )
    counted = "flat[1 : 1 + flat[0]]" if header else "flat"
    with_one = (
        "(flat[2 : 2 + flat[0]], flat[1]) if len(lines[0].split()) > 1 else (flat[1 : "
        "1 + flat[0]], flat[1 + flat[0]])"
        if header
        else "(list(map(int, lines[0].split())), int(lines[1])) if len(lines[1].split()) == "
        "1 else (list(map(int, lines[1].split())), int(lines[0]))"
    )
    lines = [
        'lines = [line for line in sys.stdin.read().split("\\n")]',
        "while lines and not lines[-1].strip():",
        "    lines.pop()",
    ]
    if set(family.takes) <= {"ints", "int"}:
        lines.append("flat = [int(word) for line in lines for word in line.split()]")
    reader = READERS[family.takes].replace("VALUES", counted).replace("WITH_ONE", with_one)
    return "\n".join([*lines, *reader.split("\n")])


def _printing(family: Family, text: str) -> str:
    if family.gives == "bool":
        yes, no = next(
            (
                (y, n)
                for y, n in _BOOLS
                if re.search(rf"\b{y}\b", text) and re.search(rf"\b{n}\b", text)
            ),
            _BOOLS[0],
        )
        return f'print("{yes}" if result else "{no}")'
    apart = re.search(
        r"(?:one|each|every)[^.]{0,40}(?:per|on (?:a|its|their)[^.]{0,20}) ?line|own "
        r"line|separate lines?",
        text,
        re.IGNORECASE,
    )
    if family.gives == "ints":
        return 'print("\\n".join(map(str, result)))' if apart else "print(*result)"
    if family.gives == "rows":
        return "for row in result:\n    print(*row)"
    return "print(result)"
