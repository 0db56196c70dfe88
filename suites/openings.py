"""A diary of opened exams: who looked at an eval split, when, and how much of it.

An eval split is opened once per released number. Nothing can stop a second look, so every look is
written down: one dated JSON line in `<log-dir>/openings.jsonl`. Loading a split stays pure; the
command that runs an exam writes the line.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.suite import OFFICIAL, Split, Suite, prompt_of

FILE = "openings.jsonl"


@dataclass(frozen=True, slots=True)
class Opening:
    """One look at a split."""

    opened: str
    """ISO date and time, UTC."""
    suite: str
    suite_version: str
    data_revision: str
    split: str
    n: int
    """Questions that were asked."""
    reason: str = ""
    """Why, in the words of whoever opened it."""
    prompt: str = OFFICIAL
    """How they were put; a diary that does not say is older than the choice."""


def log_opening(
    log_dir: Path, suite: Suite[Any], n: int, *, split: Split = "eval", reason: str = ""
) -> Opening:
    """Append the opening of `n` questions, dated now, to a log directory's diary; return it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    exam = (suite.name, suite.version, suite.data_revision, split)
    opening = Opening(now, *exam, n, reason, prompt_of(suite))
    log_dir.mkdir(parents=True, exist_ok=True)
    with (log_dir / FILE).open("a", encoding="utf-8") as diary:
        diary.write(json.dumps(asdict(opening), ensure_ascii=False) + "\n")
    return opening


def read_openings(log_dir: Path) -> list[Opening]:
    """Return the openings of a log directory, oldest first; empty when nothing was opened."""
    diary = log_dir / FILE
    if not diary.is_file():
        return []
    openings: list[Opening] = []
    for number, line in enumerate(diary.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            openings.append(Opening(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UserError(f"{diary}, line {number} is not an opening: {error}.") from error
    return openings
