"""Third-party packages that programs in a box may import: pinned, and fetched as wheels."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.sandbox.box import IMAGE, SandboxError

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
"""File that pins the packages of the basic docker image."""
SITE = "/opt/podium/site"
"""Folder of third-party packages in every box; sandbox/inside/judge.py has the same path."""


@dataclass(frozen=True, slots=True)
class WheelTarget:
    """The Python and platform to fetch packages for, e.g. `3.11.2`, `x86_64` and glibc `2.36`."""

    python: str
    machine: str
    glibc: str


def pinned_packages(requirements: Path) -> tuple[str, ...]:
    """Return the `name==version` lines of a requirements file, sorted."""
    lines = (line.partition("#")[0].strip() for line in requirements.read_text().splitlines())
    return tuple(sorted((line for line in lines if line and line[0] != "-"), key=str.lower))


def pins_digest(requirements: Path) -> str:
    """Return a digest of the pins in a requirements file, independent of order and comments."""
    return hashlib.sha256("\n".join(pinned_packages(requirements)).encode()).hexdigest()


def fetch_wheels(requirements: Path, target: WheelTarget, folder: Path) -> None:
    """Install pinned packages for `target` into `folder` with pip; SandboxError if that fails."""
    if find_spec("pip") is None:
        raise SandboxError(
            f"pip fetches the packages of a sandbox, but {sys.executable} lacks pip. "
            "Run `python -m ensurepip` in this environment first."
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-compile", "--only-binary=:all:", "--implementation=cp"]
    command += [f"--python-version={target.python}", f"--target={folder}", "-r", str(requirements)]
    command += [f"--platform={platform}" for platform in wheel_platforms(target)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        reasons = re.findall(r"^ERROR: (.*)$", result.stderr, re.MULTILINE)
        reasons = reasons or result.stderr.splitlines() or ["no reason given"]
        fault = f"pip cannot fetch the sandbox's packages: {reasons[-1].rstrip('.')}"
        raise SandboxError(f"{fault}. Check that pip reaches its package index.")
    shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts that contain the path of our Python


def wheel_platforms(target: WheelTarget) -> list[str]:
    """Return the wheel platforms that run on a target, newest glibc first (PEP 600).

    >>> wheel_platforms(WheelTarget(python="3.11.2", machine="x86_64", glibc="2.18"))
    ['manylinux_2_18_x86_64', 'manylinux_2_17_x86_64', 'manylinux2014_x86_64']
    """
    newest = int(target.glibc.split(".")[1])
    return [
        *(f"manylinux_2_{minor}_{target.machine}" for minor in range(newest, 16, -1)),
        f"manylinux2014_{target.machine}",
    ]


def promised_names(image: str) -> tuple[str, ...]:
    """Return the packages that programs of the basic `image` may import in any box; else ()."""
    if image != IMAGE:
        return ()
    return tuple(pin.partition("==")[0] for pin in pinned_packages(REQUIREMENTS))


def host_packages() -> Path | None:
    """Return the folder of the basic image's packages for this Python; None if not yet fetched."""
    folder = _host_folder()
    return folder if folder.is_dir() else None


def fetch_host_packages() -> Path:
    """Fetch the basic image's packages for this Python unless present; return their folder."""
    folder = _host_folder()
    if folder.is_dir():
        return folder
    libc = os.confstr("CS_GNU_LIBC_VERSION") or "glibc 2.17"
    target = WheelTarget(platform.python_version(), platform.machine(), libc.split()[1])
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as scratch:
            site = Path(scratch, "site")
            fetch_wheels(REQUIREMENTS, target, site)
            _compile(site)
            site.replace(folder)
    except OSError as error:
        raise SandboxError(
            f"The sandbox's packages cannot be written to {folder}: {error}. Set "
            "XDG_CACHE_HOME to a writable folder."
        ) from error
    return folder


def _host_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium" / "sandbox"
    python = f"{sys.implementation.cache_tag}-{platform.machine()}"
    return cache / f"{python}-{pins_digest(REQUIREMENTS)[:16]}"


def _compile(site: Path) -> None:
    """Compile packages to bytecode, which programs cannot write; make the files readable to all."""
    command = [sys.executable, "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*command, str(site)], capture_output=True, check=False)
    for path in (site, *site.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
