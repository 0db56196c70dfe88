"""Answer a four-way choice: look facts up, or compute a value, and find the option that fits."""

import re
from collections.abc import Sequence
from fractions import Fraction

from harness.rehearsal.calculating import Attempt, knowing, read_problem, with_facts
from harness.rehearsal.chat import Chat
from harness.rehearsal.evaluate import evaluate
from harness.rehearsal.facts import (
    attributes_in,
    by_symbol,
    elements,
    lookup,
    name_pattern,
    planets,
    table,
)
from harness.rehearsal.formulas import find_expression, quantities
from harness.rehearsal.phrases import atomised
from harness.rehearsal.reading import ORDINALS, plain
from harness.rehearsal.scratch import OutOfReach, Scratch
from harness.rehearsal.trees import Node
from harness.rehearsal.workers import Worker

_EXPRESSION = re.compile(
    r"(?:compute|evaluate|expression is|namely|work out):?\s+([-+*/^().\d\slog]+)", re.IGNORECASE
)
_MOST = r"largest|greatest|biggest|highest|most|heaviest|maximum|farthest|furthest|longest"
_LEAST = r"smallest|least|lowest|fewest|lightest|minimum|closest|nearest|shortest"
RECALL = 8
"""Operations it takes to remember a fact or formula without a table: a looser hold, more slips."""
Options = Sequence[tuple[str, str]]


def choose(worker: Worker, chat: Chat, paper: Scratch) -> Attempt:
    """Return the letter this worker comes to, by fact or by computation."""
    stem = re.split(r"\n\s*\(?A[).:]\s", chat.question)[0]
    for way in (_told, _by_fact, _by_formula, _by_calculation):
        try:
            letter = way(worker, chat, stem, paper)
        except OutOfReach as limit:
            return Attempt(None, str(limit))
        if letter:
            return Attempt(letter)
    return Attempt(None, "none of what I know settles this")


def guess(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """Return a letter when nothing settles it: an option some pair of the numbers gives, or any."""
    stem = re.split(r"\n\s*\(?A[).:]\s", chat.question)[0]
    numbers = [
        Fraction(value)
        for value in quantities(plain(stem))
        if re.fullmatch(r"-?\d+(?:\.\d+)?", value)
    ][:4]
    if not (worker.knows and "product" not in worker.knows):
        for left in numbers:
            for right in numbers:
                for value in (left * right, left / right if right else left):
                    letter = nearest(value, chat.options, 0.005)
                    if letter and left is not right:
                        paper.note(
                            f"{float(left):g} and {float(right):g} would give {float(value):g}."
                        )
                        return letter
    return paper.random.choice(chat.options)[0]


def _told(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    """Compute an expression that an earlier reply wrote down and left."""
    for reply in reversed(chat.earlier):
        found = _EXPRESSION.search(reply)
        if found:
            return nearest(_value(found[1].strip(" ."), paper), chat.options)
    return None


def _by_formula(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    if not worker.formulas:
        return None
    found = find_expression(stem)
    if found is None:
        return None
    paper.note(f"By {found[0]}, compute: {found[1]}.")
    paper.learnt("sum")
    if worker.facts != "all" and paper.slips(RECALL / 2):
        raise OutOfReach("I am not sure of that formula")
    return nearest(_value(found[1], paper), chat.options)


def _by_calculation(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    problem = read_problem(worker, with_facts(worker, chat, stem))
    return None if problem is None else nearest(evaluate(problem, paper), chat.options)


def _value(expression: str, paper: Scratch) -> Fraction:
    state = atomised(re.sub(r"log\(", " log (", plain(expression)))
    state.text = state.text.strip()
    log = re.match(
        r"#(\d+) ([-+]) log #(\d+)$|#(\d+)\s*([-+])\s*log\s*\(?\s*#(\d+)\s*\)?$",
        re.sub(r"\s+", " ", state.text),
    )
    if log:
        start, sign, inner = [part for part in log.groups() if part]
        logged = Node("logarithm", (state.atoms[int(inner)],))
        node = Node("difference" if sign == "-" else "sum", (state.atoms[int(start)], logged))
        return Fraction(evaluate(node, paper))
    marks = re.findall(r"#(\d+)", state.text)
    if not marks:
        raise OutOfReach("I cannot read that expression")
    return Fraction(evaluate(state.atoms[int(marks[-1])], paper))


def option_values(text: str) -> list[float]:
    """Return what number an option states: with a power of ten, as a fraction, in larger units."""
    found = re.search(
        r"(-?\d+(?:\.\d+)?)\s*(?:\*\s*10\s*\^\s*\(?\s*(-?\d+)\s*\)?|/\s*(\d+))?\s*([a-zµω%]*)",
        plain(text),
    )
    if found is None:
        return []
    value = float(found[1]) * 10.0 ** max(-300, min(300, int(found[2] or 0))) / float(found[3] or 1)
    scale = {"k": 1e3, "m": 1e-3}.get(found[4][:1], 1.0) if len(found[4]) > 1 else 1.0
    return [value] if scale == 1.0 else [value, value * scale]


def nearest(value: Fraction | int, options: Options, tolerance: float = 0.03) -> str | None:
    """Return the letter of the option closest to a value, None when none is close."""
    if abs(value) > 10**60:
        return None
    wanted = float(value)
    best, best_error = None, tolerance
    for letter, text in options:
        for stated in option_values(text):
            error = abs(stated - wanted) / max(abs(wanted), 1e-30)
            if error < best_error:
                best, best_error = letter, error
    return best


def _by_fact(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    if worker.facts == "none":
        return None
    knows = knowing(worker)
    for way in (_fact_of_name, _name_of_fact, _extreme, _unit, _constant):
        letter = way(stem, chat.options)
        name = re.search(name_pattern(), stem.lower())
        if letter and not (name and not knows(name[0])):
            if paper.slips(1 if worker.facts == "all" else RECALL):
                return paper.random.choice(chat.options)[0]
            return letter
    return None


def _same(option: str, value: str) -> bool:
    left = re.sub(r"[^a-z0-9.]", "", re.sub(r"\b(?:the|a|an|period|group)\b", "", option.lower()))
    return left == re.sub(r"[^a-z0-9.]", "", value.lower()) or left.removesuffix(
        "s"
    ) == value.lower().replace(" ", "")


def _named(text: str) -> str | None:
    found = re.search(name_pattern(), text.lower())
    symbol = re.fullmatch(r"\W*([A-Z][a-z]?)\W*", text) or re.search(
        r"symbol\s+(?:is\s+)?\W?([A-Z][a-z]?)\b", text
    )
    return found[0] if found else by_symbol(symbol[1]) if symbol else None


def _fact_of_name(stem: str, options: Options) -> str | None:
    name = _named(stem)
    if name is None:
        return None
    usual = [] if re.search(r"\d", stem) else ["order", "number", "symbol", "category", "kind"]
    wanted = attributes_in(stem) or usual
    for attribute in wanted:
        value = lookup(name, attribute)
        for letter, text in options:
            if value is not None and (
                _same(text, value) or (attribute == "symbol" and text.strip() == value)
            ):
                return letter
            if (
                value
                and attribute in ("mass", "diameter", "year")
                and nearest(Fraction(value), [(letter, text)])
            ):
                return letter
    return next((letter for letter, text in options if _same(text, name)), None)


def _name_of_fact(stem: str, options: Options) -> str | None:
    low = re.sub(
        rf"\b({'|'.join(ORDINALS)})\b", lambda found: f"{ORDINALS[found[0]]}th", plain(stem)
    )
    for letter, text in options:
        name = _named(text)
        for attribute in attributes_in(low) if name else ():
            value = lookup(str(name), attribute)
            if value and re.search(
                rf"(?<![\w.]){re.escape(value.lower())}(?:st|nd|rd|th)?s?(?![\w])", low
            ):
                return letter
    symbol = re.search(r"symbol[^A-Z]{0,20}?\W([A-Z][a-z]?)\b", stem)
    told = by_symbol(symbol[1]) if symbol else None
    for letter, text in options:
        name = _named(text)
        if name and (name == told or _described(name, low)):
            return letter
    return None


def _described(name: str, low: str) -> bool:
    planet, element = planets().get(name), elements().get(name)
    if planet and (
        planet.known["nickname"] in low
        or re.search(rf"\b{planet.known['order']}(?:st|nd|rd|th)\b", low)
    ):
        return True
    return (
        element is not None
        and re.search(rf"\b{re.escape(element.known['category'])}", low) is not None
    )


def _extreme(stem: str, options: Options) -> str | None:
    low = stem.lower()
    most, least = re.search(_MOST, low), re.search(_LEAST, low)
    wanted = attributes_in(low)
    if re.search(r"from the sun|to the sun", low):
        wanted = ["order"]
    for attribute in [*wanted, "diameter"]:
        values = [(lookup(_named(text) or "", attribute), letter) for letter, text in options]
        if (most or least) and all(value and re.fullmatch(r"[\d.]+", value) for value, _ in values):
            ranked = sorted((float(str(value)), letter) for value, letter in values)
            return ranked[-1][1] if most else ranked[0][1]
    return None


def _unit(stem: str, options: Options) -> str | None:
    rows = table().units
    low = stem.lower()
    if not re.search(r"\bunit\b|measured in|quantity", low):
        return None
    for quantity_name in sorted(rows, key=len, reverse=True):
        unit, symbol = rows[quantity_name]
        for letter, text in options:
            if re.search(rf"\b{quantity_name}\b", low) and (
                _same(text, unit) or text.strip() == symbol or unit in text.lower()
            ):
                return letter
            if re.search(rf"\b{unit}s?\b", low) and _same(text, quantity_name):
                return letter
    return None


def _constant(stem: str, options: Options) -> str | None:
    rows = table().constants
    named = [key for key in rows if key in stem.lower().replace("'s", "")]
    for key in sorted(named, key=len, reverse=True):
        letter = nearest(Fraction(rows[key]), options, 0.05)
        if letter:
            return letter
    return None
