"""A report warns of counts of tokens that cannot be, by the rule that an audit fails them by."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.cli import main
from tests.harness.faulty_run import Left, run
from tests.providers import CLIENTS_WARN, Act, too_much_reasoning, wrong_total
from tests.reports.audit.audited_run import Json, edit_samples, failing, sat

pytestmark = CLIENTS_WARN


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """A run whose provider says a wrong total, more reasoning than output, and the truth."""
    script = [wrong_total(), too_much_reasoning(), Act()]
    return run(tmp_path_factory.mktemp("said"), script, limit=3)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran") / "run"
    sat(folder, "pair")
    return folder


def reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a report prints, on one line."""
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_report_warns_of_counts_that_an_audit_fails(
    said: Left, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said.failing == {"I1"}
    warning = "impossible token counts in 2 calls (a sum above or below its parts)"
    assert f"warning: single:olive: {warning}" in reported(said.folder, capsys)
    assert warning in (said.folder / "report" / "table.md").read_text()


def input_up(usage: Json) -> None:
    usage["input_tokens"] += 1


def output_up(usage: Json) -> None:
    usage["output_tokens"] += 1


@pytest.mark.parametrize("change", [input_up, output_up])
def test_a_report_warns_of_a_sample_whose_total_is_above_its_calls(
    change: Callable[[Json], None], ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")

    def raised(sample: Json) -> None:
        if sample["id"] == "q1":
            change(next(iter(sample["model_usage"].values())))

    edit_samples(folder, raised)
    assert "I2" in failing(folder)
    said = reported(folder, capsys)
    assert "impossible totals of Inspect in 1 sample (above their calls)" in said


def test_a_report_of_true_counts_warns_of_nothing(
    ran: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "impossible" not in reported(ran, capsys)
