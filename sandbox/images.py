"""Connect to the container engine; build, list and remove podium's images (`podium sandbox`)."""

import json
import os
import re
import socket
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.images import Image

from podium.sandbox.box import IMAGE, SandboxError
from podium.sandbox.bwrap_box import MEMORY_NOTE, why_unusable
from podium.sandbox.packages import (
    HERE,
    REQUIREMENTS,
    WheelTarget,
    fetch_host_packages,
    fetch_wheels,
    host_packages,
    pinned_packages,
    pins_digest,
)

CONTAINER_LABEL = "podium.sandbox"
"""Docker label of podium's containers, not of its images: containers inherit an image's labels."""
OWNER = "podium.sandbox.owner"
"""Docker label with the host and process that own a container: orphans can be removed."""


def labels() -> dict[str, str]:
    """Return the Docker labels of every container started by this process."""
    return {CONTAINER_LABEL: "1", OWNER: f"{_place()} {_process(os.getpid())}"}


def is_orphan(container_labels: dict[str, str], *, running: bool) -> bool:
    """Return whether a container is unused because its owner process has ended.

    If the owner is on another host, podium cannot see its end: then a stopped container is unused.
    """
    place, _, owner = container_labels.get(OWNER, "").rpartition(" ")
    if place != _place():
        return not running
    return owner != _process(int(owner.partition(":")[0]))


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _process(pid: int) -> str:
    """Return `pid:start` of a living process (with start time: pids are reused) or `pid:gone`."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return f"{pid}:gone"
    fields = stat.rpartition(")")[2].split()  # after the name, which may contain anything
    return f"{pid}:gone" if fields[0] in "ZX" else f"{pid}:{fields[19]}"


NEEDED = (24, 0, 6)  # oldest supported Docker Engine, and the oldest that Inspect accepts
TIMEOUT_S = 60  # timeout of one call to the engine
CHECK = "Check the engine with `docker info`."

_REASONS = (
    (r"no space left on device",
     "The disk of the container engine is full. Free some space (`docker system df` shows use)."),
    (r"unknown (?:or invalid )?runtime(?: name| specified)?:? *([\w.-]+)",
     "The container engine has no runtime {0}. Install it and register it in the engine's "
     "daemon.json (sandbox/debian-engine.sh does both), or choose another box."),
    (r"permission denied while trying to connect|PermissionError",
     "You may not use the container engine at {where}. Join the group that owns its socket "
     "(`sudo usermod -aG docker $USER`, then log in again) or run as root."),
    (r"invalid bind address|TLS configuration|paramiko|ValueError|Invalid argument|npipe",
     "DOCKER_HOST={where} is not an address that podium can use. Unset it, or set an address "
     "such as unix:///var/run/docker.sock."),
    (r"timed out",
     "The container engine at {where} does not answer in time. Restart it if `docker version` "
     "does not answer either."),
    (r"FileNotFoundError|ConnectionRefused|Connection refused|NameResolution|not known",
     "No container engine answers at {where}. Start it (Debian: sandbox/debian-engine.sh), set "
     "DOCKER_HOST if it listens elsewhere, or choose another box."),
    (r"Connection aborted|ConnectionReset|BrokenPipe|RemoteDisconnected|Max retries",
     "The container engine at {where} closed the connection. Restart it if `docker version` "
     "does not answer."),
)  # fmt: skip


def connect(*, timeout_s: int = TIMEOUT_S) -> docker.DockerClient:
    """Return a client of the engine at DOCKER_HOST, or the local one; SandboxError if unusable."""
    with explained():
        scheme, _, path = _address().partition("://")
        if scheme == "unix":  # docker-py leaks its socket if no engine listens
            with socket.socket(socket.AF_UNIX) as door:
                door.settimeout(timeout_s)
                door.connect(path)
        client = docker.from_env(timeout=timeout_s)
    try:
        with explained():
            version = str(client.version()["Version"])  # such as `26.1.5+dfsg1`
        numbers = re.findall(r"\d+", version.partition("+")[0])[:3]
        if tuple(map(int, numbers)) < NEEDED:
            raise SandboxError(
                f"The container engine at {_address()} is version {version}, but podium needs "
                f"Docker Engine {'.'.join(map(str, NEEDED))} or newer. Upgrade it "
                "(Debian: sandbox/debian-engine.sh), or choose another box."
            )
    except SandboxError:
        client.close()
        raise
    return client


def our_containers(client: docker.DockerClient) -> list[Container]:
    """Return the containers of all podium processes on this engine, running or not."""
    with explained():
        return client.containers.list(
            all=True, filters={"label": CONTAINER_LABEL}, ignore_removed=True, sparse=True
        )


def orphaned_containers(client: docker.DockerClient) -> list[Container]:
    """Return the containers that no living podium process can be using."""
    in_use = {"created", "running", "paused", "restarting"}
    return [
        container
        for container in our_containers(client)
        if is_orphan(container.attrs["Labels"], running=container.attrs["State"] in in_use)
    ]


def remove_orphans(client: docker.DockerClient) -> int:
    """Remove the containers whose owner process has ended, and return their number."""
    return sum(_remove(container) for container in orphaned_containers(client))


def _remove(container: Container) -> bool:
    """Kill and remove a container; False if another process did so first."""
    try:
        with explained():
            container.remove(force=True, v=True)
    except SandboxError as error:
        cause = error.__cause__
        under_way = isinstance(cause, APIError) and "already in progress" in str(cause.explanation)
        if not under_way and not isinstance(cause, NotFound):
            raise
        return False
    return True


@contextmanager
def explained() -> Generator[None]:
    """Turn the container engine's errors in a `with` block into SandboxErrors with a fix."""
    try:
        yield
    except (DockerException, OSError, ValueError) as error:  # requests' exceptions are OSErrors
        raise explain(error) from error


def explain(error: BaseException) -> SandboxError:
    """Return a SandboxError that states what is wrong with the container engine, and the fix."""
    if isinstance(error, SandboxError):
        return error
    chain = list(_chain(error))
    image = next((link for link in chain if isinstance(link, ImageNotFound)), None)
    if image is not None:
        match = re.search(r"no such image: ([^\s:]+)", str(image.explanation), re.IGNORECASE)
        name = match[1] if match else "that was asked for"
        option = " --image bigcodebench" if "bigcodebench" in name else ""
        return SandboxError(
            f"The image {name} is missing. Run `podium sandbox build{option}` first."
        )
    text = "; ".join(f"{type(link).__name__}: {link}" for link in chain)
    for pattern, sentence in _REASONS:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return SandboxError(sentence.format(*match.groups(), where=_address()))
    if isinstance(error, APIError):
        return SandboxError(f"The container engine refused: {error.explanation}. {CHECK}")
    return SandboxError(f"The container engine failed: {error}. {CHECK}")


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes, and the exceptions among its arguments."""
    visited: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        link = waiting.pop(0)
        if isinstance(link, BaseException) and link not in visited:
            visited.append(link)
            yield link
            waiting += [*link.args, getattr(link, "reason", None), link.__cause__, link.__context__]


BASE_IMAGE = (
    "python:3.11-slim-bookworm"
    "@sha256:2e32f7d302adc1c37428355c1e646897c0c53f4fd60b6a551245fb90ee129f91"
)
"""The public base image (Python 3.11.16, several architectures), pinned by content digest."""
LOCAL_BASE = "podium-base"  # made by sandbox/debian-engine.sh if no registry can be reached
IMAGE_LABEL = "podium.image"
"""Docker label of every podium image: the name of its recipe, a key of `RECIPES`."""
_DESCRIBE = (
    "import json, os, platform; print(json.dumps({'python': platform.python_version(), "
    "'machine': platform.machine(), 'glibc': os.confstr('CS_GNU_LIBC_VERSION').split()[1]}))"
)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """A container image that podium can build: its name and pinned packages."""

    name: str
    image: str
    requirements: Path


BASIC = ImageRecipe("basic", IMAGE, REQUIREMENTS)
BIGCODEBENCH = ImageRecipe("bigcodebench", f"{IMAGE}-bigcodebench", HERE / "bigcodebench.txt")
RECIPES: Mapping[str, ImageRecipe] = {recipe.name: recipe for recipe in (BASIC, BIGCODEBENCH)}


def make_image(
    client: docker.DockerClient, recipe: ImageRecipe, base: str | None, say: Say
) -> Image:
    """Build a recipe's image on the image `base` (None: default); SandboxError if that fails."""
    base = base_image(client, base, say)
    target = python_of(client, base)
    say(f"{recipe.image}: on {base} with Python {target.python}, {target.machine}")
    with tempfile.TemporaryDirectory(prefix="podium-image-") as scratch:
        folder = Path(scratch, "root/opt/podium/site")
        folder.mkdir(parents=True)
        say(f"{recipe.image}: fetching {len(pinned_packages(recipe.requirements))} packages")
        fetch_wheels(recipe.requirements, target, folder)
        with Path(scratch, "context.tar").open("w+b") as context:
            say(f"{recipe.image}: sending the packages to the container engine")
            _write_context(context, Path(scratch))
            context.seek(0)
            made_of = {
                IMAGE_LABEL: recipe.name,
                "podium.version": version("podium"),
                "podium.base": base,
                "podium.python": target.python,
                "podium.packages": " ".join(pinned_packages(recipe.requirements)),
                "podium.requirements": f"sha256:{pins_digest(recipe.requirements)}",
            }
            _run_build(client.api, recipe.image, context, made_of, say)
    with explained():
        image = client.images.get(recipe.image)
    say(f"{recipe.image}: ready, {image.attrs['Size'] / 1e6:.0f} MB, {image.id}")
    return image


def base_image(client: docker.DockerClient, base: str | None, say: Say) -> str:
    """Return the name of an image to build on: `base` or a default one, pulled if it is missing."""
    candidates = [base] if base else [BASE_IMAGE, LOCAL_BASE]
    for name in candidates:
        with explained(), suppress(ImageNotFound):
            client.images.get(name)
            return name
    name = candidates[0]
    say(f"Pulling {name}")
    try:
        with explained():
            client.images.pull(name)
    except SandboxError as error:
        raise SandboxError(
            f"The base image {name} is not on this engine and cannot be pulled. Give one that is "
            "with --base-image, or make one on Debian with sandbox/debian-engine.sh."
        ) from error
    return name


def python_of(client: docker.DockerClient, image: str) -> WheelTarget:
    """Return the Python version and platform of an image; SandboxError if it has no Python."""
    with explained():
        output = client.containers.run(
            image,
            ["-c", _DESCRIBE],
            entrypoint="python3",
            network_mode="none",
            labels=labels(),
            remove=True,
        )
    return WheelTarget(**json.loads(output))


def _write_context(context: BinaryIO, scratch: Path) -> None:
    """Write the build context as a tar file: sorted, without this machine's owners and dates."""
    with tarfile.open(fileobj=context, mode="w") as archive:
        archive.add(HERE / "Dockerfile", "Dockerfile", filter=_without_owner)
        archive.add(scratch / "root", "root", filter=_without_owner)  # recursion is sorted


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 315532800  # 1980-01-01 UTC, the date of every file that we add
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _run_build(api: Any, image: str, context: BinaryIO, made_of: dict[str, str], say: Say) -> None:
    with explained():
        lines = api.build(
            fileobj=context,
            custom_context=True,
            tag=image,
            buildargs={"BASE_IMAGE": made_of["podium.base"]},
            labels=made_of,
            network_mode="none",
            rm=True,
            forcerm=True,
            decode=True,
            timeout=1800,
        )
        faults: list[str] = []
        for line in lines:  # read all, so that the connection is released
            faults += [str(line["error"]).strip().rstrip(".")] if "error" in line else []
            text = str(line.get("stream", "")).strip()
            if text.startswith("Step ") and "LABEL" not in text:
                say(f"{image}: {text[:76]}")
        if faults:
            raise OSError(faults[0])


MAKE = {name: f"podium sandbox build --image {name}" for name in RECIPES}
MAKE["basic"] = "podium sandbox build"


BWRAP_LACKS = (
    "bwrap: no numpy and no sortedcontainers, so programs that import them stay ungraded; install "
    "them with `podium sandbox build --box bwrap`"
)


def build_image(name: str, base: str | None, say: Say) -> int:
    """Build the image of recipe `name`; for `basic`, also fetch packages for bwrap. Return 0."""
    with closing(connect()) as client:
        make_image(client, RECIPES[name], base, say)
    if name == BASIC.name and not why_unusable():
        try:
            build_for_bwrap(say)
        except SandboxError as error:  # not fatal: most programs import no package
            say(f"{BWRAP_LACKS}: {error}")
    return 0


def build_for_bwrap(say: Say) -> int:
    """Fetch the basic image's packages for the bwrap box, return 0; SandboxError on failure."""
    if reason := why_unusable():
        raise SandboxError(reason)
    say(f"bwrap: {_pluralise(len(pinned_packages(REQUIREMENTS)), 'package')} for this Python")
    say(f"bwrap: ready, {fetch_host_packages()}")
    return 0


def sandbox_status(say: Say) -> int:
    """Print which boxes can run programs; return 0 if docker or bwrap is ready, else 1."""
    ready = False
    try:
        client = connect()
    except SandboxError as error:
        say(f"docker: {error}")
    else:
        with closing(client):
            ready = _engine_status(client, say)
    reason = why_unusable()
    say(f"bwrap: {reason}" if reason else f"bwrap: ready. {MEMORY_NOTE}")
    if not reason and host_packages() is None:
        say(BWRAP_LACKS)
    return 0 if ready or not reason else 1


def clean_engine(*, everything: bool, say: Say) -> int:
    """Remove orphaned containers and old images; with `everything`, all podium images. Return 0."""
    filters: dict[str, Any] = {"label": IMAGE_LABEL} | ({} if everything else {"dangling": True})
    # Removing images may take long: gigabytes of small files on a busy disk.
    with closing(connect(timeout_s=600)) as client:
        say(f"Removed {_pluralise(remove_orphans(client), 'orphaned container')}.")
        with explained():
            ours = client.images.list(filters=filters)
        say(f"Removed {_pluralise(sum(_drop(image, say) for image in ours), 'image')}.")
    return 0


def _engine_status(client: docker.DockerClient, say: Say) -> bool:
    """Print the engine's version, images and containers; return whether the docker box is ready."""
    with explained():
        about: dict[str, Any] = client.info()
    runtimes = sorted(name for name in about["Runtimes"] if "." not in name)
    say(
        f"docker: Engine {about['ServerVersion']}, cgroup v{about['CgroupVersion']}, "
        f"runtimes {', '.join(runtimes)}"
    )
    if "runsc" not in runtimes:
        say("docker:runsc: gVisor is not registered (Debian: run sandbox/debian-engine.sh).")
    ready = False
    for recipe in RECIPES.values():
        with explained():
            images = client.images.list(name=recipe.image)
        lines = _image_lines(recipe, images[0]) if images else [f"missing; `{MAKE[recipe.name]}`"]
        for line in lines:
            say(f"image {recipe.image}: {line}")
        ready = ready or (recipe.name == "basic" and bool(images))
    ours, orphans = our_containers(client), orphaned_containers(client)
    say(f"containers: {len(ours)}, of which {_pluralise(len(orphans), 'orphan')}")
    return ready


def _image_lines(recipe: ImageRecipe, image: Image) -> Iterator[str]:
    creation = datetime.fromisoformat(image.attrs["Created"])
    hours = (datetime.now(UTC) - creation).total_seconds() / 3600
    labels: dict[str, str] = image.labels
    packages = labels.get("podium.packages", "").split()
    size_mb = image.attrs["Size"] / 1e6
    yield f"Python {labels.get('podium.python', 'unknown')} on {labels.get('podium.base')}"
    yield f"{size_mb:.0f} MB, {hours:.0f} h old, {image.id}"
    yield f"{len(packages)} packages: {' '.join(packages[:6])}{' ...' if packages[6:] else ''}"
    if labels.get("podium.requirements") != f"sha256:{pins_digest(recipe.requirements)}":
        yield f"its packages differ from this podium's list; rebuild it with `{MAKE[recipe.name]}`"


def _drop(image: Image, say: Say) -> bool:
    """Remove an image and its tags; False, after printing the reason, if the engine refuses."""
    try:
        with explained():
            for name in image.tags or [str(image.id)]:
                image.client.images.remove(name)  # pyright: ignore[reportOptionalMemberAccess]
    except SandboxError as error:
        say(f"Kept {image.tags or image.id}: {error}")
        return False
    return True


def _pluralise(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
