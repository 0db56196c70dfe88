"""A report's files for a paper: table.tex, references.bib and table.parquet."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from podium.harness.text import escape_controls
from podium.reports import blocks, published, render
from podium.reports.blocks import ReportOptions
from podium.reports.columns import full_columns, narrow_columns
from podium.reports.render import Columns, Content, interval
from podium.reports.report import Report, refuse_unfinished, report_of
from podium.reports.row import COLUMNS, LABELS, TableRow

PARQUET = "podium-table-1"
PAPER_MARKS = {
    "table.tex": "% podium report: table.tex",
    "references.bib": "% podium report: references.bib",
    "table.parquet": PARQUET,
}
"""File -> text in it by which podium recognizes its own file, which it may overwrite."""
FIGURES: Columns[TableRow] = (
    *narrow_columns("accuracy", "ci_low", "paired_diff"),
    ("interval of diff", lambda row: interval(row.paired_low, row.paired_high, signed=True)),
    *narrow_columns("verdict", "usd_per_query", "tokens_out"),
    *full_columns("calls", "steps"),
    *narrow_columns("critical_path_s"),
)
FLOATS = 40  # maximum rows of a floating table; a longer one breaks over pages
FONT = "7pt"  # eleven columns in a text of 6.5 inches
HEAD = r"""
% Needs \usepackage{booktabs,caption,longtable} and 6.5 inches: margins of one inch, or the whole
% width of two columns. acc: accuracy; diff: points against the reference, question by question; the
% other figures are means per query (podium's table.md says more, under Terms).
\begingroup\setlength{\tabcolsep}{2pt}
"""
END = "\\endgroup\n"


def export_paper(dirs: Sequence[Path], out: Path, options: ReportOptions) -> tuple[Path, ...]:
    """Write only the files for a paper, into a new folder; UserError for unfinished runs."""
    render.refuse_existing(out)
    report = report_of(dirs, options)
    for pair in chain.from_iterable(report.shown.pairs):
        refuse_unfinished(*pair)
    return render.write_files(out, paper_contents(report))


def paper_contents(report: Report) -> Mapping[str, Content]:
    """Return file name -> content of the files for a paper, which `PAPER_MARKS` lists."""
    return {
        "table.tex": latex_tables(report),
        "references.bib": references(report),
        "table.parquet": partial(_write_parquet, report),
    }


def latex_tables(report: Report) -> str:
    """Return the text of table.tex: a table per block of rows, then published results."""
    chosen = report.columns or FIGURES
    pieces = [PAPER_MARKS["table.tex"] + HEAD]
    captions = {
        id(summary.rows[0]): ". ".join(filter(None, (summary.headline, summary.said)))
        for summary in report.shown.fields
    }
    for block in blocks.blocks_of(report.rows):
        pieces.append(_block(block, report.rows, captions[id(block[0])], chosen))
    suites = [name for name in _suites(report) if published.of_suite(name)]
    for suite in suites:
        title = f"{suite}: {published.TITLE.lower()}"
        pieces.append(_published(title, published.TEXT, published.of_suite(suite)))
    if suites:
        means = (published.AVERAGE_TITLE, published.AVERAGE_TEXT, published.averages())
        pieces.append(_published(*means))
    return "\n".join([*pieces, END])


def _suites(report: Report) -> list[str]:
    return [*dict.fromkeys(row.suite for row in report.rows)]


def _block(
    block: Sequence[TableRow], rows: Sequence[TableRow], caption: str, chosen: Columns[TableRow]
) -> str:
    top, notes = block[0], list[str]()
    book = blocks.pinned_name(top.price_book, top.price_book_sha256)
    title = (
        f"{blocks.asked_name(top)}, pool {blocks.pool_name(top, rows)}, price book {book}; "
        f"reference: {blocks.reference_of_block(block)}"
    )
    lines = [
        (render.footnoted(row.system, row.notes.split("; "), notes), *render.cells(chosen, row))
        for row in block
    ]
    heads = ("system", *(head for head, _ in chosen))
    return _latex(
        [heads, *lines], (title, caption), [f"{top.label}: {LABELS[top.label]}", *_numbers(notes)]
    )


def _published(title: str, text: str, figures: Sequence[published.Figure]) -> str:
    notes: list[str] = []
    columns = published.told_columns(published.table_of(figures, notes))
    table = [*zip(*columns, strict=True)]
    return _latex(table, (title, text.replace("*", "")), _numbers(notes))


def _numbers(notes: Sequence[str]) -> list[str]:
    return render.numbered(notes).splitlines()


def _latex(table: Sequence[Sequence[str]], title: tuple[str, str], notes: Sequence[str]) -> str:
    """Return a table (header first) in LaTeX, with its caption and the notes below it."""
    great: Any = import_module("great_tables")  # both imports are slow
    import pandas as pd

    heads, *rows = ([_typeset(cell) for cell in line] for line in table)
    columns = dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))
    layout = great.GT(pd.DataFrame(columns)).tab_header(*map(_typeset, title))
    layout = layout.cols_align("right", columns=heads[1:]).cols_align("left", columns=heads[:1])
    for note in notes:
        layout = layout.tab_source_note(_typeset(note))
    layout = layout.tab_options(table_font_size=FONT)
    return layout.as_latex(use_longtable=len(rows) > FLOATS)


def _typeset(text: str) -> str:
    """Return a text on one line that every LaTeX can typeset; other characters become escapes."""
    plain = " ".join(escape_controls(text).split())
    return "".join(char if _is_settable(char) else f"\\u{ord(char):04x}" for char in plain)


def _is_settable(char: str) -> bool:
    """Return whether LaTeX typesets a character without a package: ASCII, dash, Latin accent."""
    base = unicodedata.decomposition(char)[:4]  # code of the base letter: 0065 (e) for `é`
    return char.isascii() or char in "–—" or (char <= "ÿ" and base.startswith("00"))


def _write_parquet(report: Report, path: Path) -> None:
    """Write the rows of table.csv with their types: dollars as decimals, unknown as null."""
    from podium.harness.ledger.ledger_tables import UNIT, table_of  # a slow import

    parquet: Any = import_module("pyarrow.parquet")
    rows = [_quantized(row, UNIT) for row in (*report.rows, *report.shown.derived)]
    table = table_of(TableRow, rows)
    # Without Arrow's own schema, which is not needed, podium's mark is near the file's end.
    with parquet.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"podium": PARQUET})


def _quantized(row: TableRow, unit: Decimal) -> TableRow:
    """Return a row with dollars rounded to `unit`: a mean may have infinitely many digits."""
    values = ((name, getattr(row, name)) for name in COLUMNS)
    return replace(
        row, **{name: value.quantize(unit) for name, value in values if isinstance(value, Decimal)}
    )


PODIUM = {
    "title": "podium: learned orchestrators beside single models, voting, Mixture-of-Agents and "
    "routers",
    "author": "{The podium authors}",
    "version": version("podium"),
    "year": "2026",
}
"""Citation of podium, the same as in CITATION.cff, which the installed package lacks."""
ARXIV = re.compile(r"arXiv[ :](\d{4}\.\d{4,5})")
REPOSITORY = re.compile(r"github\.com/([\w.-]+/[\w-]+(?:\.[\w-]+)*)")
AUTHORS = re.compile(r"(\w+) et al\. \d{4}")
ADDRESS = re.compile(r"https://([\w.-]+)[\w./-]*")
OURS = re.compile(r"podium\b|none: generated by podium\b")


def references(report: Report) -> str:
    """Return references.bib: podium, and the sources of systems and suites that the logs name."""
    entries = {"podium": dict(PODIUM)}
    cited: dict[str, set[str]] = {}
    for name, clause in _clauses(report):
        for key, fields in _sources_in(clause):
            entry = entries.setdefault(key, fields)
            entry.update({field: max(entry.get(field, ""), text) for field, text in fields.items()})
            cited.setdefault(key, set()).add(name)
    for key, names in cited.items():
        entries[key]["keywords"] = ", ".join(sorted(names))
    listed = [
        _entry(key, entries[key]) for key in sorted(entries, key=lambda key: (key != "podium", key))
    ]
    return "\n\n".join((PAPER_MARKS["references.bib"], *listed)) + "\n"


def _clauses(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (system or suite, text of a source) for each source that the system or suite cites."""
    sources = [(row.system, row.source) for row in report.rows]
    sources += [(run.facts.suite, run.facts.paper) for run in report.system_runs]
    for suite in _suites(report):
        sources += [(suite, figure.source) for figure in published.of_suite(suite)]
    yield from ((name, clause) for name, source in sources for clause in source.split("; "))


def _sources_in(clause: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield BibTeX key and fields of each paper, repository or page that a source's text names."""
    page = ADDRESS.search(clause)
    if OURS.match(clause):
        yield "podium", {}
    elif page and not ARXIV.search(clause) and not REPOSITORY.search(clause):
        key = "web-" + re.sub(r"\W", "-", page[1].lower())
        yield key, {"title": re.split(r" \(|, https", clause)[0], "url": page[0].rstrip(".")}
    for match in ARXIV.finditer(clause):
        number = match.group(1)
        place = {"eprint": number, "archiveprefix": "arXiv", "year": f"20{number[:2]}"}
        place["note"] = f"arXiv:{number}"
        place["url"] = f"https://arxiv.org/abs/{number}"
        yield f"arxiv-{number}", _named(clause[: match.start()]) | place
    for match in REPOSITORY.finditer(clause):
        name = match.group(1)
        key = "github-" + re.sub(r"\W", "-", name.lower())
        yield key, {"title": name, "url": f"https://github.com/{name}"}


def _named(words: str) -> dict[str, str]:
    """Return a paper's author and title if the words before its arXiv number contain them.

    >>> _named("Kapoor et al. 2024, AI Agents That Matter, ")
    {'author': 'Kapoor and others', 'title': 'AI Agents That Matter'}
    >>> _named("the 500: Let's Verify Step by Step, "), _named("the cascade of FrugalGPT, ")
    ({'title': "Let's Verify Step by Step"}, {})
    """
    author = AUTHORS.search(words)
    fields = {"author": f"{author.group(1)} and others"} if author else {}
    text = words[author.end() :] if author else words
    lead, _, tail = text.partition(": ")
    title = (tail if tail and lead.strip()[:1].islower() else text).strip(" ,()")
    return fields | ({"title": title} if title[:1].isupper() else {})


def _entry(key: str, fields: Mapping[str, str]) -> str:
    sort = {} if "author" in fields else {"key": key}
    lines = [f"  {name} = {{{_field(name, text)}}}" for name, text in {**fields, **sort}.items()]
    return ",\n".join([f"@misc{{{key}", *lines]) + "\n}"


SPECIAL = {**{c: f"\\{c}" for c in "#$%&_"}, "{": "(", "}": ")", "\\": "/", "~": "-", "^": ""}


def _field(name: str, text: str) -> str:
    """Return a text as the value of a BibTeX field, without braces that could end the field."""
    if name in ("url", "author"):
        return text
    plain = "".join(SPECIAL.get(char, char) for char in _typeset(text))
    return f"{{{plain}}}" if name == "title" else plain  # otherwise a style lowers its capitals
