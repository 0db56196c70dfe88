"""A hook of another package listens to Inspect: no private exam begins, and others do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.slow

PLUGIN = """
from inspect_ai.hooks import Hooks, SampleEnd, hooks

@hooks(name="tracker", description="Sends what it hears to a server.")
class Tracker(Hooks):
    def enabled(self):
        {enabled}

    async def on_sample_end(self, data: SampleEnd) -> None:
        print("HEARD", data.sample.input)
"""
RUN = """
import sys
import plugin
from podium.cli import main
sys.exit(main(sys.argv[1:]))
"""
PRIVATE, PUBLIC = "gpqa-diamond", "practice-integer"


def run(
    folder: Path, suite: str, enabled: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run an exam in a process in which another package has registered a hook."""
    (folder / "plugin.py").write_text(PLUGIN.format(enabled=enabled))
    words = ["run", "--suite", suite, "--system", "single:abacus", "--limit", "1"]
    more = ["--log-dir", str(folder / "run"), "--time-scale", "0"]
    return subprocess.run(
        [sys.executable, "-c", RUN, *words, *more],
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            "PYTHONPATH": f"{folder}:{ROOT}",
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PODIUM_DATA": str(folder),
            "HF_HUB_OFFLINE": "1",
            **environment,
        },
        check=False,
    )


@pytest.mark.parametrize("enabled", ["return True", "raise RuntimeError"], ids=["on", "unsure"])
def test_a_private_exam_does_not_begin_while_another_package_listens(
    tmp_path: Path, enabled: str
) -> None:
    done = run(tmp_path, PRIVATE, enabled)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "gpqa-diamond must not be published" in line
    assert "'tracker'" in line or "plugin/tracker" in line
    assert "uninstall 'plugin'" in line
    assert not (tmp_path / "run").exists()


def test_the_older_way_of_listening_is_named_too(tmp_path: Path) -> None:
    done = run(tmp_path, PRIVATE, "return False", INSPECT_TELEMETRY="plugin.send")
    assert done.returncode == 2
    assert "unset INSPECT_TELEMETRY" in done.stderr


def test_a_hook_that_is_switched_off_hears_nothing_and_stops_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, PRIVATE, "return False")
    assert "the hook" not in done.stderr
    assert "HEARD" not in done.stdout


def test_other_exams_run_with_hooks(tmp_path: Path) -> None:
    done = run(tmp_path, PUBLIC, "return True")
    assert done.returncode == 0, done.stderr
    assert "HEARD" in done.stdout
