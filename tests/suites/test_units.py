"""Units by name and symbol, what stands behind a number, and inequalities as intervals."""

import pytest

from podium.suites.latex import Measured, is_unit, normalise_unit, parse_measured, units_contradict
from podium.suites.latex import normalise_answer as plain
from podium.suites.math_equality import compare, parse_shape
from podium.suites.quantities import contradicts_itself
from podium.suites.rlpr import matches_reference


@pytest.mark.parametrize(
    ("written", "symbol"),
    [
        ("meters", "m"), ("km", "km"), ("kilometres", "km"), ("Volts", "V"), ("mins", "min"),
        ("kg m s^{-2}", "kgm/s^2"), ("m/s\u00b2", "m/s^2"), ("miles per hour", "mi/h"),
        ("mph", "mi/h"), ("cubic feet", "ft^3"), ("sq. in", "in^2"), ("\u2126", "\u03a9"),
        ("apples", "apples"), ("", ""),
    ],
)  # fmt: skip
def test_a_unit_has_one_spelling(written: str, symbol: str) -> None:
    assert normalise_unit(written) == symbol


def test_small_and_capital_letters_tell_known_units_apart_and_nothing_else() -> None:
    assert units_contradict(Measured("1", "mW"), Measured("1", "MW"))
    assert not units_contradict(Measured("1", "KM"), Measured("1", "km"))
    assert not units_contradict(Measured("1", "Apples"), Measured("1", "apples"))
    assert not is_unit("apples")


@pytest.mark.parametrize("counted", ["ways", "real solutions", "people", "times", "square units"])
def test_what_is_counted_may_be_left_out(counted: str) -> None:
    assert compare("5", rf"5 \text{{ {counted}}}").equal


@pytest.mark.parametrize(
    "words",
    [
        "or so",
        "maybe",
        "factorial",
        "millionths",
        "or more",
        "plus",
        "is wrong",
        "less",
        "remainder 2",
    ],
)
def test_words_that_change_a_number_stay(words: str) -> None:
    assert parse_measured(plain(rf"5 \text{{ {words}}}")).words == words
    assert not compare("5", rf"5 \text{{ {words}}}").equal


def test_a_word_for_a_scale_is_a_factor() -> None:
    assert compare(r"5 \text{ million}", "5,000,000").equal
    assert compare("60", r"5\text{ dozen}").equal
    assert not compare(r"5 \text{ million}", "5").equal
    assert not compare("5", r"5 \text{ million}").equal


def test_other_units_and_counted_things_contradict_a_unit() -> None:
    assert not compare(r"5 \text{ cm}", r"5 \text{ apples}").equal
    assert not compare(r"5 \text{ cm}", r"5\%").equal
    assert compare(r"5 \text{ apples}", "5").equal


@pytest.mark.parametrize(
    ("said", "contradicts"),
    [
        ("6=5", True), ("x=6=5", True), (r"\frac{6}{2}=4", True), ("1.5=2", True), ("5=x=6", True),
        ("x=5", False), ("2+3=5", False), ("f(2)=5", False), (r"\frac{6}{2}=3", False),
        (r"\frac{1}{3}=0.33", False), ("a=3, b=5", False), (r"0.5=50\%", False), ("5", False),
        (r"12 = 5 \pmod 7", False), (r"1 \text{ h} = 60 \text{ min}", False), (r"3 \le 5", False),
    ],
)  # fmt: skip
def test_only_plain_numbers_that_differ_contradict_each_other(said: str, contradicts: bool) -> None:
    assert contradicts_itself(said) is contradicts


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("x<5", r"(-\infty,5)"), (r"5 \le x", r"[5,\infty)"), (r"x \geqslant \frac{1}{2}",
        r"[\frac{1}{2},\infty)"), (r"7 > y \ge -3", "[-3,7)"), ("x\u22645", r"(-\infty,5]"),
        ("x<2 or x>3", r"(-\infty,2)\cup(3,\infty)"), ("x<2 or y>3", "relation"),
        ("x<y", "relation"), ("1<x>2", "relation"), ("x<1 or x=3", "relation"),
    ],
)  # fmt: skip
def test_an_inequality_in_one_variable_is_an_interval(written: str, made: str) -> None:
    shape = parse_shape(written)
    assert made in (shape.kind, shape.text.replace(";", ","))


@pytest.mark.parametrize(
    ("reference", "same", "other"),
    [
        ("9.81 m/s^2", ("9.81 m/s\u00b2", "9.81 m s\u207b\u00b2", r"9.81\ \mathrm{m\,s^{-2}}",
        "9.81 metres per second squared", "9.81"), ("9.81 m/s", "9.81 cm/s^2", "9.82 m/s^2")),
        ("1/3", (r"\frac13", r"\tfrac{1}{3}", "\u2153", r"0.\overline{3}", r"P = \frac13"),
        ("2/3", "3/1", "-1/3")),
        ("$50,000", ("US$50,000", "USD 50,000", r"\$50{,}000", "50 thousand dollars"),
        ("\u20ac50,000", "50,000 yen", "50,000 cents", "$50", "$50,000 million")),
        ("37 \u00b0C", ("37 degrees Celsius", r"37^\circ\text{C}"), ("37 K", "37 \u00b0F")),
        ("10 \u03a9", (r"10\,\Omega", "10 ohms"), ("10 megaohms", "10 V", "10 apples")),
        ("3.0e8 m/s", ("3 \u00d7 10\u2078 m/s", r"3\times10^8\,\text{m/s}"),
        ("3 \u00d7 10\u2077 m/s",)),
        ("5", ("5.", "x = 5"), ("5 hundred", r"5\,\text{thousand}", "5 dozen", "7 + 1 = 5")),
        ("\u03c0", (r"\pi", r"$\pi$"), ("2\u03c0", "3.1")),
        ("(B)", ("B, the second", "thus (B)", "B, not C"), ("(B), or else (A)", "B or C", "not B")),
        ("Ribosomes", ("ribosome", "The ribosomes"), ("Ribosomes or nuclei",)),
        ("x=3, y=4", ("y=4, x=3",), ("x=3 or y=4", "x=4, y=3")),
    ],
)  # fmt: skip
def test_a_reference_is_the_same_in_every_spelling(
    reference: str, same: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert [said for said in same if not matches_reference(reference, said)] == []
    assert [said for said in other if matches_reference(reference, said)] == []


@pytest.mark.parametrize(
    ("reference", "same", "other"),
    [
        ("45 minutes", ("0.75 hours", "3/4 h", "2700 s"), ("0.75 days", "45 h", "0.7 h")),
        ("0.5 mol", ("500 mmol",), ("500 mmol/L", "500 mol", "0.5 mmol")),
        ("2500 N", ("2.5 kN", r"2.5\,\mathrm{kN}"), ("2.5 kJ", "2.5 N", "2.5 MN")),
        ("3.2e-3 mol/L", ("3.2 mmol/L", "3.2 mM"), ("3.2 mol/L", "3.2e-3 g/L")),
        ("72 km/h", ("20 m/s",), ("20 km/h", "20 m")),
        ("9.81 m/s^2", ("981 cm/s^2",), ("981 cm/s", "9.81 cm/s^2")),
        ("5 m^2", ("50000 cm^2",), ("500 cm^2", "5 m^3")),
        ("1 g/cm^3", ("1000 kg/m^3", "1 kg/L"), ("1 kg/m^3",)),
        ("5 J", ("5 N m", r"5\,\mathrm{kg\,m^2/s^2}"), ("5 W", "5 V")),
        ("$5", ("500 cents",), ("500 \u20ac", "50 cents")),
        ("37 \u00b0C", ("37 degrees Celsius",), ("37 K", "310.15 K")),
        ("1 year", ("1 yr",), ("12 months",)),
        ("5 mW", ("0.005 W",), ("5 MW",)),
    ],
)  # fmt: skip
def test_a_quantity_in_another_unit_of_its_kind_is_converted(
    reference: str, same: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert [said for said in same if not matches_reference(reference, said)] == []
    assert [said for said in other if matches_reference(reference, said)] == []
