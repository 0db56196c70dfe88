"""The oracle, a control that sees targets: it runs each question's plan of best expected grade."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from math import sqrt
from pathlib import Path
from typing import Literal

import anyio
from inspect_ai.model import ChatMessage
from pydantic import TypeAdapter, ValidationError

from podium.baselines.common import register
from podium.baselines.single import alone
from podium.harness.context import current
from podium.harness.errors import UserError, first_fault
from podium.harness.execute import execute
from podium.harness.extract import normalised
from podium.harness.files import replace_file
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import PoolSpec
from podium.harness.records import Question, Reply
from podium.harness.request import request_digest
from podium.harness.system import Calls, System, SystemCard, SystemMethods, planned
from podium.harness.workflow import MAX_STEPS, Malformed, Sampling, Step, Workflow, check

# Subtasks give no hints: a plan with a hint would measure the hint, not the workers.
GATHER = "Write down the facts and intermediate results that answering the question needs."
USE = "Use the work above to answer the question."
FINISH = "State the final answer of the work above, in the form the question asks for."


def enumerate_plans(workers: Sequence[str]) -> tuple[Workflow, ...]:
    """Return candidate workflows, shortest first: one worker, chains of 2 or 3, 4 joined by a 5th.

    >>> len(enumerate_plans(["a", "b", "c"])), len(enumerate_plans("abcdefgh"))
    (21, 464)
    """
    plans = list(single_plans(workers))
    for subtask in (GATHER, ""):  # the first gathers facts or answers, the second uses its reply
        for a, b in permutations(workers, 2):
            plans.append(Workflow((Step(a, subtask), Step(b, USE, reads=(0,)))))
    for a, b, c in permutations(workers, 3):  # gather facts, compute, format
        steps = (Step(a, GATHER), Step(b, USE, "all"), Step(c, FINISH, "all"))
        plans.append(Workflow(steps))
    if len(workers) >= MAX_STEPS - 1:  # fan-ins of fewer workers resemble chains of three
        for index, aggregator in enumerate(workers):
            peers = (*workers[index + 1 :], *workers[:index])[: MAX_STEPS - 1]
            fan = [Step(worker) for worker in peers]
            plans.append(Workflow((*fan, Step(aggregator, USE, reads="all"))))
    return tuple(plans)


def single_plans(workers: Sequence[str]) -> tuple[Workflow, ...]:
    """Return a one-step plan per worker, the only plans that a pool of recorded replies can run."""
    return tuple(alone(worker) for worker in workers)


_BOUNDS = {
    "rehearsal": "chosen by 8 draws; biased low: plans with a bad first draw are not tried further",
    "recorded": "single workers only, realised on one recorded reply: an upper bound",
}


class _Bounds(SystemMethods):
    def footnote(self, label: str) -> str:
        return _BOUNDS.get(label, "")


ORACLE = SystemCard(
    name="oracle",
    solver="podium/oracle",
    summary="Runs each question's plan of highest expected accuracy, found with its target.",
    source="podium (control)",
    calls=Calls("1-5", lambda n, args: (1, MAX_STEPS)),
    group="controls",
    prompts=(GATHER, USE, FINISH),
    traits=frozenset({"recorded", "sees targets"}),
    deviations=("the best of an enumerated set of plans (baselines/oracle.py), not of all plans",),
    methods=_Bounds(),
)

FIRST_SEED = 1_000_000_000
"""First of the seeds for choosing plans. Evaluations use small seeds, so their replies differ."""

GOOD = 0.75
"""If the best plan so far has this mean grade, the oracle skips plans with more steps: they cost
more and have little left to gain."""

PoolFactory = Callable[[int], Pool]
"""seed -> a pool whose random numbers come from the seed; called once per question and seed."""
GradeText = Callable[[Question, str], float]
Memory = dict[tuple[str, str, int, Sampling | None], Reply]


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The plan that the oracle chose for one question, and the plan's expected grade."""

    plan: Workflow
    estimate: float
    """Mean grade of the plan over `draws` seeds. If `how` is `expected`, none of these seeds was
    used to choose the plan."""
    draws: int
    how: Literal["expected", "realised"] = "expected"
    """`realised`: the plan was chosen and measured on the same recorded replies, so the estimate is
    an upper bound."""


async def best_expected(
    plans: Sequence[Workflow],
    question: Question,
    *,
    pool_factory: PoolFactory,
    grade: GradeText,
    draws: int = 8,
    patience: int = 1,
) -> PlanChoice:
    """Return the plan with the highest mean grade over `draws` seeds; new seeds estimate the mean.

    A plan is dropped if it is clearly worse than the best so far, or if its first `patience` grades
    are all 0.
    """
    if not plans or draws < 1:
        raise UserError("The oracle needs at least one plan and one draw.")
    draw = _draws(question, pool_factory, grade)

    async def challenge(plan: Workflow, to_beat: float) -> float:
        total = 0.0
        for number in range(1, draws + 1):
            total += await draw(plan, FIRST_SEED + number - 1)
            standard_error = 0.5 / sqrt(number)  # upper bound for a mean of 0s and 1s
            if total / number + standard_error < to_beat or (number >= patience and total == 0):
                return 0.0
        return total / draws

    best, best_mean = plans[0], 0.0
    for plan in plans:
        if best_mean >= 1.0 or (best_mean >= GOOD and len(plan.steps) > len(best.steps)):
            continue
        mean = await challenge(plan, best_mean)
        if mean > best_mean:
            best, best_mean = plan, mean
    fresh = range(FIRST_SEED + draws, FIRST_SEED + 2 * draws)
    return PlanChoice(best, sum([await draw(best, seed) for seed in fresh]) / draws, draws)


async def best_realised(
    plans: Sequence[Workflow], question: Question, *, pool: Pool, grade: GradeText
) -> PlanChoice:
    """Return the first plan with the highest grade on recorded replies (a grade biased upwards)."""
    draw = _draws(question, lambda _: pool, grade)
    grades = [await draw(plan, 0) for plan in plans]
    best = grades.index(max(grades))
    return PlanChoice(plans[best], grades[best], 1, how="realised")


def _draws(
    question: Question, pool_factory: PoolFactory, grade: GradeText
) -> Callable[[Workflow, int], Awaitable[float]]:
    """Return a function (plan, seed) -> grade that caches each seed's replies, and all grades."""
    memories, grades = defaultdict[int, Memory](dict), dict[str, float]()
    pools = cache(pool_factory)

    async def draw(plan: Workflow, seed: int) -> float:
        base = pools(seed)
        pool = _RememberingPool(
            models=base.models,
            spec=base.spec,
            epoch=base.epoch,
            spend=base.spend,
            memory=memories[seed],
        )
        reply = (await execute(plan, question.sealed(), pool)).text
        # Replies with the same program share a grade, so that it runs once.
        program = normalised("program", reply) if question.kind == "program" else None
        key = reply if program is None else program
        if key not in grades:
            grades[key] = grade(question, reply)
        return grades[key]

    return draw


@dataclass(slots=True)
class _RememberingPool(Pool):
    """A pool that caches replies: plans share the reply to the k-th repetition of a request."""

    memory: Memory = field(default_factory=Memory)

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        request = (worker, request_digest(messages))
        key = (*request, self._asked[request], sampling)
        if key in self.memory:
            self._asked[request] += 1
        else:
            self.memory[key] = await Pool.ask(self, worker, messages, step, sampling)
        return self.memory[key]


@dataclass(frozen=True, slots=True)
class _Table:
    """The content of the file with the oracle's chosen plans; pydantic validates it on reading."""

    choices: dict[str, PlanChoice]
    schema: Literal[1] = 1


_TABLE = TypeAdapter(_Table)


def write_plans(path: Path, choices: Mapping[str, PlanChoice]) -> None:
    """Write the oracle's chosen plans by question id; the file at `path` is replaced atomically."""
    replace_file(path, _TABLE.dump_json(_Table(dict(choices)), indent=1) + b"\n")


def read_plans(path: Path) -> dict[str, PlanChoice]:
    """Read the oracle's plans from the file of `write_plans`; UserError if absent or damaged."""
    if not path.is_file():
        raise UserError(
            f"There are no oracle plans at {path}. Create them with `podium run --system oracle`."
        )
    try:
        return _TABLE.validate_json(path.read_bytes()).choices
    except ValidationError as error:
        place, reason = first_fault(error)
        raise UserError(
            f"Oracle plans {path} are damaged at {place!r}: {reason}. Restore the file, or delete "
            "it and create the plans again with `podium run --system oracle`."
        ) from error


def oracle_system(choices: Mapping[str, PlanChoice]) -> System:
    """Return the oracle: the system that runs the chosen plan of each question."""

    def plan(question: Question, pool: Pool) -> Workflow:
        if question.id not in choices:
            raise UserError(
                f"The oracle has no plan for question {question.id!r}. Create it with `podium run "
                "--system oracle`."
            )
        chosen = check(choices[question.id].plan, pool.workers)
        if isinstance(chosen, Malformed):
            raise UserError(
                f"The oracle's plans belong to another pool: {chosen.reason}. Use the pool for "
                "which they were made, or create new plans with `podium run --system oracle`."
            )
        return chosen

    return planned(plan)


@register
def oracle(plans: str) -> System:
    """Return the oracle, a control that saw the targets; `plans` is a file in the log directory."""
    return oracle_system(read_plans(current().log_dir / plans))


def make_plans(path: Path, questions: Sequence[Question], spec: PoolSpec, grade: GradeText) -> None:
    """Choose, and write to `path`, the oracle's plan of every question that has none there."""
    choices = read_plans(path) if path.is_file() else {}
    plans = single_plans(spec.names) if spec.replayed else enumerate_plans(spec.names)

    @cache  # all questions use the same seeds
    def pool(seed: int) -> Pool:
        return Pool(models=pool_models(spec, seed), spec=spec)

    async def choose_all() -> None:
        for task in missing:
            if spec.replayed:
                choices[task.id] = await best_realised(plans, task, pool=pool(0), grade=grade)
            else:
                choices[task.id] = await best_expected(plans, task, pool_factory=pool, grade=grade)
            write_plans(path, choices)  # after each question, so that Ctrl-C loses at most one plan

    if missing := [question for question in questions if question.id not in choices]:
        path.parent.mkdir(parents=True, exist_ok=True)
        anyio.run(choose_all)
