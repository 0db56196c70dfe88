"""The audit page: its figures are the audit's, faults lead to queries, private texts stay out."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from podium.cli import main
from podium.harness.ledger.manifest import write_manifest
from podium.reports.audit import as_json, audit
from podium.reports.audit.audit_report import COUNTS
from podium.reports.report import report_of
from podium.reports.site.audit_page import MOST, audit_context
from podium.reports.site.index import SiteBlock, site_blocks
from podium.reports.site.pages import SiteFrame, render_page
from tests.harness.ledger.test_ledger import cached
from tests.harness.runs import Exam, sit, steps
from tests.providers import flaky as moody
from tests.reports.audit.audited_run import Json, edit_journal, of_kind, rows_below, sat
from tests.reports.audit.invoice_exports import own_csv
from tests.reports.audit.test_audit_runs import once
from tests.reports.site.page_tables import tables_in

FRAME = SiteFrame(pages=(("audit.html", "Audit"),), made="Made by a test.")


def page_of(*folders: Path) -> str:
    """Return the audit page of some directories."""
    return page_with(list(site_blocks(report_of(folders).shown)), *folders)


def page_with(blocks: Sequence[SiteBlock], *folders: Path) -> str:
    """Return the same beside some blocks; runs that podium did not make have none."""
    context = audit_context({folder: audit(folder) for folder in folders}, blocks)
    return render_page("audit.html", site=FRAME, **context)


def tampered(folder: Path, said: str = "scripted/other") -> Path:
    """Change one word of every outcome of a run's journal."""

    def changed(line: Json) -> Json:
        return {**line, "served_model": said}

    edit_journal(folder, of_kind("outcome", changed))
    return folder


def test_every_figure_of_the_page_is_that_of_the_audits_json(tmp_path: Path) -> None:
    sat(tmp_path, crew=once("Say 2"), settings={"retry_on_error": 1})
    told: Any = json.loads(as_json(audit(tmp_path)))["reconciliation"]
    tables = tables_in(page_of(tmp_path))
    _, *counts = tables["Calls, attempts and records of them"]
    meanings = {meaning: name for name, meaning in COUNTS}
    shown = {meanings[meaning]: int(number) for number, meaning in counts}
    assert shown == {name: told["counts"].get(name, 0) for name in shown}
    (usd,), (ways,) = told["usd"].values(), told["billing"].values()
    _, *calls = tables["From calls to those that were billed"]
    numbers = {label: int(number) for label, number, _ in calls}
    assert numbers["calls recorded before they were sent"] == told["counts"]["intents"]
    assert numbers["− without a known end: billed within a range"] == usd["unknown"] == 1
    assert numbers["calls billed"] == ways["at list price"]["calls"]
    _, *dollars = tables["US dollars of live inference"]
    figures = [figure for _, figure, _ in dollars]
    assert figures == [usd["listed"], usd["low"], usd["high"] or "nothing bounds it"]
    heads, *tokens = tables[next(name for name in tables if name.startswith("Tokens by record"))]
    names = [head.replace(" ", "_") for head in heads[1:]]
    lost, whole = (
        [str(one[name]) for name in names]
        for one in (
            told["ledger_less"]["samples"]["calls that no log has"],
            told["tokens"]["ledger"],
        )
    )
    assert ["+ calls that no log has", *lost] in tokens
    assert ["ledger", *whole] in tokens


def test_a_refused_attempt_is_taken_from_what_was_billed(tmp_path: Path) -> None:
    moody.sat(tmp_path, ["q1: 429 500 answer", "q2: answer"])
    _, *rows = tables_in(page_with((), tmp_path))["From calls to those that were billed"]
    assert {label: number for label, number, _ in rows} == {
        "calls recorded before they were sent": "2",
        "+ attempts after a failed attempt": "2",
        "attempts in the ledger, a row each": "4",
        "− refused by the provider: not billed": "2",
        "calls billed": "2",
    }


def test_what_caches_saved_stands_between_list_and_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    run = tmp_path / "run"
    sit(run, "single:sage", solver=cached(), epochs=2, settings={"max_samples": 1})
    told: Any = json.loads(as_json(audit(run)))["reconciliation"]
    usd, kept = told["usd"]["live inference"], told["billing"]["live inference"]
    _, *rows = tables_in(page_of(run))["US dollars of live inference"]
    assert [figure for _, figure, _ in rows] == [
        usd["listed"], f"-{kept['from the local cache']['listed']}", usd["total"],
    ]  # fmt: skip


def test_dollars_by_how_they_were_billed_add_up_to_those_of_their_scope(tmp_path: Path) -> None:
    moody.sat(tmp_path, ["q1: 429 answer", "q2: die", "q3: answer"])
    table = audit(tmp_path).table
    for name, ways in table.billing.items():
        whole = table.dollars[name]
        assert sum(one.calls for one in ways.values()) == whole.calls
        assert sum(one.usd for one in ways.values()) == whole.usd
    assert sum(one.calls for one in table.dollars.values()) == table.counts["attempts"]


def test_bars_of_one_page_share_a_scale_that_stands_above_them(tmp_path: Path) -> None:
    sit(tmp_path / "small", "single:sage", limit=1)
    sit(tmp_path / "large", "single:sage", limit=4)
    page = BeautifulSoup(page_of(tmp_path / "small", tmp_path / "large"), "html.parser")
    usd = f"{4 * Decimal(str(tables_in(str(page))['US dollars of live inference'][1][1])):f}"
    for table, (end, width) in zip(
        page.select(".waterfall"),
        [("4", "25.0"), (usd, "25.0"), ("4", "100.0"), (usd, "100.0")],
        strict=True,
    ):
        assert table.select("th.way")[0].get_text() == f"bar, from 0 to {end}"
        assert {str(one["width"]) for one in table.select("rect")} - {"0.0"} == {width}


def test_a_clean_run_says_so_in_one_sentence(tmp_path: Path) -> None:
    sat(tmp_path)
    write_manifest(tmp_path)
    page = page_of(tmp_path)
    assert "No invariant fails: 15 hold, none is weak, 3 do not apply." in page
    assert "✕" not in page


def test_what_fails_is_named_first_and_its_rows_lead_to_their_queries(tmp_path: Path) -> None:
    sat(tmp_path / "good")
    sat(tmp_path / "bad")
    page = page_of(tmp_path / "good", tampered(tmp_path / "bad"))
    first, second = re.findall(r"</?b>: ([^<]*)", page)[:2]
    assert first.startswith("1 of 18 invariants fails: I4 log = ledger;")
    assert second.startswith("No invariant fails")
    _, *rows = tables_in(page)["Where I4 does not hold"]
    (verdict,) = [one for one in audit(tmp_path / "bad").verdicts if one.invariant == "I4"]
    assert [tuple(row) for row in rows] == [
        (one.task, one.where, one.said) for one in verdict.faults
    ]
    assert 'href="query.html#/q/numbers/q1/1?sys=pair"' in page
    assert page.count('href="query.html#/q/') == len(rows) < MOST


def test_of_a_private_suite_no_text_that_a_fault_quotes_is_shown(tmp_path: Path) -> None:
    sat(tmp_path, exam=Exam(publishable=False))
    page = page_of(tampered(tmp_path, "CANARY"))
    assert "CANARY" in str(audit(tmp_path).verdicts)
    assert "CANARY" not in page
    assert "may not be published" in page


def test_names_and_faults_are_text_and_never_html(tmp_path: Path) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    sat(folder)
    page = page_of(tampered(folder, "</script><script>alert(2)</script>\u202e"))
    assert "<img" not in page
    assert "<script" not in page
    assert "\u202e" not in page


def test_a_run_without_a_price_says_that_no_dollars_are_known(tmp_path: Path) -> None:
    worker = {"card": "", "knowledge_cutoff": "unknown", "config": {}, "model": "scripted/sage"}
    workers = {"sage": {**worker, "price": "scripted/unheard-of"}}
    sit(tmp_path, "single:sage", steps("sage"), workers=workers)
    page = page_of(tmp_path)
    assert "calls have no price, so no dollars are known" in page
    assert not any(name.startswith("US dollars") for name in tables_in(page))


def test_an_audits_page_ends_at_the_invoice_that_it_was_held_against(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sat(tmp_path / "run")
    rows = rows_below(tmp_path / "run")
    more = replace(rows[0], usd=(rows[0].usd or Decimal(0)) + 1)
    bill, out = tmp_path / "usage.csv", tmp_path / "page"
    bill.write_text(own_csv([more, *rows[1:]]))
    words = ["audit", str(tmp_path / "run"), "--invoice", str(bill), "--site", str(out)]
    assert main([*words, "--whole-account"]) == 1
    assert capsys.readouterr().out.strip().endswith("page/audit.html")
    page = (out / "audit.html").read_text()
    _, *bars = tables_in(page)["US dollars by the ledger and by the invoice"]
    ours = sum((row.usd or Decimal(0) for row in rows), Decimal(0))
    assert [(label, Decimal(figure)) for label, figure, _ in bars] == [
        ("in the ledger, in the invoice's buckets", ours),
        ("+ on the invoice alone", Decimal(1)),
        ("on the invoice", ours + 1),
    ]
    assert "They do not agree." in page
    assert "I10 invoice" in re.findall(r"</b>: ([^<]*)", page)[0]
    assert "query.html" not in page
    assert main(["audit", str(tmp_path / "run"), "--site", str(tmp_path / "run")]) == 2
    assert "was not written by podium; name another" in capsys.readouterr().err
