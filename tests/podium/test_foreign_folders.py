"""Beside a user's own `suites/`, `reports/` and `harness/`: what podium finds, and what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run.preflight import PACKAGES
from podium import NAMES
from podium.cli import main
from tests import ROOT

THEIRS = ("harness", "suites", "reports")

SCRIPT = """
import importlib.util, multiprocessing
import podium

def origin(name):
    return importlib.util.find_spec(name).origin

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(origin("suites"), *pool.map(origin, ["suites", "reports"]))
"""
CELLS = """
import podium
from harness.parallel import map_over_processes
from harness.workflow import Step
print(*(step.worker for step in map_over_processes(Step, ["sage", "abacus"], many=True)))
"""
UNGUARDED = """
import podium
from harness.parallel import map_over_processes
from harness.workflow import Step
list(map_over_processes(Step, ["sage", "abacus"], many=True))
"""
TOO_LATE = "import suites, podium"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that has packages with the names of ours."""
    folder = tmp_path_factory.mktemp("project")
    for name in THEIRS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("MINE = True\n")
    (folder / "script.py").write_text(SCRIPT)
    return folder


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that it looks into first, with podium further down its path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_script_and_the_processes_that_it_spawns_find_ours(beside: Path) -> None:
    done = python(beside, "script.py")
    ours = [str(ROOT / name / "__init__.py") for name in ("suites", "suites", "reports")]
    assert done.stdout.split() == ours, done.stderr


def test_a_notebook_and_our_own_processes_find_ours(beside: Path) -> None:
    done = python(beside, "-c", CELLS)  # its first place to look is the working directory, too
    assert done.stdout == "sage abacus\n", done.stderr


def test_a_script_whose_lines_a_process_would_run_again_is_told_what_it_lacks(
    beside: Path,
) -> None:
    (beside / "unguarded.py").write_text(UNGUARDED)
    done = python(beside, "unguarded.py")
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert said.startswith("harness.errors.UserError: A process that helps with reading ended")
    assert 'lacks `if __name__ == "__main__":`' in said


def test_where_another_package_is_loaded_both_files_are_named(beside: Path) -> None:
    done = python(beside, "-c", TOO_LATE)
    said = done.stderr.splitlines()[-1]
    theirs, ours = (root / "suites" / "__init__.py" for root in (beside, ROOT))
    assert done.returncode == 1
    assert said == (
        f"ImportError: Another package 'suites' is loaded already, {theirs}, and podium has one of "
        f"its own, {ours}: rename yours, or use podium in a process of its own."
    )


def test_doctor_says_so_beforehand(
    beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(beside)
    assert main(["doctor"]) == 0
    (said,) = [one for one in capsys.readouterr().out.splitlines() if " packages called " in one]
    assert said.startswith(f"- note: {beside} has packages called harness, suites, reports, as ")
    monkeypatch.chdir(ROOT)
    assert main(["doctor"]) == 0
    assert " packages called " not in capsys.readouterr().out


def test_the_guard_and_the_doctor_know_the_same_names() -> None:
    assert ("podium", *NAMES) == PACKAGES
