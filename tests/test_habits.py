"""The habits that hold the project up: small files, layers, no torch, no code from data."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests import ROOT
from tests.installed import PACKAGES

LONGEST_FILE = 600
"""Lines; style guide, rule 2."""

TRAINING_STACK = ("torch", "trl", "transformers", "accelerate", "vllm")

IMPORT_ALL = """
import importlib, sys
banned, names = sys.argv[1].split(","), sys.argv[2].split(",")
for name in banned:
    sys.modules[name] = None  # importing it raises, as where it is not installed
for name in names:
    importlib.import_module(name)
print(len(names), *sorted(m for m in sys.modules if m.split(".")[0] in banned and sys.modules[m]))
"""


@cache
def product() -> dict[str, Path]:
    """Return the file of every module of ours, by its dotted name."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {dotted(path.relative_to(ROOT).with_suffix("").parts): path for path in files}


def dotted(parts: Sequence[str]) -> str:
    """Return a module's name: each room is a part of podium.

    >>> dotted(("harness", "run", "__init__")), dotted(("podium", "cli", "run_commands"))
    ('podium.harness.run', 'podium.cli.run_commands')
    """
    inside = parts if parts[0] == "podium" else ("podium", *parts)
    return ".".join(inside).removesuffix(".__init__")


def modules() -> list[str]:
    return sorted(product())


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text()) for name, path in product().items()}


def may_import_torch() -> set[str]:
    """Return the training files: those that the import contract on torch excepts."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (torch,) = (contract for contract in contracts if contract["id"] == "torch")
    return {edge.split(" -> ")[0] for edge in torch.get("ignore_imports", [])}


def sources() -> list[Path]:
    folders = [ROOT / folder for folder in (*PACKAGES, "tests")]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def test_no_source_file_is_longer_than_600_lines() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources()}
    assert {path.name: n for path, n in lengths.items() if n > LONGEST_FILE} == {}


def test_a_public_class_name_stands_once() -> None:
    classes = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in classes.items() if times > 1] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    parsed = trees()
    graph = {
        name: {
            next((one for one in (f"{node.module}.{alias.name}", node.module) if one in parsed), "")
            for node in ast.walk(tree)  # in functions and for type checkers, too
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        - {"", name}
        for name, tree in parsed.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(parsed)  # raises CycleError


@pytest.mark.slow
def test_all_but_the_training_files_import_where_there_is_no_torch(tmp_path: Path) -> None:
    names = [name for name in modules() if name not in may_import_torch()]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, ",".join(TRAINING_STACK), ",".join(names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(names))]


def test_the_import_contracts_are_kept() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_sandbox_imports_the_standard_library_and_docker_only() -> None:
    allowed = {*sys.stdlib_module_names, "docker", "podium"}  # of podium: the contract says
    found = {
        f"{path.name} imports {name}"
        for path in (ROOT / "sandbox").rglob("*.py")
        for name in imported(path)
        if name not in allowed
    }
    assert found == set()


def test_practice_workers_know_no_exam_and_no_system() -> None:
    home = ROOT / "suites" / "practice" / "workers"
    imports = [
        node.module or ""
        for path in home.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    ours = [name for name in imports if name.startswith("podium")]
    assert len(ours) > 20
    assert all(
        name.startswith(("podium.harness.", "podium.suites.practice.workers")) for name in ours
    )


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or ".").split(".")[0])
    return names


OPTIONAL = {
    ("baselines/trinity.py", "cmaes"),
    ("conductor/base_model.py", "gguf"),
    ("conductor/training/model.py", "peft"),
    ("reports/audit/verify.py", "cryptography"),
    ("podium/serving/spans.py", "opentelemetry"),  # a file that is imported for `--otlp` alone
    ("harness/files.py", "compression"),  # of Python's own library, from 3.14 on
}
"""Extras, each of which one file imports inside its functions, or only where it is there."""


def test_the_base_install_declares_every_package_it_imports() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = {re.split(r"[<>=\[ ]", text)[0] for text in settings["project"]["dependencies"]}
    owners = packages_distributions()
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for module, path in product().items()
        if module not in may_import_torch()
        if path not in WITH_FRAMEWORKS
        for name in imported(path) - {"podium"} - sys.stdlib_module_names
    }
    found -= OPTIONAL
    assert {pair for pair in found if declared.isdisjoint(map(dashed, owners[pair[1]]))} == set()


WITH_FRAMEWORKS = frozenset((ROOT / "baselines" / "frameworks").glob("with_*.py"))


@pytest.mark.parametrize("path", sorted(WITH_FRAMEWORKS), ids=lambda path: path.stem)
def test_a_framework_is_imported_only_when_it_is_run(path: Path) -> None:
    top = [one for one in ast.parse(path.read_text()).body if isinstance(one, ast.Import)]
    froms = [one for one in ast.parse(path.read_text()).body if isinstance(one, ast.ImportFrom)]
    names = {alias.name for one in top for alias in one.names}
    names |= {(one.module or "").split(".")[0] for one in froms}
    assert names <= {"podium"} | sys.stdlib_module_names


def dashed(name: str) -> str:
    return name.lower().replace("_", "-")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_introduces_itself(package: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    assert len(said.split()) >= 20, (
        f"{package}/__init__.py: say what belongs here and what does not"
    )


INSIDE = {"podium.reports.site"}
"""A folder of a package, by the field's own word: nobody imports it by its last name."""


@pytest.mark.parametrize("name", sorted({*modules()} - INSIDE))
def test_no_module_is_named_after_another(name: str) -> None:
    assert name.split(".")[-1] not in sys.stdlib_module_names - {"__init__"}


LOADERS = {
    "from_pretrained": ("trust_remote_code", False),
    "from_config": ("trust_remote_code", False),
    "load_dataset": ("trust_remote_code", False),
    "pipeline": ("trust_remote_code", False),
    "LLM": ("trust_remote_code", False),
    "GRPOConfig": ("trust_remote_code", False),
    "SFTConfig": ("trust_remote_code", False),
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
}
"""What loads models, data sets and arrays, and what each call of it says."""
SAFE = ("PeftConfig.from_pretrained", "PeftModel.from_pretrained")  # JSON and tensors, no code
OF_CREWAI = ("podium.baselines.frameworks.with_crewai", "LLM")  # a client of a server
UNPICKLERS = {
    f"{module}.{name}"
    for module in ("pickle", "cloudpickle", "dill", "joblib", "marshal", "pandas", "pd", "shelve")
    for name in ("load", "loads", "Unpickler", "read_pickle", "open")
} | {"yaml.load", "yaml.unsafe_load", "yaml.full_load"}


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield the module, the function's name and the node of every call in the product."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                yield module, ast.unparse(node.func), node


def test_every_loader_in_the_product_refuses_code_and_nothing_reads_a_pickle() -> None:
    seen, wrong = set[str](), list[str]()
    for module, name, call in calls():
        rule = LOADERS.get(name) or LOADERS.get(name.rpartition(".")[2])
        if name in UNPICKLERS:
            wrong.append(f"{module}, line {call.lineno}: {name} runs code")
        if rule is None or name in SAFE or (module, name) == OF_CREWAI:
            continue
        seen.add(name.rpartition(".")[2])
        held = {one.arg: ast.unparse(one.value) for one in call.keywords}
        if held.get(rule[0]) != str(rule[1]):
            wrong.append(f"{module}, line {call.lineno}: say {rule[0]}={rule[1]}")
    assert wrong == []
    assert {"from_pretrained", "load_dataset", "load", "GRPOConfig"} <= seen
