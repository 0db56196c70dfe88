"""The ledger of a run as tables for others: `calls` and `queries` in one of several formats.

Written beside, then moved into place whole. The same logs, journals and podium give the same bytes.
What an export.json lists was written here and may be replaced; anything else stays.
"""

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.integrity.inventory import file_digest
from harness.ledger.columns import SCHEMA, schema_of
from harness.ledger.formats import FORMATS, SUFFIX, WHOLE, Writer, writer_for
from harness.ledger.journal import FOLDER
from harness.ledger.query_row import QueryRow
from harness.ledger.row import LedgerRow
from harness.ledger.schema_page import schema_page
from harness.ledger.sitting_files import sittings_below
from harness.ledger.tables import each_of

LISTED = "export.json"
PAGE = "schema.md"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    files: tuple[Path, ...]
    calls: int
    queries: int
    size: int
    """Bytes of all files."""

    def __str__(self) -> str:
        names = ", ".join(path.name for path in self.files)
        where = self.files[0].parent
        return (
            f"{self.calls} attempts in {self.queries} queries, {self.size} bytes: {names} in "
            f"{where}; {PAGE} says what each column means."
        )


def export(folder: Path, out: Path, format: str = "parquet") -> Exported:
    """Write the ledger of a directory's logs and journals; UserError before anything is replaced.

    `format` is one of `FORMATS`.
    """
    sittings = sittings_below(folder)
    names = _names(format)
    _refuse(folder, out, [*names.values(), PAGE, LISTED])
    with _beside(out) as fresh:
        writers = {
            table: writer_for(format, fresh / name, schema_of(RECORDS[table]))
            for table, name in names.items()
        }
        counts, books = {"calls": 0, "queries": 0}, set[str]()
        try:
            for tables in each_of(sittings):
                for table, rows in (("calls", tables.calls), ("queries", tables.queries)):
                    counts[table] += rows.num_rows
                    if table in writers:
                        writers[table].write(rows)
                books.update(tables.books)
        finally:
            about = {**provenance(), "podium.price_books": "; ".join(sorted(books))}
            _close(writers, about)
        (fresh / PAGE).write_text(schema_page())
        _list_files(fresh)
        files = _move(fresh, out)
    size = sum(path.stat().st_size for path in files)
    return Exported(files, counts["calls"], counts["queries"], size)


RECORDS: Mapping[str, type] = {"calls": LedgerRow, "queries": QueryRow}


def provenance() -> dict[str, str]:
    """Return what a Parquet footer says of its making."""
    return {"podium.schema": SCHEMA, "podium.version": version("podium")}


def _names(format: str) -> dict[str, str]:
    """Return the file of each table that a format has."""
    if format not in FORMATS:
        raise UserError(f"There is no format {format!r}; there are: {', '.join(FORMATS)}.")
    tables = ("calls", "queries") if format in WHOLE else ()
    tables = tables or (("calls",) if format == "otel" else ("queries",))
    return {table: f"{table}.{SUFFIX.get(format, format)}" for table in tables}


def _close(writers: Mapping[str, Writer], metadata: Mapping[str, str]) -> None:
    for writer in writers.values():
        writer.close(metadata)


def _refuse(folder: Path, out: Path, names: list[str]) -> None:
    """Raise UserError when a file is in the way that no export wrote, or that was changed since."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no directory: name another --out.")
    if FOLDER in out.resolve().relative_to(folder.resolve()).parts if _within(out, folder) else ():
        raise UserError(f"{out} is where journals lie: name another --out.")
    ours = _listed(out)
    for name in names:
        path = out / name
        if path.exists() and name != LISTED and ours.get(name) != file_digest(path):
            raise UserError(f"{path} was not written by an export, or changed: name another --out.")
    if (out / LISTED).exists() and not ours:
        raise UserError(f"{out / LISTED} was not written by an export: name another --out.")


def _within(out: Path, folder: Path) -> bool:
    return out.resolve().is_relative_to(folder.resolve())


def _listed(out: Path) -> dict[str, str]:
    """Return the files that an export wrote there, with their digests."""
    try:
        found: object = json.loads((out / LISTED).read_text())
    except (OSError, ValueError):
        return {}
    stored = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    files: object = stored.get("files")
    ours = stored.get("schema") == SCHEMA and isinstance(files, dict)
    return cast(dict[str, str], files) if ours else {}


def _list_files(fresh: Path) -> None:
    files = {path.name: file_digest(path) for path in sorted(fresh.iterdir())}
    listed = {"schema": SCHEMA, "files": files}
    (fresh / LISTED).write_text(json.dumps(listed, indent=1) + "\n")


@contextmanager
def _beside(out: Path) -> Generator[Path]:
    """Yield an empty folder on the same disk, which goes when we leave."""
    out.mkdir(parents=True, exist_ok=True)
    fresh = out / ".podium-export"
    try:
        fresh.mkdir(mode=0o700)
    except FileExistsError:
        raise UserError(
            f"{fresh} is there: another export runs, or was killed (remove it)."
        ) from None
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _move(fresh: Path, out: Path) -> tuple[Path, ...]:
    """Move the new files into place, the list last; files of other formats stay listed."""
    kept = {name: sha for name, sha in _listed(out).items() if not (fresh / name).exists()}
    new = _listed(fresh)
    listed = {"schema": SCHEMA, "files": dict(sorted({**kept, **new}.items()))}
    (fresh / LISTED).write_text(json.dumps(listed, indent=1) + "\n")
    return tuple((fresh / name).replace(out / name) for name in (*sorted(new), LISTED))
