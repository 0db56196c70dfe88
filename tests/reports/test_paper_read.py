"""What a paper takes, read by programs of others: readers of LaTeX and BibTeX, and TeX."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.reports.paper import latex_tables, paper_contents, references
from podium.reports.render import write_files
from podium.reports.report import Report
from tests.installed import apart
from tests.reports.test_paper import HOSTILE, renamed

READERS = ("pylatexenc==2.11", "pybtex==0.26.1", "bibtexparser==2.1.0")
SET = ("pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "paper")
DOCUMENT = r"""
\documentclass{article}
\usepackage[margin=1in]{geometry}
\usepackage{booktabs,caption,longtable}
\begin{document}
\input{table}
\nocite{*}
\bibliographystyle{plain}
\bibliography{references}
\end{document}
"""
READ_TABLES = """\
import json, pathlib, sys
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexWalker
from pylatexenc.latex2text import LatexNodes2Text

def tables(nodes):
    for node in nodes or ():
        if isinstance(node, LatexEnvironmentNode):
            if node.environmentname in ("tabular*", "longtable"):
                yield node
            yield from tables(node.nodelist)

text = pathlib.Path(sys.argv[1]).read_text()
nodes, _, read = LatexWalker(text, tolerant_parsing=False).get_latex_nodes()
assert read == len(text)
plain = LatexNodes2Text(fill_text=False)
print(json.dumps([
    [[plain.latex_to_text(cell).strip() for cell in line.split(" & ")]
     for line in one.latex_verbatim().split("\\\\\\\\") if " & " in line]
    for one in tables(nodes)
]))
"""
READ_REFERENCES = """\
import json, sys
import bibtexparser
from pybtex import format_from_file
from pybtex.database import parse_file

found = bibtexparser.parse_file(sys.argv[1])
assert not found.failed_blocks, found.failed_blocks
entries = parse_file(sys.argv[1]).entries
assert sorted(entries) == sorted(one.key for one in found.entries)
fields = {key: dict(one.fields) for key, one in entries.items()}
print(json.dumps([fields, format_from_file(sys.argv[1], "plain", output_backend="plaintext")]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with readers of others."""
    if not os.environ.get("PODIUM_EXPORTS"):
        pytest.skip("downloads the readers of exports; make exports, or PODIUM_EXPORTS=1, runs it")
    return apart(tmp_path_factory.mktemp("readers") / "env", Path(sys.executable), *READERS)


def read(python: Path, script: str, path: Path) -> Any:
    done = subprocess.run([python, "-c", script, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_reader_of_latex_finds_our_figures_under_our_heads(
    python: Path, made: Report, tmp_path: Path
) -> None:
    for number, report in enumerate((made, renamed(made, HOSTILE))):
        path = tmp_path / f"{number}.tex"
        path.write_text(latex_tables(report))
        (table,) = read(python, READ_TABLES, path)
        heads, *rows = table
        assert heads[-10:] == [
            *("acc %", "95 % interval", "diff", "interval of diff", "verdict"),
            *("USD/query", "tok out", "calls", "steps", "sec"),
        ]
        assert len(rows) == len(report.rows)
        assert {len(row) for row in rows} == {11}
        right = [f"{100 * (row.accuracy or 0):.1f}" for row in report.rows]
        assert [row[-10] for row in rows] == right


@pytest.mark.slow
def test_readers_of_bibtex_find_every_source_and_set_it(
    python: Path, made: Report, tmp_path: Path
) -> None:
    said = (
        "podium (control); Evil} @comment{ 100% of $x_1$, arXiv 2203.11171; github.com/some/repo 2",
        "An Examination (Its Board, https://exam.test/2025)",
    )
    rows: Sequence[Any] = [
        replace(row, source="; ".join(said) if row is made.rows[0] else row.source)
        for row in made.rows
    ]
    changed = replace(made, shown=replace(made.shown, rows=tuple(rows)))
    wanted = {"references.bib": references(changed)}
    fields, text = read(python, READ_REFERENCES, write_files(tmp_path, wanted)[0])
    assert {"podium", "arxiv-2203.11171", "github-some-repo", "web-exam-test"} <= set(fields)
    assert fields["web-exam-test"]["title"] == "{An Examination}"
    assert made.rows[0].system in fields["podium"]["keywords"]
    assert "https://exam.test/2025" in text
    assert text.count("\n[") + 1 == len(fields)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex on PATH")
def test_tex_sets_the_document_with_its_references(made: Report, tmp_path: Path) -> None:
    for number, report in enumerate((made, renamed(made, HOSTILE))):
        out = tmp_path / str(number)
        write_files(out, {**paper_contents(report), "paper.tex": DOCUMENT})
        for command in (SET, ("bibtex", "paper"), SET):
            done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-3000:]
        assert "No file paper.bbl" not in done.stdout
