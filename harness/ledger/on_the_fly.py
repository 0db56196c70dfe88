"""The Parquet files that SQL reads: an export that is there, or one made now of a run's logs.

What is made is kept in this user's own folder of temporary files, under a name that changes with
the logs and journals, so that a second query begins at once and never sees an older state.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.ledger.columns import SCHEMA
from harness.ledger.export import LISTED, export, provenance
from harness.ledger.row import canonical
from harness.ledger.sitting_files import JOURNALS, LOGS, has_sittings

parquet: Any = import_module("pyarrow.parquet")  # it has no types

TABLES = ("calls", "queries")
CODE = Path(__file__).parent.parent
NEW = "new-"
KEPT = 4
"""Exports that stay, the newest ones."""


def exported_tables(source: Path) -> Mapping[str, Path]:
    """Return the Parquet file of each view; UserError when there is nothing to read."""
    if not source.exists():
        raise UserError(f"There is no {source}; name a run's directory or an export's.")
    if source.suffix == ".parquet":
        return _checked({_table_of(source): source})
    if has_sittings(source):  # a run's own directory may hold an export as well
        folder = _made(source)
        return {name: folder / f"{name}.parquet" for name in TABLES}
    there = {name: source / f"{name}.parquet" for name in TABLES}
    found = {name: path for name, path in there.items() if path.is_file()}
    if not found:
        raise UserError(f"{source} has neither logs nor calls.parquet; name another directory.")
    return _checked(found)


def _checked(found: Mapping[str, Path]) -> Mapping[str, Path]:
    for path in found.values():
        try:
            stored: Mapping[bytes, bytes] = parquet.read_metadata(path).metadata or {}
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is damaged or no Parquet file; export again.") from error
        schema = stored.get(b"podium.schema", b"").decode()
        if schema != SCHEMA:
            raise UserError(f"{path} is no export of this version ({schema or 'foreign'}).")
    return found


def _table_of(path: Path) -> str:
    return path.stem if path.stem in TABLES else TABLES[0]


def _made(source: Path) -> Path:
    """Return the folder with an export of a run as it is now."""
    place = _own_folder()
    folder = place / _state(source)
    if _whole(folder):
        os.utime(folder)
        return folder
    fresh = Path(tempfile.mkdtemp(dir=place, prefix=NEW))
    try:
        export(source, fresh)
        shutil.rmtree(folder, ignore_errors=True)  # what a cleaner of temporary files left
        fresh.rename(folder)
    except OSError:
        if not _whole(folder):  # else another query was as quick
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _forget(place, folder)
    return folder


def _whole(folder: Path) -> bool:
    return all(
        (folder / name).is_file() for name in (LISTED, *(f"{one}.parquet" for one in TABLES))
    )


def _own_folder() -> Path:
    """Return this user's folder of temporary exports; UserError when it is somebody else's."""
    place = Path(tempfile.gettempdir()) / f"podium-sql-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or place.is_symlink():
        raise UserError(f"{place} can be changed by others; remove it, or set TMPDIR.")
    return place


def _state(source: Path) -> str:
    """Return a name for a run's files as they are: places, sizes and times."""
    paths = {*source.glob(LOGS), *source.glob(JOURNALS)}
    files = [
        (str(path.relative_to(source)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(paths)
    ]
    # The code too: a checkout changes without its version.
    code = [(path.name, path.stat().st_mtime_ns) for path in sorted(CODE.glob("**/*.py"))]
    state = canonical([str(source.resolve()), provenance(), code, files])
    return hashlib.sha256(state).hexdigest()[:24]


def _forget(place: Path, newest: Path) -> None:
    others = [path for path in place.iterdir() if path != newest and not path.name.startswith(NEW)]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
