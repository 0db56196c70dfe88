"""Look at whole numbers one by one: run a search, and the tests it can put to a number."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.rehearsal import number_theory as theory
from harness.rehearsal.scratch import OutOfReach, Scratch

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
            return theory.congruences(pairs, paper) or _product_of_moduli(pairs)
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
