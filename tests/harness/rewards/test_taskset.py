"""The package for verifiers as it is written; test_trainers.py installs and runs it."""

import ast
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium.cli import main


def test_the_package_names_its_suites_and_pins_verifiers(tmp_path: Path) -> None:
    out = tmp_path / "package"
    asked = ["export", "verifiers", "--out", str(out), "--suite", "practice-choice"]
    assert main([*asked, "--suite", "practice-integer"]) == 0
    project = tomllib.loads((out / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == (
        "podium-practice",
        ["verifiers>=0.4,<0.5"],
    )
    module = (out / "podium_practice.py").read_text()
    nodes = ast.walk(ast.parse(module))
    sources = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {name for name in sources if "harness" in name}
    assert ours == {"podium.harness.rewards.outcome", "podium.harness.rewards.trainers"}
    assert all(find_spec(name) for name in ours), "as an installed podium has them"
    assert 'suites: list[str] = ["practice-choice", "practice-integer"]' in module
    assert "--suite practice-choice --suite practice-integer" in (out / "README.md").read_text()


def test_other_suites_and_folders_that_are_there_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["export", "verifiers", "--out", str(tmp_path / "package")]
    assert main([*asked, "--suite", "aime25"]) == 2
    assert "no practice suite 'aime25'" in capsys.readouterr().err
    assert not (tmp_path / "package").exists()
    assert main(asked) == 0
    assert main(asked) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
