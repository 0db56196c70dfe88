"""The command line, and the one module that knows every part of podium; nothing imports it.

Commands only compose: they hand suites, systems, pools and boxes to one another and print. Imports
of the spokes, and of anything slow, stand inside the functions that need them: `--help` is quick.
What a run refuses and does is harness/compose.py and harness/run.py.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from harness import arguments
from harness.errors import PodiumError, UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 2 after one sentence when the user can fix something."""
    args = build_parser().parse_args(argv)
    try:
        return args.command(args)
    except PodiumError as error:
        print(f"podium: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output, `head` say, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"podium: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npodium: stopped; the same command again finishes what is left.", file=sys.stderr)
        return 130


def catalogue() -> Any:
    """Return every part that can be named: the only place where all spokes meet."""
    import_module("suites._registry")  # it also says where imported recordings come from

    from baselines import SYSTEMS as BASELINES
    from conductor import SYSTEMS as CONDUCTORS
    from harness.compose import Catalogue
    from suites import SUITES

    def factory(registry_name: str) -> Callable[..., Any]:
        package, _, name = registry_name.partition("/")
        return getattr(import_module(f"{package}._registry"), name)

    return Catalogue(
        suites=SUITES,
        systems={**BASELINES, **CONDUCTORS},
        solver=lambda name, args: factory(name)(**args),
        parameters=lambda name: signature(factory(name)).parameters.keys(),
        boxes=boxes(),
    )


def boxes() -> Any:
    """Return how sandboxes are had; what they complain about is the user's to mend, so UserError.

    It is only here that a SandboxError is a refusal: later on it leaves a reply ungraded.
    """
    import sandbox
    from harness.boxes import Boxes
    from sandbox.engine import connect

    def open_box(name: str, max_sandboxes: int | None) -> Any:
        try:
            return sandbox.open_box(name, max_sandboxes)
        except sandbox.SandboxError as error:
            raise UserError(str(error)) from error

    def describe(box: Any, image: str) -> Any:
        try:
            return box.facts(image)
        except sandbox.SandboxError as error:
            raise UserError(str(error)) from error

    def engine() -> str:
        try:
            connect(timeout_s=5).close()
        except sandbox.SandboxError as error:
            return str(error)
        return ""

    return Boxes(open=open_box, describe=describe, engine=engine)


def controls() -> Any:
    """Return the choices that need parts of several spokes."""
    from baselines.oracle_plans import make_plans
    from baselines.single import choose
    from harness.job import Controls
    from suites.openings import log_opening

    return Controls(choose=choose, make_plans=make_plans, opened=log_opening)


def run_command(args: argparse.Namespace) -> int:
    """Run systems on suites over a pool; say what is left."""
    from harness.compose import Request
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
        max_usd=args.max_usd,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
        time_scale=args.time_scale,
        display=args.display,
    )
    outcome = run(request, catalogue(), controls())
    for reason in outcome.trouble:
        print(f"podium: unanswered: {reason}", file=sys.stderr)
    if not outcome.finished:
        print("podium: what is answered is kept; a next run asks the rest only.", file=sys.stderr)
        return 1
    print(f"Logs are in {args.log_dir}; now: podium report {args.log_dir}")
    return 0


def report_command(args: argparse.Namespace) -> int:
    """Write table.md, table.csv, table.json and plot.png from logs alone."""
    from reports.report import write_report

    first = args.dirs[0]
    out = args.out or (first.parent if first.is_file() else first) / "report"
    report = write_report(args.dirs, out)
    print(report.text)
    print(f"Written to {out}: {', '.join(path.name for path in report.files)}")
    return 0


def demo_command(args: argparse.Namespace) -> int:
    """Run every system on the practice suites and on recorded AIME25, then report."""
    from harness.demo import demo

    dirs = demo(args.out, catalogue(), controls(), questions=args.limit, say=print)
    args.dirs, args.out = dirs, args.out / "report"
    return report_command(args)


def record_command(args: argparse.Namespace) -> int:
    """Turn logs into a cassette that replays them."""
    from harness.logs import find_logs
    from harness.record import record

    print(record(find_logs(args.logs), args.out))
    return 0


def grade_command(args: argparse.Namespace) -> int:
    """Grade replies made anywhere; asks no model, resumes."""
    from harness.grade import GradeRequest, grade_file

    request = GradeRequest(
        suite=args.suite,
        replies=args.replies,
        out=args.out,
        problems=args.problems,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
    )
    graded = grade_file(request, catalogue())
    print(graded)
    if graded.unscored:
        print(f"podium: {graded.unscored} unscored, the first: {graded.reason}", file=sys.stderr)
        print("podium: the same command tries the unscored replies again.", file=sys.stderr)
    return 1 if graded.unscored else 0


def regrade_command(args: argparse.Namespace) -> int:
    """Grade logs again without asking any model."""
    from harness.regrade import box_for_logs, regrade_dir

    known = catalogue()
    with box_for_logs(args.dir, args.box, known, args.max_sandboxes) as box:
        results = regrade_dir(args.dir, known.suites, box, everything=args.all)
    for result in results:
        print(
            f"{result.log.name}: {result.graded} graded, {result.changed} verdicts changed, "
            f"{result.still_unscored} still unscored"
        )
    if not results:
        print("Nothing to grade: every answered question has a score (--all grades all again).")
    return 1 if any(result.still_unscored for result in results) else 0


def suites_command(args: argparse.Namespace) -> int:
    """List the suites, or print one suite's card."""
    from harness.listing import show_suites

    print(show_suites(catalogue().suites, args.name))
    return 0


def systems_command(args: argparse.Namespace) -> int:
    """List the systems, or print one system's manifest."""
    from harness.listing import show_systems

    print(show_systems(catalogue().systems, args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """List a pool's workers with their prices and settings."""
    from harness.listing import show_workers
    from harness.pool_file import read_pool
    from harness.prices import read_book

    spec = read_pool(args.pool)
    print(show_workers(spec, read_book(spec.prices)))
    return 0


def doctor_command(args: argparse.Namespace) -> int:
    """Say what is missing before anything is spent."""
    from harness.boxes import inspected
    from harness.pool_file import read_pool
    from harness.preflight import package_problems, problems, unpriced
    from harness.prices import read_book

    spec = read_pool(args.pool)
    book = read_book(spec.prices)
    found = [*package_problems(), *problems(spec, book)]
    if args.box:
        known = catalogue()
        facts, missing = inspected(known.boxes, args.box, known.suites.values())
        for fact in facts:
            print(fact)
        found += missing
    for problem in found:
        print(f"- {problem}")
    free = unpriced(spec, book) if spec.label != "live" else []
    if free:
        print(
            f"- note: no dollars for {', '.join(free)}: book {book.name!r} has no price for them."
        )
    print(f"Pool {spec.name!r} ({spec.label}): " + (f"{len(found)} to fix." if found else "ready."))
    return 1 if found else 0


def sandbox_command(args: argparse.Namespace) -> int:
    """Make, show or remove what programs run in: images and containers."""
    from sandbox import SandboxError, manage

    try:
        if args.action == "build":
            return manage.build_image(args.image, args.base_image, print)
        if args.action == "clean":
            return manage.clean(everything=args.all, say=print)
        return manage.status(print)
    except SandboxError as error:
        raise UserError(str(error)) from error


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its help is the reference."""
    parser = argparse.ArgumentParser(
        prog="podium",
        description="Does a small learned orchestrator beat what people use instead, at what cost?",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, function, add in (
        ("demo", demo_command, arguments.demo_arguments),
        ("run", run_command, arguments.run_arguments),
        ("report", report_command, arguments.report_arguments),
        ("record", record_command, arguments.record_arguments),
        ("grade", grade_command, arguments.grade_arguments),
        ("regrade", regrade_command, arguments.regrade_arguments),
        ("suites", suites_command, arguments.listed_arguments),
        ("systems", systems_command, arguments.listed_arguments),
        ("workers", workers_command, arguments.pool_arguments),
        ("doctor", doctor_command, arguments.doctor_arguments),
        ("sandbox", sandbox_command, arguments.sandbox_arguments),
    ):
        add(arguments.new_command(commands, name, function))
    return parser
