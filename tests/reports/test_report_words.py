"""What a report says in words: terms, published means, refusals, and figures that stay whole."""

import csv
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from podium.cli import main
from podium.harness.learning import RouteComparison, RoutedSystem
from podium.harness.ledger.system_runs import load_runs
from podium.reports.blocks import ReportOptions
from podium.reports.derived import compare
from podium.reports.published import averages, figures, published_text
from podium.reports.routes import route_rows, route_text
from tests.harness.runs import Crew, Exam, Heard, number, sit, steps, wrong
from tests.providers.scripted import ReplyFunction
from tests.reports.small_reports import EXAM, report, right_up_to


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("pair")
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM)
    sit(logs, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(1)), exam=EXAM)
    return logs


def test_cochrans_q_leaves_out_what_looks_at_targets(pair: Path, tmp_path: Path) -> None:
    (before,) = compare(load_runs([pair])[0]).fields
    sit(tmp_path, "oracle", exam=EXAM, uses_targets=True)
    (after,) = compare(load_runs([pair, tmp_path])[0]).fields
    assert before.cochran is not None
    assert before.cochran == after.cochran
    assert after.cochran is not None
    assert after.cochran.df == 1


@pytest.mark.parametrize("k", [0, 2])
def test_a_majority_of_fewer_than_three_is_refused(
    k: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(tmp_path / "logs", "single:sage", exam=EXAM, epochs=2)
    assert main(["report", str(tmp_path / "logs"), "--maj", str(k)]) == 2
    said = capsys.readouterr().err
    assert said == f"podium: --maj {k} is too small. A majority needs at least 3 tries.\n"
    assert main(["report", str(tmp_path / "logs"), "--maj", "3"]) == 2
    assert "run with --epochs 3.\n" in capsys.readouterr().err


def test_dollars_of_a_cheap_call_keep_their_digits_in_csv_and_json(
    tmp_path: Path, pair: Path
) -> None:
    found = report(tmp_path, pair)
    with found.files[1].open() as file:
        cells = [row for row in csv.DictReader(file) if not row["derived"]]
    data = json.loads(found.files[2].read_text())["rows"]
    for row, cell, record in zip(found.rows, cells, data, strict=False):
        assert row.usd_median is not None
        assert row.usd_median < 0.001
        assert float(cell["usd_median"]) == pytest.approx(row.usd_median, rel=1e-5)
        assert record["usd_median"] == pytest.approx(row.usd_median, rel=1e-5)


def test_published_means_over_several_suites_are_shown_with_how_they_count_tokens(
    tmp_path: Path,
) -> None:
    found = {one.system: (one.tokens, one.usd) for one in averages()}
    assert found["MoA"] == ("11203", "0.04855")
    assert found["Conductor"] == ("1820", "0.02384")
    assert len(found) == 5
    sit(tmp_path / "logs", "single:sage", exam=Exam(name="aime25"))
    text = report(tmp_path).files[0].read_text()
    assert "## Means over several suites, published, other harness" in text
    assert "workers' output tokens alone" in text
    assert "| MoA (1, 2) | 62.13 | - | constrained | arXiv 2512.04388v5, table 6 | 11203 |" in text


def test_who_asks_for_published_figures_of_a_suite_without_any_is_told_so(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=EXAM)
    said = report(tmp_path, wanted=ReportOptions(published=True)).text
    assert "No published figures are known for numbers." in said
    assert "11203" in said
    assert max(map(len, said.splitlines())) <= 120
    assert "11203" not in report(tmp_path).files[0].read_text()


def test_every_term_of_a_statistic_is_explained_once_and_figures_stand_to_the_right(
    tmp_path: Path, pair: Path
) -> None:
    found = report(tmp_path, pair)
    text = found.files[0].read_text()
    terms = files("podium.reports").joinpath("terms.md").read_text().splitlines()
    assert len(terms) == 19
    assert {text.count(term) for term in terms} == {1}
    lines = text.splitlines()
    heads = next(at for at, line in enumerate(lines) if line.startswith("| system | SE |"))
    assert lines[heads + 1].startswith("| --- | ---: |")
    assert "inconclusive: below what this number of questions can show" in found.text


def test_systems_that_never_differ_have_nothing_to_detect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--accuracy", "1"], ["--accuracy", "0.5", "--correlation", "1"]):
        assert main(["power", *words]) == 2
        assert "two systems never differ: there is nothing to detect" in capsys.readouterr().err
    sit(tmp_path, "single:sage", exam=EXAM)
    sit(tmp_path, "pair", exam=EXAM)
    assert main(["power", "--from", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "the two have equal grades on every question" in said
    assert "detectable difference" not in said


RUN = ("run", "--suite", "practice-integer", "--log-dir", "x")


@pytest.mark.parametrize("command", [("route", "aime25"), RUN], ids=["route", "run"])
@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_no_generator_takes_is_refused(
    command: tuple[str, ...], seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--seed", seed])
    assert "is not a whole number from 0 to 4294967295" in capsys.readouterr().err


def test_questions_of_one_contest_taken_together_are_a_check_of_a_router_table() -> None:
    """Eight contests of five questions each, alike within: the error is the root of five larger."""
    base, better = np.zeros(40), np.repeat([1.0, 0, 1, 0, 1, 0, 1, 0], 5)
    unknown = np.full(40, np.nan)
    systems = [("best-single", "anchor", base), ("router-a", "router", better)]
    systems += [("oracle-router", "anchor", better), ("single:a", "single", base)]
    shown = RouteComparison(
        "made-up", "nowhere", "recorded", "by hand", 1, tuple(map(str, range(40))), 1, 0, "", 1,
        "best-single", "single:a", "oracle-router",
        tuple(RoutedSystem(name, kind, scores, unknown, unknown, None)  # pyright: ignore[reportArgumentType] - a kind
              for name, kind, scores in systems), {}, (),
        clusters=tuple(f"contest {at // 5}" for at in range(40)),
    )  # fmt: skip
    rows = route_rows(shown)
    router = rows[1]
    assert router.difference_se == pytest.approx(better.std(ddof=1) / 40**0.5)
    assert router.difference_se_clustered == pytest.approx((8 / 7 * 8 * 2.5**2) ** 0.5 / 40)
    words = " ".join(route_text(shown).split())
    assert "(8 clusters), a router's difference has 2.36 to 2.36 times" in words
    alone = replace(shown, clusters=tuple(map(str, range(40))))
    assert route_rows(alone)[1].difference_se_clustered is None
    assert "Clustered by" not in route_text(alone)


def test_what_holds_for_a_block_is_in_the_json_too(tmp_path: Path, pair: Path) -> None:
    found = report(tmp_path, pair)
    (block,) = json.loads(found.files[2].read_text())["blocks"]
    (field,) = found.shown.fields
    assert block["rows"] == [0, 1]
    assert block["said"] == field.said
    assert field.cochran is not None
    assert field.frontier is not None
    assert block["cochran"]["q"] == field.cochran.q
    assert block["frontier"]["aiq"] == field.frontier.aiq
    assert [tuple(corner) for corner in block["frontier"]["corners"]] == list(
        field.frontier.corners
    )


def test_where_all_questions_differ_alike_nothing_is_said_to_be_too_close(tmp_path: Path) -> None:
    """A worker that knows all beside one that knows nothing differs enough, and without spread."""
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=wrong), exam=EXAM)
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), Crew(clerk=number), exam=EXAM)
    found = report(tmp_path)
    (better,) = [row for row in found.rows if row.system == "single:clerk"]
    assert (better.verdict, better.paired_low, better.min_detectable) == ("better", None, None)
    caption = "the smallest detectable difference is unknown, because each system equals the"
    assert caption in found.text.replace("\n", " ")


def down_at(*numbers: int) -> ReplyFunction:
    """Return a worker that knows all, and is down at some questions."""

    def reply(heard: Heard) -> str:
        if int(number(heard)) in numbers:
            raise RuntimeError("down")
        return number(heard)

    return reply


def test_systems_are_placed_on_the_questions_that_all_of_them_were_graded_on(
    tmp_path: Path,
) -> None:
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=down_at(1, 2)), exam=EXAM)
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), Crew(clerk=number), exam=EXAM)
    found = report(tmp_path)
    text = found.files[0].read_text()
    assert "not dominated in accuracy and dollars on the 4 that all were graded on" in text
    (clerk,) = [row for row in found.rows if row.system == "single:clerk"]
    assert clerk.usd_ratio == pytest.approx(5 / 14)
    assert clerk.pareto_probability == 1


def test_systems_without_a_question_in_common_are_not_placed(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=down_at(1, 2, 3)), exam=EXAM)
    clerk = Crew(clerk=down_at(4, 5, 6))
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), clerk, exam=EXAM)
    found = report(tmp_path)
    assert "no question was graded for the reference and for another" in found.text
    assert "not dominated" not in found.files[0].read_text()
    assert [row.pareto_probability for row in found.rows] == [None, None]


def test_no_column_of_published_figures_is_cut_off_in_a_terminal() -> None:
    for suite in sorted({one.suite for one in figures()} - {"average"}):
        lines = published_text([suite]).splitlines()
        assert max(map(len, lines)) <= 120
    line = next(line for line in published_text(["mmlu"]).splitlines() if "1412.8" in line)
    assert line.split()[-3:] == ["1412.8", "0.0211", "5"]
