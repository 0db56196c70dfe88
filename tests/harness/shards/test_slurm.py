"""Shards as jobs: of SLURM where it is here, else of submitit's own local executor."""

from collections import Counter
from pathlib import Path

import pytest

from podium.harness.shards.slurm_launcher import SlurmLauncher, slurm_answers
from podium.reports.audit import audit
from tests.harness.shards.test_sharded_run import ALONE, answered, asked, ran

WORDS = ["--suite", "practice-integer", *ALONE, "--limit", "3"]
JOBS = ("--shards", "2", "--launcher", "slurm")


@pytest.mark.slow
def test_a_run_in_jobs_answers_all_and_its_audit_is_clean(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    there = () if slurm_answers() else ("--address", "local")
    assert ran(log_dir, WORDS, *JOBS, *there, "--max-usd", "5") == 0
    assert answered(log_dir) == Counter(dict.fromkeys(answered(log_dir), 1))
    assert asked(log_dir) == answered(log_dir)
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []


@pytest.mark.slow
def test_a_job_that_cannot_ask_says_why_in_its_shards_log(tmp_path: Path) -> None:
    launcher = SlurmLauncher(tmp_path / "jobs", None if slurm_answers() else "local")
    folder = tmp_path / "shards" / "0001"
    folder.mkdir(parents=True)
    launcher.launch(folder)
    found: dict[Path, int | None] = {}
    while not found:
        found |= launcher.ended()
    assert found == {folder: 2}
    assert "is not a shard of a run" in Path(f"{folder}.log").read_text()
    launcher.close()


@pytest.mark.skipif(slurm_answers(), reason="there is a SLURM here")
def test_where_there_is_no_slurm_a_sentence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(tmp_path / "run", WORDS, *JOBS) == 2
    assert "found no working sbatch: start the run where" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert ran(tmp_path / "run", WORDS, "--shards", "2", "--address", "here") == 2
    assert "--address needs --launcher slurm or ray" in capsys.readouterr().err
    assert ran(tmp_path / "run", WORDS, "--address", "here") == 2
    assert "--address goes with --shards N" in capsys.readouterr().err
