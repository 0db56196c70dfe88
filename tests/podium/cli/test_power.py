"""`podium power`: what so many questions can show, assumed and from logs."""

from pathlib import Path

import pytest

from podium.cli import main
from tests.harness.runs import Crew, Exam, Heard, number, sit, steps, wrong
from tests.reports.small_reports import right_up_to


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["power", *words]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["power", *words]) == 2
    return capsys.readouterr().err


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line.removeprefix(name).split()


def test_exams_that_are_often_quoted_show_no_three_points(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """16 / 6.3 / 6.7 / 2.7 points at 10 % discordant questions: reference/baselines.md, 5."""
    text = said(capsys, "--epochs", "1")
    assert row(text, "30 (aime25)") == ["16.2"]
    assert row(text, "198 (gpqa-diamond)") == ["6.3"]
    assert row(text, "175 (livecodebench, newest 175)") == ["6.7"]
    assert row(text, "1055 (livecodebench)") == ["2.7"]
    assert row(text, "80 %") == ["873"]
    assert row(text, "90 %") == ["1,168"]
    assert "Such systems differ by at most 10 points: above that, nothing is shown." in text
    assert "Such systems" not in said(capsys, "--epochs", "1", "--questions", "198")


def test_epochs_shrink_only_the_noise_within_questions(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--accuracy", "0.8", "--epochs", "1,4", "--questions", "100")
    assert "The effect of more epochs is unknown" in said(capsys, *words)
    text = said(capsys, *words, "--within", "0.5")
    once, four = map(float, row(text, "100"))
    assert four / once == pytest.approx((0.5 + 0.5 / 4) ** 0.5, abs=0.01)
    assert "is unknown" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_assumptions_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Give only one of them" in refused(capsys, "--accuracy", "0.8", "--discordant", "0.1")
    assert "--correlation needs --accuracy" in refused(capsys, "--correlation", "0.5")
    assert "cannot be 20 points apart" in refused(capsys, "--effect", "20")
    assert "Add their directory with --from" in refused(capsys, "--vs", "single:sage")
    for words in (["--effect", "0"], ["--epochs", "0"], ["--accuracy", "80"]):
        with pytest.raises(SystemExit):
            main(["power", *words])
        assert "argument --" in capsys.readouterr().err


def unsure(heard: Heard) -> str:
    """Know the even questions always, and the odd ones every second time."""
    known = int(number(heard)) % 2 == 0 or heard.epoch % 2
    return number(heard) if known else wrong(heard)


def test_logs_of_several_epochs_tell_both_parts_of_the_variance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exam = Exam(size=8)
    sit(tmp_path, "single:sage", crew=Crew(sage=unsure), exam=exam, epochs=2)
    sit(tmp_path, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(3)), exam=exam, epochs=2)
    text = said(capsys, "--from", str(tmp_path), "--effect", "10")
    assert "numbers (live): single:clerk against single:sage, 8 questions, 2 epochs" in text
    # Half of sage's questions vary by 0.5 within two epochs, clerk's by nothing: 0.25 on average.
    assert "0.2500 within" in text
    assert row(text, "8 ")
    assert "single:sage against single:clerk" in said(
        capsys, "--from", str(tmp_path), "--vs", "single:clerk"
    )
    assert "Leave --discordant, --accuracy, --correlation and --within out" in refused(
        capsys, "--from", str(tmp_path), "--accuracy", "0.5"
    )


def test_logs_of_one_system_give_no_variance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(tmp_path, "single:sage")
    assert "have no reference and second system that were graded" in refused(
        capsys, "--from", str(tmp_path)
    )
