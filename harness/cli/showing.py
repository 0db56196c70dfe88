"""The commands that say what there is and what is missing, and look after sandboxes."""

import argparse
from typing import Any

from harness.cli.parts import catalogue, controls
from harness.errors import UserError
from harness.escape import say


def suites_command(args: argparse.Namespace) -> int:
    """List the suites, or print one suite's card."""
    from harness.listing import show_suites

    known = catalogue().suites
    if args.name is None or args.name not in known:
        say(show_suites(known, args.name))
        return 0
    from suites.pins import pins_of

    say(show_suites(known, args.name, pins_of(known[args.name])))
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Fetch the questions that suites pin, or verify what is here."""
    from suites import data_checks, data_downloads

    act = data_downloads.fetch if args.action == "fetch" else data_checks.verify
    return act(args.names, args.data)


def systems_command(args: argparse.Namespace) -> int:
    """List the systems, or print one system's manifest."""
    from harness.manifest_text import show_systems

    say(show_systems(catalogue().systems, args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """List a pool's workers with their prices and settings."""
    from harness.listing import show_workers
    from harness.pool_file import read_pool
    from harness.prices import read_book

    spec = read_pool(args.pool)
    say(show_workers(spec, read_book(spec.prices)))
    return 0


def doctor_command(args: argparse.Namespace) -> int:
    """Say what is missing before anything is spent, of a pool or of a whole run."""
    from harness.doctor import examine, examine_run

    run = examine_run(_wanted(args), catalogue(), controls()) if args.suite or args.system else None
    found = run or examine(args.pool, args.box, catalogue())
    for fact in found.facts:
        say(fact)
    for problem in found.problems:
        say(f"- {problem}")
    for note in found.notes:
        say(f"- note: {note}")
    say(f"{found.what}: " + (f"{len(found.problems)} to fix." if found.problems else "ready."))
    return 1 if found.problems else 0


def _wanted(args: argparse.Namespace) -> Any:
    """Return the run that a doctor is asked about."""
    from harness.compose import Request
    from harness.doctor import NEW

    return Request(
        suites=tuple(args.suite),
        systems=tuple(args.system),
        pool=args.pool,
        log_dir=args.log_dir or NEW,
        limit=args.limit,
        split=args.split,
        box=args.box,
        train_calls=args.train_calls,
        train_on=tuple(args.train_on),
        match=args.match,
        worker_cards=args.worker_cards,
    )


def sandbox_command(args: argparse.Namespace) -> int:
    """Make, show or remove what programs run in: images and containers."""
    from sandbox import SandboxError, images

    try:
        if args.action == "build":
            return images.build_image(args.image, args.base_image, say)
        if args.action == "clean":
            return images.clean_engine(everything=args.all, say=say)
        return images.sandbox_status(say)
    except SandboxError as error:
        raise UserError(str(error)) from error
