"""Rows of a whole data file, by its name: JSON Lines, a JSON array, CSV (plain or .gz), parquet.

The file's digest has been checked. Rows that people bring are read by harness/files.py, one at a
time; what is in a .zip its suite knows.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.files import dicts_of_csv, parse_json, unpack_gzip

Rows = list[dict[str, Any]]

PLAIN = (".jsonl", ".json", ".csv")
SUFFIXES = (*PLAIN, *(f"{suffix}.gz" for suffix in PLAIN), ".parquet", ".zip")
"""How the local file of a source may end."""


def parsed_rows(content: bytes, path: Path) -> Rows:
    """Return the rows of a file with this content; UserError names it when it cannot be read."""
    if path.suffix == ".parquet":
        return parquet_rows(path)
    try:
        text = unpack_gzip(content) if path.suffix == ".gz" else content
        rows = _parsed(text, Path(path.name.removesuffix(".gz")).suffix)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile):
        # The error is not chained: it holds what it could not read.
        raise UserError(f"{path} cannot be read: fetch it again.") from None
    if not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path} cannot be read: it has a row that is no JSON object.")
    return cast(Rows, rows)


def parquet_rows(path: Path) -> Rows:
    """Return the rows of a parquet file, as the hub's own loader reads them."""
    # Heavy, and needed by few; its types are partial.
    import datasets  # pyright: ignore[reportMissingTypeStubs]

    load = cast(Callable[..., Iterable[dict[str, Any]]], cast(Any, datasets).load_dataset)
    try:
        found = load("parquet", data_files=str(path), split="train", streaming=True)
        return [dict(row) for row in found]
    except Exception as error:  # what its readers raise has no common type
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise UserError(f"{path} cannot be read as parquet ({reason}): fetch it again.") from error


def _parsed(text: bytes, suffix: str) -> list[object]:
    if suffix == ".csv":
        lines = io.StringIO(text.decode("utf-8-sig"), newline="")
        return [row for _, row in dicts_of_csv(lines)]
    if suffix == ".json":
        made: object = parse_json(text)
        return cast(list[object], made) if isinstance(made, list) else [made]
    return [parse_json(line) for line in text.splitlines() if line.strip()]
