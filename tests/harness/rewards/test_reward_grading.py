"""How a reward grades: equal work once, stuck work given up, programs ended at their deadline."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest

from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import RewardItem, RewardOutcome, Rollout, Status
from podium.harness.rewards.reward import (
    Deadline,
    DeadlineBox,
    DeadlinePassed,
    Reward,
    RewardSettings,
)
from podium.sandbox import IMAGE, Box, Program
from tests.harness.rewards.small_suites import (
    QUICK,
    Graded,
    Ran,
    alive,
    exams,
    items,
    score,
    values,
)


def test_equal_items_are_graded_once_and_say_so() -> None:
    suite = Graded()
    reward = Reward(exams(suite))
    first = score(reward, items(("q1", "1"), ("q1", "1"), ("q1", "2")))
    again = score(reward, items(("q1", "2"), ("q2", "2")))
    assert [outcome.shared for outcome in (*first, *again)] == [False, True, False, True, False]
    assert sorted(suite.calls) == ["q1 1", "q1 2", "q2 2"]
    assert reward.counts.shared == 2


def test_equal_items_of_calls_at_the_same_time_are_graded_once() -> None:
    def slowly(question: Question, reply: str) -> Grade:
        time.sleep(0.1)
        return Grade(1.0, reply)

    suite = Graded(slowly)
    reward = Reward(exams(suite))

    async def both() -> list[Any]:
        calls = (reward.score(items(("q1", "1"))) for _ in range(8))
        return await asyncio.gather(*calls)

    outcomes = [outcome for (outcome,) in asyncio.run(both())]
    assert [outcome.value for outcome in outcomes] == [1.0] * 8
    assert len(suite.calls) == 1


def test_a_grade_that_failed_is_not_remembered() -> None:
    broken = Event()
    broken.set()

    def sometimes(question: Question, reply: str) -> Grade:
        if broken.is_set():
            raise OSError("the disk is full")
        return Grade(1.0, reply)

    reward = Reward(exams(Graded(sometimes)))
    assert values(reward, items(("q1", "1"))) == [None]
    broken.clear()
    assert values(reward, items(("q1", "1"))) == [1.0]


def test_a_stuck_grader_is_given_up_and_holds_up_no_other_item() -> None:
    stop = Event()

    def stuck(question: Question, reply: str) -> Grade:
        if reply == "stuck":
            stop.wait()
        return Grade(1.0, reply)

    reward = Reward(exams(Graded(stuck)), settings=RewardSettings(most=1, timeout_s=0.3))
    asked = items(*((f"q{n}", "stuck" if n == 3 else "1") for n in range(10)))
    try:
        outcomes = score(reward, asked)
    finally:
        stop.set()
    assert [outcome.value for outcome in outcomes] == [1.0] * 3 + [None] + [1.0] * 6
    assert outcomes[3].status is Status.TIMEOUT
    assert reward.counts.abandoned == 1


def test_one_reward_serves_several_event_loops_at_once() -> None:
    reward = Reward(exams(Graded()))
    asked = items(*((f"q{n % 10}", str(n)) for n in range(500)))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: values(reward, asked), range(8)))
    assert found == [found[0]] * 8
    assert reward.counts.items == 4000


def test_programs_are_graded_in_the_box(subprocess_box: Box) -> None:
    reward = Reward(exams(Ran()), box=subprocess_box)
    asked = items(("q1", "print(1)"), ("q1", "print(2)"), ("q2", "print(2)"), suite="ran")
    assert values(reward, asked) == [1.0, 0.0, 1.0]


def test_a_program_that_waits_is_ended_at_the_deadline_and_nothing_is_left_of_it(
    subprocess_box: Box, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    waiting = (
        f"import os, time\nos.fork()\n"
        f"with open({str(pids)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')\n"
        f"time.sleep(19)"
    )
    settings = RewardSettings(most=1, timeout_s=2.0)
    reward = Reward(exams(Ran()), settings=settings, box=subprocess_box)
    outcomes = score(reward, items(("q1", waiting), ("q1", "print(1)"), suite="ran"))
    assert [outcome.status for outcome in outcomes] == [Status.TIMEOUT, Status.SCORED]
    assert outcomes[0].value is None
    assert outcomes[0].latency_s < 8
    assert reward.counts.abandoned == 0
    assert len(pids.read_text().split()) == 2
    assert alive(pids) == []


def test_a_programs_own_time_limit_is_a_graded_0(subprocess_box: Box) -> None:
    reward = Reward(exams(Ran()), box=subprocess_box)
    (outcome,) = score(reward, items(("q1", "while True: pass"), suite="ran"))
    assert (outcome.value, outcome.status) == (0.0, Status.SCORED)


def test_an_answer_that_took_all_the_time_leaves_none_to_its_program(subprocess_box: Box) -> None:
    async def slowly(item: RewardItem, question: Question) -> Rollout:
        await anyio.sleep(0.6)
        return Rollout("import time\ntime.sleep(5)")

    settings = RewardSettings(timeout_s=1.2, max_masked=1.0)
    reward = Reward(exams(Ran()), slowly, settings, subprocess_box)
    (outcome,) = score(reward, items(("q1", "x"), suite="ran"))
    assert (outcome.value, outcome.status) == (None, Status.TIMEOUT)
    assert outcome.latency_s < 4


def test_a_box_with_a_deadline_stands_for_its_box_in_what_a_suite_remembers(
    subprocess_box: Box,
) -> None:
    one, two = (DeadlineBox(subprocess_box, Deadline(at)) for at in (1.0, 2.0))
    known: dict[Any, str] = {subprocess_box: "known"}
    assert known[one] == {one: "known"}[two] == "known"
    assert (one.name, one.facts(IMAGE)) == ("subprocess", subprocess_box.facts())
    one.close()
    with closing(two.box.run(Program("print(1)"), [b""])) as outcomes:
        assert next(outcomes).stdout == b"1\n"


@pytest.mark.slow
def test_inputs_are_run_until_the_deadline_and_the_one_at_it_says_nothing(
    subprocess_box: Box,
) -> None:
    box = DeadlineBox(subprocess_box, Deadline(time.monotonic() + 2.5))
    slow = Program("import time\ntime.sleep(float(input()))\nprint('done')")
    limits = replace(QUICK, wall_s=1.5)
    said: list[str] = []
    given = [b"0.1", b"0.1", b"30", b"30", b"0.1"]
    outcomes = box.run(slow, given, limits)
    with pytest.raises(DeadlinePassed):
        said.extend(outcome.status for outcome in outcomes)
    own = ["exited", "exited", "time"]
    assert said == own[: len(said)]  # a busy machine may come less far


def test_a_cancelled_call_leaves_its_work_to_whoever_waits_for_it() -> None:
    def slowly(question: Question, reply: str) -> Grade:
        time.sleep(0.3)
        return Grade(1.0, reply)

    reward = Reward(exams(Graded(slowly)))

    async def race() -> list[RewardOutcome]:
        first = asyncio.create_task(reward.score(items(("q1", "1"))))
        second = asyncio.create_task(reward.score(items(("q1", "1"))))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    (outcome,) = asyncio.run(race())
    assert (outcome.value, outcome.shared) == (1.0, False)
