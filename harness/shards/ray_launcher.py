"""Runs shards as tasks of a Ray cluster, one core each, and their lease server in a Ray actor."""

import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.shards.lease_server import ALL

AUTO = "auto"
NO_CLUSTER = "no Ray cluster answers at --address {}: `ray start --head` starts one."
GONE = (
    "the Ray cluster at {} no longer answers: start one, and run the same command with its "
    "--address."
)
LOOK_S, GONE_S = 2.0, 20.0
"""How often the cluster's head node is checked, and how long it may be unreachable, in seconds."""


def refuse_no_ray(address: str | None) -> None:
    """Raise UserError if no Ray cluster can be joined; Ray itself tries for minutes, then exits."""
    if find_spec("ray") is None:
        raise UserError("--launcher ray needs Ray: pip install '.[ray]'.")
    if address in (None, AUTO):
        return
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        raise UserError(
            f"--address of a Ray cluster must be HOST:PORT or auto, not {address!r:.80}."
        )
    try:
        socket.create_connection((host, int(port)), 5).close()
    except (OSError, OverflowError):
        raise UserError(NO_CLUSTER.format(address)) from None


@contextmanager
def ray_cluster(address: str | None) -> Generator[Any]:
    """Join the Ray cluster at an address in the block; `auto` (or None): this machine's cluster."""
    refuse_no_ray(address)
    ray: Any = import_module("ray")
    target = address or AUTO
    try:
        ray.init(address=target, log_to_driver=False, logging_level="ERROR", namespace="podium")
    except (ConnectionError, ValueError, RuntimeError, OSError):
        raise UserError(NO_CLUSTER.format(target)) from None
    try:
        yield ray
    finally:
        ray.shutdown()


class RayLauncher:
    """Runs shards as Ray tasks, without Ray's retries; all nodes must see the run's directory."""

    def __init__(self, ray: Any) -> None:
        """Take the `ray` module, connected to a cluster."""
        self._ray, self._address = ray, ray.get_runtime_context().gcs_address
        self._ask: Any = ray.remote(num_cpus=1, max_retries=0)(_remote())
        self._running: dict[Any, Path] = {}
        self._seen = self._looked = time.monotonic()

    def launch(self, folder: Path) -> None:
        """Submit a shard's process to the cluster, as a task."""
        command = ["-m", "podium", "shard", str(folder.absolute()), "--attached"]
        self._running[self._ask.remote(command, f"{folder.absolute()}.log")] = folder

    def ended(self) -> Mapping[Path, int | None]:
        """Return shard -> exit status for tasks ended since the last call; None: a node is lost."""
        self._look()
        tasks = [*self._running]
        over: list[Any] = []
        if tasks:
            over, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        statuses = {self._running[task]: self._status(task) for task in over}
        for task in over:
            del self._running[task]
        return statuses

    def _look(self) -> None:
        """Raise UserError if the cluster's head node is lost; Ray would end this process later."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        if _answers(self._address):
            self._seen = now
        elif now - self._seen > GONE_S:
            self._running.clear()  # they cannot be cancelled without a head node
            raise UserError(GONE.format(self._address))

    def close(self) -> None:
        """Cancel the tasks of all shards, and wait for them."""
        for task in self._running:
            self._ray.cancel(task)
        if tasks := [*self._running]:
            self._ray.wait(tasks, num_returns=len(tasks), timeout=60)
        self._running.clear()

    def _status(self, task: Any) -> int | None:
        try:
            status = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            with Path(f"{self._running[task]}.log").open("a") as log:
                log.write(
                    f"node {error.ip} cannot write here, and every node must: {error.cause}\n"
                )
            return 2
        except self._ray.exceptions.RayError:
            return None
        return None if status < 0 else status


class RayLeaseServer:
    """Keeps a run's lease server in a detached Ray actor, which restarts on any node if lost."""

    def __init__(self, ray: Any, log_dir: Path, words: Sequence[str]) -> None:
        """Take the connected `ray` module, run directory, and Python's arguments for the server."""
        self._ray, self._words = ray, [*words]
        self._name = f"leases-{sha256(bytes(log_dir.absolute())).hexdigest()[:16]}"
        self._actor: Any = None
        self._held: Any = None
        self._begun: threading.Thread | None = None

    def tend(self) -> None:
        """Make the actor run the lease server; if its node is lost, Ray restarts it elsewhere."""
        if self._begun and self._begun.is_alive():
            return
        if self._held is not None and not self._ray.wait([self._held], timeout=0)[0]:
            return
        # In a thread: a head node lost now never answers, and the launcher must detect that.
        self._begun = threading.Thread(target=self._begin, daemon=True)
        self._begun.start()

    def _begin(self) -> None:
        limits = {"num_cpus": 0, "max_restarts": -1}
        options = {"name": self._name, "lifetime": "detached", "get_if_exists": True}
        self._actor = self._ray.remote(**limits)(_keeper()).options(**options).remote()
        self._held = self._actor.hold.remote(self._words, ALL)

    def close(self) -> None:
        """End the actor, and the lease server with it."""
        if self._begun:
            self._begun.join(5)
        if self._actor is not None:
            self._ray.kill(self._actor, no_restart=True)


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        return False
    return True


def _remote() -> Callable[[Sequence[str], str], int]:
    """Return the function that runs a shard on a node; nested, so that Ray sends its code."""

    def ask(words: Sequence[str], log: str) -> int:
        import subprocess
        import sys
        from pathlib import Path

        # Nothing is written to the pipe: the shard ends with its node, and with its task.
        with (
            Path(log).open("ab") as output,
            subprocess.Popen(
                [sys.executable, *words], stdin=subprocess.PIPE, stdout=output, stderr=output
            ) as process,
        ):
            try:
                return process.wait()
            except BaseException:
                process.communicate()
                raise

    return ask


def _keeper() -> type:
    """Return the class of the Ray actor that runs the lease server; nested: Ray sends its code."""

    class Keeper:
        def hold(self, words: Sequence[str], every: str) -> None:
            import subprocess
            import sys
            import time
            from importlib import import_module

            ray = import_module("ray")
            here = ray.util.get_node_ip_address()  # Kubernetes pods cannot resolve each other
            command = [sys.executable, *(here if word == every else word for word in words)]
            # Nothing is written to the pipe: the server ends with this actor. If another command
            # has taken over the run, the server ends by itself, and this actor with it.
            while subprocess.Popen(command, stdin=subprocess.PIPE).wait():
                time.sleep(0.5)
            ray.actor.exit_actor()

    return Keeper
