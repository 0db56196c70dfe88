"""Calculations as trees, and their working out on scratch paper."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from harness.rehearsal.workers import Number, OutOfReach, Scratch

# § What a worker has understood of a calculation: a tree of named operations, and its infix
# § parser.
# §
# § Never `eval`: a small recursive-descent parser over atoms `#0`, `#1`, ... (numbers and
# § parts that
# § were understood earlier) and the operators + - * / ^ ! and parentheses.


@dataclass(frozen=True, slots=True)
class Node:
    """One operation on the results of others; a leaf (`number`) holds its value."""

    operation: str
    parts: tuple["Node", ...] = ()
    value: Fraction = Fraction(0)
    names: tuple[str, ...] = ()
    """Of a search: what is wanted, how divisors join, then one name per condition."""

    def size(self) -> int:
        """Return the number of operations in the tree: how much of the question it explains."""
        return (self.operation != "number") + sum(part.size() for part in self.parts)

    def show(self) -> str:
        """Return the calculation as people write it."""
        if self.operation == "number":
            return str(self.value)
        shown = [part.show() for part in self.parts]
        if self.operation in _INFIX.values():
            sign = next(sign for sign, name in _INFIX.items() if name == self.operation)
            return "(" + f" {sign} ".join(shown) + ")"
        return f"{self.operation}({', '.join(shown)})"


def number(value: int | Fraction | str) -> Node:
    """Return a leaf."""
    return Node("number", value=Fraction(value))


_INFIX = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "^": "power"}
_TOKEN = re.compile(r"#\d+|[-+*/^!()]")
MAX_DEPTH = 40


class NotInfix(ValueError):
    """The text is not one complete infix expression."""


def parse(text: str, atoms: list[Node]) -> Node:
    """Parse one infix expression over atoms; raise `NotInfix` when it is anything else."""
    tokens = _TOKEN.findall(text)
    if len("".join(tokens)) != len(re.sub(r"\s", "", text)):
        raise NotInfix(text)
    parser = _Parser(tokens, atoms)
    tree = parser.terms(0)
    if parser.at != len(tokens):
        raise NotInfix(text)
    return tree


@dataclass(slots=True)
class _Parser:
    tokens: list[str]
    atoms: list[Node]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise NotInfix("the expression ends early")
        self.at += 1
        return token

    def terms(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise NotInfix("too deeply nested")
        tree = self.factors(depth)
        while self.peek() in ("+", "-"):
            tree = Node(_INFIX[self.take()], (tree, self.factors(depth)))
        return tree

    def factors(self, depth: int) -> Node:
        tree = self.signed(depth)
        while self.peek() in ("*", "/") or self.peek() == "(":
            sign = "*" if self.peek() == "(" else self.take()
            tree = Node(_INFIX[sign], (tree, self.signed(depth)))
        return tree

    def signed(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise NotInfix("too deeply nested")
        if self.peek() == "-":
            self.take()
            return Node("difference", (number(0), self.signed(depth + 1)))
        base = self.primary(depth)
        if self.peek() == "^":
            self.take()
            return Node("power", (base, self.signed(depth + 1)))
        return base

    def primary(self, depth: int) -> Node:
        token = self.take()
        if token == "(":
            tree = self.terms(depth + 1)
            if self.take() != ")":
                raise NotInfix("a parenthesis is not closed")
        elif token.startswith("#"):
            tree = self.atoms[int(token[1:])]
        else:
            raise NotInfix(f"{token} where a number should be")
        while self.peek() == "!":
            self.take()
            tree = Node("factorial", (tree,))
        return tree


# § Whole-number methods that workers know, each working on scratch paper: plain, exact,
# § bounded.


def factorise(n: int, paper: Scratch) -> dict[int, int]:
    """Return the prime factors of n with exponents, by trial division."""
    if n < 1:
        raise OutOfReach("only positive numbers have prime factors")
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


def divisor_count(n: int, paper: Scratch) -> int:
    """Return how many positive divisors n has."""
    factors = factorise(n, paper)
    paper.note(f"{n} = {_shown(factors)}, so the exponents plus one are multiplied.")
    count = math.prod(power + 1 for power in factors.values())
    return int(paper.hold(count, 2 * len(factors) + sum(factors.values())))


def divisor_sum(n: int, paper: Scratch) -> int:
    """Return the sum of the positive divisors of n."""
    factors = factorise(n, paper)
    paper.note(f"{n} = {_shown(factors)}, so geometric sums are multiplied.")
    total = math.prod((p ** (k + 1) - 1) // (p - 1) for p, k in factors.items())
    return int(paper.hold(total, 3 * len(factors) + 2 * sum(factors.values())))


def totient(n: int, paper: Scratch) -> int:
    """Return how many numbers up to n are coprime to it."""
    factors = factorise(n, paper)
    value = n
    for prime in factors:
        value -= value // prime
    return int(paper.hold(value, 3 * len(factors)))


def _shown(factors: dict[int, int]) -> str:
    return " * ".join(f"{p}^{k}" if k > 1 else str(p) for p, k in factors.items()) or "1"


def greatest_divisor(numbers: Sequence[int], paper: Scratch) -> int:
    """Return the greatest common divisor, by Euclid's steps."""
    result = abs(numbers[0])
    for other in numbers[1:]:
        a, b, steps = result, abs(other), 0
        while b:
            a, b, steps = b, a % b, steps + 1
        result = int(paper.hold(a, 1 + steps))
        paper.note(f"After {steps} division steps the common divisor so far is {result}.")
    return result


def least_multiple(numbers: Sequence[int], paper: Scratch) -> int:
    """Return the least common multiple."""
    result = abs(numbers[0])
    for other in numbers[1:]:
        shared = math.gcd(result, other) or 1
        result = int(paper.hold(abs(result * other) // shared, 4))
        paper.note(f"The least common multiple so far is {result}.")
    return result


def power_remainder(base: int, exponent: int, modulus: int, paper: Scratch) -> int:
    """Return base^exponent mod modulus by repeated squaring, each square a chance to slip."""
    if exponent < 0 or modulus < 1 or exponent.bit_length() > 4000:
        raise OutOfReach("that power has no remainder I can find")
    if paper.floats:
        return _hasty_remainder(base, exponent, modulus)
    result, square = 1 % modulus, base % modulus
    for bit in reversed(bin(exponent)[2:]):
        if bit == "1":
            result = int(paper.hold(result * square % modulus, 0.5))
        square = square * square % modulus
        paper.slips(0)
    paper.note(f"Squaring step by step, {base}^{exponent} leaves {result} modulo {modulus}.")
    return result % modulus


def _hasty_remainder(base: int, exponent: int, modulus: int) -> int:
    """Compute the power in floating point first: right only while it fits in 53 bits."""
    try:
        return int(float(base) ** exponent % modulus)
    except OverflowError as error:
        raise OutOfReach("the power is too large for my calculator") from error


def congruences(pairs: Sequence[tuple[int, int]], paper: Scratch) -> int:
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


def in_base(n: int, base: int) -> list[int]:
    """Return the digits of n in a base, most significant first."""
    if base < 2 or n < 0 or n.bit_length() > 20_000:
        raise OutOfReach("that base conversion makes no sense to me")
    digits: list[int] = []
    while n:
        n, digit = divmod(n, base)
        digits.append(digit)
    return digits[::-1] or [0]


def is_prime(n: int) -> bool:
    """Say whether n is prime, by trial division (callers bound n)."""
    if n < 2 or n % 2 == 0:
        return n == 2
    return all(n % divisor for divisor in range(3, math.isqrt(n) + 1, 2))


def first_primes(many: int, paper: Scratch) -> list[int]:
    """Return the first primes, found one by one; the last may be a slip."""
    paper.search(12 * max(many, 1))
    found: list[int] = []
    at = 1
    while len(found) < max(many, 1):
        at += 1
        if is_prime(at):
            found.append(at)
    return [*found[:-1], int(paper.hold(found[-1], many / 4))]


# § Work a tree of operations out on scratch paper, exactly, with every step a chance to slip.


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
            return power_remainder(whole(base.value), exponent, modulus, paper)
        return power_remainder(remainder(base, modulus, paper), exponent, modulus, paper)
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
    digits = in_base(abs(whole(values[0])), base)
    return paper.hold(sum(digits), len(digits) / 3)


def _written_in_base(values: list[Number], paper: Scratch) -> Number:
    digits = in_base(whole(values[0]), whole(values[1]))
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
    return congruences(list(zip(values[::2], values[1::2], strict=True)), paper)


def _odd_divisors(values: list[int], paper: Scratch) -> int:
    n = abs(values[0])
    while n and n % 2 == 0:
        n //= 2
    return divisor_count(n, paper)


def _zeros(values: list[int], paper: Scratch) -> int:
    left, fives = values[0], 0
    while left > 0:
        left //= 5
        fives += left
    return int(paper.hold(fives, 3))


def _digit_product(n: int, paper: Scratch) -> int:
    digits = in_base(abs(n), 10)
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
        len(in_base(whole(v[0]), whole(v[1]) if len(v) > 1 else 10)), 1
    ),
    "base conversion": _written_in_base,
    "base reading": _read_from_base,
    "arithmetic series": _arithmetic_series,
    "geometric series": _geometric_series,
    "common divisor": _whole_numbers(greatest_divisor),
    "common multiple": _whole_numbers(least_multiple),
    "divisor count": _whole_numbers(lambda v, paper: divisor_count(v[0], paper)),
    "divisor sum": _whole_numbers(lambda v, paper: divisor_sum(v[0], paper)),
    "prime factor count": _whole_numbers(lambda v, paper: len(factorise(v[0], paper))),
    "prime factor sum": _whole_numbers(lambda v, paper: sum(factorise(v[0], paper))),
    "largest prime factor": _whole_numbers(lambda v, paper: max(factorise(v[0], paper))),
    "smallest prime factor": _whole_numbers(lambda v, paper: min(factorise(v[0], paper))),
    "odd divisor count": _whole_numbers(_odd_divisors),
    "factorial zeros": _whole_numbers(_zeros),
    "digit product": _whole_numbers(lambda v, paper: _digit_product(v[0], paper)),
    "reversal": lambda v, paper: paper.hold(int(str(abs(whole(v[0])))[::-1]), 1),
    "maximum": lambda v, paper: paper.hold(max(v), 1),
    "minimum": lambda v, paper: paper.hold(min(v), 1),
    "nth prime": _whole_numbers(lambda v, paper: first_primes(v[0], paper)[-1]),
    "prime series": _whole_numbers(lambda v, paper: sum(first_primes(v[0], paper))),
    "totient": _whole_numbers(lambda v, paper: totient(v[0], paper)),
    "congruences": _whole_numbers(_congruences),
}


# § Look at whole numbers one by one: run a search, and the tests it can put to a number.


Test = Callable[[int], bool]
Condition = tuple[str, Sequence[int]]
OPEN_END = 10**6


@dataclass(frozen=True, slots=True)
class Search:
    """A search over a range of whole numbers, all of them known by now."""

    wanted: str
    """`count`, `sum`, `least`, `greatest`."""
    joined: str
    """How several divisors combine: `all`, `any`, `none`, `one`, `first only`."""
    low: int
    high: int | None
    conditions: tuple[Condition, ...]


def tests(conditions: Sequence[Condition], joined: str, paper: Scratch) -> list[Test]:
    """Return one test per condition."""
    return [_test(name, values, joined, paper) for name, values in conditions]


def _test(name: str, values: Sequence[int], joined: str, paper: Scratch) -> Test:
    if name == "divisible":
        if not values or min(values) < 1:
            raise OutOfReach("nothing is divisible by that")
        return lambda n: _joins(joined, [n % value == 0 for value in values])
    if name in _PLAIN:
        return _PLAIN[name]
    first = values[0]
    if name == "remainder":
        if values[1] < 1:
            raise OutOfReach("a remainder needs a positive divisor")
        return lambda n: n % values[1] == first % values[1]
    if name == "divisor count":
        return lambda n: _divisors(n) == first
    valued: dict[str, Test] = {
        "digit sum": lambda n: sum(in_base(abs(n), 10)) == first,
        "coprime": lambda n: math.gcd(n, first) == 1,
        "square over": lambda n: n * n > first,
        "cube over": lambda n: n**3 > first,
        "power over": lambda n: first < 20 and n**first > values[1],
        "exponent over": lambda n: 1 < first < 10**6 and n < 400 and first**n > values[1],
        "contains": lambda n: str(first) in str(n),
    }
    if name not in valued:
        raise OutOfReach(f"I do not know how to check for a {name}")
    return valued[name]


def _joins(joined: str, divides: list[bool]) -> bool:
    if joined == "any":
        return any(divides)
    if joined == "none":
        return not any(divides)
    if joined == "one":
        return sum(divides) == 1
    if joined == "first only":
        return divides[0] and not any(divides[1:])
    return all(divides)


def _divisors(n: int) -> int:
    root = math.isqrt(n) if n > 0 else 0
    return sum(2 - (d * d == n) for d in range(1, root + 1) if n % d == 0)


_PLAIN: dict[str, Test] = {
    "prime": is_prime,
    "composite": lambda n: n > 3 and not is_prime(n),
    "square": lambda n: n >= 0 and math.isqrt(n) ** 2 == n,
    "cube": lambda n: n >= 0 and round(n ** (1 / 3)) ** 3 == n,
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
    "palindrome": lambda n: str(n) == str(n)[::-1],
}


def matches(numbers: Sequence[int], wanted: Sequence[Test]) -> Iterator[int]:
    """Yield the numbers that pass every test."""
    return (n for n in numbers if all(test(n) for test in wanted))


def run_search(search: Search, paper: Scratch) -> int:
    """Look at the numbers one by one; raise `OutOfReach` when there are too many to look at."""
    paper.learnt("search")
    for name, _ in search.conditions:
        paper.learnt(name)
    if search.high is None and search.wanted == "least" and _only_remainders(search.conditions):
        pairs = [
            (values[0], values[1]) for name, values in search.conditions if name == "remainder"
        ]
        pairs += [
            (0, m) for name, values in search.conditions if name == "divisible" for m in values
        ]
        if all(modulus > 0 for _, modulus in pairs) and search.low <= 1:
            return congruences(pairs, paper) or _product_of_moduli(pairs)
    return _scan(search, paper)


def _only_remainders(conditions: Sequence[Condition]) -> bool:
    names = [name for name, _ in conditions]
    return "remainder" in names and all(name in ("remainder", "divisible") for name in names)


def _product_of_moduli(pairs: Sequence[tuple[int, int]]) -> int:
    product = 1
    for _, modulus in pairs:
        product *= modulus
    return product


def _scan(search: Search, paper: Scratch) -> int:
    low, conditions = search.low, search.conditions
    high = OPEN_END if search.high is None else search.high
    wanted = tests(conditions, search.joined, paper)
    if search.wanted == "least":
        found = next(matches(range(low, min(high, low + paper.reach) + 1), wanted), None)
        return _landed(found, conditions, paper)
    paper.search(high - low + 1)
    if search.wanted == "greatest":
        found = next(matches(range(high, low - 1, -1), wanted), None)
        return _landed(found, conditions, paper)
    hits = list(matches(range(low, high + 1), wanted))
    paper.note(f"Going through {low} to {high}: {', '.join(map(str, hits[:6]))}, and so on.")
    result = len(hits) if search.wanted == "count" else sum(hits)
    slow = any(name not in ("divisible", "even", "odd", "square") for name, _ in conditions)
    cost = (len(hits) / 4 if slow else 3) + (len(hits) / 8 if search.wanted == "sum" else 0)
    return int(paper.hold(result, cost + 2 * len(conditions)))


def _landed(found: int | None, conditions: Sequence[object], paper: Scratch) -> int:
    if found is None:
        raise OutOfReach("I looked as far as I could and found none")
    paper.note(f"{found} is the one that meets every condition.")
    return int(paper.hold(found, 3 + 2 * len(conditions)))
