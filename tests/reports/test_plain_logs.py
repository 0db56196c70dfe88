"""Logs that plain `inspect eval` wrote of suites of ours are rows of their own label."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import get_model
from inspect_ai.solver import Solver, chain, generate, system_message

from podium.baselines.single import single
from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_task
from podium.reports.blocks import DEFAULTS
from podium.reports.report import report_of
from podium.reports.row import TableRow
from tests import ROOT
from tests.harness.toy_run import Toy, toy_pool, toy_run
from tests.providers import serve
from tests.providers.scripted import script

INSPECT_EVAL = (sys.executable, "-m", "inspect_ai", "eval")
GPT = "openai/gpt-5-2025-08-07"


def sat(log_dir: Path, solver: Solver | None = None) -> None:
    """Let a model that always says 42 sit the toy exam, as `inspect eval` does."""
    model = get_model(script("sitter", lambda heard: "42"), memoize=False)
    eval(
        as_task(Toy(), solver=solver),
        model=model,
        model_roles={"ada": model},
        limit=3,
        log_dir=str(log_dir),
        display="none",
    )


def row_of(log_dir: Path) -> TableRow:
    (row,) = report_of([log_dir], DEFAULTS).rows
    return row


def test_a_model_without_a_system_is_a_row_with_tokens_and_why_it_has_no_dollars(
    tmp_path: Path,
) -> None:
    sat(tmp_path)
    row = row_of(tmp_path)
    assert (row.label, row.system, row.accuracy, row.n_graded) == (
        "inspect",
        "scripted/sitter",
        1.0,
        3,
    )
    assert row.tokens_out
    assert row.usd_per_query is None
    assert "has no price for scripted/sitter" in str(row.notes)


def test_a_system_of_ours_under_plain_inspect_is_named_by_its_solver(tmp_path: Path) -> None:
    sat(tmp_path, single("ada"))
    assert row_of(tmp_path).system == "single on scripted/sitter"


def test_a_chain_of_solvers_is_named_with_its_model(tmp_path: Path) -> None:
    sat(tmp_path, chain(system_message("Be brief."), generate()))
    assert row_of(tmp_path).system == "system_message + generate on scripted/sitter"


def test_it_is_compared_with_no_row_of_a_run(tmp_path: Path) -> None:
    toy_pool(tmp_path / "run")
    toy_run(tmp_path / "run", limit=3)
    sat(tmp_path / "plain")
    rows = report_of([tmp_path / "run", tmp_path / "plain"], DEFAULTS).rows
    assert [(row.label, row.system) for row in rows] == [
        ("live", "single:ada"),
        ("inspect", "scripted/sitter"),
    ]
    assert [row.reference for row in rows] == ["single:ada", ""]


def test_a_foreign_task_is_still_passed_over(tmp_path: Path) -> None:
    sat(tmp_path)
    (info,) = list_eval_logs(str(tmp_path))
    log = read_eval_log(info)
    log.eval.metadata = {}
    log.location = str(tmp_path / "other.eval")
    Path(info.name.removeprefix("file://")).unlink()
    write_eval_log(log, log.location)
    with pytest.raises(UserError, match="was not written by `podium run`"):
        report_of([tmp_path], DEFAULTS)


@pytest.mark.slow
def test_inspects_own_command_shows_the_dollars_that_the_report_has(tmp_path: Path) -> None:
    costs, logs = tmp_path / "costs.json", tmp_path / "logs"
    assert main(["prices", "export", "--inspect", str(costs)]) == 0
    task = ["suites/practice/integer.py@practice_integer", "--limit", "3"]
    with serve() as server:
        asked = ["--model", GPT, "--model-base-url", server.openai, "--display", "none"]
        money = ["--model-cost-config", str(costs), "--cost-limit", "1"]
        done = subprocess.run(
            [*INSPECT_EVAL, *task, *asked, *money, "--log-dir", str(logs)],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "test"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (info,) = list_eval_logs(str(logs))
    samples = read_eval_log(info).samples or []
    told = [sample.model_usage[GPT].total_cost for sample in samples]
    row = row_of(logs)
    assert (row.label, row.system) == ("inspect", GPT)
    assert row.usd_per_query is not None
    assert sum(one or 0 for one in told) / 3 == pytest.approx(float(row.usd_per_query))
