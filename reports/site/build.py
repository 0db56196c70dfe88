"""Build a site: a report and its audit become pages and data files in one folder."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, cast

from podium.harness.errors import UserError
from podium.harness.files import read_json, refuse_unwritable
from podium.harness.ledger.system_runs import Beside
from podium.harness.rules import rule_table, rules
from podium.harness.text import pluralise
from podium.reports import render
from podium.reports.against import RunDifference
from podium.reports.audit import Audit, audit
from podium.reports.audit.audit_report import Reconciled
from podium.reports.audit.reconcile import Reconciliation
from podium.reports.paper import PAPER_MARKS, paper_contents
from podium.reports.report import Report, report_of
from podium.reports.site import comparison
from podium.reports.site.against_page import against_context
from podium.reports.site.audit_page import audit_context
from podium.reports.site.index import Index, index_files, site_blocks
from podium.reports.site.pages import ASSETS, VENDOR, SiteFrame, render_page
from podium.reports.site.requests_page import (
    INDEX,
    ServedSystem,
    served_context,
    served_index,
    served_systems,
)
from podium.reports.site.shards_page import shards_context
from podium.reports.site.texts import RowTexts, left_out, row_texts, text_files
from podium.reports.site.training_page import training_context, training_data
from podium.reports.training_plot import write_curves
from podium.reports.training_runs import TrainingRun, training_runs

LISTING, SCHEMA = "site.json", "podium-site-1"
"""`LISTING`: file that lists a site's files, which a later site may overwrite or remove."""
OPTION = "--site directory"
PAGES = {
    "index.html": "Comparison",
    "matrix.html": "Matrix",
    "query.html": "Query",
    "served.html": "Served",
    "request.html": "Request",
    "audit.html": "Audit",
    "shards.html": "Shards",
    "runs.html": "Two runs",
    "training.html": "Training",
    "rules.html": "Rules",
}


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """The options of an HTML site: what its pages include, and whether a server shows them."""

    texts: bool | None = None
    """Whether to include the texts of queries; None: only for at most `texts.MOST` queries."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suite name -> current version; a page warns about runs with another version."""
    trainings: Sequence[Path] = ()
    """Folders that `podium train` wrote, for the page of trainings."""
    against: RunDifference | None = None
    """The differences between this run and another, for the page that compares two runs."""
    served: bool = False
    """Whether a server renders the matrix's cells and the texts on request."""


@dataclass(frozen=True, slots=True)
class Site:
    """A written site: its folder and files, and what a server can add on request."""

    folder: Path
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    """A sentence for each part that is missing from the site, e.g. texts of too many queries."""
    texts: tuple[RowTexts, ...] = ()
    """For each row, the logs from which its texts are read, even if the site has no texts."""
    later: Mapping[str, Callable[[], render.Content]] = field(default_factory=dict[str, Any])
    """Name -> function that renders a file on request: downloads, blocks with another reference."""

    @property
    def address(self) -> str:
        """The file URL of the site's first page."""
        return (self.folder / self.first).resolve().as_uri()

    @property
    def first(self) -> str:
        """The file name of the site's first page."""
        return next(name for name in PAGES if self.folder / name in self.files)


def write_site(
    dirs: Sequence[Path],
    report: Report,
    out: Path,
    options: SiteOptions = SiteOptions(),
    beside: Beside[Reconciled] | None = None,
) -> Site:
    """Write the site of a report, made from the logs below `dirs`, into `out`.

    `beside` is data for the audit, collected when the report read these logs. Equal logs give equal
    bytes. UserError for damaged logs, and in the cases of `refuse_foreign_site`.
    """
    refuse_foreign_site(out)
    audits = {folder: audit(folder, beside=beside) for folder in dirs}
    blocks, downloads = tuple(site_blocks(report.shown)), _downloads(report)
    references = comparison.reference_files(report, blocks, served=options.served)
    later = {**downloads, **references}
    now = {} if options.served else {name: make() for name, make in later.items()}
    rows, runs = row_texts(dirs, blocks, audits), training_runs(options.trainings)
    systems = served_systems(dirs, len(rows)) if options.served else ()
    notes = left_out(rows, options.texts)
    index_page = comparison.context(report, audits, options.versions, blocks, served=options.served)
    contexts: dict[str, dict[str, Any]] = {
        "index.html": index_page | {"downloads": [*downloads]},
        "matrix.html": {"index": Index(blocks, options.served)},
        "query.html": {"notes": notes, "rules": [*rules()]},
        "rules.html": {"rules": rule_table()[0]},
        **_served_contexts(systems),
        "audit.html": audit_context(audits, blocks),
        **({"shards.html": shards} if (shards := shards_context(report.system_runs)) else {}),
        **({"runs.html": against_context(options.against, blocks)} if options.against else {}),
        **({"training.html": training_context(runs)} if runs else {}),
    }
    contents = {
        **_pages(contexts, f"the logs of {pluralise(len(report.system_runs), 'system run')}"),
        **site_assets(),
        **now,
        **index_files(blocks),
        **_served_files(systems),
        **_training_files(runs),
    }
    every = (*rows, *(system.texts(audits[system.folder]) for system in systems))
    with text_files(rows, options.texts) as texts:
        files = _put(out, {**contents, **texts})
    return Site(out, files, notes, every, later if options.served else {})


def write_served_site(dirs: Sequence[Path], out: Path) -> Site:
    """Write the site of `podium serve` directories that have no run; a server adds the texts."""
    refuse_foreign_site(out)
    audits = {folder: audit(folder) for folder in dirs}
    systems = served_systems(dirs, 0)
    contexts = {**_served_contexts(systems), "audit.html": audit_context(audits, ())}
    contents = _pages(contexts, f"the journals of {pluralise(len(systems), 'served system')}")
    files = _put(out, {**site_assets(), **contents, **_served_files(systems)})
    return Site(out, files, (), tuple(system.texts(audits[system.folder]) for system in systems))


def _served_contexts(systems: Sequence[ServedSystem]) -> dict[str, dict[str, Any]]:
    if not systems:
        return {}
    context = {"notes": (), "own_index": INDEX}
    return {"served.html": served_context(systems), "request.html": context}


def _served_files(systems: Sequence[ServedSystem]) -> dict[str, render.Content]:
    return {f"data/{INDEX}.js": served_index(systems)} if systems else {}


def write_training_site(folders: Sequence[Path], out: Path) -> Site:
    """Write only the page of trainings; UserError if a folder has none, or for a foreign `out`."""
    refuse_foreign_site(out)
    runs = training_runs(folders)
    contents = _pages({"training.html": training_context(runs)}, "their folders")
    return Site(out, _put(out, {**site_assets(), **contents, **_training_files(runs)}))


def write_audit_site(folder: Path, check: Audit, bills: Sequence[Reconciliation], out: Path) -> str:
    """Write the page of one audit and of invoices compared with ledgers; return the page's URL."""
    refuse_foreign_site(out)
    try:
        blocks = tuple(site_blocks(report_of([folder]).shown))
    except UserError:  # logs of other programs and runs that have not begun have no table
        blocks = ()
    context = audit_context({folder: check}, blocks, bills, linked=False)
    contents = _pages({"audit.html": context}, f"an audit of {folder.resolve().name}")
    return Site(out, _put(out, {**site_assets(), **contents})).address


def _training_files(runs: Sequence[TrainingRun]) -> dict[str, render.Content]:
    if not runs:
        return {}
    return {"curve.png": partial(write_curves, runs), "data/training.js": training_data(runs)}


def refuse_foreign_site(out: Path, report: Path | None = None) -> None:
    """Raise UserError if `out` cannot be written, or contains files that are not of a podium site.

    `report`, the folder of the report's own files, must not be in `out`. Call this function first.
    """
    refuse_unwritable(out, OPTION)
    if report and report.resolve().is_relative_to(out.resolve()):
        raise UserError(
            f"{report} would be inside the {OPTION} {out}. Name another --out directory."
        )
    ours = {LISTING, *_listed(out)}
    for path in sorted(out.rglob("*")):
        # A podium that was killed leaves unfinished files with the suffix `.new`.
        name = path.relative_to(out).as_posix().removesuffix(".new")
        if name not in ours and not path.is_dir():
            raise UserError(f"{path} was not written by podium; name another {OPTION}.")


def site_assets() -> dict[str, render.Content]:
    """Return the scripts and styles of all pages, by their names in a site."""
    return {
        f"assets/{asset.name}": asset.read_text(encoding="utf-8")
        for folder in (ASSETS, VENDOR)
        for asset in folder.iterdir()
        if asset.name.endswith((".js", ".css", ".txt"))
    }


def _downloads(report: Report) -> dict[str, Callable[[], render.Content]]:
    """Return file name -> function that makes or copies a download (a report's or paper's file)."""
    written = {path.name: path for path in report.files}
    names = dict.fromkeys((*report.contents, *PAPER_MARKS, *written))

    def content(name: str) -> render.Content:
        if name in written:
            return partial(shutil.copyfile, written[name])
        return report.contents[name] if name in report.contents else paper_contents(report)[name]

    return {f"downloads/{name}": partial(content, name) for name in names}


def _pages(contexts: Mapping[str, dict[str, Any]], made_from: str) -> dict[str, render.Content]:
    frame = SiteFrame(
        pages=tuple((href, name) for href, name in PAGES.items() if href in contexts),
        made=f"Made by podium {version('podium')} from {made_from}. It needs no network.",
    )
    return {name: render_page(name, site=frame, **context) for name, context in contexts.items()}


def _put(out: Path, contents: Mapping[str, render.Content]) -> tuple[Path, ...]:
    """Write a site's files, and remove files that only an earlier site in the folder had."""
    old = _listed(out)
    render.write_files(out, {LISTING: _listing({*old, *contents})}, OPTION)
    files = render.write_files(out, contents, OPTION)
    for name in old - contents.keys():
        (out / name).unlink(missing_ok=True)
        if not any((out / name).parent.iterdir()):
            (out / name).parent.rmdir()
    return (*files, *render.write_files(out, {LISTING: _listing(contents)}, OPTION))


def _listing(names: Iterable[str]) -> str:
    return render.as_json({"schema": SCHEMA, "files": sorted(names)})


def _listed(out: Path) -> set[str]:
    """Return the files of the podium site in `out`; empty if there is no such site."""
    path = out / LISTING
    data: Any = read_json(path) if path.is_file() else None
    listing = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    if listing.get("schema") != SCHEMA:
        return set()
    names = [PurePosixPath(str(name)) for name in listing["files"]]
    return {file.as_posix() for file in names if not file.is_absolute() and ".." not in file.parts}
