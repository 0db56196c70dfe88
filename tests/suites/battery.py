"""The battery of replies: corpus/SUITE.jsonl, a made-up reply a line and its right verdict.

A verdict is what a careful examiner, shown the question and the key, would say. A fifth of the
rows is held back by a hash of the pair, so that whoever mends a grader is judged on what he has
not seen. Not here: any assertion, and any grader.
"""

import hashlib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from podium.harness.records import Kind, Question

CORPUS = Path(__file__).parent / "corpus"

KINDS: dict[str, Kind] = {
    "gpqa-diamond": "choice",
    "mmlu": "choice",
    "practice-choice": "choice",
    "aime25": "integer",
    "practice-integer": "integer",
    "math500": "text",
    "rlpr": "text",
}
NOISE = "So {:06} is tried: x = {:02} + y; {} has the wrong unit of length.\n"
"""64 characters a line."""


class BatteryRow(BaseModel):
    """One reply and its verdict; an unknown field, which may be a misspelt one, is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reply: str
    gold: str = Field(min_length=1)
    right: bool
    why: str = Field(min_length=1)
    """The class of the form and, for what is wrong, what is wrong with it."""
    choices: tuple[str, ...] | None = None
    extracted: str | None = None
    """What must be read; empty: nothing may be read; absent: not looked at."""
    noise_kb: int = Field(default=0, ge=0)
    topic: str = ""

    def question(self, suite: str) -> Question:
        """Return a question with this key, of the suite's kind."""
        metadata: dict[str, Any] = {} if self.choices is None else {"choices": [*self.choices]}
        return Question(
            id=f"corpus-{suite}",
            text="?",
            kind=KINDS[suite],
            target=self.gold,
            topic=self.topic,
            metadata=metadata,
        )

    def noisy(self) -> str:
        """Return the reply behind so many kilobytes of text that has no answer in it."""
        lines = (NOISE.format(n, n % 97, "ABCD"[n % 4]) for n in range(16 * self.noise_kb))
        return f"{''.join(lines)}\n\n{self.reply}" if self.noise_kb else self.reply


def files() -> list[Path]:
    """Return the batteries that there are, each named after its suite."""
    return sorted(CORPUS.glob("*.jsonl"))


def rows(suite: str, folder: Path = CORPUS) -> list[tuple[int, BatteryRow]]:
    """Return a suite's rows, each with its line; a wrong field is an error that names it.

    Lines end at line feeds alone: a reply may hold the other characters at which text can part.
    """
    lines = (folder / f"{suite}.jsonl").read_text("utf-8").split("\n")
    return [
        (number, BatteryRow.model_validate_json(line))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def held_back(row: BatteryRow) -> bool:
    """Return whether the row is of the fifth that nobody looks at before the end."""
    digest = hashlib.sha256(f"{row.gold}\0{row.reply}".encode()).hexdigest()
    return int(digest, 16) % 5 == 0
