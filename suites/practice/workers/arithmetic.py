"""Calculations as trees of operations, and their evaluation by a worker that can make errors."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from podium.suites.practice.workers.workers import Number, OutOfReach, Scratch


def _operator(name: str) -> "Callable[[Node, Node | int], Node]":
    def joined(left: "Node", right: "Node | int") -> "Node":
        return Node(name, (left, number(right) if isinstance(right, int) else right))

    return joined


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a calculation: an operation on other nodes; a leaf (`number`) has a value."""

    operation: str
    parts: tuple["Node", ...] = ()
    value: Fraction = Fraction(0)
    names: tuple[str, ...] = ()
    """For the operation `search`: what is wanted (`count`, `least` ...), how divisors are joined
    (`any`, `none` ...), then one name per condition."""

    __add__ = _operator("sum")
    __sub__ = _operator("difference")
    __mul__ = _operator("product")
    __truediv__ = _operator("quotient")
    __pow__ = _operator("power")

    def size(self) -> int:
        """Return the number of operations in the tree, a measure of how much it explains."""
        return (self.operation != "number") + sum(part.size() for part in self.parts)

    def show(self) -> str:
        """Return the calculation as people write it."""
        if self.operation == "number":
            return str(self.value)
        shown = [part.show() for part in self.parts]
        sign = next((sign for sign, name in _INFIX.items() if name == self.operation), None)
        return f"({f' {sign} '.join(shown)})" if sign else f"{self.operation}({', '.join(shown)})"


def number(value: int | Fraction | str) -> Node:
    """Return a node for a plain number, a leaf of a calculation."""
    return Node("number", value=Fraction(value))


_INFIX = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "^": "power"}
_TOKEN = re.compile(r"#\d+|[-+*/^!()]")
MAX_DEPTH = 40


class NotInfix(ValueError):
    """Raised if a text is not one complete infix expression, such as `#0 + #1`."""


def parse(text: str, atoms: list[Node]) -> Node:
    """Parse an infix expression whose marks `#0`, `#1` ... stand for `atoms`; else NotInfix."""
    tokens = _TOKEN.findall(text)
    if len("".join(tokens)) != len(re.sub(r"\s", "", text)):
        raise NotInfix(text)
    parser = _Parser([*tokens, ""], atoms)
    tree = parser.terms(0)
    if parser.tokens != [""]:
        raise NotInfix(text)
    return tree


@dataclass(slots=True)
class _Parser:
    tokens: list[str]  # what is left to read; the empty one is the end
    atoms: list[Node]

    def taken(self, signs: str) -> str:
        return self.tokens.pop(0) if self.tokens[0] and self.tokens[0] in signs else ""

    def terms(self, depth: int) -> Node:
        tree = self.factors(depth)
        while sign := self.taken("+-"):
            tree = Node(_INFIX[sign], (tree, self.factors(depth)))
        return tree

    def factors(self, depth: int) -> Node:
        tree = self.signed(depth)
        while (sign := self.taken("*/")) or self.tokens[0] == "(":
            tree = Node(_INFIX[sign or "*"], (tree, self.signed(depth)))
        return tree

    def signed(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise NotInfix("too deeply nested")
        if self.taken("-"):
            return Node("difference", (number(0), self.signed(depth + 1)))
        base = self.primary(depth)
        return Node("power", (base, self.signed(depth + 1))) if self.taken("^") else base

    def primary(self, depth: int) -> Node:
        token = self.tokens.pop(0)
        if token == "(":
            tree = self.terms(depth + 1)
            if not self.taken(")"):
                raise NotInfix("a parenthesis is not closed")
        elif token.startswith("#"):
            tree = self.atoms[int(token[1:])]
        else:
            raise NotInfix(f"{token or 'the end'} where a number should be")
        while self.taken("!"):
            tree = Node("factorial", (tree,))
        return tree


def _factorise(n: int, paper: Scratch) -> dict[int, int]:
    """Return prime factor -> exponent of n, by trial division; OutOfReach if that is too long."""
    _need(n >= 1, "only positive numbers have prime factors")
    paper.search(min(math.isqrt(n), 10**9))
    factors: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors[divisor] = factors.get(divisor, 0) + 1
            n //= divisor
        divisor += 1 if divisor == 2 else 2
    if n > 1:
        factors[n] = factors.get(n, 0) + 1
    return factors


def _divisor_count(n: int, paper: Scratch) -> int:
    factors = _noted_factors(n, paper, "the exponents plus one are multiplied")
    divisors = math.prod(power + 1 for power in factors.values())
    return int(paper.hold(divisors, 2 * len(factors) + sum(factors.values())))


def _divisor_sum(n: int, paper: Scratch) -> int:
    factors = _noted_factors(n, paper, "geometric sums are multiplied")
    total = math.prod((p ** (k + 1) - 1) // (p - 1) for p, k in factors.items())
    return int(paper.hold(total, 3 * len(factors) + 2 * sum(factors.values())))


def _noted_factors(n: int, paper: Scratch, hence: str) -> dict[int, int]:
    factors = _factorise(n, paper)
    shown = " * ".join(f"{p}^{k}" if k > 1 else str(p) for p, k in factors.items()) or "1"
    paper.note(f"{n} = {shown}, so {hence}.")
    return factors


def _greatest_divisor(numbers: Sequence[int], paper: Scratch) -> int:
    """Return the greatest common divisor of numbers by Euclid's steps, each may go wrong."""
    result = abs(numbers[0])
    for other in numbers[1:]:
        a, b, steps = result, abs(other), 0
        while b:
            a, b, steps = b, a % b, steps + 1
        result = int(paper.hold(a, 1 + steps))
        paper.note(f"After {steps} division steps the common divisor so far is {result}.")
    return result


def _least_multiple(numbers: Sequence[int], paper: Scratch) -> int:
    result = abs(numbers[0])
    for other in numbers[1:]:
        shared = math.gcd(result, other) or 1
        result = int(paper.hold(abs(result * other) // shared, 4))
        paper.note(f"The least common multiple so far is {result}.")
    return result


def _power_remainder(base: int, exponent: int, modulus: int, paper: Scratch) -> int:
    """Return base^exponent mod modulus by repeated squaring, in which each product may go wrong."""
    if exponent < 0 or modulus < 1 or exponent.bit_length() > 4000:
        raise OutOfReach("that power has no remainder I can find")
    if paper.worker.floats:  # the power first: right only while it fits in 53 bits
        try:
            return int(float(base) ** exponent % modulus)
        except OverflowError as error:
            raise OutOfReach("the power is too large for my calculator") from error
    result, square = 1 % modulus, base % modulus
    for bit in reversed(bin(exponent)[2:]):
        if bit == "1":
            result = int(paper.hold(result * square % modulus, 0.5))
        square = square * square % modulus
        paper.slips(0)
    paper.note(f"Squaring step by step, {base}^{exponent} leaves {result} modulo {modulus}.")
    return result % modulus


def _congruences(pairs: Sequence[tuple[int, int]], paper: Scratch) -> int:
    """Return the least x >= 0 with x = r (mod m) for every (r, m), by sieving."""
    value, step, looked = pairs[0][0] % pairs[0][1], pairs[0][1], 0
    for remainder, modulus in pairs[1:]:
        tries = 0
        while value % modulus != remainder % modulus:
            value, tries = value + step, tries + 1
            if tries > modulus:
                raise OutOfReach("these congruences contradict one another")
        looked += tries
        step = math.lcm(step, modulus)
        paper.note(f"Numbers {value}, {value + step}, ... satisfy the conditions so far.")
    paper.search(looked)
    return int(paper.hold(value, 2 * len(pairs) + looked / 4))


def _in_base(n: int, base: int) -> list[int]:
    possible = base >= 2 and n >= 0 and n.bit_length() <= 20_000
    _need(possible, "that base conversion makes no sense to me")
    digits: list[int] = []
    while n:
        n, digit = divmod(n, base)
        digits.append(digit)
    return digits[::-1] or [0]


def _need(met: bool, otherwise: str) -> None:
    """Raise OutOfReach (a worker's limit) with the text `otherwise` if a condition is not met."""
    if not met:
        raise OutOfReach(otherwise)


def _is_prime(n: int) -> bool:
    if n < 2 or n % 2 == 0:
        return n == 2
    return all(n % divisor for divisor in range(3, math.isqrt(n) + 1, 2))


MAX_BITS = 13_000
"""Maximum bits of a power or product that is written out; longer powers need a modulus."""


def evaluate(node: Node, paper: Scratch) -> Number:
    """Return the value of a calculation; OutOfReach if it passes the limits of paper's worker."""
    if node.operation == "number":
        return node.value
    if node.operation == "search":
        return _search(node, paper)
    paper.learnt(node.operation)
    if node.operation == "remainder":
        modulus = _whole(evaluate(node.parts[1], paper))
        _need(modulus >= 1, "a remainder needs a positive divisor")
        return remainder(node.parts[0], modulus, paper)
    values = [evaluate(part, paper) for part in node.parts]
    method = METHODS.get(node.operation)
    if method is None:
        raise OutOfReach(f"I do not know how to work out a {node.operation}")
    try:
        result = method(values, paper)
    except (ZeroDivisionError, IndexError, ValueError) as error:
        raise OutOfReach(f"this {node.operation} makes no sense") from error
    if len(paper.lines) < 40:
        shown = ", ".join(_short(value) for value in values)
        paper.note(f"The {node.operation} of {shown} is {_short(result)}.")
    return result


def remainder(node: Node, modulus: int, paper: Scratch) -> int:
    """Return a calculation's value modulo `modulus`, without writing out a large power."""
    if node.operation == "power":
        paper.learnt("power")
        base, exponent = node.parts[0], _whole(evaluate(node.parts[1], paper))
        if base.operation == "number":
            return _power_remainder(_whole(base.value), exponent, modulus, paper)
        return _power_remainder(remainder(base, modulus, paper), exponent, modulus, paper)
    if node.operation in ("sum", "difference", "product") and not paper.worker.floats:
        parts: list[Number] = [remainder(part, modulus, paper) for part in node.parts]
        whole_part = METHODS[node.operation](parts, paper)
        return int(whole_part) % modulus
    value = _whole(evaluate(node, paper))
    return int(paper.hold(value % modulus, 1)) % modulus


def _whole(value: Number) -> int:
    """Return a whole number as int; OutOfReach (a worker's limit) if the number is not whole."""
    if value.denominator != 1:
        raise OutOfReach(f"{value} is not a whole number")
    return int(value)


def _short(value: Number) -> str:
    return "a very long number" if value.numerator.bit_length() > 200 else str(value)


def _digits(value: Number) -> int:
    return max(1, int(abs(value.numerator).bit_length() * 0.30103) + 1)


def _sum(values: list[Number], paper: Scratch) -> Number:
    total: Number = 0
    for value in values:
        total = paper.hold(total + value, _digits(value) / 3)
    return total


def _product(values: list[Number], paper: Scratch) -> Number:
    total: Number = 1
    for value in values:
        bits = total.numerator.bit_length() + value.numerator.bit_length()
        _need(bits <= MAX_BITS, "the product is too long for me")
        total = paper.hold(total * value, min(_digits(total), 30) * min(_digits(value), 30) / 4)
    return total


def _power(values: list[Number], paper: Scratch) -> Number:
    base, exponent = Fraction(values[0]), _whole(values[1])
    if exponent < 0:
        base, exponent = 1 / base, -exponent
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) * exponent
    _need(bits <= MAX_BITS, "that power is too long to write out")
    if paper.worker.floats and base.denominator == 1 and exponent * _digits(base) < 300:
        return paper.hold(int(float(base) ** exponent), 1)
    return paper.hold(base**exponent, exponent / 2)


def _factorial(values: list[Number], paper: Scratch) -> Number:
    n = _whole(values[0])
    _need(0 <= n <= 1000, "that factorial is too long to write out")
    return paper.hold(math.factorial(n), n / 4)


def _binomial(values: list[Number], paper: Scratch) -> Number:
    n, k = _whole(values[0]), _whole(values[1])
    _need(0 <= n <= 2000 and k >= 0, "that choice is too large for me")
    return paper.hold(math.comb(n, k), 2 + min(k, max(n - k, 0)))


def _logarithm(values: list[Number], paper: Scratch) -> Number:
    _need(values[0] > 0, "only positive numbers have a logarithm")
    return paper.hold(Fraction(str(round(math.log10(values[0]), 4))), 2)


def _digit_sum(values: list[int], paper: Scratch) -> int:
    digits = _in_base(abs(values[0]), values[1] if len(values) > 1 else 10)
    return int(paper.hold(sum(digits), len(digits) / 3))


def _written_in_base(values: list[Number], paper: Scratch) -> Number:
    digits = _in_base(_whole(values[0]), _whole(values[1]))
    _need(max(digits) <= 9, "that base needs letters")
    return paper.hold(int("".join(map(str, digits))), len(digits))


def _read_from_base(values: list[Number], paper: Scratch) -> Number:
    base = _whole(values[1])
    digits = [int(digit) for digit in str(abs(_whole(values[0])))]
    _need(base >= 2 and max(digits) < base, "those digits do not exist in that base")
    return paper.hold(sum(d * base**i for i, d in enumerate(reversed(digits))), len(digits))


def _arithmetic_series(values: list[Number], paper: Scratch) -> Number:
    first, step, terms = values
    return paper.hold(Fraction(terms * (2 * first + (terms - 1) * step), 2), 4)


def _geometric_series(values: list[Number], paper: Scratch) -> Number:
    first, ratio, terms = values[0], values[1], _whole(values[2])
    _need(0 <= terms <= 400, "that series is too long for me")
    return paper.hold(sum(first * ratio**power for power in range(terms)), 2 + terms / 2)


def _whole_numbers(method: Callable[[list[int], Scratch], int]) -> "Method":
    return lambda values, paper: method([_whole(value) for value in values], paper)


Method = Callable[[list[Number], Scratch], Number]
METHODS: dict[str, Method] = {
    "sum": _sum,
    "difference": lambda v, paper: paper.hold(v[0] - v[1], _digits(v[1]) / 3),
    "product": _product,
    "quotient": lambda v, paper: paper.hold(Fraction(v[0]) / v[1], _digits(v[0]) / 2),
    "power": _power,
    "factorial": _factorial,
    "binomial": _binomial,
    "logarithm": _logarithm,
    "digit sum": _whole_numbers(_digit_sum),
    "base conversion": _written_in_base,
    "base reading": _read_from_base,
    "arithmetic series": _arithmetic_series,
    "geometric series": _geometric_series,
    "common divisor": _whole_numbers(_greatest_divisor),
    "common multiple": _whole_numbers(_least_multiple),
    "divisor count": _whole_numbers(lambda v, paper: _divisor_count(v[0], paper)),
    "divisor sum": _whole_numbers(lambda v, paper: _divisor_sum(v[0], paper)),
    "prime factor sum": _whole_numbers(lambda v, paper: sum(_factorise(v[0], paper))),
    "largest prime factor": _whole_numbers(lambda v, paper: max(_factorise(v[0], paper))),
    "odd divisor count": _whole_numbers(  # those of what is left without its twos
        lambda v, paper: _divisor_count(abs(v[0]) // max(1, v[0] & -v[0]), paper)
    ),
}


Test = Callable[[int], bool]
NamedTest = tuple[str, Test]
OPEN_END = 10**6


def _search(node: Node, paper: Scratch) -> int:
    """Return what a search over whole numbers gives; OutOfReach if they are too many to try."""
    (wanted, joined, *names), (first, last, *values) = node.names, node.parts
    low = _whole(evaluate(first, paper))
    high = None if last.operation == "open" else _whole(evaluate(last, paper))
    conditions = [
        (name, tuple(_whole(evaluate(part, paper)) for part in one.parts))
        for name, one in zip(names, values, strict=True)
    ]
    paper.learnt("search")
    for name in names:
        paper.learnt(name)
    sieved = "remainder" in names and set(names) <= {"remainder", "divisible"}
    if high is None and wanted == "least" and sieved:
        pairs = [(given[0], given[1]) for name, given in conditions if name == "remainder"]
        pairs += [(0, m) for name, given in conditions if name == "divisible" for m in given]
        if all(modulus > 0 for _, modulus in pairs) and low <= 1:
            return _congruences(pairs, paper) or math.prod(modulus for _, modulus in pairs)
    ends = (low, OPEN_END if high is None else high)
    return _scan(wanted, ends, [(one[0], _test(*one, joined)) for one in conditions], paper)


def _test(name: str, values: Sequence[int], joined: str) -> Test:
    if name == "divisible":
        _need(bool(values) and min(values) >= 1, "nothing is divisible by that")
        return lambda n: _JOINS[joined]([n % value == 0 for value in values])
    if name in _PLAIN:
        return _PLAIN[name]
    first = values[0]
    if name == "remainder":
        _need(values[1] >= 1, "a remainder needs a positive divisor")
        return lambda n: n % values[1] == first % values[1]
    valued: dict[str, Test] = {
        "divisor count": lambda n: _divisors(n) == first,
        "digit sum": lambda n: sum(_in_base(abs(n), 10)) == first,
    }
    _need(name in valued, f"I do not know how to check for a {name}")
    return valued[name]


_JOINS: dict[str, Callable[[list[bool]], bool]] = {
    "any": any,
    "none": lambda divides: not any(divides),
    "one": lambda divides: sum(divides) == 1,
    "all": all,
}


def _divisors(n: int) -> int:
    root = math.isqrt(n) if n > 0 else 0
    return sum(2 - (d * d == n) for d in range(1, root + 1) if n % d == 0)


_PLAIN: dict[str, Test] = {
    "prime": _is_prime,
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
}


def _scan(wanted: str, ends: tuple[int, int], tests: Sequence[NamedTest], paper: Scratch) -> int:
    low, high = ends
    if wanted == "least":
        numbers = range(low, min(high, low + paper.worker.reach) + 1)
        found = next((n for n in numbers if all(test(n) for _, test in tests)), None)
        if found is None:
            raise OutOfReach("I looked as far as I could and found none")
        paper.note(f"{found} is the one that meets every condition.")
        return int(paper.hold(found, 3 + 2 * len(tests)))
    paper.search(high - low + 1)
    hits = [n for n in range(low, high + 1) if all(test(n) for _, test in tests)]
    paper.note(f"Going through {low} to {high}: {', '.join(map(str, hits[:6]))}, and so on.")
    result = len(hits) if wanted == "count" else sum(hits)
    slow = any(name not in ("divisible", "even", "odd", "square") for name, _ in tests)
    cost = (len(hits) / 4 if slow else 3) + (len(hits) / 8 if wanted == "sum" else 0)
    return int(paper.hold(result, cost + 2 * len(tests)))
