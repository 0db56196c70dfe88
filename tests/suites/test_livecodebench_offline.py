"""The example suite of LiveCodeBench without its hidden tests, and the run file that asks it."""

import tomllib
from pathlib import Path

import pytest

from podium.cli.run_file import read_run_file
from podium.harness.run.catalogue import load_own
from podium.sandbox.cells import SubprocessBox
from tests import ROOT
from tests.suites.livecodebench_rows import needs_data

EXAMPLES = ROOT / "docs" / "examples"
LATER = "2024-10-26"
"""Date of the 60th problem: the run file asks no older one."""


@needs_data
def test_it_asks_problems_with_more_than_public_tests_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    suite = load_own(f"{EXAMPLES / 'livecodebench_offline.py'}@suite", "suite")
    questions = suite.load()
    dates = [question.metadata["contest_date"] for question in questions]
    assert dates == sorted(dates, reverse=True)
    assert suite.card.sizes == {"eval": len(questions)} == {"eval": 334}
    assert dates[59][:10] == LATER
    assert suite.name not in ("livecodebench", "livecodebench-v6")
    grade = suite.grade(questions[0], "```python\nprint('no')\n```", SubprocessBox())
    assert grade.value == 0.0


def test_its_run_file_names_what_there_is() -> None:
    path = EXAMPLES / "local.toml"
    content = path.read_bytes()
    values = read_run_file(content, path, {})
    asked = tomllib.loads(content.decode())
    assert values["suite_limits"] == asked["suite_limits"]
    assert any(name.endswith("livecodebench_offline.py@suite") for name in values["suites"])
