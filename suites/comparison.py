"""Whether what a program produced is what was expected, by LiveCodeBench's rules.

They are those of lcb_runner/evaluation/testing_util.py, github.com/LiveCodeBench/LiveCodeBench
@28fef95. There is no tolerance for floats and no special judge: problems with several right answers
fail all but one of them, there as here.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import cast

from sandbox.box import read_json


def same_output(got: str, expected: str) -> bool:
    r"""Return whether two outputs agree: line by line, as texts or as exact decimals.

    >>> same_output("1.0 2\n", "1.00  2"), same_output("yes", "Yes"), same_output("1.0001", "1")
    (True, False, False)
    """
    if got == expected:
        return True
    mine, theirs = got.strip(), expected.strip()
    if mine == theirs:
        return True
    return mine.count("\n") == theirs.count("\n") and all(
        left == right or _same_numbers(left, right)
        for left, right in zip(_lines(mine), _lines(theirs), strict=True)
    )


def same_value(got: object, expected: str) -> bool:
    """Return whether a returned value equals the expected JSON value by Python's `==`.

    A tuple stands for a list at the top and nowhere else; True equals 1 and 2 equals 2.0. Raises
    ValueError when the expected value is no JSON: then the problem is at fault.
    """
    mine = list(cast("tuple[object, ...]", got)) if isinstance(got, tuple) else got
    theirs = read_json(expected)
    try:
        return bool(mine == theirs)
    except RecursionError:
        return False


def _lines(text: str) -> Iterator[str]:
    """Yield the lines without the blanks around them, one at a time: outputs may be large."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end].strip()
        start = end + 1
    yield text[start:].strip()


def _same_numbers(left: str, right: str) -> bool:
    try:
        mine, theirs = left.split(), right.split()
        return len(mine) == len(theirs) and all(
            Decimal(one) == Decimal(other) for one, other in zip(mine, theirs, strict=True)
        )
    except InvalidOperation:
        return False
