"""Every Eval Ever: what a run is there, what stays here, and what the archive's validator says.

PODIUM_EXPORTS=1 also runs their validator (`make exports`), in an environment of its own.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from podium.__main__ import main
from podium.harness.errors import UserError
from podium.reports.eee import write_eee
from tests.harness.runs import BOOK, Crew, Exam, failing_on, sit, steps, wrong
from tests.installed import apart, newer_python

SECRET = "Say"
"""Begins every question of the exam; nothing of a private one may hold it."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder of runs, and what was made of it."""

    runs: Path
    out: Path

    def record(self, suite: str, model: str) -> dict[str, Any]:
        """The one record of a system on a suite."""
        (path,) = (self.out / "data" / suite / model).glob("*[0-9a-f].json")
        return json.loads(path.read_text())

    def samples(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The samples that a record points at."""
        path = self.out / record["detailed_evaluation_results"]["file_path"]
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    home = tmp_path_factory.mktemp("eee")
    runs = home / "runs"
    sit(runs, "moa-lite", steps("sage", "clerk", "sage"), Crew(sage=failing_on("Say 3")), epochs=2)
    sit(runs, "single:sage", crew=Crew(sage=wrong), epochs=2)
    private = Exam(name="secrets", publishable=False)
    sit(
        runs,
        "moa-lite",
        steps("sage", "clerk"),
        exam=private,
        prices=replace(BOOK, prices={}).as_json(),
    )
    write_eee([runs], home / "out")
    return Exported(runs, home / "out")


def test_the_system_is_what_was_evaluated_and_its_workers_are_details(exported: Exported) -> None:
    record = exported.record("numbers", "podium/moa-lite")
    model = record["model_info"]
    assert (model["name"], model["id"]) == ("moa-lite", "podium/moa-lite")
    config = json.loads(model["additional_details"]["config"])
    assert config["clerk"]["model"] == "scripted/clerk"


def test_a_single_worker_is_its_own_model(exported: Exported) -> None:
    model = exported.record("numbers", "scripted/sage")["model_info"]
    assert (model["id"], model["inference_platform"]) == ("scripted/sage", "scripted")


def test_dollars_are_a_result_of_their_own_and_lower_is_better(exported: Exported) -> None:
    accuracy, cost = exported.record("numbers", "scripted/sage")["evaluation_results"]
    assert accuracy["score_details"]["score"] == 0.0
    assert cost["metric_config"]["lower_is_better"]
    assert cost["score_details"]["score"] == float(
        accuracy["score_details"]["details"]["usd_per_query"]
    )


def test_a_sample_has_question_answer_tokens_of_all_calls_and_dollars(exported: Exported) -> None:
    record = exported.record("numbers", "podium/moa-lite")
    samples = exported.samples(record)
    first = samples[0]
    assert first["input"] == {"raw": "Say 1", "reference": ["1"]}
    assert first["output"] == {"raw": ["1"]}
    assert first["evaluation"] == {"score": 1.0, "is_correct": True}
    assert first["metadata"]["calls"] == "3"
    assert float(first["metadata"]["usd_list"]) > 0
    assert first["token_usage"]["total_tokens"] == (
        first["token_usage"]["input_tokens"] + first["token_usage"]["output_tokens"]
    )
    assert first["evaluation_id"] == record["evaluation_id"]


def test_a_question_that_nobody_could_grade_is_no_sample_and_is_counted(exported: Exported) -> None:
    record = exported.record("numbers", "podium/moa-lite")
    asked = [one["sample_id"] for one in exported.samples(record)]
    details = record["evaluation_results"][0]["score_details"]["details"]
    assert sorted(asked) == sorted(["q1", "q2", "q4"] * 2)
    assert (details["n_asked"], details["n_graded"]) == ("8", "6")


def test_the_checksum_is_that_of_the_samples(exported: Exported) -> None:
    detail = exported.record("numbers", "podium/moa-lite")["detailed_evaluation_results"]
    content = (exported.out / detail["file_path"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == detail["checksum"]
    assert content.count(b"\n") == detail["total_rows"]


def test_of_a_private_suite_the_record_goes_alone_and_quotes_nothing(exported: Exported) -> None:
    (path,) = (exported.out / "data" / "secrets").rglob("*.*")
    assert path.suffix == ".json"
    assert SECRET not in path.read_text()
    assert "detailed_evaluation_results" not in json.loads(path.read_text())


def test_a_run_without_prices_has_no_cost_and_says_how_many_calls_lack_one(
    exported: Exported,
) -> None:
    (accuracy,) = exported.record("secrets", "podium/moa-lite")["evaluation_results"]
    details = accuracy["score_details"]["details"]
    assert "usd_per_query" not in details
    assert details["n_unpriced"] == "8"


def test_the_same_logs_give_the_same_bytes(exported: Exported, tmp_path: Path) -> None:
    write_eee([exported.runs], tmp_path / "again")
    names = sorted(path.relative_to(exported.out) for path in exported.out.rglob("*.*"))
    assert names == sorted(
        path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*.*")
    )
    assert all(
        (exported.out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        for name in names
    )


def test_a_folder_that_exists_is_refused_in_one_sentence(
    exported: Exported, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", "eee", str(exported.runs), "--out", str(exported.out)]
    assert main(command) == 2
    assert "exists already, and nothing is overwritten" in capsys.readouterr().err


def test_an_unfinished_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    def stopped(heard: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sit(tmp_path / "runs", "solo", crew=Crew(sage=stopped))
    with pytest.raises(UserError, match="has not been asked"):
        write_eee([tmp_path / "runs"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("PODIUM_EXPORTS"),
    reason="downloads the readers of exports; make exports, or PODIUM_EXPORTS=1, runs it",
)
def test_their_validator_passes_every_file(exported: Exported, tmp_path: Path) -> None:
    python = newer_python()
    if python is None:
        pytest.skip("every-eval-ever needs Python 3.12 or newer, and none was found here")
    needs = ("pydantic", "rich<15", "requests", "pyyaml")
    made = apart(tmp_path / "env", python, *needs, without_needs="every-eval-ever==0.3.0")
    command = [made.with_name("every_eval_ever"), "validate", "--format", "json"]
    done = subprocess.run(
        [*command, f"{exported.out}/data/**/*.json*"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["valid"] for one in found] == [True] * 5
    assert not any(one["errors"] or one["warnings"] for one in found)


def test_a_folder_that_is_named_twice_is_written_once(exported: Exported, tmp_path: Path) -> None:
    once = write_eee([exported.runs], tmp_path / "once")
    twice = write_eee([exported.runs, exported.runs], tmp_path / "twice")
    assert len(once) == len(twice)
