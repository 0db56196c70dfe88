"""Operations on integers and on lists of them, and what an operation is."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# § What one operation of a program is: how people ask for it, what it takes and gives.


Variants = tuple[dict[str, Any], ...]
Value = Any
"""What flows through a chain: its kind is known only when the chain is."""
ONE_READING: Variants = ({},)


@dataclass(frozen=True, slots=True)
class Family:
    """One operation that a code writer has learnt."""

    name: str
    level: int
    """1: every beginner; 2: common exercises; 3 and 4: for specialists."""
    asks: str
    """Pattern of the phrases that ask for it; a longer match explains more of the statement."""
    takes: tuple[str, ...]
    """Kinds of arguments: int, ints, text, words, matrix, pairs."""
    gives: str
    """Kind of result: int, ints, text, words, bool, matrix, pairs."""
    does: Callable[..., Any]
    bind: str = ""
    """Pattern whose groups are the ints after the first argument, numerals or names of inputs."""
    variants: Variants = ONE_READING
    """Readings of what the statement leaves open, likeliest first."""
    stage: int = 5
    """Place in a chain when the wording does not tell: 1 filter, 2 map, 3 order, 4 take, 5 fold."""


# § Operations on one list of integers: filters, maps, orders and folds.


# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them


Ints = list[int]
NUM = r"(?:integers?|numbers?|elements?|values?|items?|entries|ones)"
OUT = r"(?:remov\w+|delet\w+|drop\w*|discard\w*|ignor\w+|leav\w+ out|without|except)(?: the| all| every)* "
K = r"(\w+|-\d+)"


def _total(values: Ints) -> int:
    return sum(values)


def _product(values: Ints) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _largest(values: Ints, missing: int = 0) -> int:
    return max(values) if values else missing


def _smallest(values: Ints, missing: int = 0) -> int:
    return min(values) if values else missing


def _count(values: Ints) -> int:
    return len(values)


def _second_largest(values: Ints, distinct: bool = True, missing: int = -1) -> int:
    kept = sorted(set(values)) if distinct else sorted(values)
    if len(kept) < 2:
        return missing
    return kept[-2]


def _second_smallest(values: Ints, missing: int = -1) -> int:
    kept = sorted(set(values))
    if len(kept) < 2:
        return missing
    return kept[1]


def _kth_largest(values: Ints, k: int, distinct: bool = False) -> int:
    kept = sorted(set(values)) if distinct else sorted(values)
    return kept[-k]


def _kth_smallest(values: Ints, k: int, distinct: bool = False) -> int:
    kept = sorted(set(values)) if distinct else sorted(values)
    return kept[k - 1]


def _spread(values: Ints) -> int:
    return max(values) - min(values)


def _mean(values: Ints) -> int:
    return sum(values) // len(values)


def _median(values: Ints) -> int:
    kept = sorted(values)
    return kept[(len(kept) - 1) // 2]


def _mode(values: Ints, least: bool = True) -> int:
    counts: dict[int, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    best = max(counts.values())
    ties = [value for value in counts if counts[value] == best]
    return min(ties) if least else max(ties)


def _gcd(values: Ints) -> int:
    result = 0
    for value in values:
        result = math.gcd(result, value)
    return result


def _lcm(values: Ints) -> int:
    result = 1
    for value in values:
        result = result * value // math.gcd(result, value)
    return result


def _count_distinct(values: Ints) -> int:
    return len(set(values))


def _even(values: Ints) -> Ints:
    return [value for value in values if value % 2 == 0]


def _odd(values: Ints) -> Ints:
    return [value for value in values if value % 2 != 0]


def _positive(values: Ints) -> Ints:
    return [value for value in values if value > 0]


def _negative(values: Ints) -> Ints:
    return [value for value in values if value < 0]


def _not_negative(values: Ints) -> Ints:
    return [value for value in values if value >= 0]


def _divisible(values: Ints, k: int) -> Ints:
    return [value for value in values if value % k == 0]


def _not_divisible(values: Ints, k: int) -> Ints:
    return [value for value in values if value % k != 0]


def _greater(values: Ints, k: int) -> Ints:
    return [value for value in values if value > k]


def _smaller(values: Ints, k: int) -> Ints:
    return [value for value in values if value < k]


def _at_least(values: Ints, k: int) -> Ints:
    return [value for value in values if value >= k]


def _at_most(values: Ints, k: int) -> Ints:
    return [value for value in values if value <= k]


def _between(values: Ints, low: int, high: int) -> Ints:
    return [value for value in values if low <= value <= high]


def _equal(values: Ints, k: int) -> Ints:
    return [value for value in values if value == k]


def _without(values: Ints, k: int) -> Ints:
    return [value for value in values if value != k]


def _above_mean(values: Ints) -> Ints:
    return [value for value in values if value * len(values) > sum(values)]


def _squares(values: Ints) -> Ints:
    return [value * value for value in values]


def _cubes(values: Ints) -> Ints:
    return [value**3 for value in values]


def _absolute(values: Ints) -> Ints:
    return [abs(value) for value in values]


def _times(values: Ints, k: int) -> Ints:
    return [value * k for value in values]


def _plus(values: Ints, k: int) -> Ints:
    return [value + k for value in values]


def _digit_sums(values: Ints) -> Ints:
    return [sum(int(digit) for digit in str(abs(value))) for value in values]


def _ascending(values: Ints) -> Ints:
    return sorted(values)


def _descending(values: Ints) -> Ints:
    return sorted(values, reverse=True)


def _reverse(values: Ints) -> Ints:
    return values[::-1]


def _unique(values: Ints) -> Ints:
    return list(dict.fromkeys(values))


def _only_once(values: Ints) -> Ints:
    return [value for value in values if values.count(value) == 1]


def _repeated(values: Ints) -> Ints:
    return sorted({value for value in values if values.count(value) > 1})


def _first_k(values: Ints, k: int) -> Ints:
    return values[:k]


def _last_k(values: Ints, k: int) -> Ints:
    return values[-k:]


def _modulo(value: int, k: int) -> int:
    return value % k


MODULO = _modulo

LISTS: tuple[Family, ...] = (
    Family("sum", 1, r"\bsum (?:of )?(?:all |the |these |those |n |given |only )*(?:integers|numbers|elements|values|array|list|them)?|\badd (?:up|together)|\btotal\b(?: of)?", ("ints",), "int", _total),
    Family("maximum", 1, r"\b(?:maximum|largest|greatest|biggest|highest)\b(?: of| value| number| element| integer)*", ("ints",), "int", _largest, variants=({}, {"missing": -1})),
    Family("minimum", 1, r"\b(?:minimum|smallest|lowest)\b(?: of| value| number| element| integer)*", ("ints",), "int", _smallest, variants=({}, {"missing": -1})),
    Family("counting", 1, r"\b(?:how many|the number of|count)\b(?: of)?(?: the)?(?: numbers| integers| values| elements)?", ("ints",), "int", _count),
    Family("sorting", 1, r"\bsort(?:ed|s|ing)?\b(?: (?:in|into))?(?: (?:ascending|increasing|non-decreasing)(?: order)?)?|(?:ascending|increasing|non-decreasing) order|smallest to largest|smallest first", ("ints",), "ints", _ascending, stage=3),
    Family("sorting down", 1, r"(?:\bsort(?:ed|s|ing)?\b[^.]{0,40})?(?:descending|decreasing|non-increasing)(?: order)?|largest to smallest|largest first", ("ints",), "ints", _descending, stage=3),
    Family("even numbers", 1, rf"\beven\b(?: integers| numbers| values| elements| ones)?|{OUT}odd (?:integers|numbers|values|elements|ones)", ("ints",), "ints", _even, stage=1),
    Family("odd numbers", 1, rf"\bodd\b(?: integers| numbers| values| elements| ones)?|{OUT}even (?:integers|numbers|values|elements|ones)", ("ints",), "ints", _odd, stage=1),
    Family("reversing a list", 1, r"\brevers\w+(?: order| the list| the array| the order)*|\bbackwards\b|opposite order|last to first|from the last", ("ints",), "ints", _reverse, stage=3),
    Family("numbers above a bound", 2, r"(?:strictly )?(?:greater|larger|bigger|more|above|exceed\w*|higher)(?: than)?(?! or equal)", ("ints", "int"), "ints", _greater, rf"(?:greater|larger|bigger|more|higher) than (?:the )?{K}|(?:above|exceed\w*) {K}", stage=1),
    Family("numbers below a bound", 2, r"(?:strictly )?(?:smaller|less|lower|below|under|fewer)(?: than)?(?! or equal)", ("ints", "int"), "ints", _smaller, rf"(?:smaller|less|lower|fewer) than (?:the )?{K}|(?:below|under) {K}", stage=1),
    Family("numbers divisible by another", 2, r"(?:evenly )?divisible by|multiples? of|divides? evenly", ("ints", "int"), "ints", _divisible, rf"(?:divisible by|multiples? of) {K}", stage=1),
    Family("numbers not divisible by another", 3, r"not (?:evenly )?(?:divisible by|(?:a )?multiples? of)", ("ints", "int"), "ints", _not_divisible, rf"(?:divisible by|multiples? of) {K}", stage=1),
    Family("positive numbers", 2, r"(?:strictly )?\bpositive\b(?: integers| numbers| values| elements| ones)?|greater than (?:zero|0)\b", ("ints",), "ints", _positive, stage=1),
    Family("negative numbers", 2, r"(?<!non-)\bnegative\b(?: integers| numbers| values| elements| ones)?|(?:less than|below) (?:zero|0)\b", ("ints",), "ints", _negative, stage=1),
    Family("numbers that are not negative", 3, rf"{OUT}negative(?: integers| numbers| values| elements| ones)?|non-negative(?: integers| numbers| values| elements| ones)?", ("ints",), "ints", _not_negative, stage=1),
    Family("numbers from a bound on", 3, r"(?:greater than or equal to|at least|no less than|not (?:less|smaller) than)", ("ints", "int"), "ints", _at_least, rf"(?:equal to|at least|no less than|not less than|not smaller than) {K}", stage=1),
    Family("numbers up to a bound", 3, r"(?:(?:less|smaller) than or equal to|at most|no (?:more|greater) than|not exceeding|do(?:es)? not exceed|not (?:greater|larger) than)", ("ints", "int"), "ints", _at_most, rf"(?:equal to|at most|no more than|no greater than|not exceeding|not exceed|not greater than|not larger than) {K}", stage=1),
    Family("numbers in a range", 3, rf"(?:between|from|in the range) \[?{K}(?:,| and| to) {K}\]?(?: inclusive|, inclusive)?", ("ints", "int", "int"), "ints", _between, rf"(?:between|from|range) \[?{K}(?:,| and| to) {K}", stage=1),
    Family("occurrences", 2, r"(?:how many times|number of times|(?:number of )?occurrences|how often)(?: \w+){0,4}(?: occurs?| appears?)?|\bequals?(?: to)?\b", ("ints", "int"), "ints", _equal, rf"equals?(?: to)? {K}|of {K}|times {K}", stage=1),
    Family("leaving a value out", 3, r"(?:remov\w+|delet\w+|drop\w*|without)[^.]{0,30}(?:occurrences? of|equal to|every|all)(?: the)?(?: value| number)?", ("ints", "int"), "ints", _without, rf"(?:occurrences? of|equal to|every|all) {K}", stage=1),
    Family("numbers above the average", 3, r"(?:greater|larger|bigger|more|above|exceed\w*)[^.]{0,20}(?:average|mean)", ("ints",), "ints", _above_mean, stage=1),
    Family("squares", 2, r"\bsquares?\b(?: of)?(?: each| every| all)?|\bsquared\b", ("ints",), "ints", _squares, stage=2),
    Family("cubes", 3, r"\bcubes?\b(?: of)?|\bcubed\b", ("ints",), "ints", _cubes, stage=2),
    Family("absolute values", 2, r"\babsolute (?:values?|amounts?)(?: of)?|\bmagnitudes?\b", ("ints",), "ints", _absolute, stage=2),
    Family("multiplying each", 3, r"(?:multipl(?:y|ied|ying)|doubl\w+|tripl\w+)(?: each| every| all| by|\b)[^.,]{0,20}", ("ints", "int"), "ints", _times, rf"multipl\w+[^.]{{0,30}} by {K}|\b(doubl|tripl)", stage=2),
    Family("adding to each", 3, rf"\b(?:add|increas\w+)(?:ing)? {K}? ?(?:to (?:each|every|all)|(?:each|every)[^.]{{0,15}} by)", ("ints", "int"), "ints", _plus, rf"\badd(?:ing)? {K} to|increas\w+[^.]{{0,20}} by {K}", stage=2),
    Family("digit sums", 3, r"(?:sums? of (?:the |its |their )?(?:decimal )?digits|digit sums?)(?: of (?:each|every))?", ("ints",), "ints", _digit_sums, stage=2),
    Family("unique values", 2, r"remov\w+ (?:the |all |any )?(?:duplicates|repeat\w*)|without (?:duplicates|repet\w+)|duplicates? (?:are |is )?removed|(?:keep\w*|print|return|output|only)[^.]{0,30}first (?:appearance|occurrence|time)s?|each (?:distinct |different )?value (?:only )?once|order of (?:their )?first (?:appearance|occurrence)|\b(?:unique|distinct|different)\b", ("ints",), "ints", _unique, stage=1),
    Family("counting distinct values", 2, r"(?:how many|the number of|count(?: the)?(?: number of)?) (?:different|distinct|unique)(?: integers| numbers| values| elements)?", ("ints",), "int", _count_distinct),
    Family("values that occur once", 3, r"(?:appears?|occurs?|occurring|appearing)[^.]{0,12} (?:exactly |only )?once|not repeated", ("ints",), "ints", _only_once, stage=1),
    Family("values that occur again", 3, r"(?:appears?|occurs?|occurring|appearing)[^.]{0,12}(?:more than once|at least twice)|\brepeated\b|\bduplicated\b", ("ints",), "ints", _repeated, stage=1),
    Family("second largest", 2, r"second[- ](?:largest|biggest|highest|greatest|maximum)(?: distinct| different)?(?: value| number| element| integer)?|runner-up", ("ints",), "int", _second_largest, variants=({}, {"distinct": False}, {"missing": 0})),
    Family("second smallest", 3, r"second[- ](?:smallest|lowest|minimum)(?: distinct| different)?(?: value| number| element| integer)?", ("ints",), "int", _second_smallest),
    Family("k-th largest", 3, r"\b(?:k-?th|third|\d+(?:th|rd|nd|st))[- ](?:largest|biggest|highest|greatest)(?: value| number| element| integer)?", ("ints", "int"), "int", _kth_largest, r"(third|\d+)(?:th|rd|nd|st)?[- ]", ({}, {"distinct": True})),
    Family("k-th smallest", 3, r"\b(?:k-?th|third|\d+(?:th|rd|nd|st))[- ](?:smallest|lowest)(?: value| number| element| integer)?", ("ints", "int"), "int", _kth_smallest, r"(third|\d+)(?:th|rd|nd|st)?[- ]", ({}, {"distinct": True})),
    Family("range", 2, r"difference between (?:the |its )?(?:largest|maximum|biggest|greatest|highest)[^.]{0,30}(?:smallest|minimum|lowest)|(?:largest|maximum)[^.]{0,20} minus [^.]{0,15}(?:smallest|minimum)", ("ints",), "int", _spread),
    Family("average", 2, r"(?:(?:floor|integer part)[^.]{0,20})?\b(?:average|mean)\b(?:[^.]{0,40}round\w* down)?", ("ints",), "int", _mean),
    Family("median", 2, r"(?:lower )?\bmedian\b|middle (?:value|element|number)", ("ints",), "int", _median),
    Family("mode", 2, r"\bmode\b|(?:appears?|occurs?|occurring)? ?\bmost (?:often|frequent(?:ly)?|common)[^.]{0,20}|highest frequency|appears? (?:the )?most(?: times)?", ("ints",), "int", _mode, variants=({}, {"least": False})),
    Family("greatest common divisor", 2, r"\bgcd\b|(?:greatest|largest|highest) common (?:divisor|factor)(?: of (?:all|these))?", ("ints",), "int", _gcd),
    Family("least common multiple", 3, r"\blcm\b|(?:least|lowest|smallest) common multiple(?: of (?:all|these))?", ("ints",), "int", _lcm),
    Family("product", 2, r"\bproduct (?:of )?(?:all|the|these|of)*|\bmultiply (?:all|them|together)", ("ints",), "int", _product),
    Family("the first few", 3, rf"\b(?:first|top) (?:k|two|three|\d+)\b(?: {NUM})?|\b(?:k|two|three|\d+) (?:largest|smallest) {NUM}", ("ints", "int"), "ints", _first_k, r"(?:first|top) (\w+)|(\w+) (?:largest|smallest)", stage=4),
    Family("the last few", 4, rf"\blast (?:k|two|three|\d+)\b(?: {NUM})?", ("ints", "int"), "ints", _last_k, r"last (\w+)", stage=4),
    Family("a remainder at the end", 2, r"\bmodulo\b|\bmod\b|remainder (?:when|after)[^.]{0,60}divided by", ("int", "int"), "int", _modulo, rf"(?:modulo|mod|divided by) {K}", stage=6),
)  # fmt: skip


# § Operations on one integer, or on two or three.


# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them


def _count_primes(n: int, closed: int = 0) -> int:
    return sum(
        all(value % d for d in range(2, int(value**0.5) + 1)) for value in range(2, n + closed)
    )


def _list_primes(n: int, closed: int = 0) -> Ints:
    return [
        value
        for value in range(2, n + closed)
        if all(value % d for d in range(2, int(value**0.5) + 1))
    ]


def _keep_primes(values: Ints) -> Ints:
    return [v for v in values if v > 1 and all(v % d for d in range(2, int(v**0.5) + 1))]


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _nth_prime(n: int) -> int:
    value, found = 1, 0
    while found < n:
        value += 1
        if all(value % d for d in range(2, int(value**0.5) + 1)):
            found += 1
    return value


def _factors(n: int) -> Ints:
    result: Ints = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            result.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        result.append(n)
    return result


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def _fibonacci_numbers(n: int, start: int = 0) -> Ints:
    result = [start, 1]
    while len(result) < n:
        result.append(result[-1] + result[-2])
    return result[:n]


def _fibonacci_modulo(n: int, k: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % k
    return a % k


def _power_modulo(base: int, exponent: int, modulus: int) -> int:
    return pow(base, exponent, modulus)


def _power(base: int, exponent: int) -> int:
    return base**exponent if abs(exponent) < 10000 else 0


def _factorial(n: int) -> int:
    result = 1
    for value in range(2, n + 1):
        result *= value
    return result


def _binary(n: int) -> str:
    return format(n, "b")


def _from_binary(text: str) -> int:
    return int(text, 2)


def _ones(n: int) -> int:
    return bin(n).count("1")


def _in_base(n: int, base: int) -> str:
    result = "" if n else "0"
    while n > 0 and base > 1:
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[n % base] + result
        n //= base
    return result


def _digit_sum(n: int) -> int:
    return sum(int(digit) for digit in str(abs(n)))


def _digit_product(n: int) -> int:
    result = 1
    for digit in str(abs(n)):
        result *= int(digit)
    return result


def _digital_root(n: int) -> int:
    while n > 9:
        n = sum(int(digit) for digit in str(n))
    return n


def _digit_count(n: int) -> int:
    return len(str(abs(n)))


def _reversed_digits(n: int) -> int:
    return int(str(abs(n))[::-1]) * (-1 if n < 0 else 1)


def _number_palindrome(n: int) -> bool:
    return str(n) == str(n)[::-1]


def _common_divisor(n: int, other: int) -> int:
    return math.gcd(n, other)


def _common_multiple(n: int, other: int) -> int:
    return n * other // math.gcd(n, other)


def _added(n: int, other: int) -> int:
    return n + other


def _multiplied(n: int, other: int) -> int:
    return n * other


def _collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _collatz_numbers(n: int) -> Ints:
    result = [n]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        result.append(n)
    return result


def _divisors(n: int, own: int = 1) -> Ints:
    return [value for value in range(1, n + own) if n % value == 0]


def _perfect(n: int) -> bool:
    return n > 1 and sum(value for value in range(1, n) if n % value == 0) == n


def _up_to(n: int) -> Ints:
    return list(range(1, n + 1))


def _below(n: int) -> Ints:
    return list(range(1, n))


def _from_to(n: int, other: int) -> Ints:
    return list(range(n, other + 1))


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _trailing_zeros(n: int) -> int:
    result = 0
    while n > 0:
        n //= 5
        result += n
    return result


def _root(n: int) -> int:
    return int(n**0.5)


def _is_square(n: int) -> bool:
    return n >= 0 and math.isqrt(n) ** 2 == n


def _leap(n: int) -> bool:
    return n % 4 == 0 and (n % 100 != 0 or n % 400 == 0)


def _fizz(n: int) -> list[str]:
    return [("Fizz" * (i % 3 == 0) + "Buzz" * (i % 5 == 0)) or str(i) for i in range(1, n + 1)]


def _roman(n: int) -> str:
    result = ""
    signs = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"]
    for value, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), signs, strict=True
    ):
        result += sign * (n // value)
        n %= value
    return result


def _stairs(n: int) -> int:
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return a


LIGHT = frozenset(
    {_binary, _ones, _digit_sum, _digit_product, _digital_root, _digit_count, _reversed_digits}
    | {_number_palindrome, _is_square, MODULO}
)
"""Operations that are quick on long numbers too."""
BOUND = r"(?:below|(?:strictly )?(?:less|smaller) than(?: or equal to)?|up to|under|at most|not exceeding|no (?:greater|larger) than|(?:between|from) \w+ (?:and|to))"
CLOSED: tuple[dict[str, int], ...] = ({}, {"closed": 1})
COUNT_OF = r"(?:how many|(?:the )?number of|counts?)(?: the| of)*"

NUMBERS: tuple[Family, ...] = (
    Family("counting primes", 2, rf"{COUNT_OF} (?:primes|prime numbers)[^.]{{0,40}}{BOUND}? ?(?:or equal to )?", ("int",), "int", _count_primes, variants=CLOSED),
    Family("listing primes", 2, rf"(?:all |the |list )*(?:primes|prime numbers)[^.]{{0,30}}{BOUND}", ("int",), "ints", _list_primes, variants=CLOSED, stage=0),
    Family("primes of a list", 3, r"\bprimes?\b(?: numbers| values)?", ("ints",), "ints", _keep_primes, stage=1),
    Family("whether a number is prime", 2, r"(?:whether|if|determine|check)[^.]{0,40}\bprime\b", ("int",), "bool", _is_prime),
    Family("the n-th prime", 3, r"(?:n-?th|k-?th) prime(?: number)?", ("int",), "int", _nth_prime),
    Family("prime factors", 2, r"prime factor\w*(?: of| in)?", ("int",), "ints", _factors, stage=0),
    Family("Fibonacci numbers", 2, r"fibonacci(?: numbers?)?", ("int",), "int", _fibonacci),
    Family("the first Fibonacci numbers", 3, r"first (?:n|k|\w+) (?:\w+ ){0,2}fibonacci(?: numbers)?|fibonacci (?:sequence|numbers)[^.]{0,30}(?:first n|n (?:terms|numbers))", ("int",), "ints", _fibonacci_numbers, variants=({}, {"start": 1}), stage=0),
    Family("Fibonacci modulo", 2, r"fibonacci[^#]{0,150}(?:modulo|\bmod\b|remainder)(?: (?:when )?divided by)?", ("int", "int"), "int", _fibonacci_modulo, r"(?:modulo|mod|divided by) (\d[\d_^*+ ]*)"),
    Family("powers modulo", 2, r"(?:raised to|\*\*|\^|to the power)[^#]{0,200}(?:modulo|\bmod\b|remainder|%)", ("int", "int", "int"), "int", _power_modulo, r"(?:no constant here)|(?!x)x"),
    Family("powers", 3, r"(?:raised to|\*\*|to the power)(?: of)?", ("int", "int"), "int", _power),
    Family("factorials", 2, r"factorial(?: of)?|\bn!", ("int",), "int", _factorial),
    Family("binary form", 2, r"\bbinary\b(?: (?:representation|form|notation))?(?: of)?|base[- ](?:2|two)\b", ("int",), "text", _binary, stage=2),
    Family("reading binary", 3, r"binary (?:string|number|numeral)[^.]{0,60}(?:decimal|value|integer|base 10)", ("text",), "int", _from_binary, stage=0),
    Family("ones in binary", 2, rf"{COUNT_OF}[^.]{{0,20}}(?:\b1s\b|\b1'?s?\b|\bones\b|1-bits|1 bits|set bits|\bone bits)[^.]{{0,20}}(?:binary(?: representation| form| notation)*)?", ("int",), "int", _ones),
    Family("other bases", 3, r"(?:in|to) base[- ]\w+(?: representation| form)?|base[- ]\w+ representation|given base", ("int", "int"), "text", _in_base, r"base[- ](\d+)"),
    Family("sum of digits", 2, r"(?:sum of (?:the |its |all |their )*(?:decimal )?digits(?: of)?|digit sum(?: of)?)", ("int",), "int", _digit_sum),
    Family("product of digits", 3, r"product of (?:the |its |all )*(?:decimal )?digits", ("int",), "int", _digit_product),
    Family("digital roots", 3, r"digital root|(?:repeat\w*|until|again)[^.]{0,60}(?:single|one)[- ]digit|sum[^.]{0,30}digits[^.]{0,60}(?:single|one)[- ]digit", ("int",), "int", _digital_root),
    Family("counting digits", 3, r"(?:how many|number of) (?:decimal )?digits", ("int",), "int", _digit_count),
    Family("reversed digits", 3, r"revers\w+[^.]{0,30}digits|digits[^.]{0,40}revers\w+(?: order)?", ("int",), "int", _reversed_digits),
    Family("palindromic numbers", 3, r"palindrom\w*", ("int",), "bool", _number_palindrome),
    Family("common divisor of two", 2, r"\bgcd\b|(?:greatest|largest|highest) common (?:divisor|factor)(?: of)?", ("int", "int"), "int", _common_divisor),
    Family("common multiple of two", 2, r"\blcm\b|(?:least|lowest|smallest) common multiple(?: of)?", ("int", "int"), "int", _common_multiple),
    Family("adding two", 1, r"\bsum\b(?: of)?|\badd\b", ("int", "int"), "int", _added),
    Family("multiplying two", 2, r"\bproduct\b(?: of)?|\bmultiply\b", ("int", "int"), "int", _multiplied),
    Family("Collatz steps", 3, r"collatz[^#]{0,200}steps|(?:halv\w+|divid\w+ (?:it )?by (?:2|two)|n ?/ ?2)[^#]{0,200}(?:steps|operations|reach)|steps[^.]{0,60}(?:reach|become)s? 1|\bhal(?:f|ve)\w*[^#]{0,160}(?:steps|times|operations|moves)", ("int",), "int", _collatz),
    Family("Collatz sequence", 3, r"collatz (?:sequence|numbers)|sequence[^#]{0,100}(?:even|halv)[^#]{0,120}(?:3n ?\+ ?1|3 \* n \+ 1|three times)", ("int",), "ints", _collatz_numbers, stage=0),
    Family("divisors", 2, r"(?:positive |proper )*(?:divisors?|factors)(?: of)?", ("int",), "ints", _divisors, variants=({}, {"own": 0}), stage=0),
    Family("perfect numbers", 4, r"perfect number|\bperfect\b(?! square)", ("int",), "bool", _perfect),
    Family("numbers up to n", 2, r"(?:from|between) 1 (?:up )?(?:to|and) n\b|up to (?:and including )?n\b|(?:first n|1\.\.n|1, 2, \.\.\., n)[^.]{0,30}", ("int",), "ints", _up_to, stage=0),
    Family("numbers below n", 3, r"(?:below|less than|under|smaller than) n\b", ("int",), "ints", _below, stage=0),
    Family("numbers of a span", 3, r"(?:from|between|in the range) (?:a|l|m|x|lo|low|start|\[a) ?(?:to|and|,) ?(?:b|r|n|y|hi|high|end)\b(?:\]|,? inclusive)?", ("int", "int"), "ints", _from_to, stage=0),
    Family("powers of two", 3, r"power of (?:2|two)", ("int",), "bool", _power_of_two),
    Family("zeros of a factorial", 3, r"trailing zero\w*[^.]{0,40}(?:factorial|n!)?", ("int",), "int", _trailing_zeros),
    Family("integer roots", 3, r"integer square root|floor of the square root|square root[^.]{0,40}(?:rounded down|floor)", ("int",), "int", _root),
    Family("perfect squares", 3, r"(?:is )?a? ?perfect square", ("int",), "bool", _is_square),
    Family("leap years", 3, r"leap years?", ("int",), "bool", _leap),
    Family("FizzBuzz", 2, r"fizz[^#]*buzz", ("int",), "words", _fizz),
    Family("Roman numerals", 3, r"roman numerals?", ("int",), "text", _roman),
    Family("climbing stairs", 4, r"stairs?(?:case)?[^#]{0,120}ways|ways[^.]{0,60}(?:stairs?|steps)", ("int",), "int", _stairs),
)  # fmt: skip
