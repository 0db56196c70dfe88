# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Questions that range over numbers, as in "how many integers up to 500 are multiples of 6".

A question becomes a range, conditions and what is asked of the numbers that meet them; then the
worker looks at the numbers one by one, as far as its reach goes.
"""

import re
from collections.abc import Sequence

from harness.rehearsal import patterns
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.trees import Node, number

OPEN = Node("open")
"""The upper end of a search without one."""


def find_search(state: Rewriting) -> Node | None:
    """Return the search that a question asks for, None when it asks for something else."""
    text = state.text
    wanted = _wanted(text)
    if wanted is None:
        return None
    conditions, rest = _conditions(text, state.atoms)
    divisors, joined, rest = _divisors(rest, state.atoms)
    if divisors:
        conditions.append(("divisible", divisors))
    low, high = _range(rest, state.atoms)
    unbounded = high is None and wanted in ("count", "sum", "greatest")
    if not conditions or unbounded:
        return None
    parts = [Node("values", values) for _, values in conditions]
    names = (wanted, joined, *[name for name, _ in conditions])
    return Node("search", (low or number(1), high or OPEN, *parts), names=names)


def _wanted(text: str) -> str | None:
    for wanted, pattern in (
        (
            "least",
            r"(?:smallest|least|minimum|fewest|lowest) (?:possible )?(?:positive )?number of",
        ),
        ("count", r"how many|number of|count (?:the|how|all|up)|\bcount\b|in how many"),
        (
            "sum",
            r"\bsum of (?:all |the |every )|add (?:up )?all|total of all|their (?:sum|total)|add them",
        ),
        (
            "least",
            r"(?:next|which) prime[^#]{0,40}(?:after|follow|beyond)|smallest|least (?:positive|integer|number|whole|natural|such|n\b)|lowest"
            r"|minimum|first positive",
        ),
        (
            "greatest",
            r"prime[^#]{0,30}(?:before|preced)|largest|greatest (?:integer|number|whole|prime|multiple|n\b|#\d+ digit)"
            r"|biggest|highest",
        ),
    ):
        if re.search(pattern, text):
            return wanted
    found = re.search(
        r"(?:what|which|find|determine) (?:is )?(?:the )?(?:positive )?(?:integer|number)\b", text
    )
    return "least" if found else None


def _conditions(text: str, atoms: Sequence[Node]) -> tuple[list[tuple[str, tuple[Node, ...]]], str]:
    found: list[tuple[str, tuple[Node, ...]]] = []
    for name, pattern in patterns.CONDITIONS:
        for match in list(re.finditer(pattern, text)):
            if " each of" in match[0] or " all of" in match[0]:
                continue
            parts = tuple(atoms[int(mark)] for mark in match.groups() if mark)
            found.append(("remainder", parts[::-1]) if name == "remainder of" else (name, parts))
            text = text.replace(match[0], " ; ", 1)
    shared = re.search(
        rf"remainder(?: of)?\s*{patterns.A}[^#.]{{0,50}}by\s*(?:each of|all of|any of"
        rf"|both|each)?\s*({patterns.MANY})",
        text,
    )
    if shared and len(marks := re.findall(patterns.A, shared[2])) > 1:
        found += [("remainder", (atoms[int(shared[1])], atoms[int(mark)])) for mark in marks]
        text = text.replace(shared[0], " ; ", 1)
    many = re.search(
        rf"remainders?(?: of)?\s*({patterns.MANY})[^#.]{{0,60}}by\s*({patterns.MANY})", text
    )
    if many:
        left, right = (re.findall(patterns.A, many[group]) for group in (1, 4))
        if len(left) == len(right):
            found += [
                ("remainder", (atoms[int(r)], atoms[int(m)]))
                for r, m in zip(left, right, strict=True)
            ]
            text = text.replace(many[0], " ; ", 1)
    found += [(name, ()) for name, pattern in patterns.PLAIN if re.search(pattern, text)]
    return found, text


def _divisors(text: str, atoms: Sequence[Node]) -> tuple[tuple[Node, ...], str, str]:
    spans = list(
        re.finditer(
            rf"(?:divisible|multiples?|divided evenly|evenly divisible)\s+(?:by|of)\s+"
            rf"(?:both|either|neither|any of|all of|each of|at least #?\w+ of|exactly \S+ "
            rf"of)?\s*({patterns.MANY})",
            text,
        )
    )
    if not spans:
        return (), "all", text
    divisors = tuple(atoms[int(mark)] for span in spans for mark in re.findall(patterns.A, span[1]))
    rest = text
    for span in spans:
        rest = rest.replace(span[0], " ; ", 1)
    return divisors, _joined(text, atoms), rest


def _joined(text: str, atoms: Sequence[Node]) -> str:
    exactly = re.search(r"exactly #(\d+) of", text)
    if (exactly and atoms[int(exactly[1])].value == 1) or "but not both" in text:
        return "one"
    if re.search(
        r"neither|\bnor\b|not (?:\w+ )?(?:divisible by|(?:a )?multiples? of)(?: "
        r"either)?[^.]*\bor\b|by none",
        text,
    ):
        return "none"
    if re.search(r"but (?:are |is )?(?:not|no)\b|and not\b|yet not", text):
        return "first only"
    if re.search(r"\bnot (?:divisible|(?:a )?multiples?)", text):
        return "none"
    joins = re.search(rf"(?:by|of)\s+(?:either|at least \S+ of)|{patterns.A} or\b|,\s*or\b", text)
    return "any" if joins else "all"


def _range(text: str, atoms: Sequence[Node]) -> tuple[Node | None, Node | None]:
    for pattern, up, down in patterns.BOUNDS:
        found = re.search(pattern, text)
        if found:
            strict = bool(re.search(r"strictly between|exclusive", text))
            return (
                _shifted(atoms[int(found[1])], up + strict),
                _shifted(atoms[int(found[2])], down - strict),
            )
    wide = re.search(rf"{patterns.A}\s*digit\b", text)
    if wide and atoms[int(wide[1])].value in (1, 2, 3, 4, 5):
        digits = int(atoms[int(wide[1])].value)
        return number(10 ** (digits - 1)), number(10**digits - 1)
    low = next(
        (_shifted(atoms[int(m[1])], by) for p, by in patterns.LOWER if (m := re.search(p, text))),
        None,
    )
    high = next(
        (_shifted(atoms[int(m[1])], by) for p, by in patterns.UPPER if (m := re.search(p, text))),
        None,
    )
    return low, high


def _shifted(node: Node, by: int) -> Node:
    return Node("sum", (node, number(by))) if by else node
