"""The corpus of awkward replies: tests/corpus/SUITE.toml, each case a named test.

A case says what the right verdict is and where the trap is known from. Replies are graded by the
suite of the file's name.
"""

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from harness.records import Kind, Question
from suites import SUITES

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.toml"))

KINDS: dict[str, Kind] = {
    "gpqa-diamond": "choice",
    "mmlu": "choice",
    "practice-choice": "choice",
    "aime25": "integer",
    "practice-integer": "integer",
    "math500": "text",
    "rlpr": "text",
}
LONGEST_S = 2.0
NOISE = "So {:06} is tried: x = {:02} + y; {} has the wrong unit of length.\n"
"""64 characters a line."""


class Case(BaseModel):
    """One reply; unknown fields are refused, so a misspelt one is no silent pass."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    target: str
    reply: str
    value: float
    source: str = Field(min_length=1)
    extracted: str | None = None
    """What must be read; empty: nothing may be read; absent: not looked at."""
    choices: tuple[str, ...] | None = None
    noise_kb: int = 0
    topic: str = ""

    def question(self, suite: str) -> Question:
        """Return a question with this target, of the suite's kind."""
        metadata: dict[str, Any] = {} if self.choices is None else {"choices": [*self.choices]}
        return Question(
            id=f"corpus-{suite}",
            text="?",
            kind=KINDS[suite],
            target=self.target,
            topic=self.topic,
            metadata=metadata,
        )

    def noisy(self) -> str:
        """Return the reply behind so many kilobytes of text that has no answer in it."""
        lines = (NOISE.format(n, n % 97, "ABCD"[n % 4]) for n in range(16 * self.noise_kb))
        return f"{''.join(lines)}\n\n{self.reply}" if self.noise_kb else self.reply


def cases(path: Path) -> list[Case]:
    """Return a file's cases; a wrong field is an error that names it."""
    return [Case.model_validate(case) for case in tomllib.loads(path.read_text("utf-8"))["case"]]


ALL = [
    pytest.param(path.stem, case, id=f"{path.stem}: {case.name}")
    for path in FILES
    for case in cases(path)
]


@pytest.mark.parametrize(("suite", "case"), ALL)
def test_an_awkward_reply_gets_its_verdict(suite: str, case: Case) -> None:
    question, reply = case.question(suite), case.noisy()
    exam = SUITES[suite]
    started = time.process_time()
    grade = exam.grade(question, reply)
    seconds = time.process_time() - started
    assert (grade.value, case.source) == (case.value, case.source)
    if case.extracted is not None:
        assert grade.extracted == (case.extracted or None)
    assert seconds < LONGEST_S


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_corpus_is_of_a_registered_suite_and_its_names_differ(path: Path) -> None:
    assert path.stem in SUITES
    assert path.stem in KINDS
    names = [case.name for case in cases(path)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_the_suites_that_read_answers_out_of_text_have_a_corpus() -> None:
    """Programs are judged by running them; these are read, which is where scorers err."""
    assert {path.stem for path in FILES} >= WANTED


WANTED = {"aime25", "gpqa-diamond", "math500", "mmlu", "rlpr"}
"""Suites that must have one."""
