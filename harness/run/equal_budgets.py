"""Checks, before any call, which systems fit an equal budget, and if it can be enforced.

An equal budget (`--equal`) is a limit for every system on one question, such as `calls=9`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from podium.harness.envelope import EqualBudget, equal_budgets, single_budget
from podium.harness.errors import UserError
from podium.harness.pool_config import WorkerSpec
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.evaluate import Job
from podium.harness.run.experiment import FILE
from podium.harness.run.preflight import slot_max_tokens
from podium.harness.task_suite import TaskSuite

UNFIT = "a framework makes its calls, or it matches the cost of another system"


def by_size(request: RunRequest) -> list[RunRequest]:
    """Return a run request for each size of the request's equal budget, with a directory for each.

    The runs share sampled replies and the limit `max_usd`. Raises `UserError` if the request's own
    directory already holds a run.
    """
    budgets = equal_budgets(request.equal) if request.equal else ()
    if len(budgets) < 2:
        return [request]
    folder = request.log_dir
    if (folder / FILE).exists():
        raise UserError(
            f"{folder} holds a run with one budget. Name another --log-dir for several budgets."
        )
    return [
        replace(request, equal=str(budget), log_dir=folder / str(budget), group_dir=folder)
        for budget in budgets
    ]


def most_calls_of(job: Job) -> int | None:
    """Return the maximum calls per question by the equal budget; None if it limits no calls."""
    budget = single_budget(job.experiment.equal)
    return int(budget.limit) if budget and budget.unit == "calls" else None


def fitting_systems(job: Job, systems: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the systems that can keep the run's equal budget, and why each other system cannot."""
    budget = single_budget(job.experiment.equal)
    if budget is None:
        return [*systems], []
    reasons = {name: _why_unfit(job, name, budget) for name in systems}
    fitting = [name for name, reason in reasons.items() if not reason]
    return fitting, [f"{name}: {reason} ({budget})." for name, reason in reasons.items() if reason]


def _why_unfit(job: Job, name: str, budget: EqualBudget) -> str:
    card = job.catalogue.card(name)
    if not card.fits_budgets:
        return f"it cannot answer within an equal budget: {UNFIT}"
    if budget.unit == "calls" and budget.limit < 2 and "conductor" in card.needs:
        return "the plan is a call, so no call remains for an answer"
    return ""


def why_unbounded(job: Job, systems: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why a run's suites or workers make its equal budget unenforceable."""
    budget = single_budget(job.experiment.equal)
    if budget is None:
        return
    for suite in job.suites:
        if isinstance(suite, TaskSuite):
            yield (
                f"{suite.name} is an Inspect task, which decides how many turns a question has, "
                "but an equal budget covers one question and one answer. Leave --equal or the task "
                "out."
            )
    if budget.unit == "seconds" and job.spec.label == "recorded":
        yield "Recorded replies have no duration. Leave --equal out, or name another unit."
    if not budget.is_bounded:
        return
    asks = any("conductor" in job.catalogue.card(name).needs for name in systems)
    slots = [*job.spec.workers, *([job.spec.conductor] if asks and job.spec.conductor else [])]
    least = {slot.name: _least(job, budget, slot) for slot in slots}
    for name in (name for name, bound in least.items() if bound is None):
        lacks = "max_tokens" if budget.unit == "tokens" else "max_tokens and a price"
        yield f"{name!r} needs {lacks} so that {budget} can be enforced. Set them in the pool file."
    bounds = [bound for bound in least.values() if bound is not None]
    if bounds and min(bounds) > budget.limit:
        yield (
            f"No call fits in {budget}: the smallest can take {min(bounds):f} {budget.unit}. Raise "
            "the budget, or set a smaller max_tokens for the workers."
        )


def _least(job: Job, budget: EqualBudget, slot: WorkerSpec) -> Decimal | None:
    """Return how much of an equal budget a call with an empty prompt can use; None if unknown."""
    return budget.most(0, slot_max_tokens(slot), job.book.price(slot.price_ref))
