"""Files of replies for tests of `podium grade`, and what it made of them.

`python graded.py WORDS` is one `podium WORDS` in a process of its own, so that a test can kill it.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from podium.cli import main

RIGHT = r"So the answer is \boxed{%s}."


def write_replies(path: Path, replies: Iterable[tuple[str, str]]) -> Path:
    """Write (question, reply) pairs as rows, with a field more than is asked for."""
    rows = ({"question_id": name, "reply": text, "model": "x"} for name, text in replies)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def verdicts_in(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of verdicts."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def grade(folder: Path, suite: str, *words: str) -> int:
    """Grade folder/replies.jsonl into folder/out.jsonl; return the exit code."""
    files = ["--replies", str(folder / "replies.jsonl"), "--out", str(folder / "out.jsonl")]
    return main(["grade", "--suite", suite, *files, *words])


def values(folder: Path) -> Sequence[float | None]:
    """Return the values in folder/out.jsonl."""
    return [row["value"] for row in verdicts_in(folder / "out.jsonl")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
