"""Plans as a conductor writes them, pools of one's own, and what their workflows are worth."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import anyio

from podium.conductor.grpo_reward import PlanAnswerer
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.rewards.outcome import RewardItem, RewardOutcome, Sampler
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import SuiteSplit
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy

BOOK = Book("test", "2026-01-01", "a test", {"scripted/echo": Price(Decimal(1), Decimal(1))}, "0")
USUAL = RewardSettings()


def plan(*steps: tuple[int, str, object]) -> str:
    """Write a plan as a conductor does: model, subtask and what it may read."""
    models, subtasks, access = zip(*steps, strict=True)
    lists = (list(models), list(subtasks), list(access))
    names = ("model_id", "subtasks", "access_list")
    return "\n".join(f"{name} = {made!r}" for name, made in zip(names, lists, strict=True))


SOLVE = plan((0, "Solve it.", []))


def rewarded(
    answer: Sampler,
    exams: Mapping[str, SuiteSplit],
    items: Sequence[RewardItem],
    settings: RewardSettings = USUAL,
) -> list[RewardOutcome]:
    return anyio.run(Reward(exams, answer, settings).score, items)


def spec_of(**models: str) -> PoolSpec:
    slots = tuple(WorkerSpec(name=name, model=model) for name, model in models.items())
    return PoolSpec(name="made", label="live", prices="none", workers=slots)


def one_of(
    answer: PlanAnswerer, completion: str = SOLVE, settings: RewardSettings = USUAL
) -> RewardOutcome:
    items = [RewardItem("toy", "train-0", completion)]
    return rewarded(answer, train(Toy()), items, settings)[0]
