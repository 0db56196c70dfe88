"""The reward of a training: plans carried out on its pool and graded by its suites.

One reward serves training and validation, so that one limit of dollars holds for both. What a plan
is worth and what is refused is said in conductor/training_reward.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.cost_term import DISCOUNT
from conductor.pacing import Rates
from conductor.plan_reward import Planned
from conductor.training.folder import process
from conductor.training.job import Training
from conductor.training.studied import verdict_rewards
from conductor.training.watch import Watching
from conductor.training_reward import (
    Conducted,
    Place,
    RewardConfig,
    training_reward,
)
from harness.rewards.core import PAPER, PLAIN, Values
from harness.rewards.exams import Exam

LEDGER = "ledger"


def _nothing() -> Decimal:
    return Decimal(0)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of one training."""

    training: Watching
    validation: Watching
    stopped: Callable[[], str] = str
    """Why no worker is asked any more, as far as money goes; empty while there is some."""
    spent: Callable[[], Decimal] = _nothing
    """Dollars that are gone, earlier sittings included."""
    answerer: Planned | None = None
    """Who carries plans out; None for a study."""


def rewards(training: Training, box: Any, folder: Path | None) -> Rewards:
    """Return the rewards; every call of a worker is written below `folder`, where there is one.

    UserError for a reward that cannot be valued or paid.
    """
    config = training.config
    again = config.reward.deduplicate
    if training.study:
        most = config.reward.max_masked
        both = verdict_rewards(training.study, config.form, _values(training), most)
        return Rewards(Watching(both[0], again), Watching(both[1]))
    made = training_reward(
        reward_config(training),
        Conducted(training.spec, training.book, config.form),
        {name: _both(training, name) for name in training.exams},
        Place(folder / LEDGER if folder else None, box),
    )
    answerer = made.answerer
    return Rewards(
        Watching(made.reward, again),
        Watching(made.reward),
        lambda: answerer.stopped,
        lambda: answerer.usd,
        answerer,
    )


def reward_config(training: Training) -> RewardConfig:
    """Return the [reward] section as the reward takes it."""
    wanted = training.config.reward
    return RewardConfig(
        name=wanted.name,
        cost_weight=wanted.cost_weight,
        cost_scale=wanted.cost_scale,
        cost_by=wanted.cost_by,
        concurrency=wanted.concurrency,
        rates=Rates(per_minute=wanted.rpm),
        timeout_s=wanted.timeout_s,
        max_masked=wanted.max_masked,
        max_usd=max_usd(training),
        recursive=training.config.recursion is not None,
        discount=training.config.recursion.discount if training.config.recursion else DISCOUNT,
        deduplicate=wanted.deduplicate,
        seed=training.config.run.seed,
        rank=process(),
    )


def max_usd(training: Training) -> Decimal | None:
    """Return the dollars that may be spent: the command's, else the configuration's."""
    asked = training.request.max_usd
    return training.config.reward.max_usd if asked is None else asked


def _both(training: Training, name: str) -> Exam:
    """Return a suite with what teaches and what is held out."""
    exam, held_out = training.exams[name], training.held_out[name]
    return Exam(exam.suite, {**exam.questions, **held_out.questions})


def _values(training: Training) -> Values:
    return PLAIN if training.config.reward.name == "plain" else PAPER
