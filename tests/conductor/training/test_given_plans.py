"""Warm starts that go sentence by sentence, or imitate plans that a file gives."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.parse import read_plan
from podium.conductor.training.config import TrainingConfig, read_config
from podium.conductor.training.given_plans import PLANS, own_plans, read_given_plans, read_plans
from podium.conductor.training.job import TrainingJob, find_job
from podium.conductor.training.run_folder import (
    append_line,
    config_of,
    read_lines,
    read_manifest,
    rewind_lines,
)
from podium.conductor.training.training_rows import asking_sentences, plan_corpus
from podium.harness.errors import UserError
from podium.harness.workflow import Workflow


@pytest.fixture(scope="module")
def deep() -> TrainingJob:
    config = read_config("practice-cpu-deep", ["suites.train=60", "validation.questions=3"])
    return find_job(config, Path("none"), whole_catalogue(), controls().bare, dry=True)


def test_a_plan_has_a_step_for_each_sentence_of_the_question_that_asks(deep: TrainingJob) -> None:
    rows = [deep.prompts.shown(row) for row in deep.rows(60)]
    corpus, rng, sizes = plan_corpus(deep.config, rows), Random(0), Counter[int]()
    for one in rows:
        plan = read_plan(deep.config.form, corpus.plan(one, rng), one.workers)
        assert isinstance(plan, Workflow)
        asked = one.question.partition("\n\n")[0]
        assert len(plan.steps) == min(5, asked.count("Let ") + 1)
        sizes[len(plan.steps)] += 1
    assert sorted(sizes) == [1, 2, 3, 4, 5]


def test_whom_a_sentence_names_depends_on_its_words_and_not_on_what_is_right(
    deep: TrainingJob,
) -> None:
    rows = [deep.prompts.shown(row) for row in deep.rows(60)]
    unknowing = [replace(one, row=replace(one.row, question="nobody's")) for one in rows]
    texts = [
        [plan_corpus(deep.config, asked).plan(one, Random(0)) for one in asked]
        for asked in (rows, unknowing)
    ]
    assert texts[0] == texts[1]
    one = next(one for one in rows if "divisors" in one.question.partition("Find")[2])
    corpus, rng = plan_corpus(deep.config, rows), Random(1)
    last = Counter(
        plan.steps[-1].worker
        for plan in (
            read_plan(deep.config.form, corpus.plan(one, rng), one.workers) for _ in range(200)
        )
        if isinstance(plan, Workflow)
    )
    assert last.most_common(1)[0][0] in ("divider", "guesser")  # whose cards say divisors
    assert len(last) == len(one.workers)  # and everyone is tried


def test_texts_that_are_all_form_keep_their_sentences() -> None:
    assert asking_sentences(["Think.", "Think. "]) == {
        "Think.": ("Think.",),
        "Think. ": ("Think.",),
    }


def imitating(path: Path) -> TrainingConfig:
    return read_config(
        "practice-cpu-deep", ["warm_start.kind=given-plans", f"warm_start.plans={path}"]
    )


def test_a_given_plan_becomes_steps_of_which_each_reads_all_before(
    deep: TrainingJob, tmp_path: Path
) -> None:
    [row] = [deep.prompts.shown(row) for row in deep.rows(1)]
    path = tmp_path / "plans.jsonl"
    path.write_text(f'{{"question": "{row.row.question}", "workers": ["chemist", "clerk"]}}\n')
    workers = read_given_plans(imitating(path))[row.row.question]
    said = plan_corpus(deep.config, [row]).given(row, workers)
    plan = read_plan(deep.config.form, said, row.workers)
    assert isinstance(plan, Workflow)
    assert [step.worker for step in plan.steps] == ["chemist", "clerk"]
    assert [plan.reads(at) for at in range(2)] == [(), (0,)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "line 1 of .* is not"),
        ('{"question": "q", "workers": []}', "line 1 of .* is not"),
        ('{"question": "q", "workers": ["a", "b", "c", "d", "e", "f"]}', "has 6 steps, and"),
        ('{"question": "caf\udce9", "workers": ["a"]}', "line 1 of .* is not"),
    ],
    ids=["no JSON", "nobody", "too long", "not UTF-8"],
)
def test_a_line_that_is_no_plan_is_refused(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plans.jsonl"
    path.write_text(line + "\n", errors="surrogateescape")
    with pytest.raises(UserError, match=said):
        read_given_plans(imitating(path))


def test_a_file_of_plans_that_is_not_there_or_not_wanted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        read_given_plans(imitating(tmp_path / "none.jsonl"))
    with pytest.raises(
        UserError, match="warm_start: plans, a file, must be set if and only if kind"
    ):
        read_config("practice-cpu", ["warm_start.plans=some.jsonl"])


def sampled(folder: Path, *lines: tuple[str, list[str] | None, float | None]) -> str:
    folder.mkdir(exist_ok=True)
    with (folder / PLANS).open("w") as out:
        for question, workers, correct in lines:
            plan = workers and [[worker, []] for worker in workers]
            said = {"step": 1, "question": question, "plan": plan, "correct": correct}
            out.write(json.dumps(said) + "\n")
    return str(folder)


def test_of_its_own_plans_the_one_that_is_right_most_surely_is_taken(tmp_path: Path) -> None:
    one = sampled(
        tmp_path / "one",
        *[("a", ["x", "y", "z"], 1.0)] * 3,
        *[("a", ["x", "y"], 1.0)] * 2,
        ("a", ["x"], 1.0),
        ("b", ["x", "y"], 1.0),
        ("b", ["y"], 1.0),
        ("c", ["x"], 0.0),
        ("c", None, None),
    )
    assert own_plans([one], 1, 5) == {"a": ("x", "y", "z"), "b": ("y",)}
    assert own_plans([one], 0.66, 5) == {"a": ("x", "y"), "b": ("y",)}
    assert own_plans([one], 0.5, 5) == {"a": ("x",), "b": ("y",)}
    assert own_plans([one], 1, 2) == {"a": ("x", "y"), "b": ("y",)}
    two = sampled(tmp_path / "two", *[("a", ["x", "y"], 0.0)] * 9, ("c", ["z"], 1.0))
    assert own_plans([one, two], 0.66, 5) == {"a": ("x", "y", "z"), "b": ("y",), "c": ("z",)}


def test_a_training_begins_from_trainings_and_half_a_last_line_is_left_out(
    tmp_path: Path,
) -> None:
    run = sampled(tmp_path / "run", ("a", ["x"], 1.0))
    with (tmp_path / "run" / PLANS).open("a") as out:
        out.write('{"question": "b", "pl')
    config = read_config(
        "practice-cpu-deep", ["warm_start.kind=own-plans", f'warm_start.runs=["{run}"]']
    )
    assert read_plans(config) == {"a": ("x",)}


SEPARATORS = "a\u2028b\u2029c\u0085d\x0b"
"""Characters that end a line for `str.splitlines`, but not in JSON Lines."""


def test_a_line_of_json_may_hold_other_line_separators(tmp_path: Path) -> None:
    plans, metrics = tmp_path / PLANS, tmp_path / "metrics.jsonl"
    question = {"step": 1, "question": SEPARATORS, "plan": [["x", []]], "correct": 1.0}
    plans.write_text(json.dumps(question, ensure_ascii=False) + "\n")
    assert own_plans([f"{tmp_path}"], 1, 5) == {SEPARATORS: ("x",)}
    given = {"question": SEPARATORS, "workers": ["x"]}
    plans.write_text(json.dumps(given, ensure_ascii=False) + "\n")
    assert read_given_plans(imitating(plans)) == {SEPARATORS: ("x",)}
    lines = [{"step": step, "completion": SEPARATORS} for step in (1, 2, 3)]
    for line in lines:
        append_line(metrics, line)
    assert read_lines(metrics) == lines
    with metrics.open("ab") as file:
        file.write('{"step": 4, "completion": "é'.encode()[:-1])  # killed within a character
    assert rewind_lines(metrics, 2) == lines[:2] == read_lines(metrics)


def test_a_damaged_manifest_of_a_training_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a training: it has no manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"config": {')
    with pytest.raises(UserError, match=r"manifest\.json is damaged \(.*Restore it"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(UserError, match=r"manifest\.json is damaged \(it is no JSON object\)"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"seed": 1}')
    with pytest.raises(UserError, match=r"manifest has no configuration .*Train again"):
        config_of(read_manifest(tmp_path))


def test_trainings_that_were_never_right_or_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of their plans was right"):
        own_plans([sampled(tmp_path / "run", ("a", ["x"], 0.0))], 1, 5)
    (tmp_path / "run" / PLANS).write_text("nonsense\n\n")
    with pytest.raises(UserError, match="has a line that is not a plan"):
        own_plans([f"{tmp_path / 'run'}"], 1, 5)
    with pytest.raises(UserError, match=r"none has no plans.jsonl: name folders"):
        own_plans([f"{tmp_path / 'none'}"], 1, 5)
    with pytest.raises(UserError, match='may be set only with kind = "own-plans"'):
        read_config("practice-cpu-deep", [f'warm_start.runs=["{tmp_path}"]'])


@pytest.mark.parametrize(
    ("question", "workers"),
    [("practice-integer-train-0001", ["clerk"]), ("practice-deep-train-0001", ["abacus"])],
    ids=["another suite's", "another pool's"],
)
def test_plans_of_another_training_are_refused_before_a_folder_is_made(
    question: str, workers: list[str], tmp_path: Path
) -> None:
    run = sampled(tmp_path / "run", (question, workers, 1.0))
    changes = ["warm_start.kind=own-plans", f'warm_start.runs=["{run}"]', "suites.train=60"]
    config = read_config("practice-cpu-deep", changes)
    with pytest.raises(UserError, match="contain no plan for these questions and workers"):
        find_job(config, tmp_path / "out", whole_catalogue(), controls().bare, dry=True)
    assert not (tmp_path / "out").exists()


def test_own_plans_of_nothing_say_what_they_need() -> None:
    with pytest.raises(UserError, match=r'needs runs = \["RUN"\]: folders of `podium train`'):
        read_config("practice-cpu-deep", ["warm_start.kind=own-plans"])
