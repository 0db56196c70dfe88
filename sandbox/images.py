"""The images that programs run in: what they are made of, and making them.

An image is a Python image plus pinned packages in /opt/podium/site; the judge is not in it but sent
in. Builds have no network. The same inputs make the same layers; building twice changes nothing.
"""

import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import docker
from docker.errors import ImageNotFound
from docker.models.images import Image

from sandbox.box import IMAGE, SandboxError
from sandbox.engine import explained, labels
from sandbox.wheels import Target, digest, fetch, pins

HERE = Path(__file__).parent
BASE_IMAGE = (
    "python:3.11-slim-bookworm"
    "@sha256:2e32f7d302adc1c37428355c1e646897c0c53f4fd60b6a551245fb90ee129f91"
)
"""The public base (Python 3.11.16, several architectures), pinned by content."""
LOCAL_BASE = "podium-base"
"""What sandbox/debian-engine.sh makes where no registry can be reached."""
LABEL = "podium.image"
"""On every image of ours, with the recipe's name; podium.version, .base, .python, .packages and
.requirements (a digest) say what it was made of."""
_SITE = "root/opt/podium/site"
_DESCRIBE = (
    "import json, os, platform; print(json.dumps({'python': platform.python_version(), "
    "'machine': platform.machine(), 'glibc': os.confstr('CS_GNU_LIBC_VERSION').split()[1]}))"
)
_LONG_AGO = 315532800
"""1980-01-01 UTC, the date of every file that we add (seconds)."""

Say = Callable[[str], None]
"""Takes one line of progress."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image that podium knows how to make."""

    name: str
    image: str
    requirements: Path


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("basic", IMAGE, HERE / "requirements.txt"),
        Recipe("bigcodebench", f"{IMAGE}-bigcodebench", HERE / "bigcodebench.txt"),
    )
}


def find(client: docker.DockerClient, name: str = IMAGE) -> Image:
    """Return an image; SandboxError names the command that makes it."""
    with explained():
        return client.images.get(name)


def build(client: docker.DockerClient, recipe: Recipe, base: str | None, say: Say) -> Image:
    """Make an image on a base image, or on the usual one; return it.

    SandboxError when the base cannot be had, a package cannot be fetched, or the build fails.
    """
    base = base_image(client, base, say)
    target = describe(client, base)
    say(f"{recipe.image}: on {base} with Python {target.python}, {target.machine}")
    with tempfile.TemporaryDirectory(prefix="podium-image-") as scratch:
        folder = Path(scratch, _SITE)
        folder.mkdir(parents=True)
        say(f"{recipe.image}: fetching {len(pins(recipe.requirements))} packages")
        fetch(recipe.requirements, target, folder)
        with Path(scratch, "context.tar").open("w+b") as context:
            say(f"{recipe.image}: handing them to the engine")
            _write_context(context, Path(scratch))
            context.seek(0)
            _run_build(client, recipe, context, _made_of(recipe, base, target), say)
    image = find(client, recipe.image)
    say(f"{recipe.image}: ready, {image.attrs['Size'] / 1e6:.0f} MB, {image.id}")
    return image


def base_image(client: docker.DockerClient, wanted: str | None, say: Say) -> str:
    """Return the name of a base image that is here, pulling it where that is needed.

    Unless one is named, the base that was made on this machine comes before the public one: whoever
    made it did so for want of a registry.
    """
    candidates = [wanted] if wanted else [BASE_IMAGE, LOCAL_BASE]
    for name in candidates:
        if _present(client, name):
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


def describe(client: docker.DockerClient, image: str) -> Target:
    """Ask an image which Python it has; SandboxError when it has none that we can use."""
    with explained():
        said = client.containers.run(
            image,
            ["-c", _DESCRIBE],
            entrypoint="python3",
            network_mode="none",
            labels=labels(),
            remove=True,
        )
    return Target(**json.loads(said))


def _made_of(recipe: Recipe, base: str, target: Target) -> dict[str, str]:
    return {
        LABEL: recipe.name,
        "podium.version": version("podium"),
        "podium.base": base,
        "podium.python": target.python,
        "podium.packages": " ".join(pins(recipe.requirements)),
        "podium.requirements": f"sha256:{digest(recipe.requirements)}",
    }


def _present(client: docker.DockerClient, name: str) -> bool:
    with explained():
        try:
            client.images.get(name)
        except ImageNotFound:
            return False
    return True


def _write_context(context: BinaryIO, scratch: Path) -> None:
    """Write what the engine builds from: sorted, without owners and dates of this machine."""
    with tarfile.open(fileobj=context, mode="w") as archive:
        archive.add(HERE / "Dockerfile", "Dockerfile", filter=_plain)
        archive.add(scratch / "root", "root", filter=_plain)  # recursion is sorted


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = _LONG_AGO
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _run_build(
    client: docker.DockerClient,
    recipe: Recipe,
    context: BinaryIO,
    made_of: dict[str, str],
    say: Say,
) -> None:
    """Have the engine build, telling its steps; SandboxError with its reason when it fails."""
    with explained():
        lines: Any = client.api.build(
            fileobj=context,
            custom_context=True,
            tag=recipe.image,
            buildargs={"BASE_IMAGE": made_of["podium.base"]},
            labels=made_of,
            network_mode="none",
            rm=True,
            forcerm=True,
            decode=True,
            timeout=1800,
        )
        for line in lines:
            if "error" in line:
                raise OSError(str(line["error"]).strip().rstrip("."))
            text = str(line.get("stream", "")).strip()
            if text.startswith("Step ") and "LABEL" not in text:
                say(f"{recipe.image}: {text[:76]}")
