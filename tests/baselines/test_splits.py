"""Who learns from what: no question teaches and is judged, and each is judged once."""

import numpy as np
import pytest

from podium.baselines.route_eval import split_matrix
from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.harness.errors import UserError
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from podium.suites.data import data_folder


def matrix_of(*asked: MatrixQuestion) -> Matrix:
    return assemble_matrix(
        MatrixSource("m", "made up"), asked, [MatrixCell(one.id, "atlas", 1.0) for one in asked]
    )


def days(*dates: str) -> Matrix:
    return matrix_of(
        *(MatrixQuestion(f"q{n}", f"Say {n}", date=day) for n, day in enumerate(dates))
    )


def ids(matrix: Matrix, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[str]:
    return sorted(matrix.questions[int(at)].id for at in rows)


def test_the_last_share_by_date_is_judged_and_a_day_is_ordered_by_id() -> None:
    matrix = days("2025-03-01", "2025-01-01", "2025-02-01", "2025-02-01")
    (fold,) = split_matrix(matrix, "date:0.5", 0).folds
    assert ids(matrix, fold.test) == ["q0", "q3"]
    assert ids(matrix, fold.train) == ["q1", "q2"]


def test_the_last_thirty_percent_of_the_leaderboard_are_its_317_questions() -> None:
    try:
        matrix = read_matrix("lcb-leaderboard", SourceRequest(data_folder()))
    except UserError as error:
        pytest.skip(str(error))
    (fold,) = split_matrix(matrix, "date:0.3", 0).folds
    train, test = matrix.rows(fold.train), matrix.rows(fold.test)
    chosen = int(train.mean_scores().argmax())
    assert len(test.questions) == 317
    assert matrix.workers[chosen] == "O4-Mini (High)"
    assert round(100 * float(test.scores[:, chosen].mean()), 1) == 73.5
    assert round(100 * float(test.scores.max(axis=1).mean()), 1) == 90.5


def test_each_question_is_judged_once_by_folds_that_did_not_see_it() -> None:
    matrix = matrix_of(*(MatrixQuestion(f"q{n}", f"Say {n}") for n in range(23)))
    split = split_matrix(matrix, "folds:5", 7)
    judged = np.sort(np.concatenate([fold.test for fold in split.folds]))
    assert judged.tolist() == list(range(23))
    assert {len(fold.test) for fold in split.folds} == {4, 5}
    assert not [fold for fold in split.folds if set(fold.test) & set(fold.train)]
    again = split_matrix(matrix, "folds:5", 7)
    assert [fold.test.tolist() for fold in again.folds] == [f.test.tolist() for f in split.folds]


def test_a_group_stays_in_one_fold() -> None:
    matrix = matrix_of(*(MatrixQuestion(f"q{n}", f"Say {n}", group=f"g{n % 4}") for n in range(16)))
    for fold in split_matrix(matrix, "folds:4:group", 0).folds:
        groups = {matrix.questions[int(at)].group for at in fold.test}
        assert not groups & {matrix.questions[int(at)].group for at in fold.train}


def test_questions_that_differ_in_form_only_stay_in_one_fold() -> None:
    twins = [MatrixQuestion(f"t{n}", text) for n, text in enumerate(["Say 1!", "say  1"])]
    matrix = matrix_of(*twins, *(MatrixQuestion(f"q{n}", f"Say {n + 5}") for n in range(8)))
    for fold in split_matrix(matrix, "folds:3", 0).folds:
        assert len({0, 1} & set(fold.test.tolist())) != 1


DECLARED = (
    MatrixQuestion("a", "Say 1", split="train"),
    MatrixQuestion("b", "Say 2", split="train"),
    MatrixQuestion("c", "SAY  1", split="eval"),
)


def test_a_question_that_would_teach_and_be_judged_is_refused_by_name() -> None:
    with pytest.raises(
        UserError, match="1 question would be both train and test questions, first a, which equals"
    ):
        split_matrix(matrix_of(*DECLARED), "declared", 0)


def test_shared_questions_teach_nobody_when_that_is_asked_for() -> None:
    split = split_matrix(matrix_of(*DECLARED), "declared", 0, drop_shared=True)
    (fold,) = split.folds
    assert (fold.train.tolist(), fold.test.tolist()) == ([1], [2])
    assert "1 train question left out: also judged" in split.notes[0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        pytest.param("date:2", "must be between 0 and 1", id="share"),
        pytest.param("date:x", "must be between 0 and 1", id="no-number"),
        pytest.param("date:0.3", "2 questions have no date", id="undated"),
        pytest.param("folds:x", "has no number of folds. Write e.g. folds:5", id="no-count"),
        pytest.param("folds:1", "1 folds cannot be made of 2", id="one-fold"),
        pytest.param("folds:9", r"made of 2 different questions\. Use 2 folds", id="too-many"),
        pytest.param("folds:2:subject", "There is no split", id="unit"),
        pytest.param("declared", "declares no train and eval questions", id="undeclared"),
        pytest.param("random", "There is no split 'random'", id="unknown"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(how: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        split_matrix(matrix_of(MatrixQuestion("a", "Say 1"), MatrixQuestion("b", "Say 2")), how, 0)


def test_a_share_is_drawn_once_and_equal_questions_stay_together() -> None:
    matrix = matrix_of(*(MatrixQuestion(f"q{n}", f"Say {n // 2}") for n in range(20)))
    (fold,) = split_matrix(matrix, "share:0.3", 5).folds
    assert len(fold.test) == 6
    assert not set(fold.test) & set(fold.train)
    assert {at // 2 for at in fold.test.tolist()}.isdisjoint(at // 2 for at in fold.train.tolist())
    (again,) = split_matrix(matrix, "share:0.3", 5).folds
    assert again.test.tolist() == fold.test.tolist()
    with pytest.raises(UserError, match="cannot be split"):
        split_matrix(
            matrix_of(MatrixQuestion("q", "Say"), MatrixQuestion("r", "Say")), "share:0.3", 5
        )
