# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on one list of integers: filters, maps, orders and folds."""

import math

from harness.rehearsal.program_kinds import Family

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
