"""Plans for a warm start (supervised steps): from a file, or right plans of earlier trainings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podium.conductor.training.config import TrainingConfig
from podium.harness.errors import UserError
from podium.harness.files import json_lines

Workers = tuple[str, ...]
PLANS = "plans.jsonl"  # has question texts only if all suites may be published
NO_PLAN = (
    "[warm_start] plans or runs contain no plan for these questions and workers. Use plans for "
    "the same train split and pool."
)


class SampledPlan(BaseModel):
    """A line of a training's `plans.jsonl`: an invalid `plan` or ungraded `correct` is None."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    question: str
    plan: tuple[tuple[str, tuple[int, ...]], ...] | None
    correct: float | None = None


def read_plans(config: TrainingConfig) -> dict[str, Workers]:
    """Return question id -> workers of its warm-start plan; UserError if there are no plans."""
    start, steps = config.warm_start, config.form.max_steps
    return read_given_plans(config) if start.plans else own_plans(start.runs, start.least, steps)


def own_plans(runs: Sequence[str], least: float, steps: int) -> dict[str, Workers]:
    """Return question id -> workers of its best right plan in earlier trainings' folders (`runs`).

    Plans are chosen by rewards only, without the correct answers; they have at most `steps` steps.
    The score of a sequence of workers is right tries / (tries + 1), so that 1 of 1 scores less than
    9 of 9. The result is the shortest sequence with a score of `least` or more, else the sequence
    with the highest score (if equal, shorter). UserError if no plan was right.
    """
    tries: defaultdict[str, defaultdict[Workers, list[bool]]]
    tries = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for sample in _sampled(Path(run) / PLANS):
            if sample.plan and len(sample.plan) <= steps:
                workers = tuple(worker for worker, _ in sample.plan)
                tries[sample.question][workers].append(sample.correct == 1)

    def worth(plan: Workers, grades: Sequence[bool]) -> tuple[float, int, float, Workers]:
        share = sum(grades) / (len(grades) + 1)
        return min(share, least), -len(plan), share, plan

    by_question: dict[str, Workers] = {}
    for question, plans in sorted(tries.items()):
        best = max(plans, key=lambda plan: worth(plan, plans[plan]))
        if any(plans[best]):
            by_question[question] = best
    if not by_question:
        raise UserError(
            f"[warm_start] runs: {', '.join(runs)}: none of their plans was right. Name other "
            "trainings."
        )
    return by_question


def _sampled(path: Path) -> Iterator[SampledPlan]:
    if not path.is_file():
        raise UserError(
            f"[warm_start] runs: {path.parent} has no {PLANS}: name folders of `podium train`."
        )
    *lines, final = json_lines(path) or [b""]
    try:
        for line in lines:
            yield SampledPlan.model_validate_json(line)
    except ValidationError as error:
        raise UserError(
            f"[warm_start] runs: {path} has a line that is not a plan. Restore the file."
        ) from error
    with suppress(ValidationError):  # a killed training may have left half a line
        yield SampledPlan.model_validate_json(final)


class GivenPlan(BaseModel):
    """A line in a user's file of plans: a question's id, and the workers of the plan's steps."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    question: str
    workers: tuple[str, ...] = Field(min_length=1)


def read_given_plans(config: TrainingConfig) -> dict[str, Workers]:
    """Return question id -> workers of its plan in the user's file; UserError if invalid."""
    path, by_question = Path(config.warm_start.plans), dict[str, Workers]()
    if not path.is_file():
        raise UserError(f"[warm_start] plans: there is no file {path}. Correct the path.")
    for number, line in enumerate(json_lines(path), 1):
        try:
            plan = GivenPlan.model_validate_json(line)
        except ValidationError as error:
            raise UserError(
                f'[warm_start] plans: line {number} of {path} is not {{"question": ..., "workers": '
                "[...]}, with one worker or more. Correct or delete the line."
            ) from error
        if len(plan.workers) > config.form.max_steps:
            raise UserError(
                f"[warm_start] plans: line {number} of {path} has {len(plan.workers)} steps, and "
                f"[form] max_steps is {config.form.max_steps}. Delete the line, or raise max_steps."
            )
        by_question[plan.question] = plan.workers
    return by_question
