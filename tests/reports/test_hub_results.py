"""What goes to the Hugging Face Hub, read by the Hub's own library."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import EvalResultEntry, ModelCard, parse_eval_result_entries

from podium.__main__ import main
from podium.conductor.checkpoint import RELEASED, checkpoint_digest
from podium.conductor.training.model_card import write_model
from podium.harness.errors import UserError
from podium.reports.hub_results import eval_results, results_text, rows_of_checkpoint
from podium.reports.report import Report
from podium.reports.row import TableRow
from tests.conductor.toy_checkpoint import speaker

GPQA = f"Idavidrein/gpqa@{'6' * 40}"


def conducted(report: Report, **more: Any) -> TableRow:
    row = next(row for row in report.rows if row.accuracy is not None)
    named = {"suite": "gpqa-diamond", "data_revision": GPQA, "label": "live", "pool": "paper / 1"}
    return replace(row, **(named | more))


def entries(rows: Sequence[TableRow]) -> dict[str, EvalResultEntry]:
    """Return what the Hub's library makes of each file."""
    found = {
        name: parse_eval_result_entries(yaml.safe_load(text)) for name, text in eval_results(rows)
    }
    return {name: one for name, (one,) in found.items()}


def test_a_result_is_of_the_data_set_at_its_revision_and_tells_the_system(made: Report) -> None:
    row = conducted(made)
    (name, entry), *more = entries([row]).items()
    assert (name, more) == ("gpqa-diamond-paper-1.yaml", [])
    assert (entry.dataset_id, entry.task_id) == ("Idavidrein/gpqa", "gpqa_diamond")
    assert entry.dataset_revision == "6" * 40
    assert row.accuracy is not None
    assert entry.value == pytest.approx(100 * row.accuracy, abs=0.005)
    assert entry.notes is not None
    for said in ("in percent", "6 questions, avg@2", "workers ", "paper / 1", "USD", "podium 0"):
        assert said in entry.notes


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"label": "rehearsal"}, id="rehearsal"),
        pytest.param({"data_revision": "generator-1-seed-20251"}, id="generated"),
        pytest.param({"data_revision": "Idavidrein/gpqa@main"}, id="no revision"),
        pytest.param({"accuracy": None}, id="nothing graded"),
    ],
)
def test_what_is_on_no_board_of_the_hub_is_in_the_table_alone(
    made: Report, more: dict[str, Any]
) -> None:
    row = conducted(made, **more)
    assert entries([row]) == {}
    assert "gpqa-diamond" in results_text([row])


def test_only_rows_of_the_checkpoint_are_its_results(made: Report) -> None:
    with pytest.raises(UserError, match="No system in these runs used the checkpoint"):
        rows_of_checkpoint(made, "0" * 64)
    pairs = [
        [(replace(row, args=json.dumps({"sha256": "a" * 64})), run) for row, run in block]
        for block in made.shown.pairs
    ]
    changed = replace(made, shown=replace(made.shown, pairs=pairs))
    found = rows_of_checkpoint(changed, "a" * 64)
    assert [row.system for row in found] == [row.system for row in made.rows]


def test_the_hub_reads_the_card_and_every_file_is_there(made: Report, tmp_path: Path) -> None:
    speaker(folder := tmp_path / "own", seed=1)
    (folder / "README.md").write_text("---\ntags: [podium]\n---\n# A conductor\n")
    (folder / "training_args.bin").write_bytes(b"a pickle")
    row = conducted(made)
    out = tmp_path / "out"
    write_model(folder, out, results_text([row]), dict(eval_results([row])))
    card = ModelCard.load(out / "README.md")
    assert card.data["tags"] == ["podium"]
    assert card.data["pipeline_tag"] == "text-generation"
    assert "license" not in card.data.to_dict()
    assert "## Results" in card.text
    assert (out / ".eval_results" / "gpqa-diamond-paper-1.yaml").is_file()
    assert checkpoint_digest(out) == checkpoint_digest(folder)
    assert not (out / "training_args.bin").exists()
    with pytest.raises(UserError, match="nothing is overwritten"):
        write_model(folder, out, "", {})
    (folder / "README.md").unlink()
    with pytest.raises(UserError, match=r"has no README\.md"):
        write_model(folder, tmp_path / "other", "", {})
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_a_released_conductor_goes_with_the_runs_in_which_it_conducted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "model"
    asked = ["run", "--suite", "practice-integer", "--limit", "2", "--log-dir", str(logs)]
    assert main([*asked, "--system", "conductor"]) == 0
    assert main(["export", "hub", "trained", str(logs), "--out", str(out)]) == 0
    card = ModelCard.load(out / "README.md")
    assert card.data["license"] == "apache-2.0"
    assert "| practice-integer" in card.text
    assert not (out / ".eval_results").exists()
    assert checkpoint_digest(out) == checkpoint_digest(RELEASED / "trained")
    assert (out / "log").is_dir()
    capsys.readouterr()
    assert main(["export", "hub", "adaptive", str(logs), "--out", str(tmp_path / "no")]) == 2
    assert "No system in these runs used the checkpoint" in capsys.readouterr().err


def test_a_folder_that_is_no_checkpoint_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    words = ["export", "hub", str(tmp_path / "empty"), str(tmp_path), "--out", str(tmp_path / "o")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "empty") in said
    assert "digest" not in said
