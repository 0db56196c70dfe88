"""The commands that say what there is and what is missing, and look after sandboxes."""

import argparse

from harness.cli.parts import catalogue
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
    """Say what is missing before anything is spent."""
    from harness.boxes import inspected
    from harness.pool_file import read_pool
    from harness.preflight import one_at_a_time, package_problems, problems, unpriced
    from harness.prices import read_book

    spec = read_pool(args.pool)
    book = read_book(spec.prices)
    found = [*package_problems(), *problems(spec, book)]
    if args.box:
        known = catalogue()
        facts, missing = inspected(known.boxes, args.box, known.suites.values())
        for fact in facts:
            say(fact)
        found += missing
    for problem in found:
        say(f"- {problem}")
    for name, why in one_at_a_time(spec, book).items():
        say(f"- note: under --max-usd {name!r} is asked one call at a time: {why}.")
    free = unpriced(spec, book) if spec.label != "live" else []
    if free:
        say(f"- note: no dollars for {', '.join(free)}: book {book.name!r} has no price for them.")
    say(f"Pool {spec.name!r} ({spec.label}): " + (f"{len(found)} to fix." if found else "ready."))
    return 1 if found else 0


def sandbox_command(args: argparse.Namespace) -> int:
    """Make, show or remove what programs run in: images and containers."""
    from sandbox import SandboxError, manage

    try:
        if args.action == "build":
            return manage.build_image(args.image, args.base_image, say)
        if args.action == "clean":
            return manage.clean(everything=args.all, say=say)
        return manage.status(say)
    except SandboxError as error:
        raise UserError(str(error)) from error
