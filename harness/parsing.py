"""TOML, JSON and CSV that somebody else wrote, each read in this one place.

Whatever is wrong with a text is a ValueError with a message of one line: broken syntax, bytes that
are no UTF-8, thousands of brackets within one another, numbers that no number type holds. Callers
name the file and what to do. How large a file may be is harness/file_limits.py.
"""

import csv
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from harness.file_limits import DOCUMENT, LINE, SETTINGS, TooLarge, read_limited

DEEP = "brackets stand too deep within one another"
DOTS = 100
"""So many parts of a dotted key in TOML: its reader takes time by their square."""
DIGITS = 400
"""Of a number as text: a token count has 10, an amount in dollars 30."""


def parse_toml(content: str | bytes) -> dict[str, Any]:
    """Return the tables of a TOML text; a byte order mark is passed over."""
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    if any(line.partition("=")[0].count(".") > DOTS for line in text.splitlines()):
        raise ValueError(f"a key has more than {DOTS} parts")
    try:
        return tomllib.loads(text, parse_float=_finite)
    except RecursionError:
        raise ValueError(DEEP) from None
    except ValueError as error:
        raise ValueError(_said(error)) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; UserError for one that is too large or no file."""
    return parse_toml(read_limited(path, SETTINGS))


def parse_json(
    content: str | bytes, parse_float: Callable[[str], Any] | None = None
) -> Any:  # JSON is whatever it is
    """Return the value of a JSON text; NaN, Infinity and numbers beyond every type are refused."""
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        return json.loads(text, parse_float=parse_float or _finite, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(DEEP) from None
    except ValueError as error:
        raise ValueError(_said(error)) from None


def json_with_nan(content: bytes) -> Any:
    """Return what `parse_json` does of a text in which NaN may stand, as in Inspect's logs."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(DEEP) from None


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; UserError for one that is too large or no file."""
    return parse_json(read_limited(path, DOCUMENT))


def rows_of_csv(lines: Iterator[str], *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV text with the number of their last line, from 1."""
    csv.field_size_limit(LINE)
    table = csv.reader(lines, strict=strict)
    try:
        for row in table:
            yield table.line_num, row
    except csv.Error as error:
        raise ValueError(first_line(error)) from error


def dicts_of_csv(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV text with a header by column, each with its last line's number.

    A row that is too short lacks its last columns as None, as with `csv.DictReader`.
    """
    rows = rows_of_csv(lines, strict=True)
    names = next((row for _, row in rows if row), list[str]())
    for number, row in rows:
        if row:
            yield number, dict(zip_longest(names, row[: len(names)]))


def lines_of(file: io.TextIOBase) -> Iterator[str]:
    """Yield the lines of a text file; TooLarge for one that has no end."""
    while line := file.readline(LINE):
        if len(line) == LINE:
            raise TooLarge("a line is longer than 512 MiB")
        yield line


def decimal_of(text: str) -> Decimal:
    """Return the amount that a text states; ValueError for none, and for one beyond all use.

    >>> decimal_of("0.5")
    Decimal('0.5')
    """
    try:
        value = Decimal(text) if len(text) <= DIGITS else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or (value and abs(value.adjusted()) > DIGITS):
        raise ValueError(f"{text[:40]!r} is not a number that can be reckoned with")
    return value


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, no longer than a sentence."""
    said = str(error).strip() or type(error).__name__
    return re.split(r"[\r\n]", said, maxsplit=1)[0][:300]


def _said(error: ValueError) -> str:
    """Return what a reader says, where it is meant for users and not for programmers."""
    said = first_line(error)
    return "a number has thousands of digits" if "integer string conversion" in said else said


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")
