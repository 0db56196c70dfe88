"""Tables in a terminal: as wide as it is, figures whole, and what had to go is said."""

from pathlib import Path

import pytest

from podium.reports import render
from podium.reports.blocks import ReportOptions
from podium.reports.report import Report
from podium.reports.terminal import FIGURES, LEFT_OUT, table_text
from tests.harness.runs import Crew, sit, steps, wrong
from tests.reports.small_reports import EXAM, report, right_up_to

TABLE = [("system", "acc %", "calls"), ("a-long-name-of-a-system", "100.0", "3.0")]
LONG = "planner-executor-verifier-of-five"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report of a reference, a long name, a mute system and an oracle below another row."""
    home = tmp_path_factory.mktemp("terminal")
    mute = Crew(clerk=lambda heard: "no idea")
    sit(home / "logs", "single:sage", crew=Crew(sage=right_up_to(3)), exam=EXAM)
    sit(home / "logs", LONG, steps("sage", "sage"), exam=EXAM)
    sit(home / "logs", "single:clerk", steps("clerk"), mute, exam=EXAM)
    oracle = Crew(sage=right_up_to(4))
    sit(home / "logs", "oracle", crew=oracle, exam=EXAM, uses_targets=True)
    return report(home, wanted=ReportOptions(derived=True, published=True))


def heads(text: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith("system")]
    return [head for head, _ in FIGURES if head in line]


@pytest.mark.parametrize("columns", ["80", "90", "100", "110", "120", "200"])
def test_no_line_is_wider_than_the_terminal(
    made: Report, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, made.text.splitlines())) <= int(columns)


def test_where_no_terminal_is_a_table_has_120_columns(
    made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    usual = made.text
    monkeypatch.setenv("COLUMNS", "120")
    assert made.text == usual


def test_columns_go_in_the_order_that_is_stated_and_the_last_line_says_which(
    made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No request of this run was too long, and a column of zeros is not shown.
    figures = [head for head, _ in FIGURES if head != "too long"]
    order = [name for name in LEFT_OUT if name in figures]
    gone = 0
    for columns in range(150, 79, -1):
        monkeypatch.setenv("COLUMNS", str(columns))
        block = table_text(made.shown).split("\n\n")[0]
        kept = heads(block)
        assert len(figures) - len(kept) >= gone
        gone = len(figures) - len(kept)
        assert kept == [head for head in figures if head not in order[:gone]]
        assert "\n".join(render.left_out(order[:gone])) in block
        assert ("left out" in block) == bool(gone)
    assert 0 < gone < len(order)


def test_every_figure_that_is_shown_is_whole(made: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("30", "80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        text = table_text(made.shown)
        table = text[text.index("system  ") :].splitlines()[1:]
        for line, row in zip(table, made.rows, strict=False):
            for head, show in FIGURES[1:]:
                if head in heads(text):
                    assert show(row) in line, (columns, head)


def test_below_80_columns_nothing_is_cut_that_80_would_show(
    made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = made.text
    monkeypatch.setenv("COLUMNS", "20")
    assert made.text == text


def test_names_are_shortened_after_all_columns_that_may_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = [("system", "acc %", "calls"), ("n" * 90, "100.0", "3.0")]
    monkeypatch.setenv("COLUMNS", "80")
    lines, gone = render.fitted(wide, ("calls",))
    assert gone == ("calls",)
    assert lines[1] == f"{'n' * 72}~  100.0"
    assert render.fitted(TABLE, ("calls",))[1] == ()


def test_graded_wrong_without_an_answer_is_a_column(made: Report) -> None:
    (line,) = [line for line in made.text.splitlines() if line.startswith("single:clerk")]
    head = next(line for line in made.text.splitlines() if line.startswith("system"))
    end = head.index("no ans") + len("no ans")
    assert line[:end].split()[-1] == "6"


def test_where_that_column_is_gone_a_line_below_says_it(
    made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "graded wrong, no answer found: single:clerk 6" in made.text
    monkeypatch.setenv("COLUMNS", "160")
    assert "graded wrong, no answer found" not in made.text


def test_an_oracle_below_another_row_is_explained_under_its_block(made: Report) -> None:
    block = " ".join(made.text.split("\n\n")[0].split())
    assert (
        f"oracle is below {LONG}: it is the best choice among a fixed set of plans only, and "
        "another plan may answer what none of those can" in block
    )
    assert f"oracle-router* is below {LONG}: it is the best choice among single" in made.text


def test_an_oracle_that_nobody_beats_needs_no_word(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "oracle", uses_targets=True)
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), Crew(clerk=wrong))
    assert "is below" not in report(tmp_path).text
