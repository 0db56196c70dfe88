"""What `make graders` prints, and that no grader beside podium can hold it up."""

from contextlib import closing

from tests.benchmarks.graders import GraderTable, JudgeProcess, against_them, faults
from tests.suites.battery import BatteryRow

RIGHT = BatteryRow(reply="\\boxed{7}", gold="7", right=True, why="a box")
WRONG = BatteryRow(reply="\\boxed{7} or 8", gold="7", right=False, why="two answers")


def test_a_table_says_first_how_many_wrong_replies_pass() -> None:
    table = GraderTable("podium", ((1, RIGHT, 1), (2, WRONG, 1), (3, WRONG, 0), (4, RIGHT, None)))
    assert str(table).split()[:5] == ["podium", "1", "1", "1", "1"]
    assert str(table).endswith("50.0 %  (1 raised or came to no end)")


def test_faults_are_the_rows_whose_verdict_podium_does_not_give() -> None:
    found = [*faults(GraderTable("podium", ((1, RIGHT, 1), (2, WRONG, 1))))]
    assert [line.split(" | ")[0] for line in found] == ["  line 2: passes"]


def test_rows_decided_against_another_are_those_on_which_podium_is_right_alone() -> None:
    ours = GraderTable("podium", ((1, RIGHT, 1), (2, WRONG, 0), (3, WRONG, 1)))
    theirs = GraderTable("math-verify", ((1, RIGHT, None), (2, WRONG, 1), (3, WRONG, 0)))
    found = [line.split(" | ")[0] for line in against_them(ours, theirs)]
    assert found == ["  line 1: no end, is right", "  line 2: passes, is wrong"]


def test_a_grader_that_says_nothing_is_killed_and_has_no_verdict() -> None:
    with closing(JudgeProcess("math-verify", patience_s=0.0)) as judge:
        assert [judge.judge("aime25", row) for row in (RIGHT, WRONG)] == [None, None]
