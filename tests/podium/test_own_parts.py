"""A suite and a system of a user's own, run through `podium` and by the command line."""

from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import copytree
from typing import Any

import anyio
import pytest

import podium
from podium.cli import main

MINE = """
from dataclasses import dataclass

import podium

OPTIONS = ["Paris", "Rome", "Bonn", "Oslo"]


@dataclass(frozen=True, slots=True)
class Letters(podium.DatasetSuite):
    name: str = "letters"
    version: str = "1-A"
    dates: str = "2026-11"

    @property
    def card(self) -> podium.Card:
        sizes, history = {"eval": 2}, ("1-A (2026-11-23): first version",)
        return podium.Card("Letters", "none", sizes, "CC0", "none published", "Two.", history)

    @property
    def data_revision(self) -> str:
        return "written here"

    def questions(self, split: str) -> list[podium.Question]:
        return [
            podium.Question(
                id=f"letters-{number}",
                text=podium.choice_text(f"What is {number} + 1?", OPTIONS),
                kind="choice",
                target="AB"[number],
                metadata=podium.choice_metadata(OPTIONS),
            )
            for number in range(2)
        ]

    def grade(self, question: podium.Question, reply: str, box: object = None) -> podium.Grade:
        return podium.grade_choice(question, reply)


def majority_system(k: int = 2) -> podium.System:
    async def answer(question: podium.Question, pool: podium.Pool) -> podium.Answer:
        session = podium.Session(question, pool)
        replies = await session.ask_all([podium.Step(pool.workers[0])] * k)
        return session.answer(podium.vote(question.kind, [reply.text for reply in replies]))

    return answer


podium.registered(majority_system)
letters = Letters()
majority = podium.SystemCard(
    name="majority",
    solver="majority",
    summary="The first worker answers k times, and votes.",
    source="a test",
    calls=podium.Calls(
        "k, with k = 2 unless said", podium.exactly(lambda n, args: int(args.get("k") or 2))
    ),
    k="k",
)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(MINE)
    return path


@pytest.fixture(scope="module")
def mine(file: Path) -> Any:
    spec = spec_from_file_location("mine", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def log_dir(mine: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs") / "run"
    outcome = podium.run(mine.letters, ["single:sage", mine.majority], log_dir=folder)
    assert outcome.finished
    assert repr(outcome) == "RunOutcome(finished, 2 logs, 0 unscored)"
    assert "success" in outcome._repr_html_()
    return folder


def test_the_report_has_them_beside_ours(log_dir: Path) -> None:
    made = podium.report(log_dir)
    assert {path.parent for path in made.files} == {log_dir / "report"}
    rows = {row.system: row for row in made.rows}
    assert rows["majority"].calls == 2
    assert rows["single:sage"].calls == 1


def test_frames_have_the_figures_of_the_table_and_exact_dollars(log_dir: Path) -> None:
    found = podium.load_runs(log_dir)
    rows = {row.system: row for row in podium.report(log_dir).rows}
    accuracies = dict(zip(found.runs["system"], found.runs["accuracy"], strict=True))
    assert accuracies == {name: row.accuracy for name, row in rows.items()}
    assert len(found.samples) == 4
    assert set(found.calls["sample"]) == set(found.samples["sample"])
    total = found.calls["usd_list"].sum()
    assert isinstance(total, Decimal)
    assert total == found.samples["usd_list"].sum() > 0


def test_the_same_run_goes_on_by_file_and_name(
    file: Path, log_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--suite", f"{file}@letters", "--system", f"{file}@majority", "--pool", "rehearsal"]
    assert main(["doctor", *words, "--log-dir", str(log_dir)]) == 0
    assert "letters, version 1-A (eval): 2 questions, 1 time each." in capfd.readouterr().out
    assert main(["run", *words, "--log-dir", str(log_dir), "--display", "none"]) == 0
    assert len(podium.load_runs(log_dir).calls) == 6  # nobody was asked again


def test_a_card_of_ones_own_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", f"{file}@letters"]) == 0
    assert main(["systems", f"{file}@majority"]) == 0
    said = capsys.readouterr().out
    assert "title        Letters" in said
    assert "The first worker answers k times, and votes." in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py@letters", "There is no file nowhere.py. Name your own suite as FILE.py@NAME."),
        ("mine.py@majority", "mine.py has no suite called 'majority'."),
        ("bad.py@letters", "bad.py cannot be imported (ZeroDivisionError: division by zero). "),
    ],
    ids=["file", "kind", "code"],
)
def test_what_is_not_there_is_said_in_a_sentence(
    name: str, said: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    Path("bad.py").write_text("1 / 0\n")
    with pytest.raises(podium.UserError) as refused:
        podium.run(name, "single:sage", log_dir="logs")
    assert str(refused.value).startswith(said)
    assert not Path("logs").exists()


def test_replies_are_graded_by_the_id_of_their_question(mine: Any) -> None:
    replies = {"letters-1": "Answer: B", "letters-0": "Answer: D"}
    grades = podium.grade(mine.letters, replies)
    assert [(name, one.value) for name, one in grades.items()] == [
        ("letters-1", 1.0),
        ("letters-0", 0.0),
    ]
    with pytest.raises(podium.UserError, match="letters has no question 'letters-7'"):
        podium.grade(mine.letters, {"letters-7": "Answer: B"})


def test_a_workflow_is_carried_out_outside_a_run() -> None:
    pool = podium.Pool.named("rehearsal")
    question = podium.suites["practice-integer"].load("eval")[0]
    workflow = podium.Workflow((podium.Step("sage"), podium.Step("abacus", reads="all")))
    answer = anyio.run(podium.execute, workflow, question.sealed(), pool)
    assert [reply.worker for reply in answer.replies] == ["sage", "abacus"]


def test_a_suite_of_a_users_own_is_graded_again_by_file_and_name(
    file: Path, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = copytree(log_dir, tmp_path / "run")
    assert main(["regrade", str(copied), "--all"]) == 2
    assert "If it is your own, add --suite FILE.py@NAME" in capsys.readouterr().err
    assert main(["regrade", str(copied), "--all", "--suite", f"{file}@letters"]) == 0
    assert "2 graded, 0 verdicts changed" in capsys.readouterr().out


LESSONS = """

@dataclass(frozen=True, slots=True)
class Lessons(Letters):
    name: str = "lessons"
    splits: tuple[str, ...] = ("train", "eval")

    def questions(self, split: str) -> list[podium.Question]:
        first = 100 if split == "train" else 0
        return [
            podium.Question(
                id=f"lessons-{number}",
                text=podium.choice_text(f"What is {number} + 7?", OPTIONS),
                kind="choice",
                target="A",
                metadata=podium.choice_metadata(OPTIONS),
            )
            for number in range(first, first + 20)
        ]


lessons = Lessons()
"""


def test_systems_learn_from_a_suite_of_a_users_own(tmp_path: Path) -> None:
    (tmp_path / "lessons.py").write_text(MINE + LESSONS)
    asked = ["run", "--suite", "practice-choice", "--system", "best-single", "--limit", "1"]
    asked += ["--train-on", f"{tmp_path / 'lessons.py'}@lessons", "--display", "none"]
    assert main([*asked, "--log-dir", str(tmp_path / "run")]) == 0
    logs = [*(tmp_path / "run" / "selection").glob("*.eval")]
    assert len(logs) == len(podium.read_pool("rehearsal").names)
    assert all("lessons single-" in log.name for log in logs)
