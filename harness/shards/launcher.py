"""How the processes of shards are started: a protocol of three methods, and processes at home."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from signal import SIG_UNBLOCK, SIGINT, default_int_handler, pthread_sigmask, signal
from threading import Thread
from typing import Protocol

LOST = 75
"""Exit status of a shard that is to be started again (EX_TEMPFAIL): its lease was lost."""


class Launcher(Protocol):
    """Starts processes of shards somewhere; each goes on where its directory's last one ended."""

    def launch(self, folder: Path) -> None:
        """Start a shard as soon as there is room."""
        ...

    def ended(self) -> Mapping[Path, int | None]:
        """Return which shards have ended since the last call, by exit status; None was lost."""
        ...

    def close(self) -> None:
        """End what still runs, so that it can be resumed, and wait for it."""
        ...


class LocalLauncher:
    """Processes of this machine, each in a session of its own, that end when this one does."""

    def __init__(self, most: int) -> None:
        """Take how many run at once."""
        self._most = most
        self._waiting = deque[Path]()
        self._running: dict[Path, subprocess.Popen[bytes]] = {}

    def launch(self, folder: Path) -> None:
        """Start a shard as soon as fewer than `most` run."""
        self._waiting.append(folder)
        self._fill()

    def ended(self) -> Mapping[Path, int | None]:
        """Return which shards have ended since the last call, by exit status."""
        found = {folder: process.poll() for folder, process in self._running.items()}
        over = {folder: status for folder, status in found.items() if status is not None}
        for folder in over:
            self._running.pop(folder).communicate()  # closes its pipe
        self._fill()
        return {folder: None if status < 0 else status for folder, status in over.items()}

    def close(self) -> None:
        """Break off all processes, and wait for them."""
        self._waiting.clear()
        for process in self._running.values():
            process.send_signal(SIGINT)
        for process in self._running.values():
            process.wait()
        self._running.clear()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._most:
            folder = self._waiting.popleft()
            # A pipe that nobody writes to: it ends with us, however we end.
            command = [sys.executable, "-m", "podium", "shard", str(folder), "--attached"]
            with Path(f"{folder}.log").open("ab") as said:
                self._running[folder] = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )


def end_with_input() -> None:
    """Break this process off, as Ctrl-C does, when its standard input ends: with its launcher."""
    signal(SIGINT, default_int_handler)  # which a shell has its background jobs ignore
    pthread_sigmask(SIG_UNBLOCK, {SIGINT})  # which an actor of Ray has its children wait with

    def watch() -> None:
        os.read(0, 1)  # not a reader of Python's, which would be locked at the end
        os.kill(os.getpid(), SIGINT)

    Thread(target=watch, daemon=True).start()
