"""The commands that ask models and report what they said: run, report, demo, record."""

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.cli.parts import catalogue, controls
from harness.errors import UserError
from harness.escape import say


def run_command(args: argparse.Namespace) -> int:
    """Run systems on suites over a pool; say what is left."""
    from harness.compose import Request, chosen_suites
    from harness.extent import without_prompt
    from harness.run import run

    request = Request(
        suites=tuple(args.suite),
        systems=tuple(args.system),
        pool=args.pool,
        log_dir=args.log_dir,
        limit=args.limit,
        epochs=args.epochs,
        seed=args.seed,
        split=args.split,
        prompt=args.prompt,
        max_usd=args.max_usd,
        max_usd_per_query=args.max_usd_per_query,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
        time_scale=args.time_scale,
        display=args.display,
        train_calls=args.train_calls,
        train_on=tuple(args.train_on),
        match=args.match,
        worker_cards=args.worker_cards,
    )
    if args.like and not args.dry_run:
        raise UserError("--like goes with --dry-run: add it, or leave --like out.")
    parts = catalogue()
    if said := without_prompt(chosen_suites(request, parts), request.prompt):
        say(said)
    moved = _say_who_sits(request, parts)
    if args.dry_run:
        code = _dry_run(request, parts, args.like)
        say("\n".join(moved), end="\n" if moved else "")
        return code
    if request.max_usd or request.max_usd_per_query:
        _check_limits(request, parts)
    for line in moved:
        say(line)
    return _said(run(request, parts, controls()), args.log_dir)


def _say_who_sits(request: Any, parts: Any) -> list[str]:
    """Say which systems of a named group do not fit; return whose graders have moved since."""
    from harness.asked import read_request
    from harness.compose import chosen_suites
    from harness.field import GROUPS, default_systems, moved_graders, unusable
    from harness.pool_file import read_pool

    spec, suites = read_pool(request.pool), chosen_suites(request, parts)
    names = request.systems or default_systems(parts, spec, suites)
    if {*names} & {*GROUPS}:
        asked = read_request(request, parts, ready=False)
        names = asked.systems
        for line in asked.left_out:
            say(f"Left out: {line}")
    fitting = [name for name in names if not unusable(name, parts, spec, suites)]
    if moved := moved_graders(fitting, parts):
        read_request(request, parts, ready=False)  # what is refused is refused in one sentence
    return moved


def _said(outcome: Any, log_dir: Path) -> int:
    """Print what a run has left; return its exit code."""
    for reason in outcome.trouble:
        say(f"podium: unanswered: {reason}", file=sys.stderr)
    if not outcome.finished:
        say("podium: what is answered is kept; a next run asks the rest only.", file=sys.stderr)
        return 1
    say(f"Logs are in {log_dir}; now: podium report {log_dir}")
    if outcome.unscored:
        say(
            f"podium: {outcome.unscored} answers have no verdict (the report says why); the same "
            "command tries again to grade them, and asks nobody else.",
            file=sys.stderr,
        )
    return 1 if outcome.unscored else 0


def _dry_run(request: Any, parts: Any, like: list[Path]) -> int:
    from harness.estimate.estimate import estimate
    from harness.estimate.text import as_text

    say(as_text(estimate(request, parts, controls(), like), request), end="")
    return 0


def _check_limits(request: Any, parts: Any) -> None:
    """Say what a limit does to a run, one line each; UserError where no call would be made."""
    from harness.asked import read_request
    from harness.estimate.estimate import estimate
    from harness.estimate.text import refuse_too_little, warning
    from harness.preflight import one_at_a_time

    found = estimate(request, parts, controls())
    refuse_too_little(found, request)
    if said := warning(found, request):
        say(f"podium: {said}", file=sys.stderr)
    asked = read_request(request, parts, ready=False)
    for name, why in one_at_a_time(asked.spec, asked.book).items():
        said = f"under a limit {name!r} is asked one call at a time: {why}"
        say(f"podium: {said}.", file=sys.stderr)


def report_command(args: argparse.Namespace) -> int:
    """Write table.md, table.csv, table.json and plot.png from logs alone."""
    from reports.report import write_report

    first = args.dirs[0]
    out = args.out or (first.parent if first.is_file() else first) / "report"
    if getattr(args, "targets", False):
        return _targets(args.dirs, out)
    report = write_report(args.dirs, out, _wanted(args))
    say(report.text)
    say(f"Written to {out}: {', '.join(path.name for path in report.files)}")
    return 0


def _targets(dirs: list[Path], out: Path) -> int:
    from reports.targets import write_targets

    text, files = write_targets(dirs, out)
    say(text)
    say(f"Written to {out}: {', '.join(path.name for path in files)}")
    return 0


def _wanted(args: argparse.Namespace) -> Any:
    """Return what is asked of a report; a demo's report is asked for nothing special."""
    from reports.blocks import ReportOptions

    names = ("vs", "epochs", "maj", "derived", "published")
    return ReportOptions(**{name: getattr(args, name) for name in names if hasattr(args, name)})


def demo_command(args: argparse.Namespace) -> int:
    """Run every system on the practice suites and on recorded AIME25, then report."""
    from harness.demo import demo

    dirs = demo(args.out, catalogue(), controls(), questions=args.limit, say=say)
    args.dirs, args.out = dirs, args.out / "report"
    return report_command(args)


def record_command(args: argparse.Namespace) -> int:
    """Turn logs into a cassette that replays them."""
    from harness.logs import find_logs
    from harness.record import record

    say(record(find_logs(args.logs), args.out))
    return 0
