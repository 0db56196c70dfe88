"""Studies: what teaches, what picks the checkpoint, and where a checkpoint is judged."""

import json
from pathlib import Path

import pytest

from podium.conductor.checkpoint import read_study, write_study
from podium.conductor.training.training_rows import TrainingRow
from podium.conductor.verdict_reward import (
    ONE_STEP,
    VerdictDataset,
    refuse_taught,
    split_verdicts,
    study_info,
    verdict_pool,
    verdict_questions,
    verdict_splits,
)
from podium.harness.errors import UserError
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)


def matrix_of(
    asked: list[MatrixQuestion], workers: tuple[str, ...] = ("Ada (High)", "bo")
) -> Matrix:
    cells = [
        MatrixCell(one.id, name, float(at)) for one in asked for at, name in enumerate(workers)
    ]
    return assemble_matrix(MatrixSource("toy", "made up", publishable=False), asked, cells)


def split(matrix: Matrix) -> VerdictDataset:
    return split_verdicts(matrix, source="toy", suite="toy-exam", split="share:0.5", split_seed=3)


def texts(count: int, dated: bool = False) -> list[MatrixQuestion]:
    return [
        MatrixQuestion(
            f"q{n}", f"Word number {n} of  a\nlong tale", date=f"2025-01-{n + 1:02}" * dated
        )
        for n in range(count)
    ]


def study(count: int = 10, dated: bool = False) -> VerdictDataset:
    return split(matrix_of(texts(count, dated)))


def ids(matrix: Matrix) -> list[str]:
    return [asked.id for asked in matrix.questions]


def test_what_picks_the_checkpoint_teaches_nothing() -> None:
    found = study()
    assert len(found.validates.questions) == 2
    assert sorted(ids(found.teaches) + ids(found.validates)) == sorted(ids(matrix_of(texts(10))))
    assert ids(study().validates) == ids(found.validates)


def test_the_latest_questions_pick_the_checkpoint_where_all_have_a_date() -> None:
    assert ids(study(dated=True).validates) == ["q8", "q9"]


def test_equal_questions_stay_together() -> None:
    asked = [
        MatrixQuestion(f"q{n}", "The same tale." if n < 8 else f"Tale {n}.") for n in range(10)
    ]
    found = split(matrix_of(asked))
    same = {f"q{n}" for n in range(8)}
    assert not (same & set(ids(found.teaches)) and same & set(ids(found.validates)))


def test_rows_hold_ids_and_no_text() -> None:
    found = study()
    rows = [TrainingRow(found.name, one).as_columns() for one in ids(found.teaches)]
    assert "tale" not in json.dumps(rows)
    assert set(rows[0]) == {
        "suite", "question", "epoch", "workers", "first",
    }  # fmt: skip


def test_questions_have_no_targets() -> None:
    shown = verdict_questions(study().teaches)
    assert all(question.target is None for question in shown.values())


def test_questions_without_texts_teach_nobody() -> None:
    with pytest.raises(UserError, match="have no text, but"):
        split(matrix_of([MatrixQuestion("q1", ""), MatrixQuestion("q2", "Why?")]))


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(UserError, match="too few questions"):
        split(matrix_of([MatrixQuestion("q1", "Why?")]))


def test_a_trainer_sees_the_study_as_exams_that_grade_nothing() -> None:
    teaches, validates = verdict_splits(study())
    suite = teaches.suite
    assert suite.name == "verdicts:toy"
    assert suite.publishable is False
    assert "eval" not in suite.splits
    assert not set(teaches.questions) & set(validates.questions)
    with pytest.raises(UserError, match="Evaluate its conductor with `podium route`"):
        suite.load("eval")
    with pytest.raises(UserError, match="does not grade replies"):
        suite.grade(suite.load("train")[0], "42")


def test_workers_get_names_that_a_pool_allows_and_true_ones_as_cards() -> None:
    spec = verdict_pool(matrix_of(texts(1), ("O4-Mini (High)", "sonnet (x)")))
    assert spec.names == ("O4-Mini-High", "sonnet-x")
    assert [worker.card for worker in spec.workers] == ["O4-Mini (High)", "sonnet (x)"]
    assert spec.label == "recorded"
    assert verdict_pool(matrix_of(texts(1), ("a (b)", "a [b]"))).names == ("0-a-b", "1-a-b")


def test_a_checkpoint_says_which_study_it_is_of_without_any_text(tmp_path: Path) -> None:
    about = study_info(study(), ONE_STEP, seed=7)
    write_study(about, tmp_path)
    assert read_study(tmp_path) == about
    assert about.role == "study"
    assert "tale" not in (tmp_path / "study.json").read_text()


def test_a_checkpoint_is_not_judged_on_what_taught_it_or_picked_it() -> None:
    found, every = study(), matrix_of(texts(12))
    about = study_info(found, ONE_STEP, seed=0)
    refuse_taught(about, every.rows([10, 11]), Path("best"))
    for part in (found.teaches, found.validates):
        with pytest.raises(UserError, match=r"--split share:0\.5 --seed 3"):
            refuse_taught(about, part, Path("best"))


def test_a_checkpoint_is_not_judged_on_other_verdicts() -> None:
    about = study_info(study(), ONE_STEP, seed=0)
    other = matrix_of([MatrixQuestion("q99", "Why?")], ("bo", "cy"))
    with pytest.raises(UserError, match="trained on other verdicts"):
        refuse_taught(about, other, Path("best"))


@pytest.mark.parametrize("text", [None, "{}", "not JSON"])
def test_a_folder_that_is_no_study_is_refused(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "study.json").write_text(text)
    with pytest.raises(UserError, match=r"study\.json"):
        read_study(tmp_path)
