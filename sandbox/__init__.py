"""Sandboxes (boxes) for untrusted programs, chosen by name, without fallback to another box.

To review the security code, read box.py (what a box promises), inside/ (what runs in a box),
cells.py (how the host talks to it), docker_box.py, bwrap_box.py and images.py (how boxes start).
"""

from collections.abc import Callable, Mapping
from importlib import import_module

from podium.sandbox.box import (
    IMAGE,
    Box,
    Limits,
    Program,
    ProgramOutcome,
    SandboxError,
    SandboxFacts,
    Status,
)

__all__ = [
    "BOXES", "IMAGE", "Box", "Limits", "Program", "ProgramOutcome", "SandboxError", "SandboxFacts",
    "Status", "open_box",
]  # fmt: skip


def _opener(home: str, kind: str, **settings: str) -> Callable[[int | None], Box]:
    """Return a function that creates a box of class `kind`; only then is `home` imported."""
    return lambda limit: getattr(import_module(f"podium.sandbox.{home}"), kind)(limit, **settings)


BOXES: Mapping[str, Callable[[int | None], Box]] = {
    "docker": _opener("docker_box", "DockerBox"),
    "docker:runsc": _opener("docker_box", "DockerBox", runtime="runsc"),
    "bwrap": _opener("bwrap_box", "BwrapBox"),
    "subprocess": _opener("cells", "SubprocessBox"),
}


def open_box(name: str, max_sandboxes: int | None = None) -> Box:
    """Return the box called `name`, not started yet; SandboxError if the name is unknown."""
    if name not in BOXES:
        raise SandboxError(f"There is no box {name!r}. Known boxes: {', '.join(sorted(BOXES))}.")
    return BOXES[name](max_sandboxes)
