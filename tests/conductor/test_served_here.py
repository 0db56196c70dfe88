"""A checkpoint behind a real HTTP server plans as it does in this process; a server can be wrong.

The server decodes with the embedded decoder: vLLM's own is compared in test_served.py.
"""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.harness.ledger.logs import find_logs
from podium.harness.pool_config import read_pool
from tests import ROOT
from tests.providers import CLIENTS_WARN, Server, serve
from tests.providers.checkpoint_server import NAME, serve_checkpoint
from tests.reports.audit.audited_run import failing, rows_below

pytestmark = CLIENTS_WARN

FOLDER = ROOT / "conductor" / "released" / "trained"
BOOK = """\
date = "2026-01-02"
source = "made up for tests"
[usd_per_mtok]
"openai-api/any" = { input = "1", output = "2" }
"embedded/conductor" = { input = "0.1", output = "0.2" }
"""
SLOT = """
{table}
model = "{model}"
price = "{price}"
knowledge_cutoff = "unknown"
config = {{ {config} }}
args = {{ base_url = "{url}", api_key = "none" }}
"""
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def workers() -> Generator[Server]:
    with serve() as server:
        yield server


def slot(table: str, model: str, price: str, url: str, config: str) -> str:
    return SLOT.format(table=table, model=model, price=price, url=url, config=config)


def pool(folder: Path, workers: Server, model: str, url: str) -> str:
    """Write a pool with the practice pool's names and cards at one server, its conductor at `url`.

    No mixed pool will do: rehearsal programs and real servers never stand in one table.
    """
    (folder / "book.toml").write_text(BOOK)
    crew = [
        slot("[[workers]]", f"openai-api/any/{one.name}", "openai-api/any", workers.openai, "")
        + f'name = "{one.name}"\ncard = {json.dumps(one.card)}\n'
        for one in read_pool("rehearsal").workers
    ]
    greedy = "temperature = 0.0, max_tokens = 1024, max_retries = 0"
    seat = slot("[conductor]", model, "embedded/conductor", url, greedy)
    path = folder / "served.toml"
    path.write_text("".join(['label = "live"\nprices = "book.toml"\n', *crew, seat]))
    return str(path)


def run(pool: str, logs: Path, *systems: str) -> int:
    asked = ["run", "--suite", "practice-integer", "--limit", "3", "--pool", pool]
    named = [word for one in systems for word in ("--system", one)]
    return main([*asked, "--max-usd", "1", "--log-dir", str(logs), *named])


def plans(logs: Path, system: str) -> dict[str, str]:
    """Return a system's plans by question."""
    read = [read_eval_log(str(path)) for path in find_logs([logs])]
    (log,) = [one for one in read if (one.eval.metadata or {})["podium"]["system"] == system]
    return {str(one.id): one.metadata["podium"]["plan"] for one in log.samples or []}


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai-api/serving", "vllm"])
def test_a_served_checkpoint_writes_the_plans_of_the_embedded_one_and_is_billed(
    provider: str, workers: Server, tmp_path: Path
) -> None:
    logs, here, there = tmp_path / "logs", f"conductor@{FOLDER}", f"conductor-served@{FOLDER}"
    with serve_checkpoint(FOLDER) as (url, bill):
        assert run(pool(tmp_path, workers, f"{provider}/{NAME}", url), logs, here, there) == 0
    assert plans(logs, there) == plans(logs, here)
    assert len(set(plans(logs, here))) == 3
    assert failing(logs) == set()
    rows = [row for row in rows_below(logs) if row.model == f"{provider}/{NAME}"]
    told = [(one["prompt_tokens"], one["completion_tokens"]) for one in bill]
    assert sorted((row.input_total, row.output) for row in rows) == sorted(told)
    assert {(row.role, row.price_ref) for row in rows} == {("conductor", "embedded/conductor")}
    assert all(row.usd for row in rows)


@pytest.mark.parametrize("provider", ["openai-api/serving", "vllm"])
def test_no_server_at_the_address_is_said_before_a_call(
    provider: str, workers: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, there = tmp_path / "logs", f"conductor-served@{FOLDER}"
    assert run(pool(tmp_path, workers, f"{provider}/{NAME}", NOBODY), logs, there) == 2
    said = capsys.readouterr().err
    assert f"'conductor' ({provider}/{NAME}): nothing answers at {NOBODY}" in said
    assert not logs.exists()


def test_a_server_of_another_model_is_said_in_its_own_words_and_costs_nothing(
    workers: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, there = tmp_path / "logs", f"conductor-served@{FOLDER}"
    with serve_checkpoint(FOLDER) as (url, bill):
        assert run(pool(tmp_path, workers, "openai-api/serving/other", url), logs, there) == 1
    said = capsys.readouterr().err
    assert "conductor (openai-api/serving/other) gave no reply" in said
    assert "The model `other` does not exist." in said
    assert (bill, workers.bill.lines) == ([], [])
    assert {row.usd for row in rows_below(logs)} == {0}
