"""Check what others said: recompute the equations in a reply, weigh replies, take the best."""

import ast
import re
from collections.abc import Sequence

from harness.rehearsal.chat import Asked, final_answer
from harness.rehearsal.evaluate import evaluate
from harness.rehearsal.phrases import atomised
from harness.rehearsal.reading import plain
from harness.rehearsal.scratch import OutOfReach, Scratch

_LEFT = re.compile(r"[\d(][-+*/^().\d\s]*$")
_RIGHT = re.compile(r"\s*(-?\d+)(?![\d.*/^+(]|\s*[-*/^+(])")
_NAMED = re.compile(
    r"the (sum|difference|product|power|quotient) of (-?\d+), (-?\d+) is (-?\d+)\b(?!/)"
)
_SIGNS = {"sum": "+", "difference": "-", "product": "*", "power": "^", "quotient": "/"}


def wrong_equations(reply: str, paper: Scratch) -> list[str]:
    """Return the equations in a reply that do not hold when recomputed."""
    low = plain(reply[:6000])
    stated = _stated(low)
    stated += [(f"({m[2]}) {_SIGNS[m[1]]} ({m[3]})", m[4]) for m in _NAMED.finditer(low)][:12]
    found: list[str] = []
    for expression, claimed in stated:
        state = atomised(expression)
        try:
            node = state.atoms[int(re.findall(r"#(\d+)", state.text)[-1])]
            value = evaluate(node, paper)
        except (OutOfReach, IndexError):
            continue
        if str(value) != claimed:
            found.append(f"{expression} = {claimed} is wrong, it is {value}")
    return found


def _stated(text: str) -> list[tuple[str, str]]:
    """Return (expression, claimed value) around the equals signs of a text, the first twelve."""
    found: list[tuple[str, str]] = []
    for sign in list(re.finditer("=", text))[:12]:
        before = text[max(0, sign.start() - 80) : sign.start()]
        left, right = _LEFT.search(before), _RIGHT.match(text, sign.end())
        if left and right and re.search(r"\d\s*[-+*/^]", left[0]):
            found.append((left[0].strip(), right[1]))
    return found


def compiles(program: str) -> bool:
    """Say whether a program is Python at all; it is parsed, never run."""
    try:
        ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _form(program: str) -> str:
    """Return a program without what does not matter: layout and comments."""
    return ast.unparse(ast.parse(program))


def agreed_program(replies: Sequence[str], own: str | None) -> str | None:
    """Return the complete program that most replies agree on, the first of them among equals.

    The reader's own program is one more voice; alone it counts only when no reply has one.
    """
    found = [final_answer(reply, "program") for reply in replies]
    programs = [program for program in found if program and compiles(program)]
    if not programs:
        return own
    voices = [*programs, own] if own and compiles(own) else programs
    forms = [_form(program) for program in voices]
    return max(programs, key=lambda program: forms.count(_form(program)))


def weigh(
    replies: Sequence[str], asked: Asked, own: tuple[str | None, float], paper: Scratch | None
) -> str | None:
    """Return the answer with most weight: one per reply, less for a reply whose sums are wrong.

    `own` is the reader's own answer with its weight; on a tie the reader trusts itself, then the
    latest reply. Without paper nothing is recomputed and every reply counts the same.
    """
    weights: dict[str, float] = {}
    for at, reply in enumerate(replies):
        answer = final_answer(reply, asked)
        if answer is None or (asked == "program" and not compiles(answer)):
            continue
        errors = wrong_equations(reply, paper) if paper and asked != "program" else []
        weights[answer] = weights.get(answer, 0.0) + (0.25 if errors else 1.0) + 0.001 * at
    if own[0] is not None:
        weights[own[0]] = weights.get(own[0], 0.0) + own[1]
    return max(weights, key=lambda answer: weights[answer]) if weights else None
