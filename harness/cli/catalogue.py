"""Every part by name, for all commands; and the commands that list parts or look after them.

The only place where all spokes meet; they are imported inside functions, as few commands need them.
"""

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from harness.errors import UserError
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

    def mended(act: Callable[..., Any], *given: Any) -> Any:
        try:
            return act(*given)
        except sandbox.SandboxError as error:
            raise UserError(str(error)) from error

    def describe(box: Any, image: str) -> Any:
        return mended(box.facts, image)

    def engine() -> str:
        from sandbox.images import connect  # with every box, so where Docker is asked for only

        try:
            connect(timeout_s=5).close()
        except sandbox.SandboxError as error:
            return str(error)
        return ""

    return Boxes(open=partial(mended, sandbox.open_box), describe=describe, engine=engine)


def controls() -> Any:
    """Return the choices that need parts of several spokes."""
    from baselines.oracle import make_plans
    from baselines.single import choose
    from harness.run.evaluate import Controls
    from suites import log_eval_access, strip_instruction

    return Controls(
        choose=choose, make_plans=make_plans, opened=log_eval_access, bare=strip_instruction
    )


def suites_command(args: argparse.Namespace) -> int:
    """Print all suites or one; return 0."""
    from harness.run.catalogue import show_suites
    from suites.data_command import describe_sources

    known, name = whole_catalogue().suites, args.name
    sources = describe_sources(known[name]) if name is not None and name in known else ()
    say(show_suites(known, name, sources))
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Run an action on local data; return its exit code."""
    from suites import data_command as data

    acts = {"fetch": data.fetch_data, "verify": data.verify_data, "list": data.show_data}
    return acts[args.action](args.names, args.data, say)


def systems_command(args: argparse.Namespace) -> int:
    """Print all systems or one; return 0."""
    from harness.run.catalogue import show_systems

    say(show_systems(whole_catalogue().systems, args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """Print a pool's workers; return 0."""
    from harness.pool_config import read_pool
    from harness.prices import read_book
    from harness.run.catalogue import show_workers

    spec = read_pool(args.pool)
    say(show_workers(spec, read_book(spec.prices)))
    return 0


def doctor_command(args: argparse.Namespace) -> int:
    """Print what was found; return 1 where something is to be fixed."""
    from harness.cli.run import run_request
    from harness.run.doctor import NEW, examine, examine_run

    run = (
        examine_run(run_request(args, log_dir=args.log_dir or NEW), whole_catalogue(), controls())
        if args.suite or args.system
        else None
    )
    found = run or examine(args.pool, args.box, whole_catalogue())
    problems = (f"- {problem}" for problem in found.problems)
    for line in (*found.facts, *problems, *(f"- note: {note}" for note in found.notes)):
        say(line)
    say(f"{found.what}: " + (f"{len(found.problems)} to fix." if found.problems else "ready."))
    return 1 if found.problems else 0


def sandbox_command(args: argparse.Namespace) -> int:
    """Run an action on images; return its exit code."""
    from sandbox import SandboxError, images

    try:
        if args.action == "build":
            return images.build_image(args.image, args.base_image, say)
        if args.action == "clean":
            return images.clean_engine(everything=args.all, say=say)
        return images.sandbox_status(say)
    except SandboxError as error:
        raise UserError(str(error)) from error
