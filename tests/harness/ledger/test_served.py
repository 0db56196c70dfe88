"""Requests to a server, from its journals alone: in memory, one by one, and all of them."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.ledger.call import canonical
from podium.harness.ledger.details import QuestionFilter, details, trace_json
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.journal import read_lines
from podium.harness.ledger.kept_texts import kept_texts, texts_path
from podium.harness.ledger.ledger_tables import tables_of
from podium.harness.ledger.runs import system_runs_below
from podium.harness.ledger.served import read_trace, rows_from, served_requests
from tests.harness.ledger.served_journal import Server, Told, served, trace_of
from tests.harness.runs import sit
from tests.reports.audit.audited_run import edit_journal, of_kind

ASKED, PRODUCT = "What is the sum of 4 and 9?", "What is 6 times 7?"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two requests that were answered, one refused, one cut off, one in flight."""
    server = Server(tmp_path_factory.mktemp("served"))
    server.take(trace_of(1), ASKED)
    server.take(trace_of(2), PRODUCT)
    server.take(trace_of(3), "", Told(429, "too_many"))
    server.take(trace_of(4), "", Told(499, "cancelled"))
    server.take(trace_of(5), "", Told(0, ends=False))
    server.stop()
    return server.log_dir


def shown(folder: Path, question: str, *more: str) -> tuple[int, str]:
    """Return what `podium audit --query` comes to."""
    return main(["audit", str(folder), "--query", question, *more]), question


def test_a_request_read_alone_is_the_one_that_reading_everything_gives(log_dir: Path) -> None:
    every = [*served_requests(log_dir)]
    assert [one.trace for one in every] == [trace_of(number) for number in range(1, 6)]
    for one in every:
        alone = read_trace(log_dir, one.trace)
        assert alone is not None
        assert [row.as_json() for row in alone.rows] == [row.as_json() for row in one.rows]
        assert alone.facts == one.facts
        assert alone.answer == one.answer


def test_a_request_says_what_was_asked_and_how_it_ended(log_dir: Path) -> None:
    one, _, refused, gone, flying = served_requests(log_dir)
    assert (one.system, one.model, one.dialect, one.key) == ("pair", "podium/pair", "chat", "alice")
    assert (one.status, one.error, one.steps, one.depth, one.stopped) == (200, None, 2, 2, None)
    assert (f"{one.day:%Y%m%d}", one.latency_s) == (one.journal.path.name[:8], 0.25)
    assert ASKED not in str(one.plan)
    assert [row.role for row in one.rows] == ["sage", "abacus"]
    assert [each.ending for each in (one, refused, gone, flying)] == [
        *("answered", "refused", "cut off", "in flight"),
    ]
    assert (refused.error, refused.rows, flying.status) == ("too_many", (), None)


def test_lines_in_memory_give_the_rows_that_files_give(log_dir: Path, tmp_path: Path) -> None:
    (files,) = system_runs_below(log_dir)
    (path,) = files.journals
    head, book, *rest = read_lines(path)
    intents = (one for one in rest if one["kind"] == "intent")
    calls = {one["call"] for one in intents if one["sample"]["uuid"] == trace_of(2)}
    own = [one for one in rest if one.get("call") in calls]
    rows = rows_from([book, *own], head)
    told = [replace(row, journal=path.name) for row in rows]
    assert told == [row for row in rows_of(files) if row.question == trace_of(2)]
    assert {row.scope for row in rows} == {"serving"}
    assert all(row.usd for row in rows)
    assert rows == rows_from(own, head, Server(tmp_path).book)


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(trace_of(9), id="nobody asked it"),
        pytest.param(trace_of(1, "20200101"), id="another day"),
        pytest.param(trace_of(1, "20269999"), id="no day"),
        pytest.param("req-../../etc", id="no id"),
        pytest.param('"', id="part of every line"),
    ],
)
def test_what_is_no_request_here_is_none(log_dir: Path, trace: str) -> None:
    assert read_trace(log_dir, trace) is None
    assert read_trace(log_dir / "nothing", trace) is None


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_a_request_is_found_across_midnight(tmp_path: Path, days: int) -> None:
    (trace,) = served(tmp_path, ASKED)
    (path,) = tmp_path.glob("ledger/*/*.jsonl")
    day = date.fromisoformat(trace[4:12]) + timedelta(days=days)
    path.rename(path.with_name(f"{day:%Y%m%d}{path.name[8:]}"))
    assert read_trace(tmp_path, trace) is not None


def test_calls_whose_ends_come_after_the_answer_are_there(tmp_path: Path) -> None:
    # A client went away: its calls are waited for, and billed.
    server = Server(tmp_path)
    server.take(trace_of(1), ASKED)
    server.take(trace_of(2), PRODUCT)
    server.stop()
    path = server.log_dir.glob("ledger/*/*.jsonl").__next__()
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b'"kind":"outcome"' in line)
    path.write_bytes(b"".join([*lines[:first], *lines[first + 1 :], lines[first]]))
    one = read_trace(tmp_path, trace_of(1))
    assert one is not None
    assert [row.error for row in one.rows] == [None, None]
    path.write_bytes(b"".join([*lines[:first], *lines[first + 1 :]]))
    killed = read_trace(tmp_path, trace_of(1))
    assert killed is not None
    assert sum(row.billable == "unknown" for row in killed.rows) == 1


def test_a_journal_without_prices_of_its_own_is_read_by_its_books_name(tmp_path: Path) -> None:
    (first, second) = served(tmp_path, ASKED, PRODUCT)
    edit_journal(tmp_path, of_kind("book", lambda line: None))
    for trace in (first, second):
        one = read_trace(tmp_path, trace)
        assert one is not None
        assert one.trace == trace
        assert all(row.usd for row in one.rows)


def test_a_trace_is_what_the_audit_of_a_query_writes(log_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "query.json"
    assert main(["audit", str(log_dir), "--query", trace_of(1), "--json", str(out)]) == 0
    (told,) = json.loads(out.read_text())["queries"]
    query = read_trace(log_dir, trace_of(1))
    assert query is not None
    trace = trace_json(query, log_dir)
    assert json.loads(canonical(trace)) == told
    assert [step["worker"] for step in told["steps"]] == ["sage", "abacus"]
    assert [step["reads"] for step in told["steps"]] == [[], [1]]
    assert (told["purpose"], told["verdict"], told["served"]["status"]) == (
        *("serving", "unscored", 200),
    )
    assert (told["sums"]["calls"], told["sums"]["worker_in"]) == (2, trace["sums"]["worker_in"])
    texts = [told["input"], told["answer"], *(call["prompt"] for call in told["calls"])]
    assert {*texts, *(step["subtask"] for step in told["steps"])} == {None, ""}
    assert ASKED not in out.read_text()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "asked as podium/pair (chat, key alice); answered with status 200"),
        (1, "verdict ? unscored: served, not graded\n"),
        (3, "served, not graded (refused with status 429: too_many)"),
        (4, "served, not graded (cut off with status 499: cancelled)"),
        (5, "served, not graded (in flight, or its process was killed)"),
    ],
)
def test_a_terminal_shows_a_request_as_it_ended(
    log_dir: Path, capsys: pytest.CaptureFixture[str], number: int, said: str
) -> None:
    assert main(["audit", str(log_dir), "--query", trace_of(number), "--brief"]) == 0
    assert said in capsys.readouterr().out


def test_an_unknown_request_is_told_by_those_that_are_near(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(log_dir), "--query", trace_of(5)[:-1] + "6"]) == 2
    assert f"(near: {trace_of(5)}" in " ".join(capsys.readouterr().err.split())


def test_runs_and_requests_in_one_directory_are_both_found(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=1)
    (trace,) = served(tmp_path, ASKED)
    (run,), (request,) = (details(tmp_path, QuestionFilter(one)) for one in ("q1", trace))
    assert (run.served, request.row.purpose) == (None, "serving")
    assert details(tmp_path, QuestionFilter(f"served/{trace}", "pair")) == [request]


def test_an_exported_request_is_a_query_of_its_own_purpose(log_dir: Path) -> None:
    (files,) = system_runs_below(log_dir)
    tables, _ = tables_of(files)
    queries, calls = (tables[name].to_pylist() for name in ("queries", "calls"))
    assert {(one["suite"], one["purpose"]) for one in queries} == {("served", "serving")}
    assert len(queries) == 5
    assert {(one["scope"], one["counted"]) for one in calls} == {("serving", True)}


def changed(path: Path, **values: Any) -> None:
    """Change the first line of texts."""
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **values}), *rest, ""]))


def test_kept_texts_are_shown_as_far_as_the_journal_has_their_digests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, other = served(tmp_path, ASKED, PRODUCT, keep_texts=True)
    queries = {one.trace: one for one in served_requests(tmp_path)}
    path = texts_path(queries[trace].journal.path)
    kept = kept_texts(queries[trace])
    assert (kept.input, kept.refused, len(kept.calls)) == (ASKED, [], 2)
    assert "Check it." in str(kept.plan)
    calls = json.loads(path.read_text().splitlines()[0])["calls"]
    calls[0]["reply"] = "The answer is 14."
    changed(path, answer="The answer is 14.", plan="[]", input="What is it?", calls=calls)
    assert main(["audit", str(tmp_path), "--query", trace]) == 0
    said = capsys.readouterr().out
    for word in ("question", "plan", "answer"):
        assert f"a text is not shown: its {word} does not match the digest" in said
    assert f"a text is not shown: the texts of call {calls[0]['call']} do not match" in said
    assert "| The answer is 14." not in said
    assert "| Check it." in said, "what holds is shown"
    assert kept_texts(queries[other]).refused == []
    changed(path, calls=5)
    refused = kept_texts(queries[trace]).refused
    assert refused == ["its line in the file of stored texts is malformed"]
