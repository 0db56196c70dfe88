"""Beside a user's own `suites/` and `reports/`: both are found, each by its own name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium.cli import main
from tests import ROOT

THEIRS = ("harness", "suites", "reports", "baselines", "conductor", "sandbox")

SCRIPT = """
import multiprocessing
import podium
import suites
from suites.mine import MINE

def homes(_):
    import podium.suites
    import reports
    return podium.suites.__file__, reports.__file__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(MINE, *pool.map(homes, [0])[0])
"""
CELLS = """
import podium
from podium.harness.parallel import map_over_processes
from podium.harness.workflow import Step
print(*(step.worker for step in map_over_processes(Step, ["sage", "abacus"], many=True)))
"""
UNGUARDED = """
import podium
from podium.harness.parallel import map_over_processes
from podium.harness.workflow import Step
list(map_over_processes(Step, ["sage", "abacus"], many=True))
"""
TASKS = """
import suites, harness  # a user's own, loaded first
from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import registry_lookup
ensure_entry_points()
from podium.suites.aime25 import aime25
import sys
rooms = {name for name in sys.modules if name in ("baselines", "conductor", "sandbox", "reports")}
print(registry_lookup("task", "suites/aime25") is aime25, rooms)
"""


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that has packages with the names of our rooms."""
    folder = tmp_path_factory.mktemp("project")
    for name in THEIRS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    (folder / "suites" / "mine.py").write_text("MINE = 'mine'\n")
    (folder / "script.py").write_text(SCRIPT)
    return folder


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that it looks into first, with podium further down its path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_script_and_the_processes_that_it_spawns_find_ours_and_theirs(beside: Path) -> None:
    done = python(beside, "script.py")
    ours = str(ROOT / "podium" / "suites" / "__init__.py")
    theirs = str(beside / "reports" / "__init__.py")
    assert done.stdout.split() == ["mine", ours, theirs], done.stderr


def test_a_notebook_and_our_own_processes_find_ours(beside: Path) -> None:
    done = python(beside, "-c", CELLS)  # its first place to look is the working directory, too
    assert done.stdout == "sage abacus\n", done.stderr


def test_inspect_finds_our_tasks_by_their_old_names(beside: Path) -> None:
    done = python(beside, "-c", TASKS)
    assert done.stdout == "True set()\n", done.stderr
    assert "Unexpected exception" not in done.stderr


def test_a_script_whose_lines_a_process_would_run_again_is_told_what_it_lacks(
    beside: Path,
) -> None:
    (beside / "unguarded.py").write_text(UNGUARDED)
    done = python(beside, "unguarded.py")
    # Python's own tracker of semaphores may warn after our last line, as it is told of the end.
    raised = [line for line in done.stderr.splitlines() if "errors.UserError" in line]
    start = "podium.harness.errors.UserError: A helper process for reading files ended"
    assert done.returncode == 1
    assert len(raised) == 1, done.stderr
    assert raised[0].startswith(start)
    assert 'lacks `if __name__ == "__main__":`' in raised[0]


def test_doctor_names_another_podium_and_no_room(
    beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(beside)
    assert main(["doctor"]) == 0
    assert " shadows the podium package" not in capsys.readouterr().out
    (beside / "podium.py").touch()
    assert main(["doctor"]) == 0
    assert (
        f"{beside / 'podium.py'} shadows the podium package. Rename it." in capsys.readouterr().out
    )
    (beside / "podium.py").unlink()


@pytest.mark.slow
def test_no_module_of_ours_is_loaded_under_two_names() -> None:
    loads = "import podium._registry, podium.cli.commands, sys; print(*sys.modules)"
    done = python(ROOT, "-c", loads)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert "podium" in tops, done.stderr
    assert tops & {*THEIRS} == set()
