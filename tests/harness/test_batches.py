"""Batches: `podium run --batch` against a local server of OpenAI's and Anthropic's endpoints."""

import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.records import Usage
from podium.reports.audit import audit
from tests.providers import CLIENTS_WARN, Act, Server, ok, serve
from tests.providers.dialect import Asked
from tests.reports.audit.audited_run import rows_below

pytestmark = CLIENTS_WARN
BOOK = """\
date = "2026-01-02"
source = "made up for tests"
[usd_per_mtok]
"{0}" = {{ input = "1", output = "2", services = {{ batch = "0.5" }} }}
"""
POOL = """\
label = "live"
prices = "book.toml"
[[workers]]
name = "olive"
model = "{0}"
config = {{ max_tokens = 64, max_retries = 0{2} }}
args = {{ base_url = "{1}", api_key = "test-olive" }}
"""
SHORT = ", batch = { tick = 0.05, send_delay = 0.3 }"
RESPONSES, CHAT, CLAUDE = "openai/gpt-5-mini", "openai/gpt-4o-mini", "anthropic/claude-sonnet-5"
ONE = Decimal("0.000554")  # the most that the longest of the first questions can cost


def words(folder: Path, server: Server, model: str, *more: str, config: str = SHORT) -> list[str]:
    """Write a pool of one worker; return the words of a run of four questions."""
    url = server.anthropic if model == CLAUDE else server.openai
    (folder / "book.toml").write_text(BOOK.format(model))
    (folder / "pool.toml").write_text(POOL.format(model, url, config))
    asked = ["run", "--suite", "practice-integer", "--limit", "4", "--batch", "--yes"]
    return [*asked, "--pool", f"{folder}/pool.toml", "--log-dir", f"{folder}/run", *more]


def sizes(server: Server) -> list[int]:
    """Return how many requests each batch has had."""
    return [len(rows) for rows in server.batches.submitted]


@pytest.mark.slow
@pytest.mark.parametrize("model", [RESPONSES, CHAT, CLAUDE])
def test_each_row_of_a_batch_has_its_own_end_and_only_what_was_not_answered_is_sent_again(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = iter([ok(), Act(status=400), Act(ending="expired"), Act(ending="missing")])

    def act(asked: Asked) -> Act:
        told = next(ends, ok())
        return Act(status=told.status, ending=told.ending, usage=Usage(len(asked.prompt), output=9))

    with serve(act) as server:
        run = words(tmp_path, server, model, "--system", "single:olive")
        assert main(run) == 1
        said = capsys.readouterr().err
        rows = {row.http_status or row.billable: row for row in rows_below(tmp_path / "run")}
        assert main(run) == 0
    assert sizes(server) == [4, 3]
    assert {rows[400].billable, rows[410].billable} == {"no"}
    assert rows["unknown"].usd_low == 0
    for reason in ("expired", "ended without a result", "scripted 400"):
        assert reason in said
    answered = [row for row in rows_below(tmp_path / "run") if row.billable == "yes"]
    assert [row.usd for row in answered] == [row.usd_list / 2 for row in answered if row.usd_list]
    # Results come in reverse order: each call has the reply to its own prompt.
    sizes_sent = {(row.prompt_bytes or 0, row.input_total or 0) for row in answered}
    assert len(sizes_sent) > 1
    assert len({told - sent for sent, told in sizes_sent}) == 1
    assert not [one for one in audit(tmp_path / "run").verdicts if one.status == "fail"]


@pytest.mark.parametrize(
    ("lost", "sentence", "billable"),
    [
        (False, "batch 0 has expired; nothing was billed", "no"),
        (True, "batch 0 is not there any more; the request may have been billed", "unknown"),
    ],
)
def test_a_batch_without_any_result_ends_its_questions(
    lost: bool, sentence: str, billable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve([Act(ending="expired")] * 4) as server:
        server.batches.lost = lost
        assert main(words(tmp_path, server, CHAT, "--system", "single:olive")) == 1
    assert f"{sentence} (4 questions)" in capsys.readouterr().err
    assert {row.billable for row in rows_below(tmp_path / "run")} == {billable}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "number"), [(RESPONSES, signal.SIGKILL), (CLAUDE, signal.SIGTERM)]
)
def test_a_run_that_was_stopped_waits_for_its_batch_and_submits_nothing_twice(
    model: str, number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        run = words(tmp_path, server, model, "--system", "single:olive", "--grace", "0.1")
        server.batches.held = True
        process = subprocess.Popen([sys.executable, "-m", "podium", *run])
        while process.poll() is None and not server.batches.polls:  # it is written down by then
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait() != 0
        server.batches.held = False
        assert main(run) == 0
    assert sizes(server) == [4] == [len(server.bill.lines)]
    assert "Waiting for batch 0, which an earlier run submitted" in capsys.readouterr().err
    bills = [row.billable for row in rows_below(tmp_path / "run")]
    assert (bills.count("yes"), bills.count("unknown")) == (4, 4)
    assert not [one for one in audit(tmp_path / "run").verdicts if one.status == "fail"]


def test_a_limit_lets_into_a_batch_what_it_can_pay_at_most(tmp_path: Path) -> None:
    with serve() as server:
        limit = "--max-usd", f"{ONE * 5 / 2:f}"
        assert main(words(tmp_path, server, CHAT, "--system", "single:olive", *limit)) == 0
    assert sizes(server) == [2, 2]  # no first call that goes alone: it would take a day


@pytest.mark.parametrize(
    ("model", "config", "system", "sentence"),
    [
        (
            "openai-api/local/m",
            "",
            "single",
            "podium supports batches of openai and anthropic only",
        ),
        (
            "anthropic/bedrock/m",
            "",
            "single",
            "podium supports batches of openai and anthropic only",
        ),
        (CHAT, ", attempt_timeout = 9", "single", "sets attempt_timeout, after which a request"),
        (CHAT, "", "ab-mcts", "ab-mcts may send another request after each reply"),
    ],
)
def test_what_has_no_batches_is_refused_before_anything_is_asked(
    model: str,
    config: str,
    system: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serve() as server:
        assert main(words(tmp_path, server, model, "--system", system, config=config)) == 2
    assert sentence in capsys.readouterr().err
    assert not server.bill.lines
    assert not (tmp_path / "run").exists()


def test_a_dry_run_halves_what_is_likely_and_says_how_long_chains_of_calls_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        run = words(tmp_path, server, CHAT, "--system", "single:olive")
        assert main(run) == 0
        asked = [*run[:-3], f"{tmp_path}/new", "--system", "debate", "--system", "single:olive"]
        capsys.readouterr()
        assert main([*asked, "--dry-run", "--like", f"{tmp_path}/run"]) == 0
    out, err = capsys.readouterr()
    likely = re.search(r" single:olive +4 +4 +\d+ +\d+ +(\S+)", f" {out}".replace("\n", "\n "))
    paid = sum(row.usd or 0 for row in rows_below(tmp_path / "run"))
    assert likely
    assert Decimal(likely[1]) == round(paid, 4)
    assert "usd includes the batch discount" in out
    assert (
        "debate sends 2 rounds of requests, each after the replies to the previous one: up to 48 h "
        "in batches" in err
    )
