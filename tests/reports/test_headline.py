"""The sentence above a table: its verdict first, of figures that stand in the table."""

import json
import re
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.reports.derived import BlockSummary, Comparison, compare
from podium.reports.headline import why_inconclusive
from podium.reports.intervals import difference, holm_adjusted
from podium.reports.row import TableRow
from tests.harness.runs import Crew, Exam, number, sit, steps, wrong
from tests.reports.small_reports import report, right_up_to, row_of

NOTHING = (
    "Nothing is shown to beat single:sage; about {} questions would be needed to see 10 points"
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let a worker and a pair, which is right more often, sit an exam of 12."""
    logs, exam = tmp_path_factory.mktemp("headline"), Exam(size=12)
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(2)), exam=exam)
    sit(logs, "pair", steps("clerk", "sage"), Crew(clerk=wrong, sage=number), exam=exam)
    sit(logs, "other", steps("clerk"), Crew(clerk=right_up_to(3)), exam=exam)
    return logs


def declared(logs: Path, system: str) -> Comparison:
    """Return the comparison of a run that had declared a system."""
    runs = load_runs([logs])[0]
    told = {"headline": system}
    return compare([replace(one, facts=one.facts.model_copy(update=told)) for one in runs])


@pytest.mark.parametrize(
    ("system", "verdict"), [("pair", "Better"), ("other", "Inconclusive")], ids=["better", "open"]
)
def test_the_headline_is_made_of_figures_that_stand_in_the_table(
    system: str, verdict: str, logs: Path
) -> None:
    shown = declared(logs, system)
    said, row = shown.fields[0].headline, row_of(shown.rows, system)
    assert row.paired_diff is not None
    assert row.p_holm is not None
    assert row.usd_ratio is not None
    assert said.startswith(f"{verdict}: {system} against single:sage, ")
    assert said.endswith(" of its list dollars, learning excluded")
    assert verdict.lower() == row.verdict
    found = [float(one) for one in re.findall(r"[-+]?\d+\.\d+", said)]
    figures = [100 * row.paired_diff, 100 * (row.paired_low or 0), 100 * (row.paired_high or 0)]
    assert found == pytest.approx([*figures, row.p_holm, row.usd_ratio], rel=0.01, abs=0.05)


def test_a_run_without_a_declared_system_names_no_row_in_hindsight(logs: Path) -> None:
    said = compare(load_runs([logs])[0]).fields[0].headline
    assert said == "1 system is shown to beat single:sage; none was declared before the run"


def test_a_table_says_how_many_questions_it_would_take(tmp_path: Path) -> None:
    exam = Exam(size=12)
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=right_up_to(2)), exam=exam)
    sit(tmp_path / "logs", "other", steps("clerk"), Crew(clerk=right_up_to(3)), exam=exam)
    found = report(tmp_path)
    effect = row_of(found.rows, "other").min_detectable
    assert effect is not None
    said = NOTHING.format(f"{float(f'{ceil(12 * (effect / 0.1) ** 2):.2g}'):.0f}")
    texts = {path.name: path.read_text() for path in found.files}
    assert found.text.splitlines()[0] == said
    assert texts["table.md"].index(said) < texts["table.md"].index("| system | accuracy %")
    assert json.loads(texts["table.json"])["blocks"][0]["headline"] == said


def test_a_table_in_which_nothing_is_compared_has_no_headline(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "pair", exam=Exam(size=2))
    assert report(tmp_path).shown.fields[0].headline == ""


def of(better: int, worse: int, tied: int, family: int = 1) -> TableRow:
    """Return a row of a difference, one of so many with a reference."""
    grades = [(1.0, 0.0)] * better + [(0.0, 1.0)] * worse + [(1.0, 1.0)] * tied
    ours, theirs = ({f"q{n}": [one[at]] for n, one in enumerate(grades)} for at in (0, 1))
    found = holm_adjusted([difference(ours, theirs)] * family)[0]
    assert found is not None
    columns = ("verdict", "paired_low", "paired_high", "n_better", "n_worse", "p_holm")
    return replace(ROW, **{name: getattr(found, name) for name in columns})


ROW = TableRow(
    suite="numbers", suite_version="1-A", label="live", system="pair", n_asked=1, n_graded=1,
    epochs=1, pool="p", data_revision="1", price_book="b", box=None, n_unparsed=0, split="eval",
    dates="", knowledge_cutoff="", config="", args="", seed=0, time_scale=0, uses_targets=False,
    notes="", reference_allowed=True, pool_sha256="0", price_book_sha256="0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "why"),
    [
        pytest.param(of(3, 2, 10), "the 95 % interval includes 0", id="interval"),
        pytest.param(of(5, 0, 10), "the sign test's p is 0.05 or more", id="sign test"),
        pytest.param(of(7, 0, 10, family=20), "Holm's p is 0.05 or more", id="holm"),
        pytest.param(of(0, 0, 10), "all grades equal the reference's", id="alike"),
        pytest.param(of(12, 0, 3), "", id="better"),
    ],
)
def test_an_inconclusive_row_says_which_test_leaves_it_open(row: TableRow, why: str) -> None:
    assert why_inconclusive(row) == why


def test_what_is_detectable_counts_the_comparisons_and_is_never_above_a_hundred_points() -> None:
    ours = {f"q{n}": [float(n % 2)] for n in range(12)}
    alone = difference(ours, {name: [0.0] for name in ours})
    assert alone is not None
    assert alone.min_detectable is not None
    (many, *_) = holm_adjusted([alone] * 10)
    assert many is not None
    # Normal quantiles of 1 - 0.025 / 10 and of 0.8, over those of a single comparison.
    assert many.min_detectable == pytest.approx(alone.min_detectable * 3.6487 / 2.8016, abs=1e-4)
    few = difference({"a": [1.0], "b": [0.0]}, {"a": [0.0], "b": [1.0]})
    assert few is not None
    assert few.min_detectable == 1.0


def test_what_is_detectable_is_left_out_where_nothing_was_answered() -> None:
    summary = BlockSummary(rows=(ROW,), questions=0, cochran=None, frontier=None)
    assert summary.said == "0 questions; one system only: nothing is compared"
