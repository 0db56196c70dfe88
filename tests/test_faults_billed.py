"""The ledger of a run held against the provider's own bill, request by request."""

from pathlib import Path

from faulty_run import ONE_SHORT_TRY, TWO_TRIES, Left, run
from providers import CLIENTS_WARN, dropping, failing, ok, rate_limited, stalling

from harness.invoices import Options, Reconciliation, read_invoice, reconcile
from harness.records import Usage

pytestmark = CLIENTS_WARN

TOOK = Usage(input=100, output=40, cache_read=30, reasoning=12)


def held_against(left: Left, folder: Path) -> Reconciliation:
    """Compare a run with the bill of the server that it asked."""
    invoice = read_invoice(left.bill.write_csv(folder / "bill.csv"))
    return reconcile(left.rows, invoice, Options(whole_account=True))


def test_a_run_with_refused_tries_is_billed_what_its_ledger_says(tmp_path: Path) -> None:
    script = {
        "gpt-5-mini": [rate_limited(), ok(usage=TOOK)],
        "claude-sonnet-5": [failing(529), ok(usage=TOOK)],
        "gemini-2.5-pro": [failing(500), ok(usage=TOOK)],
    }
    left = run(tmp_path, script, "moa-lite", TWO_TRIES)
    found = held_against(left, tmp_path)
    assert found.by == "request id"
    assert found.faults == ()
    assert len(left.bill.billed) == 4


def test_a_stalled_request_on_the_bill_is_within_the_ledgers_range(tmp_path: Path) -> None:
    left = run(tmp_path, [stalling()], settings=ONE_SHORT_TRY)
    found = held_against(left, tmp_path)
    (row,) = found.rows
    assert row.ok
    assert row.explained_by != ()


def test_a_request_that_only_the_provider_saw_is_found_by_its_bill(tmp_path: Path) -> None:
    left = run(tmp_path, [dropping()], "single:quince")
    assert left.failing == set()
    found = held_against(left, tmp_path)
    assert "not in the ledger" in {fault.kind for fault in found.faults}
