"""Podium as a user has it: the wheel of this checkout in an environment of its own.

The environment borrows the dependencies of the running interpreter through a `.pth` file, so making
one needs no network and a few seconds. The checkout is not on its path, and an editable install of
podium in the borrowed folder is not either: `.pth` files count in its own folder only.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from uv import find_uv_bin

from tests import ROOT

PACKAGES = ("podium", "harness", "suites", "baselines", "conductor", "sandbox", "reports")


@dataclass(frozen=True, slots=True)
class Installed:
    """A fresh environment with podium's wheel in it."""

    wheel: Path
    folder: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    def run(
        self, *command: str | Path, cwd: Path, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the environment's scripts first on the path, outside the checkout."""
        assert not cwd.is_relative_to(ROOT), "inside the checkout the folder shadows the install"
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a user who has activated this environment."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return {
            **kept,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.folder),
        }


def install(folder: Path) -> Installed:
    """Build the wheel and install it into a new environment below `folder`."""
    wheel = build_wheel(folder / "dist")
    home = folder / "env"
    new_environment(home)
    installed = Installed(wheel, home)
    put(installed.python, "--no-deps", "--no-index", str(wheel))
    _borrow_dependencies(installed, folder)
    return installed


def add_package(installed: Installed, folder: Path) -> None:
    """Install a package from its folder, beside podium, without the network."""
    put(installed.python, "--no-deps", "--no-index", "--no-build-isolation", str(folder))


def build_wheel(folder: Path) -> Path:
    """Build this checkout's wheel into `folder`, without the network."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    _must([*build, str(ROOT)], cwd=folder.parent)
    (wheel,) = folder.glob("podium-*.whl")
    return wheel


def _borrow_dependencies(installed: Installed, folder: Path) -> None:
    """Put the running interpreter's packages, and Inspect's command, into the environment."""
    lend(installed.python, folder)
    (command,) = entry_points(group="console_scripts", name="inspect")
    module, _, function = command.value.partition(":")
    script = installed.folder / "bin" / "inspect"
    script.write_text(f"#!{installed.python}\nfrom {module} import {function}\n{function}()\n")
    script.chmod(0o755)


def lend(python: Path, folder: Path, *first: Path) -> None:
    """Let an environment find the running interpreter's packages, and before them these places."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(_must([str(python), "-c", asked], cwd=folder).strip())
    lent = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (own / "borrowed.pth").write_text("\n".join((*map(str, first), *lent)) + "\n")


def foreign(folder: Path, *packages: str) -> Path:
    """Return the Python of an environment with packages of others beside our dependencies.

    It runs this checkout; what the packages need comes before what is lent.
    """
    python = new_environment(folder)
    lend(python, folder, ROOT)
    put(python, *packages)
    return python


def _must(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


NEWER = ("python3.14", "python3.13", "python3.12")
KEPT = Path.home() / ".pyenv" / "versions"
"""Where pyenv keeps interpreters, which its names on the path may refuse to start."""


def newer_python() -> Path | None:
    """Return an interpreter of Python 3.12 or newer that makes environments; None without one."""
    kept = (path / "bin" / "python" for path in sorted(KEPT.glob("3.1[2-9].*"), reverse=True))
    here = (sys.executable,) if sys.version_info >= (3, 12) else ()
    for one in (*here, *filter(None, map(shutil.which, NEWER)), *kept):
        asked = [one, "-c", "import ensurepip, venv"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return Path(one)
    return None


def apart(folder: Path, python: Path, *packages: str, without_needs: str = "") -> Path:
    """Make an environment with packages of others and nothing of ours; return its Python.

    Of `without_needs` the package alone is installed: what its part under test needs is among the
    others, and the rest of what it asks for would be hundreds of megabytes.
    """
    made = new_environment(folder, python)
    if without_needs:
        put(made, "--no-deps", without_needs)
    put(made, *packages)
    return made


def new_environment(folder: Path, python: Path = Path(sys.executable)) -> Path:
    """Make an environment with nothing in it; return its Python."""
    _must([str(python), "-m", "venv", "--without-pip", str(folder)], cwd=folder.parent)
    return folder / "bin" / "python"


def put(python: Path, *words: str) -> None:
    """Install packages into an environment, by uv, and where uv does not find them by pip."""
    done = installing(python, *words)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


def installing(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Install packages as `put` does; return how it ended.

    A dozen environments took pip ten minutes, and take uv one. Where wheels lie beside the index,
    only pip has been told.
    """
    beside = os.environ.get("PIP_FIND_LINKS")
    wheels = {"UV_FIND_LINKS": beside} if beside else {}
    env = {**os.environ, "UV_SYSTEM_CERTS": "1", **wheels}  # it trusts whom the machine trusts
    uv = [find_uv_bin(), "pip", "install", "--quiet", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    for command in (uv, pip):
        done = subprocess.run(
            [*command, *words], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            break
    return done
