"""A run against a local provider is held against its own bill, as such a provider exports it."""

from dataclasses import replace
from pathlib import Path

import pytest

import tests.reports.audit.invoice_exports as exports
from podium.cli import main
from podium.reports.audit.invoices import read_invoice
from podium.reports.audit.reconcile import Reconciliation, reconcile
from tests.harness.faulty_run import Left
from tests.providers import CLIENTS_WARN
from tests.reports.audit.invoice_rows import billed_rows, of_provider, one_more

USAGE_EXPORTS = ("openai-usage", "openai-usage-csv", "anthropic-usage")

pytestmark = CLIENTS_WARN


def held_against(left: Left, format: str, path: Path, more: int = 0) -> Reconciliation:
    """Reconcile a run with its bill; `more` output tokens are on the first line of the bill."""
    billed = of_provider(billed_rows(left.bill), format)
    billed[0] = replace(billed[0], output=(billed[0].output or 0) + more)
    return reconcile(left.rows, read_invoice(exports.write(billed, format, path)))


@pytest.mark.parametrize("format", USAGE_EXPORTS)
def test_a_run_agrees_with_its_bill_to_the_last_token(
    format: str, clean: Left, tmp_path: Path
) -> None:
    found = held_against(clean, format, tmp_path / "export")
    assert found.faults == ()
    assert all(not one.explained_by for one in found.rows)
    assert any("of other providers" in note for note in found.notes)


@pytest.mark.parametrize("format", USAGE_EXPORTS)
def test_one_token_more_on_the_bill_is_a_difference_with_a_name(
    format: str, clean: Left, tmp_path: Path
) -> None:
    found = held_against(clean, format, tmp_path / "export", more=1)
    (fault,) = found.faults
    assert fault.kind == "difference"
    assert fault.said.startswith("output tokens: the invoice has ")
    assert fault.said.endswith("(+1)")


def test_googles_rows_agree_with_the_tokens_of_a_run(clean: Left, tmp_path: Path) -> None:
    found = held_against(clean, "google-billing", tmp_path / "export")
    assert [one.invoice.output == one.ledger.output for one in found.rows] == [True]
    assert found.faults == ()


@pytest.mark.slow
def test_limits_timeouts_and_silence_are_explained_and_named(
    unanswered: Left, tmp_path: Path
) -> None:
    found = held_against(unanswered, "openai-usage", tmp_path / "export")
    assert found.faults == ()
    explained = [said for one in found.rows for said in one.explained_by]
    assert any(said.startswith("in flight or timed out: 2 calls") for said in explained)
    assert any("answered without token counts: 1 calls" in said for said in explained)


def test_the_audit_prints_the_comparison_and_fails_on_a_token(
    clean: Left, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = of_provider(billed_rows(clean.bill), "openai")
    good = exports.write(rows, "openai-usage", tmp_path / "good.json")
    rows[0] = one_more(rows[0])
    bad = exports.write(rows, "openai-usage", tmp_path / "bad.json")
    folder = str(clean.folder)
    assert main(["audit", folder, "--invoice", str(bad)]) == 1
    assert "bad.json (openai-usage)" in capsys.readouterr().out
    main(["audit", folder, "--invoice", str(good)])
    assert "The ledger and the invoice agree." in capsys.readouterr().out
