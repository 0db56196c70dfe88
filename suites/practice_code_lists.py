"""Problems of `practice-code` about lists of integers, from a plain sum to two ideas combined."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import gcd
from random import Random
from typing import Any

from suites.practice import Draft, any_of
from suites.practice_code_problem import Problem, Shape, draft

NOUNS = (
    "temperatures", "scores", "prices", "heights", "daily sales", "distances", "readings",
    "account movements", "waiting times", "lap times", "rainfall figures", "votes",
)  # fmt: skip

Fold = tuple[str, str, Callable[[Sequence[int]], Any]]
"""A method name, what is wanted in words, and the reference."""


def numbers(rng: Random) -> list[int]:
    """Draw a list of 1 to 14 integers; half of the lists are narrow, so that values repeat."""
    low, high = rng.choice(((-20, 60), (base := rng.randint(-6, 20), base + 6)))
    return [rng.randint(low, high) for _ in range(rng.randint(1, 14))]


def second_largest(values: Sequence[int]) -> int:
    """Return the second largest distinct value, the largest when there is only one."""
    ranked = sorted(set(values), reverse=True)
    return ranked[min(1, len(ranked) - 1)]


def mode(values: Sequence[int]) -> int:
    """Return the most frequent value, the smallest one on ties."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def longest_run(values: Sequence[int], fits: Callable[[int, int], bool]) -> int:
    """Return the length of the longest stretch in which neighbours fit."""
    best = length = 1
    for left, right in pairwise(values):
        length = length + 1 if fits(left, right) else 1
        best = max(best, length)
    return best


def best_stretch(values: Sequence[int]) -> int:
    """Return the largest sum of a non-empty stretch."""
    best = here = values[0]
    for value in values[1:]:
        here = max(value, here + value)
        best = max(best, here)
    return best


FOLDS: tuple[Fold, ...] = (
    ("totalSum", "the sum of all values", sum),
    ("largest", "the largest value", max),
    ("smallest", "the smallest value", min),
    ("secondLargest", "the second largest distinct value (the largest if there is only one "
     "distinct value)", second_largest),
    ("valueRange", "the difference between the largest and the smallest value",
     lambda values: max(values) - min(values)),
    ("mostFrequent", "the most frequent value; if several are equally frequent, the smallest of "
     "them", mode),
    ("countDistinct", "the number of different values", lambda values: len(set(values))),
    ("commonDivisor", "the greatest common divisor of the absolute values (0 if all are 0)",
     lambda values: gcd(*values)),
    ("longestIncrease", "the length of the longest run of consecutive elements in which each is "
     "strictly greater than the one before",
     lambda values: longest_run(values, lambda a, b: a < b)),
    ("longestEqual", "the length of the longest run of equal consecutive elements",
     lambda values: longest_run(values, lambda a, b: a == b)),
    ("bestStretch", "the largest sum of a non-empty run of consecutive elements", best_stretch),
    ("inversions", "the number of pairs of positions i < j whose values are in strictly "
     "decreasing order", lambda values: sum(
         a > b for at, a in enumerate(values) for b in values[at + 1 :])),
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


def _set(rng: Random, fold: Fold, returns: Shape, noun: str = "") -> Draft | None:
    method, wanted, solve = fold
    noun = noun or rng.choice(NOUNS)
    statement = rng.choice(
        (
            f"You are given nums, a list of {noun} (integers). Find {wanted}.",
            f"The list nums holds integer {noun}. Compute {wanted}.",
            f"Given a list of integers nums ({noun}), determine {wanted}.",
        )
    )
    problem = Problem(
        key=f"{method} {noun} {wanted}",
        statement=statement,
        method=method,
        inputs=(("nums", "numbers"),),
        returns=returns,
        solve=solve,
        draw=lambda rng: (numbers(rng),),
    )
    return draft(rng, problem)


def fold(rng: Random) -> Draft | None:
    """Set a problem that boils a list down to one number."""
    return _set(rng, rng.choice(FOLDS), "number")


def transform(rng: Random) -> Draft | None:
    """Set a problem that turns a list into another."""
    return _set(rng, rng.choice(MAPS), "numbers")


def counting(rng: Random) -> Draft | None:
    """Set a problem that counts the values with a property."""
    k = rng.randint(2, 25)
    m = rng.randint(2, 9)
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
    return _set(rng, rng.choice(entries), "number")


def counting_given(rng: Random) -> Draft | None:
    """Set a problem that counts values against a number which is part of the input."""
    noun = rng.choice(NOUNS)
    entries: tuple[tuple[str, str, Callable[[list[int], int], int]], ...] = (
        ("countAbove", "how many values are strictly greater than k",
         lambda values, k: sum(value > k for value in values)),
        ("countDivisible", "how many values are divisible by k",
         lambda values, k: sum(value % k == 0 for value in values)),
        ("countMatches", "how many values are equal to k", lambda values, k: values.count(k)),
    )  # fmt: skip
    method, wanted, solve = rng.choice(entries)
    problem = Problem(
        key=f"{method} {noun}",
        statement=f"You are given nums, a list of integer {noun}, and a positive integer k. Count "
        f"{wanted}.",
        method=method,
        inputs=(("nums", "numbers"), ("k", "number")),
        returns="number",
        solve=solve,
        draw=lambda rng: (numbers(rng), rng.randint(1, 12)),
    )
    return draft(rng, problem)


def two_sum(rng: Random) -> Draft | None:
    """Ask whether two positions add up to a target."""
    noun = rng.choice(NOUNS)

    def draw(rng: Random) -> tuple[list[int], int]:
        values = numbers(rng)
        target = rng.choice((sum(rng.choices(values, k=2)), rng.randint(-30, 80)))
        return values, target

    def solve(values: list[int], target: int) -> bool:
        return any(a + b == target for at, a in enumerate(values) for b in values[at + 1 :])

    problem = Problem(
        key=f"twoSum {noun}",
        statement=f"You are given nums, a list of integer {noun}, and an integer target. Are there "
        "two different positions in nums whose values add up to target?",
        method="hasPairWithSum",
        inputs=(("nums", "numbers"), ("target", "number")),
        returns="truth",
        solve=solve,
        draw=draw,
    )
    return draft(rng, problem)


def combined(rng: Random) -> Draft | None:
    """Set a problem with two ideas: first keep or change values, then boil them down."""
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
    name, first, keep = rng.choice(stages)
    method, wanted, solve = rng.choice([entry for entry in FOLDS if entry[0] != "countDistinct"])
    both: Fold = (
        f"{method}Of{name}",
        f"a single number in two stages. {first}. Then, from what you have now, take {wanted}. If "
        "nothing is left after the first stage, the result is 0",
        lambda values: solve(kept) if (kept := keep(values)) else 0,
    )
    return _set(rng, both, "number")


LISTS = {
    "list to number": fold,
    "list to list": transform,
    "counting": any_of(counting, counting_given),
    "two-sum": two_sum,
    "combined": combined,
}
