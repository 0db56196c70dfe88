"""Trainings on pools drawn from the prior: each question is shown one, and none is an exam's."""

import tomllib
from pathlib import Path

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.prompt import first_word
from podium.conductor.training.config import read_config
from podium.conductor.training.job import TrainingJob, drawn_groups, find_job, warm_start_rows
from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, read_pool
from podium.suites.practice.workers.drawing import HERE, draw_many, role_cards

EXAMS = [read_pool(str(path)) for path in sorted(POOLS.glob("drawn-*.toml"))]


def job(**pool: object) -> TrainingJob:
    config = read_config("practice-cpu-drawn")
    pool_part = config.pool.model_copy(update=pool)
    return find_job(
        config.model_copy(update={"pool": pool_part}),
        Path("none"),
        whole_catalogue(),
        controls().bare,
        dry=True,
    )


@pytest.fixture(scope="module")
def drawn() -> TrainingJob:
    return job()


def test_a_row_shows_workers_of_one_pool_alone(drawn: TrainingJob) -> None:
    pools = [{name.rpartition(".")[2] for name in row.workers} for row in drawn.rows(400)]
    assert {len(pool) for pool in pools} == {1}
    assert len({min(pool) for pool in pools}) == 64
    groups = {frozenset(one) for one in drawn.groups}
    assert {frozenset(row.workers) for row in drawn.rows(400)} <= groups


def test_a_row_can_show_some_workers_of_its_pool() -> None:
    sizes = {len(row.workers) for row in job(shown="random").rows(400)}
    assert (min(sizes), max(sizes)) == (2, 7)


def test_the_same_question_comes_with_other_workers(drawn: TrainingJob) -> None:
    rows = warm_start_rows(drawn)
    whom = {(row.question, row.workers) for row in rows}
    assert len(whom) > 0.95 * len(rows)
    assert drawn.rows(50) == drawn.rows(50)
    assert all(row.workers for row in drawn.validation_rows())


def test_no_pool_that_is_trained_on_is_one_of_an_exam(drawn: TrainingJob) -> None:
    assert len(EXAMS) == 8
    exams = {frozenset((one.model, repr(one.args)) for one in spec.workers) for spec in EXAMS}
    trained = {
        frozenset(
            (drawn.spec.worker(name).model, repr(drawn.spec.worker(name).args)) for name in one
        )
        for one in drawn.groups
    }
    assert len(trained) == 64
    assert not trained & exams


def test_cards_come_in_words_that_say_which_worker_it_is() -> None:
    wordings = tomllib.loads((HERE / "wordings.toml").read_text())
    spec = draw_many(64)
    openings: dict[str, set[str]] = {}
    for worker in spec.workers:
        program = worker.name.partition(".")[0]
        assert worker.card in [role_cards()[program], *wordings[program]]
        openings.setdefault(first_word(worker.card), set()).add(program)
    assert len(openings) == 4 * len(wordings)  # each wording is met
    assert all(len(programs) == 1 for programs in openings.values())


def test_the_pools_of_a_seed_are_the_same_when_there_are_more_of_them() -> None:
    few, many = draw_many(3), draw_many(5)
    assert few.workers == many.workers[: len(few.workers)]
    assert len(drawn_groups(many.names)) == 5


def test_whom_no_pool_can_show_is_refused() -> None:
    with pytest.raises(UserError, match="shown=7 does not fit a pool of 4 workers"):
        job(shown=7)


def test_a_pool_of_real_models_is_not_drawn() -> None:
    with pytest.raises(
        UserError, match=r"`drawn` of \[pool\] draws rehearsal workers, but pool 'pa"
    ):
        job(name="paper-constrained")


def test_a_prompt_numbers_the_workers_that_its_row_shows(drawn: TrainingJob) -> None:
    row = next(row for row in drawn.rows(20) if len(row.workers) > 2)
    prompt = drawn.prompts.shown(row).prompt
    cards = [drawn.spec.worker(name).card for name in row.workers]
    assert all(f"{at}: {' '.join(card.split()[:6])}" in prompt for at, card in enumerate(cards))
