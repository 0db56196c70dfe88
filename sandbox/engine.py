"""The container engine: reaching it, saying in one sentence why it fails, removing orphans.

Everybody who calls the engine hands its exceptions to `explain`: what is wrong with the engine is
always a `SandboxError` that names the fix, never a verdict on a program.
"""

import os
import re
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container

from sandbox.box import SandboxError
from sandbox.owners import LABEL, is_orphan, labels

__all__ = ["answers", "connect", "explain", "explained", "labels", "orphans", "remove_orphans"]

NEEDED = (24, 0, 6)
"""The oldest Docker Engine we work with, and the oldest that Inspect accepts."""
TIMEOUT_S = 60
"""How long one call to the engine may take before the engine counts as down."""

_DISK = "The disk of the container engine is full: free some space (`docker system df` shows it)."
_REASONS = (
    (r"no space left on device", _DISK),
    (
        r"unknown (?:or invalid )?runtime(?: name| specified)?:? *([\w.-]+)",
        "The container engine has no runtime {0}: install it and register it in the engine's "
        "daemon.json (sandbox/debian-engine.sh does), or choose another box.",
    ),
    (
        r"permission denied while trying to connect|PermissionError",
        "You may not use the container engine at {where}: join the group that owns its socket "
        "(`sudo usermod -aG docker $USER`, then log in again) or run as root.",
    ),
    (
        r"invalid bind address|TLS configuration|paramiko|ValueError|Invalid argument|npipe",
        "DOCKER_HOST={where} is no address that podium can use: unset it, or set it to one such as "
        "unix:///var/run/docker.sock.",
    ),
    (
        r"timed out",
        "The container engine at {where} does not answer in time: see whether `docker version` "
        "does, and start the engine anew if not.",
    ),
    (
        r"FileNotFoundError|ConnectionRefused|Connection refused|NameResolution|not known",
        "No container engine answers at {where}: start it (Debian: sandbox/debian-engine.sh), set "
        "DOCKER_HOST where it listens elsewhere, or choose another box.",
    ),
    (
        r"Connection aborted|ConnectionReset|BrokenPipe|RemoteDisconnected|Max retries",
        "The container engine at {where} broke off: see whether `docker version` answers, and "
        "start the engine anew if not.",
    ),
)


def connect(*, timeout_s: int = TIMEOUT_S) -> docker.DockerClient:
    """Return a client of the engine that DOCKER_HOST names, or of the local one.

    Raises SandboxError, one sentence with the fix, when none answers or it is too old.
    """
    with explained():
        _knock(timeout_s)
        client = docker.from_env(timeout=timeout_s)
    try:
        with explained():
            version = str(client.version()["Version"])
        if _numbers(version) < NEEDED:
            raise SandboxError(
                f"The container engine at {_where()} is version {version}; podium needs Docker "
                f"Engine {'.'.join(map(str, NEEDED))} or newer."
            )
    except SandboxError:
        client.close()
        raise
    return client


def answers(*, timeout_s: int = 5) -> bool:
    """Say whether an engine that we can use answers: at once, or after the time where one hangs."""
    try:
        connect(timeout_s=timeout_s).close()
    except SandboxError:
        return False
    return True


def containers(client: docker.DockerClient) -> list[Container]:
    """Return every container of any podium on this engine, running or not."""
    with explained():
        return client.containers.list(
            all=True, filters={"label": LABEL}, ignore_removed=True, sparse=True
        )


def orphans(client: docker.DockerClient) -> list[Container]:
    """Return the containers whose owner is gone; never those of a living podium."""
    return [
        container
        for container in containers(client)
        if is_orphan(container.attrs["Labels"], running=container.attrs["State"] in _IN_USE)
    ]


def remove_orphans(client: docker.DockerClient) -> int:
    """Remove what killed podiums left, and return how many containers that were."""
    return sum(remove(container) for container in orphans(client))


def remove(container: Container) -> bool:
    """Kill and remove a container; False when somebody else did so first."""
    try:
        with explained():
            container.remove(force=True, v=True)
    except SandboxError as error:
        if _gone(error.__cause__):
            return False
        raise
    return True


@contextmanager
def explained() -> Generator[None]:
    """Turn what the engine raises inside the block into a SandboxError."""
    try:
        yield
    except (DockerException, OSError, ValueError) as error:  # requests' exceptions are OSErrors
        raise explain(error) from error


def explain(error: BaseException) -> SandboxError:
    """Return the one sentence that says what is wrong with the engine and how it is mended."""
    if isinstance(error, SandboxError):
        return error
    chain = list(_chain(error))
    image = next((found for found in chain if isinstance(found, ImageNotFound)), None)
    if image is not None:
        return SandboxError(_missing(str(image.explanation)))
    text = "; ".join(f"{type(link).__name__}: {link}" for link in chain)
    for pattern, sentence in _REASONS:
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            return SandboxError(sentence.format(*found.groups(), where=_where()))
    if isinstance(error, APIError):
        return SandboxError(f"The container engine refused: {error.explanation}.")
    return SandboxError(f"The container engine failed: {error}.")


_IN_USE = {"created", "running", "paused", "restarting"}


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version such as `26.1.5+dfsg1` starts with."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _knock(timeout_s: int) -> None:
    """Raise OSError where nobody listens; docker-py would leave its own socket open then."""
    scheme, _, path = _where().partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(timeout_s)
            door.connect(path)


def _where() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it was made from: causes, and exceptions among its arguments."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        link = waiting.pop(0)
        if isinstance(link, BaseException) and link not in seen:
            seen.append(link)
            yield link
            waiting += [*link.args, getattr(link, "reason", None), link.__cause__, link.__context__]


def _missing(explanation: str) -> str:
    """Say that an image is missing, given the engine's own words."""
    found = re.search(r"no such image: ([^\s:]+)", explanation, re.IGNORECASE)
    name = found[1] if found else "that was asked for"
    which = " --image bigcodebench" if "bigcodebench" in name else ""
    return f"The image {name} is missing: run `podium sandbox build{which}` first."


def _gone(error: BaseException | None) -> bool:
    """Say whether a removal failed because somebody else removes the container, or has."""
    return isinstance(error, NotFound) or (
        isinstance(error, APIError) and "already in progress" in str(error.explanation)
    )
