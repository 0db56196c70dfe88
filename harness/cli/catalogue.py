"""What commands share: every part of podium by name, and how arguments are read.

The only place where all spokes meet. What is slow to import is imported inside functions, for
`podium --help` reads this file on every call.
"""

import argparse
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from inspect import signature
from typing import Any

from harness.errors import UserError
from harness.files import decimal_of


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
    from suites.contamination import log_eval_access, strip_instruction

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
