"""Recorded verdicts become matrices: real files give the figures that are known of them."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.baselines.verdict_data import EPOCHS, VERDICTS, SourceRequest, packed_path
from podium.baselines.verdict_sources import read_matrix
from podium.harness.errors import UserError
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from podium.suites.data import data_folder
from podium.suites.gpqa_diamond import GpqaDiamond
from tests.baselines.pack_verdicts import PACKED, pack_verdicts


def recorded(named: str) -> Matrix:
    """Return a source's matrix; skip where its files are absent."""
    try:
        return read_matrix(named, SourceRequest(data_folder(), gpqa=GpqaDiamond().load))
    except UserError as error:
        pytest.skip(str(error))


def best(matrix: Matrix) -> tuple[str, float]:
    means = matrix.mean_scores()
    return matrix.workers[int(means.argmax())], round(100 * float(means.max()), 1)


def oracle(matrix: Matrix) -> float:
    return round(100 * float(matrix.scores.max(axis=1).mean()), 1)


@pytest.mark.parametrize("name", PACKED)
def test_the_figures_of_the_package_are_those_of_the_originals_and_hold_no_text(name: str) -> None:
    content = gzip.decompress(packed_path(name).read_bytes())
    longest = max(
        len(cell) for row in csv.reader(content.decode().splitlines()[1:]) for cell in row
    )
    assert longest < 40
    try:
        made = pack_verdicts(*PACKED[name](data_folder()))
    except (UserError, OSError) as error:
        pytest.skip(str(error))
    assert made == content


@pytest.mark.parametrize(
    ("named", "shape", "top"),
    [
        ("lcb-leaderboard", (1055, 16), 93.9),
        ("lcb-leaderboard:v5", (880, 19), 88.5),
        ("lcb-leaderboard:v1", (400, 45), 63.3),
        ("aime25", (30, 4), 50.0),
        ("routerbench:mbpp", (427, 11), 86.7),
        ("routerbench", (1911, 11), 96.0),
    ],
)
def test_a_source_of_the_package_needs_no_data_and_says_how_texts_are_had(
    named: str, shape: tuple[int, int], top: float, tmp_path: Path
) -> None:
    matrix = read_matrix(named, SourceRequest(tmp_path))
    assert matrix.scores.shape == shape
    assert oracle(matrix.whole()) == top
    assert {asked.text for asked in matrix.questions} == {""}
    assert "`podium data fetch " in matrix.notes[-1]


def test_the_leaderboard_has_its_known_best_single_and_oracle() -> None:
    matrix = recorded("lcb-leaderboard")
    assert matrix.scores.shape == (1055, 16)
    assert best(matrix) == ("O4-Mini (High)", 83.2)
    assert oracle(matrix) == 93.9
    assert np.isnan(matrix.usd).all()
    assert all(asked.text and asked.date and asked.group for asked in matrix.questions)


def test_gpqa_counts_seventeen_workers_with_several_whole_passes_each() -> None:
    matrix = recorded("gpqa-verdicts")
    assert matrix.scores.shape == (198, 17)
    assert matrix.draws == 4
    assert not matrix.publishable
    assert not np.isnan(matrix.scores).any()
    assert oracle(matrix) == 89.8
    assert not [name for name in matrix.workers if "Saturn" in name or "thinking" in name]


def test_no_question_of_gpqa_is_in_what_a_matrix_prints() -> None:
    matrix = recorded("gpqa-verdicts")
    shown = repr(matrix)
    texts = [asked.text for asked in matrix.questions if asked.text]
    assert not [text for text in texts if text[:40] in shown]


def test_gpqa_without_its_archive_has_verdicts_and_says_why_there_are_no_texts(
    tmp_path: Path,
) -> None:
    for name in (VERDICTS, EPOCHS):
        if not (data_folder() / name).is_file():
            pytest.skip(f"{name} is absent; see PODIUM_DATA")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(data_folder() / name)

    def closed() -> Any:
        raise UserError("there is no archive here.")

    matrix = read_matrix("gpqa-verdicts", SourceRequest(tmp_path, gpqa=closed))
    assert {asked.text for asked in matrix.questions} == {""}
    assert "there is no archive here" in matrix.notes[-1]


def test_aime_has_four_models_with_tokens_and_no_dollars() -> None:
    matrix = recorded("aime25")
    assert matrix.scores.shape == (30, 4)
    assert best(matrix) == ("DeepSeek-R1-Distill-Qwen-7B", 43.3)
    assert not np.isnan(matrix.tokens_out).any()
    assert np.isnan(matrix.usd).all()


def test_routerbench_slices_have_scores_dollars_and_a_declared_split() -> None:
    matrix = recorded("routerbench:mbpp")
    assert matrix.scores.shape == (427, 11)
    sides = [asked.split for asked in matrix.questions]
    assert (sides.count("train"), sides.count("eval")) == (299, 128)
    assert best(matrix) == ("gpt-4-1106-preview", 68.6)
    assert not np.isnan(matrix.usd).any()


def test_rows_of_routerbench_without_scores_are_unknown_and_not_wrong() -> None:
    matrix = recorded("routerbench:arc_challenge")
    assert len(matrix.questions) - len(matrix.whole().questions) == 28
    assert matrix.questions[0].text.startswith("A group of engineers")  # no shared examples


def test_routerarena_has_two_models_with_tokens_and_dollars() -> None:
    matrix = recorded("routerarena")
    assert matrix.scores.shape == (809, 2)
    assert not np.isnan(matrix.usd).any()
    assert not np.isnan(matrix.tokens_out).any()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param("nobody", "there are: lcb-leaderboard", id="unknown"),
        pytest.param("aime25:x", "takes no path", id="path"),
        pytest.param("routerbench:x.pkl", "runs code when it is opened", id="pickle"),
        pytest.param("llmrouterbench", "There is no directory", id="no-directory"),
        pytest.param("logs", "Give the directory", id="no-logs"),
        pytest.param("routerbench:hellaswag", "no RouterBench file", id="slice"),
        pytest.param("lcb-leaderboard:v2", "there are: v6, v5, v1", id="release"),
        pytest.param("gpqa-verdicts", "There is no", id="absent-gpqa"),
        pytest.param(
            "routerarena", "Download it with `podium data fetch routerarena`", id="absent-arena"
        ),
    ],
)
def test_a_source_that_is_not_here_is_refused(tmp_path: Path, named: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_matrix(named, SourceRequest(tmp_path))


def test_a_damaged_row_of_verdicts_is_named_by_its_line_and_no_value(tmp_path: Path) -> None:
    (tmp_path / "gpqa").mkdir()
    head = "source,model,run,item_idx,record_id,correct\n"
    with gzip.open(tmp_path / VERDICTS, "wt") as file:
        file.write(head + "klukosiute/gpqa-eval,m,run0,0,rec1,secret\n")
    (tmp_path / EPOCHS).write_text("item_id,model_id,score,epoch\n")
    with pytest.raises(UserError, match="line 2: correct: ") as error:
        read_matrix("gpqa-verdicts", SourceRequest(tmp_path))
    assert "secret" not in str(error.value)


def test_verdicts_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    (tmp_path / "gpqa").mkdir()
    with gzip.open(tmp_path / VERDICTS, "wt") as file:
        file.write("source,model,record_id,correct\nklukosiute/gpqa-eval,m,rec1,1\n")
    (tmp_path / EPOCHS).write_text("item_id,model_id,score,epoch\n")
    with pytest.raises(UserError, match="m has 1 of 198 questions"):
        read_matrix("gpqa-verdicts", SourceRequest(tmp_path))


ASKED = [MatrixQuestion("a", "A?"), MatrixQuestion("b", "B?")]


def test_draws_are_averaged_and_what_nobody_measured_stays_unknown() -> None:
    cells = [
        MatrixCell("a", "atlas", 1.0, usd=0.1),
        MatrixCell("a", "atlas", 0.0, usd=0.3),
        MatrixCell("a", "birch", 1.0, usd=0.1),
        MatrixCell("a", "birch", None),
    ]
    matrix = assemble_matrix(MatrixSource("m", "made up"), ASKED, cells)
    assert matrix.scores[0].tolist() == [0.5, 1.0]
    assert matrix.usd[0, 0] == 0.2
    assert np.isnan(matrix.usd[0, 1])  # the draw that failed may have cost something
    assert np.isnan(matrix.scores[1]).all()
    assert matrix.draws == 1


def test_two_questions_of_one_id_are_refused() -> None:
    with pytest.raises(UserError, match="a appears twice"):
        assemble_matrix(
            MatrixSource("m", "made up"), [ASKED[0], ASKED[0]], [MatrixCell("a", "atlas", 1.0)]
        )
