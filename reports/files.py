"""Files of a report: written all or none, and never over what podium did not write.

Not here: what stands in them (reports/report.py, reports/route_table.py).
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.errors import UserError
from harness.escape import markdown

Writer = Callable[[Path], object]
HEAD = 2000
"""Bytes from the start of a file within which its mark stands."""


def text_file(content: str) -> Writer:
    """Return the writer of a text."""
    return lambda path: path.write_text(content, encoding="utf-8")


def markdown_file(content: str, mark: str) -> Writer:
    """Return the writer of Markdown that begins with podium's mark; the rest is made harmless."""
    return text_file(mark + markdown(content.removeprefix(mark)))


def write_files(out: Path, writers: Mapping[str, Writer]) -> tuple[Path, ...]:
    """Write all files beside their places, then put them there; UserError names what failed."""
    path = out
    scratch: list[Path] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in writers.items():
            path = out / f"{name}.new"
            write(path)
            scratch.append(path)
        return tuple(path.replace(path.with_suffix("")) for path in scratch)
    except OSError as error:
        for left in scratch:
            left.unlink(missing_ok=True)
        reason = f"{type(error).__name__}: {error.strerror}"
        raise UserError(
            f"{path} cannot be written ({reason}); name another --out directory."
        ) from error


def refuse_unwritable(out: Path) -> None:
    """Raise UserError before anything is read; nothing is made here, for there may be no logs."""
    place = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise UserError(f"{place} is no directory; name another --out directory.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{place} may not be written to; name another --out directory.")


def refuse_foreign(out: Path, marks: Mapping[str, str]) -> None:
    """Raise UserError when a file is there without the mark that podium's own carries."""
    for name, mark in marks.items():
        path = out / name
        ours = path.is_file() and mark.encode() in path.read_bytes()[:HEAD]
        if path.exists() and not ours:
            raise UserError(f"{path} was not written by podium; name another --out directory.")
