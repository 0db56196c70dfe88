"""Starts the processes of shards: the protocol `Launcher`, and a launcher of local processes."""

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
"""Exit status of a shard's process that lost its lease of dollars (EX_TEMPFAIL): restart it."""


class Launcher(Protocol):
    """Starts processes of shards; a shard's new process continues the work of its last process."""

    def launch(self, folder: Path) -> None:
        """Start a shard's process as soon as the maximum number of processes allows."""
        ...

    def ended(self) -> Mapping[Path, int | None]:
        """Return shard -> exit status for processes ended since the last call; None if lost."""
        ...

    def close(self) -> None:
        """End the running processes, so that their shards can be resumed, and wait for them."""
        ...


class LocalLauncher:
    """Runs shards as local processes, each in its own session, which end when this process ends."""

    def __init__(self, limit: int) -> None:
        """Take the maximum number of parallel processes."""
        self._most = limit
        self._waiting = deque[Path]()
        self._running: dict[Path, subprocess.Popen[bytes]] = {}

    def launch(self, folder: Path) -> None:
        """Start a shard's process as soon as fewer than the maximum number of processes run."""
        self._waiting.append(folder)
        self._fill()

    def ended(self) -> Mapping[Path, int | None]:
        """Return shard -> exit status of processes ended since the last call; None: killed."""
        statuses = {folder: process.poll() for folder, process in self._running.items()}
        over = {folder: status for folder, status in statuses.items() if status is not None}
        for folder in over:
            self._running.pop(folder).communicate()  # closes its pipe
        self._fill()
        return {folder: None if status < 0 else status for folder, status in over.items()}

    def close(self) -> None:
        """Interrupt all shards' processes, and wait for them."""
        self._waiting.clear()
        for process in self._running.values():
            process.send_signal(SIGINT)
        for process in self._running.values():
            process.wait()
        self._running.clear()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._most:
            folder = self._waiting.popleft()
            # Nothing is written to the pipe: it closes when this process ends in any way.
            command = [sys.executable, "-m", "podium", "shard", str(folder), "--attached"]
            with Path(f"{folder}.log").open("ab") as log:
                self._running[folder] = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )


def end_with_input() -> None:
    """When the launcher ends, and so closes this process's stdin, interrupt this process."""
    signal(SIGINT, default_int_handler)  # a shell's background jobs ignore SIGINT
    pthread_sigmask(SIG_UNBLOCK, {SIGINT})  # children of a Ray actor start with it blocked

    def watch() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock would be held at exit
        os.kill(os.getpid(), SIGINT)

    Thread(target=watch, daemon=True).start()
