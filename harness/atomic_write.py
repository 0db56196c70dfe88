"""A file that is replaced whole or not at all: what a full disk or a kill stops keeps the old."""

from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside a path and put it there; OSError names the path."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
