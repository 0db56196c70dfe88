"""`podium route --conductor`: a study's checkpoints beside the routers, on the same questions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.baselines.route_eval import split_matrix
from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.cli import main
from podium.conductor.checkpoint import write_study
from podium.conductor.verdict_reward import ONE_STEP, split_verdicts, study_info
from podium.harness.learning import Matrix
from tests.conductor.toy_checkpoint import Toy, parrot

SPLIT = "share:0.5"
WORKERS = ("ada", "bo", "cy")


def source(tmp_path: Path) -> str:
    """Write verdicts of three workers on 60 questions: `bo` is right on two of three."""
    path = tmp_path / "verdicts.csv"
    rows = ["sample_id,prompt,eval_name,ada,bo,cy," + ",".join(f"{w}|total_cost" for w in WORKERS)]
    rows += [
        f"q{n},Tale number {n},x,{n % 2},{int(n % 3 > 0)},{int(n % 5 == 0)},1,2,3"
        for n in range(60)
    ]
    path.write_text("\n".join(rows) + "\n")
    return f"routerbench:{path}"


def plan(model: int) -> str:
    return f'model_id = [{model}]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


def checkpoint(folder: Path, named: str, says: str, seed: int = 0) -> Matrix:
    """Write a checkpoint that always says the same, of a study of a source; return the judged."""
    matrix = read_matrix(named, SourceRequest(Path("nowhere")))
    (fold,) = split_matrix(matrix, SPLIT, 0).folds
    study = split_verdicts(matrix.rows(fold.train), source=named, suite="routerbench", split=SPLIT)
    parrot(folder, says, Toy(form=ONE_STEP))
    write_study(study_info(study, ONE_STEP, seed), folder)
    return matrix.rows(np.sort(fold.test))


def asked(named: str, *folders: Path) -> int:
    more = ["--conductor", *map(str, folders)] if folders else []
    return main(["route", named, "--split", SPLIT, "--router", "router-knn", *more])


def test_a_checkpoint_scores_what_the_workers_it_asks_have_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = source(tmp_path)
    judged = checkpoint(tmp_path / "best", named, plan(1))
    assert asked(named, tmp_path / "best") == 0
    said = capsys.readouterr().out
    accuracy = f"{100 * judged.scores[:, 1].mean():.1f}"
    (line,) = (line for line in said.splitlines() if line.startswith("conductor, study  "))
    assert line.split()[2] == accuracy
    joined = " ".join(said.split())
    assert f"role study, split {SPLIT} (seed 0)" in joined
    assert "asks bo 100 %; 0 texts without a plan" in joined


def test_what_is_no_plan_counts_as_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = source(tmp_path)
    checkpoint(tmp_path / "best", named, "I would ask somebody else for once.")
    assert asked(named, tmp_path / "best") == 0
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith("conductor, study  "))
    assert line.split()[2] == "0.0"
    assert "30 texts without a plan" in " ".join(said.split())


def test_of_several_seeds_the_mean_is_judged_and_each_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = source(tmp_path)
    judged = checkpoint(tmp_path / "a", named, plan(1), seed=1)
    checkpoint(tmp_path / "b", named, plan(2), seed=2)
    assert asked(named, tmp_path / "a", tmp_path / "b") == 0
    lines = capsys.readouterr().out.splitlines()[: len(judged.questions)]
    mean = next(line for line in lines if line.startswith("conductor, study: mean of 2 seeds"))
    shown = {line[:25].strip(): line[25:].split() for line in lines}
    assert f"{100 * judged.scores[:, 1:].mean():.1f}" in mean.split()
    for seed in (1, 2):
        assert (
            f"{100 * judged.scores[:, seed].mean():.1f}" in shown[f"conductor, study: seed {seed}"]
        )


def refused(capsys: pytest.CaptureFixture[str], code: int) -> str:
    assert code == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    return said


def test_a_checkpoint_of_another_split_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = source(tmp_path)
    checkpoint(tmp_path / "best", named, plan(1))
    code = main(["route", named, "--split", "share:0.4", "--seed", "1", "--conductor",
                 str(tmp_path / "best")])  # fmt: skip
    assert "of the questions to route, first" in refused(capsys, code)


def test_folds_and_a_seed_named_twice_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = source(tmp_path)
    for name in ("a", "b"):
        checkpoint(tmp_path / name, named, plan(1))
    assert "Give one checkpoint per seed" in refused(
        capsys, asked(named, tmp_path / "a", tmp_path / "b")
    )
    code: Any = main(["route", named, "--split", "folds:3", "--conductor", str(tmp_path / "a")])
    assert "cannot be tested on several folds" in refused(capsys, code)
