"""Commands that read logs and show results: report, view and power."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.cli.arguments import taken
from podium.cli.list_commands import suite_versions
from podium.harness.errors import UserError
from podium.harness.text import fitted_text, say


def report_command(args: argparse.Namespace) -> int:
    """Write a report of logs, and print it; return 0, or with --gate the exit code of its rules."""
    from podium.cli.gate_option import GateOption
    from podium.reports.audit import beside_a_report
    from podium.reports.blocks import ReportOptions
    from podium.reports.columns import LIST, column_list
    from podium.reports.curve import best_at_each_price, refuse_curve, write_curve
    from podium.reports.paper import PAPER_MARKS, paper_contents
    from podium.reports.render import refuse_foreign, report_folder, write_files
    from podium.reports.report import MARKS, report_of

    if args.columns == LIST:
        say(column_list())
        return 0
    dirs, trainings = _apart(args)
    if args.curve:
        refuse_curve(args.curve)
    gate, out = GateOption(args), args.out or report_folder(dirs[0])
    against = _against(args, dirs, out, gate)
    if args.against and not args.site:
        return gate.code(dirs)
    refuse_foreign(out, MARKS | PAPER_MARKS if args.latex else MARKS)
    beside = beside_a_report(dirs) if args.site or args.gate else None
    report = report_of(dirs, taken(ReportOptions, args), beside)
    gate.bind(report)
    contents = {**report.contents, **(paper_contents(report) if args.latex else {})}
    report = replace(report, contents=contents, files=write_files(out, contents))
    _say_written(report.text, report.files, out)
    if args.curve:
        write_curve(report.rows, args.curve)
        say(f"{best_at_each_price(report.rows)}\nDrawn in {args.curve}")
    if args.site:
        say_site(dirs, report, args.site, beside, trainings=trainings, against=against)
    return gate.code(dirs, beside)


def _against(args: argparse.Namespace, dirs: Sequence[Path], out: Path, gate: Any) -> Any:
    """With --site, return the comparison with --against; else print it, if any, and return None."""
    from podium.reports.against import difference_of_runs, write_against
    from podium.reports.report import report_of
    from podium.reports.site import refuse_foreign_site

    if args.site:
        refuse_foreign_site(args.site, out)
        return difference_of_runs(dirs, args.against) if args.against else None
    if args.against:
        if args.gate:
            gate.bind(report_of(dirs))
        _say_written(*write_against(dirs, args.against, out), out)
    return None


def _apart(args: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """Return the directories of runs, and those of trainings; UserError if options conflict."""
    from podium.reports.training_runs import is_training

    trainings = [folder for folder in args.dirs if is_training(folder)]
    dirs = [folder for folder in args.dirs if folder not in trainings]
    chosen = (args.vs, args.epochs, args.maj, args.derived, args.published)
    chosen = (*chosen, args.columns, args.latex, args.equivalence, args.curve, args.choices)
    refused = {
        "There is no run in DIR. Use `podium train --plot DIR... --to FOLDER` for trainings.": (
            not dirs
        ),
        "--targets was removed. Use `python -m tests.benchmarks.targets DIR` in a checkout to "
        "check trained systems against their targets.": args.targets,
        "--against accepts only --out, --site and --gate. Leave the other options out.": (
            args.against and not args.site and any(chosen)
        ),
        "Only pages show a training next to a comparison. Add --site DIR, or leave it out.": (
            trainings and not args.site
        ),
    }
    for sentence in (text for text, true in refused.items() if true):
        raise UserError(sentence)
    return dirs, trainings


def _say_written(text: str, files: Sequence[Path], out: Path) -> None:
    say(text)
    say(f"Written to {out}: {', '.join(path.name for path in files)}")


def say_site(dirs: Sequence[Path], report: Any, out: Path, beside: Any = None, **opts: Any) -> None:
    """Write a report's HTML pages, with further `SiteOptions`, and print the pages' address."""
    from podium.reports.site import SiteOptions, write_site

    pages = write_site(dirs, report, out, SiteOptions(versions=suite_versions(), **opts), beside)
    say("\n".join((*pages.notes, f"To look at: {pages.address}")))


def view_command(args: argparse.Namespace) -> int:
    """Serve the pages of runs until a signal stops the server; return 0."""
    from podium.reports.blocks import ReportOptions
    from podium.reports.site.view import ViewOptions, serve_view

    report = taken(ReportOptions, args)
    serve_view(args.dirs, say, ViewOptions(args.port, report, suite_versions()))
    return 0


def power_command(args: argparse.Namespace) -> int:
    """Print how many questions and epochs an effect needs to be detected; return 0."""
    from podium.reports.power import assumed_variance, measured_variances, power_text

    guess = {key: getattr(args, key) for key in ("discordant", "accuracy", "correlation", "within")}
    if args.dirs and set(guess.values()) != {None}:
        raise UserError(
            "--from estimates the variance from logs. Leave --discordant, --accuracy, "
            "--correlation and --within out."
        )
    if args.vs and not args.dirs:
        raise UserError("--vs needs logs that have this system. Add their directory with --from.")
    sources = (
        measured_variances(args.dirs, args.vs)
        if args.dirs
        else [assumed_variance(args.effect, **guess)]
    )
    texts = (power_text(source, args.effect, args.epochs, args.questions) for source in sources)
    say(fitted_text("\n\n".join(texts)))
    return 0
