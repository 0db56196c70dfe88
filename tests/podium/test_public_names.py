"""What `import podium` promises: names with words and types, and nothing else in the documents."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import podium
from tests import ROOT

PROMISED = {
    "run", "report", "load_runs", "grade", "Reward", "Pool", "execute", "suites", "systems",
}  # fmt: skip
HOMES = {name: home for home, names in podium.HOMES.items() for name in names.split()}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LOADED = """
import sys, podium
print(*sorted({"inspect_ai", "pandas", "pydantic", "podium.harness", "torch"} & sys.modules.keys()))
podium.RewardClient, podium.TrlReward, podium.UserError
print(*sorted({"inspect_ai", "pandas", "pydantic", "torch"} & sys.modules.keys()))
"""


def words_on(name: str) -> str:
    """Return what stands under the definition of a public name that is a value."""
    body = ast.parse(Path(import_module(HOMES[name]).__file__ or "").read_text()).body
    at = next(
        at
        for at, one in enumerate(body)
        if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == name
    )
    said: Any = body[at + 1]
    return said.value.value


def test_the_names_are_those_that_a_type_checker_sees() -> None:
    assert set(podium.__all__) == set(HOMES) == set(dir(podium))
    tree = ast.parse(Path(podium.__file__ or "").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in imports for alias in node.names} == HOMES
    assert set(HOMES) >= PROMISED


@pytest.mark.parametrize("name", podium.__all__)
def test_a_public_name_has_words_and_types(name: str) -> None:
    value = getattr(podium, name)
    if not inspect.isclass(value) and not inspect.isfunction(value):
        assert len(words_on(name).split()) > 5
        return
    assert value.__doc__
    assert value.__module__ == HOMES[name]
    if inspect.isfunction(value):
        told = inspect.signature(value)
        parameters = [one.annotation for one in told.parameters.values()]
        assert inspect.Signature.empty not in (*parameters, told.return_annotation)


def test_importing_it_loads_nothing_and_trainers_need_the_standard_library_only() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "\n\n"), done.stderr


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'suite'"):
        getattr(podium, "suite")  # noqa: B009 - a type checker would refuse the plain form


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_imports_nothing_of_ours_but_podium(page: Path) -> None:
    blocks = re.findall(r"^```(?:python|py)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", "\n".join(blocks), re.MULTILINE)
    assert [name for name in imported if name.startswith("podium.")] == []
