"""Logs that Inspect wrote in JSON are read as `.eval` files are, and no other JSON is."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.log import convert_eval_logs
from inspect_ai.model import get_model

from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.cli import main
from podium.harness.cassette import record
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_task
from podium.harness.ledger.logs import find_logs, open_log
from podium.harness.ledger.runs import has_system_runs, system_runs_below
from podium.harness.ledger.system_runs import load_runs
from podium.reports.audit import as_text, audit
from podium.reports.report import report_of
from tests.harness.toy_run import Toy, toy_pool, toy_run
from tests.providers.scripted import script


def in_json(log: Path) -> Path:
    """Let Inspect convert a log beside itself, and take the `.eval` file away."""
    convert_eval_logs(str(log), to="json", output_dir=str(log.parent))
    log.unlink()
    return log.with_suffix(".json")


def samples_below(folder: Path) -> Iterator[dict[str, Any]]:
    for path in find_logs([folder]):
        with open_log(path) as log:
            yield from log.samples()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the directory of a run, and a copy whose log is in JSON."""
    packed = tmp_path_factory.mktemp("packed") / "run"
    toy_pool(packed)
    toy_run(packed, limit=3)
    plain = shutil.copytree(packed, tmp_path_factory.mktemp("plain") / "run")
    for log in plain.rglob("*.eval"):
        in_json(log)
    return packed, plain


def test_a_run_whose_logs_are_in_json_has_the_same_rows(runs: tuple[Path, Path]) -> None:
    packed, plain = (report_of([folder]).text for folder in runs)
    assert plain == packed


def test_a_log_in_json_has_the_samples_and_calls_of_the_eval_file(
    runs: tuple[Path, Path],
) -> None:
    samples = [[*samples_below(folder)] for folder in runs]
    assert samples[0] == samples[1]
    assert all(map(has_system_runs, runs))
    assert [len(system_runs_below(folder)) for folder in runs] == [1, 1]


def test_only_json_that_begins_as_a_log_is_taken_for_one(runs: tuple[Path, Path]) -> None:
    folder = runs[1]
    (log,) = find_logs([folder])
    assert log.suffix == ".json"
    assert len([*folder.rglob("*.json")]) > 1  # the manifest, the experiment, Inspect's own
    report = folder / "report"
    report.mkdir()
    (report / "table.json").write_text('{"version": 1, "rows": []}')
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    try:
        assert find_logs([folder]) == (log,)
    finally:
        shutil.rmtree(report)
        (folder / "pipe.json").unlink()
        (folder / "loop.json").unlink()


def test_of_a_log_in_both_forms_the_eval_file_is_read(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(runs[0], tmp_path / "run")
    (log,) = find_logs([folder])
    convert_eval_logs(str(log), to="json", output_dir=str(log.parent))
    assert find_logs([folder]) == (log,)
    assert [len(run.paths) for run in load_runs([folder])[0]] == [1]


@pytest.mark.parametrize("name", ["experiment.json", "MANIFEST.json"])
def test_json_that_is_no_log_is_refused_by_its_name(runs: tuple[Path, Path], name: str) -> None:
    path = next(runs[1].rglob(name))
    with pytest.raises(UserError, match=rf"{name} is not an \.eval log"):
        find_logs([path])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"version": 2, "status": "success"', id="cut off"),
        pytest.param('{"version": 2, "status": "success", "eval": 7}', id="no eval"),
        pytest.param('{"version": 99, "status": "success", "eval": {}}', id="of tomorrow"),
        pytest.param('{"version": 2, "status": "success", "eval": ' + "[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_log_in_json_is_named_in_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "2026-01-01T00-00-00_task_id.json"
    path.write_text(text)
    for words in (["report", str(tmp_path)], ["route", f"inspect:{tmp_path}"]):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{path} is damaged or no Inspect log" in line


def test_a_log_in_json_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "2026-01-01T00-00-00_task_id.json"
    path.write_text('{"version": 2, "status": "success", ')
    os.truncate(path, (2 << 30) + 1)  # a file with a hole: it takes no room
    with pytest.raises(UserError, match="it has 2 GiB; the maximum is 2 GiB"), open_log(path):
        pass


def sat(log_dir: Path, name: str) -> None:
    """Let a model that always says 42 sit the toy exam, as `inspect eval --log-format json`."""
    eval(
        as_task(Toy()),
        model=get_model(script(name, lambda heard: "42"), memoize=False),
        model_roles={"ada": get_model(script(name, lambda heard: "42"), memoize=False)},
        limit=3,
        log_dir=str(log_dir),
        log_format="json",
        display="none",
    )


def test_what_inspect_eval_wrote_in_json_is_reported_routed_on_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sat(tmp_path / "logs", "sitter")
    (log,) = (tmp_path / "logs").iterdir()
    assert log.suffix == ".json"
    (row,) = report_of([tmp_path / "logs"]).rows
    assert (row.label, row.accuracy, row.n_graded) == ("inspect", 1.0, 3)
    matrix = read_matrix(f"inspect:{tmp_path / 'logs'}", SourceRequest(Path("nowhere")))
    assert matrix.scores.tolist() == [[1], [1], [1]]
    assert record(find_logs([log]), tmp_path / "tape.jsonl").rows == 3


def test_an_audit_says_that_it_makes_no_table_again_from_json(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(runs[1], tmp_path / "run")
    assert main(["report", str(folder)]) == 0
    assert "has logs in JSON, whose tables are not computed again" in as_text(audit(folder))
