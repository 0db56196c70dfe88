"""Packages that programs import: the same in each box, or the program is not graded."""

from collections.abc import Generator
from contextlib import closing
from typing import Literal

import pytest

from podium.sandbox import Box, Program, SandboxError, packages
from podium.sandbox.bwrap_box import BwrapBox
from podium.sandbox.inside import judge
from podium.sandbox.packages import promised_names
from tests.sandbox.boxes import BWRAP, TIGHT, needs, run

LACKED = {
    "import": "import numpy",
    "part": "from numpy.linalg import norm",
    "late": "def f(): import sortedcontainers\nf()",
    "by name": "__import__('numpy')",
    "importlib": "import importlib; importlib.import_module('numpy')",
    "caught": "try: import numpy\nexcept ImportError: pass",
    "asked": "import importlib.util; importlib.util.find_spec('numpy')",
}


@pytest.fixture(scope="module")
def bare() -> Generator[Box]:
    """A bwrap box without packages."""
    needs(BWRAP)
    with closing(BwrapBox(packages=lambda: None)) as box:
        yield box


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Generator[Box]:
    """A bwrap box whose packages were fetched: small ones of our own."""
    needs(BWRAP)
    site = tmp_path_factory.mktemp("site")
    site.chmod(0o755)  # programs have users of their own
    for name in promised_names(Program("").image):
        (site / f"{name}.py").write_text("answer = 42\n")
        (site / f"{name}-1.0.dist-info").mkdir()
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(about)
    with closing(BwrapBox(packages=lambda: site)) as box:
        yield box


@pytest.mark.parametrize("source", LACKED.values(), ids=LACKED)
def test_a_program_that_wants_a_package_which_only_the_image_has_is_not_graded(
    bare: Box, source: str
) -> None:
    with pytest.raises(
        SandboxError, match=r"has \(of numpy, sortedcontainers\).*build --box bwrap"
    ):
        run(bare, source)


@pytest.mark.parametrize("runner", ["call", "official"])
def test_a_method_that_wants_such_a_package_is_not_graded(
    bare: Box, runner: Literal["call", "official"]
) -> None:
    source = "def f(x):\n    import numpy\n    return x"
    with pytest.raises(SandboxError, match="cannot be graded here"):
        list(bare.run(Program(source, runner, "f"), [b"[1]"], TIGHT))


def test_a_package_that_no_box_has_is_the_program_s_mistake(bare: Box) -> None:
    [outcome] = run(bare, "import no_such_package")
    assert outcome.stderr.endswith(b"ModuleNotFoundError: No module named 'no_such_package'\n")
    [caught] = run(bare, "try: import no_such_package\nexcept ImportError: print('without')")
    assert caught.stdout == b"without\n"


def test_a_program_that_names_a_package_and_does_not_import_it_is_graded(bare: Box) -> None:
    for runner in ("script", "official"):
        [outcome] = bare.run(Program("x = input()  # no numpy", runner), [b"1"], TIGHT)  # type: ignore[arg-type]
        assert (outcome.status, outcome.exit_code) == ("exited", 0)


def test_bwrap_has_the_packages_that_were_fetched(stocked: Box) -> None:
    source = "import numpy, sortedcontainers; print(numpy.answer, sortedcontainers.answer)"
    assert run(stocked, source)[0].stdout == b"42 42\n"
    assert stocked.facts().packages == ("numpy==1.0", "sortedcontainers==1.0")
    [denied] = run(stocked, "import numpy; open(numpy.__file__, 'a')")
    assert b"OSError" in denied.stderr or b"PermissionError" in denied.stderr


def test_the_exit_code_means_nothing_where_no_package_lacks(stocked: Box) -> None:
    [outcome] = run(stocked, "import os; os._exit(119)")
    assert (outcome.status, outcome.exit_code) == ("exited", 119)


def test_both_parts_of_the_box_have_packages_in_the_same_place() -> None:
    assert judge.SITE == packages.SITE
