"""Learning that is killed, or runs out of money, in the middle: it goes on, and learns the same."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import PodiumError, UserError
from podium.harness.records import Question
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.estimate import estimate
from podium.harness.run.experiment import read_experiment
from podium.harness.run.run_request import RequestReader
from podium.harness.suite import Split
from podium.harness.workflow import MAX_STEPS
from podium.reports.audit.audit_report import audit
from podium.reports.report import write_report
from tests import ROOT
from tests.harness.toy_run import CONTROLS, Toy, calls, toy_catalogue, toy_pool, toy_run

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "tests.harness.toy_run"]
LEARNERS = ("template-router", "router-knn", "cascade-frugal")
TRAIN_CALLS = 24
CENT = Decimal("0.01")


def digests(log_dir: Path) -> dict[str, Any]:
    found = read_experiment(log_dir)
    assert found is not None
    return {row.name: row.args.get("sha256") for row in found.entries}


def wait_for(log_dir: Path, count: int) -> None:
    end = time.monotonic() + 100
    while len(calls(log_dir)) < count and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody interrupted."""
    log_dir = tmp_path_factory.mktemp("whole") / "run"
    toy_pool(log_dir, connections=1)
    assert toy_run(log_dir, systems=LEARNERS, train_calls=TRAIN_CALLS).finished
    return log_dir


def test_killed_while_it_tries_and_while_it_answers_a_system_learns_what_it_would_have(
    whole: Path, tmp_path: Path
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    Path(f"{log_dir}.slow").write_text("0.05")
    command = [*COMMAND, str(log_dir), f"--train-calls={TRAIN_CALLS}"]
    command += [f"--system={name}" for name in LEARNERS]
    total = len(calls(whole))
    for at in (TRAIN_CALLS + 9, total - 9):  # in a round of tries, in the exam
        with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
            wait_for(log_dir, at)
            os.killpg(process.pid, signal.SIGKILL)
    Path(f"{log_dir}.slow").unlink()
    settings: dict[str, Any] = {"systems": LEARNERS, "train_calls": TRAIN_CALLS}
    assert toy_run(log_dir, **settings).finished
    assert digests(log_dir) == digests(whole)
    for name in LEARNERS[:2]:
        path = f"learned/toy/{name}.npz"
        assert (log_dir / path).read_bytes() == (whole / path).read_bytes()
    assert not Counter(calls(whole)) - Counter(calls(log_dir))
    alone = [line for line in calls(log_dir)[:TRAIN_CALLS] if "train" in line]
    assert Counter(alone) == Counter(calls(whole)[:TRAIN_CALLS])
    before = len(calls(log_dir))
    assert toy_run(log_dir, **settings).finished
    assert len(calls(log_dir)) == before
    assert [one.faults for one in audit(log_dir).verdicts if one.status == "fail"] == []
    report = [write_report([one], tmp_path / one.parent.name) for one in (whole, log_dir)]
    rows = [[(row.system, row.accuracy, row.calls) for row in made.rows] for made in report]
    assert rows[0] == rows[1]


def test_a_limit_in_dollars_holds_over_learning_and_more_money_goes_on(
    whole: Path, tmp_path: Path
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    settings: dict[str, Any] = {"systems": LEARNERS, "train_calls": TRAIN_CALLS}
    limit = CENT * (TRAIN_CALLS + 9)
    with pytest.raises(PodiumError, match="--max-usd"):
        toy_run(log_dir, **settings, max_usd=limit)
    assert CENT * len(calls(log_dir)) <= limit
    made = len(calls(log_dir))
    assert made > TRAIN_CALLS  # choosing was paid for, and a part of a round
    with pytest.raises(PodiumError, match="--max-usd"):
        toy_run(log_dir, **settings, max_usd=limit)
    assert len(calls(log_dir)) == made
    assert toy_run(log_dir, **settings, max_usd=CENT * 1000).finished
    twice = Counter(calls(log_dir)) - Counter(calls(whole))
    assert twice.total() < MAX_STEPS  # a question is asked anew where the money ended in its middle
    assert not Counter(calls(whole)) - Counter(calls(log_dir))
    assert digests(log_dir) == digests(whole)
    assert [one.faults for one in audit(log_dir).verdicts if one.status == "fail"] == []


def test_a_dry_run_expects_what_a_trained_system_took_and_not_what_its_tries_took(
    whole: Path, tmp_path: Path
) -> None:
    pool = whole.with_name(f"{whole.name}-pool.toml")
    request = RunRequest(
        ("toy",), LEARNERS, str(pool), tmp_path / "new", limit=5, train_calls=TRAIN_CALLS
    )
    found = estimate(RequestReader(request, toy_catalogue(), CONTROLS).read(), [whole])
    lines = {line.system: line for line in found.lines}
    took = {row.system: row for row in write_report([whole], tmp_path / "report").rows}
    for name in LEARNERS:
        assert lines[name].basis.startswith("12 past answers of the same system; not trained yet")
        assert lines[name].expected.calls == 5 * Decimal(str(took[name].calls))
        assert lines[name].expected.usd == 5 * CENT * Decimal(str(took[name].calls))
    assert lines["training template-router"].expected.usd == CENT * TRAIN_CALLS


class Second(Toy):
    """Another exam, of other questions."""

    name = "second"

    def load(self, split: Split = "eval") -> list[Question]:
        return [
            Question(f"{split}-{n}", f"Question 2-{split}-{n} is what?", "integer", "42")
            for n in range(12)
        ]


def test_two_suites_teach_half_the_budget_each_and_the_note_names_both(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    taught = {"more": (Second(),), "train_on": ("toy", "second"), "train_calls": 16, "limit": 2}
    systems = ("router-knn", "template-router", "best-single")
    assert toy_run(log_dir, systems=systems, **taught).finished
    alone = [line for line in calls(log_dir) if "train" in line]
    each = Counter(line.split()[1].startswith("2-") for line in alone[:16])
    assert each == {True: 8, False: 8}
    found = read_experiment(log_dir)
    assert found is not None
    rows = {row.system: row for row in found.entries}
    assert rows["router-knn"].learnt["suites"] == ["toy", "second"]
    assert (
        "trained on 8 x 2 worker calls on train questions of toy, second"
        in (rows["router-knn"].notes[-1])
    )
    assert rows["template-router"].learnt["suites"] == ["toy", "second"]
    tried = Counter(line.split()[1].startswith("2-") for line in alone[16:])
    assert tried.keys() == {True, False}
    made = write_report([log_dir], tmp_path / "report")
    assert any("training template-router on second" in line for line in made.spend)
    with pytest.raises(UserError, match="train-on is"):
        toy_run(log_dir, systems=systems, **{**taught, "train_on": ("second",)})
