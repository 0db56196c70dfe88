"""`podium run -S NAME=VALUE`: options of systems are checked, recorded, counted and kept."""

import json
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.harness.ledger.logs import find_logs
from podium.reports.audit import audit
from podium.reports.report import report_of


def asked(folder: Path, system: str, *more: str) -> int:
    words = f"run --suite practice-integer --pool rehearsal --limit 1 --system {system}"
    return main([*words.split(), "--log-dir", str(folder), "--display", "none", *more])


@pytest.mark.parametrize(
    ("system", "option", "sentence"),
    [
        ("moa-3", "leyers=2", "Did you mean 'layers'? There is no option 'leyers'. Known options:"),
        ("moa-3", "layers=true", "-S layers=True has the wrong type for moa-3. Give a value of"),
        ("moa-3", "layers=1", "moa-3 cannot run with layers=1. Mixture-of-Agents needs at least 2"),
        ("moa-3", "layers=9999", "At most 10,000 are allowed: set a smaller value."),
        ("moa-3", "aggregator=nobody", "cannot run with aggregator='nobody'. This pool has no"),
        ("moa-3", "moa-lite.aggregator=sage", "'moa-lite' is not in this run. Add --system"),
        ("moa-3", "pool=other", "-S pool: --pool sets it for all systems. Leave it out."),
        ("self-consistency@3", "k=5", "-S k=5 contradicts the name self-consistency@3, which"),
        ("fusion", "preset=general-high", "the system's name sets it. Write --system fusion@P"),
        ("router-knn", "learned=x", "-S learned: the run sets it for all systems. Leave"),
        ("conductor-prompted", "retries=99999", "would make up to 100,005 calls"),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_is_written(
    system: str, option: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(tmp_path / "run", system, "-S", option) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["layers", "layers=[1", "layers=.nan", "=3"])
def test_what_is_no_option_is_refused_by_its_form(value: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        asked(tmp_path, "moa-3", "-S", value)


def test_options_are_recorded_counted_shown_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    options = ("layers=2", "moa-3.layers=3", "proposers=abacus,sage", "aggregator=sage")
    assert asked(run, "moa-3", *(word for one in options for word in ("-S", one))) == 0
    (entry,) = json.loads((run / "experiment.json").read_text())["entries"]
    args = {"layers": 3, "proposers": ["abacus", "sage"], "aggregator": "sage"}
    assert entry["args"] == args
    (path,) = find_logs([run])
    header = read_eval_log(path, header_only=True).eval.metadata or {}
    assert (header["podium"]["args"], header["podium"]["calls_expected"]) == (args, [5, 5])
    assert audit(run).ok
    assert "moa-3: layers=3, proposers=['abacus', 'sage']" in report_of([run]).rows[0].notes
    capsys.readouterr()
    assert asked(run, "moa-3", "-S", "layers=2") == 2
    assert "holds moa-3 with layers=3, not 2. Leave -S layers out" in capsys.readouterr().err
    assert asked(run, "moa-3") == 0
    assert len(find_logs([run])) == 1


def test_a_dry_run_counts_calls_by_options_and_chooses_no_worker_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(tmp_path, "self-moa", "-S", "k=2", "-S", "worker=sage", "--dry-run") == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("practice")]
    assert line.split()[:4] == ["practice-integer", "self-moa", "1", "3"]
    assert main(["systems", "moa-3"]) == 0
    assert "options      layers=3, proposers=None, aggregator=None" in capsys.readouterr().out
