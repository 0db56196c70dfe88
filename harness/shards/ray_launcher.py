"""Shards as tasks of a Ray cluster, of one core each: Ray places them, and buys none again.

What a node loads is a function of the standard library alone, sent as it stands; keys of providers
are in the environments of nodes, never in what is sent.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.errors import UserError

AUTO = "auto"
NO_CLUSTER = "no Ray cluster answers at --address {}: `ray start --head` begins one."


def refuse_no_ray(address: str | None) -> None:
    """Raise UserError where no cluster can be joined; Ray itself tries for minutes, then exits."""
    if find_spec("ray") is None:
        raise UserError("--launcher ray needs Ray: pip install 'podium[ray]'.")
    if address in (None, AUTO):
        return
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        raise UserError(f"--address of a Ray cluster is HOST:PORT or auto, not {address!r:.80}.")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except (OSError, OverflowError):
        raise UserError(NO_CLUSTER.format(address)) from None


class RayLauncher:
    """Tasks of a cluster whose nodes all see the run's directory; Ray's own retries are off."""

    def __init__(self, address: str | None) -> None:
        """Join the cluster at an address, `auto` for the one that this machine is of."""
        refuse_no_ray(address)
        self._ray: Any = import_module("ray")
        wanted = address or AUTO
        try:
            self._ray.init(
                address=wanted, log_to_driver=False, logging_level="ERROR", namespace="podium"
            )
        except (ConnectionError, ValueError, RuntimeError, OSError):
            raise UserError(NO_CLUSTER.format(wanted)) from None
        self._ask: Any = self._ray.remote(num_cpus=1, max_retries=0)(_remote())
        self._running: dict[Any, Path] = {}

    def launch(self, folder: Path) -> None:
        """Hand a shard to the cluster."""
        command = ["-m", "podium", "shard", str(folder.absolute()), "--attached"]
        self._running[self._ask.remote(command)] = folder

    def ended(self) -> Mapping[Path, int | None]:
        """Return which shards have ended since the last call; None for one lost with its node."""
        tasks = [*self._running]
        over: list[Any] = []
        if tasks:
            over, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        return {self._running.pop(task): self._status(task) for task in over}

    def close(self) -> None:
        """Break off all tasks, wait for them, and leave the cluster."""
        for task in self._running:
            self._ray.cancel(task)
        if tasks := [*self._running]:
            self._ray.wait(tasks, num_returns=len(tasks), timeout=60)
        self._running.clear()
        self._ray.shutdown()

    def _status(self, task: Any) -> int | None:
        try:
            status = self._ray.get(task)
        except self._ray.exceptions.RayError:
            return None
        return None if status < 0 else status


def _remote() -> Callable[[Sequence[str]], int]:
    """Return what a node runs: a function of a function is sent as it stands, not by its name."""

    def ask(words: Sequence[str]) -> int:
        import subprocess
        import sys

        # A pipe that nobody writes to: the shard ends with its node, and with its task.
        with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE) as process:
            try:
                return process.wait()
            except BaseException:
                process.communicate()
                raise

    return ask
