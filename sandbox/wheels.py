"""Third-party packages of an image: fetched on the host, because builds have no network.

They are fetched for the Python of the image, which need not be the one podium runs on.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sandbox.box import SandboxError

_LAST_LINE = re.compile(r"^ERROR: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """The Python that the packages are for, as the base image describes itself."""

    python: str
    """E.g. `3.11.2`."""
    machine: str
    """E.g. `x86_64`, `aarch64`."""
    glibc: str
    """E.g. `2.36`; wheels need one at least as new as they name."""


def pins(requirements: Path) -> tuple[str, ...]:
    """Return the `name==version` lines of a requirements file, sorted."""
    lines = (line.partition("#")[0].strip() for line in requirements.read_text().splitlines())
    return tuple(sorted((line for line in lines if line and line[0] != "-"), key=str.lower))


def digest(requirements: Path) -> str:
    """Return what tells one list of pins from another, whatever its order and comments."""
    return hashlib.sha256("\n".join(pins(requirements)).encode()).hexdigest()


def fetch(requirements: Path, target: Target, folder: Path) -> None:
    """Unpack the pinned packages into `folder`, with pip and its own configuration.

    Only wheels: building a source archive would run its code here, outside any box.
    """
    if find_spec("pip") is None:
        raise SandboxError(
            f"The packages of an image are fetched with pip, which {sys.executable} lacks: "
            "run `python -m ensurepip` in this environment first."
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-compile", "--only-binary=:all:", "--implementation=cp"]
    command += [f"--python-version={target.python}", f"--target={folder}", "-r", str(requirements)]
    command += [f"--platform={platform}" for platform in platforms(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reasons = _LAST_LINE.findall(done.stderr) or done.stderr.splitlines() or ["no reason given"]
        raise SandboxError(f"pip cannot fetch the image's packages: {reasons[-1].rstrip('.')}.")
    shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts that start with our Python's path


def platforms(target: Target) -> list[str]:
    """Return the wheel platforms that run on a target, newest glibc first (PEP 600).

    >>> platforms(Target(python="3.11.2", machine="x86_64", glibc="2.18"))
    ['manylinux_2_18_x86_64', 'manylinux_2_17_x86_64', 'manylinux2014_x86_64']
    """
    newest = int(target.glibc.split(".")[1])
    return [
        *(f"manylinux_2_{minor}_{target.machine}" for minor in range(newest, 16, -1)),
        f"manylinux2014_{target.machine}",
    ]
