# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on lists in which places matter, on matrices and on intervals."""

import itertools

from harness.rehearsal.program_numbers import (
    INT_INT_INT_INT,
    INTS,
    INTS_INT,
    MATRIX,
    PAIRS,
    PAIRS_INT,
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


def _rotate_left(values: Ints, k: int) -> Ints:
    k %= len(values)
    return values[k:] + values[:k]


def _rotate_right(values: Ints, k: int) -> Ints:
    k %= len(values)
    return values[len(values) - k :] + values[: len(values) - k]


def _increasing_run(values: Ints, equal: bool = False) -> int:
    best = length = 1 if values else 0
    for before, value in itertools.pairwise(values):
        length = length + 1 if value > before or (equal and value == before) else 1
        best = max(best, length)
    return best


def _decreasing_run(values: Ints) -> int:
    best = length = 1 if values else 0
    for before, value in itertools.pairwise(values):
        length = length + 1 if value < before else 1
        best = max(best, length)
    return best


def _equal_run(values: Ints) -> int:
    best = length = 1 if values else 0
    for before, value in itertools.pairwise(values):
        length = length + 1 if value == before else 1
        best = max(best, length)
    return best


def _increasing_subsequence(values: Ints) -> int:
    ends: Ints = []
    for at in range(len(values)):
        ends.append(1 + max([ends[i] for i in range(at) if values[i] < values[at]], default=0))
    return max(ends, default=0)


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


def _pairs_with_sum(values: Ints, target: int, distinct: bool = False) -> int:
    found = [
        (values[i], values[j])
        for i in range(len(values))
        for j in range(i + 1, len(values))
        if values[i] + values[j] == target
    ]
    return len({(min(pair), max(pair)) for pair in found}) if distinct else len(found)


def _pairs_with_difference(values: Ints, k: int, distinct: bool = False) -> int:
    found = [
        (values[i], values[j])
        for i in range(len(values))
        for j in range(i + 1, len(values))
        if abs(values[i] - values[j]) == k
    ]
    return len({(min(pair), max(pair)) for pair in found}) if distinct else len(found)


def _run_lengths_of(values: Ints) -> Ints:
    ends = [at for at in range(1, len(values)) if values[at] != values[at - 1]]
    marks = [0, *ends, len(values)]
    return [b - a for a, b in itertools.pairwise(marks)]


def _closest_gap(values: Ints) -> int:
    kept = sorted(values)
    return min(after - before for before, after in itertools.pairwise(kept))


def _best_profit(values: Ints) -> int:
    best, low = 0, values[0]
    for value in values:
        low = min(low, value)
        best = max(best, value - low)
    return best


RUN = r"(?:(?:contiguous|consecutive) (?:elements|subarray|run|subsequence|block)|run|subarray|streak|segment|stretch|block)"
BASED: tuple[dict[str, int], ...] = ({}, {"base": 1})

ARRAYS: tuple[Family[...], ...] = (
    Family("running totals", 2, r"(?:running|cumulative|partial|prefix) (?:sums?|totals?)|sum of (?:all |the )?(?:elements|values|numbers|first i)[^.]{0,25}(?:up to|so far)[^.]{0,25}", INTS, "ints", _running_sums, stage=3),
    Family("running maximum", 3, r"(?:running|prefix) (?:maxim\w+|largest)|(?:maximum|largest|greatest)[^.]{0,40}(?:so far|up to|seen until)[^.]{0,20}", INTS, "ints", stage=3, called="running_maximum",
       does=lambda values: [max(values[: at + 1]) for at in range(len(values))]),
    Family("running minimum", 4, r"(?:running|prefix) (?:minim\w+|smallest)|(?:minimum|smallest)[^.]{0,40}(?:so far|up to)[^.]{0,20}", INTS, "ints", stage=3, called="running_minimum",
       does=lambda values: [min(values[: at + 1]) for at in range(len(values))]),
    Family("differences of neighbours", 3, r"(?:absolute )?differences? (?:between|of)[^.]{0,30}(?:consecutive|adjacent|neighbou?r\w*|successive)[^.]{0,12}|each \w+ minus the (?:one )?(?:before|previous)[^.]{0,10}", INTS, "ints", _differences, variants=({}, {"absolute": True}), stage=3),
    Family("sums of neighbours", 4, r"sums? (?:of|between)[^.]{0,20}(?:consecutive|adjacent|neighbou?r\w*)(?: \w+)?", INTS, "ints", stage=3, called="neighbour_sums",
       does=lambda values: [after + before for before, after in itertools.pairwise(values)]),
    Family("rotating left", 3, r"(?:rotat\w+|shift\w*)[^.]{0,60}\bleft\b[^.]{0,25}|\bleft[- ](?:rotat\w+|shift\w*)", INTS_INT, "ints", _rotate_left, r"by (\w+)|(\w+) (?:positions|places|steps)", stage=3),
    Family("rotating right", 3, r"(?:rotat\w+|shift\w*)[^.]{0,60}\bright\b[^.]{0,25}|\bright[- ](?:rotat\w+|shift\w*)", INTS_INT, "ints", _rotate_right, r"by (\w+)|(\w+) (?:positions|places|steps)", stage=3),
    Family("longest rising run", 3, rf"(?:longest|maximum length|length of)[^.]{{0,60}}(?:increasing|ascending|rising|growing)(?: (?:contiguous|consecutive))?(?: {RUN})?|longest {RUN}[^.]{{0,70}}(?:greater|larger|increas\w+)[^.]{{0,40}}", INTS, "int", _increasing_run, variants=({}, {"equal": True})),
    Family("longest falling run", 4, rf"(?:longest|maximum length|length of)[^.]{{0,60}}(?:decreasing|descending|falling)(?: (?:contiguous|consecutive))?(?: {RUN})?", INTS, "int", _decreasing_run),
    Family("longest run of equal values", 3, rf"longest[^.]{{0,30}}(?:{RUN})?[^.]{{0,20}}(?:equal|identical|the same)(?: (?:value|number|element|integer)s?)?", INTS, "int", _equal_run),
    Family("longest increasing subsequence", 3, r"longest (?:strictly )?increasing subsequence", INTS, "int", _increasing_subsequence),
    Family("largest sum of a subarray", 3, rf"(?:maximum|largest|greatest|biggest)[^.]{{0,30}}sum[^.]{{0,40}}{RUN}|maximum subarray(?: sum)?|sum of (?:a|any) (?:non-empty )?{RUN}", INTS, "int", _best_subarray, variants=({}, {"empty": True})),
    Family("largest sum of a window", 3, r"(?:maximum|largest|greatest)[^.]{0,30}sum[^.]{0,40}(?:(?:k|\d+) (?:consecutive|contiguous|adjacent)|(?:length|size|exactly) (?:k\b|\d+))[^.]{0,15}", INTS_INT, "int", bind=r"(\w+) (?:consecutive|contiguous|adjacent)|(?:length|size|exactly) (\w+)", called="best_window",
       does=lambda values, k: max(sum(values[at : at + k]) for at in range(len(values) - k + 1))),
    Family("two numbers with a sum", 2, r"(?:indices|positions|index|indexes)[^.]{0,60}(?:sum|add up|adds? to|total)[^.]{0,30}|(?:two|pair)[^.]{0,80}(?:sums?|add up|adds? to|total)[^.]{0,40}(?:target|[a-z]\b)?", INTS_INT, "ints", _two_sum, r"(?:target|sum is|up to|equal to|sum to) (\d+)", ({}, {"base": 1}, {"missing": "-1 -1"}, {"base": 1, "missing": "-1 -1"})),
    Family("two values with a sum", 3, r"(?:two|pair)[^.]{0,80}(?:sum|add up|adds? to|total)[^.]{0,30}", INTS_INT, "ints", _two_sum_values, r"(?:target|sum is|up to|equal to|sum to) (\d+)"),
    Family("whether two numbers have a sum", 2, r"(?:(?:whether|if|determine|check|yes)[^.]{0,60})?(?:two|pair)[^.]{0,80}(?:sums?|add up|adds? to|total)[^.]{0,30}", INTS_INT, "bool", _pair_exists, r"(?:target|sum is|up to|equal to|sum to) (\d+)"),
    Family("counting pairs with a sum", 3, r"(?:how many|number of|count)[^.]{0,30}pairs[^.]{0,90}(?:sum|add up|adds? to|total)[^.]{0,30}", INTS_INT, "int", _pairs_with_sum, r"(?:target|sum is|up to|equal to|equals|sum to|exactly) (\d+)", ({}, {"distinct": True})),
    Family("counting pairs with a difference", 3, r"(?:how many|number of|count)[^.]{0,30}pairs[^.]{0,90}(?:difference|differ)[^.]{0,30}", INTS_INT, "int", _pairs_with_difference, r"(?:difference is|difference of|equal to|equals|differ by|exactly) (\d+)", ({}, {"distinct": True})),
    Family("inversions", 3, r"(?:number of )?inversions?|pairs[^.]{0,60}i < j[^.]{0,60}>[^.]{0,20}", INTS, "int", called="inversions", does=lambda values:
           sum(values[j] > values[i] for i in range(len(values)) for j in range(i))),
    Family("descents", 4, r"(?:neighbou?r\w*|adjacent|consecutive)[^.]{0,60}(?:decreas\w+|smaller|less|descending|falls?)[^.]{0,30}|\bdescents?\b", INTS, "int",
       called="descents", does=lambda values: sum(a > b for a, b in itertools.pairwise(values))),
    Family("ascents", 4, r"(?:neighbou?r\w*|adjacent|consecutive)[^.]{0,60}(?:increas\w+|larger|greater|ascending|rises?)[^.]{0,30}|\bascents?\b", INTS, "int",
       called="ascents", does=lambda values: sum(a < b for a, b in itertools.pairwise(values))),
    Family("run lengths", 4, r"(?:lengths? of )?(?:maximal )?(?:runs|blocks|groups)\b[^.]{0,30}", INTS, "ints", _run_lengths_of, stage=0),
    Family("multiplicities", 4, r"(?:values|numbers|elements|integers)[^.]{0,25}(?:occur|appear)\w*", INTS, "ints", stage=0, called="multiplicities",
       does=lambda values: [values.count(value) for value in dict.fromkeys(values)]),
    Family("peaks", 4, r"(?:number of |count )?(?:the )?(?:peaks?|local maxim\w+)|(?:greater|larger) than both[^.]{0,30}", INTS, "int", called="peaks", does=lambda values:
           sum(values[i - 1] < values[i] and values[i] > values[i + 1]
               for i in range(1, len(values) - 1))),
    Family("the closest two", 4, r"(?:smallest|minimum)[^.]{0,20}difference between (?:any )?two[^.]{0,20}|closest (?:two|pair)[^.]{0,20}", INTS, "int", _closest_gap),
    Family("whether a list is sorted", 2, r"\bsorted\b|(?:whether|if)[^.]{0,40}(?:ascending|increasing|non-decreasing)(?: order)?", INTS, "bool", variants=({}, {"strict": True}), called="is_sorted", does=lambda values, strict=False:
           all(a < b or (a == b and not strict) for a, b in itertools.pairwise(values))),
    Family("whether all values differ", 3, r"(?:whether|if|determine|check)[^.]{0,30}all[^.]{0,30}(?:distinct|different|unique)", INTS, "bool",
       called="all_distinct", does=lambda values: len(set(values)) == len(values)),
    Family("whether a value repeats", 3, r"(?:whether|if|determine|check)[^.]{0,50}(?:duplicates?|more than once|at least twice|repeat\w*)", INTS, "bool",
       called="has_duplicates", does=lambda values: len(set(values)) < len(values)),
    Family("whether a value occurs", 3, r"(?:whether|if|determine|check)[^.]{0,30}(?:contains?|occurs in|appears in|is in|present)(?: the)?", INTS_INT, "bool", bind=r"contains (\d+)",
       called="contains", does=lambda values, k: k in values),
    Family("where a value is", 3, r"(?:index|position)[^.]{0,30}(?:of|where)[^.]{0,30}(?:target|value|x|k)\b", INTS_INT, "int", bind=r"value (\d+)", variants=BASED, called="position",
       does=lambda values, k, base=0: values.index(k) + base if k in values else -1),
    Family("where the largest is", 3, r"(?:index|position) of (?:the )?(?:first )?(?:maximum|largest|greatest)[^.]{0,10}", INTS, "int", variants=BASED,
       called="place_of_largest", does=lambda values, base=0: values.index(max(values)) + base),
    Family("where the smallest is", 3, r"(?:index|position) of (?:the )?(?:first )?(?:minimum|smallest)[^.]{0,10}", INTS, "int", variants=BASED,
       called="place_of_smallest", does=lambda values, base=0: values.index(min(values)) + base),
    Family("the missing number", 3, r"missing (?:number|integer|value|one)|(?:number|integer|one) (?:that )?is missing", INTS, "int", variants=({}, {"base": 0}), called="missing_number", does=lambda values, base=1:
           next(value for value in range(base, len(values) + 2) if value not in values)),
    Family("best profit", 4, r"(?:maximum|largest|best) profit|buy[^.]{0,60}sell[^.]{0,30}", INTS, "int", _best_profit),
    Family("zeros to the end", 3, r"(?:mov\w+|push\w*)[^.]{0,20}zeros?[^.]{0,20}(?:end|back|right)", INTS, "ints", stage=3, called="zeros_last",
       does=lambda values: [value for value in values if value != 0] + [0] * values.count(0)),
    Family("leaders", 4, r"\bleaders?\b|(?:greater|larger) than (?:all|every|everything|each)[^.]{0,30}(?:right|after)[^.]{0,10}", INTS, "ints", stage=1, called="leaders", does=lambda values:
           [v for i, v in enumerate(values) if all(v > other for other in values[i + 1 :])]),
    Family("sorting by frequency", 4, r"sort[^.]{0,40}(?:frequency|how often)[^.]{0,20}", INTS, "ints", stage=3, called="by_frequency",
       does=lambda values: sorted(values, key=lambda value: (-values.count(value), value))),
    Family("every other value", 4, r"(?:at |in )?(?:even|odd)(?:-indexed| (?:indices|positions|indexes))|every (?:other|second) (?:element|value|number)", INTS, "ints", variants=({}, {"start": 1}), stage=1,
       called="every_other", does=lambda values, start=0: values[start::2]),
)  # fmt: skip


def _both_diagonals(matrix: Matrix) -> int:
    size = len(matrix)
    middle = matrix[size // 2][size // 2] if size % 2 else 0
    return sum(matrix[i][i] + matrix[i][size - 1 - i] for i in range(size)) - middle


def _diagonal_difference(matrix: Matrix) -> int:
    size = len(matrix)
    return abs(sum(matrix[i][i] - matrix[i][size - 1 - i] for i in range(size)))


def _border(matrix: Matrix) -> int:
    inner = sum(sum(row[1:-1]) for row in matrix[1:-1])
    return sum(sum(row) for row in matrix) - inner


def _spiral(matrix: Matrix) -> Ints:
    result: Ints = []
    while matrix:
        result += matrix[0]
        matrix = [list(row) for row in zip(*matrix[1:], strict=False)][::-1]
    return result


def _largest_row(matrix: Matrix, base: int = 0) -> int:
    sums = [sum(row) for row in matrix]
    return sums.index(max(sums)) + base


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


def _most_at_once(pairs: Matrix, closed: bool = True) -> int:
    best = 0
    for point, _ in pairs:
        best = max(best, sum(a <= point < b or (closed and point == b) for a, b in pairs))
    return best


def _most_compatible(pairs: Matrix, touch: bool = True) -> int:
    count, reach = 0, None
    for start, end in sorted(pairs, key=lambda pair: pair[1]):
        if reach is None or start > reach or (touch and start == reach):
            count, reach = count + 1, end
    return count


def _any_overlap(pairs: Matrix, touch: bool = False) -> bool:
    kept = sorted(pairs)
    return any(
        after[0] < before[1] or (touch and after[0] == before[1])
        for before, after in itertools.pairwise(kept)
    )


def _no_overlap(pairs: Matrix) -> bool:
    kept = sorted(pairs)
    return all(b[0] >= a[1] for a, b in itertools.pairwise(kept))


def _longest_gap(pairs: Matrix) -> int:
    best, reach = 0, min(start for start, _ in pairs)
    for start, end in sorted(pairs):
        best = max(best, start - reach)
        reach = max(reach, end)
    return best


EACH = r"(?:each|every|the|all)(?: of the)?"
SPAN = r"(?:intervals?|segments?|ranges?|meetings?|sessions?|bookings?)"

TABLES: tuple[Family[...], ...] = (
    Family("transposing", 2, r"transpos\w+|rows (?:become|turn into) columns|swap\w* rows and columns|interchang\w+[^.]{0,20}rows[^.]{0,15}columns", MATRIX, "matrix", stage=3,
       called="transpose", does=lambda matrix: [list(row) for row in zip(*matrix, strict=False)]),
    Family("the main diagonal", 2, r"(?:sum[^.]{0,40})?(?:main|principal|primary) diagonal|sum[^.]{0,30}diagonal|\btrace\b", MATRIX, "int",
       called="diagonal", does=lambda matrix: sum(matrix[i][i] for i in range(len(matrix)))),
    Family("the other diagonal", 3, r"(?:sum[^.]{0,40})?(?:anti-?|secondary |other |counter-?)diagonal", MATRIX, "int", called="other_diagonal",
       does=lambda matrix: sum(matrix[i][len(matrix) - 1 - i] for i in range(len(matrix)))),
    Family("both diagonals", 3, r"(?:sum[^.]{0,40})?(?:both|two) (?:\w+ )?diagonals[^.]{0,30}", MATRIX, "int", _both_diagonals),
    Family("difference of the diagonals", 3, r"difference[^.]{0,40}diagonals?[^.]{0,30}", MATRIX, "int", _diagonal_difference),
    Family("row sums", 2, rf"(?:sums?|totals?) of {EACH} rows?|row sums?|sum of (?:the )?(?:elements|numbers|values) (?:in|of) {EACH} row|{EACH} row[^.]{{0,15}}sum", MATRIX, "ints", stage=2,
       called="row_sums", does=lambda matrix: [sum(row) for row in matrix]),
    Family("column sums", 2, rf"(?:sums?|totals?) of {EACH} columns?|column sums?|sum of (?:the )?(?:elements|numbers|values) (?:in|of) {EACH} column|{EACH} column[^.]{{0,15}}sum", MATRIX, "ints", stage=2, called="column_sums",
       does=lambda matrix: [sum(column) for column in zip(*matrix, strict=False)]),
    Family("row maxima", 3, rf"(?:maxim\w+|largest|greatest)(?: value| element| number| entry)? (?:of|in) {EACH} rows?|row maxim\w+|{EACH} row[^.]{{0,20}}(?:maximum|largest)", MATRIX, "ints", stage=2,
       called="row_maxima", does=lambda matrix: [max(row) for row in matrix]),
    Family("column maxima", 3, rf"(?:maxim\w+|largest|greatest)(?: value| element| number| entry)? (?:of|in) {EACH} columns?|column maxim\w+|{EACH} column[^.]{{0,20}}(?:maximum|largest)", MATRIX, "ints", stage=2, called="column_maxima",
       does=lambda matrix: [max(column) for column in zip(*matrix, strict=False)]),
    Family("row minima", 3, rf"(?:minim\w+|smallest|least)(?: value| element| number| entry)? (?:of|in) {EACH} rows?|row minim\w+", MATRIX, "ints", stage=2,
       called="row_minima", does=lambda matrix: [min(row) for row in matrix]),
    Family("column minima", 4, rf"(?:minim\w+|smallest|least)(?: value| element| number| entry)? (?:of|in) {EACH} columns?|column minim\w+", MATRIX, "ints", stage=2, called="column_minima",
       does=lambda matrix: [min(column) for column in zip(*matrix, strict=False)]),
    Family("turning clockwise", 3, r"(?:rotat\w+|turn\w*)[^.]{0,40}(?:90|clockwise|quarter)[^.]{0,30}", MATRIX, "matrix", stage=3, called="clockwise",
       does=lambda matrix: [list(row) for row in zip(*matrix[::-1], strict=False)]),
    Family("turning anticlockwise", 3, r"(?:rotat\w+|turn\w*)[^.]{0,40}(?:counter-?|anti-?)clockwise[^.]{0,20}", MATRIX, "matrix", stage=3, called="anticlockwise",
       does=lambda matrix: [list(row) for row in zip(*matrix, strict=False)][::-1]),
    Family("all entries", 2, r"(?:all|any)? ?(?:elements|numbers|values|entries|cells) (?:of|in) the (?:whole |entire )?(?:matrix|grid)|\bmatrix\b|\bgrid\b", MATRIX, "ints", stage=0,
       called="flat", does=lambda matrix: [value for row in matrix for value in row]),
    Family("mirroring", 4, r"mirror\w*|flip\w*[^.]{0,20}horizontal\w*|revers\w+[^.]{0,20}(?:each|every) row", MATRIX, "matrix", stage=3,
       called="mirrored", does=lambda matrix: [row[::-1] for row in matrix]),
    Family("turning upside down", 4, r"flip\w*[^.]{0,20}vertical\w*|upside down|revers\w+[^.]{0,20}order of (?:the )?rows", MATRIX, "matrix", stage=3,
       called="upside_down", does=lambda matrix: matrix[::-1]),
    Family("symmetry", 3, r"symmetric\w*", MATRIX, "bool", called="symmetric",
       does=lambda matrix: matrix == [list(row) for row in zip(*matrix, strict=False)]),
    Family("the border", 3, r"(?:sum[^.]{0,40})?\b(?:border|boundary|perimeter|outer(?:most)?|edge)\b[^.]{0,20}", MATRIX, "int", _border),
    Family("the spiral", 3, r"spiral(?: order)?", MATRIX, "ints", _spiral, stage=3),
    Family("the row with the largest sum", 3, r"(?:index|number|position)?[^.]{0,10}row[^.]{0,20}(?:largest|maximum|greatest|biggest) (?:sum|total)", MATRIX, "int", _largest_row, variants=({}, {"base": 1})),
    Family("merging intervals", 2, rf"merg\w+[^.]{{0,40}}{SPAN}?[^.]{{0,30}}|union of[^.]{{0,30}}{SPAN}", PAIRS, "pairs", _merge, variants=({}, {"touch": -1}, {"touch": 1}), stage=3),
    Family("counting merged intervals", 3, rf"(?:how many|number of|count)[^.]{{0,60}}(?:merg\w+|remain\w*|disjoint|separate)[^.]{{0,30}}(?:{SPAN})?", PAIRS, "int", _merged_count),
    Family("covered length", 3, r"(?:total|combined|overall)?[^.]{0,15}(?:length|integers|points|time|amount)[^.]{0,60}(?:cover\w*|union|at least one|any of|occupied|busy)[^.]{0,40}|(?:in|by|during) at least one[^.]{0,30}|cover\w*[^.]{0,40}(?:length|total)", PAIRS, "int", _covered, variants=({}, {"closed": 1})),
    Family("overlap at one time", 3, rf"(?:maximum|largest|greatest|most)[^.]{{0,30}}(?:number of )?(?:{SPAN}|overlap\w*)[^.]{{0,60}}(?:same time|common|point|overlap\w*|contain\w*|once)?|(?:at|covering) (?:the same|one|any) (?:time|moment|point)[^.]{0,20}|(?:minimum|smallest|fewest|least) (?:number of )?(?:rooms|halls|platforms|machines|servers|people|lanes)[^.]{{0,30}}", PAIRS, "int", _most_at_once, variants=({}, {"closed": False})),
    Family("choosing intervals apart", 3, rf"(?:maximum|largest|greatest|most)[^.]{{0,40}}{SPAN}[^.]{{0,60}}(?:non-overlapping|not overlap\w*|no two|compatible|attend\w*|disjoint)[^.]{{0,40}}|(?:maximum|largest)[^.]{{0,20}}non-overlapping[^.]{{0,30}}", PAIRS, "int", _most_compatible, variants=({}, {"touch": False})),
    Family("whether intervals overlap", 3, rf"(?:whether|if|determine|check)[^.]{{0,60}}overlap\w*|any two[^.]{{0,30}}{SPAN}?[^.]{{0,20}}(?:overlap|intersect)\w*", PAIRS, "bool", _any_overlap, variants=({}, {"touch": True})),
    Family("whether all intervals are apart", 4, r"(?:whether|if|determine|check)[^.]{0,60}(?:attend all|no two[^.]{0,40}overlap|disjoint)[^.]{0,20}", PAIRS, "bool", _no_overlap),
    Family("intervals that hold a point", 3, rf"(?:how many|number of|count)[^.]{{0,30}}{SPAN}[^.]{{0,30}}(?:contain|include|cover|hold)\w*[^.]{{0,20}}", PAIRS_INT, "int", bind=r"(?:point|contain|include) (\d+)", called="holding",
       does=lambda pairs, point: sum(start <= point <= end for start, end in pairs)),
    Family("common part", 3, r"(?:intersection|common part|part common)[^.]{0,40}", PAIRS, "ints", called="common",
       does=lambda pairs: [max(start for start, _ in pairs), min(end for _, end in pairs)]),
    Family("length of an overlap", 3, r"length[^.]{0,30}(?:overlap|intersection)[^.]{0,40}", INT_INT_INT_INT, "int",
       called="overlap_length", does=lambda a, b, c, d: max(0, min(b, d) - max(a, c))),
    Family("the longest interval", 4, rf"(?:length of the )?longest {SPAN}", PAIRS, "int",
       called="longest_interval", does=lambda pairs: max(end - start for start, end in pairs)),
    Family("the longest gap", 4, r"(?:longest|largest|widest|biggest)[^.]{0,15}gap[^.]{0,30}|gap between[^.]{0,30}", PAIRS, "int", _longest_gap),
)  # fmt: skip
