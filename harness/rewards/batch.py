"""What a batch of rewarded plans looked like: groups, means and shares for a trainer's log.

A group is the completions of one prompt, whose rewards a GRPO trainer compares: where all are equal
nothing is learnt from it. Pure and standard library only: it runs in a trainer's own environment.
Not here: values (values.py) and counts of a whole training (tally.py).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

from harness.rewards.items import RewardItem, RewardOutcome


@dataclass(frozen=True, slots=True)
class Prompt:
    """What tells the prompts of a batch apart: all columns of a data set's row."""

    suite: str
    question: str
    epoch: int
    workers: tuple[str, ...]
    first: str


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt."""

    prompt: Prompt
    values: tuple[float | None, ...]

    @property
    def constant(self) -> bool:
        """Whether nothing can be learnt: fewer than two values, or all of them equal."""
        return len({value for value in self.values if value is not None}) < 2


def groups_of(items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome]) -> list[Group]:
    """Return the groups of a batch, in the order in which their prompts come first."""
    found: dict[Prompt, list[float | None]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        found.setdefault(prompt_of(item), []).append(outcome.value)
    return [Group(prompt, tuple(values)) for prompt, values in found.items()]


def prompt_of(item: RewardItem) -> Prompt:
    """Return the prompt that an item is a completion of."""
    return Prompt(item.suite, item.question, item.epoch, item.workers, item.first)


def numbered_in_groups(items: Sequence[RewardItem]) -> list[RewardItem]:
    """Number the completions of each prompt: equal plans may stand in texts that differ."""
    seen: Counter[Prompt] = Counter()
    numbered: list[RewardItem] = []
    for item in items:
        prompt = prompt_of(item)
        numbered.append(replace(item, replicate=seen[prompt]))
        seen[prompt] += 1
    return numbered


def plan_metrics(
    items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome], names: Sequence[str]
) -> dict[str, float]:
    """Return means over the batch and the shares of workers over steps; NaN where nothing is known.

    Always the same keys, one of them for every name of the pool. A leak counts where it is known,
    so programs do not count; dollars and calls are those of a reply's price, cached or not.
    """
    works = [outcome.work for outcome in outcomes if outcome.work is not None]
    steps = Counter(name for work in works for name in work.workers)
    total = sum(steps.values())
    groups = groups_of(items, outcomes)
    known = [float(work.leaked) for work in works if work.leaked is not None]
    prices = [outcome.usd for outcome in outcomes]
    return {
        "parsed": _mean([float(outcome.work is not None) for outcome in outcomes]),
        "steps": _mean([float(len(work.workers)) for work in works]),
        "calls": _mean([float(outcome.calls) for outcome in outcomes]),
        "cached": _mean([float(work.cached) for work in works]),
        "usd_per_plan": nan if None in prices else _mean([float(usd or 0) for usd in prices]),
        "zero_variance": _mean([float(group.constant) for group in groups]),
        "leaked": _mean(known),
        **{f"worker/{name}": steps[name] / total if total else nan for name in names},
    }


def columns_of(outcomes: Sequence[RewardOutcome]) -> dict[str, list[object]]:
    """Return what is logged beside each completion: never a question's text, nor its target."""
    works = [outcome.work for outcome in outcomes]
    return {
        "status": [outcome.status.value for outcome in outcomes],
        "reason": [outcome.reason for outcome in outcomes],
        "plan": [work.plan if work else "" for work in works],
        "workers": [" ".join(work.workers) if work else "" for work in works],
        "steps": [len(work.workers) if work else None for work in works],
        "calls": [outcome.calls for outcome in outcomes],
        "usd": [None if outcome.usd is None else float(outcome.usd) for outcome in outcomes],
        "leaks_answer": [work.leaked if work else None for work in works],
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
