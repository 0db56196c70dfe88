"""Decide whether two mathematical answers are equal: their shape first, then each value.

An answer must have the shape (a list, an interval, a matrix ...) of the target, the correct answer
(`gold`). Values are compared as text and as numbers. If that decides nothing and they are not
words, the library math-verify compares them, one at a time: in whole answers it confuses intervals
with tuples, sets with lists, and equations with their multiples.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any, Literal, cast

from podium.suites.latex import (
    UNITS,
    Measured,
    normalise_answer,
    parse_measured,
    split_outside_brackets,
    units_contradict,
)
from podium.suites.quantities import (
    LONGEST,
    decimal_places,
    parse_rational,
    rounds_to,
    same_number,
    sides_differ,
)

Look = Literal["exact", "math-verify"]
SHORT = 40
MOST_PAIRS = 64
NO_VALUE = Measured("")
Pair = tuple[str, str, int]
Ask = Callable[[str, str], bool]
"""A function that returns the verdict of the library math-verify on (target, answer): equal?"""
_WRAPPERS = re.compile(r"\\(?:text|mbox|mathrm)\s*\{([^{}]*)\}|[\s$]")
_INTEGER = re.compile(r"-?\d{1,40}")
_LIKE_UNITS = "cdghlmost"
_RENAMED = re.compile(rf"\\[A-Za-z]+|\u00abdeg\u00bb|[{_LIKE_UNITS};]")
_COMMA = re.compile("[,;]|\u00ab(?:and|or)\u00bb")
_CUP = re.compile(r"\\cup(?![A-Za-z])")
_ROW, _CELL, _EQUALS = re.compile(r"\\\\"), re.compile("&"), re.compile("=")
_MATRIX = re.compile(r"\\begin\{([pbB]?matrix|cases)\}(.*)\\end\{\1\}", re.S)
_SCALED = re.compile(
    r"([-+]?(?:\\(?:frac|sqrt|pi)(?![A-Za-z])|[\d{}/.()])*)(?:\\cdot ?)?"
    r"(\\begin\{([pb]?matrix)\}.*\\end\{\3\})",
    re.S,
)
_RELATION = re.compile(
    r"[<>]|\\(?:leq|geq|neq|approx|sim|simeq|cong|equiv|implies|iff|Rightarrow|Leftrightarrow"
    r"|rightarrow|to|mid|propto|not|pmod|bmod|mod)(?![A-Za-z])"
)
_ORDER = re.compile(r"(<=?|>=?|\\leq|\\geq)")
_ABOUT = re.compile(r"\\approx(?![A-Za-z])")
_BARRED = re.compile(
    r"(?:[,;(]|\\text\{\s*(?:for|where|with)\s*\})(?:\\[,;: ]|\\q?quad|[\s$(]|\\text\{[a-z ]*\})*"
    "[a-z]\\s*(?:\\\\neq?(?![A-Za-z])|\u2260)\\s*(-?[\\d.]+)[\\s$)]*$"
)
"""Matches, after an answer, a value that a variable must not have: `3, x\\neq 0`."""
_BUILDER = re.compile(
    r"\\\{[A-Za-z](?:\\in\\mathbb\{R\})?(?:\\mid|[:|]) ?(.*)\\\}|\\\{([^{},;]*)\\\}"
)
_PM = re.compile(r"\\(pm|mp)(?![A-Za-z]) ?")
_GREEK = r"\\(?:alpha|beta|gamma|theta|lambda|mu|omega|phi|rho|sigma)"
_NAME = rf"(?:[A-Za-z]|{_GREEK})(?:_\w|_\{{\w+\}})?'?(?:\([a-z]\))?"
_NAMED = re.compile(_NAME)
_NAMES = re.compile(rf"\(({_NAME}(?:[,;]{_NAME})+)\)")
_LABEL = re.compile(
    "\u00ab(?:[^\u00ab\u00bb]*(?:is|are|point|:)\u00bb:?|[^\u00ab\u00bb]*(?:answers?|=)\u00bb[:=]?"
    "|[A-Za-z_]+\u00bb[:=]|(?:thus|hence|so|therefore),?\u00bb,?;?)"
    r"|[A-Z](?=\([^()]*[,;][^()]*\)$)",
    re.I,
)
_REJECTED = re.compile(rf"\u00ab[^\u00bb]*(?:{'|'.join(UNITS['words']['rejected'])})", re.I)
"""Matches a label, such as `first answer:`, before a text that is not the reply's answer."""
_ELEMENT = re.compile(rf"({_NAME})\\in ?(?=[(\[\]\\])")
_THOUSANDS = re.compile(
    "[-+]?(?:\u00ab[$\u20ac\u00a3\u00a5\u20b9]\u00bb)?[-+]?\\d{1,3}(?:,\\d{3})+(?!\\d)[^,;]*"
)
_RATIO = re.compile(r"\d:\d")
_BRACKETS = {"(": ")]", "[": ")]", "\\{": ("\\}",), "{": ("}",), "\\langle": ("\\rangle",)}
MOST_DEPTH = 6
_ANY = re.compile(r"(?<=[)\]}>e])(?=.)")
INFINITY = "\\infty"
_UNKNOWN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]|[,;=\u00ab]")
_REALS: dict[str, str] = dict.fromkeys(
    (r"\mathbb{R}", "\u00aball_real_numbers\u00bb"), r"(-\infty;\infty)"
)
_LEADS = re.compile(r"^(?:=|\\(?:implies|Rightarrow) ?)(?=.)")
_COORDINATES = ("\\rho", "\\theta", "\\phi")
ONE = ("value", "equation", "relation")
MOST_PARTS = 40
_SPACED = re.compile(r"\d \d")
_DANGLING = re.compile(r"[?'~*+=:-]$|\\ldots|\.\.|\^\{?\+|\\(?:pm|mp|[hv]?phantom)")
_FUNCTION = re.compile(
    r"\\(?:log|ln|lg|(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|sum|prod|i?int|lim|lfloor|lceil|gcd|lcm"
    r"|max|min|det)(?![A-Za-z])"
)
_FACTORED = re.compile(r"[-+]?\d*[a-z]?(?:(?:\\cdot)?\([^()]*\)(?:\^\d)?){2,}")
_SUM = re.compile(r"\([^()]*[A-Za-z][^()]*\)")
_BASED = re.compile(r"\(?(-?[0-9A-F]+)\)?_\{?(\d{1,2})\}?")
_LINEAR = re.compile(r"[0-9A-Za-z+=-]+")
_COEFFICIENT = re.compile(r"\d+|(?<!\d)[A-Za-z]")
_ARTICLE = re.compile(r"(?:an?|the) ")
_VARIABLE = re.compile(r"\\[A-Za-z]+|\u00abdeg\u00bb|[^A-Za-z]")
_CHOICE = re.compile("\u00ab?\\([A-P]\\)\u00bb?")
_STATED_CHOICE = re.compile(
    r"(?:(?:the|correct|answer|is|are|option|choice|thus|therefore|hence|clearly|obviously"
    r"|consequently)\b[:, ]*)*\(?([A-P])(?:\)[.:,]?|[.:](?!\w)|,(?= \w{3})| -|\s*$)(?P<more>.*)",
    re.I | re.S,
)
_ANOTHER = re.compile(
    r"\s*(?:[,;/&|?]|(?:or|and|not|nor|but|is|if|maybe|perhaps|probably|possibly|alternatively"
    r"|either|else|unless)\b)|.*(?:\([A-P]\)|\b(?:or|and) (?-i:[B-P])\b)"
    r"|\s*(?-i:[A-P])(?:[).:]|\s*$)",
    re.I | re.S,
)
_DENIED = re.compile(r"^not \(?[A-P]\)?,? but |,? (?:and )?not \(?(?-i:[A-P])\b\)?", re.I)


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether two answers are equal, and whether podium (`exact`) or math-verify decided it."""

    equal: bool
    look: Look
    gave_up: bool = False
    """True if math-verify did not decide (too many pairs, too slow); counts as not equal."""


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The structure of a mathematical answer: its kind, and its parts or its value."""

    kind: str
    """`value`, `equation`, `converted` (a value in two units), `relation`, `list`, `union`,
    `ratio`, `nothing` (equals no answer), `2x1` for a matrix, or the brackets of a tuple, an
    interval or a set."""
    text: str
    parts: tuple["AnswerShape", ...] = ()
    name: str = ""
    """The variable that has the value: `x` of `x=5`."""
    value: Measured = NO_VALUE


def _bare(text: str) -> str:
    return _WRAPPERS.sub(r"\1", text).replace(" ", "")


def compare(target: str, answer: str) -> Equality:
    r"""Return whether an answer, as LaTeX or text, equals the target.

    Raises EqualityError if the math-verify process cannot be started or does not reply.

    >>> compare(r"\frac{1}{2}", "0.5").equal, compare("(2,4)", "[2,4]").equal
    (True, False)
    """
    if not answer.strip() or len(answer) > LONGEST:
        return Equality(False, "exact")
    if _INTEGER.fullmatch(target) and _INTEGER.fullmatch(answer):
        return Equality(int(target) == int(answer), "exact")
    if target.strip() == answer.strip() or ("\\text" in target and _bare(target) == _bare(answer)):
        return Equality(True, "exact")
    plain = answer.replace("\\dfrac", "\\frac") if len(answer) < SHORT else answer
    gold = parse_rational(target)
    number = None if gold is None else parse_rational(plain)
    if gold is not None and number is not None:
        equal = same_number(Measured(target), Measured(answer), (gold, number))
        return Equality(equal, "exact")
    guesses = dict[Pair, bool]()
    equal = _agree(target, answer, lambda gold, text: guesses.setdefault(_pair(gold, text), True))
    if not equal or not guesses:
        return Equality(equal, "exact")
    from podium.suites.math_verify_pool import (
        math_verify_all,  # starts processes, so only if shapes cannot decide
    )

    pairs = tuple(guesses)
    results = math_verify_all(pairs) if len(pairs) <= MOST_PAIRS else None
    if results is None:
        return Equality(False, "math-verify", gave_up=True)
    verdicts = dict(zip(pairs, results, strict=True))
    equal = _agree(target, answer, lambda gold, text: verdicts[_pair(gold, text)])
    return Equality(equal, "math-verify")


def is_list(answer: str) -> bool:
    r"""Return whether an answer has several values: `1,-2`, `1 \pm \sqrt{19}`, `2 or 3`."""
    shape = parse_shape(answer)
    return shape.kind == "list" or (len(shape.parts) > 1 and shape.kind not in ("ratio", "union"))


def _pair(gold: str, answer: str) -> Pair:
    """Return (target, answer, places) for math-verify; letters it reads as units are renamed."""
    free = (char for char in "xyzabknpqruvwABCDFGHJKLMNPQRSTUVWXYZ" if char not in gold + answer)
    names = {**dict(zip(_LIKE_UNITS, free, strict=False)), "\u00abdeg\u00bb": "^\\circ ", ";": ","}
    renamed = [
        _RENAMED.sub(lambda token: names.get(token[0], token[0]), text) for text in (gold, answer)
    ]
    return renamed[0], renamed[1], decimal_places(gold)


@lru_cache(maxsize=4096)
def parse_shape(answer: str, listed: bool = False) -> AnswerShape:
    """Return the shape (structure) of an answer; `11,111` is one number unless `listed`."""
    text = normalise_answer(answer)
    label = _LABEL.match(text)
    if label and label.end() < len(text):
        if _REJECTED.match(label[0]):
            return AnswerShape("nothing", text)
        text = text[label.end() :]
    text = _REALS.get(text, _LEADS.sub("", text))
    if not listed and "," in text and _THOUSANDS.fullmatch(text.partition("=")[2] or text):
        text = text.replace(",", "")
    return _shape(text)


def _shape(text: str, depth: int = 0) -> AnswerShape:
    if depth > MOST_DEPTH:
        return AnswerShape("nothing", text)
    element = _ELEMENT.match(text)
    name, text = (element[1], text[element.end() :]) if element else ("", text)
    if _RELATION.search(text):
        return _related(text, depth)
    for kind, separator in (("union", _CUP), ("list", _COMMA)):
        pieces = split_outside_brackets(text, separator)
        if len(pieces) > 1:
            return AnswerShape(kind, text, _parts(pieces, depth), name)
    bracketed = _bracketed(text, name, depth) or _scaled(text, depth)
    if bracketed is None and len(both := _both_signs(text)) > 1:
        return AnswerShape("list", text, _parts(both, depth), name)
    return bracketed or _equated(text, name, depth)


def _parts(texts: Sequence[str], depth: int) -> tuple[AnswerShape, ...]:
    """Return the shapes of an answer's parts, except empty ones: `1, and 2` has only two parts."""
    every = [both for text in texts if text for both in _both_signs(text)]
    return tuple(_shape(text, depth + 1) for text in every)


def _both_signs(text: str) -> list[str]:
    if "\\" not in text or len(_PM.findall(text)) != 1:
        return [text]
    signs = "+-" if "\\pm" in text else "-+"
    return [re.sub(r"^\+|(?<=[=(])\+", "", _PM.sub(sign, text)) for sign in signs]


def _bracketed(text: str, name: str, depth: int) -> AnswerShape | None:
    """Return the shape of a text in brackets (tuple, set, matrix, interval); None for others."""
    if text[:1] == "]" or (text[-1:] == "[" and text[:1] in "[]"):
        text = ("(" if text[0] == "]" else text[0]) + text[1:-1] + text[-1:].replace("[", ")")
    matrix = _MATRIX.fullmatch(text)
    if matrix and "\\begin" not in matrix[2]:
        lines = split_outside_brackets(matrix[2], _ROW)
        if matrix[1] == "cases":
            return _stacked(lines, name, depth)
        rows = [split_outside_brackets(line, _CELL) for line in lines if line]
        cells = tuple(_shape(cell, depth + 1) for row in rows for cell in row)
        return AnswerShape(f"{len(rows)}x{len(rows[0]) if rows else 0}", text, cells, name)
    opens = next((sign for sign in _BRACKETS if text.startswith(sign)), "")
    closes = next((sign for sign in _BRACKETS.get(opens, ()) if text.endswith(sign)), "")
    if not closes or len(split_outside_brackets(text, _ANY)) > 1:
        return None
    inside = text[len(opens) : len(text) - len(closes)]
    pieces = split_outside_brackets(inside, _COMMA)
    if len(pieces) == 1 and opens + closes in ("()", "{}"):
        return _shape(inside, depth + 1)
    kind = "\\{\\}" if opens == "{" else opens + closes
    return AnswerShape(kind, text, _parts(pieces, depth), name)


def _scaled(text: str, depth: int) -> AnswerShape | None:
    """Return the shape of a number times a matrix, multiplied out; None for any other text."""
    scaled = _SCALED.fullmatch(text) if "matrix" in text else None
    inner = _bracketed(scaled[2], "", depth) if scaled else None
    if scaled is None or inner is None or any(cell.kind != "value" for cell in inner.parts):
        return None
    cells = [_product(scaled[1] or "", cell.text) for cell in inner.parts]
    return AnswerShape(inner.kind, "", tuple(_shape(cell, depth + 1) for cell in cells))


def _product(factor: str, cell: str) -> str:
    scale, number = parse_rational(f"{factor}1" if factor in "+-" else factor), parse_rational(cell)
    if scale is not None and number is not None:
        return str(scale * number)
    return f"{factor}({cell})" if factor in "+-" else f"{factor}\\cdot({cell})"


def _stacked(lines: Sequence[str], name: str, depth: int) -> AnswerShape:
    """Return the shape of the lines in LaTeX's `cases`; a line `=3` continues the line above."""
    rows = list[str]()
    for line in (line.strip(",;.") for line in lines):
        if rows and line.startswith("="):
            rows[-1] += line
        elif line:
            rows.append(line)
    if any("&" in row for row in rows):
        return AnswerShape("nothing", "")
    if len(rows) == 1:
        return _shape(rows[0], depth + 1)
    return AnswerShape("list", "", _parts(rows, depth), name)


def _related(text: str, depth: int) -> AnswerShape:
    """Return a relation's shape; an inequality in one variable is an interval or a union of two."""
    about = split_outside_brackets(text, _ABOUT)
    if len(about) == 2 and not _NAMED.fullmatch(about[0]):
        exact = parse_rational(about[0])
        if not about[0] or (exact is not None and not rounds_to(exact, about[1])):
            return AnswerShape("nothing", text)
        return _shape(about[0], depth + 1)
    if builder := _BUILDER.fullmatch(text):
        text = builder[1] or builder[2]
    spans = [_interval(half) for half in split_outside_brackets(text, re.compile("\u00abor\u00bb"))]
    names = {span[0] for span in spans if span}
    if len(names) != 1 or None in spans or len(spans) > 2:
        return AnswerShape("relation", text)
    shape = _shape("\\cup".join(span[1] for span in spans if span), depth + 1)
    return AnswerShape(shape.kind, shape.text, shape.parts, names.pop())


def _interval(text: str) -> tuple[str, str] | None:
    pieces = [piece.strip() for piece in _ORDER.split(text)]
    if len(pieces) == 3:
        _, sign, tail = pieces
        pieces = [*pieces, sign, ""] if _NAMED.fullmatch(tail) else ["", sign, *pieces]
    if len(pieces) != 5 or not _NAMED.fullmatch(pieces[2]):
        return None
    low, low_sign, name, high_sign, high = pieces
    upward = [sign.startswith(("<", "\\leq")) for sign in (low_sign, high_sign)]
    if not upward[0]:
        low, low_sign, high_sign, high = high, high_sign, low_sign, low
    if upward[0] != upward[1] or any(_UNKNOWN.search(end) for end in (low, high)):
        return None
    opens = "[" if low and low_sign in ("<=", ">=", "\\leq", "\\geq") else "("
    closes = "]" if high and high_sign in ("<=", ">=", "\\leq", "\\geq") else ")"
    return name, f"{opens}{low or '-' + INFINITY};{high or INFINITY}{closes}"


def _equated(text: str, name: str, depth: int) -> AnswerShape:
    sides = split_outside_brackets(text, _EQUALS)
    if len(sides) == 1:
        if _RATIO.search(text) and len(terms := text.split(":")) > 1:
            return AnswerShape("ratio", text, _parts(terms, depth))
        return AnswerShape("value", text, name=name, value=parse_measured(text))
    if len(sides) > MOST_PARTS or not all(sides) or sides_differ(sides):
        return AnswerShape("nothing", text)
    if (names := _NAMES.fullmatch(sides[0])) and len(sides) == 2:
        return _reordered(_COMMA.split(names[1]), _shape(sides[1], depth + 1))
    every = [parse_measured(side) for side in sides]
    if len({side.unit for side in every}) == len(sides) and all(side.unit for side in every):
        return AnswerShape("converted", text, _parts(sides, depth))
    labels = [side for side in sides if _NAMED.fullmatch(side) or side.startswith("\u00ab")]
    values = [side for side in sides if side not in labels] or sides[-1:]
    inner = _shape(values[-1], depth + 1)
    kind = "equation" if inner.kind == "value" and not labels else inner.kind
    return AnswerShape(kind, text, inner.parts, (labels or [name])[0], parse_measured(values[-1]))


def _reordered(names: Sequence[str], shape: AnswerShape) -> AnswerShape:
    """Return the shape of `(y,x)=(1,2)` with the values in the usual order of variables, x, y."""
    if len(names) != len(shape.parts):
        return shape
    order = sorted(range(len(names)), key=lambda each: _rank(names[each]))
    return AnswerShape(shape.kind, "", tuple(shape.parts[each] for each in order))


def _rank(name: str) -> tuple[int, str]:
    """Return a variable's sort key: alphabetical, but rho, theta, phi last and in this order."""
    return (_COORDINATES.index(name) if name in _COORDINATES else -1, name)


def _agree(target: str, answer: str, ask: Ask) -> bool:
    gold = parse_shape(target, "," in target and not _THOUSANDS.fullmatch(normalise_answer(target)))
    letter = stated_choice(gold.text) if _CHOICE.fullmatch(gold.text) else None
    if letter:
        return stated_choice(normalise_answer(answer)) == letter
    barred = _BARRED.search(answer) if gold.kind in ONE else None
    if barred and parse_rational(barred[1]) not in (None, parse_rational(gold.value.value)):
        answer = answer[: barred.start()]
    shape = parse_shape(answer, gold.kind == "list")
    return _same_shape(gold, shape, ask)


def _same_shape(gold: AnswerShape, answer: AnswerShape, ask: Ask) -> bool:
    answer = _only(answer, gold)
    if answer.kind == "nothing" or _other_name(gold, answer):
        return False
    if gold.text == answer.text != "":
        return True
    either = answer.kind == "list" and answer.text.count("\u00abor\u00bb") == len(answer.parts) - 1
    if gold.kind in ONE:
        return _same_one(gold, answer, ask) or (either and _one_number(gold, answer.parts))
    if answer.kind in ONE:
        region = gold.kind == "union" and re.search(r"\\setminus|\\mathbb|\\neq", answer.text)
        return bool(region) and ask(gold.text, answer.text)
    if either and _distinct(answer.parts):  # `x=1 or y=2`
        return False
    if gold.kind in ("list", "\\{\\}"):
        return _same_list(gold, answer, ask)
    if gold.kind == "union":
        return (answer.kind == "union" or either) and _matched(gold.parts, answer.parts, ask)
    elements = _by_name(answer.parts) if answer.kind == "list" else answer.parts
    return _kinds_agree(gold, answer) and _in_order(gold.parts, elements, ask)


def _one_number(gold: AnswerShape, shapes: Sequence[AnswerShape]) -> bool:
    """Return whether all shapes are the target's number in different forms: `9/4 or 2.25`."""
    return len({shape.text for shape in shapes}) == len(shapes) and all(
        shape.kind == "value" and same_value(gold.value, shape.value) is True for shape in shapes
    )


def _other_name(gold: AnswerShape, answer: AnswerShape) -> bool:
    """Return whether the answers are values of two different one-letter variables, as x and y."""
    names = {gold.name, answer.name}
    return len(names) == 2 and all(re.fullmatch("[a-z]", name) for name in names)


def _only(answer: AnswerShape, gold: AnswerShape) -> AnswerShape:
    """Return a set's only element, the side of `1 m = 100 cm` in gold's unit, or else `answer`."""
    if answer.kind == "converted":
        unit = gold.value.unit
        return next((shape for shape in answer.parts if shape.value.unit == unit), answer.parts[0])
    alone = answer.kind == "\\{\\}" != gold.kind and len(answer.parts) == 1
    return answer.parts[0] if alone else answer


def _same_list(gold: AnswerShape, answer: AnswerShape, ask: Ask) -> bool:
    """Return whether two lists or sets have equal values.

    Named values (`y = 3, x = 2`) are compared in the order of their names; sets in any order.
    """
    if answer.kind == "()" and gold.kind == "list" and len(gold.parts) > 2:  # not an interval (1,2)
        return _in_order(gold.parts, answer.parts, ask)
    if answer.kind not in ("list", "\\{\\}"):
        return False
    if _distinct(answer.parts) and not _distinct(gold.parts):
        return _in_order(gold.parts, _by_name(answer.parts), ask)
    return _matched(gold.parts, answer.parts, ask)


def _distinct(shapes: Sequence[AnswerShape]) -> bool:
    names = {shape.name for shape in shapes}
    return len(names) == len(shapes) > 1 and "" not in names


def _by_name(shapes: Sequence[AnswerShape]) -> Sequence[AnswerShape]:
    return sorted(shapes, key=lambda shape: _rank(shape.name)) if _distinct(shapes) else shapes


def _kinds_agree(gold: AnswerShape, answer: AnswerShape) -> bool:
    """Return whether two answers' kinds agree; a tuple or column vector may lack parentheses."""
    tuples = ("()", "list", "\\langle\\rangle", f"{len(gold.parts)}x1")
    alike = gold.kind in ("()", "\\langle\\rangle", tuples[3]) and answer.kind in tuples
    infinite = any(INFINITY in element.text for element in gold.parts)
    return gold.kind == answer.kind or (alike and not infinite)


def _in_order(gold: Sequence[AnswerShape], answers: Sequence[AnswerShape], ask: Ask) -> bool:
    return len(gold) == len(answers) and all(
        _same_shape(key, answer, ask) for key, answer in zip(gold, answers, strict=True)
    )


def _matched(gold: Sequence[AnswerShape], answers: Sequence[AnswerShape], ask: Ask) -> bool:
    if len(gold) != len(answers) or len(gold) > MOST_PARTS:
        return False
    same = [[_same_shape(key, answer, ask) for answer in answers] for key in gold]
    if len(same) < 2:
        return all(map(all, same))
    from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

    rows, columns = cast(Any, optimize).linear_sum_assignment(same, maximize=True)
    return all(same[int(row)][int(column)] for row, column in zip(rows, columns, strict=True))


def _same_one(gold: AnswerShape, answer: AnswerShape, ask: Ask) -> bool:
    if answer.kind not in ONE:
        return False
    if "relation" in (gold.kind, answer.kind):
        return gold.kind == answer.kind and ask(gold.text, answer.text)
    if gold.kind == "equation":
        return _same_equation(gold.text, answer.text, ask)
    if answer.kind == "equation" and gold.name:
        return bool(re.search("[A-Za-z]", gold.value.value)) and ask(gold.text, answer.text)
    if answer.kind == "equation" and answer.value.value == "0":
        return False
    equal = same_value(gold.value, answer.value)
    return ask(gold.value.value, answer.value.value) if equal is None else equal


def _same_equation(gold: str, answer: str, ask: Ask) -> bool:
    """Return whether two equations agree; if gold is linear and irreducible, no multiple does."""
    if answer.count("=") != 1:
        return False
    coefficients = [int(factor) if factor.isdigit() else 1 for factor in _COEFFICIENT.findall(gold)]
    if _LINEAR.fullmatch(gold) and gcd(*coefficients) == 1:
        return ask(_moved(gold), _moved(answer))
    return ask(gold, answer)


def _moved(equation: str) -> str:
    """Return the expression that an equation sets to zero: `a-(b)` of `a=b`."""
    lhs, _, rhs = equation.partition("=")
    return lhs if rhs == "0" else rhs if lhs == "0" else f"{lhs}-({rhs})"


def same_value(gold: Measured, answer: Measured) -> bool | None:
    """Return whether an answer's value equals the target's; None if only math-verify can decide."""
    if answer.words != gold.words and (answer.words or gold.scale != answer.scale):
        return False
    if units_contradict(gold, answer):
        return False
    if answer.unit == "deg" and not gold.unit and "\\pi" in gold.value:
        return False
    key, value = gold.value, answer.value
    if (key, gold.scale, gold.percent) == (value, answer.scale, answer.percent):
        return True
    if not _BASED.fullmatch(key):
        value = value.removesuffix("_{10}")
    if (number := parse_rational(key)) is not None and (read := parse_rational(value)) is not None:
        return same_number(gold, answer, (number * gold.scale, read * answer.scale))
    if gold.scale != answer.scale:
        return False
    return _same_text(key, value)


def _same_text(gold: str, answer: str) -> bool | None:
    if gold == answer:
        return True
    based = _BASED.fullmatch(gold), _BASED.fullmatch(answer)
    if based[0]:  # the question states the base, so the answer may omit it
        return answer == based[0][1] or bool(based[1] and based[0].groups() == based[1].groups())
    if "\u00ab" in gold.replace("\u00abdeg\u00bb", ""):
        return _letters(gold) == _letters(answer)
    return False if based[1] or _cannot_be(gold, answer) else None


def _letters(text: str) -> str:
    words = re.sub("[\u00ab\u00bb_ ]+", " ", text).strip().lower()
    return _ARTICLE.sub("", words, count=1).replace(" ", "").rstrip(".")


def _cannot_be(gold: str, answer: str) -> bool:
    """Return whether an answer is certainly wrong, so that math-verify need not decide."""
    if _SPACED.search(answer) or "\u00ab" in answer.replace("\u00abdeg\u00bb", ""):
        return True  # math-verify reads `7 10` as a product and ignores words
    if any(odd.search(answer) and not odd.search(gold) for odd in (_DANGLING, _FUNCTION)):
        return True  # an unfinished answer, or the question repeated
    if _FACTORED.fullmatch(gold):
        sums = len(_SUM.findall(gold)), len(_SUM.findall(answer))
        if not _FACTORED.fullmatch(answer) or sums[1] < sums[0]:
            return True
    # compare variable names here: math-verify does not distinguish r and R
    extra_names = set(_VARIABLE.sub("", answer)) - set(_VARIABLE.sub("", gold)) - {"e", "i"}
    return bool(extra_names) or not re.search(r"[0-9A-Za-z]", answer)


def stated_choice(text: str) -> str | None:
    """Return the option letter that an answer states, alone or before the option's text, or None.

    >>> [stated_choice(said) for said in ("(C) Plane", "option b", "(B) or (C)", "A) B) C)")]
    ['C', 'B', None, None]
    """
    plain = re.sub(r"[\u00ab\u00bb_]|\\(?=[{}])", " ", text).strip(" .{}")
    match = _STATED_CHOICE.fullmatch(_DENIED.sub("", " ".join(plain.split())))
    return None if match is None or _ANOTHER.match(match["more"]) else match[1].upper()
