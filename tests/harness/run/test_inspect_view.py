"""What Inspect's own tools show of a run: its system by name, and the dollars of calls and samples.

A run that was begun before its logs said so goes on, and asks no question again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from inspect_ai.analysis import evals_df
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log, write_eval_log

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.runs import NO_MODEL
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool_config import POOLS
from podium.harness.run.evaluate import mean_score
from podium.harness.system_api import system_model
from podium.reports.report import load_runs as load_frames
from tests.harness.toy_run import calls, toy_pool, toy_run
from tests.suites.toy_card import CARD


def logs_in(log_dir: Path) -> Sequence[EvalLog]:
    """Return the logs of a run, whole."""
    return [read_eval_log(one) for one in list_eval_logs(str(log_dir), recursive=False)]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two systems on three questions."""
    log_dir = tmp_path_factory.mktemp("view") / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, systems=("single:ada", "single:bob"), limit=3).finished
    return log_dir


def test_a_log_names_its_system_where_inspect_names_a_model(run_dir: Path) -> None:
    table = evals_df([*map(str, run_dir.glob("*.eval"))])
    table = table.set_index("task_display_name").sort_index()
    assert [*table.index] == ["single:ada on toy", "single:bob on toy"]
    assert [*table["model"]] == ["podium/single:ada", "podium/single:bob"]
    assert {*table["task_description"]} == {CARD.about}
    assert {*table["tags"]} == {"eval,live"}
    assert {*table["score_headline_name"]} == {"podium"}
    assert {*table["score_headline_metric"]} == {"mean"}


def usd(sample: EvalSample) -> float:
    """Return the dollars that Inspect adds up for a sample."""
    return sum(one.total_cost or 0.0 for one in sample.model_usage.values())


def test_calls_and_samples_have_the_dollars_of_the_ledger(run_dir: Path) -> None:
    frames = load_frames(run_dir)
    priced = dict(zip(frames.calls["event"], frames.calls["usd"], strict=True))
    spent = dict(zip(frames.samples["sample"], frames.samples["usd"], strict=True))
    samples = [sample for log in logs_in(run_dir) for sample in log.samples or ()]
    assert len(samples) == 6
    for sample in samples:
        events = [event for event in sample.events if isinstance(event, ModelEvent)]
        assert events
        for event in events:
            assert event.output.usage
            assert event.output.usage.total_cost == float(priced[event.uuid]) > 0
        assert usd(sample) == pytest.approx(float(spent[sample.uuid]))


def test_the_viewer_is_asked_to_show_the_column_of_dollars(run_dir: Path) -> None:
    for log in logs_in(run_dir):
        assert log.eval.viewer
        view = log.eval.viewer.task_samples_view
        assert not isinstance(view, list)
        assert view
        assert view.columns
        assert [one.id for one in view.columns if one.visible][-1] == "cost"


def test_what_has_no_price_has_no_dollars(tmp_path: Path) -> None:
    pool = tmp_path / "pool.toml"
    shipped = (POOLS / "rehearsal.toml").read_text()
    pool.write_text(re.sub("^prices = .*", 'prices = "none"', shipped, flags=re.MULTILINE))
    words = ["--system", "single:sage", "--limit", "1", "--log-dir", str(tmp_path / "run")]
    assert main(["run", "--suite", "practice-integer", "--pool", str(pool), *words]) == 0
    (log,) = logs_in(tmp_path / "run")
    (sample,) = log.samples or []
    assert [one.total_cost for one in sample.model_usage.values()] == [None]


def test_a_run_begun_before_its_logs_named_a_system_asks_nothing_again(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, limit=3).finished
    (log,) = logs_in(log_dir)
    log.eval.model = NO_MODEL
    write_eval_log(log, log.location)
    outcome = toy_run(log_dir, limit=5, systems=("single:ada", "single:bob"))
    assert outcome.finished
    assert Counter(calls(log_dir)) == {
        f"{who} eval-{n}": 1 for who in ("ada", "bob") for n in range(5)
    }
    assert {log.eval.task: log.eval.model for log in outcome.logs} == {
        "toy single:ada": NO_MODEL,
        "toy single:bob": "podium/single:bob",
    }
    assert {log.eval.task: mean_score(log)[0] for log in outcome.logs} == {
        "toy single:ada": 1.0,
        "toy single:bob": 0.0,
    }
    assert len(load_runs([log_dir])[0]) == 2


def test_no_words_of_inspect_are_printed_where_the_progress_is_ours(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    for _ in ("a run", "the same again, with nothing left to ask"):
        assert toy_run(log_dir, limit=2, display="line").finished
        out, err = capfd.readouterr()
        assert "tasks" not in out + err
        assert str(log_dir) not in out + err


@pytest.mark.parametrize("name", ["single:sage", "conductor@/a/folder", "self-consistency@3"])
def test_any_system_has_a_model_of_its_name(name: str) -> None:
    assert str(system_model(name)) == f"podium/{name}"


def test_a_system_answers_within_a_task_only() -> None:
    with pytest.raises(UserError, match="only within a task"):
        anyio.run(system_model("moa-lite").generate, "Are you there?")
