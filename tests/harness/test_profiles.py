"""What single workers showed on train questions: counted from the calls that others learn from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.learning import Matrix, MatrixQuestion
from podium.harness.pool_config import read_pool
from podium.harness.profiles import measure_table, read_profile
from podium.harness.question_kinds import MOST_KINDS
from tests.harness.toy_run import toy_pool, toy_run

LEARNING: dict[str, Any] = {"systems": ("best-single",), "limit": 1, "selection_limit": 12}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    toy_pool(tmp_path / "run")
    toy_run(tmp_path / "run", **LEARNING)
    return tmp_path / "run"


def pool_of(log_dir: Path) -> str:
    return f"{log_dir}-pool.toml"


def test_a_profile_counts_what_each_worker_showed(log_dir: Path) -> None:
    profile = read_profile(log_dir, read_pool(pool_of(log_dir)), {"toy": "1-A"})
    shown = [(row.suite, row.worker, row.asked, row.right, row.no_answer) for row in profile.rows]
    assert shown == [("toy", "ada", 12, 12.0, 0), ("toy", "bob", 12, 0.0, 0)]
    assert {(row.usd, row.tokens_out) for row in profile.rows} == {(0.01, 40.0)}
    assert all(row.seconds is not None and row.seconds < 1 for row in profile.rows)
    assert not [*profile.notes]
    again = read_profile(log_dir, read_pool(pool_of(log_dir)), {})
    assert again.sha256 == profile.sha256


def test_few_questions_are_said_to_tell_little(tmp_path: Path) -> None:
    toy_pool(tmp_path / "run")
    toy_run(tmp_path / "run", **{**LEARNING, "selection_limit": 3})
    profile = read_profile(tmp_path / "run", read_pool(pool_of(tmp_path / "run")), {})
    (note,) = profile.notes
    assert note.startswith("3 questions separate good workers from useless ones")
    assert "ada on toy, bob on toy" in note


def test_a_profile_of_another_pool_an_older_grader_or_none_is_refused(
    log_dir: Path, tmp_path: Path
) -> None:
    spec = read_pool(pool_of(log_dir))
    with pytest.raises(UserError, match=r"older verdicts: toy 1-A \(now 2-A\). Run podium regrade"):
        read_profile(log_dir, spec, {"toy": "2-A"})
    with pytest.raises(UserError, match=r"measured on pool 'run-pool' .* not on 'rehearsal'"):
        read_profile(log_dir, read_pool("rehearsal"), {})
    toy_pool(tmp_path / "untaught")
    toy_run(tmp_path / "untaught", limit=1)
    with pytest.raises(UserError, match="no answers of single workers to train questions"):
        read_profile(tmp_path / "untaught", read_pool(pool_of(tmp_path / "untaught")), {})


def test_the_command_prints_it(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workers", "--pool", pool_of(log_dir), "--profile", str(log_dir)]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if " bob " in line).split()
    assert row[:4] == ["toy", "bob", "12", "0.0"]
    kinds = lines[lines.index("right % by kind of question:") + 2 :]
    assert kinds[0].split() == ["kind", "of", "question", "ada", "bob"]
    assert kinds[1].endswith("100.0 of 12  0.0 of 12")


def test_questions_whose_ids_name_no_suite_are_of_one_suite() -> None:
    texts = [f"What is {n} plus {n % 5} in this sum?" for n in range(24)]
    questions = tuple(MatrixQuestion(f"q{n}", text) for n, text in enumerate(texts))
    scores = np.tile([1.0, 0.0], (24, 1))
    unknown = np.full(scores.shape, np.nan)
    matrix = Matrix("sums", "made", "recorded", ("a", "b"), questions, scores, unknown, unknown)
    table = measure_table(matrix, seed=0)
    assert len(table.kinds) <= MOST_KINDS
    assert table.right.sum(axis=0).tolist() == [24, 0]
