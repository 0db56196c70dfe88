"""Rows of a file that somebody else wrote: JSONL (plain or .gz) or CSV, one at a time.

A mistake is one sentence that names the file and the line. Nothing is kept in memory but the row
that is being read, for replies and tests may be many and large.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias, cast

from harness.errors import UserError
from harness.file_limits import PIECE, Limited
from harness.parsing import dicts_of_csv, lines_of, parse_json
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
        with text_of(path) as lines:
            yield from _csv(lines) if _is_csv(path) else _jsonl(lines, path)
    except (ValueError, gzip.BadGzipFile, EOFError, zlib.error) as error:
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


def text_of(path: Path) -> io.TextIOWrapper:
    """Return the text of a file that may be a .gz; the caller closes it."""
    if path.suffix == ZIP:
        unpacked = Limited(gzip.open(path, "rb"), path.stat().st_size)  # noqa: SIM115 - the caller closes it
        return _as_text(io.BufferedReader(unpacked, PIECE))
    return _as_text(path.open("rb"))


def _as_text(file: io.BufferedReader) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def _csv(lines: io.TextIOWrapper) -> Generator[tuple[int, Row]]:
    yield from dicts_of_csv(lines_of(lines))


def _jsonl(lines: io.TextIOWrapper, path: Path) -> Generator[tuple[int, Row]]:
    for number, line in enumerate(lines_of(lines), start=1):
        if not line.strip():
            continue
        try:
            row: object = parse_json(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number} is not a JSON object.")
        yield number, cast(Row, row)
