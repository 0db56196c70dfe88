"""A policy that plans by numbers: nothing is keyed by a worker's name or place."""

from typing import Any

import numpy as np
import pytest

from podium.conductor import profile_policy as policy
from podium.conductor.profile_policy import CHOICES, END, MAX_STEPS, MOST_WORKERS, TASKS
from podium.harness.profiles import ProfileTable
from podium.harness.question_kinds import HASHED, TrainKinds
from podium.harness.workflow import Workflow, check

WEIGHTS = policy.first_weights(3)


def table_of(workers: int, kinds: int = 3, seed: int = 0) -> ProfileTable:
    rng = np.random.default_rng(seed)
    asked = np.full((kinds, workers), 20.0)
    found = TrainKinds(
        rng.random((kinds, HASHED)), np.arange(kinds) % 3, rng.uniform(50, 500, kinds)
    )
    return ProfileTable(
        found,
        asked,
        right=rng.integers(0, 21, asked.shape).astype(float),
        no_answer=rng.integers(0, 5, asked.shape).astype(float),
        usd=rng.uniform(1e-5, 1e-2, asked.shape),
        tokens_out=rng.uniform(10, 900, asked.shape),
        seconds=np.full(asked.shape, np.nan),
    )


def shown(*tables: ProfileTable, own: int = 1) -> policy.Shown:
    numbers = policy.question_numbers(0, 120)
    return policy.show([(table, own, numbers) for table in tables])


def written(table: ProfileTable, weights: Any = WEIGHTS) -> list[tuple[str, int]]:
    plans = policy.write(weights, policy.read(weights, shown(table), np))
    return [(task.name, worker) for task, worker in plans.steps(0)]


@pytest.mark.parametrize("workers", [2, 5, MOST_WORKERS])
def test_an_order_of_workers_changes_no_plan(workers: int) -> None:
    table, order = table_of(workers), np.random.default_rng(1).permutation(workers)
    turned = written(table.of_workers(order.tolist()))
    assert [(task, int(order[worker])) for task, worker in turned] == written(table)


def test_kinds_in_another_order_change_no_plan() -> None:
    table, order = table_of(4), [2, 1, 0]
    kinds = TrainKinds(
        table.kinds.centres[order], table.kinds.forms[order], table.kinds.lengths[order]
    )
    parts = {name: getattr(table, name)[order] for name in policy_parts()}
    assert written(ProfileTable(kinds, **parts)) == written(table)


def policy_parts() -> tuple[str, ...]:
    return "asked", "right", "no_answer", "usd", "tokens_out", "seconds"


def test_a_plan_does_not_depend_on_who_else_is_planned_for() -> None:
    small, large = table_of(2, kinds=1), table_of(9, kinds=5)
    together = policy.show(
        [(small, 0, policy.question_numbers(0, 9)), (large, 1, policy.question_numbers(1, 99))]
    )
    alone = policy.show([(small, 0, policy.question_numbers(0, 9))])
    both, one = (policy.write(WEIGHTS, policy.read(WEIGHTS, of, np)) for of in (together, alone))
    assert both.steps(0) == one.steps(0)


@pytest.mark.parametrize("seed", range(4))
def test_every_drawn_plan_is_one_that_can_be_carried_out(seed: int) -> None:
    workers = [f"w{at}" for at in range(7)]
    seen = policy.read(WEIGHTS, shown(*[table_of(7)] * 50), np)
    plans = policy.write(WEIGHTS, seen, np.random.default_rng(seed))
    sizes = set[int]()
    for at in range(50):
        steps = plans.steps(at)
        sizes.add(len(steps))
        made = policy.as_workflow(steps, workers)
        assert isinstance(check(made, workers), Workflow)
        assert 1 <= len(steps) <= MAX_STEPS
        assert not steps[0][0].reads
        assert steps[-1][0].answers
    assert len(sizes) > 1


def test_what_ends_stays_ended() -> None:
    ended = policy.allowed_tasks(2, np.array([END, 0]))
    assert [*np.flatnonzero(ended[0] == 0)] == [END]
    assert (ended[1] == 0).sum() == CHOICES
    gathered = next(at for at, task in enumerate(TASKS) if not task.answers)
    assert policy.allowed_tasks(2, np.array([gathered]))[0, END] < 0
    last = policy.allowed_tasks(MAX_STEPS - 1, np.array([0]))[0]
    assert all(task.answers for at, task in enumerate(TASKS) if last[at] == 0)


def test_shuffled_profiles_leave_nobody_their_own() -> None:
    for workers in range(2, 13):
        table = table_of(workers)
        for seed in range(5):
            moved = table.shuffled(seed).usd
            assert not (moved == table.usd).all(axis=0).any()
            assert sorted(moved[0]) == sorted(table.usd[0])


def test_unknown_dollars_and_a_worker_never_asked_make_no_nan() -> None:
    table = table_of(3)
    table.usd[:] = np.nan
    table.asked[:, 0] = table.right[:, 0] = table.no_answer[:, 0] = 0
    assert np.isfinite(policy.cells_of(table, 0)).all()
    assert written(table)


def test_tasks_ask_in_sentences_that_name_no_subject() -> None:
    told = [task.subtask for task in TASKS if task.subtask]
    assert len({*told}) == len(told)
    assert all(one.endswith(".") and one[0].isupper() for one in told)
    assert not TASKS[0].subtask  # a worker alone is asked as `single:NAME` is: the draw is shared
