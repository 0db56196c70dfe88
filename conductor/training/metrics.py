"""What a step's plans came to, and what a training knows of its own course; no torch."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from time import monotonic
from typing import Any

from conductor.training.config import TrainingConfig
from harness.rewards.outcome import VALUED, RewardItem, RewardOutcome, RewardScorer, Status
from harness.rewards.trainers import once_in_its_step
from harness.workflow import Workflow

ReadPlan = Callable[[RewardItem], Workflow | None]  # an item's workflow, None where there is none
NESTED = {"suites": "suite", "workers": "worker"}
Validation = Mapping[str, Any]  # what a validation came to, as a line of metrics.jsonl has it
GRADED = {f"status/{status.value}" for status in VALUED}
"""Of what a line counts; the others have no value."""


@dataclass(slots=True)
class StepResults:
    """The items of one step with what they came to."""

    items: list[RewardItem] = field(default_factory=list[RewardItem])
    outcomes: list[RewardOutcome] = field(default_factory=list[RewardOutcome])
    seconds: float = 0.0


class RewardRecorder:
    """A reward that remembers what passed since it was last asked; it scores as the other does."""

    def __init__(self, scores: RewardScorer, deduplicate: bool = False) -> None:
        """Watch a reward."""
        self._scores, self._deduplicate = scores, deduplicate
        self.seen = StepResults()

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order."""
        started = monotonic()
        outcomes = await (self._once(items) if self._deduplicate else self._scores.score(items))
        self.seen.items.extend(items)
        self.seen.outcomes.extend(outcomes)
        self.seen.seconds += monotonic() - started
        return outcomes

    async def _once(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Score each different item once, as its first was numbered; its cost is said once."""
        keys = [once_in_its_step(item) for item in items]
        firsts: dict[RewardItem, RewardItem] = {}
        for key, item in zip(keys, items, strict=True):
            firsts.setdefault(key, item)
        known = dict(zip(firsts, await self._scores.score(list(firsts.values())), strict=True))
        outcomes: list[RewardOutcome] = []
        for key in keys:
            outcome = known[key]
            outcomes.append(outcome)
            free = None if outcome.usd is None else Decimal(0)  # unknown stays unknown
            known[key] = replace(
                outcome, shared=True, calls=0, usd=free, latency_s=0.0, grading_s=0.0
            )
        return outcomes

    def take(self) -> StepResults:
        """Return what passed since the last time, and forget it."""
        taken, self.seen = self.seen, StepResults()
        return taken


def step_summary(seen: StepResults, read: ReadPlan) -> dict[str, float | None]:
    """Return what a step's plans came to: means over its items, shares of workers over steps."""
    n = len(seen.items) or 1
    statuses = Counter(outcome.status for outcome in seen.outcomes)
    parsed = [plan for plan in map(read, seen.items) if plan is not None]
    values = [one.value for one in seen.outcomes if one.value is not None]
    right = [one.components.get("correct") for one in seen.outcomes if one.value is not None]
    dollars = [one.usd for one in seen.outcomes]
    return {
        "reward": mean(values),
        "correct": mean([one for one in right if one is not None]),
        "parsed": len(parsed) / n,
        "steps": mean([float(len(plan.steps)) for plan in parsed]),
        "depth": mean([float(max(plan.depths())) for plan in parsed]),
        "calls": sum(one.calls for one in seen.outcomes) / n,
        "usd": None if None in dollars else float(sum(usd for usd in dollars if usd)),
        "masked": 1 - sum(statuses[status] for status in VALUED) / n,
        **{f"status/{status.value}": statuses[status] / n for status in Status},
        "different": len({replace(item, replicate=0) for item in seen.items}) / n,
        **seconds_of(seen),
    }


def seconds_of(seen: StepResults) -> dict[str, float]:
    """Return the seconds of a step's reward, and how they divide into workers and grading.

    Plans run side by side, so they are divided as the seconds that each waited for either.
    """
    waited = sum(outcome.latency_s for outcome in seen.outcomes)
    graded = sum(outcome.grading_s for outcome in seen.outcomes)
    grading = seen.seconds * (graded / waited if waited else 1.0)
    return {
        "reward_seconds": round(seen.seconds, 3),
        "worker_seconds": round(seen.seconds - grading, 3),
        "grading_seconds": round(grading, 3),
    }


def validation_scalars(validation: Mapping[str, Any]) -> dict[str, float]:
    """Return what a validation came to under flat names; what is unknown has none."""
    flat = {key: value for key, value in validation.items() if key not in NESTED}
    for name, one in NESTED.items():
        flat |= {f"{one}/{part}": value for part, value in validation.get(name, {}).items()}
    return {f"validation/{key}": float(one) for key, one in flat.items() if one is not None}


def worker_shares(seen: StepResults, read: ReadPlan) -> dict[str, float]:
    """Return each worker's share of the steps of the plans that could be read."""
    count = Counter(step.worker for plan in map(read, seen.items) if plan for step in plan.steps)
    total = sum(count.values()) or 1
    return {name: count[name] / total for name in sorted(count)}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing.

    >>> mean([]), mean([1.0, 2.0])
    (None, 1.5)
    """
    return sum(values) / len(values) if values else None


@dataclass
class TrainingState:
    """What a training knows of itself beyond TRL's state."""

    best: float | None = None
    best_step: int = 0
    since: int = 0  # validations without a better one, of those graded whole
    validation: Validation | None = None  # the latest step's; None where none was made
    spent: Decimal = Decimal(0)  # dollars when the running step began
    dearest: Decimal = Decimal(0)  # dollars of this session's dearest step, not validated
    validating: Decimal = Decimal(0)  # dollars of the dearest validation, at full price
    ended: str = ""  # why training ended before its last step; empty while it has not
    asked_to_stop: bool = False
    generating: float = 0.0  # seconds of generation in the running step
    resampled: dict[str, float] = field(default_factory=dict[str, float])  # by `Resampling`
    line: dict[str, Any] = field(default_factory=dict[str, Any])


def replay_state(lines: Sequence[Mapping[str, Any]]) -> TrainingState:
    """Return the state at the end of these lines."""
    state = TrainingState()
    for line in lines:
        note_validation(state, line["step"], line.get("validation"))
    return state


def note_validation(state: TrainingState, step: int, validation: Validation | None) -> bool:
    """Note a validation; return whether it is the best so far. The earliest of equals stays."""
    state.validation = validation
    if validation is None:
        return False
    state.validating = max(state.validating, Decimal(str(validation.get("usd") or 0)))
    worth = sure_share(validation)
    if worth is not None and (state.best is None or worth > state.best):
        state.best, state.best_step, state.since = worth, step, 0
        return True
    state.since += not validation.get("masked")
    return False


def sure_share(validation: Validation) -> float | None:
    """Return the share of all held-out questions that is right for sure; None without a grade.

    Over those alone that happened to be graded, a few lucky ones would be the best for good.

    >>> sure_share({"correct": 1.0, "masked": 0.75}), sure_share({"correct": 0.5, "masked": 0.0})
    (0.25, 0.5)
    """
    correct = validation.get("correct")
    return None if correct is None else correct * (1 - (validation.get("masked") or 0.0))


def cut_short(validation: Validation) -> bool:
    """Say whether the money ended within a validation."""
    return bool(validation.get("status/budget"))


def validation_due(config: TrainingConfig, step: int) -> bool:
    """Say whether a step is validated: some are, and the last one always."""
    return step % config.validation.every == 0 or step == int(config.grpo["max_steps"])


def owed_validation(
    config: TrainingConfig, lines: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the last line where it lacks a validation that the money did not last for."""
    if not lines or "validation" in lines[-1] or not validation_due(config, lines[-1]["step"]):
        return None
    return lines[-1]


def ungraded_text(validation: Validation) -> str:
    """Return how many questions have no grade, and why, for a person."""
    count = round(validation["masked"] * validation["questions"])
    why = [
        name.removeprefix("status/").replace("_", " ")
        for name, share in validation.items()
        if name.startswith("status/") and share and name not in GRADED
    ]
    return (
        f"{count} of {validation['questions']} held-out questions have no grade ({', '.join(why)})"
    )
