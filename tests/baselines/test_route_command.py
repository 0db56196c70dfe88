"""`podium route`: what it prints, what it keeps, and what it refuses in one sentence."""

from pathlib import Path

import pytest

from podium.baselines.verdict_data import EPOCHS, VERDICTS
from podium.cli import main
from podium.suites.data import data_folder

AIME = (data_folder() / "saturn_lighteval" / "aime25_4models.jsonl.gz").is_file()
needs_aime = pytest.mark.skipif(not AIME, reason="AIME25 replies are absent; see PODIUM_DATA")
GPQA = all((data_folder() / name).is_file() for name in (VERDICTS, EPOCHS))
needs_gpqa = pytest.mark.skipif(not GPQA, reason="GPQA's verdicts are absent; see PODIUM_DATA")


def test_sources_are_listed_with_what_they_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no cell is folded
    assert main(["route", "--list"]) == 0
    said = capsys.readouterr().out
    assert "16 models x 1,055 questions" in said
    assert "texts: podium data fetch lcb-qwen" in said


def test_without_a_source_and_without_data_the_leaderboard_of_the_package_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["route", "--data", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "oracle-router 93.9 " in said
    assert "No question texts here, so no router can learn: `podium data fetch lcb-qwen`" in said


@needs_aime
def test_the_command_prints_a_table_keeps_it_and_keeps_what_was_learnt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, out = tmp_path / "knn.npz", tmp_path / "out"
    asked = ["route", "aime25", "--router", "router-knn", "--save", str(learned), "--out", str(out)]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "30 questions are too few for a decision." in said
    assert "router-knn" in said
    assert "Learnt from 30 questions" in said
    assert learned.is_file()
    assert main(asked) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(["nobody"], "There is no source 'nobody'", id="source"),
        pytest.param(["aime25", "--router", "x"], "There is no router 'x'", id="router"),
        pytest.param(["aime25", "--embedder", "x"], "There is no embedder 'x'", id="embedder"),
        pytest.param(["aime25", "--split", "date:0.3"], "have no date", id="dates"),
        pytest.param(
            ["aime25", "--split", "folds:99"],
            "30 different questions. Use 2 to 30 folds.",
            id="folds",
        ),
        pytest.param(["aime25", "--save", "x.npz"], "Select it with --router", id="save"),
    ],
)
@needs_aime
def test_what_cannot_be_judged_is_one_sentence(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["route", *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_one_worker_alone_is_nobody_to_choose_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.csv"
    path.write_text("sample_id,prompt,eval_name,m,m|total_cost\na,Say 1,x,1,0.1\n")
    assert main(["route", f"routerbench:{path}"]) == 2
    assert "has one worker, m; routing needs two." in capsys.readouterr().err


@needs_gpqa
def test_nothing_learnt_from_questions_that_must_not_be_published_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = tmp_path / "learned.npz"
    code = main(["route", "gpqa-verdicts", "--router", "router-knn", "--save", str(wanted)])
    assert code == 2
    assert "must not be published" in capsys.readouterr().err
    assert not wanted.exists()
