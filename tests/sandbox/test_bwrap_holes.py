"""What bubblewrap leaves open, shown open first and then closed; a box's end, and its absence."""

import os
import platform
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from podium.sandbox import Program, SandboxError
from podium.sandbox.bwrap_box import (
    BwrapBox,
    bwrap_argv,
    filter_file,
    host_python,
    switches_users,
    why_unusable,
)
from tests import ROOT
from tests.sandbox.test_bwrap import SOMEBODY, python_for_somebody

REASON = why_unusable()
needs_bwrap = pytest.mark.skipif(bool(REASON), reason=str(REASON))
KEYCTL = 250 if platform.machine() == "x86_64" else 219

HOLES = f"""
import ctypes, os
if os.fork():  # what a program can do to process 1 needs a process of its own
    os.wait()
    os._exit(0)
libc = ctypes.CDLL(None)
print("keyring", libc.syscall({KEYCTL}, 0, -3, 1) >= 0)
print("limits of process 1", libc.prlimit(1, 7, 0, 0) == 0)
print("user namespace", libc.unshare(0x10000000) == 0)
"""
OPEN, CLOSED = {"True"}, {"False"}


def probe(*, users: bool, without: tuple[str, ...]) -> dict[str, str]:
    """Run HOLES in a box that lacks some of its arguments."""
    ordinary = os.geteuid() == 0 and not users
    start = SOMEBODY if ordinary else ()
    python = python_for_somebody() if ordinary else host_python()
    seccomp_fd = filter_file(users=users)
    try:
        argv = bwrap_argv(seccomp_fd, python, users=users)
        if "--seccomp" in without:
            at = argv.index("--seccomp")
            del argv[at : at + 2]
        if "--disable-userns" in without:
            argv.remove("--disable-userns")
        ended = subprocess.run(
            [*start, *argv, "-I", "-S", "-c", HOLES],
            pass_fds=[seccomp_fd],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        os.close(seccomp_fd)
    return dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())


@needs_bwrap
def test_without_filter_and_flag_an_ordinary_users_box_is_open_and_each_closes_its_part() -> None:
    bare = probe(users=False, without=("--seccomp", "--disable-userns"))
    assert set(bare.values()) == OPEN
    assert probe(users=False, without=("--seccomp",))["user namespace"] == "False"
    assert set(probe(users=False, without=("--disable-userns",)).values()) == CLOSED
    assert set(probe(users=False, without=()).values()) == CLOSED


@needs_bwrap
@pytest.mark.skipif(not switches_users(), reason="these tests were not started by root")
def test_without_the_filter_roots_box_is_open() -> None:
    assert set(probe(users=True, without=("--seccomp",)).values()) == OPEN
    assert set(probe(users=True, without=()).values()) == CLOSED


OWNER = """
import sys, threading
from podium.sandbox import Program
from podium.sandbox.bwrap_box import BwrapBox
box = BwrapBox()
for outcome in box.run(Program("print(1)"), [b""]):
    print("ready", flush=True)
    threading.Event().wait()
"""


@needs_bwrap
def test_the_cells_of_a_podium_that_is_killed_end_with_it() -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"ready\n"
        cells = descendants(owner.pid)
        assert len(cells) >= 3  # bubblewrap, the judge, the zygote
        owner.kill()
    deadline = time.monotonic() + 5
    while any(alive(pid) for pid in cells) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in cells if alive(pid)]


@needs_bwrap
def test_a_program_whose_cell_is_killed_from_outside_runs_again() -> None:
    others = set(descendants(os.getpid()))
    with closing(BwrapBox()) as box:
        runs = box.run(Program("import time\ntime.sleep(0.5)\nprint(input())"), [b"a\n", b"b\n"])
        assert next(runs).stdout == b"a\n"
        ours = set(descendants(os.getpid())) - others
        os.kill(min(ours), 9)  # the first that was started is the one in use
        assert next(runs).stdout == b"b\n"
        runs.close()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "needs bubblewrap (Debian: apt-get install bubblewrap)."),
        (
            "echo bubblewrap 0.6.2",
            "needs bubblewrap 0.8 or newer; this is 'bubblewrap 0.6.2'. Upgrade it.",
        ),
        (
            "[ $1 = --version ] && echo bubblewrap 0.8.0 || { echo bwrap: Denied >&2; exit 1; }",
            "does not start: bwrap: Denied. Allow user namespaces or choose another box.",
        ),
    ],
    ids=["not installed", "too old", "namespaces forbidden"],
)
def test_where_it_cannot_be_used_one_sentence_says_why(
    script: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with closing(BwrapBox()) as box, pytest.raises(SandboxError) as caught:
        box.facts()
    assert str(caught.value) == f"The bwrap sandbox {reason}"


def descendants(pid: int) -> list[int]:
    """Return the living descendants of a process that bubblewrap started, it included."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, new = [], [one for one in children.get(pid, []) if name(one) == "bwrap"]
    while new:
        found += new
        new = [child for one in new for child in children.get(one, [])]
    return found


def name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
