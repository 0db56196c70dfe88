"""The file of ablations, what a conductor says, and the table of them, without any training."""

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium.cli import main
from podium.conductor.training.ablations import (
    plan_leaks,
    read_ablations,
    select_ablations,
    warm_start_key,
)
from podium.conductor.training.config import read_config
from podium.conductor.training.model_card import leaks_text
from podium.conductor.training.run_folder import training_finished
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.model_judge import regrade_dir
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.reports.ablation_table import AblationRuns, ablation_rows, write_ablations
from podium.suites.practice import integer

SHIPPED = read_ablations()
PLAN = "\nmodel_id = [0]\nsubtasks = [{}]\naccess_list = [[]]"
ONLY = 'config = "practice-cpu"\nreference = "a"\n[ablations.a]\nsays = "A."\n'


@pytest.mark.slow
def test_every_shipped_ablation_is_a_configuration_and_differs_from_the_reference() -> None:
    reference = SHIPPED.reference.training_config(0)
    for one in SHIPPED.rows:
        if one.not_run or one is SHIPPED.reference:
            continue
        config = one.training_config(0)
        assert config != reference
        assert config.grpo["max_steps"] == reference.grpo["max_steps"]
        assert config.form.worker in ("", *read_pool(config.pool.name).names)


@pytest.mark.slow
def test_every_shipped_ablation_can_be_estimated_before_it_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row for row in SHIPPED.rows if not row.not_run]
    for one in rows[:2] if find_spec("torch") else rows:  # with torch each is probed for 15 s
        settings = [word for said in one.settings for word in ("--set", said)]
        out = tmp_path / one.name
        assert main(["train", one.config, *settings, "--out", str(out), "--dry-run"]) == 0
        assert "50 steps of 8 questions x 8 plans" in capsys.readouterr().out
        assert not out.exists()


def test_what_means_nothing_for_a_model_from_scratch_is_not_run_and_says_why() -> None:
    assert [one.name for one in SHIPPED.rows if one.not_run] == ["no-few-shots", "name-priors"]


def test_the_pools_of_tiers_are_the_two_halves_of_the_rehearsal_pool_by_price() -> None:
    rows = {one.name: one for one in SHIPPED.rows}
    dear, cheap = (
        read_pool(rows[f"pool-{tier}"].training_config(0).pool.name) for tier in ("dear", "cheap")
    )
    whole, book = read_pool("rehearsal"), read_book("rehearsal")
    assert all(one in (*dear.workers, *cheap.workers) for one in whole.workers)
    price = {one.name: book.prices[one.price_ref].output for one in whole.workers}
    assert min(price[name] for name in dear.names) > max(price[name] for name in cheap.names)


def test_named_ablations_come_with_the_reference() -> None:
    names = [one.name for one in select_ablations(SHIPPED, ["routing-only"]).rows]
    assert names == ["unablated", "routing-only"]
    with pytest.raises(UserError, match="There is no ablation 'routing'; known: unablated"):
        select_ablations(SHIPPED, ["routing"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("not toml =", "cannot be read as TOML"),
        ('config = "practice-cpu"', "reference: field required"),
        ('not_run = "why"\nset.form.max_steps = 1', "has both not_run and set"),
        (f"{ONLY}not_run = 'why'", "Remove `not_run` from an ablation"),
        ("nosuch = 1", "extra inputs are not permitted"),
    ],
)
def test_a_faulty_file_is_refused_with_a_sentence(tmp_path: Path, said: str, told: str) -> None:
    tail = "" if said.startswith(("not toml", "config")) else f'[ablations.b]\nsays = "B."\n{said}'
    path = tmp_path / "file.toml"
    path.write_text(said if not tail else ONLY + tail)
    with pytest.raises(UserError, match=told):
        read_ablations(path)


def test_a_misspelt_setting_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(
        'config = "practice-cpu"\nreference = "a"\n'
        '[ablations.a]\nsays = "A."\nset.form.max_stps = 1\n'
    )
    with pytest.raises(UserError, match="nearest is 'max_steps'"):
        read_ablations(path).reference.training_config(0)


def test_only_what_a_warm_start_reads_tells_beginnings_apart() -> None:
    whole = _manifest("unablated")
    assert warm_start_key(_manifest("single-worker")) == warm_start_key(whole)
    assert warm_start_key(_manifest("cost-term")) == warm_start_key(whole)
    for name in ("routing-only", "access-off", "trust-0", "pool-random", "hidden-64"):
        assert warm_start_key(_manifest(name)) != warm_start_key(whole)


def test_a_training_is_finished_when_its_last_step_and_model_are_there(tmp_path: Path) -> None:
    config = read_config("practice-cpu", ["grpo.max_steps=2"])
    assert not training_finished(config, tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n{"step": 2}\n')
    assert not training_finished(config, tmp_path)
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "podium.json").write_text("{}")
    assert not training_finished(config, tmp_path)  # the money did not last for its validation
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n{"step": 2, "validation": {}}\n')
    assert training_finished(config, tmp_path)


def test_the_card_says_how_many_sampled_plans_hold_the_answer(tmp_path: Path) -> None:
    run = _run_folder(tmp_path, "unablated")
    assert leaks_text(run) == "Of 3 sampled plans, 50.0% hold the answer."
    assert leaks_text(tmp_path) == "Nothing was sampled yet."


@pytest.mark.slow
def test_the_table_compares_what_did_not_pick_the_checkpoint(variants: list[AblationRuns]) -> None:
    rows = {(row.ablation, row.suite): row for row in ablation_rows(variants, "unablated")}
    whole, weak = rows["unablated", "all"], rows["weak", "all"]
    assert whole.n == weak.n == 6, "8 were asked, and the first 2 picked the checkpoint"
    assert whole.paired_diff is None
    assert weak.paired_diff == pytest.approx((weak.accuracy or 0) - (whole.accuracy or 0))
    assert (whole.workers, weak.workers) == ("sage 100%", "formatter 100%")
    assert (whole.trained, whole.best_step) == (4, "2")
    assert rows["later", "all"].not_run == "not trained and evaluated yet"
    assert rows["never", "all"].not_run == "it means nothing"


def test_the_table_is_written_twice_alike_and_over_no_file_of_others(
    variants: list[AblationRuns], tmp_path: Path
) -> None:
    out = tmp_path / "report"
    text, files = write_ablations(variants, "unablated", out)
    before = [path.read_bytes() for path in files]
    again = [AblationRuns(v.name, v.says, v.not_run, v.runs, v.logs, v.words) for v in variants]
    write_ablations(again, "unablated", out)
    assert before == [path.read_bytes() for path in files]
    assert "Not run: never: it means nothing." in text
    files[0].write_text("mine")
    with pytest.raises(UserError, match="was not written by podium"):
        write_ablations(again, "unablated", out)


def test_a_table_of_trainings_that_two_graders_evaluated_is_refused(
    variants: list[AblationRuns], tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(variants[1].logs[0], logs)
    newer = replace(integer.SUITE, version="1000-A")
    regrade_dir(logs, {"practice-integer": newer}, None, everything=True)
    with pytest.raises(UserError, match="'practice-integer' has suite_version"):
        ablation_rows([variants[0], replace(variants[1], logs=(logs,))], "unablated")


def test_plans_in_logs_are_held_against_the_answer(tmp_path: Path) -> None:
    logs = _evaluated(tmp_path / "logs", "conductor-prompted")
    found = plan_leaks(load_runs([logs])[0])
    assert (found["plans"], found["leaked"]) == (8, 0.0)
    assert found["right"] == found["accuracy_unleaked"]
    nobody = plan_leaks([])
    assert (nobody["leaked"], nobody["right"], nobody["accuracy_unleaked"]) == (None, None, None)


def test_the_list_needs_no_torch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", "--list"]) == 0
    assert "no-few-shots: A prompt without worked examples. Not run:" in capsys.readouterr().out


def _manifest(name: str) -> dict[str, object]:
    """Return as much of a manifest as a warm start depends on."""
    config = next(one for one in SHIPPED.rows if one.name == name).training_config(0)
    data = {"train_ids_sha256": "", "data_revision": "1", "validation_questions": 2}
    return {
        "config": config.model_dump(mode="json"),
        "data": dict.fromkeys(config.suites.names, data),
        "pool": {"name": config.pool.name, "workers": list(read_pool(config.pool.name).names)},
        "seed": 0,
        "code_revision": "",
    }


def _run_folder(folder: Path, name: str) -> Path:
    run = folder / f"{name}-seed-0"
    run.mkdir()
    (run / "manifest.json").write_text(json.dumps(_manifest("unablated")))
    steps = [(0, 0.1), (2, 0.6), (4, 0.6)]
    (run / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": at, "validation": {"correct": c}}) + "\n" for at, c in steps)
    )
    plans = [(PLAN.format('"Solve the question."'), False), (PLAN.format('"Say 7."'), True)]
    texts = [*plans, ("no plan", None)]
    (run / "plans.jsonl").write_text(
        "".join(json.dumps({"step": 1, "completion": c, "leaked": k}) + "\n" for c, k in texts)
    )
    return run


def _evaluated(logs: Path, system: str) -> Path:
    words = ["--suite", "practice-integer", "--system", system, "--limit", "8"]
    assert main(["run", *words, "--split", "validation", "--log-dir", str(logs)]) == 0
    return logs


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> list[AblationRuns]:
    """Return two trained variants, by single workers' logs, and two without."""
    folder, found = tmp_path_factory.mktemp("ablations"), list[AblationRuns]()
    for name, worker in (("unablated", "sage"), ("weak", "formatter")):
        run = _run_folder(folder, name)
        logs = _evaluated(folder / f"logs-{name}", f"single:{worker}")
        found.append(AblationRuns(name, "Says.", "", (run,), (logs,), {"leaked": 0.5}))
    never = AblationRuns("never", "Says.", "it means nothing")
    return [*found, AblationRuns("later", "Says."), never]
