"""The witness makes a table's figures again without any code of podium's, and notices a wrong sum.

Each corruption is a change to the text of `totals.py` in a copy of the package; the report is then
made by a process that runs the copy (wrong_sums.py). Nothing is patched.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.budget import Spend
from podium.harness.context import run_context
from podium.harness.ledger.journal import Head
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.ledger.witness import figures
from podium.harness.prices import Book
from podium.harness.prices.cost import Price, Rates, Tier
from tests import ROOT
from tests.harness.faulty_run import Left
from tests.harness.runs import sit
from tests.providers import CLIENTS_WARN
from tests.reports.small_reports import report

pytestmark = CLIENTS_WARN

WITNESS = ROOT / "harness" / "ledger" / "witness.py"
TOTALS = Path("podium") / "harness" / "ledger" / "totals.py"
LINES = 200
WRONG_SUMS = Path(__file__).with_name("wrong_sums.py")
BEFORE = ROOT / "tests" / "written_before"

CORRUPTIONS = {
    "a call counts twice": ("self.calls += 1", "self.calls += 2"),
    "output tokens are the input's": (
        "self.output += call.output",
        "self.output += call.input_uncached or 0",
    ),
    "reasoning is forgotten": ("self.reasoning += call.reasoning", "self.reasoning += 0"),
    "cached input is no input": (
        "else self.input + self.cache_read + self.cache_write",
        "else self.input",
    ),
    "the discount of a cache is in the headline": ("usd=all_calls.listed", "usd=all_calls.billed"),
    "what was paid is at list price": ("self.usd += call.usd", "self.usd += call.usd_list or ZERO"),
    "dollars are rounded to cents": (
        "self.usd_list += call.usd_list",
        "self.usd_list += round(call.usd_list, 2)",
    ),
    "workers are taken for the conductor": ("call.role == CONDUCTOR", "call.role != CONDUCTOR"),
    "the last question is skipped": (
        "graded = [attempt for attempt in run.attempts if attempt.graded]",
        "graded = [attempt for attempt in run.attempts[:-1] if attempt.graded]",
    ),
    "only the first epoch counts": (
        "graded = [attempt for attempt in run.attempts if attempt.graded]",
        "graded = [attempt for attempt in run.attempts if attempt.graded and attempt.epoch == 1]",
    ),
    "a mean is divided by one more": (
        "sum(numbers) / len(values)",
        "sum(numbers) / (len(values) + 1)",
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rehearsal of many systems in two epochs, and a live run with retries and cached tokens."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("run", "live"):
        with tarfile.open(BEFORE / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def few(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on one suite, without a router and the oracle."""
    folder = tmp_path_factory.mktemp("few") / "runs"
    others = shutil.ignore_patterns("*practice-choice*", "*router-knn*", "*oracle*", "selection")
    shutil.copytree(runs, folder, ignore=others)
    return folder


@pytest.fixture(scope="module")
def wrong(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the runs for each corruption, by its number."""
    code, out = tmp_path_factory.mktemp("code"), tmp_path_factory.mktemp("wrong")
    shutil.copytree(ROOT / "podium", code / "podium", symlinks=True)
    for room in (path for path in (code / "podium").iterdir() if path.is_symlink()):
        room.unlink()
        if room.name == "harness":
            shutil.copytree(ROOT / "harness", room)
        else:
            room.symlink_to(ROOT / room.name)
    for compiled in (code / TOTALS.parent / "__pycache__").glob("totals.*"):
        compiled.unlink()
    done = subprocess.run(
        [sys.executable, WRONG_SUMS, code, few, out],
        input=json.dumps(list(CORRUPTIONS.values())),
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


def reported(runs: Path, out: Path) -> Path:
    """Report some runs, and return the table."""
    assert main(["report", str(runs), "--out", str(out)]) == 0
    return out / "table.json"


def verified(*words: Path) -> subprocess.CompletedProcess[str]:
    """Run the witness by itself: isolated, so that it could import nothing of ours."""
    return subprocess.run(
        [sys.executable, "-I", WITNESS, *words], capture_output=True, text=True, check=False
    )


def test_the_witness_is_one_short_file_of_the_standard_library_and_duckdb() -> None:
    text = WITNESS.read_text()
    assert len(text.splitlines()) <= LINES
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or ".").split(".")[0])
    assert found - sys.stdlib_module_names == {"duckdb"}


def test_every_archive_holds_the_witness(clean: Left) -> None:
    assert (clean.folder / "verify.py").read_bytes() == WITNESS.read_bytes()
    assert main(["manifest", "verify", str(clean.folder)]) == 0


@pytest.mark.parametrize(
    "words", [(), ("runs",), ("runs", "absent.json"), ("runs", "no.json"), "abc"]
)
def test_without_a_table_it_says_in_one_line_what_it_needs(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "no.json").write_text("no table")
    done = verified(*(tmp_path / word for word in words))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"No table \(.+\)\. Run .+: python verify\.py DIR TABLE\n", done.stderr)


@pytest.mark.slow
def test_it_makes_the_figures_of_a_true_table_again(runs: Path, tmp_path: Path) -> None:
    table = reported(runs, tmp_path)
    done = verified(runs, table)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(table.read_text())["rows"]
    for row in rows:
        for name in ("usd_per_query", "tokens_out", "accuracy"):
            assert f"{row['suite']}, {row['system']}, {name}: {row[name]}\n" in done.stdout
    assert "in the table" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CORRUPTIONS)), ids=CORRUPTIONS)
def test_a_wrong_sum_is_noticed(number: int, few: Path, wrong: Path) -> None:
    right, _ = list(CORRUPTIONS.values())[number]
    assert (ROOT / TOTALS).read_text().count(right) == 1
    said = [line for line, same in figures(few, wrong / str(number) / "table.json") if not same]
    assert said
    assert all("in the table" in line for line in said)


@pytest.mark.slow
def test_it_takes_runs_whose_calls_failed(unanswered: Left, tmp_path: Path) -> None:
    done = verified(unanswered.folder, reported(unanswered.folder, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_audit_holds_the_report_that_lies_there_against_the_files(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "live", run)
    assert main(["report", str(run)]) == 0
    assert main(["audit", str(run)]) == 0
    table = run / "report" / "table.json"
    data = json.loads(table.read_text())
    data["rows"][0]["usd_per_query"] *= 2
    table.write_text(json.dumps(data))
    capsys.readouterr()
    assert main(["audit", str(run)]) == 1
    assert "usd_per_query" in capsys.readouterr().out


DEARER = Rates(Decimal("3"), Decimal("15"))


def price(**more: Any) -> Price:
    """Two dollars in and ten out; every question below takes two tokens in and one out."""
    return Price(Decimal("2"), Decimal("10"), **more)


CHARGES: dict[str, tuple[Price | None, float | None]] = {
    "a prompt in a tier": (price(tiers=(Tier(1, DEARER),)), 21e-6),
    "a prompt as long as a tier's bound": (price(tiers=(Tier(2, DEARER),)), 14e-6),
    "the lower of two tiers": (
        price(tiers=(Tier(1, Rates(Decimal("2.5"), Decimal("12"))), Tier(2, DEARER))),
        17e-6,
    ),
    "a price per request": (price(request=Decimal("0.01")), 0.010014),
    "a price that was carried back": (price(evidence="carried-back"), 14e-6),
    "a price of a later day": (price(launched="2027-01-01"), 14e-6),
    "reasoning that nobody counted": (price(reasoning=Decimal("5")), None),
    "no price": (None, None),
}
"""A price, and the dollars of a question."""


@pytest.mark.parametrize("name", CHARGES)
def test_it_makes_dollars_again_as_the_book_charges_them(name: str, tmp_path: Path) -> None:
    charged, expected = CHARGES[name]
    prices = {"scripted/sage": charged} if charged else {}
    book = Book("charged", "2026-01-02", "made up for tests", prices, "2" * 64)
    logs, system = tmp_path / "logs", "single:sage"
    head = Head(f"numbers {system}", "numbers", system, "live", book.name, book.sha256)
    with (
        closing(TaskJournal(logs, head)) as journal,
        run_context(log_dir=logs, journal=journal, spend=Spend(book)),
    ):
        sit(logs, system, prices=book.as_json())
    report(tmp_path)
    table = tmp_path / "report" / "table.json"
    (row,) = json.loads(table.read_text())["rows"]
    said = None if expected is None else pytest.approx(expected, abs=1e-9)
    assert (row["usd_per_query"], row["usd_paid_per_query"]) == (said, said)
    again = list(figures(logs, table))
    assert [line for line, same in again if not same] == []
    assert any(", usd_per_query: " in line for line, _ in again)
