"""Problems of `practice-code` about single integers, grids and intervals."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from suites.practice import Draft
from suites.practice_code_problem import Problem, Shape, draft
from suites.practice_integer_numbers import digit_sum, divisors, in_base, is_prime

OneNumber = tuple[str, str, Shape, int, Callable[[int], Any]]
"""Method, what is wanted of n, shape of the result, largest n of a test, reference."""

Grid = list[list[int]]
AboutGrid = tuple[str, str, Shape, Callable[[Random], tuple[Grid]], Callable[[Grid], Any]]
AboutIntervals = tuple[str, str, Shape, Callable[[Grid], Any]]


def fibonacci(n: int, modulus: int) -> int:
    """Return the n-th Fibonacci number modulo a number, with F(0) = 0 and F(1) = 1."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % modulus
    return a % modulus


def collatz(n: int) -> int:
    """Return the number of Collatz steps until 1."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def merge(intervals: Sequence[Sequence[int]]) -> Grid:
    """Return the union of closed intervals, as sorted disjoint intervals."""
    merged: Grid = []
    for low, high in sorted((low, high) for low, high in intervals):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return merged


def one_number(rng: Random) -> Draft | None:
    """Set a problem about one integer n."""
    m, base = rng.randint(7, 2000), rng.randint(3, 9)
    entries: tuple[OneNumber, ...] = (
        ("countPrimes", "Count the primes that are strictly less than n.", "number", 900,
         lambda n: sum(map(is_prime, range(n)))),
        ("fibonacciModulo", f"Find the n-th Fibonacci number modulo {m}, where F(0) = 0, F(1) = 1 "
         "and F(k) = F(k - 1) + F(k - 2).", "number", 3000, lambda n: fibonacci(n, m)),
        ("toBinary", "Write n in binary, without leading zeros.", "text", 5000, lambda n: f"{n:b}"),
        ("toBase", f"Write n in base {base}, without leading zeros.", "text", 5000,
         lambda n: in_base(n, base)),
        ("digitSum", "Find the sum of the decimal digits of n.", "number", 10**9, digit_sum),
        ("countDivisors", "Count the positive divisors of n.", "number", 2000,
         lambda n: len(divisors(n))),
        ("collatzSteps", "While n is not 1, replace it by n / 2 if it is even and by 3n + 1 if it "
         "is odd. How many replacements are made?", "number", 400, collatz),
        ("powerModulo", f"Find the remainder of {base} to the power n on division by {m}.",
         "number", 10**9, lambda n: pow(base, n, m)),
        ("countOnes", "How many ones are there in the binary representation of n?", "number",
         10**6, lambda n: n.bit_count()),
        ("primeDigitSums", "Count the primes below n whose decimal digits add up to a multiple of "
         f"{base}.", "number", 900,
         lambda n: sum(is_prime(p) and digit_sum(p) % base == 0 for p in range(n))),
    )  # fmt: skip
    method, wanted, returns, most, solve = rng.choice(entries)
    problem = Problem(
        key=f"{method} {wanted}",
        statement=f"You are given a positive integer n (at most {most}). {wanted}",
        method=method,
        inputs=(("n", "number"),),
        returns=returns,
        solve=solve,
        draw=lambda rng: (rng.choice((rng.randint(1, 30), rng.randint(1, most))),),
    )
    return draft(rng, problem)


def _square(rng: Random) -> tuple[Grid]:
    size = rng.randint(1, 5)
    return ([[rng.randint(-9, 20) for _ in range(size)] for _ in range(size)],)


def _oblong(rng: Random) -> tuple[Grid]:
    rows, columns = rng.randint(1, 5), rng.randint(1, 5)
    return ([[rng.randint(-9, 20) for _ in range(columns)] for _ in range(rows)],)


def grid(rng: Random) -> Draft | None:
    """Set a problem about a grid of integers."""
    k = rng.randint(-3, 15)
    entries: tuple[AboutGrid, ...] = (
        ("transpose", "Transpose it, so that rows become columns.", "grid", _oblong,
         lambda g: [list(column) for column in zip(*g, strict=True)]),
        ("diagonalSum", "It is square. Find the sum of its main diagonal, from top left to "
         "bottom right.", "number", _square, lambda g: sum(g[i][i] for i in range(len(g)))),
        ("antiDiagonalSum", "It is square. Find the sum of its anti-diagonal, from top right "
         "to bottom left.", "number", _square,
         lambda g: sum(row[-1 - i] for i, row in enumerate(g))),
        ("largestRowSum", "Find the largest sum of a row.", "number", _oblong,
         lambda g: max(map(sum, g))),
        ("columnSums", "Find the sums of its columns, from left to right.", "numbers", _oblong,
         lambda g: [sum(column) for column in zip(*g, strict=True)]),
        ("cellsAbove", f"Count the cells with a value greater than {k}.", "number", _oblong,
         lambda g: sum(value > k for row in g for value in row)),
        ("rotate", "Rotate it clockwise by 90 degrees.", "grid", _oblong,
         lambda g: [list(row) for row in zip(*g[::-1], strict=True)]),
    )  # fmt: skip
    method, wanted, returns, draw, solve = rng.choice(entries)
    what = rng.choice(("board", "map of heights", "table of sales", "picture", "matrix"))
    problem = Problem(
        key=f"{method} {what} {wanted}",
        statement=f"The grid is a {what}: rows of integers, all of the same length. {wanted}",
        method=method,
        inputs=(("grid", "grid"),),
        returns=returns,
        solve=solve,
        draw=draw,
    )
    return draft(rng, problem)


def intervals(rng: Random) -> Draft | None:
    """Set a problem about closed intervals."""

    def draw(rng: Random) -> tuple[Grid]:
        lows = [rng.randint(0, 40) for _ in range(rng.randint(1, 7))]
        return ([[low, low + rng.randint(1, 12)] for low in lows],)

    point = rng.randint(5, 45)
    entries: tuple[AboutIntervals, ...] = (
        ("mergeIntervals", "Merge all that overlap or touch, and list the results from left "
         "to right.", "pairs", merge),
        ("coveredLength", "Find the total length of what they cover together.", "number",
         lambda pairs: sum(high - low for low, high in merge(pairs))),
        ("countContaining", f"How many of them contain the point {point}, ends included?",
         "number", lambda pairs: sum(low <= point <= high for low, high in pairs)),
        ("countGroups", "Merge all that overlap or touch. How many intervals are left?",
         "number", lambda pairs: len(merge(pairs))),
    )  # fmt: skip
    method, wanted, returns, solve = rng.choice(entries)
    what = rng.choice(("meetings", "bookings", "shifts", "flights", "repairs", "broadcasts"))
    problem = Problem(
        key=f"{method} {what} {wanted}",
        statement=f"The list intervals holds {what}: pairs of a start and a later end, in no "
        f"particular order. {wanted}",
        method=method,
        inputs=(("intervals", "pairs"),),
        returns=returns,
        solve=solve,
        draw=draw,
    )
    return draft(rng, problem)


NUMBERS = {
    "one number": one_number,
    "grids": grid,
    "intervals": intervals,
}
