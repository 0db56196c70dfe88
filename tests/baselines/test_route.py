"""Routers are judged on what they did not see, against anchors that mean what they say."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from podium.baselines.route_eval import (
    Fold,
    RouterField,
    Split,
    best_single_worker,
    choose_routers,
    evaluate_routers,
    split_in_folds,
)
from podium.baselines.routers import Embedder, Estimates, Examples, Router, best_workers
from podium.harness.errors import UserError
from podium.harness.learning import (
    Arrays,
    Floats,
    FrontierPoint,
    Matrix,
    MatrixQuestion,
    RouteComparison,
    RoutedSystem,
)
from podium.reports.routes import (
    detectable_effect,
    headline,
    route_rows,
    route_text,
    write_route,
)


def matrix_of(scores: Sequence[Sequence[float]], usd: Sequence[Sequence[float]]) -> Matrix:
    names = ("cheap", "dear", "other")[: len(scores[0])]
    asked = tuple(MatrixQuestion(f"q{n}", f"Say {n}") for n in range(len(scores)))
    tokens = np.full((len(scores), len(names)), np.nan)
    return Matrix("m", "made up", "recorded", names, asked, np.array(scores), np.array(usd), tokens)


@dataclass(frozen=True, slots=True)
class LastDigit:
    """An embedder that reads the number in a question."""

    name: str = "digits"

    def fit(self, texts: Sequence[str]) -> Arrays:
        return {}

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        return np.array([[float(text.split()[-1])] for text in texts])


@dataclass(frozen=True, slots=True)
class Remembering:
    """A router that is right on whatever it has seen, and asks the first worker about the rest."""

    name: str = "router-remembering"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        return {"seen": examples.embeddings, "scores": examples.scores}

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        scores = np.tile([0.9, 0.1], (len(embeddings), 1))
        for row, number in enumerate(embeddings[:, 0]):
            at = np.flatnonzero(fitted["seen"][:, 0] == number)
            if at.size:
                scores[row] = fitted["scores"][at[0]]
        return Estimates(scores, np.tile([0.01, 0.1], (len(embeddings), 1)))


def judged_by(matrix: Matrix, k: int = 4) -> RouteComparison:
    routers: list[Router] = [Remembering()]
    embedder: Embedder = LastDigit()
    return evaluate_routers(matrix, split_in_folds(matrix, k, 0), RouterField(routers, embedder, 0))


def row(found: RouteComparison, name: str) -> RoutedSystem:
    (one,) = [one for one in found.systems if one.system == name]
    return one


ONLY_SECOND = matrix_of([[0.0, 1.0]] * 8, [[0.01, 0.1]] * 8)


@pytest.mark.parametrize("wrong", [-0.5, 1.5])
def test_a_score_outside_0_to_1_is_named(wrong: float) -> None:
    with pytest.raises(UserError, match=f"between 0 and 1, not {wrong}"):
        matrix_of([[1.0, wrong], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])


def test_a_router_is_never_judged_on_a_question_that_it_saw() -> None:
    found = judged_by(ONLY_SECOND)
    assert len(found.questions) == 8
    assert found.refits == 4
    assert row(found, "router-remembering").scores.tolist() == [0.0] * 8
    assert row(found, "best-single").scores.tolist() == [1.0] * 8


def test_the_oracle_asks_the_cheapest_of_the_best_and_the_cheapest_where_nobody_scores() -> None:
    matrix = matrix_of(
        [[1, 1, 0], [0, 1, 1], [0, 0, 0]], [[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [3, 2, 1]]
    )
    assert best_workers(matrix.scores, matrix.usd).tolist() == [0, 2, 2]
    found = evaluate_routers(
        matrix, Split("s", (Fold(np.array([0]), np.array([1, 2])),)), RouterField((), None)
    )
    assert "so on 1 of 2 questions" in found.notes[-1]
    assert row(found, "oracle-router").usd.tolist() == [0.2, 1.0]


def test_unknown_prices_leave_the_oracles_scores_and_take_its_dollars() -> None:
    matrix = matrix_of([[0, 1], [1, 0]], [[0.1, np.nan], [0.1, 0.2]])
    assert best_workers(matrix.scores, matrix.usd).tolist() == [1, 0]
    found = evaluate_routers(matrix, split_in_folds(matrix, 2, 0), RouterField((), None))
    assert np.isnan(row(found, "oracle-router").usd).any()
    assert not [one for one in found.systems if one.system == "cheapest-single"]


def test_a_random_worker_is_its_expected_value() -> None:
    matrix = matrix_of([[1, 0, 0], [1, 1, 0]], [[1, 2, 3], [3, 3, 3]])
    found = evaluate_routers(matrix, split_in_folds(matrix, 2, 0), RouterField((), None))
    assert row(found, "random-worker").scores.tolist() == [1 / 3, 2 / 3]
    assert row(found, "random-worker").usd.tolist() == [2, 3]


def test_without_texts_the_anchors_are_judged_and_who_reads_is_named_as_left_out() -> None:
    silent = replace(
        ONLY_SECOND, questions=tuple(replace(one, text="") for one in ONLY_SECOND.questions)
    )
    field = choose_routers(silent, (), "tfidf", 0)
    found = evaluate_routers(silent, split_in_folds(silent, 4, 0), field)
    assert [one.system for one in found.systems if one.kind == "router"] == []
    assert row(found, "best-single").scores.tolist() == [1.0] * 8
    assert row(found, "oracle-router").scores.tolist() == [1.0] * 8
    assert any(note.startswith("Left out: router-knn, ") for note in found.notes)
    assert not any("Left out" in note for note in judged_by(ONLY_SECOND).notes)
    with pytest.raises(UserError, match="some questions have no text"):
        choose_routers(silent, ["router-knn"], "tfidf", 0)


def test_the_best_single_worker_is_chosen_on_what_teaches_and_hindsight_is_flagged() -> None:
    matrix = matrix_of([[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 2]] * 4)
    assert best_single_worker(matrix.rows([0, 1])) == 0
    fold = Fold(np.array([0, 1]), np.array([2, 3]))
    found = evaluate_routers(matrix, Split("s", (fold,)), RouterField((), None))
    assert row(found, "best-single").scores.tolist() == [0, 0]
    hindsight = row(found, "best-single (hindsight)")
    assert hindsight.scores.tolist() == [1, 1]
    assert "it is judged on" in hindsight.note


def test_a_sweep_over_the_willingness_to_pay_rises_from_the_cheapest_worker() -> None:
    matrix = matrix_of([[0.2, 1.0]] * 8, [[0.01, 0.1]] * 8)

    @dataclass(frozen=True, slots=True)
    class Knowing:
        name: str = "router-knowing"

        def fit(self, examples: Examples, seed: int) -> Arrays:
            return {}

        def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
            n = len(embeddings)
            return Estimates(np.tile([0.2, 1.0], (n, 1)), np.tile([0.01, 0.1], (n, 1)))

    found = evaluate_routers(
        matrix, split_in_folds(matrix, 2, 0), RouterField([Knowing()], LastDigit())
    )
    points = found.frontiers["router-knowing"]
    assert [(round(one.score, 3), round(one.usd, 3)) for one in points] == [(0.2, 0.01), (1.0, 0.1)]
    assert points[-1].willingness is None


def test_a_matrix_with_gaps_is_not_judged() -> None:
    matrix = matrix_of([[1, np.nan], [0, 1]], [[1, 1]] * 2)
    with pytest.raises(UserError, match="some scores are unknown"):
        evaluate_routers(matrix, split_in_folds(matrix, 2, 0), RouterField((), None))


def routed(system: str, scores: Floats, kind: str = "router", usd: float = np.nan) -> RoutedSystem:
    n = scores.size
    unknown = np.full(n, np.nan)
    return RoutedSystem(system, kind, scores, np.full(n, usd), unknown, 0.5)  # pyright: ignore[reportArgumentType] - a kind


def routing(n: int, *routers: RoutedSystem, usd: float = np.nan) -> RouteComparison:
    base = np.arange(n) % 2 == 0
    anchors = (
        routed("best-single", base.astype(float), "anchor", usd),
        *routers,
        routed("oracle-router", np.ones(n), "anchor", usd),
        routed("single:a", base.astype(float), "single", usd),
        routed("single:b", np.zeros(n), "single", usd / 10),
    )
    return RouteComparison(
        "made-up", "nowhere", "recorded", "by hand", 2, tuple(f"q{i}" for i in range(n)), 1, 0,
        "tfidf", 1, "best-single", "single:a", "oracle-router", anchors, {}, ("A note.",),
    )  # fmt: skip


BETTER = np.ones(200)


def test_a_router_that_closes_the_gap_is_better_and_the_table_says_how_far() -> None:
    rows = route_rows(routing(200, routed("router-a", BETTER)))
    (found,) = [row for row in rows if row.kind == "router"]
    assert (found.verdict, found.gap_closed, found.difference) == ("better", 1.0, 0.5)
    assert [row.verdict for row in rows if row.kind != "router"] == [""] * 4


def test_a_router_that_is_better_is_also_held_against_the_best_worker_in_hindsight() -> None:
    shown = routing(200, routed("router-a", BETTER))
    assert route_rows(shown)[1].hindsight == 0.5
    assert "in hindsight it is +50.0 [+43.0,+57.0]" in " ".join(route_text(shown).split())
    hard = replace(shown, hindsight="oracle-router")
    assert route_rows(hard)[1].verdict == "better"
    assert "in hindsight it is +0.0 -." in " ".join(route_text(hard).split())


def test_a_reference_that_changes_from_fold_to_fold_is_said_to_be_weak() -> None:
    matrix = matrix_of([[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 2]] * 4)
    folds = (Fold(np.array([0, 1]), np.array([2, 3])), Fold(np.array([2, 3]), np.array([0, 1])))
    assert (
        "this reference is slightly too low"
        in evaluate_routers(matrix, Split("s", folds), RouterField((), None)).notes[0]
    )
    assert (
        "weak"
        not in evaluate_routers(matrix, Split("s", folds[:1]), RouterField((), None)).notes[0]
    )


def test_a_small_difference_is_inconclusive_and_p_values_count_the_routers() -> None:
    one = (np.arange(200) % 2 == 0).astype(float)
    one[1] = 1.0
    alone = route_rows(routing(200, routed("router-a", one)))[1]
    many = route_rows(routing(200, *(routed(f"router-{n}", one) for n in range(5))))[1]
    assert alone.verdict == many.verdict == "inconclusive"
    assert alone.p_holm is not None
    assert many.p_holm is not None
    assert many.p_holm >= alone.p_holm


def test_what_can_be_told_at_all_stands_before_the_table() -> None:
    shown = routing(40, routed("router-a", np.ones(40)))
    text = route_text(shown)
    assert text.index("cannot be distinguished from chance (80 % power") < text.index("router-a")
    assert "40 questions are too few for a decision." in text
    assert max(map(len, text.splitlines())) <= 120
    effect = detectable_effect(route_rows(shown))
    assert effect is not None
    assert f"under {100 * effect[0]:.1f} points" in headline(shown, route_rows(shown))[0]


def test_no_dollar_column_is_shown_where_dollars_are_unknown() -> None:
    assert "USD/query" not in route_text(routing(60, routed("router-a", np.ones(60))))
    assert "No dollars" in route_text(routing(60, routed("router-a", np.ones(60))))
    assert "USD/query" in route_text(routing(60, routed("router-a", np.ones(60), usd=0.1), usd=0.2))


def test_a_frontier_has_an_area_between_the_cheapest_and_the_dearest_worker() -> None:
    shown = routing(60, routed("router-a", np.ones(60), usd=0.1), usd=0.2)
    points = (FrontierPoint(1.0, 0.5, 0.02), FrontierPoint(None, 1.0, 0.2))
    rows = route_rows(replace(shown, frontiers={"router-a": points}))
    assert next(row for row in rows if row.kind == "router").aiq == pytest.approx(0.75)


def test_files_are_written_again_and_never_over_what_is_not_ours(tmp_path: Path) -> None:
    shown = routing(60, routed("router-a|x", np.ones(60)))
    write_route(shown, tmp_path)
    files = write_route(shown, tmp_path)
    assert [path.name for path in files] == ["route.md", "route.csv", "route.json"]
    with (tmp_path / "route.csv").open() as file:
        assert [line["system"] for line in csv.DictReader(file)][1] == "router-a|x"
    assert json.loads((tmp_path / "route.json").read_text())["rows"][1]["accuracy"] == 1.0
    assert "router-a\\|x" in (tmp_path / "route.md").read_text()
    (tmp_path / "route.md").write_text("my own notes")
    with pytest.raises(UserError, match="was not written by podium"):
        write_route(shown, tmp_path)
    assert (tmp_path / "route.md").read_text() == "my own notes"
