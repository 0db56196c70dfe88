"""The plans that a warm start teaches: those of a file, or what earlier trainings got right."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podium.conductor.training.config import TrainingConfig
from podium.harness.errors import UserError

Workers = tuple[str, ...]
PLANS = "plans.jsonl"  # what was planned; texts only where every suite's may be published
NO_PLAN = (
    "[warm_start] plans, or runs, hold no plan for these questions and workers: take those of "
    "their train split and pool."
)


class SampledPlan(BaseModel):
    """A line of a training's plans; None for what could not be read, or was not graded."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    question: str
    plan: tuple[tuple[str, tuple[int, ...]], ...] | None
    correct: float | None = None


def read_plans(config: TrainingConfig) -> dict[str, Workers]:
    """Return whom a warm start's plans ask for each question; UserError for what holds no plan."""
    start, most = config.warm_start, config.form.max_steps
    return read_given_plans(config) if start.plans else own_plans(start.runs, start.least, most)


def own_plans(runs: Sequence[str], least: float, most: int) -> dict[str, Workers]:
    """Return the workers of one right plan, of `most` steps, for each question that has such.

    Rewards alone say what is right, so a training from these has seen no target. A sequence of
    workers is worth the share of right ones in its tries and one more, so that once out of once
    counts for less than often. Of those worth `least` or more the shortest is taken, or else the
    one that is worth most; of equals the shorter one.
    """
    tries: defaultdict[str, defaultdict[Workers, list[bool]]]
    tries = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for one in _sampled(Path(run) / PLANS):
            if one.plan and len(one.plan) <= most:
                workers = tuple(worker for worker, _ in one.plan)
                tries[one.question][workers].append(one.correct == 1)

    def worth(plan: Workers, grades: Sequence[bool]) -> tuple[float, int, float, Workers]:
        share = sum(grades) / (len(grades) + 1)
        return min(share, least), -len(plan), share, plan

    found: dict[str, Workers] = {}
    for question, plans in sorted(tries.items()):
        best = max(plans, key=lambda plan: worth(plan, plans[plan]))
        if any(plans[best]):
            found[question] = best
    if not found:
        raise UserError(f"[warm_start] runs: {', '.join(runs)}: no plan in them was right.")
    return found


def _sampled(path: Path) -> Iterator[SampledPlan]:
    if not path.is_file():
        raise UserError(
            f"[warm_start] runs: {path.parent} has no {PLANS}: name folders of `podium train`."
        )
    *whole, last = path.read_text(encoding="utf-8").splitlines() or [""]
    try:
        for line in whole:
            yield SampledPlan.model_validate_json(line)
    except ValidationError as error:
        raise UserError(f"[warm_start] runs: {path} holds a line that is no plan.") from error
    with suppress(ValidationError):  # a killed training may have left half of it
        yield SampledPlan.model_validate_json(last)


class GivenPlan(BaseModel):
    """A line of a file of plans that somebody else made."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    question: str
    workers: tuple[str, ...] = Field(min_length=1)


def read_given_plans(config: TrainingConfig) -> dict[str, Workers]:
    """Return each question's workers as a file gives them; UserError for a line that is no plan."""
    path, found = Path(config.warm_start.plans), dict[str, Workers]()
    if not path.is_file():
        raise UserError(f"[warm_start] plans: there is no file {path}.")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            plan = GivenPlan.model_validate_json(line)
        except ValidationError as error:
            raise UserError(
                f'[warm_start] plans: line {number} of {path} is not {{"question": ..., "workers": '
                "[...]}, with one worker or more."
            ) from error
        if len(plan.workers) > config.form.max_steps:
            raise UserError(
                f"[warm_start] plans: line {number} of {path} has {len(plan.workers)} steps, and "
                f"[form] max_steps is {config.form.max_steps}."
            )
        found[plan.question] = plan.workers
    return found
