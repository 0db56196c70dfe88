"""The box made of Docker containers: no network, nothing to write but memory, nothing to gain.

A container's first process is the judge, as a root that may switch users and signal them and
nothing else; every run has a user of its own. The judge's standard input is attached to us alone:
when this process ends, however it ends, that stream closes, the judge with it, and the engine
removes the container.
"""

import select
import socket
import time
from contextlib import suppress
from typing import Any, cast

import docker
from docker.types import LogConfig, Ulimit

from sandbox.box import IMAGE, BoxFacts
from sandbox.cell_box import CellBox
from sandbox.cells import (
    ENVIRONMENT,
    PIECE,
    PYTHON_FLAGS,
    Cell,
    CellDied,
    CellStuck,
    started,
)
from sandbox.engine import connect, explained, labels, remove_orphans
from sandbox.pool import Kind

CAPABILITIES = ("SETUID", "SETGID", "KILL")
SLACK_BYTES = 192 << 20
"""Memory beyond a program's limit: the judge, its zygote, and what is read and written."""

OWN_PROCESSES = 8
"""The judge, its zygote and what sweeps, beyond a program's processes."""

TMPFS = "size=64m,mode=1777,nosuid,nodev,noexec"

HEADER_BYTES = 8
"""Before each piece of an attached stream: which stream, three zeros, four bytes of length."""


class DockerBox(CellBox):
    """Containers that are kept warm; one program at a time in each, one user per run."""

    reuse = True

    def __init__(self, max_sandboxes: int | None = None, runtime: str | None = None) -> None:
        """Use the engine that DOCKER_HOST names, or the local one; nothing is started yet.

        `runtime` names another runtime of the engine, such as gVisor's `runsc`.
        """
        self._runtime = runtime
        self._client: docker.DockerClient | None = None
        super().__init__(max_sandboxes)

    @property
    def name(self) -> str:
        """`docker`, or `docker:RUNTIME`."""
        return f"docker:{self._runtime}" if self._runtime else "docker"

    def start(self, kind: Kind) -> Cell:
        """Create a container, attach to it and start its judge."""
        client = self._engine()
        api = cast(Any, client.api)  # its types are partial
        with explained():
            id = str(api.create_container(kind.image, **self._container(kind))["Id"])
            try:
                wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                attached = api.attach_socket(id, params=wanted)
                stream = DockerStream(client, id, attached)
                api.start(id)
            except BaseException:
                with suppress(Exception):
                    api.remove_container(id, force=True)
                raise
        return started(stream, "users")

    def check(self) -> None:
        """Raise SandboxError when the engine no longer answers."""
        with explained():
            self._engine().ping()

    def facts(self, image: str = IMAGE) -> BoxFacts:
        """Say what programs would run on; SandboxError names what is missing and its fix."""
        with explained():
            found = self._engine().images.get(image)
        inside = super().facts(image)
        return BoxFacts(self.name, inside.python, image, str(found.id), inside.packages)

    def close(self) -> None:
        """Remove every container."""
        super().close()
        if self._client:
            self._client.close()
            self._client = None

    def _engine(self) -> docker.DockerClient:
        """Return the client; the first call also removes what killed processes left behind."""
        if self._client is None:
            self._client = connect()
            remove_orphans(self._client)
        return self._client

    def _container(self, kind: Kind) -> dict[str, Any]:
        """Return how the container is created."""
        return {
            "command": ["python3", *PYTHON_FLAGS],
            "entrypoint": [],
            "stdin_open": True,
            "user": "0:0",
            "environment": ENVIRONMENT,
            "labels": labels(),
            "working_dir": "/tmp",
            "network_disabled": True,
            "host_config": cast(Any, self._engine().api).create_host_config(**self._limits(kind)),
        }

    def _limits(self, kind: Kind) -> dict[str, Any]:
        """Return what the engine enforces; the judge enforces the rest, per run."""
        memory = kind.memory_bytes + SLACK_BYTES
        return {
            "auto_remove": True,
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {"/tmp": TMPFS},
            "shm_size": 64 << 20,
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


class DockerStream:
    """The stream of a judge that is the first process of a container."""

    def __init__(self, client: docker.DockerClient, id: str, attached: Any) -> None:
        """Talk over docker-py's attached stream to the container with this id."""
        self._client, self._id, self._attached = client, id, attached
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._raw = bytearray()
        self._said = b""

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        """Write all, waiting while the engine takes no more."""
        view = memoryview(data)
        try:
            while view:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
                view = view[self._socket.send(view[:PIECE]) :]
        except TimeoutError:
            raise CellStuck("it takes no more input") from None
        except OSError as error:
            raise CellDied(str(error)) from error

    def receive(self, deadline: float) -> bytes:
        """Return the next piece of what the judge writes, its standard error left out."""
        while True:
            header = self._exactly(HEADER_BYTES, deadline)
            piece = self._exactly(int.from_bytes(header[4:], "big"), deadline)
            if header[0] == 1:
                return piece
            self._said = piece[-300:]

    def close(self) -> None:
        """Remove the container and close each layer of its stream."""
        for layer in (self._attached, getattr(self._attached, "_response", None), self._socket):
            with suppress(Exception):
                layer.close()
        with suppress(Exception):
            self._client.api.remove_container(self._id, force=True, v=True)

    def _exactly(self, size: int, deadline: float) -> bytes:
        while len(self._raw) < size:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left_s)[0]:
                raise CellStuck("it did not answer in time")
            try:
                more = self._socket.recv(PIECE)
            except OSError as error:
                raise CellDied(str(error)) from error
            if not more:
                raise CellDied(self._said.decode(errors="replace").strip() or "it ended")
            self._raw += more
        data = bytes(self._raw[:size])
        del self._raw[:size]
        return data
