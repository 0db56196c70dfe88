"""Logs of single workers become a matrix: scores, list prices and texts, as the logs have them."""

from pathlib import Path

import numpy as np
import pytest

from podium.harness.errors import UserError
from podium.harness.learning import matrix_of_logs
from tests.harness.runs import Crew, Exam, failing_on, sit, steps
from tests.reports.small_reports import right_up_to

EXAM = Exam(size=4)


def test_single_workers_become_columns_with_prices_tokens_and_texts(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", steps("sage"), Crew(sage=right_up_to(3)), exam=EXAM)
    sit(tmp_path, "single:clerk", steps("clerk"), Crew(clerk=failing_on("Say 2")), exam=EXAM)
    sit(tmp_path, "moa-lite", steps("sage", "clerk"), exam=EXAM)
    matrix = matrix_of_logs([tmp_path])
    assert set(matrix.workers) == {"sage", "clerk"}
    sage, clerk = (matrix.workers.index(name) for name in ("sage", "clerk"))
    assert [asked.id for asked in matrix.questions] == [f"numbers/q{n}" for n in range(1, 5)]
    assert matrix.questions[0].text == "Say 1"
    assert matrix.questions[0].kind == "integer"
    assert matrix.scores[:, sage].tolist() == [1, 1, 1, 0]
    assert np.isnan(matrix.scores[1, clerk])  # its provider was down: no verdict, no 0
    assert matrix.label == "live"
    assert (matrix.usd[:, sage] > matrix.usd[:, clerk])[[0, 2, 3]].all()
    assert (matrix.tokens_out[:, sage] > 0).all()


def test_epochs_are_draws_and_a_choice_on_train_declares_its_split(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", exam=EXAM, epochs=2)
    assert matrix_of_logs([tmp_path]).draws == 2
    assert {one.split for one in matrix_of_logs([tmp_path]).questions} == {"eval"}
    chosen = tmp_path / "selection"
    sit(chosen, "single:sage", exam=EXAM, purpose="selection", split="train")
    assert {one.split for one in matrix_of_logs([chosen]).questions} == {"train"}


def test_texts_that_must_not_be_published_stay_in_their_log(tmp_path: Path) -> None:
    secret = Exam(size=2, publishable=False)
    sit(tmp_path, "single:sage", exam=secret, publishable=False)
    matrix = matrix_of_logs([tmp_path])
    assert {asked.text for asked in matrix.questions} == {""}
    assert not matrix.publishable
    assert matrix.notes == ("The texts of numbers stay in their log and are not given to routers.",)


def test_logs_without_a_single_worker_and_logs_that_do_not_go_together_are_refused(
    tmp_path: Path,
) -> None:
    sit(tmp_path / "a", "moa-lite", steps("sage", "clerk"), exam=Exam(size=1))
    with pytest.raises(UserError, match="No worker answered alone"):
        matrix_of_logs([tmp_path / "a"])
    sit(tmp_path / "b", "single:sage", exam=Exam(size=1))
    sit(tmp_path / "c", "single:sage", exam=Exam(size=1), label="rehearsal")
    with pytest.raises(UserError, match="live and rehearsal"):
        matrix_of_logs([tmp_path / "b", tmp_path / "c"])
    sit(tmp_path / "d", "single:sage", exam=Exam(size=1, version="2-A"), suite_version="2-A")
    with pytest.raises(UserError, match="different versions of numbers"):
        matrix_of_logs([tmp_path / "b", tmp_path / "d"])
