"""A suite and a system in files of one's own: run by path and name, or refused in one sentence."""

from pathlib import Path

import pytest

from harness.cli import main

SUITE = """
from harness.records import Question
from suites.base import OwnSuite, choice_metadata, choice_text, grade_choice

ROWS = [("p1", "Which planet is nearest to the Sun?", ["Mars", "Mercury", "Venus", "Earth"], "B")]


def questions():
    return [
        Question(id, choice_text(text, options), "choice", right, metadata=choice_metadata(options))
        for id, text, options, right in ROWS
    ]


PLANETS = OwnSuite("planets", questions, grade_choice)
NOTHING = object()
"""
SYSTEM = '''
from harness.execute import Session
from harness.workflow import Step, Workflow


async def ask_twice(question, pool):
    """Ask the first worker twice and keep the second reply."""
    session = Session(question, pool)
    replies = await session.ask_all([Step(pool.workers[0])] * 2)
    return session.answer(replies[1].text)


def one_step(question, pool):
    """Ask the first worker."""
    return Workflow((Step(pool.workers[0]),))


def wrong(question):
    """Take too little."""
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(SUITE + SYSTEM)
    (tmp_path / "broken.py").write_text("import nowhere_at_all\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_suite_and_systems_of_ones_own_are_run_reported_and_resumed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--suite", "mine.py@PLANETS", "--pool", "rehearsal", "--log-dir", "logs"]
    systems = ["--system", "./mine.py@ask_twice", "--system", "mine.py@one_step"]
    for _ in range(2):
        assert main(["run", *named, *systems]) == 0
    capsys.readouterr()
    assert main(["report", "logs"]) == 0
    said = capsys.readouterr().out
    assert "planets 1-A (eval)" in said
    assert "ask-twice" in said
    assert "one-step" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("suites nowhere.py@X", "nowhere.py cannot be read (No such file"),
        ("suites broken.py@X", "broken.py cannot be imported (ModuleNotFoundError: No module nam"),
        ("suites mine.py@MARS", "mine.py has no 'MARS'; it has: Question, OwnSuite, "),
        ("suites mine.py@NOTHING", "mine.py@NOTHING is no suite: it has no name, version, "),
        ("systems mine.py@wrong", "is no system: write `async def wrong(question, pool)` that"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_is_no_part_of_ones_own_is_one_sentence(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.usefixtures("here")
def test_a_part_of_ones_own_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "mine.py@PLANETS"]) == 0
    assert main(["systems", "mine.py@ask_twice"]) == 0
    said = capsys.readouterr().out
    assert "questions    eval 1" in said
    assert "Ask the first worker twice and keep the second reply." in said
