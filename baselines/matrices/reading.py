"""What importers share: a folder of data, rows that are checked, digests of files.

Bytes of others come in here: every row is checked against the columns that an importer reads, and a
message names the file, the line and the field, never a value.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UserError
from harness.files import DOCUMENT, parse_json, read_limited, read_rows, unpack_gzip
from harness.learning.matrix import Matrix
from harness.records import Question

RowT = TypeVar("RowT", bound=BaseModel)


class Strict(BaseModel):
    """A row of somebody's file: other columns are passed over, those named must be there."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


@dataclass(frozen=True, slots=True)
class Given:
    """What the user and the command line hand to an importer."""

    data: Path
    """The folder of local data."""
    path: str = ""
    """What stands behind the colon: `routerbench:PATH`."""
    gpqa: Callable[[], Sequence[Question]] | None = None
    """How GPQA's questions are opened, in memory; None where they cannot be."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of recorded verdicts that `podium route` knows by name."""

    name: str
    holds: str
    """Workers, questions, what is known of costs; for `podium route --list`."""
    read: Callable[[Given], Matrix]
    path: str = ""
    """What stands behind the colon, e.g. `DIR`; `[SLICE]` where it may be left out."""
    exam: str = ""
    """The suite that asks the same questions; empty where there is none, or several."""


def checked_rows(model: type[RowT], path: Path) -> Iterator[RowT]:
    """Yield the rows of a JSONL or CSV file (also .gz); UserError says what is wrong where."""
    for line, row in read_rows(path):
        yield checked(model, row, f"{path}, line {line}")


def checked(model: type[RowT], row: object, where: str) -> RowT:
    """Return a row as `model`; UserError names the first field that is absent or no such thing."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "it"
        raise UserError(f"{where}: {field}: {first['msg']}.") from None


def checked_json(model: type[RowT], path: Path) -> RowT:
    """Return a JSON file (also .gz) as `model`; UserError when it is absent, damaged or another."""
    try:
        content = read_limited(path, DOCUMENT)
        text = unpack_gzip(content) if path.suffix == ".gz" else content
        return checked(model, parse_json(text), str(path))
    except FileNotFoundError:
        raise UserError(f"There is no file {path} (PODIUM_DATA names another folder).") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {type(error).__name__}.") from None


def pinned(*paths: Path) -> str:
    """Return the names of some files with the heads of their digests.

    Raises UserError when one is absent.
    """
    found: list[str] = []
    for path in paths:
        if not path.is_file():
            raise UserError(f"There is no file {path} (PODIUM_DATA names another folder).")
        found.append(f"{path.name}@sha256:{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}")
    return ", ".join(found)
