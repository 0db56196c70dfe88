"""The container engine and the images programs run in: made, listed, cleaned; `podium sandbox`."""

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
"""On every container of ours; images carry other labels, because containers inherit those."""
OWNER = "podium.sandbox.owner"
"""Names one process of one host: what a podium killed with `kill -9` left, the next one removes."""


def labels() -> dict[str, str]:
    """Return the labels that every container started by this process must carry."""
    return {CONTAINER_LABEL: "1", OWNER: f"{_place()} {_process(os.getpid())}"}


def is_orphan(container_labels: dict[str, str], *, running: bool) -> bool:
    """Say whether nobody can use a container any more, given its labels."""
    place, _, owner = container_labels.get(OWNER, "").rpartition(" ")
    if place != _place():
        return not running
    return owner != _process(int(owner.partition(":")[0]))


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _process(pid: int) -> str:
    """Name a living process `pid:start` (clock ticks: numbers are used again), else `pid:gone`."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return f"{pid}:gone"
    fields = stat.rpartition(")")[2].split()  # the name before may contain anything; proc(5)
    return f"{pid}:gone" if fields[0] in "ZX" else f"{pid}:{fields[19]}"


NEEDED = (24, 0, 6)  # the oldest Docker Engine we work with, and the oldest that Inspect accepts
TIMEOUT_S = 60  # how long one call to the engine may take before the engine counts as down

_REASONS = (
    (r"no space left on device",
     "The disk of the container engine is full: free some space (`docker system df` shows it)."),
    (r"unknown (?:or invalid )?runtime(?: name| specified)?:? *([\w.-]+)",
     "The container engine has no runtime {0}: install it and register it in the engine's "
     "daemon.json (sandbox/debian-engine.sh does), or choose another box."),
    (r"permission denied while trying to connect|PermissionError",
     "You may not use the container engine at {where}: join the group that owns its socket "
     "(`sudo usermod -aG docker $USER`, then log in again) or run as root."),
    (r"invalid bind address|TLS configuration|paramiko|ValueError|Invalid argument|npipe",
     "DOCKER_HOST={where} is no address that podium can use: unset it, or set it to one such as "
     "unix:///var/run/docker.sock."),
    (r"timed out",
     "The container engine at {where} does not answer in time: see whether `docker version` "
     "does, and start the engine anew if not."),
    (r"FileNotFoundError|ConnectionRefused|Connection refused|NameResolution|not known",
     "No container engine answers at {where}: start it (Debian: sandbox/debian-engine.sh), set "
     "DOCKER_HOST where it listens elsewhere, or choose another box."),
    (r"Connection aborted|ConnectionReset|BrokenPipe|RemoteDisconnected|Max retries",
     "The container engine at {where} broke off: see whether `docker version` answers, and "
     "start the engine anew if not."),
)  # fmt: skip


def connect(*, timeout_s: int = TIMEOUT_S) -> docker.DockerClient:
    """Return a client of the engine that DOCKER_HOST names, or of the local one."""
    with explained():
        scheme, _, path = _address().partition("://")
        if scheme == "unix":  # docker-py would leave its own socket open where nobody listens
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
                f"The container engine at {_address()} is version {version}; podium needs Docker "
                f"Engine {'.'.join(map(str, NEEDED))} or newer."
            )
    except SandboxError:
        client.close()
        raise
    return client


def our_containers(client: docker.DockerClient) -> list[Container]:
    """Return every container of any podium on this engine, running or not."""
    with explained():
        return client.containers.list(
            all=True, filters={"label": CONTAINER_LABEL}, ignore_removed=True, sparse=True
        )


def orphaned_containers(client: docker.DockerClient) -> list[Container]:
    """Return the containers whose owner is gone; never those of a living podium."""
    in_use = {"created", "running", "paused", "restarting"}
    return [
        container
        for container in our_containers(client)
        if is_orphan(container.attrs["Labels"], running=container.attrs["State"] in in_use)
    ]


def remove_orphans(client: docker.DockerClient) -> int:
    """Remove what killed podiums left, and return how many containers that were."""
    return sum(_remove(container) for container in orphaned_containers(client))


def _remove(container: Container) -> bool:
    """Kill and remove a container; False when somebody else did so first."""
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
    """Turn what the engine raises in the block into a SandboxError: never a program's verdict."""
    try:
        yield
    except (DockerException, OSError, ValueError) as error:  # requests' exceptions are OSErrors
        raise explain(error) from error


def explain(error: BaseException) -> SandboxError:
    """Return the one sentence that says what is wrong with the engine and how it is mended."""
    if isinstance(error, SandboxError):
        return error
    chain = list(_chain(error))
    image = next((link for link in chain if isinstance(link, ImageNotFound)), None)
    if image is not None:
        match = re.search(r"no such image: ([^\s:]+)", str(image.explanation), re.IGNORECASE)
        name = match[1] if match else "that was asked for"
        option = " --image bigcodebench" if "bigcodebench" in name else ""
        return SandboxError(
            f"The image {name} is missing: run `podium sandbox build{option}` first."
        )
    text = "; ".join(f"{type(link).__name__}: {link}" for link in chain)
    for pattern, sentence in _REASONS:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return SandboxError(sentence.format(*match.groups(), where=_address()))
    if isinstance(error, APIError):
        return SandboxError(f"The container engine refused: {error.explanation}.")
    return SandboxError(f"The container engine failed: {error}.")


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it was made from: causes, and exceptions among its arguments."""
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
"""The public base (Python 3.11.16, several architectures), pinned by content."""
LOCAL_BASE = "podium-base"  # what sandbox/debian-engine.sh makes where no registry can be reached
IMAGE_LABEL = "podium.image"
"""On every image of ours, with the recipe's name; other labels say what it was made of."""
_DESCRIBE = (
    "import json, os, platform; print(json.dumps({'python': platform.python_version(), "
    "'machine': platform.machine(), 'glibc': os.confstr('CS_GNU_LIBC_VERSION').split()[1]}))"
)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """An image that podium knows how to make."""

    name: str
    image: str
    requirements: Path


BASIC = ImageRecipe("basic", IMAGE, REQUIREMENTS)
BIGCODEBENCH = ImageRecipe("bigcodebench", f"{IMAGE}-bigcodebench", HERE / "bigcodebench.txt")
RECIPES: Mapping[str, ImageRecipe] = {recipe.name: recipe for recipe in (BASIC, BIGCODEBENCH)}


def make_image(
    client: docker.DockerClient, recipe: ImageRecipe, base: str | None, say: Say
) -> Image:
    """Make an image on a base image, or on the usual one; SandboxError says why it cannot."""
    base = base_image(client, base, say)
    target = python_of(client, base)
    say(f"{recipe.image}: on {base} with Python {target.python}, {target.machine}")
    with tempfile.TemporaryDirectory(prefix="podium-image-") as scratch:
        folder = Path(scratch, "root/opt/podium/site")
        folder.mkdir(parents=True)
        say(f"{recipe.image}: fetching {len(pinned_packages(recipe.requirements))} packages")
        fetch_wheels(recipe.requirements, target, folder)
        with Path(scratch, "context.tar").open("w+b") as context:
            say(f"{recipe.image}: handing them to the engine")
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
    """Return the name of a base image that is here, pulling it where that is needed."""
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
            f"The base image {name} is not here and cannot be pulled: name one that is here with "
            "--base-image, or make one on Debian with sandbox/debian-engine.sh."
        ) from error
    return name


def python_of(client: docker.DockerClient, image: str) -> WheelTarget:
    """Ask an image which Python it has; SandboxError when it has none that we can use."""
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
    """Write what the engine builds from: sorted, without owners and dates of this machine."""
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
        for line in lines:  # to their end: the client's connection is not given back before
            faults += [str(line["error"]).strip().rstrip(".")] if "error" in line else []
            text = str(line.get("stream", "")).strip()
            if text.startswith("Step ") and "LABEL" not in text:
                say(f"{image}: {text[:76]}")
        if faults:
            raise OSError(faults[0])


MAKE = {name: f"podium sandbox build --image {name}" for name in RECIPES}
MAKE["basic"] = "podium sandbox build"


BWRAP_LACKS = (
    "bwrap: its programs have no numpy and no sortedcontainers, and stay ungraded if they import "
    "them; `podium sandbox build --box bwrap`"
)


def build_image(name: str, base: str | None, say: Say) -> int:
    """Make the image of a recipe, and the basic one's packages for bwrap if that is usable here."""
    with closing(connect()) as client:
        make_image(client, RECIPES[name], base, say)
    if name == BASIC.name and not why_unusable():
        try:
            build_for_bwrap(say)
        except SandboxError as error:  # the image is there, and most programs import nothing
            say(f"{BWRAP_LACKS}: {error}")
    return 0


def build_for_bwrap(say: Say) -> int:
    """Fetch the basic image's packages for the bwrap box; SandboxError says why it cannot."""
    if reason := why_unusable():
        raise SandboxError(reason)
    say(f"bwrap: {_pluralise(len(pinned_packages(REQUIREMENTS)), 'package')} for this Python")
    say(f"bwrap: ready, {fetch_host_packages()}")
    return 0


def sandbox_status(say: Say) -> int:
    """Say what can run programs here; 0 when a box that isolates is ready, else 1."""
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
    """Remove orphans and superseded images, with `everything` all images of ours."""
    filters: dict[str, Any] = {"label": IMAGE_LABEL} | ({} if everything else {"dangling": True})
    # Removing images may take long: gigabytes of small files on a busy disk.
    with closing(connect(timeout_s=600)) as client:
        say(f"Removed {_pluralise(remove_orphans(client), 'orphaned container')}.")
        with explained():
            ours = client.images.list(filters=filters)
        say(f"Removed {_pluralise(sum(_drop(image, say) for image in ours), 'image')}.")
    return 0


def _engine_status(client: docker.DockerClient, say: Say) -> bool:
    """Tell about the engine, its images and containers; return whether the docker box is ready."""
    with explained():
        about: dict[str, Any] = client.info()
    runtimes = sorted(name for name in about["Runtimes"] if "." not in name)
    say(
        f"docker: Engine {about['ServerVersion']}, cgroup v{about['CgroupVersion']}, "
        f"runtimes {', '.join(runtimes)}"
    )
    if "runsc" not in runtimes:
        say("docker:runsc: gVisor is not registered (Debian: sandbox/debian-engine.sh does it).")
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
        yield f"not this podium's list of packages; `{MAKE[recipe.name]}` makes it anew"


def _drop(image: Image, say: Say) -> bool:
    """Remove an image with its names; False, with the reason told, when the engine refuses."""
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
