"""The seconds of a training's steps, by phase, from a formula or from a short measurement."""

from dataclasses import dataclass

from podium.conductor.training.config import TrainingConfig
from podium.conductor.training.grpo_options import batch_sizes
from podium.conductor.training.job import TrainingJob

HOUR_S = 3600.0
USUAL_STEPS = 3  # steps of an average plan (arXiv 2512.04388, section 4.3)
CALL_S = 10.0  # seconds of a worker's reply; assumed, not measured by us
REHEARSED_S = 3.7 / 256
"""Seconds to run a plan on practice programs and to grade it (docs/experiments, 2026-11-22)."""


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """The seconds of a training's phases; the first three are for one batch of plans."""

    writing: float
    rewards: float
    update: float
    warm: float  # one step of the warm start
    validation: float
    probed: str = ""  # what was measured, and on which device; empty for a formula

    def hours(self, config: TrainingConfig) -> float:
        """Return the hours of a training: its warm start, its steps and its validations."""
        sizes, warm = batch_sizes(config), config.warm_start
        start = self.warm * (warm.steps if warm.kind != "none" else 0)
        generations = sizes["generations"] * (self.writing + self.rewards + self.update)
        return (start + generations + sizes["validations"] * self.validation) / HOUR_S

    def text(self, config: TrainingConfig) -> str:
        """Return the seconds of a training step as text, by phase."""
        sizes = batch_sizes(config)
        share = sizes["generations"] / sizes["steps"]  # generated batches per step
        phases = {"writing": self.writing, "rewards": self.rewards, "updates": self.update}
        each = ", ".join(f"{name} {seconds * share:.3g}" for name, seconds in phases.items())
        warm_text = (
            f"warm start {self.warm:.3g} s a step, " if config.warm_start.kind != "none" else ""
        )
        return (
            f"{sum(phases.values()) * share:.3g} s a step: {each}; {warm_text}"
            f"a validation {self.validation:.3g} s"
        )


def reward_seconds(training: TrainingJob, plans: int) -> float:
    """Return the estimated seconds to run and grade some plans; 0 if verdicts are recorded."""
    config = training.config
    if training.verdicts:
        return 0.0
    if training.spec.label != "live":
        return plans * REHEARSED_S
    chain = min(USUAL_STEPS, config.form.max_steps) * CALL_S
    return max(1.0, plans / config.reward.concurrency) * chain
