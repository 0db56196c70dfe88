"""What there is and what is missing: suites, data, systems, workers, doctor, sandbox."""

import argparse
from pathlib import Path

from harness.cli.catalogue import controls, whole_catalogue
from harness.errors import UserError
from harness.text import say


def sandbox_arguments(sandbox: argparse.ArgumentParser) -> None:
    """Add what `podium sandbox` takes."""
    actions = sandbox.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="make the image that programs run in")
    build.add_argument(
        "--image", default="basic", choices=("basic", "bigcodebench"), help="which one (basic)"
    )
    build.add_argument(
        "--base-image", metavar="NAME", help="image with python3 to build on (a public Python's)"
    )
    actions.add_parser("status", help="say what can run programs here, and in which images")
    clean = actions.add_parser("clean", help="remove what killed runs and older builds left")
    clean.add_argument("--all", action="store_true", help="also every image that podium made")


def data_arguments(data: argparse.ArgumentParser) -> None:
    """Add what `podium data` takes."""
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)
    fetch = actions.add_parser("fetch", help="download what is pinned and not here yet")
    fetch.add_argument("names", nargs="+", metavar="SUITE", help="suite names")
    verify = actions.add_parser("verify", help="check what is here; download nothing")
    verify.add_argument("names", nargs="*", metavar="SUITE", help="suite names (all)")
    for action in (fetch, verify):
        action.add_argument(
            "--data", type=Path, metavar="DIR", help="folder of local data (PODIUM_DATA)"
        )


def listed_arguments(listed: argparse.ArgumentParser) -> None:
    """Add what `podium suites` and `podium systems` take."""
    listed.add_argument("name", nargs="?", help="show one in full")


def suites_command(args: argparse.Namespace) -> int:
    """List the suites, or print one suite's card."""
    from harness.run.catalogue import show_suites

    known = whole_catalogue().suites
    if args.name is None or args.name not in known:
        say(show_suites(known, args.name))
        return 0
    from suites.data_command import describe_sources

    say(show_suites(known, args.name, describe_sources(known[args.name])))
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Fetch the questions that suites pin, or verify what is here."""
    from suites import data_command

    act = data_command.fetch_data if args.action == "fetch" else data_command.verify_data
    return act(args.names, args.data)


def systems_command(args: argparse.Namespace) -> int:
    """List the systems, or print one system's manifest."""
    from harness.run.catalogue import show_systems

    say(show_systems(whole_catalogue().systems, args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """List a pool's workers with their prices and settings."""
    from harness.pool_config import read_pool
    from harness.prices import read_book
    from harness.run.catalogue import show_workers

    spec = read_pool(args.pool)
    say(show_workers(spec, read_book(spec.prices)))
    return 0


def doctor_command(args: argparse.Namespace) -> int:
    """Say what is missing before anything is spent, of a pool or of a whole run."""
    from harness.cli.run import run_request
    from harness.run.doctor import NEW, examine, examine_run

    run = (
        examine_run(run_request(args, log_dir=args.log_dir or NEW), whole_catalogue(), controls())
        if args.suite or args.system
        else None
    )
    found = run or examine(args.pool, args.box, whole_catalogue())
    for fact in found.facts:
        say(fact)
    for problem in found.problems:
        say(f"- {problem}")
    for note in found.notes:
        say(f"- note: {note}")
    say(f"{found.what}: " + (f"{len(found.problems)} to fix." if found.problems else "ready."))
    return 1 if found.problems else 0


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
