"""Files of LLMRouterBench and RouterBench become matrices; damaged ones are refused by name."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.harness.errors import UserError
from podium.harness.learning import Matrix


def records(score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "index": more.pop("index", 1),
        "origin_query": "What is 2 + 2?",
        "prompt": "Question: What is 2 + 2?\nAnswer:",
        "prompt_tokens": 15,
        "completion_tokens": 5,
        "cost": 0.0001,
        "score": score,
        "prediction": "4",
        "raw_output": "It is 4.",
        **more,
    }


def result_file(folder: Path, model: str, rows: Sequence[Any], **more: Any) -> Path:
    """Write a file as LLMRouterBench lays it out."""
    stamp = more.pop("stamp", "20251001_120000")
    path = folder / "aime" / "test" / model / f"aime-test-{model}-{stamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"performance": 0.5, "model_name": model, "dataset_name": "aime", "split": "test"}
    path.write_text(json.dumps({**about, "demo": False, **more, "records": rows}))
    return path


def from_files(folder: Path) -> Matrix:
    return read_matrix(f"llmrouterbench:{folder}", SourceRequest(folder))


def test_files_of_llmrouterbench_become_a_matrix(tmp_path: Path) -> None:
    result_file(tmp_path, "atlas", [records(1.0), records(0.0, index=2)])
    result_file(tmp_path, "birch", [records(0.0), records(1.0, index=2, cost=0.02)])
    matrix = from_files(tmp_path)
    assert matrix.workers == ("atlas", "birch")
    assert [asked.id for asked in matrix.questions] == ["aime/test/1", "aime/test/2"]
    assert matrix.scores.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert matrix.usd.tolist() == [[0.0001, 0.0001], [0.0001, 0.02]]
    assert matrix.questions[0].text == "What is 2 + 2?"


FAILED = {"completion_tokens": 0, "cost": 0.0, "prediction": "", "raw_output": ""}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(records(0.0, **FAILED), id="no-output"),
        pytest.param(records(None), id="no-score"),
    ],
)
def test_a_failed_generation_is_unknown_and_never_free(tmp_path: Path, row: Any) -> None:
    result_file(tmp_path, "atlas", [records(1.0)])
    result_file(tmp_path, "birch", [row])
    matrix = from_files(tmp_path)
    assert np.isnan(matrix.scores[0, 1])
    assert np.isnan(matrix.usd[0, 1])
    assert "1 of 2 generations failed" in matrix.notes[0]
    assert not matrix.whole().questions


def test_a_cost_of_nothing_is_unknown(tmp_path: Path) -> None:
    result_file(tmp_path, "atlas", [records(1.0, cost=0.0)])
    assert np.isnan(from_files(tmp_path).usd).all()


def test_the_newest_file_counts_and_no_demonstration(tmp_path: Path) -> None:
    result_file(tmp_path, "atlas", [records(0.0)], stamp="20250101_000000")
    result_file(tmp_path, "atlas", [records(1.0)], stamp="20250601_000000")
    result_file(tmp_path, "atlas", [records(0.0)], stamp="20251201_000000", demo=True)
    assert from_files(tmp_path).scores.tolist() == [[1.0]]


def broken_json(folder: Path) -> None:
    result_file(folder, "atlas", []).write_text("{")


def without_index(folder: Path) -> None:
    result_file(folder, "atlas", [{"score": 1.0}])


def other_question(folder: Path) -> None:
    result_file(folder, "atlas", [records(1.0)])
    result_file(folder, "birch", [records(1.0, origin_query="What is 3 + 3?")])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(broken_json, "cannot be read as JSON", id="damaged"),
        pytest.param(without_index, "records.0.index: Field required", id="field"),
        pytest.param(other_question, "differs from that of an earlier file", id="other-question"),
        pytest.param(lambda folder: None, "holds no result file", id="empty"),
    ],
)
def test_files_that_are_no_llmrouterbench_are_refused(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    make(tmp_path)
    with pytest.raises(UserError, match=said):
        from_files(tmp_path)


ROW = {"sample_id": "a", "prompt": "['Say \\n1']", "eval_name": "x"}


def router_csv(path: Path, *rows: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_routerbench_file_of_ones_own_is_read(tmp_path: Path) -> None:
    rows = [
        {**ROW, "m": "1.0", "m|total_cost": "0.002"},
        {**ROW, "sample_id": "b", "prompt": "['Say \\n2']", "m": "", "m|total_cost": "0"},
    ]
    path = router_csv(tmp_path / "mine.csv", *rows)
    matrix = read_matrix(f"routerbench:{path}", SourceRequest(tmp_path))
    assert [asked.text for asked in matrix.questions] == ["1", "2"]
    assert matrix.scores[0, 0] == 1.0
    assert np.isnan(matrix.scores[1, 0])
    assert np.isnan(matrix.usd[1, 0])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param({**ROW, "m": "1"}, "no column that ends in", id="no-costs"),
        pytest.param({**ROW, "m": "x", "m|total_cost": "1"}, "'m' is not a number", id="text"),
        pytest.param({**ROW, "m": "2", "m|total_cost": "1"}, "outside 0 to 1", id="score"),
        pytest.param(
            {**ROW, "m": "1", "m|total_cost": "-1"}, "is negative or infinite", id="negative"
        ),
        pytest.param(
            {**ROW, "prompt": "", "m": "1", "m|total_cost": "1"}, "missing or empty", id="empty"
        ),
    ],
)
def test_a_damaged_routerbench_row_is_named(tmp_path: Path, row: Any, said: str) -> None:
    path = router_csv(tmp_path / "mine.csv", row)
    with pytest.raises(UserError, match=said):
        read_matrix(f"routerbench:{path}", SourceRequest(tmp_path))
