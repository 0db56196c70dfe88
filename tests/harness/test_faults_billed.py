"""The ledger of a run held against the provider's own bill, request by request."""

from pathlib import Path

import pytest

from podium.reports.audit.invoices import read_invoice
from podium.reports.audit.reconcile import InvoiceOptions, Reconciliation, reconcile
from tests.harness.faulty_run import Left, run
from tests.providers import CLIENTS_WARN, dropping

pytestmark = [CLIENTS_WARN, pytest.mark.slow]


def held_against(left: Left, folder: Path) -> Reconciliation:
    """Compare a run with the bill of the server that it asked."""
    invoice = read_invoice(left.bill.write_csv(folder / "bill.csv"))
    return reconcile(left.rows, invoice, InvoiceOptions(whole_account=True))


def test_a_run_with_refused_tries_is_billed_what_its_ledger_says(
    retried: Left, tmp_path: Path
) -> None:
    found = held_against(retried, tmp_path)
    assert found.by == "request id"
    assert found.faults == ()
    assert len(retried.bill.billed) == 4


def test_what_was_billed_without_a_reply_is_within_the_ledgers_range(
    unanswered: Left, tmp_path: Path
) -> None:
    found = held_against(unanswered, tmp_path)
    assert not any(row.wrong for row in found.rows)
    assert any(row.explained_by for row in found.rows)


def test_a_request_that_only_the_provider_saw_is_found_by_its_bill(tmp_path: Path) -> None:
    left = run(tmp_path, [dropping()], "single:quince")
    assert left.failing == set()
    assert (len(left.rows), len(left.bill.billed)) == (1, 2)
    found = held_against(left, tmp_path)
    assert "not in the ledger" in {fault.kind for fault in found.faults}
