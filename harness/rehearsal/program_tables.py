# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on a matrix of integers, or on a list of intervals."""

import itertools

from harness.rehearsal.program_kinds import Family

Ints = list[int]
Matrix = list[list[int]]
Pairs = list[list[int]]


def _transpose(matrix: Matrix) -> Matrix:
    return [list(row) for row in zip(*matrix, strict=False)]


def _diagonal(matrix: Matrix) -> int:
    return sum(matrix[i][i] for i in range(len(matrix)))


def _other_diagonal(matrix: Matrix) -> int:
    return sum(matrix[i][len(matrix) - 1 - i] for i in range(len(matrix)))


def _both_diagonals(matrix: Matrix) -> int:
    size = len(matrix)
    middle = matrix[size // 2][size // 2] if size % 2 else 0
    return sum(matrix[i][i] + matrix[i][size - 1 - i] for i in range(size)) - middle


def _diagonal_difference(matrix: Matrix) -> int:
    size = len(matrix)
    return abs(sum(matrix[i][i] - matrix[i][size - 1 - i] for i in range(size)))


def _row_sums(matrix: Matrix) -> Ints:
    return [sum(row) for row in matrix]


def _column_sums(matrix: Matrix) -> Ints:
    return [sum(column) for column in zip(*matrix, strict=False)]


def _row_maxima(matrix: Matrix) -> Ints:
    return [max(row) for row in matrix]


def _column_maxima(matrix: Matrix) -> Ints:
    return [max(column) for column in zip(*matrix, strict=False)]


def _row_minima(matrix: Matrix) -> Ints:
    return [min(row) for row in matrix]


def _column_minima(matrix: Matrix) -> Ints:
    return [min(column) for column in zip(*matrix, strict=False)]


def _clockwise(matrix: Matrix) -> Matrix:
    return [list(row) for row in zip(*matrix[::-1], strict=False)]


def _anticlockwise(matrix: Matrix) -> Matrix:
    return [list(row) for row in zip(*matrix, strict=False)][::-1]


def _flat(matrix: Matrix) -> Ints:
    return [value for row in matrix for value in row]


def _mirrored(matrix: Matrix) -> Matrix:
    return [row[::-1] for row in matrix]


def _upside_down(matrix: Matrix) -> Matrix:
    return matrix[::-1]


def _symmetric(matrix: Matrix) -> bool:
    return matrix == [list(row) for row in zip(*matrix, strict=False)]


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


def _merge(pairs: Pairs, touch: int = 0) -> Pairs:
    result: Pairs = []
    for start, end in sorted(pairs):
        if result and start <= result[-1][1] + touch:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def _merged_count(pairs: Pairs) -> int:
    count, reach = 0, None
    for start, end in sorted(pairs):
        if reach is None or start > reach:
            count, reach = count + 1, end
        reach = max(reach, end)
    return count


def _covered(pairs: Pairs, closed: int = 0) -> int:
    total, reach = 0, None
    for start, end in sorted(pairs):
        if reach is None or start >= reach:
            total, reach = total + end - start + closed, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


def _most_at_once(pairs: Pairs, closed: bool = True) -> int:
    best = 0
    for point, _ in pairs:
        best = max(best, sum(a <= point < b or (closed and point == b) for a, b in pairs))
    return best


def _most_compatible(pairs: Pairs, touch: bool = True) -> int:
    count, reach = 0, None
    for start, end in sorted(pairs, key=lambda pair: pair[1]):
        if reach is None or start > reach or (touch and start == reach):
            count, reach = count + 1, end
    return count


def _any_overlap(pairs: Pairs, touch: bool = False) -> bool:
    kept = sorted(pairs)
    return any(
        after[0] < before[1] or (touch and after[0] == before[1])
        for before, after in itertools.pairwise(kept)
    )


def _no_overlap(pairs: Pairs) -> bool:
    kept = sorted(pairs)
    return all(b[0] >= a[1] for a, b in itertools.pairwise(kept))


def _holding(pairs: Pairs, point: int) -> int:
    return sum(start <= point <= end for start, end in pairs)


def _common(pairs: Pairs) -> Ints:
    return [max(start for start, _ in pairs), min(end for _, end in pairs)]


def _overlap_length(a: int, b: int, c: int, d: int) -> int:
    return max(0, min(b, d) - max(a, c))


def _longest_interval(pairs: Pairs) -> int:
    return max(end - start for start, end in pairs)


def _longest_gap(pairs: Pairs) -> int:
    best, reach = 0, min(start for start, _ in pairs)
    for start, end in sorted(pairs):
        best = max(best, start - reach)
        reach = max(reach, end)
    return best


EACH = r"(?:each|every|the|all)(?: of the)?"
SPAN = r"(?:intervals?|segments?|ranges?|meetings?|sessions?|bookings?)"

TABLES: tuple[Family, ...] = (
    Family("transposing", 2, r"transpos\w+|rows (?:become|turn into) columns|swap\w* rows and columns|interchang\w+[^.]{0,20}rows[^.]{0,15}columns", ("matrix",), "matrix", _transpose, stage=3),
    Family("the main diagonal", 2, r"(?:sum[^.]{0,40})?(?:main|principal|primary) diagonal|sum[^.]{0,30}diagonal|\btrace\b", ("matrix",), "int", _diagonal),
    Family("the other diagonal", 3, r"(?:sum[^.]{0,40})?(?:anti-?|secondary |other |counter-?)diagonal", ("matrix",), "int", _other_diagonal),
    Family("both diagonals", 3, r"(?:sum[^.]{0,40})?(?:both|two) (?:\w+ )?diagonals[^.]{0,30}", ("matrix",), "int", _both_diagonals),
    Family("difference of the diagonals", 3, r"difference[^.]{0,40}diagonals?[^.]{0,30}", ("matrix",), "int", _diagonal_difference),
    Family("row sums", 2, rf"(?:sums?|totals?) of {EACH} rows?|row sums?|sum of (?:the )?(?:elements|numbers|values) (?:in|of) {EACH} row|{EACH} row[^.]{{0,15}}sum", ("matrix",), "ints", _row_sums, stage=2),
    Family("column sums", 2, rf"(?:sums?|totals?) of {EACH} columns?|column sums?|sum of (?:the )?(?:elements|numbers|values) (?:in|of) {EACH} column|{EACH} column[^.]{{0,15}}sum", ("matrix",), "ints", _column_sums, stage=2),
    Family("row maxima", 3, rf"(?:maxim\w+|largest|greatest)(?: value| element| number| entry)? (?:of|in) {EACH} rows?|row maxim\w+|{EACH} row[^.]{{0,20}}(?:maximum|largest)", ("matrix",), "ints", _row_maxima, stage=2),
    Family("column maxima", 3, rf"(?:maxim\w+|largest|greatest)(?: value| element| number| entry)? (?:of|in) {EACH} columns?|column maxim\w+|{EACH} column[^.]{{0,20}}(?:maximum|largest)", ("matrix",), "ints", _column_maxima, stage=2),
    Family("row minima", 3, rf"(?:minim\w+|smallest|least)(?: value| element| number| entry)? (?:of|in) {EACH} rows?|row minim\w+", ("matrix",), "ints", _row_minima, stage=2),
    Family("column minima", 4, rf"(?:minim\w+|smallest|least)(?: value| element| number| entry)? (?:of|in) {EACH} columns?|column minim\w+", ("matrix",), "ints", _column_minima, stage=2),
    Family("turning clockwise", 3, r"(?:rotat\w+|turn\w*)[^.]{0,40}(?:90|clockwise|quarter)[^.]{0,30}", ("matrix",), "matrix", _clockwise, stage=3),
    Family("turning anticlockwise", 3, r"(?:rotat\w+|turn\w*)[^.]{0,40}(?:counter-?|anti-?)clockwise[^.]{0,20}", ("matrix",), "matrix", _anticlockwise, stage=3),
    Family("all entries", 2, r"(?:all|any)? ?(?:elements|numbers|values|entries|cells) (?:of|in) the (?:whole |entire )?(?:matrix|grid)|\bmatrix\b|\bgrid\b", ("matrix",), "ints", _flat, stage=0),
    Family("mirroring", 4, r"mirror\w*|flip\w*[^.]{0,20}horizontal\w*|revers\w+[^.]{0,20}(?:each|every) row", ("matrix",), "matrix", _mirrored, stage=3),
    Family("turning upside down", 4, r"flip\w*[^.]{0,20}vertical\w*|upside down|revers\w+[^.]{0,20}order of (?:the )?rows", ("matrix",), "matrix", _upside_down, stage=3),
    Family("symmetry", 3, r"symmetric\w*", ("matrix",), "bool", _symmetric),
    Family("the border", 3, r"(?:sum[^.]{0,40})?\b(?:border|boundary|perimeter|outer(?:most)?|edge)\b[^.]{0,20}", ("matrix",), "int", _border),
    Family("the spiral", 3, r"spiral(?: order)?", ("matrix",), "ints", _spiral, stage=3),
    Family("the row with the largest sum", 3, r"(?:index|number|position)?[^.]{0,10}row[^.]{0,20}(?:largest|maximum|greatest|biggest) (?:sum|total)", ("matrix",), "int", _largest_row, variants=({}, {"base": 1})),
    Family("merging intervals", 2, rf"merg\w+[^.]{{0,40}}{SPAN}?[^.]{{0,30}}|union of[^.]{{0,30}}{SPAN}", ("pairs",), "pairs", _merge, variants=({}, {"touch": -1}, {"touch": 1}), stage=3),
    Family("counting merged intervals", 3, rf"(?:how many|number of|count)[^.]{{0,60}}(?:merg\w+|remain\w*|disjoint|separate)[^.]{{0,30}}(?:{SPAN})?", ("pairs",), "int", _merged_count),
    Family("covered length", 3, r"(?:total|combined|overall)?[^.]{0,15}(?:length|integers|points|time|amount)[^.]{0,60}(?:cover\w*|union|at least one|any of|occupied|busy)[^.]{0,40}|(?:in|by|during) at least one[^.]{0,30}|cover\w*[^.]{0,40}(?:length|total)", ("pairs",), "int", _covered, variants=({}, {"closed": 1})),
    Family("overlap at one time", 3, rf"(?:maximum|largest|greatest|most)[^.]{{0,30}}(?:number of )?(?:{SPAN}|overlap\w*)[^.]{{0,60}}(?:same time|common|point|overlap\w*|contain\w*|once)?|(?:at|covering) (?:the same|one|any) (?:time|moment|point)[^.]{0,20}|(?:minimum|smallest|fewest|least) (?:number of )?(?:rooms|halls|platforms|machines|servers|people|lanes)[^.]{{0,30}}", ("pairs",), "int", _most_at_once, variants=({}, {"closed": False})),
    Family("choosing intervals apart", 3, rf"(?:maximum|largest|greatest|most)[^.]{{0,40}}{SPAN}[^.]{{0,60}}(?:non-overlapping|not overlap\w*|no two|compatible|attend\w*|disjoint)[^.]{{0,40}}|(?:maximum|largest)[^.]{{0,20}}non-overlapping[^.]{{0,30}}", ("pairs",), "int", _most_compatible, variants=({}, {"touch": False})),
    Family("whether intervals overlap", 3, rf"(?:whether|if|determine|check)[^.]{{0,60}}overlap\w*|any two[^.]{{0,30}}{SPAN}?[^.]{{0,20}}(?:overlap|intersect)\w*", ("pairs",), "bool", _any_overlap, variants=({}, {"touch": True})),
    Family("whether all intervals are apart", 4, r"(?:whether|if|determine|check)[^.]{0,60}(?:attend all|no two[^.]{0,40}overlap|disjoint)[^.]{0,20}", ("pairs",), "bool", _no_overlap),
    Family("intervals that hold a point", 3, rf"(?:how many|number of|count)[^.]{{0,30}}{SPAN}[^.]{{0,30}}(?:contain|include|cover|hold)\w*[^.]{{0,20}}", ("pairs", "int"), "int", _holding, r"(?:point|contain|include) (\d+)"),
    Family("common part", 3, r"(?:intersection|common part|part common)[^.]{0,40}", ("pairs",), "ints", _common),
    Family("length of an overlap", 3, r"length[^.]{0,30}(?:overlap|intersection)[^.]{0,40}", ("int", "int", "int", "int"), "int", _overlap_length),
    Family("the longest interval", 4, rf"(?:length of the )?longest {SPAN}", ("pairs",), "int", _longest_interval),
    Family("the longest gap", 4, r"(?:longest|largest|widest|biggest)[^.]{0,15}gap[^.]{0,30}|gap between[^.]{0,30}", ("pairs",), "int", _longest_gap),
)  # fmt: skip
