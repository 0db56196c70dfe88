"""What a paper takes from a report: LaTeX, BibTeX, Parquet, and the columns that it chooses."""

import csv
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs] - it has no types
import pytest

from podium.__main__ import main
from podium.harness.errors import UserError
from podium.reports.blocks import ReportOptions
from podium.reports.paper import (
    PAPER_MARKS,
    PODIUM,
    latex_tables,
    paper_contents,
    references,
)
from podium.reports.render import write_files
from podium.reports.report import Report, report_of, write_report
from podium.reports.row import COLUMNS, TableRow
from tests.harness.runs import Exam, sit, steps
from tests.suites.toy_card import CARD

ROOT = Path(__file__).parents[2]
HOSTILE = "\\input{/etc/passwd} 100% $x_1^2$ & #~{ [2] \x1b[31m\u202e中 é—\n\nend"


def environments(text: str) -> list[str]:
    """Return the environments of LaTeX in order; each ends where it must, and braces are paired."""
    opened: list[str] = []
    found: list[str] = []
    for what, name in re.findall(r"\\(begin|end)\{([\w*]+)\}", text):
        if what == "begin":
            opened.append(name)
            found.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    unescaped = re.sub(r"\\.|%.*", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    return found


def renamed(report: Report, name: str) -> Report:
    """Return a report whose every system is called so."""
    rows = tuple(replace(row, system=name, notes=name) for row in report.rows)
    fields = tuple(replace(one, rows=rows) for one in report.shown.fields)
    return replace(report, shown=replace(report.shown, rows=rows, fields=fields))


def test_a_block_is_a_table_that_says_what_was_asked(made: Report) -> None:
    text = latex_tables(made)
    assert environments(text) == ["table", "tabular*", "minipage"]
    assert r"\toprule" in text
    caption = text[text.index(r"\caption") : text.index(r"\begin{tabular*}")]
    said = ("numbers, version 1-A (eval), live", "test-book (00000000)", "reference: best-single")
    assert all(one in caption for one in (*said, "6 questions, avg@2"))
    assert "live: models were asked, at a provider that was paid or on an own server" in text
    for row in made.rows:
        assert re.search(rf"^{re.escape(row.system)}[ (\d,)]* & ", text, re.MULTILINE)


def test_no_name_steers_latex(made: Report) -> None:
    text = latex_tables(renamed(made, HOSTILE))
    assert environments(text) == ["table", "tabular*", "minipage"]
    assert r"\textbackslash{}input\{/etc/passwd\} 100\% \$x\_1" in text
    assert r"\textbackslash{}u001b[31m" in text
    assert r"\textbackslash{}u4e2d é— end" in text
    assert not re.search(r"(?<!\\)[#&$] ?x|[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


def test_published_figures_are_tables_of_their_own(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=Exam(name="aime25", size=2))
    text = latex_tables(report_of([tmp_path / "logs"]))
    ours, aime, means = text.split(r"\begin{table}")[1:]
    assert "GPT-5" not in ours
    assert "aime25: published, other harness" in aime
    assert "No comparison or verdict uses them." in aime
    assert "Means over several suites, published, other harness" in means
    assert "single:sage" not in aime + means


def test_chosen_columns_stand_in_every_table_in_their_order(logs: Path, tmp_path: Path) -> None:
    wanted = ReportOptions(columns=("usd_per_query", "accuracy", "n_better", "auditable"))
    found = report_of([logs], wanted)
    heads = ["system", "usd_per_query", "accuracy %", "n_better", "auditable"]
    lines = found.text.splitlines()
    (head,) = [line for line in lines if line.startswith("system ")]
    assert re.split(r"\s{2,}", head) == heads
    assert f"| {' | '.join(heads)} |" in str(found.contents["table.md"])
    latex = " & ".join(heads).replace("_", r"\_").replace("%", r"\%")
    assert latex in latex_tables(found)
    row = next(row for row in found.rows if row.system == "single:clerk")
    shown = next(line for line in lines if line.startswith("single:clerk"))
    assert row.accuracy is not None
    assert f"{100 * row.accuracy:.1f}" == shown.split()[2]
    assert shown.split()[-1] == "yes"


def test_every_column_of_the_csv_can_be_chosen(made: Report) -> None:
    text = replace(made, wanted=ReportOptions(columns=COLUMNS)).text
    assert all(name in text for name in COLUMNS)


def test_an_unknown_column_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    wanted = ReportOptions(columns=("accuracy", "usd_per_qurey"))
    with pytest.raises(
        UserError, match=r"^Did you mean 'usd_per_query'\? .* no column 'usd_per_qurey'"
    ):
        report_of([tmp_path / "nowhere"], wanted)


def test_the_command_names_all_columns_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no cell is folded
    assert main(["report", str(tmp_path), "--columns", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == COLUMNS[-1]
    assert not list(tmp_path.iterdir())


def test_parquet_has_the_rows_of_the_csv_with_exact_dollars(made: Report, tmp_path: Path) -> None:
    path = write_files(tmp_path, {"table.parquet": paper_contents(made)["table.parquet"]})[0]
    table = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    rows = list(csv.DictReader(str(made.contents["table.csv"]).splitlines()))
    assert table.num_rows == len(rows)
    for mine, theirs, row in zip(table.to_pylist(), rows, made.rows, strict=False):
        assert (mine["system"], str(mine["n_asked"])) == (theirs["system"], theirs["n_asked"])
        assert isinstance(mine["usd_per_query"], Decimal | None)
        assert (mine["usd_per_query"] is None) == (theirs["usd_per_query"] == "")
        if row.usd_per_query is not None:
            assert abs(mine["usd_per_query"] - row.usd_per_query) < Decimal("1e-18")


def test_the_same_report_gives_the_same_bytes(made: Report, tmp_path: Path) -> None:
    first, second = (
        [path.read_bytes() for path in write_files(tmp_path / name, paper_contents(made))]
        for name in ("first", "second")
    )
    assert first == second


def test_a_report_for_a_paper_replaces_its_own_files_and_no_others(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", str(logs), "--out", str(tmp_path)]
    assert main(words) == main([*words, "--latex"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert {"table.md", "table.tex", "references.bib", "table.parquet"} <= names
    for name in ("table.tex", "references.bib", "table.parquet"):
        (tmp_path / name).write_bytes(b"mine" * 2000)
        assert main([*words, "--latex"]) == 2
        assert f"{name} was not written by podium" in capsys.readouterr().err
        (tmp_path / name).unlink()


def test_a_usual_report_looks_at_no_file_of_a_paper(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_text("mine")
    write_report([logs], tmp_path)
    assert (tmp_path / "table.tex").read_text() == "mine"


def entries(text: str) -> dict[str, dict[str, str]]:
    """Return the entries of BibTeX with their fields; braces are paired in each."""
    found: dict[str, dict[str, str]] = {}
    for entry in text.split("\n\n")[1:]:
        head, *lines = entry.strip().removesuffix("\n}").split(",\n")
        assert entry.count("{") == entry.count("}")
        fields = (line.strip().partition(" = ") for line in lines)
        found[head.removeprefix("@misc{")] = {name: said[1:-1] for name, _, said in fields}
    return found


def test_references_are_what_systems_suites_and_published_rows_name(tmp_path: Path) -> None:
    card = replace(CARD, paper="as an exam: The Exam of 2024, arXiv 2401.00001")
    exam = Exam(name="aime25", size=2, card=card)
    source = "Wang et al. 2022, arXiv 2203.11171; github.com/some/repo 1.2"
    sit(tmp_path / "logs", "single:sage", exam=exam, source="podium")
    sit(tmp_path / "logs", "self-consistency", steps("sage"), exam=exam, source=source)
    found = entries(references(report_of([tmp_path / "logs"])))
    assert list(found) == ["podium", *sorted(found.keys() - {"podium"})]
    wang = found["arxiv-2203.11171"]
    assert (wang["author"], wang["year"]) == ("Wang and others", "2022")
    assert wang["keywords"] == "self-consistency"
    assert found["github-some-repo"]["url"] == "https://github.com/some/repo"
    assert "arxiv-2512.04388" in found, "the published rows' paper"
    assert found["arxiv-2401.00001"]["title"] == "{The Exam of 2024}"
    assert found["podium"]["keywords"] == "single:sage"


def test_a_page_is_cited_where_a_source_names_neither_paper_nor_repository(made: Report) -> None:
    source = (
        "An Examination (Its Board, https://exam.test/2025); as models sit it, arXiv 2401.00001"
    )
    rows: Sequence[TableRow] = [replace(row, source=source) for row in made.rows]
    found = entries(references(replace(made, shown=replace(made.shown, rows=tuple(rows)))))
    page = found["web-exam-test"]
    assert (page["title"], page["url"]) == ("{An Examination}", "https://exam.test/2025")
    assert "arxiv-2401.00001" in found


def test_the_export_writes_its_files_alone_and_into_no_folder_that_is_there(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    command = ["export", "latex", str(logs), "--out", str(out), "--columns", "accuracy,calls"]
    assert main(command) == 0
    assert {path.name for path in out.iterdir()} == PAPER_MARKS.keys()
    assert r"system & accuracy \% & calls" in (out / "table.tex").read_text()
    capsys.readouterr()
    assert main(command) == 2
    assert "nothing is overwritten" in capsys.readouterr().err


def test_no_source_steers_bibtex(made: Report) -> None:
    hostile = "Evil} @comment{ 100% of $x_1$, arXiv 2203.11171"
    rows: Sequence[TableRow] = [replace(row, source=hostile) for row in made.rows]
    text = references(replace(made, shown=replace(made.shown, rows=tuple(rows))))
    assert entries(text)["arxiv-2203.11171"]["title"] == r"{Evil) @comment( 100\% of \$x\_1\$}"


def test_podium_is_cited_as_its_citation_file_asks() -> None:
    said = (ROOT / "CITATION.cff").read_text()
    assert f'title: "{PODIUM["title"]}"' in said
    assert f"\nversion: {PODIUM['version']}\n" in said
    assert f"date-released: {PODIUM['year']}" in said
    assert f'name: "{PODIUM["author"].strip("{}")}"' in said


@pytest.mark.slow
def test_great_tables_is_loaded_for_papers_only() -> None:
    loads = "import sys, podium.reports.paper, podium.cli.run_commands"
    code = loads + "; print('great_tables' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout == "False\n", ran.stderr
