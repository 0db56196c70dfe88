"""Look at whole numbers one by one: the tests a searching worker can put to a number."""

import math
from collections.abc import Callable, Iterator, Sequence

from harness.rehearsal import number_theory as theory
from harness.rehearsal.scratch import OutOfReach, Scratch

Test = Callable[[int], bool]
Condition = tuple[str, Sequence[int]]


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
        "digit sum": lambda n: sum(theory.in_base(abs(n), 10)) == first,
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
    "prime": theory.is_prime,
    "composite": lambda n: n > 3 and not theory.is_prime(n),
    "square": lambda n: n >= 0 and math.isqrt(n) ** 2 == n,
    "cube": lambda n: n >= 0 and round(n ** (1 / 3)) ** 3 == n,
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
    "palindrome": lambda n: str(n) == str(n)[::-1],
}


def matches(numbers: Sequence[int], wanted: Sequence[Test]) -> Iterator[int]:
    """Yield the numbers that pass every test."""
    return (n for n in numbers if all(test(n) for test in wanted))
