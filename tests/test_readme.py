"""The README says what is there: every command, system, suite, pool and price book.

A console block that follows a `<!-- run -->` line is run, where a user has installed the wheel.
"""

import re
import shlex
from pathlib import Path

import pytest

from baselines import SYSTEMS as BASELINES
from conductor import SYSTEMS as CONDUCTORS
from harness.cli.commands import build_parser
from harness.pool_config import read_pool
from harness.prices import read_book
from suites import SUITES
from tests import ROOT
from tests.installed import Installed

README = (ROOT / "README.md").read_text()
RUNNABLE = re.compile(r"<!-- run -->\n```console\n(.*?)```", re.DOTALL)


def promised() -> list[list[str]]:
    """Return the commands that the README promises to work offline, block by block."""
    blocks = [block.replace("\\\n", " ") for block in RUNNABLE.findall(README)]
    return [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]


@pytest.mark.parametrize("commands", promised(), ids=lambda block: block[0])
def test_a_block_of_commands_in_the_readme_runs(
    commands: list[str], podium_wheel: Installed, tmp_path: Path
) -> None:
    for command in commands:
        done = podium_wheel.run(*shlex.split(command, comments=True), cwd=tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_pool_in_the_readme_is_a_valid_pool_file(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    pool = read_pool(str(path))
    assert pool.worker("atlas").price_ref in read_book(pool.prices).prices


def stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def command_names() -> list[str]:
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
    names = [*BASELINES, *CONDUCTORS]
    assert [name for name in names if f"`{name}" not in README] == []


def test_every_suite_is_in_the_readme() -> None:
    assert [name for name in SUITES if f"`{name}`" not in README] == []
