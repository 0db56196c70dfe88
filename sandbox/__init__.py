"""Places where untrusted programs may run; a box is chosen by name, and none falls back to another.

Security code is read alone: box.py (what a box promises), inside/ (what runs in one), cells.py and
cell_box.py (how the host talks to it), docker_box.py, bwrap_box.py and images.py (how each starts).
"""

from collections.abc import Callable, Mapping

from sandbox.box import (
    IMAGE,
    Box,
    Limits,
    Program,
    ProgramOutcome,
    SandboxError,
    SandboxFacts,
    Status,
)
from sandbox.bwrap_box import BwrapBox
from sandbox.cell_box import SubprocessBox
from sandbox.docker_box import DockerBox

__all__ = [
    "BOXES",
    "IMAGE",
    "Box",
    "BwrapBox",
    "DockerBox",
    "Limits",
    "Program",
    "ProgramOutcome",
    "SandboxError",
    "SandboxFacts",
    "Status",
    "SubprocessBox",
    "open_box",
]


BOXES: Mapping[str, Callable[[int | None], Box]] = {
    "docker": DockerBox,
    "docker:runsc": lambda most: DockerBox(most, runtime="runsc"),
    "bwrap": BwrapBox,
    "subprocess": SubprocessBox,
}


def open_box(name: str, max_sandboxes: int | None = None) -> Box:
    """Return the box called `name`, not started yet; SandboxError lists the known names.

    At most `max_sandboxes` of its sandboxes exist at once; None stands for one per core.
    """
    if name not in BOXES:
        raise SandboxError(f"There is no box {name!r}; known boxes: {', '.join(sorted(BOXES))}.")
    return BOXES[name](max_sandboxes)
