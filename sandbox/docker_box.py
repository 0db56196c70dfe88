"""The box made of Docker containers: no network, no writable disk, no expected outputs.

A container's first process is the supervisor (judge), as a root that can only switch users and
signal processes; each run has its own user. The judge's stdin is attached to this host process: if
this process ends, the stream closes, the judge exits, and the engine removes the container.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import docker
from docker.types import LogConfig, Ulimit

from podium.sandbox import cells
from podium.sandbox.box import IMAGE, SLACK_BYTES, SandboxError, SandboxFacts
from podium.sandbox.cells import CellBox, CellDied, CellKind, CellStuck, SandboxCell
from podium.sandbox.images import connect, explained, labels, remove_orphans

CAPABILITIES = ("SETUID", "SETGID", "KILL")
OWN_PROCESSES = 8  # for the judge (supervisor), beyond a program's limit
TMPFS = "size=64m,nr_inodes=16k,mode=1777,nosuid,nodev,noexec"
"""Mount options of a container's writable folders. `nr_inodes` limits the number of files, so
that the judge never has to remove a million empty files."""
HEADER_BYTES = 8
"""Bytes of Docker's header before each piece of output: stream, three zeros, length (4 bytes)."""


class DockerBox(CellBox):
    """A box of reused containers: each runs one program at a time, each run as its own user."""

    reuse = True

    def __init__(self, max_sandboxes: int | None = None, runtime: str | None = None) -> None:
        """Prepare a box on the engine at DOCKER_HOST, or the local one; start nothing yet.

        `runtime`: the engine's name of a container runtime, e.g. `runsc`; None: its default.
        """
        self.name = f"docker:{runtime}" if runtime else "docker"
        self._runtime = runtime
        self._client: docker.DockerClient | None = None
        self._connecting = threading.Lock()
        self._closed = False
        self._removals = ThreadPoolExecutor(4, "remove")
        super().__init__(max_sandboxes)

    def start(self, kind: CellKind) -> SandboxCell:
        """Create a container, attach to its stdin and stdout, and start the supervisor in it."""
        client = self._engine()
        api = cast(Any, client.api)  # docker-py's types are partial
        with explained():
            container = api.create_container(
                kind.image,
                ["python3", *cells.PYTHON_FLAGS],
                entrypoint=[],
                stdin_open=True,
                user="0:0",
                environment=cells.ENVIRONMENT,
                labels=labels(),
                working_dir="/tmp",
                host_config=api.create_host_config(**self._limits(kind)),
            )
            id = str(container["Id"])
            try:
                params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                stream = _DockerStream(
                    api.attach_socket(id, params=params), lambda: self._remove(id)
                )
            except BaseException:
                self._remove(id)
                raise
            try:
                api.start(id)
            except BaseException:
                stream.close()
                raise
        return cells.start_cell(stream, cells.boot_message("users"))

    def check(self) -> None:
        """Raise SandboxError if the Docker engine no longer answers."""
        with explained():
            self._engine().ping()

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        """Return image, Python version and packages; SandboxError if image or engine is missing."""
        with explained():
            docker_image = self._engine().images.get(image)
        return replace(super().facts(image), image=image, image_id=str(docker_image.id))

    def close(self) -> None:
        """Remove every container of this box, which cannot be used afterwards."""
        super().close()
        self._removals.shutdown()
        with self._connecting:
            self._closed = True
            if self._client:
                self._client.close()

    def _engine(self) -> docker.DockerClient:
        """Return a client of the Docker engine; the first call also removes orphaned containers.

        An error in this removal is ignored, e.g. if the engine is already removing a container.
        """
        with self._connecting:
            if self._closed:
                raise SandboxError("The sandbox has been closed.")
            if self._client is None:
                self._client = connect()
                with suppress(SandboxError):
                    remove_orphans(self._client)
            return self._client

    def _remove(self, id: str) -> None:
        """Remove a container in the background: a stuck engine must not delay a run."""
        try:
            self._removals.submit(self._remove_now, id)
        except RuntimeError:  # at interpreter exit threads accept no work
            self._remove_now(id)

    def _remove_now(self, id: str) -> None:
        with suppress(Exception):
            cast(Any, self._engine().api).remove_container(id, force=True, v=True)

    def _limits(self, kind: CellKind) -> dict[str, Any]:
        """Return a container's limits and isolation for Docker; its supervisor limits each run."""
        memory = kind.memory_bytes + SLACK_BYTES
        return {
            "auto_remove": True,
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {"/tmp": TMPFS, "/dev/shm": TMPFS},
            "cap_drop": ["ALL"],
            "cap_add": list(CAPABILITIES),
            "security_opt": ["no-new-privileges:true"],
            "ipc_mode": "private",
            "mem_limit": memory,
            "memswap_limit": memory,
            "pids_limit": kind.processes + OWN_PROCESSES,
            "nano_cpus": 1_000_000_000,
            "log_config": LogConfig(type="none"),
            "ulimits": [Ulimit(name="core", soft=0, hard=0)],
            "runtime": self._runtime,
        }


class _DockerStream:
    def __init__(self, attached: Any, remove: Callable[[], None]) -> None:
        self._attached, self._remove = attached, remove
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._raw = bytearray()
        self._said = b""

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        view = memoryview(data)
        try:
            while view:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
                view = view[self._socket.send(view[: cells.PIECE]) :]
        except TimeoutError:
            raise CellStuck("it accepts no more input") from None
        except OSError as error:
            raise CellDied(str(error)) from error

    def receive(self, deadline: float) -> bytes:
        while True:
            header = self._exactly(HEADER_BYTES, deadline)
            piece = self._exactly(int.from_bytes(header[4:], "big"), deadline)
            if header[0] == 1:
                return piece
            self._said = piece[-300:]

    def close(self) -> None:
        with suppress(OSError):  # the shutdown ends the wait of a thread in `receive`
            self._socket.shutdown(socket.SHUT_RDWR)
        for layer in (self._attached, getattr(self._attached, "_response", None), self._socket):
            if layer:
                with suppress(OSError, ValueError):  # closing one may close the next
                    layer.close()
        self._remove()

    def _exactly(self, size: int, deadline: float) -> bytes:
        while len(self._raw) < size:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left_s)[0]:
                raise CellStuck("it did not answer in time")
            try:
                piece = self._socket.recv(cells.PIECE)
            except OSError as error:
                raise CellDied(str(error)) from error
            if not piece:
                raise CellDied(self._said.decode(errors="replace").strip() or "it ended")
            self._raw += piece
        data = bytes(self._raw[:size])
        del self._raw[:size]
        return data
