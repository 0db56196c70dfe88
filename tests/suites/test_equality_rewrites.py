"""What stays right however an answer is written, and what is wrong by one stroke.

Every answer of MATH-500 that is here (PODIUM_DATA names the folder), and answers drawn by
hypothesis: numbers, roots, tuples, intervals, lists, unions, expressions, with and without units.
"""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.harness.errors import UserError
from podium.suites.latex import normalise_answer, split_outside_brackets
from podium.suites.math500 import MATH500_ALL
from podium.suites.math_equality import compare, parse_shape
from podium.suites.quantities import parse_rational

DRAWN = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
)

Rewrite = Callable[[str], str]
REWRITES: dict[str, Rewrite] = {
    "itself": str,
    "thin spaces": lambda gold: re.sub(r"(?<=[a-z)}\d]) ?([+-]) ?(?=[\d\\a-z])", r"\\,\1\\;", gold),
    "spaces around": lambda gold: rf"\, {gold} \quad ",
    "maths signs": lambda gold: f"${gold}$" if "\\$" not in gold else gold,
    "large fractions": lambda gold: re.sub(r"\\[dt]?frac(?![a-z])", r"\\dfrac", gold),
    "small fractions": lambda gold: re.sub(r"\\[dt]?frac(?![a-z])", r"\\tfrac", gold),
    "slashes": lambda gold: re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", r"\1/\2", gold),
    "left and right": lambda gold: (
        re.sub(r"([\])])", r"\\right\1", re.sub(r"([\[(])", r"\\left\1", gold))
        if "\\left" not in gold and "\\text" not in gold
        else gold.replace("\\left", "").replace("\\right", "")
    ),
    "no text": lambda gold: re.sub(r"\\text\s*\{\s*(\w+)\s*\}", r"\1", gold),
    "roman text": lambda gold: gold.replace("\\text{", "\\mathrm{").replace("\\mbox{", "\\text{"),
    "wide text": lambda gold: gold.replace("\\text", "~\\text").replace("\\mbox", "\\,\\mbox"),
    "unicode": lambda gold: re.sub(
        r"\\(pi|infty|cup|pm|in)(?![a-z]) ?",
        lambda sign: dict(pi="π", infty="∞", cup="\u222a", pm="±", **{"in": "∈"})[sign[1]],
        gold,
    ).replace("-", "−"),
    "degree sign": lambda gold: gold.replace("^\\circ", "°"),
    "a full stop": lambda gold: f"{gold}.",
    "bold": lambda gold: f"**{gold}**",
}  # fmt: skip


def named(gold: str) -> str:
    """Return a value, or a list of roots, as that of x."""
    kind = parse_shape(gold).kind
    plain = kind in ("value", "list") and "=" not in gold and "x" not in gold
    return f"x = {gold}" if plain and re.search(r"\d", gold) else gold


def turned(gold: str) -> str:
    """Return a list or a set with its values in another order."""
    if parse_shape(gold).kind == "list" and "\\pm" not in gold:
        return ", ".join(
            reversed(split_outside_brackets(normalise_answer(gold), re.compile("[,;]")))
        )
    return gold


REWRITES |= {"a name in front": named, "another order": turned}


def in_decimals(gold: str) -> str:
    """Return a fraction as its exact decimal, or a whole number with a zero behind its point."""
    number = parse_rational(normalise_answer(gold))
    if number is None or 10**6 % number.denominator:
        return gold
    return f"{float(number):.6f}"


REWRITES["decimals"] = in_decimals

Near = Callable[[str], str | None]


def one_digit(gold: str) -> str | None:
    changed = re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), gold, count=1)
    return None if changed == gold else changed


def other_sign(gold: str) -> str | None:
    if parse_rational(normalise_answer(gold)) in (None, 0) or "%" in gold:
        return None
    return gold.lstrip("-") if gold.startswith("-") else f"-{gold}"


def other_bracket(gold: str) -> str | None:
    bare = re.sub(r"\\(?:left|right)\s*", "", gold)
    if not re.fullmatch(r"[(\[].*,.*[)\]]", bare):
        return None
    return ("[" if bare[0] == "(" else "(") + bare[1:]


def other_end(gold: str) -> str | None:
    bare = re.sub(r"\\(?:left|right)\s*", "", gold)
    if not re.fullmatch(r"[(\[].*,.*[)\]]", bare):
        return None
    return bare[:-1] + (")" if bare[-1] == "]" else "]")


def as_set(gold: str) -> str | None:
    return rf"\{{{gold[1:-1]}\}}" if re.fullmatch(r"\([^()]*,[^()]*\)", gold) else None


def swapped(gold: str) -> str | None:
    pair = re.fullmatch(r"\(([^(),]*),([^(),]*)\)", gold)
    if not pair or pair[1].strip() == pair[2].strip():
        return None
    return f"({pair[2]},{pair[1]})"


def scaled(gold: str) -> str | None:
    return rf"{gold}\,\text{{thousand}}" if parse_rational(normalise_answer(gold)) else None


def hedged(gold: str) -> str:
    return rf"{gold} \text{{ or }} 12345"


def opened(gold: str) -> str | None:
    return (
        rf"{gold}\ \text{{or more}}" if parse_rational(normalise_answer(gold)) is not None else None
    )


def other_unit(gold: str) -> str | None:
    if "\\circ" in gold:
        return re.sub(r"\^\\circ", r"\\,\\text{radians}", gold)
    changed = re.sub(r"cents|inches|\bcm\b|degrees", "hours", gold)
    return None if changed == gold else changed


def shorter(gold: str) -> str | None:
    parts = split_outside_brackets(normalise_answer(gold), re.compile("[,;]"))
    return ",".join(parts[:-1]) if parse_shape(gold).kind == "list" and len(parts) > 1 else None


NEAR: dict[str, Near] = {
    "one digit": one_digit, "sign": other_sign, "first bracket": other_bracket,
    "last bracket": other_end, "a set": as_set, "swapped": swapped, "a scale": scaled,
    "a hedge": hedged, "no bound": opened, "unit": other_unit, "a value too few": shorter,
}  # fmt: skip


@pytest.fixture(scope="module")
def golds() -> list[str]:
    try:
        return sorted({question.target or "" for question in MATH500_ALL.load()})
    except UserError:
        pytest.skip("the data of math500 is absent; name its folder in PODIUM_DATA")


@pytest.mark.parametrize("name", REWRITES)
def test_every_real_key_stays_right_when_it_is_rewritten(name: str, golds: list[str]) -> None:
    wrong = [gold for gold in golds if not compare(gold, REWRITES[name](gold)).equal]
    assert wrong == []


@pytest.mark.parametrize("name", NEAR)
def test_every_near_miss_of_a_real_key_is_wrong(name: str, golds: list[str]) -> None:
    missed = [(gold, NEAR[name](gold)) for gold in golds]
    assert [(gold, near) for gold, near in missed if near and compare(gold, near).equal] == []


# --- drawn keys -------------------------------------------------------------------------------

WHOLE = st.integers(-999, 999)
POSITIVE = st.integers(2, 97)
NUMBERS = st.one_of(
    WHOLE.map(str),
    st.builds(lambda a, b: f"{a}.{b}", st.integers(0, 99), st.integers(1, 999)),
    st.builds(lambda a, b: rf"\frac{{{a}}}{{{b}}}", POSITIVE, POSITIVE),
    st.builds(lambda a, b: rf"-\frac{{{a}}}{{{b}}}", POSITIVE, POSITIVE),
)
UNITS = st.sampled_from(("cm", "inches", "degrees", "cents"))
PLAIN = st.one_of(
    NUMBERS,
    st.builds(lambda a, b: rf"{a}\sqrt{{{b}}}", POSITIVE, st.sampled_from((2, 3, 5, 7, 11))),
    st.builds(lambda a: rf"{a}\pi", POSITIVE),
    st.builds(lambda a, b: f"{a} + {b}i", POSITIVE, POSITIVE),
    st.builds(lambda a, b: f"{a}k^2 - {b}k + 1", POSITIVE, POSITIVE),
    st.builds(lambda a, unit: rf"{a} \text{{ {unit}}}", POSITIVE, UNITS),
    st.builds(lambda a: rf"{a}^\circ", POSITIVE),
)  # fmt: skip
ENDS = st.tuples(WHOLE, POSITIVE).map(lambda ends: (ends[0], ends[0] + ends[1]))
BRACKETS = st.sampled_from(("()", "[]", "(]", "[)"))
HELD = st.one_of(
    st.builds(lambda a, b: f"({a}, {b})", WHOLE, WHOLE),
    st.builds(lambda a, b, c: f"({a}, {b}, {c})", NUMBERS, NUMBERS, NUMBERS),
    st.builds(lambda ends, held: f"{held[0]}{ends[0]},{ends[1]}{held[1]}", ENDS, BRACKETS),
    st.builds(lambda a: rf"(-\infty, {a}]", WHOLE),
    st.builds(lambda a, b: rf"(-\infty,{a}) \cup ({a + b},\infty)", WHOLE, POSITIVE),
    st.builds(lambda ends: f"{ends[0]}, {ends[1]}", ENDS),
    st.builds(lambda a, b: rf"{a} \pm \sqrt{{{b}}}", POSITIVE, st.sampled_from((2, 3, 5, 7, 11))),
)  # fmt: skip


@given(gold=st.one_of(PLAIN, HELD), name=st.sampled_from(sorted(REWRITES)))
@DRAWN
def test_a_drawn_key_stays_right_when_it_is_rewritten(gold: str, name: str) -> None:
    assert compare(gold, REWRITES[name](gold)).equal, REWRITES[name](gold)


@given(gold=st.one_of(PLAIN, HELD), name=st.sampled_from(sorted(NEAR)))
@DRAWN
def test_a_near_miss_of_a_drawn_key_is_wrong(gold: str, name: str) -> None:
    near = NEAR[name](gold)
    assert near is None or not compare(gold, near).equal, near


@given(gold=NUMBERS, said=NUMBERS)
@DRAWN
def test_two_drawn_numbers_are_equal_only_where_they_are(gold: str, said: str) -> None:
    same = parse_rational(gold) == parse_rational(said)
    assert compare(gold, said).equal is same
    assert compare(f"({gold}, 1)", f"({said}, 1)").equal is same
    assert compare(rf"{gold}\text{{ cm}}", rf"{said} \mathrm{{cm}}").equal is same


@given(
    st.text(max_size=60) | st.text("\\fracsqrtext{}()[],;=<>^_$%«»|±π .0123456789x", max_size=60)
)
@DRAWN
def test_no_text_breaks_the_comparison_and_each_is_equal_to_itself(text: str) -> None:
    assert compare(text, text).equal is bool(text.strip())
    compare("1,-2", text)
    compare("(2,4]", text)
    compare(r"\text{(C)}", text)
