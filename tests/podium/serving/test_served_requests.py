"""What becomes of a request: its answer, its bill, its limits, and who leaves before it ends."""

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from podium.harness.errors import UserError
from podium.harness.ledger.served import read_trace, served_requests
from podium.harness.listener import bound_socket
from podium.reports.audit import audit
from tests.podium.serving.endpoint import HEAD, before_provider, chat, endpoint, events
from tests.providers import CLIENTS_WARN
from tests.providers.script import Act, failing, ok, taking
from tests.providers.server import hosted

pytestmark = CLIENTS_WARN
ASK = "/v1/chat/completions"
SINGLE, MOA, DEBATE = "single:olive", "moa-lite", "debate"
OTHER = "0123456789abcdef"
"""Of another server of ours."""
CALLED = [
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "Nothing."},
]
PAPER = {
    "role": "user",
    "content": [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "7"}},
        {"type": "text", "text": "Sum it up."},
    ],
}
SLOW = Act(wait_s=0.4)


def usage(body: dict[str, Any]) -> tuple[int, int, int]:
    found = body["usage"]
    return found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]


def wait_for(condition: Any) -> None:
    """Wait until something holds that a thread of the server brings about."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def test_the_last_workers_tokens_are_visible_and_all_others_are_orchestration(
    tmp_path: Path,
) -> None:
    with before_provider(tmp_path, [taking(10)] * 8, MOA) as (served, _):
        said = served.post(ASK, chat("Say 7", f"podium/{MOA}"))
    body = said.json()
    (query,) = served_requests(served.log_dir)
    assert said.status_code == 200, said.text
    assert body["choices"][0]["message"]["content"] == "ANSWER: 7"
    asked = body["usage"]["prompt_tokens_details"]["orchestration_input_tokens"]
    wrote = body["usage"]["completion_tokens_details"]["orchestration_output_tokens"]
    assert usage(body) == (20, 10, 30 + asked + wrote)
    others = len(query.rows) - 1
    assert (asked, wrote) == (20 * others, 10 * others)
    dollars = sum((row.usd or Decimal(0) for row in query.rows), Decimal(0))
    assert Decimal(said.headers["x-litellm-response-cost"]) == dollars
    assert said.headers["x-litellm-total-tokens"] == str(usage(body)[2])
    assert said.headers["x-request-id"] == query.trace


def test_a_call_without_a_price_leaves_cost_and_header_out(tmp_path: Path) -> None:
    untold = Act(tell=lambda took: None)
    with before_provider(tmp_path, [untold], SINGLE) as (served, _):
        said = served.post(ASK, chat("Say 7", f"podium/{SINGLE}"))
    assert said.json()["usage"] is None
    assert "x-litellm-response-cost" not in said.headers
    assert "x-litellm-total-tokens" not in said.headers
    assert said.headers["x-podium-calls"] == "1"


def test_a_worker_that_fails_is_the_dialects_own_error_and_its_trace_says_which(
    tmp_path: Path,
) -> None:
    with before_provider(tmp_path, [failing(400)], SINGLE) as (served, _):
        said = served.post(ASK, chat("Say 7", f"podium/{SINGLE}"))
        trace = served.get(said.headers["x-podium-trace"]).json()
    assert (said.status_code, said.json()["error"]["type"]) == (502, "api_error")
    assert said.headers["x-request-id"] == trace["question"]
    assert [call["http_status"] for call in trace["calls"]] == [400]


def test_a_conversation_reaches_a_worker_that_answers_alone_as_it_is(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three?"},
    ]
    body = {"model": SINGLE, "messages": turns, "tools": [tool], "max_tokens": 5}
    heard: list[Any] = []

    def act(asked: Any) -> Act:
        heard.append(asked)
        return ok()

    with before_provider(tmp_path, act, SINGLE) as (served, _):
        assert served.post(ASK, body).status_code == 200
    (asked,) = heard
    assert [text in str(asked) for text in ("Be brief.", "One?", "Two.", "Three?")] == [True] * 4


def test_what_a_planner_cannot_honour_is_refused_by_name_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    with before_provider(tmp_path, (), MOA) as (served, provider):
        for more, name in (
            ({"temperature": 0.1}, "temperature"),
            ({"seed": 1}, "seed"),
            ({"stop": ["x"]}, "stop"),
        ):
            said = served.post(ASK, chat("Say 7", MOA, **more))
            assert (said.status_code, said.json()["error"]["param"]) == (400, name)
        said = served.post("/v1/messages", {"model": MOA, "max_tokens": 9, "messages": [PAPER]})
        assert (said.status_code, said.json()["error"]["details"]["param"]) == (400, "document")
        assert served.post(ASK, chat("Say 7", MOA, max_tokens=7)).status_code == 200
    assert len(provider.bill.lines) == len(served.lines("intent")) > 0
    assert {line["max_tokens"] for line in served.lines("intent")} == {7}


def test_tools_are_refused_where_nobody_can_call_them(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    with before_provider(tmp_path, (), DEBATE) as (served, provider):
        for body in (chat("Say 7", DEBATE, tools=tools), {"model": DEBATE, "messages": CALLED}):
            said = served.post(ASK, body)
            assert (said.status_code, said.json()["error"]["param"]) == (400, "tools")
    assert not provider.bill.lines


def test_a_cap_on_calls_ends_a_request_and_what_was_called_is_billed(tmp_path: Path) -> None:
    with before_provider(tmp_path, (), MOA, max_calls=2) as (served, provider):
        said = served.post(ASK, chat("Say 7", MOA))
    assert said.status_code == 402
    assert "--max-calls" in said.json()["error"]["message"]
    billed = [line for line in served.lines("outcome") if line["usage"]]
    assert len(billed) == len(provider.bill.lines) <= 2


def test_a_request_may_not_cost_more_than_its_limit(tmp_path: Path) -> None:
    limit = Decimal("0.0001")
    with before_provider(tmp_path, (), SINGLE, max_usd_per_query=limit) as (served, provider):
        said = served.post(ASK, chat("Say 7", SINGLE))
    assert (said.status_code, provider.bill.lines) == (402, [])
    assert "--max-usd-per-query" in said.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["max_usd", "max_usd_per_day", "max_usd_per_key"])
def test_a_limit_of_all_requests_outlives_the_process(tmp_path: Path, limit: str) -> None:
    limits = {limit: Decimal("0.15")}
    for statuses in ([200, 429], [429]):
        with before_provider(tmp_path, [taking(900)] * 4, SINGLE, **limits) as (served, _):
            came = [served.post(ASK, chat("Say 7", SINGLE)) for _ in statuses]
            assert [one.status_code for one in came] == statuses
    assert came[-1].json()["error"]["code"] == "insufficient_quota"
    assert came[-1].headers["x-should-retry"] == "false"


def test_a_deadline_answers_in_time_and_the_call_in_flight_is_billed(tmp_path: Path) -> None:
    with before_provider(tmp_path, [SLOW], SINGLE, deadline_s=0.1) as (served, _):
        said = served.post(ASK, chat("Say 7", SINGLE))
        assert (said.status_code, served.lines("outcome")) == (504, [])
        wait_for(lambda: served.lines("answer"))
    (outcome,), (answer,) = served.lines("outcome"), served.lines("answer")
    assert (outcome["error"], answer["status"], answer["error"]) == (None, 504, "deadline")
    assert outcome["usd"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_stops_new_calls_and_pays_for_those_in_flight(
    tmp_path: Path, stream: bool
) -> None:
    script = [Act(wait_s=1.0)] * 20
    with before_provider(tmp_path, script, MOA) as (served, provider):
        body = chat("Say 7", MOA, stream=stream)
        with (
            pytest.raises(httpx.ReadTimeout),
            httpx.stream("POST", f"{served.url}{ASK}", json=body, timeout=0.4) as said,
        ):
            said.read()
        wait_for(lambda: served.lines("answer"))
    (answer,) = served.lines("answer")
    assert (answer["status"], answer["error"]) == (499, "cancelled")
    proposers = len(provider.bill.lines)
    assert len(served.lines("intent")) == len(served.lines("outcome")) == proposers
    assert all(line["usd"] for line in served.lines("outcome"))
    assert audit(served.log_dir, strict=True).ok


@pytest.mark.slow
def test_two_hundred_streams_dropped_at_once_lose_and_leave_nothing(tmp_path: Path) -> None:
    settings = "max_tokens = 100, max_retries = 0, max_connections = 8"
    asked = {"settings": settings, "concurrency": 300}
    with before_provider(tmp_path, [Act(wait_s=2.0)] * 2000, MOA, **asked) as (served, provider):
        anyio.run(_begun_and_dropped, f"{served.url}{ASK}")
        wait_for(lambda: len(served.lines("answer")) == 200)
    billed = [line for line in served.lines("outcome") if line["usage"]]
    assert {line["status"] for line in served.lines("answer")} == {499}
    assert len(billed) == len(provider.bill.lines) < 300, "calls that waited were not made"
    assert audit(served.log_dir, strict=True).ok


async def _begun_and_dropped(url: str) -> None:
    """Begin two hundred streams, and drop all of them once each has begun."""
    begun = 0

    async def one(client: httpx.AsyncClient, number: int) -> None:
        nonlocal begun
        async with client.stream("POST", url, json=chat(f"Say {number}", MOA, stream=True)):
            begun += 1
            while begun < 200:
                await anyio.sleep(0.05)

    limits = httpx.Limits(max_connections=None)
    async with (
        httpx.AsyncClient(limits=limits, timeout=30) as client,
        anyio.create_task_group() as tasks,
    ):
        for number in range(200):
            tasks.start_soon(one, client, number)


def test_a_stream_beats_with_data_and_says_what_it_does(tmp_path: Path) -> None:
    with before_provider(tmp_path, [SLOW] * 20, MOA) as (served, _):
        body = chat("Say 7", MOA, stream=True, stream_options={"include_usage": True})
        with httpx.stream("POST", f"{served.url}{ASK}", json=body, timeout=20) as said:
            found = [*events(said)]
    words = [one["podium"]["step"] for one in found if "podium" in one]
    assert words[-1].startswith("step 4 of 4: ")
    assert usage(found[-1])[1] > 0


def test_a_pool_that_reaches_this_server_again_is_refused(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(request: Request) -> Response:
        heard.append(request.headers["x-podium-via"])
        return Response(status_code=400)

    with hosted(Starlette(routes=[Route("/{path:path}", hear, methods=["POST"])])) as url:
        pool = elsewhere(tmp_path, url)
        with endpoint(tmp_path, "single:far", pool=pool) as served:
            served.post(ASK, chat("Say 7", "single:far"), **{"x-podium-via": f"{OTHER} <b>"})
            again = served.post(ASK, chat("Say 7", "single:far"), **{"x-podium-via": heard[0]})
    assert (again.status_code, len(heard)) == (508, 1)
    assert heard[0].split()[:-1] == [OTHER], "no other words of a client reach a provider"
    assert again.headers["x-should-retry"] == "false"


def test_a_worker_at_the_address_that_is_served_is_refused_before_anything(tmp_path: Path) -> None:
    with bound_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    pool = elsewhere(tmp_path, f"http://localhost:{port}")
    with (
        pytest.raises(UserError, match="so that each call would loop"),
        endpoint(tmp_path, "moa-lite", pool=pool, port=port),
    ):
        pass


def elsewhere(folder: Path, url: str) -> str:
    """Write a pool of two workers at a URL; return its path."""
    worker = """
[[workers]]
name = "{}"
model = "openai-api/far/{}"
config = {{ max_tokens = 100, max_retries = 0 }}
args = {{ base_url = "{}/v1", api_key = "none", max_retries = 0 }}
"""
    tables = (worker.format(name, name, url) for name in ("far", "near"))
    prices = (
        f'"openai-api/far/{name}" = {{ input = "1", output = "1" }}\n' for name in ("far", "near")
    )
    (folder / "book.toml").write_text(HEAD + "".join(prices))
    path = folder / "pool.toml"
    path.write_text('label = "live"\nprices = "book.toml"\n' + "".join(tables))
    return str(path)


def test_aliases_and_dated_ids_name_what_answers_and_old_ones_are_refused(tmp_path: Path) -> None:
    pool = tmp_path / "pool.toml"
    text = (Path(__file__).parents[3] / "harness/pools/rehearsal.toml").read_text()
    pool.write_text(f'{text}\n[aliases]\nmini = "single:abacus"\nultra = "moa-lite"\n')
    with endpoint(tmp_path, "single:abacus", "moa-lite", pool=str(pool)) as served:
        listed = {one["id"]: one["podium"] for one in served.get("/v1/models").json()["data"]}
        ultra = listed["podium/ultra"]["resolves_to"]
        said = [served.post(ASK, chat("Say 7", name)) for name in ("podium/ultra", ultra)]
        old = [
            served.post(ASK, chat("Say 7", name))
            for name in (ultra[:-12] + "0" * 12, "podium/moa-lite-2020-01-01-" + "0" * 12)
        ]
    assert listed["podium/mini"]["system"] == "single:abacus"
    assert [one.json()["model"] for one in said] == ["podium/ultra", ultra]
    assert {line["resolved"] for line in served.lines("request")} == {ultra}
    for one in old:
        assert (one.status_code, ultra in one.json()["error"]["message"]) == (404, True)


def test_texts_are_kept_only_where_asked_and_for_their_owner_alone(tmp_path: Path) -> None:
    asked = chat("A canary sings of 17 times 23.", "single:abacus")
    for keep in (False, True):
        with endpoint(tmp_path / str(keep), "single:abacus", keep_texts=keep) as served:
            said = served.post(ASK, asked)
            trace = served.get(said.headers["x-podium-trace"]).json()
        files = [path for path in served.log_dir.rglob("*") if path.is_file()]
        held = [path for path in files if b"canary" in path.read_bytes()]
        assert [path.stat().st_mode & 0o777 for path in held] == [0o600] * keep
        assert (trace["input"] is not None) == keep
        assert not any("canary" in line for line in served.logged)


def test_a_trace_says_plan_steps_tokens_and_dollars(tmp_path: Path) -> None:
    with endpoint(tmp_path, "conductor") as served:
        said = served.post(ASK, chat("What is 17 times 23?", "podium/conductor"))
        trace = served.get(said.headers["x-podium-trace"]).json()
        missing = served.get("/v1/traces/req-20260101-0123456789abcdef")
    query = read_trace(served.log_dir, said.headers["x-request-id"])
    assert query is not None
    assert [step["worker"] for step in trace["steps"]]
    assert len(trace["calls"]) == int(said.headers["x-podium-calls"]) == len(query.rows)
    assert trace["sums"]["usd"] == said.headers["x-litellm-response-cost"]
    assert missing.status_code == 404
