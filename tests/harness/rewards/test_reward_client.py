"""The client of the reward service: what it makes of replies, failures and refusals."""

import http.server
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import anyio
import pytest

from podium.harness.errors import TooManyMasked, UserError
from podium.harness.records import Usage
from podium.harness.rewards.outcome import (
    RewardClient,
    RewardItem,
    RewardOutcome,
    Status,
    items_json,
    outcomes_from,
)
from podium.harness.rewards.server import ScoreBody, encode, read_items
from podium.suites import SUITES
from tests import ROOT
from tests.harness.rewards.service import listening, service_of, train
from tests.suites.gold import gold_reply

INTEGER = SUITES["practice-integer"]
EXAMS = train(INTEGER, first=3)
FIRST = next(iter(EXAMS[INTEGER.name].questions.values()))
ITEM = RewardItem(INTEGER.name, FIRST.id, gold_reply(FIRST))


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with listening(service_of(EXAMS)) as where:
        yield where


def scored(client: RewardClient, *items: RewardItem) -> list[RewardOutcome]:
    return anyio.run(client.score, items)


@contextmanager
def saying(*answers: tuple[int, bytes]) -> Generator[str]:
    """Yield the URL of a server that gives these answers in turn, and then the last one."""
    left = list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def one(outcome: RewardOutcome) -> bytes:
    return encode({"outcomes": [outcome]})


def test_an_outcome_comes_back_as_it_was_sent(url: str) -> None:
    (outcome,) = scored(RewardClient(url), ITEM)
    assert (outcome.value, outcome.status, outcome.usd) == (1.0, Status.SCORED, Decimal(0))
    assert outcome.components == {"correct": 1.0, "parsed": 1.0}


def test_half_a_surrogate_pair_is_told_as_what_can_be() -> None:
    outcome = RewardOutcome(None, Status.WORKER_ERROR, usd=Decimal("0.1"), reason="said \ud800.")
    (told,) = outcomes_from(json.loads(encode({"outcomes": [outcome]})))
    assert (told.usd, told.reason.startswith("said ")) == (Decimal("0.1"), True)


@pytest.mark.parametrize(
    "outcome",
    [
        RewardOutcome(None, Status.BUDGET, {"correct": None, "parsed": None}, reason="spent"),
        RewardOutcome(
            0.5,
            Status.SCORED,
            {"correct": 0.0, "parsed": 1.0},
            Usage(1, 2, 3, 4, 5),
            Decimal("0.000000123"),
            3,
            1.25,
            True,
        ),
        RewardOutcome(0.0, Status.INVALID_ACTION, {}, Usage(reasoning=None), None),
    ],
)
def test_every_field_survives_the_wire(outcome: RewardOutcome) -> None:
    sent = json.loads(encode({"outcomes": [outcome]}))
    assert outcomes_from(sent) == [outcome]


def test_the_workers_a_policy_was_shown_survive_the_wire() -> None:
    asked = [ITEM, replace(ITEM, replicate=2, workers=("bo", "ada"), first="r1")]
    sent = json.dumps(items_json(asked)).encode()
    assert read_items(ScoreBody, sent) == asked
    assert list(json.loads(sent)["items"][0])[-1] == "replicate"


def test_no_items_ask_nobody() -> None:
    assert scored(RewardClient("http://127.0.0.1:1")) == []


def test_a_service_that_is_not_there_leaves_items_without_a_value() -> None:
    client = RewardClient("http://127.0.0.1:1", retries=0)
    first, second = scored(client, ITEM, ITEM)
    assert first == second
    assert (first.value, first.status) == (None, Status.SCORER_ERROR)
    assert "127.0.0.1:1 gave no rewards" in first.reason


def test_a_service_that_stays_away_ends_the_training() -> None:
    client = RewardClient("http://127.0.0.1:1", retries=0)
    for _ in range(31):
        scored(client, ITEM)
    with pytest.raises(TooManyMasked, match=r"32 of the latest 32 .* gave no rewards"):
        scored(client, ITEM)


RIGHT = RewardOutcome(1.0, Status.SCORED, {"correct": 1.0, "parsed": 1.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble",
    [
        (500, b"oops"),
        (502, b"{}"),
        (503, b'{"error": "busy", "kind": "unscored"}'),
        (200, b"<html>"),
    ],
)
def test_a_passing_trouble_is_tried_again(trouble: tuple[int, bytes]) -> None:
    with saying(trouble, (200, one(RIGHT))) as url:
        assert scored(RewardClient(url, retries=1), ITEM) == [RIGHT]


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"outcomes": [{}]}', b'{"outcomes": 3}'])
def test_a_reply_that_is_no_reply_leaves_items_without_a_value(body: bytes) -> None:
    with saying((200, body)) as url:
        (outcome,) = scored(RewardClient(url, retries=0), ITEM)
    assert (outcome.value, outcome.status) == (None, Status.SCORER_ERROR)
    assert "cannot be read" in outcome.reason


def test_another_number_of_outcomes_is_refused() -> None:
    with saying((200, one(RIGHT))) as url, pytest.raises(ValueError, match="1 outcomes for 2"):
        scored(RewardClient(url), ITEM, ITEM)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (RewardItem(INTEGER.name, "no-such", "42"), "no question 'no-such'"),
        (RewardItem("no-such", FIRST.id, "42"), "not served here"),
        (RewardItem(INTEGER.name, FIRST.id, "42", epoch=0), "epoch"),
    ],
)
def test_a_refused_item_raises_the_services_own_sentence(
    item: RewardItem, said: str, url: str
) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        scored(RewardClient(url), item)
    assert isinstance(raised.value, UserError)


def test_a_service_that_stopped_for_good_raises_too_many_masked() -> None:
    stopped = b'{"error": "40 of 50 have no value.", "kind": "too_many_masked"}'
    with saying((503, stopped)) as url, pytest.raises(TooManyMasked, match="40 of 50"):
        scored(RewardClient(url), ITEM)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "127.0.0.1:8000"},
        {"url": "http://h", "timeout_s": 0},
        {"url": "http://h", "retries": -1},
    ],
)
def test_a_client_that_could_never_ask_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        RewardClient(**wrong)


def test_a_client_pickles(url: str) -> None:
    client = RewardClient(url, timeout_s=5)
    assert pickle.loads(pickle.dumps(client)) == client


BARE = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from podium.harness.rewards.outcome import RewardClient
from podium.harness.rewards.outcome import RewardItem
items = [RewardItem(*sys.argv[3:6])]
print(asyncio.run(RewardClient(sys.argv[2]).score(items))[0].value)
rooms = {name.removeprefix("podium.").split(".")[0] for name in sys.modules}
print(*sorted(rooms - set(sys.stdlib_module_names) - {"podium", "harness"}))
"""


def bare(*arguments: str) -> Sequence[str]:
    """Run the client where there is the standard library, our folder and nothing else."""
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", BARE, str(ROOT), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_client_runs_where_nothing_is_installed(url: str) -> None:
    value, others = bare(url, ITEM.suite, ITEM.question, ITEM.completion)
    assert value == "1.0"
    assert set(others.split()) <= {"__main__", "__mp_main__"}
