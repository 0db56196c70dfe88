"""An audit of what was served: strict where nothing needs a log, and nothing passes unseen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.ledger.kept_texts import texts_path
from podium.reports.audit import audit
from tests.harness.ledger.served_journal import Server, Told, served, trace_of
from tests.reports.audit.audited_run import edit_journal, failing, of_kind, said

Json = dict[str, Any]
ASKED = "What is the sum of 4 and 9?"
OF_LOGS = {"I2", "I3", "I4", "I10", "I15", "I16", "I17", "I18"}


def test_what_was_served_and_stopped_gracefully_passes_a_strict_audit(tmp_path: Path) -> None:
    served(tmp_path, ASKED, "What is 6 times 7?")
    found = audit(tmp_path, strict=True)
    by_status: dict[str, set[str]] = {}
    for one in found.verdicts:
        by_status.setdefault(one.status, set()).add(one.invariant)
        assert one.status == "pass" or one.reasons, one
    assert by_status == {
        "pass": {f"I{n}" for n in range(1, 18)} - OF_LOGS,
        "not applicable": OF_LOGS,
    }
    assert found.table.tokens["ledger"][0] > 0
    assert {*found.table.causes["runs"]} == {"calls of requests that were served"}


def test_texts_that_were_kept_are_held_against_the_journal(tmp_path: Path) -> None:
    served(tmp_path, ASKED, keep_texts=True)
    assert said(audit(tmp_path, strict=True), "I15") == "pass"
    (journal,) = tmp_path.glob("ledger/*/*.jsonl")
    path = texts_path(journal)
    path.write_text(path.read_text().replace("sum of 4", "sum of 5"))
    assert failing(tmp_path) == {"I15"}
    assert f"sample {trace_of(1)} epoch 1: its question does not match" in said(
        audit(tmp_path), "I15"
    )
    path.write_text(path.read_text().replace(trace_of(1), trace_of(7)))
    assert "no journal has the request" in said(audit(tmp_path), "I15")


def cheaper(line: Json) -> Json:
    return {**line, "usd": "0.0000001"}


def fewer(line: Json) -> Json:
    return {**line, "usage": {**line["usage"], "output": 1}}


def another_price(line: Json) -> Json:
    prices = line["prices"]
    rates = {name: {**one, "output": "1"} for name, one in prices["usd_per_mtok"].items()}
    return {**line, "prices": {**prices, "usd_per_mtok": rates}}


@pytest.mark.parametrize(
    ("kind", "change", "found"),
    [
        pytest.param("outcome", cheaper, {"I5"}, id="dollars"),
        pytest.param("outcome", fewer, {"I1", "I5"}, id="tokens"),
        pytest.param("book", another_price, {"I5"}, id="prices"),
        pytest.param("answer", lambda line: {**line, "steps": 3}, {"I7"}, id="steps"),
        pytest.param("request", lambda line: None, {"I7"}, id="a request that is gone"),
        pytest.param("intent", lambda line: {**line, "scope": "inference"}, {"I7"}, id="scope"),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_line_that_was_changed_is_found(
    tmp_path: Path,
    kind: str,
    change: Callable[[Json], Json | None],
    found: set[str],
    whole: bool,
) -> None:
    served(tmp_path, ASKED)
    edit_journal(tmp_path, of_kind(kind, change), whole=whole)
    assert failing(tmp_path) >= {*found, "I14"}


def test_a_killed_server_leaves_calls_that_are_named_as_those_of_a_run(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.take(trace_of(1), ASKED)
    server.take(trace_of(2), ASKED, Told(ends=False))
    (path,) = tmp_path.glob("ledger/*/*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"kind":"outcome"' in lines[-1]
    path.write_bytes(b"".join(lines[:-1]))
    found = audit(tmp_path)
    assert found.ok
    assert (found.table.counts["in flight"], found.table.counts["unknown"]) == (1, 1)
    assert "attempts that may have been billed, with an upper bound" in said(found, "I9")
    assert "requests without an end: in flight, or their process was killed" in said(found, "I7")
    assert "no manifest" in said(found, "I14")
    assert failing(tmp_path, strict=True) == {"I9", "I14"}
    assert main(["manifest", "write", str(tmp_path)]) == 0
    assert failing(tmp_path, strict=True) == {"I9"}


def test_a_request_that_was_dropped_by_a_server_that_stopped_in_good_order_is_weak(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    server.take(trace_of(1), ASKED, Told(ends=False))
    server.stop()
    assert failing(tmp_path, strict=True) == {"I7"}
    assert "although their process ended normally" in said(audit(tmp_path), "I7")
