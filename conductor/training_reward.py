"""The reward of a training from values of its configuration, in one call.

    made = training_reward(config, Conducted(spec, book, form), exams, Place(folder, box))
    GRPOTrainer(..., reward_funcs=made.trl)        # ends when made.trl.stopped says why

What can be known to fail is refused here, before anything is spent. Not here: the configuration
file and the trainer (conductor/training/), and how plans are carried out (plan_reward.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from conductor.cost_term import DISCOUNT, NAME, By, CostAware, Discounted
from conductor.form import Form
from conductor.pacing import Rates
from conductor.plan_reward import Planned, PlanSettings, planned
from harness.errors import UserError
from harness.execute import Budget
from harness.pool_config import PoolSpec
from harness.prices import Book
from harness.rewards.outcome import PAPER, PLAIN, RewardRule
from harness.rewards.reward import AskedSplit, Reward, RewardSettings
from harness.rewards.trainers import TrlReward


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """What a plan is worth, and how fast and for how much workers are asked for it."""

    name: Literal["paper", "plain", "cost-aware"] = "paper"
    cost_weight: float = 0.0
    """`cost-aware` only, as are the next two; see cost_term.py."""
    cost_scale: float = 0.0
    cost_by: By = "usd"
    recursive: bool = False
    """Whether the run has later rounds: then first rounds are discounted."""
    discount: float = DISCOUNT
    concurrency: int = 64
    """Plans that are carried out at once."""
    rates: Rates = field(default_factory=Rates)
    timeout_s: float = 120.0
    """Seconds for one plan, on top of what the rates may make it wait."""
    max_masked: float = 0.3
    max_usd: Decimal | None = None
    """Of the whole training, earlier sittings included."""
    deduplicate: bool = False
    """Carry out equal completions of one step once; they share what it came to."""
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    """Of one plan."""
    rank: int = 0
    """Which process of the training this is."""
    processes: int = 1
    """How many there are: `max_usd` is of all of them, `concurrency` and `rates` of this one."""

    @property
    def label(self) -> str:
        """What logs, manifests and model cards call the reward."""
        named = NAME if self.name == "cost-aware" else self.name
        return f"{named}, first rounds x {self.discount:g}" if self.recursive else named


@dataclass(frozen=True, slots=True)
class Conducted:
    """Who is conducted, at which prices, and how a conductor is asked and read."""

    spec: PoolSpec
    book: Book
    form: Form


@dataclass(frozen=True, slots=True)
class Place:
    """Where a training leaves its journal and its paid replies, and where programs run."""

    folder: Path | None = None
    box: Any = None


@dataclass(frozen=True, slots=True)
class TrainingReward:
    """The parts that a trainer needs; all of them are one reward."""

    reward: Reward
    answerer: Planned
    trl: TrlReward


def training_reward(
    config: RewardConfig, conducted: Conducted, exams: Mapping[str, AskedSplit], place: Place
) -> TrainingReward:
    """Return a reward for the exams' questions; UserError for what cannot be valued or paid."""
    values = values_of(config)
    _refuse_unpriced(config, conducted)
    answerer = planned(
        conducted.spec, conducted.book, plan_settings(config, conducted, exams, place)
    )
    reward = Reward(exams, answerer, _settings(config, conducted.form, values), place.box)
    names, again = conducted.spec.names, not config.deduplicate
    return TrainingReward(reward, answerer, TrlReward(reward, names=names, again=again))


def values_of(config: RewardConfig) -> RewardRule:
    """Return what outcomes are worth; UserError for a cost term that would outweigh being right."""
    worth: RewardRule = PLAIN if config.name == "plain" else PAPER
    if config.name == "cost-aware":
        worth = CostAware(config.cost_weight, config.cost_scale, config.cost_by)
    return Discounted(worth, config.discount) if config.recursive else worth


def plan_settings(
    config: RewardConfig, conducted: Conducted, exams: Mapping[str, AskedSplit], place: Place
) -> PlanSettings:
    """Return how plans are carried out."""
    return PlanSettings(
        budget=config.budget,
        form=conducted.form,
        max_usd=config.max_usd,
        seed=config.seed,
        log_dir=place.folder,
        rates=config.rates,
        kept=frozenset(name for name, exam in exams.items() if exam.suite.publishable),
        rank=config.rank,
        processes=config.processes,
    )


def _settings(config: RewardConfig, form: Form, values: RewardRule) -> RewardSettings:
    """Return how the reward works; the answerer watches dollars: it knows what is cached."""
    waits = config.rates.slowest_s(config.concurrency * form.max_steps)
    return RewardSettings(
        most=config.concurrency,
        timeout_s=config.timeout_s + waits,
        max_masked=config.max_masked,
        values=values,
        budget_masks=False,
    )


def _refuse_unpriced(config: RewardConfig, conducted: Conducted) -> None:
    """Raise UserError where dollars decide a reward, or are limited, and a worker has no price."""
    in_dollars = config.name == "cost-aware" and config.cost_by == "usd"
    if not in_dollars and config.max_usd is None:
        return
    spec = conducted.spec
    for name in spec.names:
        if conducted.book.price(spec.worker(name).price_ref) is None:
            what = "a cost term in dollars" if in_dollars else "--max-usd"
            raise UserError(
                f"Worker {name!r} of pool {spec.name!r} has no price in book "
                f"{conducted.book.name!r}, so {what} cannot hold: complete the book."
            )
