"""Clients of others against this endpoint; our own provider of Fugu has the server's own ledger."""

import json
from collections.abc import Generator
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from podium.cli import main
from podium.harness.ledger.call import Call
from podium.harness.ledger.served import read_trace, served_requests
from podium.harness.usage import usage_from_raw
from podium.serving.exchange import bill_of
from tests.podium.serving.endpoint import Endpoint, endpoint
from tests.podium.serving.reply_checks import check_books
from tests.podium.serving.stream_checks import billed
from tests.providers import CLIENTS_WARN
from tests.reports.audit.audited_run import failing, rows_below

pytestmark = CLIENTS_WARN
PLANS, ALONE, CONDUCTOR = "podium/moa-lite", "podium/single:abacus", "podium/conductor"
QUESTION = "What is 12 * 13?"
POOL = """
label = "live"
prices = "list-2026-11-21"
[[workers]]
name = "podium"
model = "fugu/{model}"
not_auditable = "its price is what the server says"
config = {{ max_tokens = 512, max_retries = 0 }}
[workers.args]
base_url = "{url}"
api_key = "test"
responses_api = {responses}
default_headers = {{ connection = "close" }}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Endpoint]:
    folder = tmp_path_factory.mktemp("endpoint")
    with endpoint(folder, "moa-lite", "single:abacus", "conductor") as found:
        yield found
        check_books(found.log_dir)


@pytest.mark.parametrize("responses", ["true", "false"], ids=["responses", "chat"])
@pytest.mark.parametrize("model", [PLANS, CONDUCTOR])
def test_a_run_against_this_server_has_the_servers_own_ledger(
    model: str, responses: str, served: Endpoint, tmp_path: Path
) -> None:
    pool, home = tmp_path / "client.toml", tmp_path / "run"
    pool.write_text(POOL.format(model=model, url=served.url, responses=responses))
    asked = ["--suite", "practice-integer", "--system", "single:podium", "--pool", str(pool)]
    before = {query.trace for query in served_requests(served.log_dir)}
    copy_context().run(main, ["run", *asked, "--limit", "3", "--yes", "--log-dir", str(home)])
    theirs = {query.trace: query for query in served_requests(served.log_dir)}
    ours = {str(row.request_id): row for row in rows_below(home)}
    assert ours.keys() == theirs.keys() - before
    assert len(ours) == 3
    for trace, row in ours.items():
        agrees(row, theirs[trace].rows)
    orchestration = sum(row.orchestration_out or 0 for row in ours.values())
    assert orchestration > 0
    assert failing(home) == set()


def agrees(row: Call, calls: Any) -> None:
    """Hold one call of a client against the calls that the server made for it."""
    bill = bill_of(calls)
    expected = billed(bill)
    assert expected is not None
    assert row.usage is not None
    assert row.usage.parts_total == row.total_reported == bill.total_tokens
    counts = ("input", "output", "cache_read", "orchestration_in", "orchestration_out")
    for name in (*counts, "orchestration_in_cached", "total_reported"):
        assert getattr(row.usage, name) == getattr(expected, name), name
    assert cost_of(row) == bill.usd == sum((one.usd or Decimal("nan") for one in calls), Decimal(0))


def cost_of(row: Call) -> Decimal:
    """Return the dollars that the server has told its client."""
    raw = json.loads(row.raw_usage or "{}", parse_float=Decimal)
    return raw["cost"]


def test_openais_client_reads_both_dialects_whole_and_streamed(served: Endpoint) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        turns: Any = [{"role": "user", "content": QUESTION}]
        chat = client.chat.completions.create(model=PLANS, messages=turns)
        with client.responses.stream(model=PLANS, input=QUESTION) as stream:
            numbers = [event.sequence_number for event in stream]
            response = stream.get_final_response()
        with client.chat.completions.stream(model=ALONE, messages=turns) as chunks:
            text = chunks.get_final_completion().choices[0].message.content
        with pytest.raises(openai.NotFoundError) as raised:
            client.responses.create(model="podium/moa-light", input=QUESTION)
    assert chat.choices[0].message.content
    assert chat.usage is not None
    query = read_trace(served.log_dir, str(chat._request_id))
    assert query is not None
    assert chat.usage.total_tokens == bill_of(query.rows).total_tokens
    assert numbers == [*range(len(numbers))]
    assert response.output_text
    assert text
    assert PLANS in str(raised.value)
    assert raised.value.request_id


def test_anthropics_client_reads_messages_whole_and_streamed(served: Endpoint) -> None:
    with anthropic.Anthropic(base_url=served.url, api_key="none", max_retries=0) as client:
        turns: Any = [{"role": "user", "content": QUESTION}]
        asked: Any = {"model": PLANS, "max_tokens": 500, "messages": turns}
        raw = client.messages.with_raw_response.create(**asked)
        message = raw.parse()
        with client.messages.stream(**asked) as stream:
            final = stream.get_final_message()
        counted = client.messages.count_tokens(model=ALONE, messages=turns)
        with pytest.raises(anthropic.NotFoundError) as raised:
            client.messages.create(**{**asked, "model": "podium/none"})
    query = read_trace(served.log_dir, raw.headers["x-request-id"])
    assert query is not None
    read = usage_from_raw("anthropic", message.usage.model_dump())
    assert read is not None
    assert read.parts_total == bill_of(query.rows).total_tokens
    assert final.content[0].type == "text"
    assert counted.input_tokens > 0
    body: Any = raised.value.body
    assert body["error"]["type"] == "not_found_error"
