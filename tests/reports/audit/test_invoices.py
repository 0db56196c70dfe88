"""A ledger and an invoice agree to the last token, or the difference has a name."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import tests.reports.audit.invoice_exports as exports
from podium.harness.errors import UserError
from podium.harness.ledger.call import Call
from podium.reports.audit.invoices import read_invoice
from podium.reports.audit.reconcile import (
    InvoiceOptions,
    Reconciliation,
    reconcile,
    reconciliation_text,
)
from tests.reports.audit.invoice_rows import in_flight, refused, row, rows_for

ANYONE = InvoiceOptions()
NEXT_DAY = "2026-02-02T10:00:00+00:00"


def held_against(
    tmp_path: Path,
    rows: list[Call],
    billed: list[Call],
    format: str = "openai-usage",
    options: InvoiceOptions = ANYONE,
) -> Reconciliation:
    path = exports.write(billed, format, tmp_path / "export")
    return reconcile(rows, read_invoice(path), options)


def kinds(found: Reconciliation) -> list[str]:
    return [fault.kind for fault in found.faults]


def test_refused_attempts_cache_reads_and_practice_calls_never_go_to_an_invoice(
    tmp_path: Path,
) -> None:
    others = [
        refused(),
        row(cache="read", usd=Decimal(0)),
        row(label="rehearsal", model="rehearsal/sage"),
        row(label="recorded"),
        row(model="anthropic/claude"),
    ]
    found = held_against(tmp_path, [row(), *others], [row()])
    assert found.faults == ()
    assert found.rows[0].ledger == replace(
        found.rows[0].invoice, usd=Decimal("0.000250"), cache_write=0
    )
    assert found.notes[:3] == (
        "1 calls answered from the local cache: left out",
        "2 calls of rehearsal or recorded workers: left out",
        "1 calls of other providers: left out",
    )


def test_a_call_in_flight_explains_a_difference_within_its_range(tmp_path: Path) -> None:
    billed = [row(), row(input_uncached=300, output=900)]
    found = held_against(tmp_path, [row(), in_flight()], billed)
    assert found.ok
    assert found.rows[0].explained_by == (
        "in flight or timed out: 1 calls, 0-1400 tokens, $0-0.0025",
    )


def test_a_call_in_flight_that_was_not_billed_is_no_difference(tmp_path: Path) -> None:
    assert held_against(tmp_path, [row(), in_flight()], [row()]).faults == ()


def test_more_than_a_call_in_flight_can_have_cost_is_a_fault(tmp_path: Path) -> None:
    billed = [row(), row(input_uncached=300, output=1001)]
    found = held_against(tmp_path, [row(), in_flight()], billed)
    assert kinds(found) == ["difference"]
    assert found.faults[0].said == ("output tokens: the invoice has 1011, the ledger 10 (+1001)")


def test_a_call_in_flight_never_explains_that_less_was_billed(tmp_path: Path) -> None:
    found = held_against(tmp_path, [row(), row(), in_flight()], [row()])
    assert "difference" in kinds(found)


def test_a_call_without_a_limit_has_no_bound_and_says_so(tmp_path: Path) -> None:
    flying = in_flight(max_tokens=None, usd_high=None)
    found = held_against(tmp_path, [row(), flying], [row(), row(output=10**6)])
    assert found.ok
    assert "no bound on tokens, no bound on dollars" in found.rows[0].explained_by[0]


def test_an_answer_without_a_count_of_tokens_is_named_apart(tmp_path: Path) -> None:
    silent = row(input_uncached=None, output=None, usd=None, usd_high=Decimal("0.1"))
    found = held_against(tmp_path, [row(), silent], [row(), row()])
    assert found.ok
    assert found.rows[0].explained_by[0].startswith("answered without token counts: 1 calls")


def test_a_call_that_only_the_invoice_has_is_a_fault(tmp_path: Path) -> None:
    found = held_against(tmp_path, [row()], [row(), row(model="openai/gpt-9")])
    assert kinds(found) == ["not in the ledger"]
    assert found.faults[0].where == "2026-02-01T10h gpt-9"


def test_a_call_that_only_the_ledger_has_is_a_fault(tmp_path: Path) -> None:
    later = row(started="2026-02-01T12:00:00+00:00")
    found = held_against(tmp_path, [row(), later], [row()])
    assert kinds(found) == ["not in the invoice"]
    assert found.faults[0].where == "2026-02-01T12h gpt-5-mini"


def test_a_model_that_the_invoice_lacks_is_listed(tmp_path: Path) -> None:
    found = held_against(tmp_path, [row(), row(model="openai/gpt-9")], [row()])
    assert [(one.kind, one.where) for one in found.faults] == [("unmatched model", "openai/gpt-9")]


def test_a_mapping_of_models_can_be_said_and_is_shown(tmp_path: Path) -> None:
    options = InvoiceOptions(models={"openai/mine": "gpt-5-mini"})
    found = held_against(tmp_path, [row(model="openai/mine")], [row()], options=options)
    assert found.ok
    assert found.mapping == (("openai/mine", "gpt-5-mini", "as the user states"),)
    assert "model: openai/mine = gpt-5-mini (as the user states)" in reconciliation_text(found)


def test_a_bill_per_day_holds_all_of_the_day(tmp_path: Path) -> None:
    rows = rows_for("openai-costs", 40)
    found = held_against(tmp_path, rows, rows, "openai-costs")
    assert [one.bucket for one in found.rows] == ["2026-02-01"]
    assert found.ok


def test_a_call_over_midnight_may_be_billed_on_either_day_when_all_days_agree(
    tmp_path: Path,
) -> None:
    late = row(started="2026-02-01T10:59:59.500+00:00")
    early, last = row(), row(started="2026-02-01T11:10:00+00:00")
    moved = replace(late, started="2026-02-01T11:00:01+00:00")
    found = held_against(tmp_path, [early, late, last], [early, moved, last])
    assert found.ok
    assert all("crossed the end of the bucket" in one.explained_by[0] for one in found.rows)
    bigger = replace(moved, output=11)
    assert not held_against(tmp_path, [early, late, last], [early, bigger, last]).ok


def test_buckets_before_and_after_the_run_are_foreign(tmp_path: Path) -> None:
    others = [row(started="2026-01-31T10:00:00+00:00"), row(started=NEXT_DAY)]
    found = held_against(tmp_path, [row()], [row(), *others])
    assert found.ok
    assert len(found.foreign) == 2
    assert found.foreign[0] == "2026-01-31T10h gpt-5-mini: before or after the run"
    assert any("compared as a whole" in note for note in found.notes)


def test_other_projects_and_keys_are_listed_and_left_out(tmp_path: Path) -> None:
    page = json.loads(exports.openai_usage([row()]))
    theirs = json.loads(exports.openai_usage([row(output=5000)], project_id="proj_x"))
    page["data"] += theirs["data"]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(page))
    with pytest.raises(UserError, match=r"several projects or keys \(proj_podium, proj_x, key_p"):
        reconcile([row()], read_invoice(path))
    found = reconcile([row()], read_invoice(path), InvoiceOptions(project=exports.PROJECT))
    assert found.ok
    assert found.foreign == ("project proj_x, key key_podium: 1 buckets, 5100 tokens",)
    with pytest.raises(UserError, match="has no --project 'proj_y'; it has: proj_podium, proj_x"):
        reconcile([row()], read_invoice(path), InvoiceOptions(project="proj_y"))


def test_an_export_that_names_nobody_is_refused_unless_the_account_was_the_runs_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "export.json"
    path.write_text(exports.openai_usage([row()], project_id=None, api_key_id=None))
    with pytest.raises(UserError, match="names no project and no key"):
        reconcile([row()], read_invoice(path))
    assert reconcile([row()], read_invoice(path), InvoiceOptions(whole_account=True)).ok


def test_an_export_that_does_not_tell_models_apart_is_compared_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(exports.openai_usage([row(), row()], model=None))
    rows = [row(), row(model="openai/gpt-9")]
    found = reconcile(rows, read_invoice(path))
    assert found.ok
    assert found.rows[0].model == ""


def test_a_credit_is_listed_and_is_no_traffic(tmp_path: Path) -> None:
    costs = json.loads(exports.openai_costs([row()]))
    refund = {"amount": {"value": -5.25, "currency": "usd"}, "line_item": "credit grant"}
    costs["data"][0]["results"].append({"object": "organization.costs.result", **refund})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(costs))
    found = reconcile([row()], read_invoice(path))
    assert found.ok
    assert found.credits == ("2026-02-01 credit grant: $-5.25",)


def test_rounding_of_the_invoices_amounts_is_named(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(exports.openai_costs([row(usd=Decimal("1.23"))]))
    found = reconcile([row(usd=Decimal("1.2345678"))], read_invoice(path))
    assert found.rows[0].explained_by == ("rounding of 1 amounts: at most $0.005",)
    assert not reconcile([row(usd=Decimal("1.2351"))], read_invoice(path)).ok


def test_a_call_without_a_price_keeps_dollars_from_being_compared(tmp_path: Path) -> None:
    rows = rows_for("csv")
    unpriced = [replace(rows[0], usd=None), *rows[1:]]
    found = held_against(tmp_path, unpriced, rows, "csv")
    assert found.ok
    assert any("1 calls have no price" in said for one in found.rows for said in one.explained_by)
    path = exports.write([row()], "openai-costs", tmp_path / "costs")
    found = reconcile([row(usd=None)], read_invoice(path))
    assert kinds(found) == ["nothing compared"]


def test_a_tolerance_is_said_and_shown(tmp_path: Path) -> None:
    found = held_against(tmp_path, [row()], [row(output=12)], options=InvoiceOptions(tokens=2))
    assert found.rows[0].explained_by == ("output tokens differ by +2, within 2",)
    assert not held_against(
        tmp_path, [row()], [row(output=13)], options=InvoiceOptions(tokens=2)
    ).ok


def test_requests_are_compared_one_by_one_where_the_export_has_their_ids(tmp_path: Path) -> None:
    rows = rows_for("csv")
    swapped = [
        replace(rows[0], output=(rows[0].output or 0) + 7),
        *rows[1:3],
        replace(rows[3], output=(rows[3].output or 0) - 7),
        *rows[4:],
    ]
    found = held_against(tmp_path, swapped, rows, "csv")
    assert [(one.kind, one.where) for one in found.faults] == [
        ("request differs", "req-0"),
        ("request differs", "req-3"),
    ]


def test_requests_that_one_side_lacks_are_named_by_their_ids(tmp_path: Path) -> None:
    rows = rows_for("csv")
    found = held_against(tmp_path, rows[1:], rows[:-1], "csv")
    named = {(one.kind, one.where) for one in found.faults}
    assert ("not in the ledger", "req-0") in named
    assert ("not in the invoice", "req-5") in named


def test_a_call_in_flight_is_resolved_by_its_id(tmp_path: Path) -> None:
    rows = rows_for("csv")
    killed = in_flight(model=rows[0].model, request_id="req-0", started=rows[0].started)
    found = held_against(tmp_path, [killed, *rows[1:]], rows, "csv")
    assert found.ok
    assert "1 calls in flight were found in the invoice by their id" in found.notes


def test_a_refused_request_that_was_billed_is_a_fault(tmp_path: Path) -> None:
    rows = rows_for("csv")
    found = held_against(tmp_path, [replace(rows[0], billable="no"), *rows[1:]], rows, "csv")
    assert "the provider refused it, but the invoice bills it" in found.faults[0].said


def test_an_id_that_comes_twice_on_either_side_is_named(tmp_path: Path) -> None:
    rows = rows_for("csv")
    found = held_against(tmp_path, rows, [*rows, rows[0]], "csv")
    assert "the export bills it 2 times" in {one.said for one in found.faults}
    found = held_against(tmp_path, [*rows, rows[0]], rows, "csv")
    assert "the ledger has it more than once" in {one.said for one in found.faults}


def test_usage_and_costs_may_stand_in_one_file_of_pages_with_wider_buckets(tmp_path: Path) -> None:
    rows = rows_for("anthropic-usage")
    wide = exports.anthropic_usage(rows)
    path = tmp_path / "export.json"
    path.write_text(wide)
    found = reconcile(iter(rows), read_invoice(path))
    assert [one.bucket for one in found.rows] == [f"2026-02-01T{hour}h" for hour in (10, 11, 12)]


def test_the_table_shows_both_sides_and_every_fault(tmp_path: Path) -> None:
    text = reconciliation_text(held_against(tmp_path, [row()], [row(output=11)]))
    assert "compared by bucket and model, project proj_podium, key key_podium, the only" in text
    assert "10 / 11" in text
    assert "FAULT: difference: 2026-02-01T10h gpt-5-mini: output tokens" in text
    assert text.endswith("1 faults.\n")


def test_a_long_ledger_is_added_up_without_being_kept(tmp_path: Path) -> None:
    path = exports.write([row()], "openai-usage", tmp_path / "export")

    def many() -> Iterator[Call]:
        for number in range(20_000):
            time = datetime(2026, 2, 1, 10, number % 60, tzinfo=UTC)
            yield row(started=time.isoformat(), request_id=f"r{number}")

    tracemalloc.start()
    found = reconcile(many(), read_invoice(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.rows[0].ledger.requests == 20_000
    assert peak < 4_000_000
