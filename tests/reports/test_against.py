"""Two runs compared: each system with itself, and what else differs between the two."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.manifest import write_manifest
from podium.reports.against import (
    FILE,
    RunDifference,
    difference_of_runs,
    difference_text,
    write_against,
)
from tests.harness.runs import BOOK, Crew, Exam, failing_on, sit, steps
from tests.reports.small_reports import EXAM, right_up_to


def compared(tmp_path: Path) -> RunDifference:
    return difference_of_runs([tmp_path / "new"], tmp_path / "old")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where two runs are: `pair` answers 5 of 6 in the new one, 3 of 6 in the old one."""
    home = tmp_path_factory.mktemp("runs")
    sit(home / "old", "pair", crew=Crew(sage=right_up_to(3)), exam=EXAM)
    sit(home / "old", "gone", steps("clerk"), exam=EXAM)
    new: dict[str, Any] = {"pool_sha256": "2" * 64, "args": {"k": 2}}
    sit(home / "new", "pair", steps("sage", "sage"), Crew(sage=right_up_to(5)), exam=EXAM, **new)
    sit(home / "new", "come", steps("clerk"), exam=EXAM)
    return home


def test_a_system_is_held_against_itself_question_by_question(runs: Path) -> None:
    (one,) = compared(runs).systems
    assert (one.system, one.difference.n_paired) == ("pair", 6)
    assert (one.difference.n_better, one.difference.n_worse, one.tied) == (2, 0, 4)
    assert one.difference.paired_diff == pytest.approx(2 / 6)
    assert [(q.question, q.here, q.against) for q in one.changed] == [
        ("q4", 1.0, 0.0),
        ("q5", 1.0, 0.0),
    ]


def test_what_changed_between_the_runs_is_named_with_both_values(runs: Path) -> None:
    found = {one.name: (one.here, one.against) for one in compared(runs).changes}
    assert found == {
        "pool": ("test-pool (22222222)", "test-pool (11111111)"),
        "arguments": ('{"k": 2}', "{}"),
    }


def test_the_change_of_cost_is_paired(runs: Path) -> None:
    (one,) = compared(runs).systems
    assert one.cost is not None
    assert one.cost.n == 6
    assert one.cost.here > one.cost.against
    assert one.cost.change == one.cost.here - one.cost.against
    assert isinstance(one.cost.change, Decimal)


def test_systems_of_one_run_alone_are_named(runs: Path) -> None:
    found = compared(runs)
    assert (found.only_here, found.only_against) == (("numbers come",), ("numbers gone",))
    assert "only in new: numbers come" in difference_text(found)


def test_without_a_price_in_both_no_change_of_cost_is_told(tmp_path: Path) -> None:
    sit(tmp_path / "old", "pair")
    sit(tmp_path / "new", "pair", prices={**BOOK.as_json(), "usd_per_mtok": {}})
    (one,) = compared(tmp_path).systems
    assert one.cost is None
    assert difference_text(compared(tmp_path)).count(" -") >= 3


def test_another_version_of_a_suite_is_compared_and_said(tmp_path: Path) -> None:
    sit(tmp_path / "old", "pair")
    sit(tmp_path / "new", "pair", exam=Exam(version="2-A", data_revision="generated-2"))
    text = difference_text(compared(tmp_path))
    assert "suite version: 2-A here, 1-A there" in text
    assert "data revision: generated-2 here, generated-1 there" in text


def test_questions_that_one_run_alone_graded_are_counted_and_left_out(tmp_path: Path) -> None:
    sit(tmp_path / "old", "pair", crew=Crew(sage=failing_on("Say 2")))
    sit(tmp_path / "new", "pair")
    (one,) = compared(tmp_path).systems
    assert (one.difference.n_paired, one.unpaired) == (3, 1)
    assert "1 question graded in one run only" in difference_text(compared(tmp_path))


def test_versions_are_those_of_the_manifests(tmp_path: Path) -> None:
    for name in ("old", "new"):
        sit(tmp_path / name, "pair")
    write_manifest(tmp_path / "new")
    found = {one.name: (one.here, one.against) for one in compared(tmp_path).changes}
    assert found.keys() == {"podium version", "Inspect version"}
    assert found["podium version"][1] == "not stated"


def test_two_runs_of_one_system_are_told_apart_by_their_arguments(tmp_path: Path) -> None:
    for name, right in (("old", 1), ("new", 2)):
        for k in (3, 5):
            crew = Crew(sage=right_up_to(right if k == 3 else 4))
            sit(tmp_path / name / str(k), "vote", crew=crew, args={"k": k})
    found = compared(tmp_path)
    told = {one.args: one.difference.n_better for one in found.systems}
    assert told == {'{"k": 3}': 1, '{"k": 5}': 0}
    assert found.changes == ()


def test_at_most_twenty_questions_are_named_and_the_file_has_all(tmp_path: Path) -> None:
    exam = Exam(size=25)
    sit(tmp_path / "old", "pair", crew=Crew(sage=right_up_to(0)), exam=exam)
    sit(tmp_path / "new", "pair", exam=exam)
    text, (path,) = write_against([tmp_path / "new"], tmp_path / "old", tmp_path / "out")
    assert path.name == FILE
    assert text.count(" won,") + text.count(" won\n") == 20
    assert "and 5 more in against.json" in text
    (one,) = json.loads(path.read_text())["systems"]
    assert len(one["changed"]) == 25


def test_what_is_no_two_runs_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is on both sides of --against"):
        difference_of_runs([runs / "new"], runs / "new")
    with pytest.raises(UserError, match="is on both sides of --against"):
        difference_of_runs([runs], runs / "new")
    sit(tmp_path / "other", "pair", exam=Exam(name="letters"))
    said = "No suite is in both runs: numbers here, letters there. Name runs of the same suite."
    with pytest.raises(UserError, match=said):
        difference_of_runs([runs / "new"], tmp_path / "other")
    sit(tmp_path / "strange", "stranger")
    with pytest.raises(
        UserError, match=r"No system was graded on the same question in both .*\. Name runs"
    ):
        difference_of_runs([runs / "new"], tmp_path / "strange")
    assert list(tmp_path.rglob(FILE)) == []


def test_the_command_writes_one_file_and_takes_no_other_option(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", str(runs / "new"), "--against", str(runs / "old"), "--out", str(tmp_path)]
    assert main(words) == 0
    assert "numbers pair: q4 won, q5 won" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert main([*words, "--vs", "pair"]) == 2
    assert "--against accepts only --out, --site and --gate" in capsys.readouterr().err


def test_a_foreign_file_is_not_overwritten(runs: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(UserError, match=r"against\.json was not written by podium"):
        write_against([runs / "new"], runs / "old", tmp_path)
