"""`podium run --equal`: fifteen systems within the same budget, sizes in one command, bad input."""

from collections import Counter
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.ledger.system_runs import load_runs
from podium.reports.audit import audit
from podium.reports.curve import budget_charts
from podium.reports.report import report_of

SYSTEMS = (
    *("single:abacus", "self-consistency@9", "best-of-n@8", "moa-lite", "moa-3", "self-moa@8"),
    *("debate@3", "fusion", "remom@7", "confidence", "cascade", "router-knn", "random-trinity"),
    *("conductor-prompted", "conductor"),
)
RUN = ("run", "--suite", "practice-integer", "--pool", "rehearsal", "--time-scale", "0")
QUIET = ("--display", "none", "--train-calls", "60", "--limit", "4")


def named(*systems: str) -> list[str]:
    return [word for name in systems for word in ("--system", name)]


@pytest.mark.slow
def test_no_system_makes_a_call_more_and_sizes_share_draws(tmp_path: Path) -> None:
    words = [*RUN, *QUIET, *named(*SYSTEMS), "--equal", "calls=1,3,9", "--log-dir", str(tmp_path)]
    assert main(words) == 0
    runs, _ = load_runs([tmp_path])
    answered = [run for run in runs if run.facts.purpose == "eval"]
    for run in answered:
        limit = int(run.facts.equal.removeprefix("calls="))
        for attempt in run.attempts:
            planned = run.facts.system == "conductor"  # by a model in this process: no call
            calls = attempt.totals.calls - planned
            assert calls + (attempt.unused or 0) == limit, run.facts.system
    sizes = Counter(run.facts.equal for run in answered)
    # With one call a prompted conductor has no answer; all single workers are a router's row, too.
    assert sizes["calls=1"] == sizes["calls=3"] - 1 == sizes["calls=9"] - 1 >= len(SYSTEMS) - 1
    found = audit(tmp_path)
    assert found.ok
    assert found.table.counts["shared"] > 0
    votes = {row.equal: row.calls for row in report_of([tmp_path]).rows if row.system == SYSTEMS[1]}
    assert votes == {"calls=1": 1.0, "calls=3": 3.0, "calls=9": 9.0}
    (_, unit, series) = budget_charts(report_of([tmp_path]).rows)[0]
    assert unit == "calls that a question may take"
    assert [x for x, *_ in series[SYSTEMS[1]]] == [1.0, 3.0, 9.0]
    assert main(["report", str(tmp_path), "--curve", str(tmp_path / "curve.png")]) == 0
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert not [*tmp_path.glob("paid-replies/*")], "the store of runs that all finished"


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["tokens=5000", "usd=0.0011", "seconds=6"])
def test_no_question_passes_the_budget(budget: str, tmp_path: Path) -> None:
    systems = ("single:sage", "self-consistency@5", "moa-lite", "debate@3", "cascade")
    words = [*RUN, *QUIET, *named(*systems), "--equal", budget, "--log-dir", str(tmp_path)]
    assert main(words) == 0
    unit, _, limit = budget.partition("=")
    runs, _ = load_runs([tmp_path])
    stopped = 0
    for run in runs:
        for attempt in run.attempts if run.facts.purpose == "eval" else ():
            totals, path = attempt.totals, attempt.critical_path_s
            if unit == "tokens":
                assert (totals.tokens_in or 0) + (totals.tokens_out or 0) <= int(limit)
            elif unit == "usd":
                assert totals.usd is not None
                assert float(totals.usd) <= float(limit)
            else:
                assert attempt.stopped or (path is not None and path <= float(limit))
            stopped += attempt.stopped == unit
    assert stopped, "the budget ends somebody's work"
    assert audit(tmp_path).ok


def test_a_dry_run_counts_no_call_beyond_the_budget(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [*RUN, *QUIET, *named("self-consistency@9"), "--log-dir", str(tmp_path), "--dry-run"]
    printed: list[str] = []
    for equal in ([], ["--equal", "calls=3"]):
        assert main([*words, *equal]) == 0
        lines = capsys.readouterr().out.splitlines()
        printed.append(next(line for line in lines if "self-consistency@9" in line))
    assert [" 36 " in printed[0], " 12 " in printed[1]] == [True, True], printed


BAD = {
    ("calls",): "'calls' is not an equal budget: give a unit and its sizes, such as calls=9",
    ("dollars=1",): "'dollars=1' is not an equal budget",
    ("calls=0",): "The sizes of an equal budget in calls must be whole numbers of at least 1, not "
    "0.",
    ("calls=1.5",): "The sizes of an equal budget in calls must be whole numbers of at least 1",
    ("tokens=300",): "No call fits in tokens=300: the smallest can take",
    (
        "tokens=9000",
        "--system",
        "conductor-prompted",
    ): "'conductor' needs max_tokens so that tokens=9000 can be enforced",
    (
        "usd=0.01",
        "--pool",
        "{tmp}/unpriced.toml",
    ): "'sage' needs max_tokens and a price so that usd=0.01 can be enforced",
    ("calls=3", "--system", "oracle"): "No system can answer within calls=3. oracle: it cannot",
}


@pytest.mark.parametrize("words", BAD)
def test_a_budget_that_cannot_hold_is_refused_before_a_call(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = {"label": "rehearsal", "prices": "none"}
    lines = [f'{name} = "{value}"' for name, value in pool.items()]
    lines += ["[[workers]]", 'name = "sage"', 'model = "rehearsal/sage"', "config.max_tokens = 99"]
    (tmp_path / "unpriced.toml").write_text("\n".join(lines))
    budget, *more = (word.format(tmp=tmp_path) for word in words)
    more = more if "--system" in more else [*more, "--system", "single"]
    log_dir = tmp_path / "run"
    assert main([*RUN, *more, "--equal", budget, "--log-dir", str(log_dir)]) == 2
    assert BAD[words] in " ".join(capsys.readouterr().err.split())
    assert not log_dir.exists()


def test_a_run_keeps_its_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*RUN, *QUIET, *named("single:sage"), "--log-dir", str(tmp_path)]
    assert main([*words, "--equal", "calls=3"]) == 0
    assert main(words) == 0, "it is not said again"
    assert main([*words, "--equal", "calls=5"]) == 2
    assert "its equal budget is 'calls=3', not 'calls=5'" in capsys.readouterr().err
    assert main([*words, "--equal", "calls=3,5"]) == 2
    assert "holds a run with one budget. Name another --log-dir" in capsys.readouterr().err
