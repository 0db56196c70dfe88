"""Rows of a file that somebody else wrote: JSONL (plain or .gz) or CSV, one at a time.

A mistake is one sentence that names the file and the line. Nothing is kept in memory but the row
that is being read, for replies and tests may be many and large.
"""

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias, cast

from harness.errors import UserError
from harness.records import Question

Row: TypeAlias = dict[str, Any]
ZIP = ".gz"


def read_rows(path: Path) -> Generator[tuple[int, Row]]:
    """Yield each row with its line number, from 1; blank lines are passed over.

    `name.csv` and `name.csv.gz` are CSV with a header, everything else is JSON Lines. UserError
    when the file is missing, no text, or a line is no JSON object.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        with _text(path) as lines:
            yield from _csv(lines) if _is_csv(path) else _jsonl(lines, path)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:
        kind = "CSV" if _is_csv(path) else "JSON Lines"
        raise UserError(f"{path} cannot be read as {kind} in UTF-8: {error}.") from error


def read_questions(path: Path, made: Callable[[Row, str], Question]) -> list[Question]:
    """Return the question that `made` makes of each row and of its place, for messages.

    UserError when there is no row, and for all that `read_rows` refuses.
    """
    found = [made(row, f"{path}, line {number}") for number, row in read_rows(path)]
    if not found:
        raise UserError(f"{path} has no rows.")
    return found


def _is_csv(path: Path) -> bool:
    return path.name.removesuffix(ZIP).endswith(".csv")


def _text(path: Path) -> io.TextIOWrapper:
    opened = gzip.open(path, "rb") if path.suffix == ZIP else path.open("rb")  # noqa: SIM115 - the caller closes it
    return io.TextIOWrapper(cast(io.BufferedReader, opened), encoding="utf-8-sig", newline="")


def _csv(lines: io.TextIOWrapper) -> Generator[tuple[int, Row]]:
    csv.field_size_limit(sys.maxsize)  # a problem's tests are one field of many megabytes
    reader = csv.DictReader(lines, strict=True)
    for row in reader:
        yield reader.line_num, cast(Row, row)


def _jsonl(lines: io.TextIOWrapper, path: Path) -> Generator[tuple[int, Row]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number} is not a JSON object.")
        yield number, cast(Row, row)
