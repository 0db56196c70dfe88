# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on lists in which places matter, on matrices and on intervals."""

import itertools

from podium.suites.practice.workers.program_numbers import (
    INTS,
    INTS_INT,
    MATRIX,
    PAIRS,
    Family,
    Ints,
    Matrix,
)


def _running_sums(values: Ints) -> Ints:
    result: Ints = []
    total = 0
    for value in values:
        total += value
        result.append(total)
    return result


def _differences(values: Ints, absolute: bool = False) -> Ints:
    found = [after - before for before, after in itertools.pairwise(values)]
    return [abs(value) for value in found] if absolute else found


def _increasing_run(values: Ints, equal: bool = False) -> int:
    best = length = 1 if values else 0
    for before, value in itertools.pairwise(values):
        length = length + 1 if value > before or (equal and value == before) else 1
        best = max(best, length)
    return best


def _equal_run(values: Ints) -> int:
    best = length = 1 if values else 0
    for before, value in itertools.pairwise(values):
        length = length + 1 if value == before else 1
        best = max(best, length)
    return best


def _best_subarray(values: Ints, empty: bool = False) -> int:
    best = 0 if empty else values[0]
    total = 0
    for value in values:
        total = max(value, total + value)
        best = max(best, total)
    return best


def _two_sum(values: Ints, target: int, base: int = 0, missing: str = "-1") -> Ints:
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] + values[j] == target:
                return [i + base, j + base]
    return [int(word) for word in missing.split()]


def _two_sum_values(values: Ints, target: int) -> Ints:
    seen: set[int] = set()
    for value in values:
        if target - value in seen:
            return sorted([value, target - value])
        seen.add(value)
    return [-1]


def _pair_exists(values: Ints, target: int) -> bool:
    seen: set[int] = set()
    for value in values:
        if target - value in seen:
            return True
        seen.add(value)
    return False


def _run_lengths_of(values: Ints) -> Ints:
    ends = [at for at in range(1, len(values)) if values[at] != values[at - 1]]
    marks = [0, *ends, len(values)]
    return [b - a for a, b in itertools.pairwise(marks)]


RUN = r"(?:(?:contiguous|consecutive) (?:elements|subarray|run|subsequence|block)|run|subarray|streak|segment|stretch|block)"
ARRAYS: tuple[Family[...], ...] = (
    Family("running totals", 2, r"(?:running|cumulative|partial|prefix) (?:sums?|totals?)|sum of (?:all |the )?(?:elements|values|numbers|first i)[^.]{0,25}(?:up to|so far)[^.]{0,25}", INTS, "ints", _running_sums, stage=3),
    Family("running maximum", 3, r"(?:running|prefix) (?:maxim\w+|largest)|(?:maximum|largest|greatest)[^.]{0,40}(?:so far|up to|seen until)[^.]{0,20}", INTS, "ints", stage=3, called="running_maximum",
       does=lambda values: [max(values[: at + 1]) for at in range(len(values))]),
    Family("differences of neighbours", 3, r"(?:absolute )?differences? (?:between|of)[^.]{0,30}(?:consecutive|adjacent|neighbou?r\w*|successive)[^.]{0,12}|each \w+ minus the (?:one )?(?:before|previous)[^.]{0,10}", INTS, "ints", _differences, variants=({}, {"absolute": True}), stage=3),
    Family("sums of neighbours", 4, r"sums? (?:of|between)[^.]{0,20}(?:consecutive|adjacent|neighbou?r\w*)(?: \w+)?", INTS, "ints", stage=3, called="neighbour_sums",
       does=lambda values: [after + before for before, after in itertools.pairwise(values)]),
    Family("longest rising run", 3, rf"(?:longest|maximum length|length of)[^.]{{0,60}}(?:increasing|ascending|rising|growing)(?: (?:contiguous|consecutive))?(?: {RUN})?|longest {RUN}[^.]{{0,70}}(?:greater|larger|increas\w+)[^.]{{0,40}}", INTS, "int", _increasing_run, variants=({}, {"equal": True})),
    Family("longest run of equal values", 3, rf"longest[^.]{{0,30}}(?:{RUN})?[^.]{{0,20}}(?:equal|identical|the same)(?: (?:value|number|element|integer)s?)?", INTS, "int", _equal_run),
    Family("largest sum of a subarray", 3, rf"(?:maximum|largest|greatest|biggest)[^.]{{0,30}}sum[^.]{{0,40}}{RUN}|maximum subarray(?: sum)?|sum of (?:a|any) (?:non-empty )?{RUN}", INTS, "int", _best_subarray, variants=({}, {"empty": True})),
    Family("two numbers with a sum", 2, r"(?:indices|positions|index|indexes)[^.]{0,60}(?:sum|add up|adds? to|total)[^.]{0,30}|(?:two|pair)[^.]{0,80}(?:sums?|add up|adds? to|total)[^.]{0,40}(?:target|[a-z]\b)?", INTS_INT, "ints", _two_sum, r"(?:target|sum is|up to|equal to|sum to) (\d+)", ({}, {"base": 1}, {"missing": "-1 -1"}, {"base": 1, "missing": "-1 -1"})),
    Family("two values with a sum", 3, r"(?:two|pair)[^.]{0,80}(?:sum|add up|adds? to|total)[^.]{0,30}", INTS_INT, "ints", _two_sum_values, r"(?:target|sum is|up to|equal to|sum to) (\d+)"),
    Family("whether two numbers have a sum", 2, r"(?:(?:whether|if|determine|check|yes)[^.]{0,60})?(?:two|pair)[^.]{0,80}(?:sums?|add up|adds? to|total)[^.]{0,30}", INTS_INT, "bool", _pair_exists, r"(?:target|sum is|up to|equal to|sum to) (\d+)"),
    Family("ascents", 4, r"(?:neighbou?r\w*|adjacent|consecutive)[^.]{0,60}(?:increas\w+|larger|greater|ascending|rises?)[^.]{0,30}|\bascents?\b", INTS, "int",
       called="ascents", does=lambda values: sum(a < b for a, b in itertools.pairwise(values))),
    Family("run lengths", 4, r"(?:lengths? of )?(?:maximal )?(?:runs|blocks|groups)\b[^.]{0,30}", INTS, "ints", _run_lengths_of, stage=0),
    Family("whether a list is sorted", 2, r"\bsorted\b|(?:whether|if)[^.]{0,40}(?:ascending|increasing|non-decreasing)(?: order)?", INTS, "bool", variants=({}, {"strict": True}), called="is_sorted", does=lambda values, strict=False:
           all(a < b or (a == b and not strict) for a, b in itertools.pairwise(values))),
    Family("every other value", 4, r"(?:at |in )?(?:even|odd)(?:-indexed| (?:indices|positions|indexes))|every (?:other|second) (?:element|value|number)", INTS, "ints", variants=({}, {"start": 1}), stage=1,
       called="every_other", does=lambda values, start=0: values[start::2]),
)  # fmt: skip


def _merge(pairs: Matrix, touch: int = 0) -> Matrix:
    result: Matrix = []
    for start, end in sorted(pairs):
        if result and start <= result[-1][1] + touch:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def _merged_count(pairs: Matrix) -> int:
    count, reach = 0, None
    for start, end in sorted(pairs):
        if reach is None or start > reach:
            count, reach = count + 1, end
        reach = max(reach, end)
    return count


def _covered(pairs: Matrix, closed: int = 0) -> int:
    total, reach = 0, None
    for start, end in sorted(pairs):
        if reach is None or start >= reach:
            total, reach = total + end - start + closed, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


SPAN = r"(?:intervals?|segments?|ranges?|meetings?|sessions?|bookings?)"

TABLES: tuple[Family[...], ...] = (
    Family("transposing", 2, r"transpos\w+|rows (?:become|turn into) columns|swap\w* rows and columns|interchang\w+[^.]{0,20}rows[^.]{0,15}columns", MATRIX, "matrix", stage=3,
       called="transpose", does=lambda matrix: [list(row) for row in zip(*matrix, strict=False)]),
    Family("the main diagonal", 2, r"(?:sum[^.]{0,40})?(?:main|principal|primary) diagonal|sum[^.]{0,30}diagonal|\btrace\b", MATRIX, "int",
       called="diagonal", does=lambda matrix: sum(matrix[i][i] for i in range(len(matrix)))),
    Family("the other diagonal", 3, r"(?:sum[^.]{0,40})?(?:anti-?|secondary |other |counter-?)diagonal", MATRIX, "int", called="other_diagonal",
       does=lambda matrix: sum(matrix[i][len(matrix) - 1 - i] for i in range(len(matrix)))),
    Family("turning clockwise", 3, r"(?:rotat\w+|turn\w*)[^.]{0,40}(?:90|clockwise|quarter)[^.]{0,30}", MATRIX, "matrix", stage=3, called="clockwise",
       does=lambda matrix: [list(row) for row in zip(*matrix[::-1], strict=False)]),
    Family("all entries", 2, r"(?:all|any)? ?(?:elements|numbers|values|entries|cells) (?:of|in) the (?:whole |entire )?(?:matrix|grid)|\bmatrix\b|\bgrid\b", MATRIX, "ints", stage=0,
       called="flat", does=lambda matrix: [value for row in matrix for value in row]),
    Family("merging intervals", 2, rf"merg\w+[^.]{{0,40}}{SPAN}?[^.]{{0,30}}|union of[^.]{{0,30}}{SPAN}", PAIRS, "pairs", _merge, variants=({}, {"touch": -1}, {"touch": 1}), stage=3),
    Family("counting merged intervals", 3, rf"(?:how many|number of|count)[^.]{{0,60}}(?:merg\w+|remain\w*|disjoint|separate)[^.]{{0,30}}(?:{SPAN})?", PAIRS, "int", _merged_count),
    Family("covered length", 3, r"(?:total|combined|overall)?[^.]{0,15}(?:length|integers|points|time|amount)[^.]{0,60}(?:cover\w*|union|at least one|any of|occupied|busy)[^.]{0,40}|(?:in|by|during) at least one[^.]{0,30}|cover\w*[^.]{0,40}(?:length|total)", PAIRS, "int", _covered, variants=({}, {"closed": 1})),
)  # fmt: skip
