"""Places where untrusted programs may run.

Belongs here: the `Box` protocol, its implementations, limits, and cleaning up after a program.
Does not belong here: tests of a program, graders, prompts (suites/programs.py), and anything that
imports another package of ours. Security code is read alone.

Read in this order: box.py (what a box promises), subprocess_box.py (limits without isolation).
A box is always chosen by name; nothing here falls back to a weaker one.
"""

from collections.abc import Callable, Mapping

from sandbox.box import PYTHON, Box, Limits, Outcome, SandboxError, Status
from sandbox.subprocess_box import SubprocessBox

__all__ = [
    "BOXES",
    "PYTHON",
    "Box",
    "Limits",
    "Outcome",
    "SandboxError",
    "Status",
    "SubprocessBox",
    "open_box",
]

BOXES: Mapping[str, Callable[[], Box]] = {
    "subprocess": SubprocessBox,
}


def open_box(name: str) -> Box:
    """Return the box called `name`, ready to run programs; SandboxError lists the known names."""
    if name not in BOXES:
        raise SandboxError(f"There is no box {name!r}; known boxes: {', '.join(sorted(BOXES))}.")
    return BOXES[name]()
