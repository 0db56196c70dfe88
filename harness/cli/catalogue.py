"""What commands share: every part by name, how arguments are read; and those that list parts.

The only place where all spokes meet. What is slow to import is imported inside functions, for
`podium --help` reads this file on every call.
"""

import argparse
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.files import decimal_of
from harness.text import say


def whole_catalogue() -> Any:
    """Return every part that can be named: the only place where all spokes meet."""
    import_module("suites._registry")  # it also says where imported recordings come from

    from baselines import SYSTEMS as BASELINES
    from conductor import SYSTEMS as CONDUCTORS
    from harness.run.catalogue import Catalogue
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
    from sandbox.images import connect

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
    from baselines.oracle import make_plans
    from baselines.single import choose
    from harness.run.evaluate import Controls
    from suites import log_eval_access, strip_instruction

    return Controls(
        choose=choose, make_plans=make_plans, opened=log_eval_access, bare=strip_instruction
    )


MOST = 1_000_000_000
"""Of anything that is counted, and of dollars."""
EPOCHS = 10_000
SANDBOXES = 10_000
DIGITS = 30
Command = Callable[[argparse.Namespace], int]
"""Runs one command and returns its exit code; the first line of its docstring is its help."""


def dollars(text: str) -> Decimal:
    """Return a positive amount of US dollars."""
    try:
        value = decimal_of(text)
    except ValueError:
        said = f"{text[:40]!r} is not an amount in US dollars"
        raise argparse.ArgumentTypeError(said) from None
    if not 0 < value <= MOST:
        said = f"{text[:40]!r} is not a positive amount in US dollars, at most {MOST:,}"
        raise argparse.ArgumentTypeError(said)
    return value


def up_to(most: int) -> Callable[[str], int]:
    """Return what reads a whole number no larger than `most`.

    Numbers from there on are a slip of the hand, and lists as long as that fill any memory. What is
    too small is refused by who knows why.
    """

    def whole(text: str) -> int:
        if len(text) > DIGITS or abs(value := int(text)) > most:
            said = f"{text[:40]!r} is too large: {most:,} is the most"
            raise argparse.ArgumentTypeError(said)
        return value

    return whole


def finite(text: str) -> float:
    """Return a number from 0 up to a billion; NaN and infinity are none."""
    value = float(text)
    if not 0 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 to {MOST:,}")
    return value


def new_command(commands: Any, name: str, function: Command) -> argparse.ArgumentParser:
    """Return the parser of a command that calls `function`, described by its docstring."""
    text = (function.__doc__ or "").splitlines()[0]
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    made.set_defaults(command=function, command_name=name)
    return made


def box_arguments(graded: argparse.ArgumentParser) -> None:
    """Add where programs run and how many at once."""
    add = graded.add_argument
    add(
        "--box",
        help="sandbox for suites that run programs: docker, docker:runsc, bwrap, subprocess "
        "(docker; subprocess for rehearsal workers)",
    )
    add(
        "--max-sandboxes",
        type=up_to(SANDBOXES),
        metavar="N",
        help="programs that run at once (all cores)",
    )


def pool_arguments(pooled: argparse.ArgumentParser) -> None:
    """Add what `podium workers` takes."""
    pooled.add_argument("--pool", default="rehearsal", help="pool name or .toml file (rehearsal)")


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
