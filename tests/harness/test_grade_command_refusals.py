"""`podium grade`: bad input is one sentence before anything runs; being stopped loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.boxes import Boxes, select_box
from podium.harness.errors import UserError
from podium.suites.practice.integer import SUITE as INTEGER
from podium.suites.practice.programs import SUITE as CODE
from tests import ROOT
from tests.harness.graded_files import grade, values, verdicts_in, write_replies

GOOD = json.dumps({"question_id": INTEGER.load("eval")[0].id, "reply": "?"})
SLOW = "```python\nimport time\ntime.sleep(%s)\n```"


def complaint(capsys: pytest.CaptureFixture[str], code: int) -> str:
    assert code == 2
    said = capsys.readouterr().err
    assert said.startswith("podium: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "holds no replies", id="empty"),
        pytest.param(f"{GOOD}\n{{torn", "line 2 is not JSON", id="not-json"),
        pytest.param(f"{GOOD}\n[1]", "line 2 is not a JSON object", id="not-an-object"),
        pytest.param('{"reply": "?"}', "line 1 has no `question_id`", id="no-id"),
        pytest.param('\n{"question_id": "x"}', "line 2 has no `reply`", id="no-reply"),
        pytest.param(
            '{"question_id": "x", "reply": null}', "its `reply` is not a string", id="no-string"
        ),
        pytest.param(
            '{"question_id": "x", "reply": "?", "epoch": 0}',
            "its `epoch` is not a whole number from 1",
            id="no-epoch",
        ),
        pytest.param(
            '{"question_id": "x", "reply": "?"}\n{"question_id": 7, "reply": "?"}\n' + GOOD,
            "has no question 'x' (2 of 3 replies",
            id="unknown",
        ),
        pytest.param("\xff\xfe\x00", "cannot be read as JSON Lines in UTF-8", id="not-text"),
    ],
)
def test_replies_that_are_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    (tmp_path / "replies.jsonl").write_bytes(text.encode("latin-1"))
    assert reason in complaint(capsys, grade(tmp_path, "practice-integer"))
    assert [path.name for path in tmp_path.iterdir()] == ["replies.jsonl"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param("--suite aime24", "no suite 'aime24'", id="suite"),
        pytest.param("--replies {0}/none.jsonl", "There is no file", id="replies"),
        pytest.param("--problems {0}/none.jsonl", "There is no file", id="problems"),
        pytest.param("--problems {0}/replies.jsonl", "leave out --problems", id="generated"),
        pytest.param("--out {0}/no/out.jsonl", "There is no directory", id="out"),
        pytest.param("--out {0}/replies.jsonl", "is the file to grade", id="same"),
        pytest.param("--suite practice-code --box bwrap", "no question", id="other-suite"),
        pytest.param("--box cellar", "'cellar'. Known boxes", id="box"),
    ],
)
def test_files_and_suites_that_are_not_there_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, reason: str
) -> None:
    (tmp_path / "replies.jsonl").write_text(GOOD)
    assert reason in complaint(
        capsys, grade(tmp_path, "practice-integer", *words.format(tmp_path).split())
    )
    assert (tmp_path / "replies.jsonl").read_text() == GOOD


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param("--box cellar", "'cellar'. Known boxes", id="name"),
        pytest.param("--box subprocess --max-sandboxes 0", "must be at least 1", id="number"),
    ],
)
def test_a_box_that_cannot_be_had_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, reason: str
) -> None:
    write_replies(tmp_path / "replies.jsonl", [(CODE.load("eval")[0].id, "?")])
    assert reason in complaint(capsys, grade(tmp_path, "practice-code", *words.split()))
    assert not (tmp_path / "out.jsonl").exists()


def test_programs_run_in_docker_where_an_engine_answers_and_nowhere_by_accident() -> None:
    def never(*_: object) -> None:
        raise AssertionError("a box was opened to choose one")

    def boxes(no_engine: str) -> Boxes:
        return Boxes(open=never, describe=never, engine=lambda: no_engine)

    assert select_box(None, boxes("")) == "docker"
    assert select_box(None, boxes("It is down."), ours=True) == "subprocess"
    assert select_box("bwrap", boxes("It is down.")) == "bwrap"
    with pytest.raises(UserError, match=r"not available: It is down\.") as refusal:
        select_box(None, boxes("It is down."))
    assert "--box bwrap" in str(refusal.value)
    assert "--box subprocess" in str(refusal.value)


def test_a_foreign_file_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "replies.jsonl").write_text(GOOD)
    (tmp_path / "out.jsonl").write_text("mine\n")
    said = complaint(capsys, grade(tmp_path, "practice-integer"))
    assert "was not written by podium grade" in said
    assert (tmp_path / "out.jsonl").read_text() == "mine\n"


def started(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Start grading eight programs that sleep, in a process of its own."""
    ids = [question.id for question in CODE.load("eval")[:8]]
    write_replies(folder / "replies.jsonl", [(name, SLOW % seconds) for name in ids])
    words = ["grade", "--suite", "practice-code", "--box", "subprocess", "--max-sandboxes", "1"]
    files = ["--replies", str(folder / "replies.jsonl"), "--out", str(folder / "out.jsonl")]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.harness.graded_files", *words, *files], cwd=ROOT
    )


def wait_for_rows(out: Path, rows: int) -> None:
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < rows:
        assert time.monotonic() < deadline, "no verdict came"
        time.sleep(0.05)


def test_an_engine_that_is_not_there_is_named_with_the_ways_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    write_replies(tmp_path / "replies.jsonl", [(CODE.load("eval")[0].id, "?")])
    said = complaint(capsys, grade(tmp_path, "practice-code"))
    assert "nobody.sock" in said
    assert "--box bwrap" in said
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_grading_keeps_what_it_had_and_the_same_command_finishes_it(
    tmp_path: Path, sign: signal.Signals
) -> None:
    process = started(tmp_path, seconds=0.4)
    wait_for_rows(tmp_path / "out.jsonl", rows=2)
    os.kill(process.pid, sign)
    assert process.wait(30) == (130 if sign == signal.SIGINT else -signal.SIGKILL)
    kept = verdicts_in(tmp_path / "out.jsonl")
    assert 2 <= len(kept) < 8
    assert main(["grade", "--suite", "practice-code", "--box", "subprocess", *files(tmp_path)]) == 0
    done = verdicts_in(tmp_path / "out.jsonl")
    assert done[: len(kept)] == kept
    assert values(tmp_path) == [0.0] * 8


def files(folder: Path) -> list[str]:
    return ["--replies", str(folder / "replies.jsonl"), "--out", str(folder / "out.jsonl")]
