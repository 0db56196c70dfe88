"""Parts of other people's packages: docs/examples as such a package, beside an installed podium."""

import json
import shutil
import sysconfig
from pathlib import Path

import pytest

from tests import ROOT
from tests.installed import Installed, add_package

EXAMPLES = ROOT / "docs" / "examples"
PACKAGE = "acme_orchestras"
BROKEN = """[podium.systems]
no-module = nowhere_at_all:card
no-card = json:loads
"""


@pytest.fixture(scope="module")
def installed(podium_wheel: Installed, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an environment of its own, with the wheel, the package and one that is broken."""
    folder = tmp_path_factory.mktemp("others")
    home = folder / "env"
    shutil.copytree(podium_wheel.folder, home, symlinks=True)
    for script in (home / "bin").iterdir():  # which name the interpreter that they were made for
        if script.is_file() and not script.is_symlink():
            text = script.read_text()
            script.write_text(text.replace(str(podium_wheel.folder), str(home)))
    made = Installed(podium_wheel.wheel, home)
    source = folder / "acme"
    (source / PACKAGE).mkdir(parents=True)
    (source / PACKAGE / "__init__.py").touch()
    for path in EXAMPLES.iterdir():
        if path.is_file():
            to = source if path.suffix == ".toml" else source / PACKAGE
            shutil.copy(path, to / path.name)
    add_package(made, source)
    site = sysconfig.get_path("purelib", vars={"base": str(home)})
    about = Path(site) / "broken_parts-0.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-parts\nVersion: 0.3\n")
    (about / "entry_points.txt").write_text(BROKEN)
    return made


def said(installed: Installed, folder: Path, *words: str | Path) -> str:
    done = installed.run("podium", *words, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("listing", "part"), [("suites", "elements"), ("systems", "majority")])
def test_listings_say_which_package_a_part_is_from(
    installed: Installed, tmp_path: Path, listing: str, part: str
) -> None:
    rows = json.loads(said(installed, tmp_path, listing, "--json"))
    origins = {row[listing.removesuffix("s")]: row["from"] for row in rows}
    assert origins.pop(part) == "acme-orchestras 1.0"
    assert {*origins.values()} == {"podium"}
    assert "  from         acme-orchestras 1.0" in said(installed, tmp_path, listing, part)


@pytest.mark.slow
def test_parts_of_a_package_are_run_reported_audited_and_exported(
    installed: Installed, tmp_path: Path
) -> None:
    systems = ("--system", "majority", "--system", "single:sage")
    asked = ("--suite", "elements", *systems, "--pool", "rehearsal", "--log-dir", "logs")
    said(installed, tmp_path, "run", *asked, "--time-scale", "0")
    said(installed, tmp_path, "audit", "logs")
    assert "A kind of acme-orchestras 1.0." in said(installed, tmp_path, "export", "--help")
    said(installed, tmp_path, "export", "accuracies", "logs", "--out", "made")
    lines = (tmp_path / "made" / "accuracies.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in sorted(lines)] == [
        ["elements", "majority"],
        ["elements", "single:sage"],
        ["suite", "system"],
    ]
    again = installed.run(
        *("podium", "export", "accuracies", "logs", "--out", "made"), cwd=tmp_path
    )
    assert again.returncode == 2
    assert "made already exists. Use another --out." in again.stderr


@pytest.mark.slow
def test_a_system_of_a_package_stands_for_no_group(installed: Installed, tmp_path: Path) -> None:
    for system in ((), ("--system", "all"), ("--system", "contestants")):
        asked = ("--suite", "practice-integer", *system, "--pool", "rehearsal")
        printed = said(installed, tmp_path, "doctor", *asked)
        (systems,) = (line for line in printed.splitlines() if line.startswith("Systems: "))
        assert "self-consistency" in systems
        assert "majority" not in systems


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("no-module", "cannot be loaded (ModuleNotFoundError: No module named 'nowhere_at_all')"),
        ("no-card", "but json:loads is not a valid system. Repair that package."),
    ],
)
def test_a_part_that_cannot_be_had_is_one_sentence(
    installed: Installed, tmp_path: Path, part: str, why: str
) -> None:
    sentence = f"broken-parts 0.3 offers the system {part!r}, "
    (line,) = (
        line
        for line in said(installed, tmp_path, "systems").replace("\n  ", " ").splitlines()
        if line.startswith(sentence)
    )
    assert why in line
    asked = ("--suite", "practice-integer", "--system", part, "--log-dir", "logs")
    done = installed.run("podium", "run", *asked, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "logs").exists()
