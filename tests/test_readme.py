"""The README says what is there: every command, system, suite, pool and price book.

A console block that follows a `<!-- run -->` line is run, where a user has installed the wheel.
"""

import re
import shlex
from pathlib import Path

import pytest
from installed import ROOT, Installed

README = (ROOT / "README.md").read_text()
RUNNABLE = re.compile(r"<!-- run -->\n```console\n(.*?)```", re.DOTALL)


def promised() -> list[str]:
    """Return the commands that the README promises to work offline, joined over line ends."""
    text = "".join(RUNNABLE.findall(README)).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines()]


@pytest.mark.parametrize("command", promised())
def test_a_command_in_the_readme_runs(
    command: str, podium_wheel: Installed, tmp_path: Path
) -> None:
    done = podium_wheel.run(*shlex.split(command), cwd=tmp_path)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def command_names() -> list[str]:
    from harness.cli import build_parser

    names = re.findall(r"^    ([a-z]+) ", build_parser().format_help(), re.MULTILINE)
    assert "demo" in names
    return names


def test_every_command_is_in_the_readme() -> None:
    assert [name for name in command_names() if f"| `podium {name}` |" not in README] == []


@pytest.mark.parametrize("folder", ["pools", "prices"])
def test_every_pool_and_price_book_is_in_the_readme(folder: str) -> None:
    names = stems(ROOT / "harness" / folder)
    assert names
    assert [name for name in names if f"`{name}`" not in README] == []


def test_every_system_is_in_the_readme() -> None:
    from baselines import SYSTEMS

    assert [name for name in SYSTEMS if f"`{name}" not in README] == []


def test_every_suite_is_in_the_readme() -> None:
    from suites import SUITES

    assert [name for name in SUITES if f"`{name}`" not in README] == []
