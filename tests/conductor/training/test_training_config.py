"""Configurations of trainings, their rows and their refusals; no torch is needed here."""

from pathlib import Path

import pytest

from podium.conductor.prompt import ShownWorkers
from podium.conductor.training.config import known_configs, read_config
from podium.conductor.training.grpo_options import batch_sizes
from podium.conductor.training.job import refuse_missing_folder
from podium.conductor.training.run_folder import read_lines, refuse_changed, rewind_lines
from podium.conductor.training.training_estimate import PUBLISHED
from podium.conductor.training.training_rows import TrainingRow, draw_rows
from podium.harness.errors import UserError


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("run.sed=1", r"\[run\] has no key 'sed'; the nearest is 'seed'"),
        ("form.layot=paper", r"\[form\] has no key 'layot'; the nearest is 'layout'"),
        ("modle.path=x", r"the file has no key 'modle'; the nearest is 'model'"),
        ("run.threads=0", "run.threads: input should be greater than or equal to 1"),
        ("run.seed=-1", "run.seed: input should be greater than or equal to 0"),
        ("suites.weights.mmlu=1", r"weights has 'mmlu', which is not in \[suites\] names"),
        ("run.seed", "section.key=value"),
        ("pool.shown=3", "the conductor cannot tell workers apart"),
        ("pool.order=random", "the conductor cannot tell workers apart"),
        ("pool.drawn=8", "the conductor cannot tell workers apart"),
        ("pool.drawn=-1", "pool.drawn: input should be greater than or equal to 0"),
    ],
)
def test_a_mistake_in_a_configuration_is_one_sentence(setting: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_config("practice-cpu", [setting])


def test_a_size_that_has_no_room_for_a_look_up_is_refused_before_a_model_is_made() -> None:
    with pytest.raises(UserError, match="look_up needs 2 layers or more, 4 heads and 2 kv_heads"):
        read_config("practice-cpu-adaptive", ["model.from_scratch.heads=8"])


def test_recorded_verdicts_have_no_drawn_workers() -> None:
    with pytest.raises(UserError, match="drawn cannot be used with"):
        read_config("verdicts-gpqa", ["pool.name=verdicts", "pool.drawn=8", "form.cards=true"])


def test_an_unknown_configuration_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"known configs: .*paper-7b.*small-gpu"):
        read_config("nothing")
    assert {"paper-7b", "practice-cpu", "small-gpu"} <= set(known_configs())


@pytest.mark.parametrize("field", ["max_steps", "num_generations", "learning_rate"])
def test_a_word_in_place_of_a_number_is_refused_before_anything_is_made(field: str) -> None:
    config = read_config("practice-cpu", [f"grpo.{field}=two"])
    with pytest.raises(UserError, match=rf"\[grpo\] {field} must be a number, not 'two'"):
        batch_sizes(config)


@pytest.mark.parametrize("path", ["runs/practice-0/best", "./nowhere", "/nowhere/best"])
def test_a_model_folder_that_is_not_there_is_refused(path: str) -> None:
    config = read_config("small-gpu", [f"model.path={path}"])
    with pytest.raises(UserError, match=f"there is no folder {path}"):
        refuse_missing_folder(config)


def test_a_name_of_the_hub_is_not_taken_for_a_folder() -> None:
    refuse_missing_folder(read_config("small-gpu"))


@pytest.mark.parametrize("group", [1, 7])
def test_a_batch_that_holds_no_whole_groups_is_refused(group: int) -> None:
    config = read_config("paper-7b", [f"grpo.num_generations={group}"])
    with pytest.raises(UserError, match="its whole group of plans"):
        batch_sizes(config)


def test_a_batch_that_processes_cannot_share_is_refused() -> None:
    with pytest.raises(UserError, match="not a multiple of 12"):
        batch_sizes(read_config("paper-7b"), 3)


def test_dynamic_sampling_is_refused_in_several_processes() -> None:
    config = read_config("paper-7b", ["reward.resample=1"])
    assert batch_sizes(config, 1)["questions"] == 4
    with pytest.raises(UserError, match="resample works in one process, not in 2"):
        batch_sizes(config, 2)


def test_a_checkpoint_inside_a_generation_batch_is_refused() -> None:
    settings = ("grpo.num_iterations=2", "run.save_every=3")
    with pytest.raises(UserError, match="falls inside a generation batch"):
        batch_sizes(read_config("paper-7b", settings), 2)


def drawn(
    count: int, ids: list[str], workers: tuple[str, ...], shown: ShownWorkers
) -> list[TrainingRow]:
    return draw_rows({"s": ids}, count, weights={}, workers=workers, display=shown, seed=3)


def test_rows_use_every_question_before_one_comes_again_and_are_the_same_every_time() -> None:
    rows = drawn(10, [f"q{n}" for n in range(5)], ("a", "b", "c"), ShownWorkers())
    assert {row.question for row in rows[:5]} == {row.question for row in rows[5:]}
    assert rows == drawn(10, [f"q{n}" for n in range(5)], ("a", "b", "c"), ShownWorkers())
    assert all(row.workers == () for row in rows)


def test_rows_of_an_adaptive_pool_show_other_workers_each_time() -> None:
    shown = ShownWorkers(2, "random")
    rows = drawn(20, ["q"], ("a", "b", "c", "d"), shown)
    assert all(len(set(row.workers)) == 2 for row in rows)
    assert len({row.workers for row in rows}) > 5
    assert rows[:10] == drawn(10, ["q"], ("a", "b", "c", "d"), shown)


def test_a_resumed_run_that_changed_names_the_field() -> None:
    before = {"config": {"pool": {"name": "a"}, "run": {"keep": 1}}}
    refuse_changed(before, {"config": {"pool": {"name": "a"}, "run": {"keep": 9}}})
    with pytest.raises(UserError, match=r"began with pool.name = 'a', not 'b'"):
        refuse_changed(before, {"config": {"pool": {"name": "b"}, "run": {"keep": 1}}})


def test_a_resumed_run_drops_the_lines_that_it_makes_again(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    assert rewind_lines(path, 2) == [{"step": 1}, {"step": 2}]
    assert read_lines(path) == [{"step": 1}, {"step": 2}]


@pytest.mark.parametrize(
    ("name", "billions"), [("Qwen2.5-0.5B", 0.494), ("Qwen2.5-1.5B", 1.544), ("Qwen2.5-7B", 7.616)]
)
def test_a_published_shape_has_its_published_number_of_weights(name: str, billions: float) -> None:
    assert PUBLISHED[name].parameters / 1e9 == pytest.approx(billions, abs=5e-4)
