"""Rewards that begin while other plans are written: the same outcomes, each asked for once."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium.conductor.training.job import RewardRecorder
from podium.harness.errors import TooManyMasked
from podium.harness.rewards.outcome import RewardItem, RewardOutcome, Status
from podium.harness.rewards.trainers import run_in_loop
from tests.conductor.training.tiny_training import lines, tiny_config, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"


class Counted:
    """Says how often it was asked, and by which number."""

    def __init__(self, fails: str = "") -> None:
        self.asked: list[RewardItem] = []
        self.fails = fails

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        self.asked.extend(items)
        await asyncio.sleep(0)
        if any(item.completion == self.fails for item in items):
            raise TooManyMasked("Too many.")
        return [
            RewardOutcome(float(item.replicate), Status.SCORED, usd=Decimal(1), calls=1)
            for item in items
        ]


def items(*texts: str) -> list[RewardItem]:
    return [RewardItem("s", "q", text, replicate=at) for at, text in enumerate(texts)]


def scored(
    recorder: RewardRecorder, asked: list[RewardItem], *parts: Sequence[int]
) -> list[RewardOutcome]:
    """Return outcomes of items, some of which were begun before, part by part."""

    async def whole() -> list[RewardOutcome]:
        loop = asyncio.get_running_loop()
        for part in parts:
            await asyncio.to_thread(recorder.begin, [asked[at] for at in part], loop)
        return await recorder.score(asked)

    return run_in_loop(whole())


@pytest.mark.parametrize("deduplicate", [False, True], ids=["each", "once"])
def test_what_was_begun_comes_back_in_its_place_and_is_not_asked_for_again(
    deduplicate: bool,
) -> None:
    asked, counted = items("a", "b", "a", "c", "b"), Counted()
    plain = scored(RewardRecorder(Counted(), deduplicate), asked)
    recorder = RewardRecorder(counted, deduplicate)
    assert scored(recorder, asked, [3], [0, 2]) == plain
    assert len(counted.asked) == len(set(counted.asked)) == (3 if deduplicate else 5)
    taken = recorder.take()
    assert (taken.items, taken.outcomes) == (asked, plain)
    assert taken.ahead > 0
    assert sum(one.calls for one in plain) == len(counted.asked)
    assert scored(recorder, asked) == plain  # nothing of the step before is left
    assert recorder.take().ahead == 0


def test_an_equal_plan_that_ended_first_is_paid_for_once() -> None:
    asked, counted = items("a", "a"), Counted()
    first, second = scored(RewardRecorder(counted, deduplicate=True), asked, [1])
    assert counted.asked == [asked[1]]
    assert (first.value, first.calls, second.calls) == (1.0, 1, 0)
    assert second == replace(first, shared=True, calls=0, usd=Decimal(0))


def test_what_ends_a_training_ends_it_when_the_step_is_scored() -> None:
    asked = items("a", "b")
    with pytest.raises(TooManyMasked):
        scored(RewardRecorder(Counted(fails="b")), asked, [1])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("trl") is None, reason=WHY)
@pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs
def test_a_training_whose_rewards_begin_ahead_makes_the_same_steps(
    whole: Path, tmp_path: Path
) -> None:
    apart = tmp_path / "apart"
    wanted = ("reward.ahead=false", "reward.time_scale=0.001")
    trained_here(tiny_config(tmp_path), apart, *(w for one in wanted for w in ("--set", one)))
    assert lines(apart) == lines(whole)
    assert (apart / "plans.jsonl").read_text() == (whole / "plans.jsonl").read_text()
    weights = [(run / "last" / "model.safetensors").read_bytes() for run in (apart, whole)]
    assert weights[0] == weights[1]
    assert sum(_ahead(apart)) == 0 < sum(_ahead(whole))


def _ahead(run: Path) -> list[float]:
    found = map(json.loads, (run / "metrics.jsonl").read_text().splitlines()[1:])
    return [line["ahead_seconds"] for line in found]
