"""`practice-code`: generated programming problems judged on hidden tests, as on LiveCodeBench."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, groupby, pairwise
from math import gcd
from random import Random
from typing import Any, Literal

from inspect_ai import Task, task

from podium.harness.records import Grade, Question
from podium.harness.suite import Split
from podium.sandbox import IMAGE, Box
from podium.suites.base import required_box, unsealed, user_errors
from podium.suites.code_grading import (
    ProgramCase,
    ProgramTests,
    grade_on_shown_tests,
    judge_program,
    program_of,
    read_tests,
)
from podium.suites.livecodebench import user_prompt
from podium.suites.practice import Draft, PracticeSuite, any_of, integer

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
    **dict.fromkeys(("number", "text"), "Print the result."),
    "numbers": "Print the integers of the result on one line, separated by spaces.",
    "grid": "Print the rows of the result, one per line, with spaces between the numbers.",
    "pairs": "Print the pairs of the result, one per line, with a space between the two numbers.",
    "truth": "Print YES if the answer is yes, otherwise NO.",
}
PUBLIC = 2
HIDDEN = 4
TRIES = 20
OneNumber = tuple[str, str, Shape, int, Callable[[int], Any]]
"""A task about one number n: method name, goal in words, type of the result, largest n of a test,
reference solution."""
Grid = list[list[int]]
AboutGrid = tuple[str, str, Shape, Callable[[Grid], Any]]
Text = tuple[str, str, Shape, Callable[[str], Any]]
Fold = tuple[str, str, Callable[[Sequence[int]], Any]]
"""A task about a list: method name, goal in words, reference solution. AboutGrid and Text, for
tasks about a grid or a text, also have the type of the result."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A programming task with its reference solution."""

    method: str
    returns: Shape
    solve: Callable[..., Any]
    inputs: Mapping[str, Shape]
    """Names and types of the arguments, in order."""
    draw: Callable[[Random], tuple[Any, ...]]

    def draft(self, rng: Random, *, key: str, statement: str) -> Draft | None:
        """Return the task as a question (method or stdin); None if all hidden outputs are equal."""
        drawn = self._drawn(rng)
        if drawn is None:
            return None
        functional = rng.random() < 0.4
        cases = tuple(self._case(arguments, functional) for arguments in drawn)
        parameters = ", ".join(f"{name}: {TYPES[shape]}" for name, shape in self.inputs.items())
        head = f"def {self.method}(self, {parameters}) -> {TYPES[self.returns]}:"
        starter = f"class Solution:\n    {head}\n        " if functional else ""
        sections = self._as_method(cases) if functional else self._as_stdin(cases)
        public = [asdict(case) for case in cases[:PUBLIC]]
        return Draft(
            key=f"{key} {'method' if functional else 'stdin'}",
            text=user_prompt("\n\n".join((statement, *sections)), starter).removesuffix("\n"),
            target=ProgramTests(cases, self.method if functional else None).as_json(),
            metadata={"public_tests": public, "starter_code": starter},
        )

    def _drawn(self, rng: Random) -> list[tuple[Any, ...]] | None:
        """Draw all tests' arguments; None if all hidden outputs are equal (a constant passes)."""
        for _ in range(TRIES):
            drawn = [self.draw(rng) for _ in range(PUBLIC + HIDDEN)]
            answers = [json.dumps(self._solved(arguments)) for arguments in drawn[PUBLIC:]]
            if len(set(answers)) > 1:
                return drawn
        return None

    def _solved(self, arguments: tuple[Any, ...]) -> Any:
        """Return the reference solution's result on copies of the arguments of a test."""
        return self.solve(*json.loads(json.dumps(arguments)))

    def _case(self, arguments: tuple[Any, ...], functional: bool) -> ProgramCase:
        solved = self._solved(arguments)
        if functional:
            return ProgramCase("\n".join(map(json.dumps, arguments)), json.dumps(solved))
        lines = list[str]()
        for shape, value in zip(self.inputs.values(), arguments, strict=True):
            if shape == "grid":
                lines.append(f"{len(value)} {len(value[0])}")
            elif shape in ("numbers", "pairs"):
                lines.append(str(len(value)))
            lines.append(_printed(shape, value))
        output = f"{_printed(self.returns, solved)}\n"
        return ProgramCase("".join(f"{line}\n" for line in lines), output)

    def _as_stdin(self, cases: Sequence[ProgramCase]) -> Sequence[str]:
        form = "; then ".join(READ[shape].format(name=name) for name, shape in self.inputs.items())
        samples = (
            f"Sample Input {number}\n\n{case.input.strip()}\n\n"
            f"Sample Output {number}\n\n{case.output.strip()}"
            for number, case in enumerate(cases[:PUBLIC], start=1)
        )
        return f"Input\n\nThe input is {form}.", f"Output\n\n{WRITE[self.returns]}", *samples

    def _as_method(self, cases: Sequence[ProgramCase]) -> Sequence[str]:
        samples = list[str]()
        for number, case in enumerate(cases[:PUBLIC], start=1):
            values = zip(self.inputs, case.input.split("\n"), strict=True)
            inputs = ", ".join(f"{name} = {value}" for name, value in values)
            samples.append(f"Example {number}:\n\nInput: {inputs}\nOutput: {case.output}")
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


NOUNS = (
    "temperatures", "scores", "prices", "heights", "daily sales", "distances", "readings",
    "account movements", "waiting times", "lap times", "rainfall figures", "votes",
)  # fmt: skip

MAPS: tuple[Fold, ...] = (
    ("sortUp", "the values sorted in ascending order", sorted),
    ("sortDown", "the values sorted in descending order", lambda v: sorted(v, reverse=True)),
    ("uniqueInOrder", "the values without repetitions, each where it first appears",
     lambda values: list(dict.fromkeys(values))),
    ("runningSums", "the running sums: at each position the sum of all values up to it",
     lambda values: list(accumulate(values))),
    ("runningMaximum", "the running maximum: at each position the largest value up to it",
     lambda values: list(accumulate(values, max))),
    ("reverseOrder", "the values in reverse order", lambda values: values[::-1]),
    ("uniqueSorted", "the different values in ascending order", lambda v: sorted(set(v))),
)  # fmt: skip
WORDS = (
    "amber", "noon", "river", "level", "stone", "Anna", "cloud", "deed", "eleven", "paper", "Oslo",
    "bright", "kayak", "moss", "azure", "book", "zoo", "quiet", "radar", "tree",
)  # fmt: skip
PLACES = ("a sentence", "a message", "a line of a poem", "a headline", "a note", "a label")


def numbers(rng: Random) -> list[int]:
    """Draw a list of 1 to 14 integers; half of all lists span 7 values only, to get repetitions."""
    low, high = rng.choice(((-20, 60), (base := rng.randint(-6, 20), base + 6)))
    return [rng.randint(low, high) for _ in range(rng.randint(1, 14))]


def longest_run(values: Sequence[int], fits: Callable[[int, int], bool]) -> int:
    """Return the length of the longest run of values in which `fits` holds for all neighbours."""
    best = length = 1
    for previous, value in pairwise(values):
        length = length + 1 if fits(previous, value) else 1
        best = max(best, length)
    return best


FOLDS: tuple[Fold, ...] = (
    ("totalSum", "the sum of all values", sum),
    ("largest", "the largest value", max),
    ("smallest", "the smallest value", min),
    ("secondLargest", "the second largest distinct value (the largest if there is only one "
     "distinct value)", lambda values: sorted(set(values))[-2:][0]),
    ("valueRange", "the difference between the largest and the smallest value",
     lambda values: max(values) - min(values)),
    ("mostFrequent", "the most frequent value; if several are equally frequent, the smallest of "
     "them", lambda values: min(values, key=lambda value: (-values.count(value), value))),
    ("countDistinct", "the number of different values", lambda values: len(set(values))),
    ("commonDivisor", "the greatest common divisor of the absolute values (0 if all are 0)",
     lambda values: gcd(*values)),
    ("longestIncrease", "the length of the longest run of consecutive elements in which each is "
     "strictly greater than the one before",
     lambda values: longest_run(values, lambda a, b: a < b)),
    ("longestEqual", "the length of the longest run of equal consecutive elements",
     lambda values: longest_run(values, lambda a, b: a == b)),
    ("bestStretch", "the largest sum of a non-empty run of consecutive elements",
     lambda values: max(accumulate(values, lambda here, value: max(value, here + value)))),
    ("inversions", "the number of pairs of positions i < j whose values are in strictly "
     "decreasing order", lambda values: sum(
         a > b for i, a in enumerate(values) for b in values[i + 1 :])),
)  # fmt: skip


def _list_draft(rng: Random, fold: Fold, returns: Shape) -> Draft | None:
    method, goal, solve = fold
    noun = rng.choice(NOUNS)
    statement = rng.choice(
        (
            f"You are given nums, a list of {noun} (integers). Find {goal}.",
            f"The list nums holds integer {noun}. Compute {goal}.",
            f"Given a list of integers nums ({noun}), determine {goal}.",
        )
    )
    problem = Problem(method, returns, solve, {"nums": "numbers"}, lambda rng: (numbers(rng),))
    return problem.draft(rng, key=f"{method} {noun} {goal}", statement=statement)


def _counting(rng: Random) -> Draft | None:
    k, m = rng.randint(2, 25), rng.randint(2, 9)
    entries: tuple[Fold, ...] = (
        ("countGreater", f"how many values are strictly greater than {k}",
         lambda values: sum(value > k for value in values)),
        ("countMultiples", f"how many values are divisible by {m}",
         lambda values: sum(value % m == 0 for value in values)),
        ("countEqual", f"how many values are equal to {k - 12}",
         lambda values: values.count(k - 12)),
        ("countBetween", f"how many values are at least {-m} and at most {k}",
         lambda values: sum(-m <= value <= k for value in values)),
    )  # fmt: skip
    return _list_draft(rng, rng.choice(entries), "number")


def _counting_given(rng: Random) -> Draft | None:
    noun = rng.choice(NOUNS)
    entries: tuple[tuple[str, str, Callable[[list[int], int], int]], ...] = (
        ("countAbove", "how many values are strictly greater than k",
         lambda values, k: sum(value > k for value in values)),
        ("countDivisible", "how many values are divisible by k",
         lambda values, k: sum(value % k == 0 for value in values)),
        ("countMatches", "how many values are equal to k", lambda values, k: values.count(k)),
    )  # fmt: skip
    method, goal, solve = rng.choice(entries)
    opening = f"You are given nums, a list of integer {noun}, and a positive integer k."
    problem = Problem(
        method, "number", solve, {"nums": "numbers", "k": "number"},
        lambda rng: (numbers(rng), rng.randint(1, 12)),
    )  # fmt: skip
    return problem.draft(rng, key=f"{method} {noun}", statement=f"{opening} Count {goal}.")


def _two_sum(rng: Random) -> Draft | None:
    noun = rng.choice(NOUNS)

    def draw(rng: Random) -> tuple[list[int], int]:
        values = numbers(rng)
        return values, rng.choice((sum(rng.choices(values, k=2)), rng.randint(-30, 80)))

    def solve(values: list[int], target: int) -> bool:
        return any(a + b == target for i, a in enumerate(values) for b in values[i + 1 :])

    inputs: dict[str, Shape] = {"nums": "numbers", "target": "number"}
    return Problem("hasPairWithSum", "truth", solve, inputs, draw).draft(
        rng,
        key=f"twoSum {noun}",
        statement=f"You are given nums, a list of integer {noun}, and an integer target. Are there "
        "two different positions in nums whose values add up to target?",
    )


def _combined(rng: Random) -> Draft | None:
    k, m = rng.randint(-5, 20), rng.randint(2, 7)
    stages: tuple[Fold, ...] = (
        ("Multiples", f"Keep only the values divisible by {m}",
         lambda v: [x for x in v if x % m == 0]),
        ("Greater", f"Keep only the values greater than {k}",
         lambda v: [x for x in v if x > k]),
        ("Distinct", "Remove repetitions, so that each value stays where it first appears",
         lambda v: list(dict.fromkeys(v))),
        ("EvenPlaces", "Keep only the values at even positions (counting from 0)",
         lambda v: v[::2]),
        ("Squares", f"Replace each value x by x * x modulo {m + 20}",
         lambda v: [x * x % (m + 20) for x in v]),
        ("Gaps", "Replace the list by the absolute differences of neighbouring values",
         lambda v: [abs(a - b) for a, b in pairwise(v)]),
        ("RunningSums", "Replace each value by the sum of all values up to it",
         lambda v: list(accumulate(v))),
    )  # fmt: skip
    name, stage, keep = rng.choice(stages)
    method, goal, solve = rng.choice([entry for entry in FOLDS if entry[0] != "countDistinct"])
    both: Fold = (
        f"{method}Of{name}",
        f"a single number in two stages. {stage}. Then, from what you have now, take {goal}. If "
        "nothing is left after the first stage, the result is 0",
        lambda values: solve(remaining) if (remaining := keep(values)) else 0,
    )
    return _list_draft(rng, both, "number")


def sentence(rng: Random) -> tuple[str]:
    """Draw one to seven words, separated by single spaces."""
    return (" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 7))),)


def letters(rng: Random) -> tuple[str]:
    """Draw a short word over few letters, so that repetitions and palindromes appear."""
    half = "".join(rng.choice("aabbcd") for _ in range(rng.randint(1, 6)))
    return (rng.choice((half, half + half[::-1], half + "e" + half[::-1])),)


def caesar(text: str, shift: int) -> str:
    """Return a text with its letters shifted along the alphabet, without change of case."""
    bases = {sign: ord("a" if sign.islower() else "A") for sign in set(text) if sign.isalpha()}
    moved = {sign: chr((ord(sign) - base + shift) % 26 + base) for sign, base in bases.items()}
    return "".join(moved.get(sign, sign) for sign in text)


def balanced(text: str) -> bool:
    """Return whether the brackets of a text are balanced."""
    for _ in range(len(text) // 2):
        text = text.replace("()", "").replace("[]", "").replace("{}", "")
    return not text


def _text_draft(
    rng: Random, entry: Text, draw: Callable[[Random], tuple[str]], places: tuple[str, ...] = PLACES
) -> Draft | None:
    method, goal, returns, solve = entry
    place = rng.choice(places)
    opening = rng.choice((f"The string s is {place}.", f"You are given {place} as a string s."))
    problem = Problem(method, returns, solve, {"s": "text"}, draw)
    return problem.draft(rng, key=f"{method} {place} {goal}", statement=f"{opening} {goal}")


def _about_sentence(rng: Random) -> Draft | None:
    sign, shift = rng.choice("aeorst"), rng.randint(1, 25)
    entries: tuple[Text, ...] = (
        ("reverseWords", "Reverse the order of its words.", "text",
         lambda s: " ".join(s.split()[::-1])),
        ("countVowels", "Count its vowels (a, e, i, o, u, in either case).", "number",
         lambda s: sum(c in "aeiou" for c in s.lower())),
        ("countLetter", f"Count how often the letter {sign} occurs in it, in either case.",
         "number", lambda s: s.lower().count(sign)),
        ("countWords", "Count its words, which are separated by single spaces.", "number",
         lambda s: len(s.split())),
        ("caesarShift", f"Encrypt it with a Caesar cipher: shift every letter by {shift} places "
         "along the alphabet, from z back to a, keep upper and lower case, and leave everything "
         "else as it is.", "text", lambda s: caesar(s, shift)),
        ("longestWord", "Find its longest word; if several are equally long, the first of them.",
         "text", lambda s: max(s.split(), key=len)),
        ("removeVowels", "Remove all its vowels (a, e, i, o, u, in either case), and nothing "
         "else.", "text",
         lambda s: "".join(c for c in s if c not in "aeiouAEIOU")),
        ("reverseEachWord", "Reverse the letters of each word; the words stay where they are.",
         "text", lambda s: " ".join(word[::-1] for word in s.split())),
        ("palindromeWords", "Count the words that read the same backwards, ignoring case.",
         "number", lambda s: sum(w == w[::-1] for w in s.lower().split())),
        ("shiftWords", f"Reverse the order of its words, then shift every letter by {shift} "
         "places along the alphabet, from z back to a, keeping case.", "text",
         lambda s: caesar(" ".join(s.split()[::-1]), shift)),
    )  # fmt: skip
    return _text_draft(rng, rng.choice(entries), sentence)


def _about_word(rng: Random) -> Draft | None:
    k = rng.randint(2, 3)
    entries: tuple[Text, ...] = (
        ("isPalindrome", "Is it a palindrome, that is, does it read the same backwards?", "truth",
         lambda s: s == s[::-1]),
        ("runLength", "Return its run-length encoding: each run of equal letters becomes the "
         "letter followed by the length of the run, as in a3b1 for aaab.", "text",
         lambda s: "".join(f"{c}{len(list(run))}" for c, run in groupby(s))),
        ("reverseText", "Reverse it.", "text", lambda s: s[::-1]),
        ("mostFrequentLetter", "Find its most frequent letter; if several are equally frequent, "
         "the first in the alphabet.", "text",
         lambda s: min(set(s), key=lambda c: (-s.count(c), c))),
        ("sortLetters", "Sort its letters alphabetically.", "text", lambda s: "".join(sorted(s))),
        ("lettersAtLeast", f"Count the different letters that occur at least {k} times.", "number",
         lambda s: sum(s.count(c) >= k for c in set(s))),
        ("longRuns", f"Count the runs of equal letters that are at least {k} letters long.",
         "number", lambda s: sum(len(list(run)) >= k for _, run in groupby(s))),
    )  # fmt: skip
    places = ("a lower-case word", "a password of lower-case letters", "a strand of letters a-e")
    return _text_draft(rng, rng.choice(entries), letters, places)


def _brackets(rng: Random) -> Draft | None:
    def draw(rng: Random) -> tuple[str]:
        pieces = [rng.choice(("()", "[]", "{}", "([])", "{()}")) for _ in range(rng.randint(1, 4))]
        signs = list("".join(pieces))
        if rng.random() < 0.5:
            rng.shuffle(signs)
        return ("".join(signs),)

    goal = "Are its brackets (), [] and {} balanced and correctly nested?"
    places = ("a string of brackets", "a formula reduced to its brackets", "a row of brackets")
    return _text_draft(rng, ("isBalanced", goal, "truth", balanced), draw, places)


def _anagrams(rng: Random) -> Draft | None:
    def draw(rng: Random) -> tuple[str, str]:
        word = "".join(rng.choice("aberst") for _ in range(rng.randint(2, 7)))
        anagram = "".join(rng.sample(word, len(word)))
        return word, rng.choice((anagram, anagram[:-1] + "a"))

    noun = rng.choice(("words", "names", "passwords", "labels", "codes"))

    def solve(s: str, t: str) -> bool:
        return sorted(s) == sorted(t)

    return Problem("areAnagrams", "truth", solve, {"s": "text", "t": "text"}, draw).draft(
        rng,
        key=f"anagrams {noun}",
        statement=f"The strings s and t are lower-case {noun}. Are they anagrams of each other, "
        "that is, do they consist of the same letters, each equally often?",
    )


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
         lambda n: sum(map(integer.is_prime, range(n)))),
        ("fibonacciModulo", f"Find the n-th Fibonacci number modulo {m}, where F(0) = 0, F(1) = 1 "
         "and F(k) = F(k - 1) + F(k - 2).", "number", 3000, lambda n: integer.fibonacci(n, m)),
        ("toBinary", "Write n in binary, without leading zeros.", "text", 5000, lambda n: f"{n:b}"),
        ("toBase", f"Write n in base {base}, without leading zeros.", "text", 5000,
         lambda n: integer.in_base(n, base)),
        ("digitSum", "Find the sum of the decimal digits of n.", "number", 10**9,
         integer.digit_sum),
        ("countDivisors", "Count the positive divisors of n.", "number", 2000,
         lambda n: len(integer.divisors(n))),
        ("collatzSteps", "While n is not 1, replace it by n / 2 if it is even and by 3n + 1 if it "
         "is odd. How many replacements are made?", "number", 400, integer.collatz),
        ("powerModulo", f"Find the remainder of {base} to the power n on division by {m}.",
         "number", 10**9, lambda n: pow(base, n, m)),
        ("countOnes", "How many ones are there in the binary representation of n?", "number",
         10**6, lambda n: n.bit_count()),
        ("primeDigitSums", "Count the primes below n whose decimal digits add up to a multiple of "
         f"{base}.", "number", 900,
         lambda n: sum(integer.is_prime(p) and integer.digit_sum(p) % base == 0 for p in range(n))),
    )  # fmt: skip
    method, goal, returns, largest, solve = rng.choice(entries)
    statement = f"You are given a positive integer n (at most {largest}). {goal}"
    problem = Problem(
        method, returns, solve, {"n": "number"},
        lambda rng: (rng.choice((rng.randint(1, 30), rng.randint(1, largest))),),
    )  # fmt: skip
    return problem.draft(rng, key=f"{method} {goal}", statement=statement)


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
    method, goal, returns, solve = rng.choice(entries)
    noun = rng.choice(("board", "map of heights", "table of sales", "picture", "matrix"))

    def draw(rng: Random) -> tuple[Grid]:
        rows = rng.randint(1, 5)
        columns = rows if goal.startswith("It is square") else rng.randint(1, 5)
        return ([[rng.randint(-9, 20) for _ in range(columns)] for _ in range(rows)],)

    statement = f"The grid is a {noun}: rows of integers, all of the same length. {goal}"
    problem = Problem(method, returns, solve, {"grid": "grid"}, draw)
    return problem.draft(rng, key=f"{method} {noun} {goal}", statement=statement)


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
    method, goal, returns, solve = rng.choice(entries)
    noun = rng.choice(("meetings", "bookings", "shifts", "flights", "repairs", "broadcasts"))
    return Problem(method, returns, solve, {"intervals": "pairs"}, draw).draft(
        rng,
        key=f"{method} {noun} {goal}",
        statement=f"The list intervals holds {noun}: pairs of a start and a later end, in no "
        f"particular order. {goal}",
    )


def grade_code(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by running the reply's program on all tests in the sandbox `box`."""
    box, tests = required_box(box, "practice-code"), read_tests(unsealed(question))
    program = program_of(reply, tests.method)
    if program is None:
        return Grade(0.0, None, "no program found")
    judgement = judge_program(program, tests, box)
    facts = {"verdicts": list(judgement.verdicts), "cpu_s": round(judgement.cpu_s, 3)}
    facts |= {"exact": judgement.exact}
    return Grade(float(judgement.passed), program, judgement.summary(), facts)


@dataclass(frozen=True, slots=True)
class PracticeCode(PracticeSuite):
    """The suite practice-code, whose questions show two of their tests to systems."""

    def try_public(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by the share of shown tests that a program passes; SandboxError if `box` fails."""
        return grade_on_shown_tests(question, reply, box)


SUITE = PracticeCode(
    name="practice-code",
    topics={
        "list to number": lambda rng: _list_draft(rng, rng.choice(FOLDS), "number"),
        "list to list": lambda rng: _list_draft(rng, rng.choice(MAPS), "numbers"),
        "counting": any_of(_counting, _counting_given),
        "two-sum": _two_sum,
        "combined": _combined,
        "sentences": _about_sentence,
        "words": _about_word,
        "brackets": _brackets,
        "anagrams": _anagrams,
        "one number": _one_number,
        "grids": _grid,
        "intervals": _intervals,
    },
    write=lambda id, draft: Question(
        id, draft.text, "program", draft.target, metadata=draft.metadata
    ),
    judge=grade_code,
    version="6-A",
    needs_box=True,
    image=IMAGE,
)


@task
@user_errors
def practice_code(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    max_sandboxes: int | None = None,
) -> Task:
    """Generated programming problems; splits train, validation and eval.

    Programs run in Inspect's sandbox (--sandbox, default docker), or in one of podium's
    (-T box=docker); at most `max_sandboxes` run at once (default: one per core).
    """
    from podium.suites.inspect_box import boxed_task  # imports all sandboxes; only for Inspect

    return boxed_task(
        SUITE, box, split=split, limit=limit, epochs=epochs, max_sandboxes=max_sandboxes
    )
