"""Recognises Inspect's logs: `.eval` files, and files that `--log-format json` writes."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from inspect_ai.log import convert_eval_logs

from podium.harness.files import DOCUMENT, TooLarge, format_bytes, json_with_nan, regular_size

EVAL, JSON = ".eval", ".json"
BEGINNING = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"[a-z]+"')
"""The beginning of Inspect's logs in JSON; other JSON files beside logs begin differently."""
HEAD = 200  # bytes that are checked


def is_log(path: Path) -> bool:
    """Return whether a file is an Inspect log, by its name or, for JSON, by its beginning."""
    if path.suffix != JSON:
        return path.suffix == EVAL
    try:
        if not path.is_file():  # opening a pipe blocks for ever
            return False
        with path.open("rb") as file:
            return BEGINNING.match(file.read(HEAD)) is not None
    except OSError:
        return False


def logs_below(folder: Path, recursive: bool = True) -> Iterator[Path]:
    """Yield the Inspect logs in a directory; of a log in both formats, only the `.eval` file."""
    below = "**/*" if recursive else "*"
    yield from folder.glob(f"{below}{EVAL}")
    for path in folder.glob(f"{below}{JSON}"):
        if not path.with_suffix(EVAL).exists() and is_log(path):
            yield path


@contextmanager
def converted(path: Path) -> Generator[Path]:
    """Convert a log in JSON to a temporary `.eval` file with Inspect's converter."""
    refuse_unreadable(path)
    with TemporaryDirectory(prefix="podium-log-") as folder:
        try:
            convert_eval_logs(str(path), to="eval", output_dir=folder)
        except Exception as error:  # a damaged file may fail anywhere in JSON or pydantic
            raise ValueError(f"{type(error).__name__}: {error}") from error
        yield Path(folder) / f"{path.stem}{EVAL}"


def refuse_unreadable(path: Path) -> None:
    """Raise ValueError for a JSON log that is too large or nested too deeply for Inspect."""
    # Inspect's readers load the whole log into memory, and crash if it is nested too deeply.
    if (size := regular_size(path)) > DOCUMENT:
        raise TooLarge(f"it has {format_bytes(size)}; the maximum is {format_bytes(DOCUMENT)}")
    json_with_nan(path.read_bytes())
