"""The reward of a training: plans carried out on its pool and graded by its suites.

One answerer serves training and validation, so that one limit of dollars holds for both. What a
plan is worth is said in plan_reward.py and harness/rewards/core.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.pacing import Rates
from conductor.plan_reward import PlanSettings, planned
from conductor.training.folder import process
from conductor.training.job import Training
from conductor.training.studied import verdict_rewards
from conductor.training.watch import Watching
from harness.rewards.core import PAPER, PLAIN, Reward, RewardSettings, Values
from harness.rewards.exams import Exam

LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of one training."""

    training: Watching
    validation: Watching
    stopped: Callable[[], str] = str
    """Why no worker is asked any more, as far as money goes; empty while there is some."""


def rewards(training: Training, box: Any, folder: Path | None) -> Rewards:
    """Return the rewards; every call of a worker is written below `folder`, where there is one."""
    config, spec = training.config, training.spec
    again = config.reward.deduplicate
    if training.study:
        most = config.reward.max_masked
        both = verdict_rewards(training.study, config.form, _values(training), most)
        return Rewards(Watching(both[0], again), Watching(both[1]))
    usd = max_usd(training)
    settings = PlanSettings(
        form=config.form,
        max_usd=usd,
        seed=config.run.seed,
        log_dir=folder / LEDGER if folder else None,
        rates=Rates(per_minute=config.reward.rpm),
        secret=frozenset(n for n, e in training.exams.items() if not e.suite.publishable),
        rank=process(),
    )
    answerer = planned(spec, training.book, settings)

    def reward(exams: Mapping[str, Exam]) -> Reward:
        return Reward(exams, answerer, _settings(training, usd), box)

    return Rewards(
        Watching(reward(training.exams), again),
        Watching(reward(training.held_out)),
        lambda: answerer.stopped,
    )


def max_usd(training: Training) -> Decimal | None:
    """Return the dollars that may be spent: the command's, else the configuration's."""
    asked = training.request.max_usd
    return training.config.reward.max_usd if asked is None else asked


def _settings(training: Training, usd: Decimal | None) -> RewardSettings:
    reward = training.config.reward
    return RewardSettings(
        most=reward.concurrency,
        timeout_s=reward.timeout_s,
        max_usd=usd,
        max_masked=reward.max_masked,
        values=_values(training),
    )


def _values(training: Training) -> Values:
    return PLAIN if training.config.reward.name == "plain" else PAPER
