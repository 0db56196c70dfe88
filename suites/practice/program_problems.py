"""How a problem of `practice-code` is set, and those about numbers, grids and intervals.

As on LiveCodeBench and in its prompt, a problem wants a program that reads standard input, or a
method of `class Solution`. What is expected goes into the target and nowhere else.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal

from suites.code_grading import ProgramCase, ProgramTests
from suites.livecodebench import user_prompt
from suites.practice import Draft
from suites.practice.integer import digit_sum, divisors, in_base, is_prime

Shape = Literal["numbers", "number", "text", "grid", "pairs", "truth"]

TYPES: dict[Shape, str] = {
    "numbers": "List[int]",
    "number": "int",
    "text": "str",
    "grid": "List[List[int]]",
    "pairs": "List[List[int]]",
    "truth": "bool",
}
READ: dict[Shape, str] = {
    "numbers": "a line with n, the length of {name}; then a line with the n integers of {name}",
    "number": "a line with the integer {name}",
    "text": "a line with the string {name}",
    "grid": "a line with the numbers of rows and columns of {name}; then its rows, one per line",
    "pairs": "a line with n, the length of {name}; then n lines with two integers each",
}
WRITE: dict[Shape, str] = {
    "numbers": "Print the integers of the result on one line, separated by spaces.",
    "number": "Print the result.",
    "text": "Print the result.",
    "grid": "Print the rows of the result, one per line, with spaces between the numbers.",
    "pairs": "Print the pairs of the result, one per line, with a space between the two numbers.",
    "truth": "Print YES if the answer is yes, otherwise NO.",
}
PUBLIC = 2
HIDDEN = 4
TRIES = 20
OneNumber = tuple[str, str, Shape, int, Callable[[int], Any]]
"""Method, what is wanted of n, shape of the result, largest n of a test, reference."""
Grid = list[list[int]]
AboutGrid = tuple[str, str, Shape, Callable[[Grid], Any]]


@dataclass(frozen=True, slots=True)
class Problem:
    """A task for a program, with a reference that solves it."""

    method: str
    returns: Shape
    solve: Callable[..., Any]
    inputs: Mapping[str, Shape]
    """Names and shapes of the arguments, in order."""
    draw: Callable[[Random], tuple[Any, ...]]

    def draft(self, rng: Random, *, key: str, statement: str) -> Draft | None:
        """Return the question in one of its two ways; None for a dull problem."""
        drawn = self._drawn(rng)
        if drawn is None:
            return None
        functional = rng.random() < 0.4
        cases = tuple(self._case(arguments, functional) for arguments in drawn)
        starter = self._starter() if functional else ""
        said = self._as_method(cases) if functional else self._as_stdin(cases)
        public = [asdict(case) for case in cases[:PUBLIC]]
        return Draft(
            key=f"{key} {'method' if functional else 'stdin'}",
            text=user_prompt("\n\n".join((statement, *said)), starter).removesuffix("\n"),
            target=ProgramTests(cases, self.method if functional else None).as_json(),
            metadata={"public_tests": public, "starter_code": starter},
        )

    def _drawn(self, rng: Random) -> list[tuple[Any, ...]] | None:
        """Draw the tests' arguments until hidden answers differ, so that no constant passes."""
        for _ in range(TRIES):
            drawn = [self.draw(rng) for _ in range(PUBLIC + HIDDEN)]
            answers = [json.dumps(self._solved(arguments)) for arguments in drawn[PUBLIC:]]
            if len(set(answers)) > 1:
                return drawn
        return None

    def _solved(self, arguments: tuple[Any, ...]) -> Any:
        """Run the reference on copies, so that it cannot change the arguments of the test."""
        return self.solve(*json.loads(json.dumps(arguments)))

    def _case(self, arguments: tuple[Any, ...], functional: bool) -> ProgramCase:
        solved = self._solved(arguments)
        if functional:
            return ProgramCase("\n".join(map(json.dumps, arguments)), json.dumps(solved))
        given = list[str]()
        for shape, value in zip(self.inputs.values(), arguments, strict=True):
            if shape == "grid":
                given.append(f"{len(value)} {len(value[0])}")
            elif shape in ("numbers", "pairs"):
                given.append(str(len(value)))
            given.append(_printed(shape, value))
        said = f"{_printed(self.returns, solved)}\n"
        return ProgramCase("".join(f"{line}\n" for line in given), said)

    def _starter(self) -> str:
        given = ", ".join(f"{name}: {TYPES[shape]}" for name, shape in self.inputs.items())
        head = f"def {self.method}(self, {given}) -> {TYPES[self.returns]}:"
        return f"class Solution:\n    {head}\n        "

    def _as_stdin(self, cases: Sequence[ProgramCase]) -> Sequence[str]:
        given = "; then ".join(READ[shape].format(name=name) for name, shape in self.inputs.items())
        samples = (
            f"Sample Input {at}\n\n{case.input.strip()}\n\n"
            f"Sample Output {at}\n\n{case.output.strip()}"
            for at, case in enumerate(cases[:PUBLIC], start=1)
        )
        return f"Input\n\nThe input is {given}.", f"Output\n\n{WRITE[self.returns]}", *samples

    def _as_method(self, cases: Sequence[ProgramCase]) -> Sequence[str]:
        samples = list[str]()
        for at, case in enumerate(cases[:PUBLIC], start=1):
            values = zip(self.inputs, case.input.split("\n"), strict=True)
            given = ", ".join(f"{name} = {value}" for name, value in values)
            samples.append(f"Example {at}:\n\nInput: {given}\nOutput: {case.output}")
        truth = self.returns == "truth"
        return "Return true or false." if truth else "Return the result.", *samples


def _printed(shape: Shape, value: Any) -> str:
    if shape == "numbers":
        return " ".join(map(str, value))
    if shape in ("grid", "pairs"):
        return "\n".join(" ".join(map(str, row)) for row in value)
    if shape == "truth":
        return "YES" if value else "NO"
    return str(value)


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


def _one_number(rng: Random) -> Draft | None:
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

    def draw(rng: Random) -> tuple[int]:
        return (rng.choice((rng.randint(1, 30), rng.randint(1, most))),)

    statement = f"You are given a positive integer n (at most {most}). {wanted}"
    problem = Problem(method, returns, solve, {"n": "number"}, draw)
    return problem.draft(rng, key=f"{method} {wanted}", statement=statement)


def _grid(rng: Random) -> Draft | None:
    k = rng.randint(-3, 15)
    entries: tuple[AboutGrid, ...] = (
        ("transpose", "Transpose it, so that rows become columns.", "grid",
         lambda g: [list(column) for column in zip(*g, strict=True)]),
        ("diagonalSum", "It is square. Find the sum of its main diagonal, from top left to "
         "bottom right.", "number", lambda g: sum(g[i][i] for i in range(len(g)))),
        ("antiDiagonalSum", "It is square. Find the sum of its anti-diagonal, from top right "
         "to bottom left.", "number",
         lambda g: sum(row[-1 - i] for i, row in enumerate(g))),
        ("largestRowSum", "Find the largest sum of a row.", "number",
         lambda g: max(map(sum, g))),
        ("columnSums", "Find the sums of its columns, from left to right.", "numbers",
         lambda g: [sum(column) for column in zip(*g, strict=True)]),
        ("cellsAbove", f"Count the cells with a value greater than {k}.", "number",
         lambda g: sum(value > k for row in g for value in row)),
        ("rotate", "Rotate it clockwise by 90 degrees.", "grid",
         lambda g: [list(row) for row in zip(*g[::-1], strict=True)]),
    )  # fmt: skip
    method, wanted, returns, solve = rng.choice(entries)
    what = rng.choice(("board", "map of heights", "table of sales", "picture", "matrix"))

    def draw(rng: Random) -> tuple[Grid]:
        rows = rng.randint(1, 5)
        columns = rows if wanted.startswith("It is square") else rng.randint(1, 5)
        return ([[rng.randint(-9, 20) for _ in range(columns)] for _ in range(rows)],)

    statement = f"The grid is a {what}: rows of integers, all of the same length. {wanted}"
    problem = Problem(method, returns, solve, {"grid": "grid"}, draw)
    return problem.draft(rng, key=f"{method} {what} {wanted}", statement=statement)


def _intervals(rng: Random) -> Draft | None:
    def draw(rng: Random) -> tuple[Grid]:
        lows = [rng.randint(0, 40) for _ in range(rng.randint(1, 7))]
        return ([[low, low + rng.randint(1, 12)] for low in lows],)

    point = rng.randint(5, 45)
    entries: tuple[AboutGrid, ...] = (
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
    return Problem(method, returns, solve, {"intervals": "pairs"}, draw).draft(
        rng,
        key=f"{method} {what} {wanted}",
        statement=f"The list intervals holds {what}: pairs of a start and a later end, in no "
        f"particular order. {wanted}",
    )


NUMBERS = {"one number": _one_number, "grids": _grid, "intervals": _intervals}
