"""Understand a question about numbers: rewrite its words, inside out, into one tree of operations.

Numbers become atoms `#0`, `#1`, ...; infix runs and phrases over atoms ("the number of divisors of
#3") become new atoms, until nothing more can be rewritten. The atom that explains most of the
question is the calculation. What no rule covers is not understood: that is how a worker fails.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from harness.rehearsal.counting_rules import COUNTING
from harness.rehearsal.phrase_rules import RULES, op
from harness.rehearsal.trees import Node, NotInfix, number, parse

_NUMBER = re.compile(r"(?<![\w#.])\d+(?:\.\d+)?(?![\d])")
_RUN = re.compile(r"[(\-]*\s*#\d+[#\d()+*/^!\s\-]*")
_SERIES = re.compile(r"#(\d+)\s*([+*])\s*#(\d+)\s*(?:[+*]\s*#\d+\s*)*[+*]\s*\.\.\.\s*[+*]\s*#(\d+)")
_PRONOUN = re.compile(
    r"\b(?:the|this|that|its) (?:resulting |obtained )?(?:result|product|sum|value"
    r"|total|power|outcome|answer"
    r"|number obtained|resulting number|number|quantity|difference)\b(?! of| when| "
    r"obtained| you)|\bit\b(?! is)"
)
MAX_ROUNDS = 40
MAX_TEXT = 3000


@dataclass(slots=True)
class Rewriting:
    """A text in the middle of being understood."""

    text: str
    atoms: list[Node] = field(default_factory=list[Node])

    def atom(self, node: Node) -> str:
        """Remember a part that is understood and return what stands for it in the text."""
        self.atoms.append(node)
        return f"#{len(self.atoms) - 1}"

    def replace(self, start: int, end: int, node: Node) -> None:
        """Put an atom in the place of the words it explains."""
        self.text = f"{self.text[:start]} {self.atom(node)} {self.text[end:]}"

    def best(self) -> Node | None:
        """Return the largest calculation left in the text, the last among equals."""
        found = [self.atoms[int(mark)] for mark in re.findall(r"#(\d+)", self.text)]
        largest = max((node.size() for node in found), default=0)
        return [node for node in found if node.size() == largest][-1] if largest else None


def atomised(text: str) -> Rewriting:
    """Return a plain text (see reading.plain) with numbers, letters and infix runs as atoms."""
    text = text.replace("#", " ")  # the mark of atoms is ours alone
    state = Rewriting("")
    state.text = _NUMBER.sub(lambda found: state.atom(number(Fraction(found[0]))), text[:MAX_TEXT])
    _fold_series(state)
    fold_infix(state)
    return state


def _fold_series(state: Rewriting) -> None:
    """Replace "#0 + #1 + ... + #2" before the infix parser takes its beginning for the whole."""
    found = _SERIES.search(state.text)
    if found is None:
        return
    first, second, last = (state.atoms[int(found[group])] for group in (1, 3, 4))
    if found[2] == "*":
        state.replace(*found.span(), op("factorial", last))
        return
    step = op("difference", second, first)
    terms = op("sum", op("quotient", op("difference", last, first), step), number(1))
    state.replace(*found.span(), op("arithmetic series", first, step, terms))


def understand(state: Rewriting) -> Node | None:
    """Return the calculation that a question asks for, None when no part of it is understood."""
    for _ in range(MAX_ROUNDS):
        if not _rewrite_once(state) and not _resolve_pronoun(state):
            break
        fold_infix(state)
    return state.best()


def _resolve_pronoun(state: Rewriting) -> bool:
    """Put the last calculation in the place of "the result", "that product", "it"."""
    for found in _PRONOUN.finditer(state.text):
        marks = list(re.finditer(r"#(\d+)", state.text[: found.start()]))
        known = [m for m in marks if state.atoms[int(m[1])].size()]
        if known:
            node = state.atoms[int(known[-1][1])]
            start, end = known[-1].span()
            state.text = (
                f"{state.text[:start]}{state.text[end : found.start()]}{state.atom(node)} "
                f"{state.text[found.end() :]}"
            )
            return True
    return False


def _rewrite_once(state: Rewriting) -> bool:
    for pattern, build in (*RULES, *COUNTING):
        found = pattern.search(state.text)
        if found is None:
            continue
        parts = [
            [state.atoms[int(mark)] for mark in re.findall(r"#(\d+)", group or "")]
            for group in found.groups()
        ]
        node = _built(build, parts)
        if node is not None:
            state.replace(*found.span(), node)
            return True
    return False


def _built(
    build: Callable[[list[list[Node]]], Node | None], parts: list[list[Node]]
) -> Node | None:
    try:
        return build(parts)
    except IndexError:
        return None


def fold_infix(state: Rewriting) -> None:
    """Replace every complete infix expression in the text by an atom."""
    at = 0
    for _ in range(MAX_ROUNDS):
        found = _RUN.search(state.text, at)
        if found is None:
            return
        span = _longest_expression(found[0], state.atoms)
        if span is None:
            mark = state.text.index("#", found.start())
            at = mark + 1
            continue
        start, end, node = span
        state.replace(found.start() + start, found.start() + end, node)
        at = found.start() + start + len(f" #{len(state.atoms) - 1}")


def _longest_expression(run: str, atoms: list[Node]) -> tuple[int, int, Node] | None:
    """Return the longest part of a run that is an operation, from its left end if possible."""
    ends = [m.end() for m in re.finditer(r"#\d+|[)!]", run)][:40]
    starts = [m.start() for m in re.finditer(r"[(\-]|#\d+", run)][:4]
    for start in starts:
        for end in reversed(ends):
            if end <= start or not re.search(r"[-+*/^!()]", run[start:end]):
                continue
            try:
                return start, end, parse(run[start:end], atoms)
            except NotInfix:
                continue
    return None
