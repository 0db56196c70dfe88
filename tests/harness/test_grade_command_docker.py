"""Programs graded in containers, from the command line to the table: default box, facts, image."""

import json
from pathlib import Path

import pytest

from podium.cli import main
from podium.reports.report import write_report
from podium.sandbox import IMAGE
from podium.suites.practice.programs import SUITE
from tests.harness.graded_files import grade, values, write_replies
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.gold import gold_reply

pytestmark = pytest.mark.docker


def test_programs_are_graded_in_docker_unless_another_box_is_named(tmp_path: Path) -> None:
    needs(DOCKER)
    replies = [(one.id, gold_reply(one)) for one in SUITE.load("eval")[:3]]
    write_replies(tmp_path / "replies.jsonl", [*replies, (replies[0][0], "```python\n1/0\n```")])
    assert grade(tmp_path, SUITE.name, "--max-sandboxes", "2") == 0
    assert values(tmp_path) == [1.0, 1.0, 1.0, 0.0]
    beside = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert (beside["box"], beside["box_facts"]["image"]) == (DOCKER, IMAGE)
    assert beside["box_facts"]["image_id"].startswith("sha256:")


def test_a_run_in_docker_says_so_in_its_table_and_stays_there_when_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs(DOCKER)
    words = ["run", "--suite", SUITE.name, "--limit", "2", "--display", "none"]
    words += ["--log-dir", str(tmp_path / "run")]
    assert main([*words, "--system", "single:sage", "--box", DOCKER]) == 0
    assert main([*words, "--system", "single:swift"]) == 0
    made = write_report([tmp_path / "run"], tmp_path / "report")
    assert {row.box for row in made.rows} == {DOCKER}
    assert {row.box_image for row in made.rows} == {IMAGE}
    assert f"box: docker (Python {made.rows[0].box_python}, {IMAGE} " in made.text
    capsys.readouterr()
    assert main([*words, "--system", "single:sage", "--box", "subprocess"]) == 2
    assert "its box is 'docker', not 'subprocess'" in capsys.readouterr().err
