"""Grading again from logs: nobody is asked, the old log stays, reports take the new verdicts."""

from collections import Counter
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.model_judge import older_graders, regrade_dir
from tests.harness.ledger.ledger_rows import rows_in
from tests.harness.toy_run import Toy, calls, toy_pool, toy_run


class Strict(Toy):
    """The toy after its scorer was mended: nothing is right any more."""

    def __init__(self) -> None:
        super().__init__(version="2-A")

    def grade(self, question, reply, box=None):  # noqa: ANN001, ANN201 - as in Toy
        grade = super().grade(question, reply, box)
        return type(grade)(0.0, grade.extracted)


class Unlucky(Toy):
    """The toy on a full disk: it cannot grade the questions whose number is even."""

    full = True

    def grade(self, question, reply, box=None):  # noqa: ANN001, ANN201 - as in Toy
        if self.full and int(question.id.rpartition("-")[2]) % 2 == 0:
            raise OSError("the disk is full")
        return super().grade(question, reply, box)


def verdicts(log_dir: Path) -> list[float | None]:
    """Return the verdicts a report would show."""
    ((system_run,), _) = load_runs([log_dir])
    return [attempt.value for attempt in system_run.attempts]


def test_what_could_not_be_graded_is_unscored_with_its_reason_and_no_zero(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, Unlucky()).finished
    ((system_run,), _) = load_runs([log_dir])
    assert Counter(attempt.value for attempt in system_run.attempts) == {1.0: 6, None: 6}
    reasons = {attempt.reason for attempt in system_run.attempts if attempt.value is None}
    assert any("the disk is full" in reason for reason in reasons)


def test_regrading_fills_the_gaps_asks_nobody_and_keeps_the_old_log(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    before = {path.name: path.read_bytes() for path in log_dir.glob("*.eval")}
    (result,) = regrade_dir(log_dir, {"toy": Toy()}, None)
    assert (result.graded, result.still_unscored, result.changed) == (6, 0, 6)
    assert verdicts(log_dir) == [1.0] * 12
    assert len(calls(log_dir)) == 12
    after = {path.name: path.read_bytes() for path in log_dir.glob("*.eval")}
    assert {name: after[name] for name in before} == before
    assert regrade_dir(log_dir, {"toy": Toy()}, None) == []


def test_a_resumed_run_grades_what_was_left_and_asks_nobody(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    assert toy_run(log_dir).finished
    assert verdicts(log_dir) == [1.0] * 12
    assert len(calls(log_dir)) == 12


def test_spend_is_not_counted_twice_after_a_regrade(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    regrade_dir(log_dir, {"toy": Toy()}, None)
    ((system_run,), _) = load_runs([log_dir])
    assert len(rows_in(*system_run.paths)) == 12


def test_a_new_scorer_version_grades_whole_logs_only(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    with pytest.raises(UserError, match=r"graded by version 1-A of toy, which is now 2-A.*--all"):
        regrade_dir(log_dir, {"toy": Strict()}, None)
    (result,) = regrade_dir(log_dir, {"toy": Strict()}, None, everything=True)
    assert result.graded == 12
    assert verdicts(log_dir) == [0.0] * 12
    ((system_run,), _) = load_runs([log_dir])
    assert system_run.facts.suite_version == "2-A"


def test_logs_that_an_older_grader_graded_are_known_until_they_are_graded_again(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir)
    assert older_graders(log_dir, {"toy": Toy()}) == older_graders(log_dir, {}) == ""
    assert older_graders(log_dir, {"toy": Strict()}) == "toy 1-A (now 2-A)"
    regrade_dir(log_dir, {"toy": Strict()}, None, everything=True)
    assert older_graders(log_dir, {"toy": Strict()}) == ""


def test_a_log_of_an_unknown_suite_is_refused(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    with pytest.raises(UserError, match="suite 'toy', which this podium lacks"):
        regrade_dir(log_dir, {}, None)
