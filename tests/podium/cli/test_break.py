"""Ctrl-C while podium starts: one line and exit code 130, never a traceback.

`python -m tests.benchmarks.fuzz starts` breaks at thirty moments of both ways to start.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podium.cli import BROKEN_OFF, STOPPED, ended_at_once
from tests import ROOT

MODULE = [sys.executable, "-m", "podium"]
RUN = ["run", "--suite", "practice-integer", "--system", "single:abacus", "--limit", "1"]


def broken(start: list[str], folder: Path, after_s: float) -> tuple[int, str]:
    """Start a run, break it, and return its exit code, as a shell tells it, and what it said.

    Where the break came inside `exec` of a text (a data class being made, say), CPython ends the
    process by the signal itself once all is in order: a shell tells 130 of that, too.
    """
    words = [*start, *RUN, "--log-dir", str(folder / "run"), "--time-scale", "0"]
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    code = process.returncode
    return (128 - code if code < 0 else code), said


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.3, 0.6, 1.0, 1.5], ids=str)
def test_a_break_while_podium_starts_is_one_line(tmp_path: Path, after_s: float) -> None:
    code, said = broken(MODULE, tmp_path, after_s)
    assert code in (0, 1, BROKEN_OFF), said  # 0 and 1: it was faster, or stopped in good order
    assert code != BROKEN_OFF or "podium: stopped" in said  # a signal alone says nothing
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


def test_a_break_in_the_middle_of_an_import_ends_the_process_at_once() -> None:
    code = (
        "import os, signal, sys\n"
        "from podium.cli import ended_at_once\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with ended_at_once():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except BaseException:\n"
        "        print('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (BROKEN_OFF, b"", STOPPED)


def test_what_a_break_does_is_as_before_once_a_command_begins() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ended_at_once():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_a_program_that_ignores_breaks_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_at_once():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
