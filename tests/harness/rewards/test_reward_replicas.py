"""`podium reward serve --workers N`: one service in several processes, counted once."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from podium.harness.ledger.system_runs import spent_so_far
from podium.harness.prices import read_book
from podium.harness.rewards.outcome import RewardItem, Status
from podium.harness.rewards.replica import LOST, Replicas
from podium.harness.rewards.reward import GradingResult, GradingRow, Reward, RowGrader
from podium.harness.rewards.reward_service import ServeRequest, shared_out
from podium.sandbox import Box
from podium.suites import SUITES
from tests.harness.rewards.service import Process, get, post, started, train
from tests.suites.gold import gold_reply

INTEGER, CODE = SUITES["practice-integer"], SUITES["practice-code"]
BOOK = read_book("rehearsal")
QUESTIONS = INTEGER.load("train")[:20]
PLAN = 'model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
SLEEPING = "```python\nimport time\ntime.sleep(0.7)  # {}\n```"


def item(at: int, completion: str) -> dict[str, Any]:
    return {
        "suite": INTEGER.name,
        "question": QUESTIONS[at % len(QUESTIONS)].id,
        "completion": completion,
    }


def replicas_of(process: Process) -> set[int]:
    """Return the processes that a service has started and that run."""
    found = set[int]()
    for thread in Path(f"/proc/{process.process.pid}/task").iterdir():
        with suppress(OSError):  # it has ended since
            found |= {int(one) for one in (thread / "children").read_text().split()}
    return {pid for pid in found if is_replica(pid)}


def is_replica(pid: int) -> bool:
    """Return whether a child is no resource tracker of the standard library."""
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def until(true: Callable[[], object]) -> None:
    """Wait for what is to become true; the test's own time limit ends what never does."""
    while not true():
        time.sleep(0.02)


# --- shares of what is one --------------------------------------------------------------------


def test_sandboxes_are_shared_out() -> None:
    assert shared_out(ServeRequest(("toy",), max_sandboxes=5, workers=3)) == [2, 2, 1]
    assert shared_out(ServeRequest(("toy",), max_sandboxes=1, workers=3)) == [1, 1, 1]


# --- real processes ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Generator[Process]:
    with started("--suite", INTEGER.name, "--limit", "20", "--workers", "2") as process:
        yield process


def batches() -> Iterator[list[dict[str, Any]]]:
    for client in range(8):
        own = [item(at, f"The answer is \\boxed{{{client}{at}}}.") for at in range(40)]
        right = [item(at, gold_reply(QUESTIONS[at])) for at in range(20)]
        yield [*own, *right]


@pytest.mark.slow
def test_counts_add_up_over_replicas_and_values_are_those_of_one_process(running: Process) -> None:
    before = get(f"{running.url}/counts")[1]
    sent = [*batches()]
    with ThreadPoolExecutor(8) as pool:
        rows = [
            row
            for reply in pool.map(lambda one: post(f"{running.url}/score", {"items": one}), sent)
            for row in reply[1]["outcomes"]
        ]
    after = get(f"{running.url}/counts")[1]
    near = anyio.run(
        Reward(train(INTEGER)).score, [RewardItem(**one) for batch in sent for one in batch]
    )
    assert [row["value"] for row in rows] == [one.value for one in near]
    assert after["items"] - before["items"] == len(rows) == 8 * 60
    assert after["statuses"]["scored"] - before["statuses"]["scored"] == len(rows)
    shared = sum(row["shared"] for row in rows)  # each right reply is graded once, by one replica
    assert after["shared"] - before["shared"] == shared == 7 * 20
    assert (after["in_flight"], after["masked_share"]) == (0, 0.0)


@pytest.mark.slow
def test_every_trainer_is_answered_by_replicas(running: Process) -> None:
    label, right = f"{INTEGER.name}/{QUESTIONS[0].id}", gold_reply(QUESTIONS[0])
    asked = {"query": [f"p{right}", "p?"], "prompts": ["p", "p"], "labels": [label, label]}
    assert post(f"{running.url}/rm", {"response": right, "label": label}) == (200, 1.0)
    assert post(f"{running.url}/get_reward", asked)[1]["rewards"] == [1.0, 0.0]
    status, body = post(f"{running.url}/score", {"items": [item(0, right) | {"suite": "none"}]})
    assert (status, body["kind"]) == (404, "unknown")


@pytest.mark.slow
def test_what_a_killed_replica_had_is_scored_by_another_and_counted_once() -> None:
    arguments = ("--suite", CODE.name, "--limit", "1", "--box", "subprocess", "--workers", "2")
    question = CODE.load("train")[0].id
    with started(*arguments) as running, ThreadPoolExecutor(1) as pool:
        before = replicas_of(running)
        items = [
            {"suite": CODE.name, "question": question, "completion": SLEEPING.format(at)}
            for at in range(12)
        ]
        asked = pool.submit(post, f"{running.url}/score", {"items": items})
        until(lambda: get(f"{running.url}/counts")[1]["items"])
        os.kill(min(before), signal.SIGKILL)
        status, body = asked.result()
        until(lambda: len(replicas_of(running) - before) == 1)
        counts = get(f"{running.url}/counts")[1]
        out, _, code = running.stopped(signal.SIGTERM)
    assert (status, {row["status"] for row in body["outcomes"]}) == (200, {"scored"})
    assert (counts["items"], counts["statuses"]["scored"], counts["shared"]) == (12, 12, 0)
    assert " died; " in out
    assert out.endswith("Stopped. 12 rewards: 12 scored; $0 spent.\n")
    assert code == 0


@pytest.mark.docker
def test_programs_are_graded_by_replicas_in_containers_of_their_own(docker_box: Box) -> None:
    arguments = ("--suite", CODE.name, "--limit", "8", "--box", docker_box.name, "--workers", "2")
    questions = CODE.load("train")[:8]
    replies = [(one, gold_reply(one)) for one in questions]
    replies += [(one, f"```python\nprint({one.id!r})\n```") for one in questions]
    items = [{"suite": CODE.name, "question": one.id, "completion": said} for one, said in replies]
    with started(*arguments) as running:
        status, body = post(f"{running.url}/score", {"items": items})
        replicas = get(f"{running.url}/counts")[1]
        out, _, code = running.stopped(signal.SIGTERM)
    assert (status, [row["value"] for row in body["outcomes"]]) == (200, [1.0] * 8 + [0.0] * 8)
    assert replicas["statuses"]["scored"] == 16
    assert out.endswith("Stopped. 16 rewards: 16 scored; $0 spent.\n")
    assert code == 0


@contextmanager
def ends_its_process() -> Generator[RowGrader]:
    """Yield what ends its process for one completion and values all others."""

    def grade(rows: Sequence[GradingRow]) -> list[GradingResult]:
        if any(text == "end" for _, _, _, text, _ in rows):
            os._exit(1)
        return [GradingResult(Status.SCORED, 1.0)] * len(rows)

    yield grade


@pytest.mark.slow
def test_an_item_that_loses_two_replicas_has_no_value_and_the_service_goes_on() -> None:
    said = list[str]()
    with Replicas([ends_its_process] * 2, said.append).run() as grade:
        reward = Reward(train(INTEGER), elsewhere=grade)
        (lost,) = anyio.run(reward.score, [RewardItem(**item(0, "end"))])
        (again,) = anyio.run(reward.score, [RewardItem(**item(0, "go on"))])
    assert (lost.value, lost.status, lost.reason) == (None, Status.SCORER_ERROR, LOST)
    assert (again.status, reward.counts.items) == (Status.SCORED, 2)
    assert ["died; " in line for line in said] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_replica_outlives_its_head(number: int) -> None:
    with started("--suite", INTEGER.name, "--limit", "1", "--workers", "2") as running:
        pids = replicas_of(running)
        running.process.send_signal(number)
        running.process.wait()
    assert len(pids) == 2
    until(lambda: not any(map(runs, pids)))


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


LIMIT = Decimal("0.02")
"""What some 130 calls of the first worker cost, and several times what one can cost at most."""
POOLED = ("--suite", INTEGER.name, "--limit", "20", "--pool", "rehearsal", "--workers", "2")
LIMITED = (*POOLED, "--max-usd", f"{LIMIT}")


def plans(n: int) -> list[dict[str, Any]]:
    return [item(at, PLAN.replace("Solve it.", f"Solve it, {at}.")) for at in range(n)]


@pytest.mark.slow
def test_replicas_spend_no_more_than_the_limit_together(tmp_path: Path) -> None:
    with started(*LIMITED, "--max-masked", "1", "--log-dir", str(tmp_path)) as running:
        rows = post(f"{running.url}/score", {"items": plans(200)})[1]["outcomes"]
        counts = get(f"{running.url}/counts")[1]
        running.stopped(signal.SIGTERM)
    found = Counter(row["status"] for row in rows)
    assert set(found) == {"scored", "budget"}
    assert LIMIT / 2 < Decimal(counts["usd"]) == spent_so_far(tmp_path, BOOK).usd <= LIMIT
    assert counts["statuses"] | found == counts["statuses"]


@pytest.mark.slow
def test_too_many_without_a_value_stop_all_replicas_at_once() -> None:
    with started(*LIMITED) as running:
        status, body = post(f"{running.url}/score", {"items": plans(300)})
        replies = [post(f"{running.url}/score", {"items": [one]}) for one in plans(6)]
        health = get(f"{running.url}/health")
        counts = get(f"{running.url}/counts")[1]
        running.stopped(signal.SIGTERM)
    assert (status, body["kind"]) == (503, "too_many_masked")
    assert replies == [(503, body)] * 6
    assert health == (503, body)
    assert counts["stopped"] == body["error"]
    assert Decimal(counts["usd"]) <= LIMIT


def test_a_replica_that_is_lost_while_all_end_is_not_waited_for() -> None:
    said: list[str] = []
    replicas = Replicas([ends_its_process], said.append)
    (lost,) = replicas._replicas
    assert lost.grading is None
    replicas._stopped.set()
    replicas._keep(lost)
    assert said == []
