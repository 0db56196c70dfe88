"""The rows of GPQA-Diamond, opened in memory only: archive, local CSV, or the hub's gated set.

The authors ask that no example appears in plain text where a crawler may find it. So nothing is
written here (the hub's client keeps its copy in its own cache, as for every gated set), and no
message or exception quotes a cell: errors of decoders, which hold what they decode, are not
chained. Not here: questions and prompts (gpqa_diamond.py).
"""

import csv
import hashlib
import io
import os
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import cast

from harness.errors import UserError
from harness.files import read_rows
from suites.fetch import Rows, Source, checked_rows, data_folder, local_bytes, sources
from suites.hub import hub_file, refusal

ARCHIVE, CSV = "gpqa-diamond", "gpqa-diamond-csv"
"""Names in sources.toml: the authors' encrypted archive, and its member as a plain file."""

MEMBER = "dataset/gpqa_diamond.csv"

PASSWORD = "deserted-untie-orchid"
"""As the README of github.com/idavidrein/gpqa prints it: it keeps crawlers out, not people.
PODIUM_GPQA_PASSWORD overrides it."""

ID = "Record ID"
QUESTION = "Question"
RIGHT = "Correct Answer"
WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def official_rows(data: str | Path | None = None) -> Rows:
    """Return the 198 rows; UserError when the data is absent, gated, or not the pinned one."""
    if _here(ARCHIVE, data):
        return _parsed(
            decrypted(local_bytes(ARCHIVE, data), _password()), f"{MEMBER} of the archive"
        )
    if _here(CSV, data):
        return _parsed(local_bytes(CSV, data), sources()[CSV].file)
    source = sources()[ARCHIVE]
    return _parsed(_hub_bytes(source, data), f"{source.hub} at {source.revision}")


def official_revision(data: str | Path | None = None) -> str:
    """Return what pins `official_rows`: the CSV's digest, in the archive or not, or the hub's."""
    if _here(ARCHIVE, data) or _here(CSV, data):
        return f"{Path(sources()[CSV].file).name}@sha256:{sources()[CSV].sha256[:12]}"
    return f"{sources()[ARCHIVE].hub}@{sources()[ARCHIVE].revision}"


def own_rows(path: Path) -> Rows:
    """Return the rows of somebody's own file (JSONL or CSV) in the official columns."""
    refused = ""
    try:
        rows = [row for _, row in read_rows(path)]
    except UserError as error:
        rows, refused = [], str(error)
    if refused or not rows:
        raise UserError(refused or f"{path} has no rows.")
    return whole_rows(rows, str(path))


def whole_rows(rows: Rows, where: str) -> Rows:
    """Return the rows; UserError names the row and column that is absent, empty or ambiguous."""
    seen = set[str]()
    for number, row in enumerate(rows, start=1):
        _refuse_incomplete(row, f"{where}, row {number}")
        if row[ID] in seen:
            raise UserError(f"{where} has the {ID} {row[ID]!r} twice.")
        seen.add(row[ID])
    return rows


def _here(name: str, data: str | Path | None) -> bool:
    return (data_folder(data) / sources()[name].file).is_file()


def _password() -> str:
    return os.environ.get("PODIUM_GPQA_PASSWORD") or PASSWORD


@lru_cache(maxsize=1)
def decrypted(archive: bytes, password: str) -> bytes:
    """Return the CSV in the authors' archive, once a process: decrypting it takes a while.

    UserError for a wrong password.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            content = opened.read(MEMBER, pwd=password.encode())
    except (RuntimeError, zipfile.BadZipFile, zlib.error, KeyError):
        content = b""
    if hashlib.sha256(content).hexdigest() != sources()[CSV].sha256:
        raise UserError(
            f"{MEMBER} cannot be read with this password: unset PODIUM_GPQA_PASSWORD, or set it to "
            "the one in the README of github.com/idavidrein/gpqa."
        )
    return content


@lru_cache(maxsize=1)
def _parsed(content: bytes, where: str) -> Rows:
    """Return the rows of the official CSV, checked."""
    rows = _read(content)
    if rows is None:
        raise UserError(f"{where} cannot be read as CSV in UTF-8.")
    return whole_rows(checked_rows(rows, sources()[ARCHIVE], where), where)


def _read(content: bytes) -> Rows | None:
    try:
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        return cast(Rows, list(csv.DictReader(text, strict=True)))
    except (UnicodeDecodeError, csv.Error):  # the first holds the bytes: it ends here
        return None


def _hub_bytes(source: Source, data: str | Path | None) -> bytes:
    hub = str(source.hub)
    try:
        return hub_file(hub, str(source.hub_file), source.revision).read_bytes()
    except Exception as error:  # offline, gated, no such revision, a full disk
        raise refusal(error, hub, _by_hand(data)) from error


def _by_hand(data: str | Path | None) -> str:
    files = " or ".join(str(data_folder(data) / sources()[name].file) for name in (ARCHIVE, CSV))
    return (
        "run `podium data fetch gpqa-diamond`, which needs no token, or put the authors' file at "
        f"{files} (PODIUM_DATA names another folder)"
    )


def _refuse_incomplete(row: dict[str, object], where: str) -> None:
    for column in (ID, QUESTION, RIGHT, *WRONG):
        if column not in row:
            raise UserError(f"{where} has no column {column!r}.")
        value = row[column]
        if not (isinstance(value, str) and value.strip()):
            raise UserError(f"{where}: its {column!r} is empty or no text.")
    right, *wrong = (str(row[column]).strip() for column in (RIGHT, *WRONG))
    if right in wrong:
        raise UserError(f"{where}: its {RIGHT!r} is also one of the incorrect ones.")
