"""Verdicts in a user's own files: Inspect's logs, tables of named columns."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match

from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.harness.errors import UserError
from podium.harness.learning import Matrix
from tests.harness.toy_run import toy_pool, toy_run
from tests.providers.scripted import Heard, script

SUMS = [("What is 1 + 1?", "2"), ("What is 2 + 3?", "5"), ("What is 5 + 5?", "10")]


def matrix_of(source: str) -> Matrix:
    return read_matrix(source, SourceRequest(Path("nowhere")))


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
    with pytest.raises(UserError, match="sample 1 differs from that of another log"):
        matrix_of(f"inspect:{tmp_path}")


def test_a_folder_without_logs_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"holds no \.eval log\. Give the folder that `inspect eval` wrote"
    ):
        matrix_of(f"inspect:{tmp_path}")


def test_runs_of_podiums_own_are_told_apart(tmp_path: Path) -> None:
    toy_pool(tmp_path / "run")
    toy_run(tmp_path / "run", limit=1)
    with pytest.raises(UserError, match=r"was written by `podium run`\. Write logs:"):
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
        pytest.param("cost", "exact_match", "column exact_match appears twice", id="twice"),
        pytest.param(
            "0.001", "$0.001", "line 2: cost: Input should be a valid number", id="dollar"
        ),
        pytest.param("0.001", "1e400", "line 2: cost: Input should be a finite", id="endless"),
        pytest.param(
            "id1,mmlu,acme/two,What is 1 + 1?", "id1,mmlu,acme/two,?", "two texts", id="text"
        ),
        pytest.param("0.5,0.002", "5,0.002", "score of mmlu/id2 is not a number", id="large"),
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


@pytest.mark.parametrize("source", ["inspect", "table"])
def test_a_path_that_is_not_there_is_named_with_what_to_write(source: str) -> None:
    with pytest.raises(UserError, match=rf"no nowhere\. Write `podium route {source}:"):
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
