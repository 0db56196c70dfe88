"""The commands as Python functions for notebooks and scripts; `podium` re-exports them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from podium.cli.list_commands import boxes, controls, suite_versions, whole_catalogue
from podium.harness.budget import usd_limit
from podium.harness.errors import UserError
from podium.harness.grade_file import grade_replies
from podium.harness.pool_config import read_pool
from podium.harness.records import Grade
from podium.harness.run import run as runs
from podium.harness.run.catalogue import RunRequest, find_grader, with_own
from podium.harness.run.evaluate import RunOutcome
from podium.harness.suite import Prompt, Split, Suite
from podium.harness.system import SystemCard
from podium.reports.audit import beside_a_report
from podium.reports.blocks import ReportOptions
from podium.reports.render import report_folder
from podium.reports.report import Report, write_report
from podium.reports.site import SiteOptions, refuse_foreign_site, write_site
from podium.suites import SUITES

suites: Mapping[str, Suite[Any]] = SUITES
"""Every suite by its name on the command line, e.g. `suites["math500"]`."""
systems: Mapping[str, SystemCard] = whole_catalogue().systems
"""The card of every system by its name in tables, e.g. `systems["moa-lite"]`."""

Part = TypeVar("Part")


class RunOptions(TypedDict, total=False):
    """Further arguments of `run`: the options of `podium run`, by their names."""

    limit: int
    epochs: int
    seed: int
    split: Split
    prompt: Prompt
    max_usd: Decimal | float | str
    max_usd_per_query: Decimal | float | str
    rpm: Mapping[str, int]
    box: str
    max_sandboxes: int
    time_scale: float
    train_calls: int
    train_on: tuple[str, ...]
    profile: Path
    task_args: Mapping[str, Any]
    system_options: Mapping[str, Mapping[str, Any]]
    match: str
    headline: str
    gate: Path
    worker_cards: Literal["shown", "hidden"]
    batch: bool
    display: str


def run(
    suites: str | Suite[Any] | Sequence[str | Suite[Any]],
    systems: str | SystemCard | Sequence[str | SystemCard] = (),
    *,
    pool: str = "rehearsal",
    log_dir: str | Path,
    yes: bool = False,
    **options: Unpack[RunOptions],
) -> RunOutcome:
    """Run systems on suites over a pool, as `podium run` does; the same call resumes the run.

    Besides names, pass your own suites as objects and systems as cards, or either as
    `FILE.py@NAME`. Raises UserError, before any call, if something cannot run, or if workers are
    live (cost money) and neither `max_usd` nor `yes` is set; `yes` agrees to any cost.
    """
    limits = {name: usd_limit(name, options.get(name)) for name in ("max_usd", "max_usd_per_query")}
    if not yes and not limits["max_usd"] and read_pool(pool).label == "live":
        raise UserError(
            f"Pool {pool!r} is live, so a run costs money. Pass max_usd=Decimal(...) to limit it, "
            "or yes=True to agree to any cost (`podium run --dry-run` prints the maximum)."
        )
    suite_list, system_list = _several(suites), _several(systems)
    request = RunRequest(
        suites=tuple(suite if isinstance(suite, str) else suite.name for suite in suite_list),
        systems=tuple(system if isinstance(system, str) else system.name for system in system_list),
        pool=pool,
        log_dir=Path(log_dir),
        **{**options, **limits},  # pyright: ignore[reportArgumentType]
    )
    objects = [item for item in (*suite_list, *system_list) if not isinstance(item, str)]
    return runs.run(*with_own(request, whole_catalogue(), objects), controls())


def _several(value: str | Part | Sequence[str | Part]) -> list[str | Part]:
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def report(
    dirs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    vs: str | None = None,
    epochs: int | None = None,
    maj: int | None = None,
    equivalence: float | None = None,
    site: str | Path | None = None,
) -> Report:
    """Write table.md, table.csv, table.json and plot.png of logs into `out` (DIR/report).

    Every system is compared with `vs`, and is equivalent if it is shown to differ by less than
    `equivalence` (a share: 0.02 is two points). If `site` is given, HTML pages are written into
    that folder. In the returned report, `files` has the written paths, and `text` the tables.
    """
    places = [Path(path) for path in _several(dirs)]
    options = ReportOptions(vs=vs, epochs=epochs, maj=maj, equivalence=equivalence)
    folder = Path(out) if out else report_folder(places[0])
    if site:
        refuse_foreign_site(Path(site), folder)
    beside = beside_a_report(places) if site else None
    result = write_report(places, folder, options, beside)
    if site:
        write_site(places, result, Path(site), SiteOptions(versions=suite_versions()), beside)
    return result


def grade(
    suite: str | Suite[Any],
    replies: Mapping[str, str],
    *,
    problems: str | Path | None = None,
    box: str | None = None,
    task_args: Mapping[str, Any] | None = None,
) -> dict[str, Grade]:
    """Grade replies from any source (question id -> reply); calls no model.

    The questions are the suite's own, or those of `problems`, a file with the benchmark's rows.
    Programs run in the sandbox `box`; `task_args` are arguments of a suite that is an Inspect task.
    Raises UserError for an unknown question.
    """
    if isinstance(suite, str):
        suite = find_grader(whole_catalogue().suites, suite, task_args)
    return grade_replies(suite, replies, boxes(), Path(problems) if problems else None, box)
