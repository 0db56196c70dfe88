"""The built wheel in a fresh environment, used from outside the checkout as any user would."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.installed import PACKAGES, Installed

pytestmark = pytest.mark.slow

WHERE_IT_COMES_FROM = """
import importlib, json, sys
from importlib.metadata import distribution
from pathlib import Path
ours = {str(Path(str(file.locate())).resolve()) for file in distribution("podium").files or ()}
homes = {name: importlib.import_module(name).__file__ for name in sys.argv[1:]}
print(json.dumps({name: str(Path(file).resolve()) in ours for name, file in homes.items()}))
"""


LEFT_OUT = (ROOT / "reports" / "demo.png", ROOT / "conductor" / "results")
"""The README's picture, and what training gave; nobody who installs podium needs them."""
ROOMS = PACKAGES[1:]


def test_the_wheel_holds_every_source_and_data_file(podium_wheel: Installed) -> None:
    shipped = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
        if not any(path.is_relative_to(left_out) for left_out in LEFT_OUT)
    }
    held = set(zipfile.ZipFile(podium_wheel.wheel).namelist())
    assert {name if name.startswith("podium/") else f"podium/{name}" for name in shipped} <= held
    assert "podium/py.typed" in held


def test_a_wheel_made_of_the_source_archive_holds_the_same(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, "--sdist", str(ROOT)], check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "--wheel", str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = [zipfile.ZipFile(path).namelist() for path in (wheel, podium_wheel.wheel)]
    assert sorted(names[0]) == sorted(names[1])


def test_the_wheel_holds_one_package(podium_wheel: Installed) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(podium_wheel.wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"podium"}


def test_each_room_comes_from_the_installed_distribution_beside_a_users_own(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    rooms = [f"podium.{room}" for room in ROOMS]
    done = podium_wheel.run(podium_wheel.python, "-c", WHERE_IT_COMES_FROM, *rooms, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(rooms, True)


def test_podium_and_inspect_work_beside_a_users_own_rooms(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    words = "podium run --suite practice-integer --system single:abacus --limit 1 --log-dir ran"
    done = podium_wheel.run(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = podium_wheel.run("inspect", "list", "tasks", "--help", cwd=tmp_path)
    assert "Unexpected exception" not in listed.stderr
    for name in ("podium/practice_integer", "suites/practice_integer"):
        solver = f"{name.partition('/')[0].replace('suites', 'baselines')}/moa_lite"
        words = f"inspect eval {name} --solver {solver} -S pool=rehearsal --limit 1 --display none"
        done = podium_wheel.run(*words.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Unexpected exception" not in done.stderr


@pytest.mark.parametrize("start", ["podium", "python -m podium"])
def test_both_ways_to_start_say_what_it_can_do(
    start: str, podium_wheel: Installed, tmp_path: Path
) -> None:
    done = podium_wheel.run(*start.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage: podium" in done.stdout


def test_the_demo_runs_in_an_empty_folder_without_data(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    nobody = ("env", "-u", "PODIUM_DATA", f"HOME={tmp_path}", "podium", "demo", "--limit", "1")
    done = podium_wheel.run(*nobody, cwd=tmp_path, timeout_s=600)
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("AIME25 on")]
    assert "AIME25 on recorded replies did not run" in said
    assert "podium data fetch" in said
    assert (tmp_path / "demo" / "report" / "table.md").is_file()


def test_a_run_of_an_installed_podium_of_before_buys_nothing_twice(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    with tarfile.open(ROOT / "tests" / "written_before" / "installed.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    suites = "--suite practice-integer --suite practice-choice"
    systems = "--system single:sage --system moa-lite --system conductor --system router-knn"
    rest = "--limit 1 --epochs 2 --train-calls 8 --time-scale 0 --log-dir installed"
    before = journals(tmp_path)
    again = f"podium run {suites} {systems} {rest}".split()
    refused = podium_wheel.run(*again, cwd=tmp_path)
    assert "podium regrade --all installed" in refused.stderr  # its graders are of before
    for words in (["podium", "regrade", "--all", "installed"], again):
        done = podium_wheel.run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert journals(tmp_path) == before


def journals(folder: Path) -> int:
    """Return the number of calls in the journals below a folder."""
    files = folder.rglob("ledger/**/*.jsonl")
    return sum(line.count('"intent"') for path in files for line in path.read_text().splitlines())
