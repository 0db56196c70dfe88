"""Write a report on runs from their logs alone: table.md, table.csv, table.json and plot.png."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from hashlib import sha256
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from matplotlib.figure import Figure

from podium.harness.errors import UserError
from podium.harness.ledger import system_runs as logs
from podium.harness.ledger import totals
from podium.harness.ledger.runs import system_runs_below
from podium.harness.ledger.system_runs import Beside
from podium.harness.ledger.totals import SystemRun
from podium.harness.text import pluralise
from podium.reports import render
from podium.reports.across import across_data
from podium.reports.blocks import DEFAULTS, SINGLE, ReportOptions
from podium.reports.columns import named_columns
from podium.reports.derived import Comparison, compare
from podium.reports.gateway_choices import ChoiceTable, gateway_choices
from podium.reports.learning_cost import learning_data
from podium.reports.markdown import MARK, markdown
from podium.reports.plot import SOFTWARE, draw, figure_of
from podium.reports.published import published_text
from podium.reports.row import COLUMNS, TableRow
from podium.reports.terminal import derived_text, table_text

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "podium-table-1"
MARKS = {
    "table.md": MARK,
    "table.csv": ",".join(COLUMNS[:20]),
    "table.json": f'"{SCHEMA}"',
    "plot.png": SOFTWARE,
}
"""File name -> the text by which podium recognises a file that it wrote."""
PLACES = Decimal("0.00000001")  # rounding of dollars per query: a cheap call costs about 1e-6
OF_PARTS = ("grouping", "group", "n", "value", "ci_low", "ci_high")
SMALL = 0.01  # floats below this keep six significant digits


@dataclass(frozen=True, slots=True)
class Report:
    """A report on runs: table rows and comparisons, the contents of its files, and their paths."""

    shown: Comparison
    files: tuple[Path, ...]
    skipped: tuple[str, ...]
    """One sentence for each log that was skipped because podium did not write it."""
    spend: tuple[str, ...]
    """One sentence for each cost that no row includes, e.g. of choosing the best single worker."""
    wanted: ReportOptions
    contents: Mapping[str, render.Content]
    """File name -> the file's content, whether or not the file was written."""
    system_runs: tuple[SystemRun, ...] = ()
    choices: tuple[ChoiceTable, ...] = ()
    """Tables of models that gateways (workers that pick a model) chose; empty unless requested."""

    def __repr__(self) -> str:
        """Return the numbers of rows and files in one line."""
        return f"Report({pluralise(len(self.rows), 'row')}, {pluralise(len(self.files), 'file')})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """The rows of all main tables: one per system and suite."""
        return self.shown.rows

    @property
    def columns(self) -> render.Columns[TableRow]:
        """The columns that the user requested; empty if each table has its default columns."""
        return named_columns(self.wanted.columns)

    @property
    def text(self) -> str:
        """The tables for a terminal, then sentences on costs and logs that are in no table."""
        derived = derived_text(self.shown) if self.wanted.derived else ""
        suites = dict.fromkeys(row.suite for row in self.rows)
        papers = published_text(list(suites)) if self.wanted.published else ""
        chosen = "\n\n".join(table.text for table in self.choices)
        apart = (*self.spend, *self.skipped)
        below = "\n".join(line for sentence in apart for line in render.wrapped(sentence))
        sections = (table_text(self.shown, self.columns), derived, papers, chosen, below)
        return "\n\n".join(filter(None, sections))


def write_report(
    dirs: Sequence[Path],
    out: Path,
    options: ReportOptions = DEFAULTS,
    beside: Beside[Any] | None = None,
) -> Report:
    """Write a report on the logs below `dirs` into `out`; `beside` computes more from the logs."""
    render.refuse_foreign(out, MARKS)
    report = report_of(dirs, options, beside)
    return replace(report, files=render.write_files(out, report.contents))


def report_of(
    dirs: Sequence[Path], options: ReportOptions = DEFAULTS, beside: Beside[Any] | None = None
) -> Report:
    """Return the report that `write_report` would write on the same logs, without writing it."""
    chosen = named_columns(options.columns)
    system_runs, foreign = logs.load_runs(dirs, deep=options.deep, beside=beside)
    result = compare(system_runs, options)
    rows = result.rows
    if not rows:
        raise UserError(
            "These logs only choose a system; none evaluates a suite. Finish them with the same "
            "`podium run`."
        )
    skipped = tuple(f"{path.name}: passed over, `podium run` did not write it" for path in foreign)
    choices = tuple(gateway_choices(result.pairs, dirs)) if options.choices else ()
    page = (markdown(result, system_runs, skipped, chosen), *(table.markdown for table in choices))
    texts = {
        "table.md": "\n".join(page),
        "table.csv": render.rows_csv([*rows, *result.derived], COLUMNS, _cell),
    }
    digests = {name: sha256(render.as_written(name, texts[name])).hexdigest() for name in texts}
    extra = {"choices": [asdict(table) for table in choices]} if choices else {}
    contents: dict[str, render.Content] = {
        **texts,
        "table.json": render.as_json({**_data(result, skipped), **extra, "files": digests}),
        "plot.png": lambda path: draw(rows, path),
    }
    spend, runs = _selection(system_runs), tuple(system_runs)
    return Report(result, (), skipped, spend, options, contents, runs, choices)


def _data(comparison: Comparison, skipped: Sequence[str]) -> Mapping[str, object]:
    places = {id(row): index for index, row in enumerate(comparison.rows)}
    scores = [
        {
            "row": places[id(score.row)],
            "suite": score.row.suite,
            "system": score.row.system,
            **{name: json_number(getattr(score, name)) for name in OF_PARTS},
        }
        for score in comparison.parts
    ]
    blocks = [
        {
            "rows": [places[id(row)] for row in block.rows],
            "questions": block.questions,
            "headline": block.headline,
            "said": block.said,
            "cautions": block.cautions,
            "cochran": block.cochran and asdict(block.cochran),
            "frontier": block.frontier and asdict(block.frontier),
        }
        for block in comparison.fields
    ]
    rows = [
        {name: json_number(value) for name, value in asdict(row).items()}
        for row in (*comparison.rows, *comparison.derived)
    ]
    head = {"schema": SCHEMA, "columns": COLUMNS, "rows": rows, "parts": scores}
    extra = {
        "across": [_numbers(across_data(row, places)) for row in comparison.across],
        "learning": [_numbers(learning_data(entry, places)) for entry in comparison.learning],
    }
    return {**head, "blocks": blocks, **extra, "skipped": skipped}


def _numbers(data: Mapping[str, object]) -> Mapping[str, object]:
    return {
        name: _numbers(cast(Mapping[str, object], value))
        if isinstance(value, Mapping)
        else json_number(value)
        for name, value in data.items()
    }


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value.quantize(PLACES).normalize(), "f")
    return json_number(value)


def json_number(value: object) -> object:
    """Round floats to a millionth, small floats to six significant digits, and Decimals to 1e-8."""
    if isinstance(value, Decimal):
        return float(value.quantize(PLACES))
    if isinstance(value, float):
        return round(value, 6) if abs(value) >= SMALL else float(f"{value:.6g}")
    return value


def _selection(system_runs: Sequence[SystemRun]) -> tuple[str, ...]:
    groups: dict[tuple[str, str], list[SystemRun]] = {}
    for system_run in system_runs:
        facts = system_run.facts
        if facts.purpose == "selection":
            alone = facts.system.startswith(SINGLE)
            groups.setdefault((facts.suite, "" if alone else facts.system), []).append(system_run)
    lines: list[str] = []
    for (suite, system), chosen in sorted(groups.items()):
        total = totals.total(tally for system_run in chosen for tally in system_run.spend.values())
        paid = render.usd_sum([totals.system_totals(system_run).usd_spent for system_run in chosen])
        would_be, billed = (
            "unknown" if usd is None else f"{usd:.4f}" for usd in (total.listed, paid)
        )
        purpose = f"training {system}" if system else "choosing the best single worker"
        lines.append(
            f"Not in the table: {purpose} on {suite} ({total.calls} calls, "
            f"would-be USD {would_be}, paid USD {billed})"
        )
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class RunFrames:
    """The runs of some log directories as data frames, to be joined on `suite` and `system`.

    The columns have Arrow types, as in Inspect's own frames: dollars stay exact decimals and
    unknown values are `<NA>`, never 0.
    """

    runs: "pd.DataFrame"
    """A row per system and suite, with the columns and the comparisons of `table.csv`."""
    samples: "pd.DataFrame"
    """A row per question and epoch: verdict, tokens, dollars; `sample` is Inspect's uuid."""
    calls: "pd.DataFrame"
    """A row per attempt to call a model; its `sample` refers to a row of `samples`."""


def refuse_unfinished(row: TableRow, system_run: SystemRun) -> None:
    """Raise UserError for a run with unasked questions or without a graded answer."""
    if remaining := system_run.asked - len(system_run.attempts):
        raise UserError(
            f"{row.system} has not been asked {remaining} of {system_run.asked} questions of "
            f"{row.suite}. Finish them with the same `podium run`."
        )
    if row.accuracy is None:
        raise UserError(
            f"No answer of {row.system} on {row.suite} was graded. `podium report` prints the "
            "reason."
        )


def figure(*dirs: str | Path) -> Figure:
    """Return the plot of accuracy against dollars as a matplotlib figure; nothing is written."""
    return figure_of(compare(logs.load_runs([Path(folder) for folder in dirs])[0]).rows)


RENAMED = (
    "latency_s is renamed: use critical_path_s in runs, elapsed_s in samples; the next release of "
    "podium removes latency_s"
)


def load_runs(*dirs: str | Path) -> RunFrames:
    """Return the runs below directories as data frames; UserError if they cannot be compared.

    `podium report DIR --columns list` explains the columns of runs, `schema.md` of `podium ledger
    export` the columns of samples and calls. A frame's `attrs["schema"]` names its schema.
    """
    import pandas as pd  # pandas and the export are slow to import

    from podium.harness.ledger.ledger_tables import SCHEMA as LEDGER
    from podium.harness.ledger.ledger_tables import each_of

    warnings.warn(RENAMED, FutureWarning, stacklevel=2)

    def frame(table: Any, schema: str) -> "pd.DataFrame":
        data_frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        data_frame.attrs["schema"] = schema
        return data_frame

    pa: Any = import_module("pyarrow")  # pyarrow has no types
    places = [Path(folder) for folder in dirs]
    rows = compare(logs.load_runs(places)[0]).rows
    tables = [ledger for place in places for ledger, _ in each_of(system_runs_below(place))]
    return RunFrames(
        runs=frame(pa.Table.from_pylist([asdict(row) for row in rows]), SCHEMA),
        samples=frame(pa.concat_tables([ledger["queries"] for ledger in tables]), LEDGER),
        calls=frame(pa.concat_tables([ledger["calls"] for ledger in tables]), LEDGER),
    )
