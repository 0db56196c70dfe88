"""The file that `podium grade` writes: one verdict a line, safe against being killed at any moment.

While it grows, verdicts stand in the order in which they came, and a reply that is graded again
has a later one; when all is done, they are put into the order of the replies. What the file was
made from stands beside it in `FILE.meta.json`: verdicts of other replies are never mixed in.
"""

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.boxes import BoxFacts
from harness.errors import UserError
from harness.file_limits import SETTINGS, read_limited
from harness.parsing import parse_json

META = ".meta.json"
FIELDS = ("question_id", "value", "answer", "reason", "tests_passed", "tests_total", "seconds")
LINE = "line"
"""Last field of a verdict: the line of the replies file that it is about."""

Verdict = Mapping[str, Any]
"""`FIELDS`, what a suite adds, and `LINE`; a null value is a reply that could not be graded."""


class Made(BaseModel):
    """What a file of verdicts was made from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["podium-verdicts-1"] = "podium-verdicts-1"
    suite: str
    suite_version: str
    problems: str
    """sha256 of the problems file, or the suite's data revision."""
    replies: str
    """sha256 of the replies file."""
    box: str | None = None
    box_facts: BoxFacts | None = None


class VerdictFile:
    """An open file of verdicts; `opened_verdicts` makes it."""

    def __init__(self, path: Path, reader: BinaryIO, writer: BinaryIO) -> None:
        """Read what is there; `writer` appends and holds nothing back."""
        self._path = path
        self._reader = reader
        self._writer = writer
        self._places: dict[int, int] = {}
        self._ungraded: set[int] = set()
        self._in_order = True
        self._read()

    def has(self, line: int) -> bool:
        """Say whether a reply has a value already."""
        return line in self._places and line not in self._ungraded

    @property
    def graded(self) -> int:
        """Replies that have a value."""
        return len(self._places) - len(self._ungraded)

    def add(self, verdict: Verdict) -> None:
        """Append a verdict and hand it to the system, so that a killed run keeps it."""
        place = os.fstat(self._writer.fileno()).st_size
        text = json.dumps(verdict, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            whole = self._writer.write(text) == len(text)
            why = "no space left"
        except OSError as error:
            whole, why = False, str(error.strerror)
        if not whole:
            raise UserError(
                f"{self._path} cannot be written ({why}): make room; what is graded is kept, and "
                "the same command grades the rest."
            )
        self._note(verdict, place)

    def verdicts(self) -> Generator[Verdict]:
        """Yield the newest verdict of each reply, in the order of the replies."""
        for line in sorted(self._places):
            yield cast(Verdict, json.loads(self._text_at(line)))

    def put_in_order(self) -> None:
        """Write the verdicts in the order of the replies, unless they stand so.

        Until all are written the file stays as it is; UserError when there is no room for that.
        """
        if self._in_order:
            return
        scratch = self._path.with_name(f"{self._path.name}.new")
        try:
            with scratch.open("wb") as new:
                for line in sorted(self._places):
                    new.write(self._text_at(line))
            scratch.replace(self._path)
        except OSError as error:
            raise UserError(
                f"{scratch} cannot be written ({error.strerror}): {self._path} holds all verdicts, "
                "in the order in which they came; make room, and the same command orders them."
            ) from error
        finally:
            scratch.unlink(missing_ok=True)

    def _text_at(self, line: int) -> bytes:
        self._reader.seek(self._places[line])
        return self._reader.readline()

    def _note(self, verdict: Verdict, place: int) -> None:
        line = verdict[LINE]
        self._in_order = self._in_order and line > next(reversed(self._places), 0)
        self._places[line] = place
        if verdict["value"] is None:
            self._ungraded.add(line)
        else:
            self._ungraded.discard(line)

    def _read(self) -> None:
        """Learn what is there, and drop a last line that a killed run left unfinished."""
        place = 0
        for number, text in enumerate(self._reader, start=1):
            if not text.endswith(b"\n"):
                self._writer.truncate(place)
                break
            try:
                verdict: Any = parse_json(text)
                self._note({LINE: int(verdict[LINE]), "value": verdict["value"]}, place)
            except (ValueError, TypeError, KeyError) as error:
                raise UserError(
                    f"{self._path}, line {number} is no verdict of podium's: restore the file, or "
                    "name another --out."
                ) from error
            place += len(text)


@contextmanager
def opened_verdicts(path: Path, made: Made) -> Generator[VerdictFile]:
    """Yield the verdicts at `path`, new or from an earlier run, locked against another run.

    UserError when the file is not of podium's making or was made from something else.
    """
    beside = path.with_name(path.name + META)
    with path.open("ab", buffering=0) as writer, path.open("rb") as reader:
        _lock(path, writer)
        if os.fstat(writer.fileno()).st_size:
            _refuse_other(path, beside, made)
        else:
            _describe(beside, made)
        yield VerdictFile(path, reader, cast(BinaryIO, writer))


def _lock(path: Path, writer: RawIOBase) -> None:
    """Keep other runs out; UserError if one is at work, or has just put another file here."""
    try:
        fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(writer.fileno()), path.stat())
    except BlockingIOError:
        same = False
    if not same:
        raise UserError(f"Another podium grade is writing {path}; wait for its end.")


def _describe(beside: Path, made: Made) -> None:
    try:
        beside.write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{beside} cannot be written ({error.strerror}): make room.") from error


def _refuse_other(path: Path, beside: Path, made: Made) -> None:
    if not beside.is_file():
        raise UserError(
            f"{path} was not written by podium grade ({beside.name} is missing): name another "
            "--out."
        )
    try:
        stored = Made.model_validate_json(read_limited(beside, SETTINGS))
    except ValidationError as error:
        raise UserError(f"{beside} is damaged: name another --out.") from error
    for name, now in made:
        before = getattr(stored, name)
        if before != now:
            what = name.replace("_", " ")
            raise UserError(
                f"{path} holds other verdicts: {what} was {_said(before)} and is now {_said(now)}; "
                "name another --out."
            )


def _said(value: object) -> str:
    return value.short if isinstance(value, BoxFacts) else str(value)[:40]
