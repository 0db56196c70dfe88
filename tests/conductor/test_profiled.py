"""`conductor-profiled` in a run: what it learns from, what it is refused for, what a page shows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from podium.cli import main
from podium.cli.list_commands import controls
from podium.conductor import SYSTEMS
from podium.conductor import profile_policy as policy
from podium.conductor.checkpoint import POLICY
from podium.conductor.profiled import (
    TRAINING,
    UNTRAINED,
    learn_profile,
    profiled_system,
    read_policy,
)
from podium.harness.errors import UserError
from podium.harness.learning import (
    Artifact,
    ArtifactSource,
    matrix_of_logs,
    parse_artifact,
    write_artifact,
)
from podium.harness.pool_config import read_pool
from podium.harness.profiles import table_of_arrays
from podium.harness.rewards.splits import asked_digest, load_split
from podium.harness.run.experiment import read_experiment
from podium.harness.suite import Suite
from podium.reports.audit import audit
from podium.suites import SUITES

pytestmark = pytest.mark.slow

TRAIN_CALLS = 100  # of drawn-1, which has five workers
ASKED = ("practice-integer", "practice-choice")


def ran(log_dir: Path, systems: Sequence[str], *more: str, suites: Sequence[str] = ASKED) -> int:
    words = [word for name in suites for word in ("--suite", name)]
    words += [word for name in systems for word in ("--system", name)]
    words += ["--pool", "drawn-1", "--limit", "6", "--time-scale", "0", "--display", "none"]
    return main(["run", *words, "--log-dir", str(log_dir), *more])


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a policy of random weights, as a training leaves it."""
    folder = tmp_path_factory.mktemp("training") / "best"
    about = ArtifactSource(TRAINING, "", ("practice-integer",), (), ())
    write_artifact(Artifact(about, policy.first_weights(1)), folder / POLICY)
    return folder


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory, policy_folder: Path) -> Path:
    where = tmp_path_factory.mktemp("profiled") / "run"
    systems = (UNTRAINED, f"conductor-profiled@{policy_folder}", "router-knn", "best-single")
    assert ran(where, systems, "--train-calls", f"{TRAIN_CALLS}") == 0
    return where


def rows_of(log_dir: Path, system: str) -> list[Mapping[str, Any]]:
    made = read_experiment(log_dir)
    rows = made.entries if made else ()
    return [{"args": row.args, "learnt": row.learnt} for row in rows if row.system == system]


def test_it_learns_from_all_suites_of_the_run_and_buys_nothing_that_routers_have(
    log_dir: Path,
) -> None:
    for row in rows_of(log_dir, UNTRAINED):
        assert row["learnt"]["suites"] == sorted(ASKED)
        assert row["learnt"]["calls"] == 2 * TRAIN_CALLS
        path = log_dir / row["args"]["learned"]
        table = table_of_arrays(parse_artifact(path.read_bytes(), path).arrays)
        assert table.asked.sum() == 2 * TRAIN_CALLS
        assert (table.right <= table.asked).all()
        assert table.seconds.min() > 0
    bought = matrix_of_logs([log_dir / "selection"])
    assert bought.scores.size == 2 * TRAIN_CALLS  # routers learn from the same ones


def test_the_audit_is_clean_and_the_page_says_what_it_knew(log_dir: Path) -> None:
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []
    assert main(["report", str(log_dir), "--site", str(log_dir / "page")]) == 0
    table = (log_dir / "report" / "table.md").read_text()
    assert table.count("knew of its workers (profile") == len(ASKED)  # one profile, told once
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []  # of the report
    pages = "".join(one.read_text() for one in (log_dir / "page").rglob("*.html"))
    assert "knew of its workers" in pages


def test_a_profile_that_is_gone_or_was_changed_is_not_shown(log_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copytree(log_dir, copy)
    gone, changed = sorted((copy / "learned").glob(f"*/{UNTRAINED}.npz"))
    gone.unlink()
    changed.write_bytes(changed.read_bytes()[:-1])
    for other in (copy / "learned").glob("*/conductor-profiled_*.npz"):
        other.unlink()
    assert main(["report", str(copy), "--out", str(tmp_path / "report")]) == 0
    assert "knew of its workers" not in (tmp_path / "report" / "table.md").read_text()


def test_its_learning_is_billed_over_all_suites(log_dir: Path) -> None:
    found = json.loads((log_dir / "report" / "table.json").read_text())
    (said,) = {one["what"] for one in found["learning"] if one["system"] == UNTRAINED}
    assert said.endswith(f"practice-choice, practice-integer ({2 * TRAIN_CALLS} calls)")


def test_a_policy_of_another_digest_or_shape_is_refused(
    policy_folder: Path, tmp_path: Path
) -> None:
    assert read_policy(str(policy_folder)).sha256
    folder = tmp_path / "other"
    weights = {**policy.first_weights(1), "choice": policy.first_weights(1)["choice"][:3]}
    about = ArtifactSource(TRAINING, "", (), (), ())
    write_artifact(Artifact(about, weights), folder / POLICY)
    with pytest.raises(UserError, match=r"weights of another version\. Train it again"):
        read_policy(str(folder))
    with pytest.raises(UserError, match="There is no policy 'nowhere'"):
        read_policy("nowhere")


def test_pools_of_one_or_of_too_many_workers_are_refused() -> None:
    methods = SYSTEMS["conductor-profiled"].methods
    spec = read_pool("drawn-1")
    one = spec.model_copy(update={"workers": spec.workers[:1]})
    assert methods.pool_refusal("", spec) is None
    assert "plans for 2 to 12 workers, and pool 'drawn-1' has 1" in str(
        methods.pool_refusal("", one)
    )


def test_what_trained_a_policy_is_no_exam_of_it(tmp_path: Path) -> None:
    suite: Suite[Any] = SUITES["practice-integer"]
    bare = controls().bare
    digests = [asked_digest(one, bare) for one in load_split(suite, "eval").questions.values()]
    about = ArtifactSource(TRAINING, "", (suite.name,), (digests[0][:16],), ())
    write_artifact(Artifact(about, policy.first_weights(1)), tmp_path / POLICY)
    said = SYSTEMS["conductor-profiled"].methods.suite_refusal(str(tmp_path), suite.name, digests)
    trained = f"Policy {tmp_path} was trained on 1 questions of {suite.name}"
    assert said == f"{trained}: name another suite."
    assert ran(tmp_path / "run", [f"conductor-profiled@{tmp_path}"], suites=[suite.name]) == 2


def test_a_question_that_taught_a_profile_is_not_answered_by_it(log_dir: Path) -> None:
    matrix = matrix_of_logs([log_dir / "selection"])
    learned = learn_profile(UNTRAINED, matrix, 0)
    assert learned.sha256 == learn_profile(UNTRAINED, matrix, 0).sha256
    assert len(learned.about.questions) == len(matrix.questions)
    assert profiled_system(learned, policy.first_weights(0))
