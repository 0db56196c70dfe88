"""A leaderboard of several runs: leaderboard.json, its page, and the whole site of each run."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.runs import system_runs_below
from podium.harness.text import pluralise, safe_name
from podium.reports import render
from podium.reports.blocks import pinned_name
from podium.reports.comparison_rows import Pair
from podium.reports.derived import BlockSummary
from podium.reports.report import Report, json_number, refuse_unfinished, report_of
from podium.reports.site.audit_page import manifest_roots, verdict_sentence
from podium.reports.site.build import SiteOptions, site_assets, write_site
from podium.reports.site.pages import SiteFrame, render_page
from podium.reports.site.texts import RowTexts

SCHEMA = "podium-leaderboard-1"
FILE = "leaderboard.json"
UNAUDITED = "not audited"
NO_JOURNAL = f"{UNAUDITED}: no journal of its calls is here, so its dollars are not checked"
STATUSES = ("fail", "weak", "pass")
"""Statuses of an audit, worst first: an audit has the worst status of its invariants."""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A row of the leaderboard (a system's result), with its run and the run's audit."""

    pair: Pair
    run: str
    """The name of the run's folder below `runs/`."""
    audit: str
    """The status of the system run's audit: one of `STATUSES`, or `not audited`."""
    said: str
    """The audit's result in a sentence."""
    manifest: str
    """Root hash of the run's manifest; empty if none was written."""


def write_board(dirs: Sequence[Path], out: Path, versions: Mapping[str, str]) -> list[str]:
    """Write a leaderboard of runs into a new folder; return a line with each table's size.

    `versions`: suite -> current version. UserError, before anything is written, for an unfinished
    run, a run given twice, or a run that shares no suite with another.
    """
    render.refuse_existing(out)
    reports = {folder: report_of([folder]) for folder in dirs}
    _refuse_repeated(dirs, reports)
    _refuse_strangers(reports)
    rows: list[BoardRow] = []
    for name, (folder, report) in zip(_names(reports), reports.items(), strict=True):
        site = write_site([folder], report, out / "runs" / name, SiteOptions(versions=versions))
        rows += _rows(name, folder, report, site.texts)
    tables = [*_tables(rows)]
    origin = f"Made by podium {version('podium')} from {pluralise(len(reports), 'run')}."
    frame = SiteFrame(tuple((f"runs/{name}/index.html", name) for name in _names(reports)), origin)
    count = pluralise(len(rows), "row")
    page = render_page("board.html", site=frame, tables=tables, count=count, file=FILE)
    data = {"schema": SCHEMA, "made": origin, "tables": [_data(table) for table in tables]}
    style = "assets/podium.css"
    files = {FILE: render.as_json(data), "index.html": page, style: site_assets()[style]}
    render.write_files(out, files)
    return [f"{table['title']}: {pluralise(len(table['rows']), 'row')}" for table in tables]


def _names(dirs: Mapping[Path, Report]) -> list[str]:
    """Return a name for each run: its directory's name, with a number if not unique."""
    plain = [safe_name(folder.resolve().name) for folder in dirs]
    repeats = [plain[:index].count(name) for index, name in enumerate(plain)]
    return [f"{name}-{n + 1}" if n else name for name, n in zip(plain, repeats, strict=True)]


def _pairs(report: Report) -> list[Pair]:
    return [pair for block in report.shown.pairs for pair in block]


def _refuse_repeated(dirs: Sequence[Path], reports: Mapping[Path, Report]) -> None:
    """Raise UserError for an unfinished run, and for a log that occurs in two directories."""
    owner: dict[str, Path] = {}
    for folder in dirs:
        logs = [name for run in reports[folder].system_runs for name in run.logs]
        if log := next((name for name in logs if name in owner), None):
            raise UserError(
                f"{folder} and {owner[log]} hold the same run ({log}), and a board lists each run "
                "once. Name one of them."
            )
        owner |= dict.fromkeys(logs, folder)
        for pair in _pairs(reports[folder]):
            refuse_unfinished(*pair)


def _refuse_strangers(reports: Mapping[Path, Report]) -> None:
    suites = {folder: {row.suite for row in report.rows} for folder, report in reports.items()}
    shared = Counter(suite for run_suites in suites.values() for suite in run_suites)
    for folder, run_suites in suites.items():
        if len(suites) > 1 and all(shared[suite] == 1 for suite in run_suites):
            raise UserError(
                f"{folder} has only {', '.join(sorted(run_suites))}, and no other of these runs "
                "has that suite. Leave it out, or make a separate board."
            )


def _rows(run: str, folder: Path, report: Report, texts: Sequence[RowTexts]) -> Iterator[BoardRow]:
    roots = [*manifest_roots(folder, system_runs_below(folder))]
    for pair, row in zip(_pairs(report), texts, strict=True):
        statuses = {verdict.status for verdict in row.verdicts}
        status = next((candidate for candidate in STATUSES if candidate in statuses), UNAUDITED)
        sentence = verdict_sentence(row.verdicts)
        if not row.files.journals and status != "fail":
            status, sentence = UNAUDITED, NO_JOURNAL
        log = row.files.logs[0]
        root = next((root for place, root in reversed(roots) if log.is_relative_to(place)), "")
        yield BoardRow(pair, run, status, sentence, root)


def _questions(pair: Pair) -> str:
    questions = sorted({attempt.question for attempt in pair[1].attempts})
    return f"{len(questions)} ({hashlib.sha256(repr(questions).encode()).hexdigest()[:8]})"


def _limits(pair: Pair) -> str:
    limits = {worker.config.get("max_tokens") for worker in pair[1].facts.workers.values()}
    return " and ".join(sorted("not set" if limit is None else str(limit) for limit in limits))


SHARED: Mapping[str, Callable[[Pair], str]] = {
    "suite": lambda pair: pair[0].suite,
    "version": lambda pair: pair[0].suite_version,
    "split": lambda pair: pair[0].split,
    "questions": _questions,
    "data": lambda pair: pair[0].data_revision,
    "label": lambda pair: pair[0].label,
    "prompt": lambda pair: pair[0].prompt,
    "prices": lambda pair: pinned_name(pair[0].price_book, pair[0].price_book_sha256),
    "equal budget": lambda pair: pair[0].equal or "none",
    "max_tokens": _limits,
    "requests too long": lambda pair: pair[1].facts.overflows,
}
"""Property that all rows of a table share -> function that reads it from a row and its run."""


def _tables(rows: Sequence[BoardRow]) -> Iterator[dict[str, Any]]:
    """Yield each suite's tables, the largest first; the others list how they differ from it."""
    groups: dict[tuple[str, ...], list[BoardRow]] = {}
    for row in rows:
        groups.setdefault(tuple(read(row.pair) for read in SHARED.values()), []).append(row)
    main_keys: dict[str, tuple[str, ...]] = {}
    numbers = Counter[str]()
    for key, group in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0])):
        largest = main_keys.setdefault(key[0], key)
        numbers[key[0]] += 1
        sides = zip(SHARED, key, largest, strict=True)
        summary = BlockSummary(
            tuple(row.pair[0] for row in group), int(key[3].split()[0]), None, None
        )
        yield {
            "title": key[0] if largest is key else f"{key[0]}, table {numbers[key[0]]}",
            "shared": dict(zip(SHARED, key, strict=True)),
            "apart": [
                f"{name} {here} (there {there})" for name, here, there in sides if here != there
            ],
            "dates": group[0].pair[0].dates,
            "cautions": summary.cautions,
            "rows": sorted(group, key=_order),
        }


def _order(board_row: BoardRow) -> tuple[object, ...]:
    row = board_row.pair[0]
    return (row.uses_targets or not row.reference_allowed, -(row.accuracy or 0.0), row.system)


def _data(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "rows": [_row_data(row) for row in table["rows"]]}


def _row_data(board_row: BoardRow) -> dict[str, Any]:
    site = f"runs/{board_row.run}"
    return {
        **{name: json_number(value) for name, value in asdict(board_row.pair[0]).items()},
        "run": f"{site}/index.html",
        "audit": {"status": board_row.audit, "said": board_row.said, "page": f"{site}/audit.html"},
        "manifest": board_row.manifest or None,
    }
