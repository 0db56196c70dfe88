"""The commands that ask models and report what they said: run, report, power, demo, record."""

import argparse
from pathlib import Path
from typing import Any

from harness.cli.catalogue import controls, whole_catalogue
from harness.cli.commands import taken
from harness.errors import UserError
from harness.files import refuse_unwritable
from harness.text import say


def run_request(args: argparse.Namespace, **more: Any) -> Any:
    """Return the request that arguments make; those a command does not take keep their default."""
    from harness.run.catalogue import RunRequest

    names = {"suites": tuple(args.suite), "systems": tuple(args.system)}
    return taken(RunRequest, args, **names, train_on=tuple(args.train_on), **more)


def run_command(args: argparse.Namespace) -> int:
    """Run systems on suites, or estimate it; return 1 while something is left."""
    from harness.run.catalogue import with_own
    from harness.run.estimate import estimate, estimate_text
    from harness.run.run import podium_run, say_who_runs

    if args.like and not args.dry_run:
        raise UserError("--like goes with --dry-run: add it, or leave --like out.")
    request, parts = with_own(run_request(args), whole_catalogue())
    if not args.dry_run:
        return podium_run(request, parts, controls())
    moved = say_who_runs(request, parts, controls())
    say(estimate_text(estimate(request, parts, controls(), args.like), request), end="")
    say("\n".join(moved), end="\n" if moved else "")
    return 0


def report_command(args: argparse.Namespace) -> int:
    """Write a report of logs, and print it; return 0."""
    from reports.render import report_folder

    out = args.out or report_folder(args.dirs[0])
    if args.targets:
        from reports.targets import write_targets

        text, files = write_targets(args.dirs, out)
    else:
        from reports.blocks import ReportOptions
        from reports.report import write_report

        report = write_report(args.dirs, out, taken(ReportOptions, args))
        text, files = report.text, report.files
    say(text)
    say(f"Written to {out}: {', '.join(path.name for path in files)}")
    return 0


def demo_command(args: argparse.Namespace) -> int:
    """Run the demo, print each suite's table when it is done, and report on all; return 0."""
    from harness.run.demo import demo
    from reports.report import report_of, write_report

    def show(folder: Path) -> None:
        say(f"{report_of([folder])[0].text}\n")

    refuse_unwritable(args.out, "--out")
    dirs = demo(args.out, whole_catalogue(), controls(), args.limit, show)
    files = write_report(dirs, args.out / "report").files
    say(f"Written to {args.out / 'report'}: {', '.join(path.name for path in files)}")
    return 0


def record_command(args: argparse.Namespace) -> int:
    """Write a cassette; return 0."""
    from harness.cassette import record
    from harness.ledger.runs import find_logs

    refuse_unwritable(args.out.parent, "--out")
    say(record(find_logs(args.logs), args.out))
    return 0


def power_command(args: argparse.Namespace) -> int:
    """Print how many questions and epochs it takes; return 0."""
    from reports.power import assumed_variance, measured_variances, power_text

    guess = {one: getattr(args, one) for one in ("discordant", "accuracy", "correlation", "within")}
    if args.dirs and set(guess.values()) != {None}:
        raise UserError("--from takes the variance from logs: leave the assumptions out.")
    if args.vs and not args.dirs:
        raise UserError("--vs names a system in logs: name their directory with --from, too.")
    sources = (
        measured_variances(args.dirs, args.vs)
        if args.dirs
        else [assumed_variance(args.effect, **guess)]
    )
    say("\n\n".join(power_text(one, args.effect, args.epochs, args.questions) for one in sources))
    return 0
