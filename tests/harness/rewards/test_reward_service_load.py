"""The reward service under load: how much at once, how long, and that values stay what they are."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import RewardClient, RewardItem
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import SuiteSplit
from podium.sandbox import Box
from podium.suites import SUITES
from tests.harness.rewards.service import listening, post, service_of, train
from tests.harness.toy_run import Toy
from tests.suites.gold import gold_reply

pytestmark = pytest.mark.slow

INTEGER, CODE = SUITES["practice-integer"], SUITES["practice-code"]


@dataclass
class Slow(Toy):
    """A suite that takes its time and notes how many gradings ran at once, and how many in all."""

    name = "slow"
    seconds: float = 0.05
    at_once: int = 0
    most: int = 0
    graded: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        Toy.__init__(self)

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        with self.lock:
            self.at_once, self.graded = self.at_once + 1, self.graded + 1
            self.most = max(self.most, self.at_once)
        time.sleep(self.seconds)
        with self.lock:
            self.at_once -= 1
        return Grade(1.0, reply)


def test_64_requests_at_once_are_graded_a_few_at_a_time() -> None:
    slow = Slow()
    with (
        listening(service_of(train(slow), RewardSettings(most=3))) as url,
        ThreadPoolExecutor(64) as pool,
    ):
        item = {"suite": "slow", "question": "train-0"}

        def ask(n: int) -> int:
            return post(f"{url}/score", {"items": [{**item, "completion": str(n)}]})[0]

        assert set(pool.map(ask, range(64))) == {200}
    assert slow.graded == 64
    assert slow.most <= 3


def test_equal_items_in_flight_are_graded_once() -> None:
    slow = Slow(seconds=0.3)
    with listening(service_of(train(slow))) as url, ThreadPoolExecutor(8) as pool:
        body = {"items": [{"suite": "slow", "question": "train-1", "completion": "same"}] * 4}
        replies = list(pool.map(lambda _: post(f"{url}/score", body)[1]["outcomes"], range(8)))
    shared = [row["shared"] for rows in replies for row in rows]
    assert slow.graded == 1
    assert shared.count(False) == 1


def test_a_program_that_outlasts_the_deadline_is_ended_and_has_no_value(
    subprocess_box: Box,
) -> None:
    exams = train(CODE, first=1)
    (question,) = exams[CODE.name].questions
    sleeping = "```python\nimport time\ntime.sleep(10000)\n```"
    service = service_of(exams, RewardSettings(timeout_s=1.0), box=subprocess_box)
    with listening(service) as url:
        item = {"suite": CODE.name, "question": question, "completion": sleeping}
        (row,) = post(f"{url}/score", {"items": [item]})[1]["outcomes"]
    assert (row["value"], row["status"]) == (None, "timeout")


def items_of(exams: dict[str, SuiteSplit]) -> list[RewardItem]:
    said: list[RewardItem] = []
    for name, exam in exams.items():
        for question in exam.questions.values():
            for reply in (
                gold_reply(question),
                "Answer: B",
                "\\boxed{12}",
                "```python\n1\n```",
                "",
            ):
                said.append(RewardItem(name, question.id, reply))
    return said


def test_values_over_http_are_those_in_this_process(subprocess_box: Box) -> None:
    exams = train(INTEGER, SUITES["practice-choice"], first=10) | train(CODE, first=2)
    items = items_of(exams)

    async def both(url: str) -> tuple[Sequence[Any], Sequence[Any]]:
        far = await RewardClient(url).score(items)
        near = await Reward(exams, box=subprocess_box).score(items)
        return far, near

    with listening(service_of(exams, box=subprocess_box)) as url:
        far, near = anyio.run(both, url)
    assert [(one.value, one.status, one.components) for one in far] == [
        (one.value, one.status, one.components) for one in near
    ]
    assert {one.value for one in far} == {0.0, 1.0}
