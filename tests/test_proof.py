"""The proof that tests of the boxes ran: skips are told, and fail where boxes are required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

HOOKS = "from tests.proof import pytest_runtest_makereport, pytest_terminal_summary\n"
TESTS = """
import pytest

@pytest.mark.docker
def test_one(): pass

@pytest.mark.docker
def test_two(): pytest.skip("no engine answers")

@pytest.mark.parametrize("box", ["docker:runsc", "bwrap", "subprocess"])
def test_each(box): pass

def test_of_no_box(): pytest.skip("no data")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = docker: needs an engine\n")
    return tmp_path


def session(folder: Path, **environ: str) -> tuple[int, str]:
    """Run the tests in the folder; return the exit code and what was printed."""
    inherited = {name: value for name, value in os.environ.items() if name[:4] != "PODI"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no"],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environ,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_machine_without_an_engine_skips_and_says_so(folder: Path) -> None:
    code, said = session(folder)
    assert code == 0
    assert "docker: 1 passed, 1 skipped\n" in said
    assert "docker:runsc: 1 passed\nbwrap: 1 passed\n" in said


def test_a_skipped_test_of_a_box_fails_where_boxes_are_required(folder: Path) -> None:
    code, said = session(folder, PODIUM_REQUIRE_DOCKER="1")
    assert code == 1
    assert "docker: 1 passed, 1 failed\n" in said
    assert "Skipped, though PODIUM_REQUIRE_DOCKER is set" in said
    assert "no engine answers" in said
