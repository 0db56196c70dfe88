"""What a run says on a disk that is full, and what an audit says once it was resumed with room.

    python tests/benchmarks/full_disk.py                  # a limit on the size of each file
    python tests/benchmarks/full_disk.py --tmpfs          # a real, small file system; needs root

Four sizes each, in KiB; the workers are rehearsal.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from harness.audit import audit
from harness.ledger.journal import FOLDER
from harness.ledger.runs import calls_of

FILES = (3, 5, 9, 14)
"""KiB that one file may have."""
DISKS = (24, 48, 80, 160)
"""KiB of a file system."""
ASKED = ("--suite", "practice-integer", "--system", "single", "--pool", "rehearsal", "--limit", "3")


@contextmanager
def small(folder: Path, size: int) -> Generator[None]:
    """Mount a file system of some KiB."""
    kib = f"size={size}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", kib, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def sat(log_dir: Path, size: int | None = None) -> tuple[int, str]:
    """Run; return the exit code and the last line that was said."""

    def limit() -> None:
        if size:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size << 10, resource.RLIM_INFINITY))

    command = [sys.executable, "-m", "podium", "run", *ASKED, "--log-dir", str(log_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    lines = done.stderr.strip().splitlines() or [""]
    return done.returncode, "TRACEBACK" if "Traceback" in done.stderr else lines[-1]


def show(log_dir: Path, size: int, said: tuple[int, str]) -> None:
    """Resume with room, and print a line."""
    code, words = said
    again, _ = sat(log_dir)
    failing = [one.invariant for one in audit(log_dir).verdicts if one.status == "fail"]
    found = [call for path in log_dir.glob(f"{FOLDER}/*/*.jsonl") for call in calls_of(path)]
    unread = sum(call.outcome is None for call in found)
    words = words.replace(str(log_dir), "RUN")
    print(f"{size:>4} KiB: exit {code}, {words!r}")
    print(
        f"          resumed: exit {again}, {unread} calls without an outcome, audit fails: ", end=""
    )
    print(", ".join(failing) or "nothing")


def main() -> None:
    """Try all sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tmpfs", action="store_true")
    tmpfs = parser.parse_args().tmpfs
    for size in DISKS if tmpfs else FILES:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            if not tmpfs:
                show(place / "run", size, sat(place / "run", size))
                continue
            with small(place, size):
                said = sat(place / "run")
                more = "remount,size=64m"
                subprocess.run(["mount", "-o", more, folder], check=True)
                show(place / "run", size, said)


if __name__ == "__main__":
    main()
