"""What `podium sandbox` does: make the images, say what is there, remove what is not needed.

Returns exit codes and tells lines of text through `say`; nothing here prints.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import docker
from docker.models.images import Image

from sandbox.box import SandboxError
from sandbox.bwrap_box import memory_note, usable
from sandbox.engine import connect, containers, explained, orphans, remove_orphans
from sandbox.images import LABEL, RECIPES, Recipe, Say, build
from sandbox.wheels import digest

HOUR_S = 3600
PATIENCE_S = 600
"""For removing images: gigabytes of small files on a busy disk."""
MAKE = {name: f"podium sandbox build --image {name}" for name in RECIPES}
MAKE["basic"] = "podium sandbox build"


def build_image(name: str, base: str | None, say: Say) -> int:
    """Make the image of a recipe; SandboxError when that cannot be done."""
    client = connect()
    try:
        build(client, RECIPES[name], base, say)
    finally:
        client.close()
    return 0


def status(say: Say) -> int:
    """Say what can run programs here; 0 when a box that isolates is ready, else 1."""
    ready = False
    try:
        client = connect()
    except SandboxError as error:
        say(f"docker: {error}")
    else:
        try:
            ready = _engine_status(client, say)
        finally:
            client.close()
    reason = usable()
    say(f"bwrap: {reason}" if reason else f"bwrap: ready. {memory_note()}")
    return 0 if ready or not reason else 1


def clean(*, everything: bool, say: Say) -> int:
    """Remove orphans and superseded images, with `everything` all images of ours."""
    client = connect(timeout_s=PATIENCE_S)
    try:
        say(f"Removed {_counted(remove_orphans(client), 'orphaned container')}.")
        removed = [image for image in _ours(client, superseded=not everything) if _drop(image, say)]
        say(f"Removed {_counted(len(removed), 'image')}.")
    finally:
        client.close()
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
        image = _built(client, recipe)
        lines = _image_lines(recipe, image) if image else [f"missing; `{MAKE[recipe.name]}`"]
        for line in lines:
            say(f"image {recipe.image}: {line}")
        ready = ready or (recipe.name == "basic" and image is not None)
    ours, left = containers(client), orphans(client)
    say(f"containers: {len(ours)}, of which {_counted(len(left), 'orphan')}")
    return ready


def _built(client: docker.DockerClient, recipe: Recipe) -> Image | None:
    with explained():
        found = client.images.list(name=recipe.image)
    return found[0] if found else None


def _image_lines(recipe: Recipe, image: Image) -> Iterator[str]:
    made = datetime.fromisoformat(image.attrs["Created"])
    hours = (datetime.now(UTC) - made).total_seconds() / HOUR_S
    labels: dict[str, str] = image.labels
    packages = labels.get("podium.packages", "").split()
    size_mb = image.attrs["Size"] / 1e6
    yield f"Python {labels.get('podium.python', 'unknown')} on {labels.get('podium.base')}"
    yield f"{size_mb:.0f} MB, {hours:.0f} h old, {image.id}"
    yield f"{len(packages)} packages: {' '.join(packages[:6])}{' ...' if packages[6:] else ''}"
    if labels.get("podium.requirements") != f"sha256:{digest(recipe.requirements)}":
        yield f"not this podium's list of packages; `{MAKE[recipe.name]}` makes it anew"


def _ours(client: docker.DockerClient, *, superseded: bool) -> list[Image]:
    """Return the images that podium made: those whose name a newer one took, or all."""
    filters: dict[str, Any] = {"label": LABEL}
    if superseded:
        filters["dangling"] = True
    with explained():
        return client.images.list(filters=filters)


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


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
