"""LiveCodeBench under Inspect: small logs, grading again from them, pass@k and breakdowns."""

import math
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, pass_at

from podium.harness.boxes import BoxRecord, OpenBox
from podium.harness.inspect_adapters import as_task
from podium.harness.model_judge import question_in, regrade
from podium.sandbox import Box
from podium.suites.livecodebench import LiveCodeBench, with_breakdown
from tests.providers.scripted import Heard, script
from tests.suites.livecodebench_rows import DOUBLE, case, encoded, exam, only, row


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sat(suite: LiveCodeBench, box: Box, logs: Path, epochs: int = 1) -> EvalLog:
    """Let a model that doubles numbers sit the exam."""

    def reply(heard: Heard) -> str:
        return DOUBLE

    (log,) = eval(
        with_breakdown(as_task(suite, box=box), epochs),
        model=get_model(script("coder", reply), memoize=False),
        log_dir=str(logs),
        log_format="json",
        display="none",
    )
    assert log.status == "success", log.error
    return log


def test_a_log_holds_no_hidden_test_and_can_be_graded_again(
    tmp_path: Path, subprocess_box: Box
) -> None:
    hidden = encoded([case("5\n", "10\n"), case("8675309\n", "17350618\n")])
    suite = exam(tmp_path / "data", row(private_test_cases=hidden))
    log = sat(suite, subprocess_box, tmp_path / "logs")
    text = Path(log.location).read_text()
    assert "8675309" not in text
    assert "17350618" not in text
    (sample,) = read_eval_log(log.location).samples or []
    assert question_in(sample, suite) == only(suite)
    facts = {suite.name: BoxRecord(python="3.11")}
    opened = OpenBox("subprocess", subprocess_box, facts, most=1)
    again = regrade(read_eval_log(log.location), suite, opened, everything=True)
    assert again is not None
    assert (again.graded, again.still_unscored, again.changed) == (1, 0, 0)


def test_a_missing_data_file_leaves_a_sample_unscored_with_the_reason(
    tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path / "data", row(contest_id="gone"))
    made = as_task(suite, box=subprocess_box)
    (tmp_path / "data" / "livecodebench" / "livecodebench-6.jsonl").unlink()
    (log,) = eval(
        made,
        model=get_model(script("coder", lambda _: DOUBLE), memoize=False),
        log_dir=str(tmp_path),
        display="none",
    )
    (sample,) = log.samples or []
    score = (sample.scores or {})["podium"]
    assert math.isnan(score.as_float())
    assert "changed while it was in use" in (score.explanation or "")


def test_inspect_reports_pass_at_k_and_each_difficulty_and_platform(
    tmp_path: Path, subprocess_box: Box
) -> None:
    hard = encoded([case("5\n", "7\n")])
    rows = [
        row("one"),
        row("two", difficulty="hard", platform="codeforces", private_test_cases=hard),
    ]
    log = sat(exam(tmp_path / "data", *rows), subprocess_box, tmp_path / "logs", epochs=5)
    assert log.results is not None
    found = {
        (score.reducer, name): metric.value
        for score in log.results.scores
        for name, metric in score.metrics.items()
    }
    assert found["mean", "mean"] == found["pass_at_5", "mean"] == 0.5
    assert (found["mean", "easy"], found["mean", "hard"]) == (1.0, 0.0)
    assert (found["mean", "atcoder"], found["mean", "codeforces"]) == (1.0, 0.0)


@pytest.mark.parametrize(("n", "c", "k"), [(8, 0, 1), (8, 3, 1), (8, 3, 5), (10, 1, 10), (4, 4, 2)])
def test_inspect_s_pass_at_k_is_the_unbiased_estimator(n: int, c: int, k: int) -> None:
    scores = [Score(value=float(i < c)) for i in range(n)]
    drawn = list(combinations(range(n), k))
    chance = sum(any(i < c for i in some) for some in drawn) / comb(n, k)
    assert pass_at(k)(scores).as_float() == pytest.approx(chance)
