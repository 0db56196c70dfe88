# ruff: noqa: E501 - one formula to a line: wrapped, nobody can compare them
"""Rehearsal workers' answers: numbers by calculation; options by fact, formula or calculation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import permutations

from podium.suites.practice.workers.arithmetic import evaluate
from podium.suites.practice.workers.facts import (
    COMMON,
    Knows,
    attributes_in,
    elements,
    lookup,
    name_of,
    name_pattern,
    place_statements,
    planets,
    statements,
    table,
    usual_name,
)
from podium.suites.practice.workers.phrases import atomised, op
from podium.suites.practice.workers.understanding import read_calculation
from podium.suites.practice.workers.workers import (
    ORDINALS,
    Chat,
    Facts,
    OutOfReach,
    Scratch,
    Worker,
    plain_words,
)


@dataclass(frozen=True, slots=True)
class WorkedAnswer:
    """The answer that a worker reached by its own work, or the reason why there is none."""

    answer: str | None
    why: str = ""  # why there is no answer, in the worker's words


@cache
def known_names(facts: Facts) -> Knows:
    """Return a function that says whether a worker with the facts `facts` knows a name."""
    if facts == "all":
        return lambda name: True
    tables = {"common": COMMON, "elements": elements(), "planets": planets()}
    names = tables.get(facts, ())
    return lambda name: usual_name(name) in names


def _with_facts(worker: Worker, chat: Chat, text: str) -> str:
    """Return a text in which facts that earlier replies or the worker know are numbers."""
    text = place_statements(text, chat.earlier)
    if worker.facts == "none":
        return text
    return place_statements(text, ["\n".join(statements(text, known_names(worker.facts)))])


def calculate(worker: Worker, chat: Chat, paper: Scratch) -> WorkedAnswer:
    """Compute a chat's subtask, if it is a calculation by itself, or else its question."""
    texts = [text for text in (chat.subtask, chat.question) if text]
    problems = (read_calculation(_with_facts(worker, chat, one), worker.stories) for one in texts)
    try:
        problem = next((problem for problem in problems if problem), None)
        if problem is None:
            return WorkedAnswer(None, "I do not see a calculation that I know how to do here")
        return WorkedAnswer(str(evaluate(problem, paper)))
    except OutOfReach as limit:
        return WorkedAnswer(None, str(limit))


_PART = re.compile(r"\blet ([b-z]) be ([^.]+)\.", re.IGNORECASE)
_LETTER = re.compile(r"(?<![\w'])[b-z](?![\w'(])")


def work_parts(worker: Worker, chat: Chat, paper: Scratch) -> WorkedAnswer:
    """Compute each part ("let b be ...") of a question that the worker can, and its last part."""
    question = chat.question.split("\n\n")[0]
    text, said = _with_facts(worker, chat, question), list[str]()
    while True:
        found = (
            (part[1], part[2].strip(), _worked(part[2], paper)) for part in _PART.finditer(text)
        )
        letter, words, value = next((one for one in found if one[2] is not None), ("", "", None))
        if value is None:
            break
        line = f"the value of {letter} is {value}."
        said += [] if words == value else [line]
        text = _with_facts(worker, chat, place_statements(text, [line]))
    answer = _worked(text.rpartition(". ")[2], paper)
    return WorkedAnswer(answer, "\n".join([*said, "I know how to do no other part of this"]))


def _worked(words: str, paper: Scratch) -> str | None:
    """Return the value of a question's part; None if it has an unknown name or is too hard."""
    if re.fullmatch(r"\s*\d+\s*", words):
        return words.strip()
    unknown = re.search(name_pattern(), words.lower()) or attributes_in(words)
    problem = None if unknown or _LETTER.search(words) else read_calculation(words, False)
    try:
        return str(evaluate(problem, paper)) if problem and problem.size() else None
    except OutOfReach:
        return None


def most_common(values: Sequence[str | None]) -> str | None:
    """Return the value that occurs most often; of equally frequent ones, the first.

    >>> most_common(["41", None, "42", "42"])
    '42'
    """
    said = [value for value in values if value is not None]
    return max(said, key=said.count) if said else None


_EXPRESSION = re.compile(
    r"(?:compute|evaluate|expression is|namely|work out):?\s+([-+*/^().\d\slog]+)", re.IGNORECASE
)
_MOST = r"largest|greatest|biggest|highest|most|heaviest|maximum|farthest|furthest|longest"
_LEAST = r"smallest|least|lowest|fewest|lightest|minimum|closest|nearest|shortest"
RECALL = 8
"""Number of operations for which remembering a fact or formula without a table counts: more
operations, more slips (random errors)."""
Options = Sequence[tuple[str, str]]


def choose(worker: Worker, chat: Chat, paper: Scratch) -> WorkedAnswer:
    """Return the option letter that a worker reaches by fact, formula or calculation, if any."""
    stem = re.split(r"\n\s*\(?A[).:]\s", chat.question)[0]
    for way in (_told, _by_fact, _by_formula, _by_calculation):
        try:
            letter = way(worker, chat, stem, paper)
        except OutOfReach as limit:
            return WorkedAnswer(None, str(limit))
        if letter:
            return WorkedAnswer(letter)
    return WorkedAnswer(None, "none of what I know settles this")


def guess(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """Return a guessed letter: an option that is a product or quotient of two numbers, or any."""
    stem = re.split(r"\n\s*\(?A[).:]\s", chat.question)[0]
    found = (m[1] for m in re.finditer(rf"(?<![\w.]){_NUMBER}(?!\w*\))", plain_words(stem)))
    plain = [Fraction(value) for value in found if re.fullmatch(r"-?\d+(?:\.\d+)?", value)][:4]
    multiplies = not worker.knows or "product" in worker.knows
    for left, right in permutations(plain, 2) if multiplies else ():
        for value in (left * right, left / right if right else left):
            letter = _nearest(value, chat.options, 0.005)
            if letter:
                paper.note(f"{float(left):g} and {float(right):g} would give {float(value):g}.")
                return letter
    return paper.random.choice(chat.options)[0]


def _told(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    """Compute an expression that an earlier reply left to compute; return the letter, or None."""
    for reply in reversed(chat.earlier):
        found = _EXPRESSION.search(reply)
        if found:
            return _nearest(_value(found[1].strip(" ."), paper), chat.options)
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
    return _nearest(_value(found[1], paper), chat.options)


def _by_calculation(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    problem = read_calculation(_with_facts(worker, chat, stem), worker.stories)
    return None if problem is None else _nearest(evaluate(problem, paper), chat.options)


def _value(expression: str, paper: Scratch) -> Fraction:
    state = atomised(re.sub(r"log\(", " log (", plain_words(expression)))
    log = re.match(r"#(\d+)\s*([-+])\s*log\s*\(?\s*#(\d+)\s*\)?$", state.text.strip())
    if log:
        start, logged = state.at(log[1]), op("logarithm", state.at(log[3]))
        return Fraction(evaluate(start - logged if log[2] == "-" else start + logged, paper))
    marks = state.marks(state.text)
    if not marks:
        raise OutOfReach("I cannot read that expression")
    return Fraction(evaluate(marks[-1], paper))


_STATED = r"(-?\d+(?:\.\d+)?)\s*(?:\*\s*10\s*\^\s*\(?\s*(-?\d+)\s*\)?|/\s*(\d+))?\s*([a-zµω%]*)"


def _option_values(text: str) -> list[float]:
    """Return the number that an option states, and the number in base units if prefixed (km)."""
    found = re.search(_STATED, plain_words(text))
    if found is None:
        return []
    value = float(found[1]) * 10.0 ** max(-300, min(300, int(found[2] or 0))) / float(found[3] or 1)
    scale = {"k": 1e3, "m": 1e-3}.get(found[4][:1], 1.0) if len(found[4]) > 1 else 1.0
    return [value] if scale == 1.0 else [value, value * scale]


def _nearest(value: Fraction | int, options: Options, tolerance: float = 0.03) -> str | None:
    """Return the letter of the option closest to a value, or None if no option is close."""
    if abs(value) > 10**60:
        return None
    wanted = float(value)
    stated = [(letter, one) for letter, text in options for one in _option_values(text)]
    errors = [(abs(one - wanted) / max(abs(wanted), 1e-30), letter) for letter, one in stated]
    error, best = min(errors, key=lambda one: one[0], default=(tolerance, ""))
    return best if error < tolerance else None


def _by_fact(worker: Worker, chat: Chat, stem: str, paper: Scratch) -> str | None:
    if worker.facts == "none":
        return None
    knows = known_names(worker.facts)
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
    low = value.lower()
    return left == re.sub(r"[^a-z0-9.]", "", low) or left.removesuffix("s") == low.replace(" ", "")


def _named(text: str) -> str | None:
    found = re.search(name_pattern(), text.lower())
    symbol = re.fullmatch(r"\W*([A-Z][a-z]?)\W*", text) or re.search(
        r"symbol\s+(?:is\s+)?\W?([A-Z][a-z]?)\b", text
    )
    if found:
        return found[0]
    return name_of(elements(), "symbol", symbol[1]) if symbol else None


def _fact_of_name(stem: str, options: Options) -> str | None:
    name = _named(stem)
    if name is None:
        return None
    usual = [] if re.search(r"\d", stem) else ["order", "number", "symbol", "category", "kind"]
    wanted = attributes_in(stem) or usual
    for attribute in wanted:
        value = lookup(name, attribute)
        measured = attribute in ("mass", "diameter", "year")
        for letter, text in options if value else ():
            same = _same(text, str(value)) or (attribute == "symbol" and text.strip() == value)
            if same or (measured and _nearest(Fraction(str(value)), [(letter, text)])):
                return letter
    return next((letter for letter, text in options if _same(text, name)), None)


def _name_of_fact(stem: str, options: Options) -> str | None:
    ordinals = rf"\b({'|'.join(ORDINALS)})\b"
    low = re.sub(ordinals, lambda found: f"{ORDINALS[found[0]]}th", plain_words(stem))
    for letter, text in options:
        name = _named(text)
        for attribute in attributes_in(low) if name else ():
            value = re.escape((lookup(str(name), attribute) or "").lower())
            if value and re.search(rf"(?<![\w.]){value}(?:st|nd|rd|th)?s?(?![\w])", low):
                return letter
    symbol = re.search(r"symbol[^A-Z]{0,20}?\W([A-Z][a-z]?)\b", stem)
    told = name_of(elements(), "symbol", symbol[1]) if symbol else None
    for letter, text in options:
        name = _named(text)
        if name and (name == told or _described(name, low)):
            return letter
    return None


def _described(name: str, low: str) -> bool:
    planet, element = planets().get(name), elements().get(name)
    if planet and (
        planet["nickname"] in low or re.search(rf"\b{planet['order']}(?:st|nd|rd|th)\b", low)
    ):
        return True
    return bool(element and re.search(rf"\b{re.escape(element['category'])}", low))


def _extreme(stem: str, options: Options) -> str | None:
    low = stem.lower()
    most, least = re.search(_MOST, low), re.search(_LEAST, low)
    wanted = ["order"] if re.search(r"from the sun|to the sun", low) else attributes_in(low)
    for attribute in [*wanted, "diameter"]:
        values = [(lookup(_named(text) or "", attribute), letter) for letter, text in options]
        if (most or least) and all(value and re.fullmatch(r"[\d.]+", value) for value, _ in values):
            ranked = sorted((float(str(value)), letter) for value, letter in values)
            return ranked[-1][1] if most else ranked[0][1]
    return None


def _unit(stem: str, options: Options) -> str | None:
    rows, low = table().units, stem.lower()
    asked = re.search(r"\bunit\b|measured in|quantity", low)
    for name in sorted(rows, key=len, reverse=True) if asked else ():
        unit, symbol = rows[name]
        for letter, text in options:
            same = _same(text, unit) or text.strip() == symbol or unit in text.lower()
            if same and re.search(rf"\b{name}\b", low):
                return letter
            if re.search(rf"\b{unit}s?\b", low) and _same(text, name):
                return letter
    return None


def _constant(stem: str, options: Options) -> str | None:
    rows = table().constants
    named = [key for key in rows if key in stem.lower().replace("'s", "")]
    named.sort(key=len, reverse=True)
    letters = (_nearest(Fraction(rows[key]), options, 0.05) for key in named)
    return next(filter(None, letters), None)


_NUMBER = r"(-?\d+(?:\.\d+)?(?:\s*(?:\*|x)\s*10\s*\^?\s*\(?\s*-?\d+\)?)?)"
UNITS = {
    "voltage": r"v|volts?",
    "current": r"a|amps?|amperes?",
    "resistance": r"ω|ohms?",
    "speed": r"m/s|met(?:re|er)s? per second|m s\^\(?-1\)?",
    "acceleration": r"m/s\^\(?2\)?|m/s2|met(?:re|er)s? per second squared",
    "mass": r"kg|kilograms?|g|grams?",
    "frequency": r"hz|hertz",
    "length": r"m|met(?:re|er)s?",
    "volume": r"cm\^\(?3\)?|m\^\(?3\)?|cm3|m3|ml|millilit(?:re|er)s?|l|lit(?:re|er)s?|cubic \w+",
    "force": r"n|newtons?",
    "time": r"s|seconds?",
    "span": r"s|seconds?|minutes?|min|hours?|h|days?|weeks?|years?|months?",
    "area": r"m\^\(?2\)?|m2|square met(?:re|er)s?",
    "moles": r"mol|moles?",
    "concentration": r"m|mol/l|mol/dm\^\(?3\)?|molar|mol per lit(?:re|er)|moles per lit(?:re|er)",
    "power": r"w|watts?",
}


# Name, what is asked, what it needs, and the expression, in order of what it needs.
FORMULAS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("pH of a strong base", r"\bph\b[^?]*(?:naoh|koh|lioh|hydroxide)|(?:naoh|koh|lioh|hydroxide)[^?]*\bph\b", ("concentration",), "14 + log({0})"),
    ("pH of a strong acid", r"\bph\b", ("concentration",), "0 - log({0})"),
    ("kinetic energy", r"kinetic energy", ("mass", "speed"), "{0} * {1}^2 / 2"),
    ("momentum", r"momentum", ("mass", "speed"), "{0} * {1}"),
    ("Ohm's law for the current", r"current|how many amp|ampere", ("voltage", "resistance"), "{0} / {1}"),
    ("Ohm's law for the voltage", r"voltage|potential difference|volt", ("current", "resistance"), "{0} * {1}"),
    ("density", r"density", ("mass", "volume"), "{0} / {1}"),
    ("wave speed", r"speed|velocity|how fast", ("frequency", "length"), "{0} * {1}"),
    ("frequency of a wave", r"frequency", ("speed", "length"), "{0} / {1}"),
    ("wavelength", r"wavelength", ("speed", "frequency"), "{0} / {1}"),
    ("Newton's second law", r"force", ("mass", "acceleration"), "{0} * {1}"),
    ("work", r"work", ("force", "length"), "{0} * {1}"),
)  # fmt: skip
_COMPOUNDS = {
    "water": "H2O", "carbon dioxide": "CO2", "methane": "CH4", "ammonia": "NH3",
    "sodium chloride": "NaCl", "table salt": "NaCl", "glucose": "C6H12O6", "ethanol": "C2H6O",
    "calcium carbonate": "CaCO3", "sulfuric acid": "H2SO4", "hydrochloric acid": "HCl",
    "sodium hydroxide": "NaOH", "carbon monoxide": "CO", "hydrogen peroxide": "H2O2",
    "nitric acid": "HNO3", "sulfur dioxide": "SO2", "ozone": "O3",
}  # fmt: skip
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_COMPOUND = re.compile(
    r"\b((?:[A-Z][a-z]?_?\{?\d*\}?|\((?:[A-Z][a-z]?\d*)+\)_?\{?\d*\}?)+)(?![a-z])"
)


@lru_cache(maxsize=4096)
def find_expression(text: str) -> tuple[str, str] | None:
    """Return (formula's name, expression in numbers) for a question; None if no formula fits."""
    low = plain_words(text.translate(_SUBSCRIPTS))
    found = _half_life(low) or _molar_mass(text.translate(_SUBSCRIPTS), low)
    if found:
        return found
    asked = " ".join(part for part in re.split(r"(?<=[.?!])\s", low) if "?" in part) or low
    for where in (asked, low):
        for name, pattern, needs, expression in FORMULAS:
            if not re.search(pattern, where):
                continue
            values = [_quantity(low, unit) for unit in needs]
            if all(value is not None for value in values):
                return name, expression.format(*values)
    return None


def _quantity(text: str, kind: str) -> str | None:
    found = re.search(rf"{_NUMBER}\s*-?\s*(?:{UNITS[kind]})(?![\w/^])", text)
    return f"({found[1]})".replace("x", "*") if found else None


_AMOUNT = rf"{_NUMBER}\s*-?\s*(?:g|mg|grams?|milligrams?|kg|kilograms?|atoms|nuclei|bq|becquerels?|counts)\b"
_MOLAR = r"molar mass|molecular (?:mass|weight)|formula mass|how many (?:moles|grams)|mass of .{0,20}\bmol"


def _half_life(text: str) -> tuple[str, str] | None:
    if "half" not in text or not re.search(r"half[- ]?li(?:fe|ves)", text):
        return None
    span = rf"{_NUMBER}\s*-?\s*(?:{UNITS['span']})"
    life = re.search(rf"half[- ]?life[^.?]{{0,60}}?{span}\b", text)
    life = life or re.search(rf"{span}\s+half[- ]?life", text)
    spans = [m[1] for m in re.finditer(rf"{span}\b", text)]
    if not life or not (others := [span for span in spans if span != life[1]]):
        return None
    power = f"({others[-1]} / {life[1]})"
    start = re.search(_AMOUNT, text)
    share = re.search(r"fraction|percent|proportion|%", text)
    amount = "100" if share and "fraction" not in share[0] else "1"
    return "radioactive decay", f"{start[1] if start and not share else amount} * (1/2)^{power}"


def _molar_mass(text: str, low: str) -> tuple[str, str] | None:
    if not re.search(_MOLAR, low):
        return None
    written = [m[1] for m in _COMPOUND.finditer(text) if re.search(r"\d|[a-z]?[A-Z]", m[1][1:])]
    named = [formula for name, formula in _COMPOUNDS.items() if name in low]
    for formula in (*filter(_atoms, written), *named):
        masses = [f"{count} * {lookup(name, 'mass')}" for name, count in _atoms(formula)]
        whole = " + ".join(masses)
        return "molar mass", whole
    return None


def _atoms(formula: str) -> list[tuple[str, int]]:
    """Return (element, number of atoms) in a chemical formula; empty for any other text."""
    found: dict[str, int] = {}
    groups = r"\(([A-Za-z0-9]+)\)(\d*)|([A-Z][a-z]?)(\d*)"
    for inner, times, symbol, count in re.findall(groups, re.sub(r"[_{}]", "", formula)):
        own = [(symbol, count)]
        for part, number in re.findall(r"([A-Z][a-z]?)(\d*)", inner) if inner else own:
            name = name_of(elements(), "symbol", part)
            if name is None:
                return []
            found[name] = found.get(name, 0) + int(number or 1) * int(times or 1)
    return list(found.items())
