"""Work a tree of operations out on scratch paper, exactly, with every step a chance to slip."""

import math
from collections.abc import Callable
from fractions import Fraction

from harness.rehearsal import number_theory as theory
from harness.rehearsal.scanning import Search, run_search
from harness.rehearsal.scratch import Number, OutOfReach, Scratch
from harness.rehearsal.trees import Node

MAX_BITS = 13_000
"""Longest power written out in full; larger ones are only ever reduced modulo something."""


def evaluate(node: Node, paper: Scratch) -> Number:
    """Return the value of a tree; raise `OutOfReach` where this worker's limits end it."""
    if node.operation == "number":
        return node.value
    if node.operation == "search":
        return _search(node, paper)
    paper.learnt(node.operation)
    if node.operation == "remainder":
        modulus = whole(evaluate(node.parts[1], paper))
        if modulus < 1:
            raise OutOfReach("a remainder needs a positive divisor")
        return remainder(node.parts[0], modulus, paper)
    values = [evaluate(part, paper) for part in node.parts]
    method = METHODS.get(node.operation)
    if method is None:
        raise OutOfReach(f"I do not know how to work out a {node.operation}")
    try:
        result = method(values, paper)
    except (ZeroDivisionError, IndexError) as error:
        raise OutOfReach(f"this {node.operation} makes no sense") from error
    if len(paper.lines) < 40:
        shown = ", ".join(_short(value) for value in values)
        paper.note(f"The {node.operation} of {shown} is {_short(result)}.")
    return result


def _search(node: Node, paper: Scratch) -> int:
    low, high, *conditions = node.parts
    named = zip(node.names[2:], conditions, strict=True)
    search = Search(
        wanted=node.names[0],
        joined=node.names[1],
        low=whole(evaluate(low, paper)),
        high=None if high.operation == "open" else whole(evaluate(high, paper)),
        conditions=tuple(
            (name, tuple(whole(evaluate(part, paper)) for part in values.parts))
            for name, values in named
        ),
    )
    return run_search(search, paper)


def remainder(node: Node, modulus: int, paper: Scratch) -> int:
    """Return a tree's value modulo m without ever writing out a large power."""
    if node.operation == "power":
        paper.learnt("power")
        base, exponent = node.parts[0], whole(evaluate(node.parts[1], paper))
        if base.operation == "number":
            return theory.power_remainder(whole(base.value), exponent, modulus, paper)
        return theory.power_remainder(remainder(base, modulus, paper), exponent, modulus, paper)
    if node.operation in ("sum", "difference", "product") and not paper.floats:
        parts: list[Number] = [remainder(part, modulus, paper) for part in node.parts]
        whole_part = METHODS[node.operation](parts, paper)
        return int(whole_part) % modulus
    value = whole(evaluate(node, paper))
    return int(paper.hold(value % modulus, 1)) % modulus


def whole(value: Number) -> int:
    """Return a number that has to be whole, or raise `OutOfReach`."""
    if value.denominator != 1:
        raise OutOfReach(f"{value} is not a whole number")
    return int(value)


def _short(value: Number) -> str:
    if value.numerator.bit_length() > 200:
        return "a very long number"
    return str(value)


def _digits(value: Number) -> int:
    return max(1, int(abs(value.numerator).bit_length() * 0.30103) + 1)


def _sum(values: list[Number], paper: Scratch) -> Number:
    total: Number = 0
    for value in values:
        total = paper.hold(total + value, _digits(value) / 3)
    return total


def _difference(values: list[Number], paper: Scratch) -> Number:
    return paper.hold(values[0] - values[1], _digits(values[1]) / 3)


def _product(values: list[Number], paper: Scratch) -> Number:
    total: Number = 1
    for value in values:
        if total.numerator.bit_length() + value.numerator.bit_length() > MAX_BITS:
            raise OutOfReach("the product is too long for me")
        total = paper.hold(total * value, min(_digits(total), 30) * min(_digits(value), 30) / 4)
    return total


def _quotient(values: list[Number], paper: Scratch) -> Number:
    return paper.hold(Fraction(values[0]) / Fraction(values[1]), _digits(values[0]) / 2)


def _power(values: list[Number], paper: Scratch) -> Number:
    base, exponent = Fraction(values[0]), whole(values[1])
    if exponent < 0:
        base, exponent = 1 / base, -exponent
    if max(base.numerator.bit_length(), base.denominator.bit_length()) * exponent > MAX_BITS:
        raise OutOfReach("that power is too long to write out")
    if paper.floats and base.denominator == 1 and exponent * _digits(base) < 300:
        return paper.hold(int(float(base) ** exponent), 1)
    return paper.hold(
        Fraction(int(base.numerator**exponent), int(base.denominator**exponent)), exponent / 2
    )


def _factorial(values: list[Number], paper: Scratch) -> Number:
    n = whole(values[0])
    if not 0 <= n <= 1000:
        raise OutOfReach("that factorial is too long to write out")
    return paper.hold(math.factorial(n), n / 4)


def _binomial(values: list[Number], paper: Scratch) -> Number:
    n, k = whole(values[0]), whole(values[1])
    if not 0 <= n <= 2000 or k < 0:
        raise OutOfReach("that choice is too large for me")
    return paper.hold(math.comb(n, k), 2 + min(k, max(n - k, 0)))


def _logarithm(values: list[Number], paper: Scratch) -> Number:
    if values[0] <= 0:
        raise OutOfReach("only positive numbers have a logarithm")
    return paper.hold(Fraction(str(round(math.log10(values[0]), 4))), 2)


def _digit_sum(values: list[Number], paper: Scratch) -> Number:
    base = whole(values[1]) if len(values) > 1 else 10
    digits = theory.in_base(abs(whole(values[0])), base)
    return paper.hold(sum(digits), len(digits) / 3)


def _written_in_base(values: list[Number], paper: Scratch) -> Number:
    digits = theory.in_base(whole(values[0]), whole(values[1]))
    if max(digits) > 9:
        raise OutOfReach("that base needs letters")
    return paper.hold(int("".join(map(str, digits))), len(digits))


def _read_from_base(values: list[Number], paper: Scratch) -> Number:
    base = whole(values[1])
    digits = [int(digit) for digit in str(abs(whole(values[0])))]
    if base < 2 or max(digits) >= base:
        raise OutOfReach("those digits do not exist in that base")
    return paper.hold(sum(d * base**i for i, d in enumerate(reversed(digits))), len(digits))


def _arithmetic_series(values: list[Number], paper: Scratch) -> Number:
    first, step, terms = values
    return paper.hold(Fraction(terms * (2 * first + (terms - 1) * step), 2), 4)


def _geometric_series(values: list[Number], paper: Scratch) -> Number:
    first, ratio, terms = values[0], values[1], whole(values[2])
    if not 0 <= terms <= 400:
        raise OutOfReach("that series is too long for me")
    total: Number = 0
    term: Number = first
    for _ in range(terms):
        total, term = total + term, term * ratio
    return paper.hold(total, 2 + terms / 2)


def _whole_numbers(
    method: Callable[[list[int], Scratch], int],
) -> Callable[[list[Number], Scratch], Number]:
    return lambda values, paper: method([whole(value) for value in values], paper)


def _congruences(values: list[int], paper: Scratch) -> int:
    return theory.congruences(list(zip(values[::2], values[1::2], strict=True)), paper)


def _odd_divisors(values: list[int], paper: Scratch) -> int:
    n = abs(values[0])
    while n and n % 2 == 0:
        n //= 2
    return theory.divisor_count(n, paper)


def _zeros(values: list[int], paper: Scratch) -> int:
    left, fives = values[0], 0
    while left > 0:
        left //= 5
        fives += left
    return int(paper.hold(fives, 3))


def _digit_product(n: int, paper: Scratch) -> int:
    digits = theory.in_base(abs(n), 10)
    return int(paper.hold(math.prod(digits), len(digits)))


METHODS: dict[str, Callable[[list[Number], Scratch], Number]] = {
    "sum": _sum,
    "difference": _difference,
    "product": _product,
    "quotient": _quotient,
    "floor quotient": lambda v, paper: paper.hold(v[0] // v[1], _digits(v[0]) / 2),
    "power": _power,
    "factorial": _factorial,
    "binomial": _binomial,
    "logarithm": _logarithm,
    "digit sum": _digit_sum,
    "digit count": lambda v, paper: paper.hold(
        len(theory.in_base(whole(v[0]), whole(v[1]) if len(v) > 1 else 10)), 1
    ),
    "base conversion": _written_in_base,
    "base reading": _read_from_base,
    "arithmetic series": _arithmetic_series,
    "geometric series": _geometric_series,
    "common divisor": _whole_numbers(theory.greatest_divisor),
    "common multiple": _whole_numbers(theory.least_multiple),
    "divisor count": _whole_numbers(lambda v, paper: theory.divisor_count(v[0], paper)),
    "divisor sum": _whole_numbers(lambda v, paper: theory.divisor_sum(v[0], paper)),
    "prime factor count": _whole_numbers(lambda v, paper: len(theory.factorise(v[0], paper))),
    "prime factor sum": _whole_numbers(lambda v, paper: sum(theory.factorise(v[0], paper))),
    "largest prime factor": _whole_numbers(lambda v, paper: max(theory.factorise(v[0], paper))),
    "smallest prime factor": _whole_numbers(lambda v, paper: min(theory.factorise(v[0], paper))),
    "odd divisor count": _whole_numbers(_odd_divisors),
    "factorial zeros": _whole_numbers(_zeros),
    "digit product": _whole_numbers(lambda v, paper: _digit_product(v[0], paper)),
    "reversal": lambda v, paper: paper.hold(int(str(abs(whole(v[0])))[::-1]), 1),
    "maximum": lambda v, paper: paper.hold(max(v), 1),
    "minimum": lambda v, paper: paper.hold(min(v), 1),
    "nth prime": _whole_numbers(lambda v, paper: theory.first_primes(v[0], paper)[-1]),
    "prime series": _whole_numbers(lambda v, paper: sum(theory.first_primes(v[0], paper))),
    "totient": _whole_numbers(lambda v, paper: theory.totient(v[0], paper)),
    "congruences": _whole_numbers(_congruences),
}
