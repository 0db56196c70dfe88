# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on integers and on lists of them, and what an operation is."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

Variants = tuple[dict[str, Any], ...]
Value = Any  # what flows through a chain: its kind is known only when the chain is
ONE_READING: Variants = ({},)
Ints = list[int]
Words = list[str]
Matrix = list[list[int]]
P = ParamSpec("P")


class Takes(tuple[str, ...], Generic[P]):
    """Kinds of an operation's arguments (int, ints, text, words, matrix, pairs), and their types."""


@dataclass(frozen=True, slots=True)
class Family(Generic[P]):
    """One operation that a code writer has learnt."""

    name: str
    level: int  # 1: every beginner; 2: common exercises; 3 and 4: for specialists
    asks: str
    """Pattern of the phrases that ask for it; a longer match explains more of the statement."""
    takes: Takes[P]
    gives: str  # kind of result: int, ints, text, words, bool, matrix, pairs
    does: Callable[P, Any]
    """Its source is what is written into programs, so its names and its form are replies."""
    bind: str = ""
    """Pattern whose groups are the ints after the first argument, numerals or names of inputs."""
    variants: Variants = ONE_READING  # readings of what the statement leaves open, likeliest first
    stage: int = 5
    """Place in a chain when the wording does not tell: 1 filter, 2 map, 3 order, 4 take, 5 fold."""
    called: str = ""  # the name of `does` in programs, where it is a lambda

    def __post_init__(self) -> None:
        object.__setattr__(self, "called", self.called or self.does.__name__.lstrip("_"))


INT: Takes[[int]] = Takes(("int",))
INT_INT: Takes[[int, int]] = Takes(("int", "int"))
INT_INT_INT: Takes[[int, int, int]] = Takes(("int", "int", "int"))
INTS: Takes[[Ints]] = Takes(("ints",))
INTS_INT: Takes[[Ints, int]] = Takes(("ints", "int"))
INTS_INT_INT: Takes[[Ints, int, int]] = Takes(("ints", "int", "int"))
TEXT: Takes[[str]] = Takes(("text",))
TEXT_INT: Takes[[str, int]] = Takes(("text", "int"))
TEXT_TEXT: Takes[[str, str]] = Takes(("text", "text"))
WORD_LIST: Takes[[Words]] = Takes(("words",))
WORDS_INT: Takes[[Words, int]] = Takes(("words", "int"))
MATRIX: Takes[[Matrix]] = Takes(("matrix",))
PAIRS: Takes[[Matrix]] = Takes(("pairs",))
NUM = r"(?:integers?|numbers?|elements?|values?|items?|entries|ones)"
OUT = r"(?:remov\w+|delet\w+|drop\w*|discard\w*|ignor\w+|leav\w+ out|without|except)(?: the| all| every)* "
K = r"(\w+|-\d+)"


def _product(values: Ints) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _second_largest(values: Ints, distinct: bool = True, missing: int = -1) -> int:
    kept = sorted(set(values)) if distinct else sorted(values)
    if len(kept) < 2:
        return missing
    return kept[-2]


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


LISTS: tuple[Family[...], ...] = (
    Family("sum", 1, r"\bsum (?:of )?(?:all |the |these |those |n |given |only )*(?:integers|numbers|elements|values|array|list|them)?|\badd (?:up|together)|\btotal\b(?: of)?", INTS, "int",
       called="total", does=lambda values: sum(values)),
    Family("maximum", 1, r"\b(?:maximum|largest|greatest|biggest|highest)\b(?: of| value| number| element| integer)*", INTS, "int", variants=({}, {"missing": -1}),
       called="largest", does=lambda values, missing=0: max(values) if values else missing),
    Family("minimum", 1, r"\b(?:minimum|smallest|lowest)\b(?: of| value| number| element| integer)*", INTS, "int", variants=({}, {"missing": -1}),
       called="smallest", does=lambda values, missing=0: min(values) if values else missing),
    Family("counting", 1, r"\b(?:how many|the number of|count)\b(?: of)?(?: the)?(?: numbers| integers| values| elements)?", INTS, "int",
       called="count", does=lambda values: len(values)),
    Family("sorting", 1, r"\bsort(?:ed|s|ing)?\b(?: (?:in|into))?(?: (?:ascending|increasing|non-decreasing)(?: order)?)?|(?:ascending|increasing|non-decreasing) order|smallest to largest|smallest first", INTS, "ints", stage=3,
       called="ascending", does=lambda values: sorted(values)),
    Family("sorting down", 1, r"(?:\bsort(?:ed|s|ing)?\b[^.]{0,40})?(?:descending|decreasing|non-increasing)(?: order)?|largest to smallest|largest first", INTS, "ints", stage=3,
       called="descending", does=lambda values: sorted(values, reverse=True)),
    Family("even numbers", 1, rf"\beven\b(?: integers| numbers| values| elements| ones)?|{OUT}odd (?:integers|numbers|values|elements|ones)", INTS, "ints", stage=1,
       called="even", does=lambda values: [value for value in values if value % 2 == 0]),
    Family("odd numbers", 1, rf"\bodd\b(?: integers| numbers| values| elements| ones)?|{OUT}even (?:integers|numbers|values|elements|ones)", INTS, "ints", stage=1,
       called="odd", does=lambda values: [value for value in values if value % 2 != 0]),
    Family("reversing a list", 1, r"\brevers\w+(?: order| the list| the array| the order)*|\bbackwards\b|opposite order|last to first|from the last", INTS, "ints", stage=3,
       called="reverse", does=lambda values: values[::-1]),
    Family("numbers above a bound", 2, r"(?:strictly )?(?:greater|larger|bigger|more|above|exceed\w*|higher)(?: than)?(?! or equal)", INTS_INT, "ints", bind=rf"(?:greater|larger|bigger|more|higher) than (?:the )?{K}|(?:above|exceed\w*) {K}", stage=1,
       called="greater", does=lambda values, k: [value for value in values if value > k]),
    Family("numbers below a bound", 2, r"(?:strictly )?(?:smaller|less|lower|below|under|fewer)(?: than)?(?! or equal)", INTS_INT, "ints", bind=rf"(?:smaller|less|lower|fewer) than (?:the )?{K}|(?:below|under) {K}", stage=1,
       called="smaller", does=lambda values, k: [value for value in values if value < k]),
    Family("numbers divisible by another", 2, r"(?:evenly )?divisible by|multiples? of|divides? evenly", INTS_INT, "ints", bind=rf"(?:divisible by|multiples? of) {K}", stage=1,
       called="divisible", does=lambda values, k: [value for value in values if value % k == 0]),
    Family("positive numbers", 2, r"(?:strictly )?\bpositive\b(?: integers| numbers| values| elements| ones)?|greater than (?:zero|0)\b", INTS, "ints", stage=1,
       called="positive", does=lambda values: [value for value in values if value > 0]),
    Family("numbers from a bound on", 3, r"(?:greater than or equal to|at least|no less than|not (?:less|smaller) than)", INTS_INT, "ints", bind=rf"(?:equal to|at least|no less than|not less than|not smaller than) {K}", stage=1,
       called="at_least", does=lambda values, k: [value for value in values if value >= k]),
    Family("numbers up to a bound", 3, r"(?:(?:less|smaller) than or equal to|at most|no (?:more|greater) than|not exceeding|do(?:es)? not exceed|not (?:greater|larger) than)", INTS_INT, "ints", bind=rf"(?:equal to|at most|no more than|no greater than|not exceeding|not exceed|not greater than|not larger than) {K}", stage=1,
       called="at_most", does=lambda values, k: [value for value in values if value <= k]),
    Family("numbers in a range", 3, rf"(?:between|from|in the range) \[?{K}(?:,| and| to) {K}\]?(?: inclusive|, inclusive)?", INTS_INT_INT, "ints", bind=rf"(?:between|from|range) \[?{K}(?:,| and| to) {K}", stage=1, called="between",
       does=lambda values, low, high: [value for value in values if low <= value <= high]),
    Family("occurrences", 2, r"(?:how many times|number of times|(?:number of )?occurrences|how often)(?: \w+){0,4}(?: occurs?| appears?)?|\bequals?(?: to)?\b", INTS_INT, "ints", bind=rf"equals?(?: to)? {K}|of {K}|times {K}", stage=1,
       called="equal", does=lambda values, k: [value for value in values if value == k]),
    Family("leaving a value out", 3, r"(?:remov\w+|delet\w+|drop\w*|without)[^.]{0,30}(?:occurrences? of|equal to|every|all)(?: the)?(?: value| number)?", INTS_INT, "ints", bind=rf"(?:occurrences? of|equal to|every|all) {K}", stage=1,
       called="without", does=lambda values, k: [value for value in values if value != k]),
    Family("squares", 2, r"\bsquares?\b(?: of)?(?: each| every| all)?|\bsquared\b", INTS, "ints", stage=2,
       called="squares", does=lambda values: [value * value for value in values]),
    Family("cubes", 3, r"\bcubes?\b(?: of)?|\bcubed\b", INTS, "ints", stage=2,
       called="cubes", does=lambda values: [value**3 for value in values]),
    Family("absolute values", 2, r"\babsolute (?:values?|amounts?)(?: of)?|\bmagnitudes?\b", INTS, "ints", stage=2,
       called="absolute", does=lambda values: [abs(value) for value in values]),
    Family("multiplying each", 3, r"(?:multipl(?:y|ied|ying)|doubl\w+|tripl\w+)(?: each| every| all| by|\b)[^.,]{0,20}", INTS_INT, "ints", bind=rf"multipl\w+[^.]{{0,30}} by {K}|\b(doubl|tripl)", stage=2,
       called="times", does=lambda values, k: [value * k for value in values]),
    Family("digit sums", 3, r"(?:sums? of (?:the |its |their )?(?:decimal )?digits|digit sums?)(?: of (?:each|every))?", INTS, "ints", stage=2, called="digit_sums",
       does=lambda values: [sum(int(digit) for digit in str(abs(value))) for value in values]),
    Family("unique values", 2, r"remov\w+ (?:the |all |any )?(?:duplicates|repeat\w*)|without (?:duplicates|repet\w+)|duplicates? (?:are |is )?removed|(?:keep\w*|print|return|output|only)[^.]{0,30}first (?:appearance|occurrence|time)s?|each (?:distinct |different )?value (?:only )?once|order of (?:their )?first (?:appearance|occurrence)|\b(?:unique|distinct|different)\b", INTS, "ints", stage=1,
       called="unique", does=lambda values: list(dict.fromkeys(values))),
    Family("counting distinct values", 2, r"(?:how many|the number of|count(?: the)?(?: number of)?) (?:different|distinct|unique)(?: integers| numbers| values| elements)?", INTS, "int",
       called="count_distinct", does=lambda values: len(set(values))),
    Family("second largest", 2, r"second[- ](?:largest|biggest|highest|greatest|maximum)(?: distinct| different)?(?: value| number| element| integer)?|runner-up", INTS, "int", _second_largest, variants=({}, {"distinct": False}, {"missing": 0})),
    Family("range", 2, r"difference between (?:the |its )?(?:largest|maximum|biggest|greatest|highest)[^.]{0,30}(?:smallest|minimum|lowest)|(?:largest|maximum)[^.]{0,20} minus [^.]{0,15}(?:smallest|minimum)", INTS, "int",
       called="spread", does=lambda values: max(values) - min(values)),
    Family("mode", 2, r"\bmode\b|(?:appears?|occurs?|occurring)? ?\bmost (?:often|frequent(?:ly)?|common)[^.]{0,20}|highest frequency|appears? (?:the )?most(?: times)?", INTS, "int", _mode, variants=({}, {"least": False})),
    Family("greatest common divisor", 2, r"\bgcd\b|(?:greatest|largest|highest) common (?:divisor|factor)(?: of (?:all|these))?", INTS, "int", _gcd),
    Family("least common multiple", 3, r"\blcm\b|(?:least|lowest|smallest) common multiple(?: of (?:all|these))?", INTS, "int", _lcm),
    Family("product", 2, r"\bproduct (?:of )?(?:all|the|these|of)*|\bmultiply (?:all|them|together)", INTS, "int", _product),
    Family("the first few", 3, rf"\b(?:first|top) (?:k|two|three|\d+)\b(?: {NUM})?|\b(?:k|two|three|\d+) (?:largest|smallest) {NUM}", INTS_INT, "ints", bind=r"(?:first|top) (\w+)|(\w+) (?:largest|smallest)", stage=4,
       called="first_k", does=lambda values, k: values[:k]),
    Family("the last few", 4, rf"\blast (?:k|two|three|\d+)\b(?: {NUM})?", INTS_INT, "ints", bind=r"last (\w+)", stage=4,
       called="last_k", does=lambda values, k: values[-k:]),
    Family("a remainder at the end", 2, r"\bmodulo\b|\bmod\b|remainder (?:when|after)[^.]{0,60}divided by", INT_INT, "int", bind=rf"(?:modulo|mod|divided by) {K}", stage=6,
       called="modulo", does=lambda value, k: value % k),
)  # fmt: skip


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


def _fibonacci_modulo(n: int, k: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % k
    return a % k


def _factorial(n: int) -> int:
    result = 1
    for value in range(2, n + 1):
        result *= value
    return result


def _in_base(n: int, base: int) -> str:
    result = "" if n else "0"
    while n > 0 and base > 1:
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[n % base] + result
        n //= base
    return result


LIGHT = frozenset(
    {"binary", "ones", "digit_sum", "digit_product", "digital_root", "digit_count", "modulo"}
    | {"reversed_digits", "number_palindrome", "is_square"}
)
"""Operations that are quick on long numbers too."""
BOUND = r"(?:below|(?:strictly )?(?:less|smaller) than(?: or equal to)?|up to|under|at most|not exceeding|no (?:greater|larger) than|(?:between|from) \w+ (?:and|to))"
CLOSED: tuple[dict[str, int], ...] = ({}, {"closed": 1})
COUNT_OF = r"(?:how many|(?:the )?number of|counts?)(?: the| of)*"

NUMBERS: tuple[Family[...], ...] = (
    Family("counting primes", 2, rf"{COUNT_OF} (?:primes|prime numbers)[^.]{{0,40}}{BOUND}? ?(?:or equal to )?", INT, "int", variants=CLOSED, called="count_primes", does=lambda n, closed=0:
           sum(all(value % d for d in range(2, int(value**0.5) + 1))
               for value in range(2, n + closed))),
    Family("listing primes", 2, rf"(?:all |the |list )*(?:primes|prime numbers)[^.]{{0,30}}{BOUND}", INT, "ints", variants=CLOSED, stage=0, called="list_primes", does=lambda n, closed=0:
           [value for value in range(2, n + closed)
            if all(value % d for d in range(2, int(value**0.5) + 1))]),
    Family("primes of a list", 3, r"\bprimes?\b(?: numbers| values)?", INTS, "ints", stage=1, called="keep_primes", does=lambda values:
           [v for v in values if v > 1 and all(v % d for d in range(2, int(v**0.5) + 1))]),
    Family("prime factors", 2, r"prime factor\w*(?: of| in)?", INT, "ints", _factors, stage=0),
    Family("Fibonacci numbers", 2, r"fibonacci(?: numbers?)?", INT, "int", _fibonacci),
    Family("Fibonacci modulo", 2, r"fibonacci[^#]{0,150}(?:modulo|\bmod\b|remainder)(?: (?:when )?divided by)?", INT_INT, "int", _fibonacci_modulo, r"(?:modulo|mod|divided by) (\d[\d_^*+ ]*)"),
    Family("powers modulo", 2, r"(?:raised to|\*\*|\^|to the power)[^#]{0,200}(?:modulo|\bmod\b|remainder|%)", INT_INT_INT, "int", bind=r"(?:no constant here)|(?!x)x",
       called="power_modulo", does=lambda base, exponent, modulus: pow(base, exponent, modulus)),
    Family("powers", 3, r"(?:raised to|\*\*|to the power)(?: of)?", INT_INT, "int",
       called="power", does=lambda base, exponent: base**exponent if abs(exponent) < 10000 else 0),
    Family("factorials", 2, r"factorial(?: of)?|\bn!", INT, "int", _factorial),
    Family("binary form", 2, r"\bbinary\b(?: (?:representation|form|notation))?(?: of)?|base[- ](?:2|two)\b", INT, "text", stage=2,
       called="binary", does=lambda n: format(n, "b")),
    Family("reading binary", 3, r"binary (?:string|number|numeral)[^.]{0,60}(?:decimal|value|integer|base 10)", TEXT, "int", stage=0,
       called="from_binary", does=lambda text: int(text, 2)),
    Family("ones in binary", 2, rf"{COUNT_OF}[^.]{{0,20}}(?:\b1s\b|\b1'?s?\b|\bones\b|1-bits|1 bits|set bits|\bone bits)[^.]{{0,20}}(?:binary(?: representation| form| notation)*)?", INT, "int",
       called="ones", does=lambda n: bin(n).count("1")),
    Family("other bases", 3, r"(?:in|to) base[- ]\w+(?: representation| form)?|base[- ]\w+ representation|given base", INT_INT, "text", _in_base, r"base[- ](\d+)"),
    Family("sum of digits", 2, r"(?:sum of (?:the |its |all |their )*(?:decimal )?digits(?: of)?|digit sum(?: of)?)", INT, "int",
       called="digit_sum", does=lambda n: sum(int(digit) for digit in str(abs(n)))),
    Family("palindromic numbers", 3, r"palindrom\w*", INT, "bool",
       called="number_palindrome", does=lambda n: str(n) == str(n)[::-1]),
    Family("common divisor of two", 2, r"\bgcd\b|(?:greatest|largest|highest) common (?:divisor|factor)(?: of)?", INT_INT, "int",
       called="common_divisor", does=lambda n, other: math.gcd(n, other)),
    Family("common multiple of two", 2, r"\blcm\b|(?:least|lowest|smallest) common multiple(?: of)?", INT_INT, "int",
       called="common_multiple", does=lambda n, other: n * other // math.gcd(n, other)),
    Family("adding two", 1, r"\bsum\b(?: of)?|\badd\b", INT_INT, "int",
       called="added", does=lambda n, other: n + other),
    Family("multiplying two", 2, r"\bproduct\b(?: of)?|\bmultiply\b", INT_INT, "int",
       called="multiplied", does=lambda n, other: n * other),
    Family("divisors", 2, r"(?:positive |proper )*(?:divisors?|factors)(?: of)?", INT, "ints", variants=({}, {"own": 0}), stage=0, called="divisors",
       does=lambda n, own=1: [value for value in range(1, n + own) if n % value == 0]),
    Family("numbers up to n", 2, r"(?:from|between) 1 (?:up )?(?:to|and) n\b|up to (?:and including )?n\b|(?:first n|1\.\.n|1, 2, \.\.\., n)[^.]{0,30}", INT, "ints", stage=0,
       called="up_to", does=lambda n: list(range(1, n + 1))),
    Family("numbers below n", 3, r"(?:below|less than|under|smaller than) n\b", INT, "ints", stage=0,
       called="below", does=lambda n: list(range(1, n))),
    Family("powers of two", 3, r"power of (?:2|two)", INT, "bool",
       called="power_of_two", does=lambda n: n > 0 and n & (n - 1) == 0),
)  # fmt: skip
