"""Systems that learn inside a run: from what, with how much, and never twice."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.learning import read_artifact
from podium.harness.ledger.logs import newest_logs, read_log
from podium.harness.records import PODIUM, Question
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.estimate import estimate
from podium.harness.run.experiment import read_experiment
from podium.harness.run.lessons import read_tries
from podium.harness.run.run_request import RequestReader
from podium.harness.suite import Split
from podium.reports.report import write_report
from tests.harness.toy_run import CONTROLS, Toy, calls, toy_catalogue, toy_pool, toy_run

ROUTER = ("template-router",)


class Other(Toy):
    """Another exam of the same kind, whose train questions may be those of the toy's eval split."""

    name = "other"

    def __init__(self, splits: tuple[Split, ...] = ("train", "eval"), copied: int = 0) -> None:
        super().__init__(splits=splits)
        self.copied = copied

    def load(self, split: Split = "eval") -> Sequence[Question]:
        texts = [f"Question eval-{n} is what?" for n in range(self.copied)]
        texts += [f"Question {split}-{n} of others is what?" for n in range(self.copied, 12)]
        return [
            Question(f"other-{split}-{at}", text, "integer", "42") for at, text in enumerate(texts)
        ]


def entries(log_dir: Path) -> dict[str, Any]:
    found = read_experiment(log_dir)
    assert found is not None
    return {row.system: row for row in found.entries}


def trained(log_dir: Path, **changes: Any) -> Path:
    if not log_dir.with_name(f"{log_dir.name}-pool.toml").is_file():
        toy_pool(log_dir)
    settings = {"systems": ROUTER, "train_calls": 24, "limit": 3, **changes}
    assert toy_run(log_dir, **settings).finished
    return log_dir


def tuning_calls(log_dir: Path) -> int:
    folders = sorted(path.parent for path in (log_dir / "tuning").rglob("experiment.json"))
    return sum(one.calls for folder in folders for one in read_tries(folder))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run in which template-router has learnt on the toy's train split."""
    return trained(tmp_path_factory.mktemp("learning") / "run")


@pytest.mark.slow
def test_a_system_learns_on_train_questions_only_and_within_its_budget(run_dir: Path) -> None:
    asked = Counter(line.partition(" ")[2].partition("-")[0] for line in calls(run_dir))
    spent = tuning_calls(run_dir)
    assert asked["train"] == spent
    assert 12 <= spent <= 24


def test_what_it_has_learnt_is_in_its_log_and_in_a_file_of_that_digest(run_dir: Path) -> None:
    row = entries(run_dir)["template-router"]
    with run_context(log_dir=run_dir):
        learned = read_artifact(row.args["learned"], "template-router", row.args["sha256"])
    assert learned.about.suites == ("toy",)
    assert learned.about.calls == tuning_calls(run_dir)
    (path,) = newest_logs([run_dir], recursive=False)
    log = read_log(path)
    assert log is not None
    assert log.eval.metadata is not None
    facts = log.eval.metadata[PODIUM]
    assert facts["learnt"]["rows_sha256"] == learned.about.rows_sha256
    assert facts["learnt"]["workers"] == ["ada", "bob"]
    assert "questions" not in facts["learnt"]
    assert f"trained by {learned.about.calls} worker calls" in facts["notes"][-1]


def test_the_same_command_again_learns_nothing_anew(run_dir: Path) -> None:
    before = len(calls(run_dir))
    trained(run_dir)
    assert len(calls(run_dir)) == before


def test_training_is_billed_apart_and_is_no_row(run_dir: Path, tmp_path: Path) -> None:
    made = write_report([run_dir], tmp_path / "report")
    assert [row.system for row in made.rows] == ["template-router"]
    (line,) = made.spend
    said = f"training template-router on toy ({tuning_calls(run_dir)} calls"
    assert said in line


def test_a_directory_with_rounds_of_tries_passes_its_audit_and_its_manifest(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(run_dir)]) == 0
    assert "weak" not in capsys.readouterr().out.partition("INVARIANTS")[2]
    assert main(["manifest", "verify", str(run_dir)]) == 0
    covered = json.loads((run_dir / "MANIFEST.json").read_text())
    assert "learned/toy/template-router.npz" in json.dumps(covered)


def test_a_training_that_was_interrupted_goes_on_and_learns_the_same(
    run_dir: Path, tmp_path: Path
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    broken = Path(f"{log_dir}.broken")
    broken.write_text("train-3")
    with pytest.raises(Exception, match=r"could not be trained|the provider is down"):
        trained(log_dir)
    broken.unlink()
    trained(log_dir)
    once = entries(run_dir)["template-router"].args["sha256"]
    assert entries(log_dir)["template-router"].args["sha256"] == once


def test_an_exam_without_a_train_split_is_refused_until_another_one_teaches(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    exam = Toy(splits=("eval",))
    with pytest.raises(UserError, match=r"template-router must be trained .* --train-on SUITE"):
        toy_run(log_dir, exam, systems=ROUTER)
    assert not log_dir.exists()
    settings = {"more": (Other(),), "train_on": ("other",), "train_calls": 8, "limit": 2}
    assert toy_run(log_dir, exam, systems=ROUTER, **settings).finished
    row = entries(log_dir)["template-router"]
    assert row.learnt["suites"] == ["other"]
    assert "on train questions of other" in row.notes[-1]


def test_a_question_of_the_exam_teaches_nothing_under_another_id(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    exam, other = Toy(splits=("eval",)), Other(copied=5)
    settings = {"more": (other,), "train_on": ("other",), "train_calls": 14, "limit": 2}
    assert toy_run(log_dir, exam, systems=("best-single",), **settings).finished
    asked = Counter(calls(log_dir))
    assert asked == {"ada eval-0": 1, "ada eval-1": 1} | {
        f"{worker} train-{n}": 1 for worker in ("ada", "bob") for n in range(5, 12)
    }
    with pytest.raises(
        UserError, match=r"Every train question of 'other' is also a question of this run"
    ):
        toy_run(tmp_path / "run", exam, systems=ROUTER, **{**settings, "more": (Other(copied=12),)})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"systems": ("best-single@3",)}, "best-single takes no number"),
        ({"systems": ("self-consistency@x",)}, "a whole number from 1 to 10,000, as in"),
        ({"systems": ("self-consistency@0",)}, "a whole number from 1 to 10,000"),
        ({"systems": ("self-consistency@",)}, "a whole number from 1 to 10,000"),
        ({"systems": ("compute-matched-usd",)}, "not in this run: add --system conductor-prompted"),
        (
            {"systems": ("compute-matched-usd",), "match": "moa-lite"},
            "matched with moa-lite, which is not in this run: add --system moa-lite",
        ),
        ({"systems": ROUTER, "train_calls": 1}, "--train-calls 1 is too low: each of 2 workers"),
        ({"systems": ROUTER, "train_calls": -1}, "--train-calls must be at least 1"),
        ({"systems": ROUTER, "train_on": ("olympus",)}, "There is no suite 'olympus'"),
        ({"systems": ROUTER, "split": "train"}, "template-router must be trained before"),
    ],
)
def test_what_cannot_learn_or_be_matched_is_refused_before_anything_is_asked(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    with pytest.raises(UserError, match=reason):
        toy_run(log_dir, **changes)
    assert calls(log_dir) == []
    assert not log_dir.exists()


def test_a_number_behind_a_name_is_a_row_of_its_own(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    names = ("self-consistency@2", "self-consistency@3")
    assert toy_run(log_dir, systems=names, limit=2, selection_limit=2).finished
    rows = entries(log_dir)
    assert {name: rows[name].args["k"] for name in names} == dict(zip(names, (2, 3), strict=True))
    made = write_report([log_dir], tmp_path / "report")
    assert {row.system: row.calls for row in made.rows} == {names[0]: 2.0, names[1]: 3.0}


def test_a_budget_is_settled_once_it_was_said(run_dir: Path) -> None:
    with pytest.raises(UserError, match="its train-calls is 24, not 30"):
        toy_run(run_dir, systems=ROUTER, train_calls=30, limit=3)


def test_a_matched_worker_is_sampled_as_often_as_the_other_costs(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    systems = ("moa-lite", "compute-matched-usd", "compute-matched-tokens")
    assert toy_run(log_dir, systems=systems, match="moa-lite", limit=4, selection_limit=2).finished
    rows = entries(log_dir)
    assert {rows[name].args["k"] for name in systems[1:]} == {3.0}  # equal calls, equal prices
    assert rows["compute-matched-usd"].args["worker"] == "ada"
    assert "moa-lite takes 3.00 times the list dollars" in rows["compute-matched-usd"].notes[-1]
    made = write_report([log_dir], tmp_path / "report")
    costs = {row.system: row.usd_per_query for row in made.rows}
    assert costs["compute-matched-usd"] == costs["moa-lite"]


def test_what_is_cheaper_than_one_call_meets_one_call_and_a_note(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    book = log_dir.with_name(f"{log_dir.name}-prices.toml")
    cheap = '[usd_per_mtok."toy/bob"]\ninput = "1"\noutput = "1"\n'
    book.write_text(book.read_text().partition('[usd_per_mtok."toy/bob"]')[0] + cheap)
    systems = ("single:bob", "compute-matched-usd")
    settings = {"match": "single:bob", "limit": 2, "selection_limit": 2}
    assert toy_run(log_dir, systems=systems, **settings).finished
    row = entries(log_dir)["compute-matched-usd"]
    assert row.args["k"] == 1.0
    assert "cheaper than one call, so one call stands against it" in row.notes[-1]


def test_a_dry_run_counts_what_learning_takes(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = toy_pool(log_dir)
    request = RunRequest(("toy",), (*ROUTER, "best-single"), str(pool), log_dir, train_calls=10)
    found = estimate(RequestReader(request, toy_catalogue(), CONTROLS).read())
    counted = {line.system: int(line.expected.calls) for line in found.lines}
    assert counted["training template-router"] == 10
    assert counted["choosing best-single: single:ada"] == 5
    assert counted["template-router"] == 60  # at most: it has not learnt yet
    assert calls(log_dir) == []


@pytest.mark.slow
def test_a_mixture_is_aggregated_by_the_best_worker_where_the_run_chooses_one(
    tmp_path: Path,
) -> None:
    trained(tmp_path / "alone", systems=("moa-lite",))
    trained(tmp_path / "both", systems=("moa-lite", "best-single"))
    trained(tmp_path / "later", systems=("best-single",))
    trained(tmp_path / "later", systems=("moa-3",))
    best = entries(tmp_path / "both")["best-single"].args["worker"]
    assert entries(tmp_path / "alone")["moa-lite"].args == {}
    assert entries(tmp_path / "both")["moa-lite"].args == {"aggregator": best}
    assert entries(tmp_path / "later")["moa-3"].args == {"aggregator": best}
