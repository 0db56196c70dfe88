"""Write a report: table.md, table.csv, table.json and plot.png, from log directories alone.

The same logs give the same bytes. Files that a report did not write are never overwritten.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from harness.errors import UserError
from harness.learning.matrix import SINGLE
from harness.ledger.system_runs import load_runs
from harness.ledger.totals import (
    CallKind,
    CallSum,
    CallSums,
    InspectTokens,
    SystemRun,
    failed,
    grades,
    in_table,
    is_cached,
    system_totals,
    total,
)
from reports.blocks import DEFAULT_OPTIONS, ReportOptions
from reports.derived import Comparison, compare
from reports.markdown import MARK, markdown
from reports.plot import SOFTWARE, draw
from reports.published import published_text
from reports.render import as_json, markdown_file, refuse_foreign, rows_csv, text_file, write_files
from reports.row import COLUMNS, TableRow
from reports.terminal import derived_text, table_text

NOTHING: InspectTokens = (0, 0, 0, 0)
Cause = Literal[
    "cache reads", "score-phase calls", "failed attempts", "attempts not in this log", "unexplained"
]
"""`attempts not in this log`: after a retry, Inspect's totals of a run still have the tokens of the
attempt that failed, and its samples no longer do (at most its last call is kept)."""
Gap = tuple[Cause, InspectTokens]
"""A cause, and Inspect's tokens less the table's."""


def reconciliation(system_runs: Sequence[SystemRun]) -> tuple[str, ...]:
    """Hold our token counts against Inspect's own totals: a sentence per suite, label and purpose.

    `podium audit` compares a run call by call. Here Inspect's totals in the newest log of each
    system run are enough, so a report stays quick.
    """
    groups: dict[str, list[SystemRun]] = {}
    for system_run in sorted(system_runs, key=_title):
        groups.setdefault(_title(system_run), []).append(system_run)
    return tuple(f"{title}: {_sentence(group)}" for title, group in groups.items())


def _title(system_run: SystemRun) -> str:
    facts = system_run.facts
    choosing = ", choosing" if facts.purpose == "selection" else ""
    return f"{facts.suite} ({facts.split}), {facts.label}{choosing}"


def _sentence(system_runs: Sequence[SystemRun]) -> str:
    summed = [(one.spend, one.told) for one in system_runs if one.told is not None]
    shown = total(tally for spend, _ in summed for kind, tally in spend.items() if in_table(kind))
    gaps = _by_cause(gap for spend, told in summed for gap in _gaps(spend, told))
    compared = f"{shown.calls:,} calls, {_tokens(_four(shown))}; {_gap_words(gaps)}"
    missing = len(system_runs) - len(summed)
    unfinished = f"not compared: unfinished logs without totals: {missing}."
    parts = ([compared] if summed else []) + ([unfinished] if missing else [])
    return " ".join(parts)


def _gaps(spend: CallSums, told: Mapping[str, InspectTokens]) -> list[Gap]:
    """Return Inspect's tokens less the table's, model by model, split by cause."""
    again = any(not kind.counted for kind in spend)
    gaps: list[Gap] = []
    for name in sorted({*told, *(kind.model for kind in spend)}):
        ours = {kind: tally for kind, tally in spend.items() if kind.model == name}
        gaps += _split(told.get(name, NOTHING), ours, repeated=again)
    return gaps


def _split(theirs: InspectTokens, ours: CallSums, *, repeated: bool) -> list[Gap]:
    again = _total_tokens(ours, failed)
    cached = _less(NOTHING, _total_tokens(ours, is_cached))
    graded = _total_tokens(ours, grades)
    rest = _less(_less(_less(theirs, _total_tokens(ours, in_table)), cached), graded)
    # After a kill, the totals of the next log start anew: they lack attempts made again in full.
    older = _total_tokens(ours, lambda kind: failed(kind) and not kind.newest)
    lost = _less(again, rest)
    is_part = all(0 <= one <= whole for one, whole in zip(lost, older, strict=True))
    known = rest if is_part else again
    gaps: list[Gap] = [
        ("cache reads", cached),
        ("score-phase calls", graded),
        ("failed attempts", known),
    ]
    rest = _less(rest, known)
    gone = repeated and min(rest) >= 0
    return [*gaps, ("attempts not in this log" if gone else "unexplained", rest)]


def _by_cause(gaps: Iterable[Gap]) -> dict[Cause, InspectTokens]:
    """Add up the gaps, those without a cause by their size, so that no two cancel each other."""
    summed: dict[Cause, InspectTokens] = {}
    for cause, tokens in gaps:
        if tokens != NOTHING:
            a, b, c, d = map(abs, tokens) if cause == "unexplained" else tokens
            one, two, three, four = summed.get(cause, NOTHING)
            summed[cause] = (one + a, two + b, three + c, four + d)
    return summed


def _gap_words(gaps: Mapping[Cause, InspectTokens]) -> str:
    if not gaps:
        return "equal to Inspect's own totals."
    more = [
        f"{cause} ({_tokens(tokens)})"
        for cause, tokens in gaps.items()
        if cause not in ("cache reads", "unexplained")
    ]
    parts = [f"Inspect counts also {', '.join(more)}"] if more else []
    if "cache reads" in gaps:
        unread = _less(NOTHING, gaps["cache reads"])
        parts.append(f"Inspect leaves out cache reads ({_tokens(unread)})")
    if "unexplained" in gaps:
        parts.append(f"UNEXPLAINED: they differ by {_tokens(gaps['unexplained'])}")
    return "; ".join(parts) + "."


def _tokens(tokens: InspectTokens) -> str:
    """Return tokens in (cached ones included) and out."""
    return f"{sum(tokens[:3]):,} tokens in, {tokens[3]:,} out"


def _total_tokens(spend: CallSums, belongs: Callable[[CallKind], bool]) -> InspectTokens:
    """Add up calls; one that reported no usage is in neither of the totals compared."""
    return _four(total(tally for kind, tally in spend.items() if belongs(kind)))


def _four(tally: CallSum) -> InspectTokens:
    return (tally.input, tally.cache_read, tally.cache_write, tally.output)


def _less(left: InspectTokens, right: InspectTokens) -> InspectTokens:
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2], left[3] - right[3])


SCHEMA = "podium-table-1"
MARKS = {
    "table.md": MARK,
    "table.csv": ",".join(COLUMNS[:20]),
    "table.json": f'"{SCHEMA}"',
    "plot.png": SOFTWARE,
}
"""By file; each kind carries a mark of its own."""
PLACES = Decimal("0.00000001")
"""Dollars per query are printed to a hundred-millionth: a cheap call costs about a millionth."""
SMALL = 0.01
"""Below this an estimate keeps six significant digits."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says and where it was written."""

    shown: Comparison
    files: tuple[Path, ...]
    skipped: tuple[str, ...]
    """One sentence for each log that was passed over."""
    spend: tuple[str, ...]
    """One sentence for each spend that is in no row: choosing the best single worker."""
    wanted: ReportOptions = DEFAULT_OPTIONS

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """The rows of all tables."""
        return self.shown.rows

    @property
    def text(self) -> str:
        """The tables for a terminal, and below them what they leave out."""
        derived = derived_text(self.shown.derived) if self.wanted.derived else ""
        suites = dict.fromkeys(row.suite for row in self.rows)
        papers = published_text(list(suites)) if self.wanted.published else ""
        below = "\n".join((*self.spend, *self.skipped))
        parts = (table_text(self.shown), derived, papers, below)
        return "\n\n".join(filter(None, parts))


def write_report(
    dirs: Sequence[Path], out: Path, wanted: ReportOptions = DEFAULT_OPTIONS
) -> Report:
    """Read the logs below `dirs` and write their report into `out`.

    UserError for damaged logs, mixed suite versions or epochs, nothing to report, foreign files in
    `out`, an `out` that cannot be written, and for what is `wanted` and cannot be had.
    """
    refuse_foreign(out, MARKS)
    system_runs, foreign = load_runs(dirs)
    shown = compare(system_runs, wanted)
    rows = shown.rows
    if not rows:
        raise UserError(
            "There are only logs of choosing a system, none of a suite; finish the run."
        )
    skipped = tuple(f"{path.name}: passed over, `podium run` did not write it" for path in foreign)
    checks = reconciliation(system_runs)
    files = write_files(
        out,
        {
            "table.md": markdown_file(markdown(shown, system_runs, skipped, checks), MARK),
            "table.csv": text_file(rows_csv([*rows, *shown.derived], COLUMNS, _cell)),
            "table.json": text_file(as_json(_data(shown, skipped))),
            "plot.png": lambda path: draw(rows, path),
        },
    )
    return Report(shown, files, skipped, _selection(system_runs), wanted)


def _data(shown: Comparison, skipped: Sequence[str]) -> Mapping[str, object]:
    """Return rows and parts for JSON; null is an unknown figure, dollars are numbers."""
    places = {id(row): at for at, row in enumerate(shown.rows)}
    parts = [
        {
            "row": places[id(part.row)],
            "suite": part.row.suite,
            "system": part.row.system,
            "grouping": part.grouping,
            "group": part.group,
            "n": part.n,
            **{name: _number(getattr(part, name)) for name in ("value", "ci_low", "ci_high")},
        }
        for part in shown.parts
    ]
    blocks = [
        {
            "rows": [places[id(row)] for row in one.rows],
            "questions": one.questions,
            "said": one.said,
            "cochran": one.cochran and asdict(one.cochran),
            "frontier": one.frontier and asdict(one.frontier),
        }
        for one in shown.fields
    ]
    rows = [
        {name: _number(value) for name, value in asdict(row).items()}
        for row in (*shown.rows, *shown.derived)
    ]
    head = {"schema": SCHEMA, "columns": COLUMNS, "rows": rows, "parts": parts}
    return {**head, "blocks": blocks, "skipped": skipped}


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value.quantize(PLACES).normalize(), "f")
    return _number(value)


def _number(value: object) -> object:
    """Return a share to a millionth; what is small, e.g. dollars of a query, to six digits."""
    if isinstance(value, Decimal):
        return float(value.quantize(PLACES))
    if isinstance(value, float):
        return round(value, 6) if abs(value) >= SMALL else float(f"{value:.6g}")
    return value


def _selection(system_runs: Sequence[SystemRun]) -> tuple[str, ...]:
    """Return what choosing the best single worker and what training cost: a line per suite each."""
    groups: dict[tuple[str, str], list[SystemRun]] = {}
    for system_run in system_runs:
        facts = system_run.facts
        if facts.purpose == "selection":
            alone = facts.system.startswith(SINGLE)
            groups.setdefault((facts.suite, "" if alone else facts.system), []).append(system_run)
    lines: list[str] = []
    for (suite, system), chosen in sorted(groups.items()):
        whole = total(tally for system_run in chosen for tally in system_run.spend.values())
        would_be = _total_usd([whole.listed])
        paid = _total_usd([system_totals(system_run).usd_spent for system_run in chosen])
        what = f"training {system}" if system else "choosing the best single worker"
        lines.append(
            f"Not in the table: {what} on {suite} ({whole.calls} calls, "
            f"would-be USD {would_be}, paid USD {paid})"
        )
    return tuple(lines)


def _total_usd(parts: Sequence[Decimal | None]) -> str:
    known = [part for part in parts if part is not None]
    return f"{sum(known, Decimal(0)):.4f}" if len(known) == len(parts) else "unknown"
