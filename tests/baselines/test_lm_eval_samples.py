"""Verdicts in lm-eval's samples: one filter and metric for all models of a task."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.learning import Matrix
from tests.installed import apart

STAMP = "2026-11-27T05-09-59.379786"
SUMS = [("What is 1 + 1?", "2"), ("What is 2 + 3?", "5"), ("What is 5 + 5?", "10")]
Rows = list[dict[str, Any]]


def matrix_of(source: str) -> Matrix:
    return read_matrix(source, SourceRequest(Path("nowhere")))


def lm_eval_row(doc: int, right: float, **changes: Any) -> dict[str, Any]:
    """Return a row as lm-eval 0.4.13 writes it, but for what nobody reads here."""
    return {
        "doc_id": doc,
        "doc": {"question": "?"},
        "arguments": {"gen_args_0": {"arg_0": SUMS[doc][0], "arg_1": {"until": ["\n"]}}},
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": f"digest {doc}",
        "exact_match": right,
        **changes,
    }


def lm_eval_file(folder: Path, rows: list[dict[str, Any]], stamp: str = STAMP) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"samples_sums_{stamp}.jsonl").write_text(lines)


def test_lm_evals_samples_are_a_matrix_of_its_models(tmp_path: Path) -> None:
    lm_eval_file(tmp_path / "acme__one", [lm_eval_row(n, n == 0) for n in range(3)])
    lm_eval_file(tmp_path / "acme__two", [lm_eval_row(n, 1.0) for n in range(3)])
    results = tmp_path / "acme__two" / f"results_{STAMP}.json"
    results.write_text(json.dumps({"model_name": "acme/two"}))
    found = matrix_of(f"lm-eval:{tmp_path}")
    assert found.workers == ("acme__one", "acme/two")
    assert found.scores.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert [one.text for one in found.questions] == [text for text, _ in SUMS]
    assert "sums by exact_match (filter none)" in found.notes[0]


def test_the_newest_samples_of_a_task_and_the_first_filter_count(tmp_path: Path) -> None:
    rows = [lm_eval_row(0, 1.0, filter="strict"), lm_eval_row(0, 0.0, filter="loose")]
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 0.0)], "2026-11-26T01-00-00.000000")
    lm_eval_file(tmp_path / "one", rows)
    assert matrix_of(f"lm-eval:{tmp_path}").scores.tolist() == [[1]]


def test_older_lists_of_arguments_are_read_and_several_are_a_choice(tmp_path: Path) -> None:
    pairs = [[SUMS[0][0], " 2"], [SUMS[0][0], " 7"]]
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 1.0, arguments=pairs)])
    (one,) = matrix_of(f"lm-eval:{tmp_path}").questions
    assert (one.text, one.kind) == (SUMS[0][0], "choice")


def test_texts_of_a_private_data_set_are_marked_as_such(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    path = tmp_path / "one" / f"samples_gpqa_diamond_zeroshot_{STAMP}.jsonl"
    path.write_text(json.dumps(lm_eval_row(0, 1.0)) + "\n")
    assert not matrix_of(f"lm-eval:{tmp_path}").publishable


def test_a_file_of_samples_that_holds_none_is_named(tmp_path: Path) -> None:
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 1.0)])
    lm_eval_file(tmp_path / "two", [])
    with pytest.raises(UserError, match=rf"two/samples_sums_{STAMP}.jsonl has no rows"):
        matrix_of(f"lm-eval:{tmp_path}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"exact_match": "lol"}, "line 1: exact_match is not a number", id="word"),
        pytest.param({"exact_match": None}, "line 1: exact_match is missing", id="absent"),
        pytest.param({"exact_match": 7}, "not a number from 0 to 1", id="large"),
        pytest.param({"metrics": []}, "line 1: metrics", id="no metric"),
        pytest.param({"arguments": []}, "document 0 has no prompt", id="no prompt"),
        pytest.param({"doc_hash": None}, "line 1: doc_hash", id="no digest"),
    ],
)
def test_what_lm_eval_would_not_write_is_named(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 1.0, **changes)])
    with pytest.raises(UserError, match=said):
        matrix_of(f"lm-eval:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[]", r"\.json: it: Input should be an object\.", id="a list"),
        pytest.param('{"model_name": ', "line 1 column", id="cut off"),
    ],
)
def test_results_that_name_no_model_are_named(tmp_path: Path, text: str, said: str) -> None:
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 1.0)])
    (tmp_path / "one" / f"results_{STAMP}.json").write_text(text)
    with pytest.raises(UserError, match=said):
        matrix_of(f"lm-eval:{tmp_path}")


def test_another_document_under_the_same_number_is_refused(tmp_path: Path) -> None:
    lm_eval_file(tmp_path / "one", [lm_eval_row(0, 1.0)])
    lm_eval_file(tmp_path / "two", [lm_eval_row(0, 1.0, doc_hash="another")])
    with pytest.raises(UserError, match="document 0 differs from that of an earlier file"):
        matrix_of(f"lm-eval:{tmp_path}")


def judged(kind: str, right: float, **changes: Any) -> Rows:
    """Return the rows of three documents by one filter."""
    return [lm_eval_row(n, right, filter=kind, **changes) for n in range(3)]


def by_metrics(*metrics: str, **scores: float) -> Rows:
    return [lm_eval_row(n, 0.0, metrics=metrics, **scores) for n in range(3)]


STRICT, FLEXIBLE = judged("strict-match", 0.0), judged("flexible-extract", 1.0)


@pytest.mark.parametrize(
    ("one", "two", "scores", "note"),
    [
        pytest.param(
            STRICT + FLEXIBLE, FLEXIBLE + STRICT, [0, 0], "filter strict-match", id="swapped"
        ),
        pytest.param(STRICT + FLEXIBLE, FLEXIBLE, [1, 1], "flexible-extract", id="one of two"),
        pytest.param(
            by_metrics("acc", "acc_norm", acc=1.0, acc_norm=0.0),
            by_metrics("acc_norm", "acc", acc=0.5, acc_norm=1.0),
            [1, 0.5],
            "sums by acc (filter none)",
            id="metrics swapped",
        ),
        pytest.param(STRICT, STRICT[::-1], [0, 0], "strict-match", id="another order"),
    ],
)
def test_all_models_of_a_task_are_compared_by_one_filter_and_metric(
    tmp_path: Path, one: Rows, two: Rows, scores: list[float], note: str
) -> None:
    lm_eval_file(tmp_path / "one", one)
    lm_eval_file(tmp_path / "two", two)
    found = matrix_of(f"lm-eval:{tmp_path}")
    assert found.scores.tolist() == [scores] * 3
    assert note in found.notes[0]


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        pytest.param(
            STRICT,
            FLEXIBLE,
            r"no filter and metric in common.*one by exact_match \(filter strict-match\); "
            r"two by exact_match \(filter flexible-extract\)",
            id="filters",
        ),
        pytest.param(
            by_metrics("acc", acc=1.0),
            by_metrics("acc_norm", acc_norm=1.0),
            r"one by acc \(filter none\); two by acc_norm",
            id="metrics",
        ),
        pytest.param(
            [*by_metrics("acc", acc=1.0)[:2], *by_metrics("em", em=1.0)[2:]],
            by_metrics("acc", acc=1.0),
            "one by no metric that covers all documents",
            id="another metric in a row",
        ),
    ],
)
def test_models_without_a_common_filter_and_metric_are_refused_with_a_list(
    tmp_path: Path, one: Rows, two: Rows, said: str
) -> None:
    lm_eval_file(tmp_path / "one", one)
    lm_eval_file(tmp_path / "two", two)
    with pytest.raises(UserError, match=said):
        matrix_of(f"lm-eval:{tmp_path}")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(
            [*STRICT, STRICT[1]],
            r"line 4: document 1 is also in line 2 \(filter strict-match\)",
            id="twice",
        ),
        pytest.param(
            [*STRICT, {**FLEXIBLE[1], "doc_hash": "x"}],
            "line 4: document 1 differs from that of an earlier line",
            id="another document",
        ),
    ],
)
def test_a_document_that_stands_twice_in_a_file_is_refused(
    tmp_path: Path, rows: Rows, said: str
) -> None:
    lm_eval_file(tmp_path / "one", rows)
    with pytest.raises(UserError, match=said):
        matrix_of(f"lm-eval:{tmp_path}")


def test_files_of_an_older_lm_eval_are_refused_with_the_version_that_is_needed(
    tmp_path: Path,
) -> None:
    older = [
        {name: value for name, value in row.items() if name not in ("filter", "metrics")}
        for row in STRICT
    ]
    lm_eval_file(tmp_path / "one", older)
    with pytest.raises(UserError, match=r"line 1: it has no columns .*lm-eval 0\.4\.7 and later"):
        matrix_of(f"lm-eval:{tmp_path}")


def results(folder: Path, **fields: Any) -> None:
    name = {"model_name": f"acme/{folder.name}"}
    (folder / f"results_{STAMP}.json").write_text(json.dumps({**name, **fields}))


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param("n-shot", r"number of examples .*acme/one 5, acme/two 0", id="examples"),
        pytest.param("versions", "version of the task: acme/one 5, acme/two 0", id="version"),
    ],
)
def test_models_that_were_asked_in_different_ways_are_refused_with_a_list(
    tmp_path: Path, field: str, said: str
) -> None:
    for name, value in (("one", 5), ("two", 0)):
        lm_eval_file(tmp_path / name, STRICT)
        results(tmp_path / name, **{field: {"sums": value, "other": name}})
    with pytest.raises(UserError, match=said):
        matrix_of(f"lm-eval:{tmp_path}")


def test_a_metric_of_which_less_is_better_is_no_score(tmp_path: Path) -> None:
    lm_eval_file(tmp_path / "one", by_metrics("brier_score", "acc", brier_score=0.2, acc=1.0))
    results(tmp_path / "one", higher_is_better={"sums": {"brier_score": False, "acc": True}})
    assert matrix_of(f"lm-eval:{tmp_path}").scores.tolist() == [[1], [1], [1]]


def test_a_path_that_is_not_there_is_named_with_what_to_write() -> None:
    with pytest.raises(UserError, match=r"no nowhere\. Write `podium route lm-eval:"):
        matrix_of("lm-eval:nowhere")


LM_EVAL = "lm-eval==0.4.13"
TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{rows}"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: 0
doc_to_choice: ["2", "7"]
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""


@pytest.mark.slow
def test_what_lm_eval_itself_has_written_is_routed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = apart(tmp_path / "env", Path(sys.executable), LM_EVAL)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"question": text}) + "\n" for text, _ in SUMS))
    (tmp_path / "sums.yaml").write_text(TASK.format(rows=rows))
    for name in ("one", "two"):
        words = ["--model", "dummy", "--model_args", f"pretrained=acme/{name}", "--tasks", "sums"]
        words += ["--include_path", str(tmp_path), "--output_path", str(tmp_path / "out")]
        done = subprocess.run(
            [python.with_name("lm_eval"), *words, "--log_samples"],
            env={"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    found = matrix_of(f"lm-eval:{tmp_path / 'out'}")
    assert found.workers == ("acme/one", "acme/two")
    assert [one.text for one in found.questions] == [text for text, _ in SUMS]
    assert main(["route", f"lm-eval:{tmp_path / 'out'}", "--split", "folds:3"]) == 0
    assert "acme/two" in capsys.readouterr().out
