"""Who may read what is written of a suite whose questions may not be published: its owner."""

import os
import stat
import textwrap
from collections.abc import Generator
from pathlib import Path

import pytest

from podium.cli import main

SUITE = """
from dataclasses import dataclass
from podium import Card, DatasetSuite, Grade, Question, choice_metadata, choice_text, grade_choice

@dataclass(frozen=True, slots=True)
class Secrets(DatasetSuite):
    name: str = "secrets"
    version: str = "1-A"
    dates: str = "2026-11"
    publishable: bool = False

    @property
    def card(self):
        return Card(title="Secrets", paper="none", sizes={"eval": 2}, licence="none",
            human="none published", about="Of a test.", changes=("1-A (2026-11-28): first",))

    @property
    def data_revision(self):
        return "written-1"

    def questions(self, split):
        options = ["iron", "gold", "lead", "zinc"]
        return [Question(id=f"q{n}", text=choice_text(f"Question {n}: which?", options),
            kind="choice", target="B", metadata=choice_metadata(options)) for n in range(2)]

    def grade(self, question, reply, box=None):
        return grade_choice(question, reply)

secrets = Secrets()
"""


@pytest.fixture
def wide() -> Generator[None]:
    """The usual umask, whatever an earlier test did to it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "secrets_suite.py").write_text(textwrap.dedent(SUITE))
    return f"{tmp_path / 'secrets_suite.py'}@secrets"


def done(*words: object) -> None:
    """Run a command as a process of its own would, with the usual umask."""
    os.umask(0o022)
    assert main([str(word) for word in words]) in (0, 1), words


def open_to_others(folder: Path) -> list[str]:
    """Return what others may read, the folder itself included."""
    return [
        str(path.relative_to(folder.parent))
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


def asked(suite: str, logs: Path, *more: str) -> None:
    words = ("run", "--suite", suite, "--system", "moa-lite", "--pool", "rehearsal")
    done(*words, "--time-scale", "0", *more, "--log-dir", logs)


@pytest.mark.usefixtures("wide")
def test_all_that_is_written_of_a_private_run_is_its_owner_s_alone(
    suite: str, tmp_path: Path
) -> None:
    logs, made = tmp_path / "logs", tmp_path / "made"
    asked(suite, logs)
    assert open_to_others(logs) == []
    for words in (
        ("report", logs, "--latex", "--out", made / "report", "--site", made / "site"),
        ("report", logs, "--site", made / "pages"),
        *(
            ("ledger", "export", logs, "--format", kind, "--out", made / kind)
            for kind in ("csv", "parquet", "jsonl", "md")
        ),
        ("audit", logs, "--site", made / "audit"),
        ("export", "latex", logs, "--out", made / "latex"),
        ("export", "eee", logs, "--out", made / "eee"),
        ("reprice", logs, "--book", "rehearsal", "--out", made / "repriced.csv"),
        ("manifest", "write", logs),
    ):
        done(*words)
        written = list(made.iterdir()) if made.exists() else []
        assert [name for one in written for name in open_to_others(one)] == [], words
    assert open_to_others(logs) == []


@pytest.mark.usefixtures("wide")
def test_a_directory_that_was_there_keeps_its_mode_and_what_is_put_into_it_is_private(
    suite: str, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o755)
    asked(suite, logs)
    assert open_to_others(logs) == ["logs"]


@pytest.mark.usefixtures("wide")
def test_verdicts_on_replies_to_private_questions_are_private(tmp_path: Path, suite: str) -> None:
    replies, out = tmp_path / "replies.jsonl", tmp_path / "verdicts.jsonl"
    replies.write_text('{"question_id": "q0", "reply": "Answer: B"}\n')
    done("grade", "--suite", suite, "--replies", replies, "--out", out)
    written = [*tmp_path.glob("verdicts.jsonl*")]
    assert written
    assert [stat.S_IMODE(path.stat().st_mode) for path in written] == [0o600] * len(written)


@pytest.mark.usefixtures("wide")
def test_of_other_suites_the_umask_decides(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    asked("practice-integer", logs, "--limit", "1")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in logs.glob("*.json")}
    assert (stat.S_IMODE(logs.stat().st_mode), modes) == (0o755, {0o644})


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_shards_of_a_private_run_are_private(suite: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    asked(suite, logs, "--shards", "2")
    assert open_to_others(logs) == []
