"""The sandbox of Inspect's that a system's own programs run in, as PODIUM_SANDBOX names it.

Not here: the boxes that grade programs (harness/boxes.py). A system that needs one says so in its
manifest; its tasks then have this sandbox. It is a machine's setting, so no log depends on it.
"""

import os
from pathlib import Path

from harness.errors import UserError
from harness.system import Manifest

VARIABLE = "PODIUM_SANDBOX"
LOCAL, DOCKER = "local", "docker"


def sandbox_of(manifest: Manifest) -> str | tuple[str, str] | None:
    """Return the sandbox of a system's tasks; None for systems that need none.

    UserError for a sandbox that is no sandbox.
    """
    if "sandbox" not in manifest.needs:
        return None
    if lacks_sandbox(manifest):
        raise UserError(missing_sandbox(manifest.name))
    kind, _, file = os.environ[VARIABLE].partition(":")
    return (kind, file) if file else kind


def lacks_sandbox(manifest: Manifest) -> bool:
    """Say whether a system needs a sandbox and none, or none that exists, is named."""
    kind, _, file = os.environ.get(VARIABLE, "").partition(":")
    named = kind == LOCAL if not file else kind == DOCKER and Path(file).is_file()
    return "sandbox" in manifest.needs and not named


def missing_sandbox(name: str) -> str:
    """Return the sentence on a system that needs a sandbox where none is named."""
    return (
        f"{name} runs in a sandbox of Inspect's: set {VARIABLE}=docker:COMPOSE-FILE, without a "
        f"network, or {VARIABLE}=local to trust it (inspect eval: --sandbox)."
    )
