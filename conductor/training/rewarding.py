"""The reward of a training: plans carried out on its pool and graded by its suites.

One reward serves training and validation, so that one limit of dollars holds for both. Where
several processes train, each has a reward, and their limits together are those of the configuration
(together.py). What a plan is worth and what is refused is said in conductor/training_reward.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from conductor.cost_term import DISCOUNT
from conductor.plan_reward import Planned
from conductor.training.folder import process, world_size
from conductor.training.job import Training
from conductor.training.studied import verdict_rewards
from conductor.training.together import at_once, of_all, rates
from conductor.training.watch import Watching
from conductor.training_reward import Conducted, Place, RewardConfig, training_reward
from harness.rewards.reward import PAPER, PLAIN, OutcomeValues
from harness.rewards.splits import SuiteSplit

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
    """Dollars that are gone in all processes, earlier sittings included. All processes call it
    together; it divides what is left of the limit among them anew."""
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
        lambda: spent_by_all(answerer, max_usd(training)),
        answerer,
    )


def spent_by_all(answerer: Planned, most: Decimal | None) -> Decimal:
    """Return what all processes have spent, and divide what is left of `most` among them anew.

    Only the first one pays for validations, so their parts are not used up alike. One that began
    late may have read calls of another as spent before: the least reading counts none twice.
    """
    if world_size() == 1:
        return answerer.usd
    told = of_all((answerer.before, answerer.usd - answerer.before))
    gone = min(before for before, _ in told) + sum((own for _, own in told), Decimal(0))
    if most is not None:
        answerer.allow((most - gone) / len(told))
    return gone


def reward_config(training: Training) -> RewardConfig:
    """Return the [reward] section as the reward of one process takes it."""
    wanted, processes = training.config.reward, world_size()
    return RewardConfig(
        name=wanted.name,
        cost_weight=wanted.cost_weight,
        cost_scale=wanted.cost_scale,
        cost_by=wanted.cost_by,
        concurrency=at_once(training.config, processes),
        rates=rates(training.config, processes),
        timeout_s=wanted.timeout_s,
        max_masked=wanted.max_masked,
        max_usd=max_usd(training),
        recursive=training.config.recursion is not None,
        discount=training.config.recursion.discount if training.config.recursion else DISCOUNT,
        deduplicate=wanted.deduplicate,
        seed=training.config.run.seed,
        rank=process(),
        processes=processes,
    )


def max_usd(training: Training) -> Decimal | None:
    """Return the dollars of all processes: the command's, else the configuration's."""
    asked = training.request.max_usd
    return training.config.reward.max_usd if asked is None else asked


def _both(training: Training, name: str) -> SuiteSplit:
    """Return a suite with what teaches and what is held out."""
    exam, held_out = training.exams[name], training.held_out[name]
    return SuiteSplit(exam.suite, {**exam.questions, **held_out.questions})


def _values(training: Training) -> OutcomeValues:
    return PLAIN if training.config.reward.name == "plain" else PAPER
