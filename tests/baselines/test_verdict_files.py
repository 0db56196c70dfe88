"""Verdicts in a user's own files: lm-eval's samples, Inspect's logs, tables of named columns."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match

from baselines.verdict_data import SourceRequest
from baselines.verdict_sources import read_matrix
from harness.cli import main
from harness.errors import UserError
from harness.learning import Matrix
from tests.harness.toy_run import toy_pool, toy_run
from tests.installed import foreign
from tests.providers.scripted import Heard, script

STAMP = "2026-11-27T05-09-59.379786"
SUMS = [("What is 1 + 1?", "2"), ("What is 2 + 3?", "5"), ("What is 5 + 5?", "10")]


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
        pytest.param({"exact_match": "lol"}, "line 1: exact_match: it is no number", id="word"),
        pytest.param({"exact_match": None}, "exact_match: it is absent", id="absent"),
        pytest.param({"exact_match": 7}, "no number from 0 to 1", id="large"),
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
    with pytest.raises(UserError, match="document 0 is another one"):
        matrix_of(f"lm-eval:{tmp_path}")


def sat(
    log_dir: Path,
    name: str,
    reply: Callable[[Heard], str],
    epochs: int = 1,
    asked: Sequence[tuple[str, str]] = SUMS,
) -> None:
    samples = [Sample(id=n, input=text, target=right) for n, (text, right) in enumerate(asked, 1)]
    eval(
        Task(dataset=MemoryDataset(samples, name="sums"), scorer=match(), epochs=epochs),
        model=get_model(script(name, reply), memoize=False),
        log_dir=str(log_dir),
        display="none",
    )


def test_inspects_logs_are_a_matrix_of_their_models(tmp_path: Path) -> None:
    sat(tmp_path, "one", lambda heard: "2")
    sat(tmp_path, "two", lambda heard: "10" if "5 + 5" in heard.last else "5", epochs=2)
    found = matrix_of(f"inspect:{tmp_path}")
    assert found.workers == ("scripted/one", "scripted/two")
    assert found.scores.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert [one.text for one in found.questions] == [text for text, _ in SUMS]
    assert (found.tokens_out > 0).all()
    assert np.isnan(found.usd).all()


def test_another_question_under_the_same_id_is_refused(tmp_path: Path) -> None:
    sat(tmp_path, "one", lambda heard: "2")
    sat(tmp_path, "two", lambda heard: "2", asked=[(f"Now {text}", right) for text, right in SUMS])
    with pytest.raises(UserError, match="sample 1 is another one in another log"):
        matrix_of(f"inspect:{tmp_path}")


def test_a_folder_without_logs_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no \.eval log: name what `inspect eval` wrote"):
        matrix_of(f"inspect:{tmp_path}")


def test_runs_of_podiums_own_are_told_apart(tmp_path: Path) -> None:
    toy_pool(tmp_path / "run")
    toy_run(tmp_path / "run", limit=1)
    with pytest.raises(UserError, match="is of `podium run`: name it as logs:"):
        matrix_of(f"inspect:{tmp_path / 'run'}")


TABLE = """instance_id,scenario,model,input,exact_match,cost,num_output_tokens
id1,mmlu,acme/one,What is 1 + 1?,1.0,0.001,3
id1,mmlu,acme/two,What is 1 + 1?,0.0,0,4
id2,mmlu,acme/one,What is 2 + 3?,0.5,0.002,5
id2,mmlu,acme/two,What is 2 + 3?,,,
"""


def test_a_table_as_helms_is_a_matrix_and_what_is_empty_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "helm.csv").write_text(TABLE)
    found = matrix_of(f"table:{tmp_path / 'helm.csv'}")
    assert found.workers == ("acme/one", "acme/two")
    assert [one.id for one in found.questions] == ["mmlu/id1", "mmlu/id2"]
    assert np.array_equal(found.scores, [[1, 0], [0.5, np.nan]], equal_nan=True)
    assert np.array_equal(found.usd, [[0.001, 0], [0.002, np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(
            "exact_match", "verdict", "no column by one of the names score", id="no score"
        ),
        pytest.param("cost", "exact_match", "column exact_match stands twice", id="twice"),
        pytest.param(
            "0.001", "$0.001", "line 2: cost: Input should be a valid number", id="dollar"
        ),
        pytest.param("0.001", "1e400", "line 2: cost: Input should be a finite", id="endless"),
        pytest.param(
            "id1,mmlu,acme/two,What is 1 + 1?", "id1,mmlu,acme/two,?", "two texts", id="text"
        ),
        pytest.param("0.5,0.002", "5,0.002", "score of mmlu/id2: it is no number", id="large"),
        pytest.param("0.5,0.002", "0.5,-0.002", "line 4: cost", id="dollars below 0"),
        pytest.param("acme/two,What is 2 + 3?", ",What is 2 + 3?", "line 5: model", id="nobody"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "helm.csv").write_text(TABLE.replace(old, new))
    with pytest.raises(UserError, match=said):
        matrix_of(f"table:{tmp_path / 'helm.csv'}")


def test_a_text_may_stand_in_a_later_row_alone(tmp_path: Path) -> None:
    text = TABLE.replace("acme/one,What is 1 + 1?", "acme/one,")
    (tmp_path / "helm.csv").write_text(text)
    found = matrix_of(f"table:{tmp_path / 'helm.csv'}")
    assert [one.text for one in found.questions] == ["What is 1 + 1?", "What is 2 + 3?"]


@pytest.mark.parametrize("source", ["lm-eval", "inspect", "table"])
def test_a_path_that_is_not_there_is_named_with_what_to_write(source: str) -> None:
    with pytest.raises(UserError, match=rf"no nowhere: name it, `podium route {source}:"):
        matrix_of(f"{source}:nowhere")


def test_a_directory_of_routerarenas_results_stands_for_the_pinned_ones(tmp_path: Path) -> None:
    for name, score in (("one", 1.0), ("two", 0.0)):
        row = {
            "global_index": "AIME_1",
            "question": "What is 1 + 1?",
            "llm_selected": name,
            "evaluation_result": {"metric": "exact", "score": score, "inference_cost": 0.01},
            "token_usage": {"output_tokens": 7},
        }
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    found = matrix_of(f"routerarena:{tmp_path}")
    assert (found.workers, found.scores.tolist()) == (("one", "two"), [[1, 0]])
    with pytest.raises(UserError, match=r"holds no \.jsonl file"):
        matrix_of(f"routerarena:{tmp_path / 'nowhere'}")


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
    python = foreign(tmp_path / "env", LM_EVAL)
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
