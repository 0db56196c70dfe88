"""`podium view` of what was served: figures by system, requests, and each of them in full."""

import json
import re
from pathlib import Path

import pytest

from podium.cli import main
from tests.harness.ledger.served_journal import Server, Told, served, trace_of
from tests.harness.runs import sit
from tests.reports.site.viewed import ask, packed, queries, viewed

GONE = Told(499, "cancelled")


def cells(page: str, system: str) -> list[str]:
    """Return the figures of a system's line in the first table."""
    line = re.search(rf"<tr><th scope=\"row\"[^>]*>{system}</th>(.*?)</tr>", page)
    assert line
    return re.findall(r"<td[^>]*>(.*?)</td>", line[1])


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    server = Server(folder)
    server.take(trace_of(1), "What is 6 times 7?")
    server.take(trace_of(2), "", Told(402, "out_of_budget"))
    server.take(trace_of(3), "", GONE)
    server.take(trace_of(4), "", Told(0, ends=False))
    server.stop()
    return folder


def test_what_was_served_has_a_line_a_system_and_says_that_nobody_graded_it(log_dir: Path) -> None:
    with viewed(log_dir) as url:
        first = ask(url).text
        assert ask(url, "/served.html").text == first
        assert ask(url, "/index.html").status == ask(url, "/matrix.html").status == 404
    assert "<h1>Served, not graded</h1>" in first
    assert '<span class="badge rehearsal">rehearsal</span>' in first
    requests, answered, refused, cut_off, in_flight, calls, *tokens, usd, median, most = cells(
        first, "pair"
    )
    assert [requests, answered, refused, cut_off, in_flight, calls] == [*"411112"]
    assert all(int(count) > 0 for count in tokens)
    assert usd == "0.00130"
    assert (median, most) == ("0.250", "0.250")
    for said in ("answered 200", "refused 402: out_of_budget", "cut off 499: cancelled"):
        assert f"<td>{said}</td>" in first
    assert "<td>in flight</td>" in first


def test_a_request_has_a_page_whose_data_are_those_of_the_audit(
    log_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "query.json"
    assert main(["audit", str(log_dir), "--query", trace_of(1), "--json", str(out)]) == 0
    with viewed(log_dir) as url:
        page, index = ask(url, "/request.html").text, packed(ask(url, "/data/served.js").text)
        (block,) = index["blocks"]
        texts = queries(ask(url, f"/data/text/{block['rows'][0]['row']}/0.js").text)
    assert 'data-index="served"' in page
    assert block["questions"] == [trace_of(number) for number in (1, 2, 3, 4)]
    (told,) = json.loads(out.read_text())["queries"]
    shown = texts[0]
    assert shown is not None
    assert {name: shown[name] for name in told} == told
    assert (shown["input"], {call["prompt"] for call in shown["calls"]}) == (None, {None})
    assert {check["status"] for check in shown["checks"]} <= {"pass", "not applicable", "weak"}


def test_pages_are_made_anew_when_more_was_served(tmp_path: Path) -> None:
    server = Server(tmp_path)
    with viewed(tmp_path) as url:
        assert cells(ask(url).text, "pair")[0] == "0"
        server.take(trace_of(1), "What is 6 times 7?")
        assert cells(ask(url).text, "pair")[0] == "1"
    server.stop()


def test_a_directory_with_runs_and_requests_shows_both(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=1)
    served(tmp_path, "What is 6 times 7?")
    with viewed(tmp_path) as url:
        first = ask(url).text
        assert "single:sage" in first
        assert cells(ask(url, "/served.html").text, "pair")[0] == "1"
        (run,), (request,) = (queries(ask(url, f"/data/text/{row}/0.js").text) for row in (0, 1))
    assert run
    assert request
    assert ("served" in run, request["served"]["ending"]) == (False, "answered")
    assert "request.html" in first


def test_a_report_of_what_was_served_says_what_to_use(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(log_dir)]) == 2
    said = capsys.readouterr().err
    assert "Use `podium view` to show them, or `podium audit` to check them." in " ".join(
        said.split()
    )
