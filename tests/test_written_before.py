"""What was written before the modules were merged and renamed still reads: see written_before/.

Through the command line alone, so that no test here depends on where the code of today stands.
"""

import csv
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from podium.cli import main

BEFORE = Path(__file__).with_name("written_before")
RUN = (
    *("--suite", "practice-integer", "--suite", "practice-choice"),
    *("--system", "single", "--system", "self-consistency@3", "--system", "moa-lite"),
    *("--system", "router-knn", "--system", "oracle", "--limit", "3", "--epochs", "2"),
    *("--seed", "5", "--time-scale", "0", "--train-calls", "12"),
)
WORDS = {"notes", "deviations", "source"}
"""Columns that hold sentences, which may be put better."""
SINCE = {"usd_provider", "shared_from"}
"""Columns of calls that are newer."""
HOLM = {"min_detectable"}
"""It counts how many systems are compared since 0.3."""
SECONDS = {"latency_s", "critical_path_s"}
"""How long calls were waited for was the machine's load: what older workers took is unknown."""


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(BEFORE / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run, for tests that only read it."""
    return unpacked("run", tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training, for tests that only read it."""
    return unpacked("training", tmp_path_factory.mktemp("kept"))


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Run a command that succeeds and return what it printed."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0, capsys.readouterr()
    return capsys.readouterr().out


def cells(text: str, left_out: set[str]) -> list[dict[str, str]]:
    """Return a table's rows, without some columns."""
    rows = csv.DictReader(io.StringIO(text))
    return [{key: cell for key, cell in row.items() if key not in left_out} for row in rows]


def contents(folder: Path) -> dict[str, bytes]:
    """Return what stands in a folder, but for Inspect's list of its logs."""
    files = (path for path in folder.rglob("*") if path.is_file())
    held = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: data for name, data in held.items() if Path(name).name != "logs.json"}


def test_an_old_run_gives_the_table_that_it_gave(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = said(capsys, "report", "--derived", kept, "--out", tmp_path).splitlines()
    old, new = (path.read_text() for path in (BEFORE / "table.csv", tmp_path / "table.csv"))
    apart = WORDS | SECONDS | HOLM
    (header,) = csv.reader([new.splitlines()[0]])
    added = set(header) - set(old.splitlines()[0].split(","))
    assert cells(new, apart | added) == cells(old, apart)
    assert {row["latency_s"] for row in csv.DictReader(io.StringIO(new))} == {""}
    for line in (BEFORE / "table.txt").read_text().splitlines():
        system, *figures = line.split() or [""]
        assert not line.startswith(" ") or any(
            said.split()[: len(figures)] == [system, *figures[:-1]] for said in printed
        ), line


def test_every_invariant_of_an_old_run_holds(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No invariant fails." in said(capsys, "audit", kept, "--strict", "--regrade")


def test_an_old_run_exports_the_calls_and_queries_that_it_did(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "ledger", "export", kept, "--format", "csv", "--out", tmp_path)
    exported = kept.parent / "exported"
    new, old = ((folder / "calls.csv").read_text() for folder in (tmp_path, exported))
    assert cells(new, SINCE) == cells(old, set())
    new, old = ((folder / "queries.csv").read_text() for folder in (tmp_path, exported))
    known, now = (next(csv.reader([text.splitlines()[0]])) for text in (old, new))
    assert now[: len(known)] == known  # columns are appended, and nothing else becomes of them
    assert cells(new, SECONDS | {*now[len(known) :]}) == cells(old, SECONDS)


def test_an_old_manifest_verifies(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = json.loads((kept / "MANIFEST.json").read_text())["root"]
    assert root in said(capsys, "manifest", "verify", kept)


def test_an_old_manifest_finds_what_was_changed_since(tmp_path: Path) -> None:
    run = unpacked("run", tmp_path)
    journal = next((run / "ledger").rglob("*.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b'"output":', b'"output": ', 1))
    assert main(["manifest", "verify", str(run)]) == 1


def test_an_old_run_is_not_resumed_before_it_is_graded_as_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unpacked("run", tmp_path)
    before = contents(run)
    words = ("run", *RUN, "--pool", f"{tmp_path / 'mine.toml'}", "--log-dir", f"{run}")
    assert main([*words]) == 2
    assert "its version of practice-integer is '3-A', not '6-A'; grade" in capsys.readouterr().err
    assert contents(run) == before


def test_an_old_run_resumes_with_an_old_pool_file_and_asks_nothing_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = graded_as_today(tmp_path, capsys)
    before = contents(run)
    said(capsys, "run", *RUN, "--pool", tmp_path / "mine.toml", "--log-dir", run)
    assert contents(run) == before


def graded_as_today(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the run with all its verdicts given again, by the versions of today; none moves."""
    run = unpacked("run", folder)
    logs = len([*run.rglob("*.eval")])
    printed = said(capsys, "regrade", "--all", run)
    assert printed.count("graded, 0 verdicts changed, 0 still unscored") == logs
    return run


@pytest.mark.slow
def test_an_old_run_grows_by_a_question_and_keeps_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = graded_as_today(tmp_path, capsys)
    said(capsys, "run", *RUN, "--limit", "4", "--pool", tmp_path / "mine.toml", "--log-dir", run)
    said(capsys, "report", run, "--out", tmp_path / "report")
    rows = cells((tmp_path / "report" / "table.csv").read_text(), WORDS)
    assert {row["n_graded"] for row in rows if not row["derived"]} == {"8"}
    assert "No invariant fails." in said(capsys, "audit", run)


def test_what_an_old_training_trained_sits_an_exam(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system = f"conductor@{training / 'best'}"
    wanted = ("--suite", "practice-integer", "--system", system, "--limit", "2")
    said(capsys, "run", *wanted, "--time-scale", "0", "--log-dir", tmp_path / "run")
    said(capsys, "report", tmp_path / "run", "--out", tmp_path)
    (row,) = cells((tmp_path / "table.csv").read_text(), WORDS)
    assert (row["system"], row["n_graded"]) == (system, "2")
    assert float(row["conductor_tokens"]) > 0


def test_an_old_training_is_drawn(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "train", "--plot", training, "--to", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs
def test_an_old_training_whose_suites_have_grown_says_so_and_stays_as_it_is(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for needed in ("torch", "trl"):
        pytest.importorskip(needed, reason="needs torch: pip install '.[train]'")
    out = tmp_path / "training"
    shutil.copytree(training, out)
    before = (out / "metrics.jsonl").read_text()
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    resume = ["train", training.parent / "tiny.toml", "--out", out, "--resume"]
    assert main([str(word) for word in resume]) == 2
    refused = capsys.readouterr().err
    assert "practice-integer 3-A (now 6-A)" in refused
    assert "or begin anew with --out" in refused
    assert (out / "metrics.jsonl").read_text() == before
