"""Every part by name, for all commands; and the commands that list parts or look after them.

The only place where all spokes meet; they are imported inside functions, as few commands need them.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, cast

from podium.cli.commands import build_parser
from podium.harness.errors import UserError
from podium.harness.files import read_toml
from podium.harness.text import records, say, say_listing


def whole_catalogue() -> Any:
    """Return every part that can be named: the only place where all spokes meet."""
    import_module("podium.suites._registry")  # it also says where imported recordings come from

    from podium.baselines import SYSTEMS as BASELINES
    from podium.baselines import _registry as written_by_hand
    from podium.conductor import SYSTEMS as CONDUCTORS
    from podium.conductor import _registry as conductors
    from podium.harness.run.catalogue import Catalogue
    from podium.suites import SUITES

    def factory(registry_name: str) -> Callable[..., Any]:
        name = registry_name.rpartition("/")[2]
        return getattr(conductors if hasattr(conductors, name) else written_by_hand, name)

    return Catalogue(
        suites=SUITES,
        systems={**BASELINES, **CONDUCTORS},
        solver=lambda name, args: factory(name)(**args),
        parameters=lambda name: signature(factory(name)).parameters.keys(),
        boxes=boxes(),
        draw_pools=draw_pools,
    )


def draw_pools(count: int) -> Any:
    """Return a pool of so many pools of practice workers, drawn for training."""
    from podium.suites.practice.workers.drawing import draw_many

    return draw_many(count)


def suite_versions() -> dict[str, str]:
    """Return the version of each suite as it is here."""
    from podium.suites import SUITES

    return {name: suite.version for name, suite in SUITES.items()}


def boxes() -> Any:
    """Return how sandboxes are had; what they complain about is the user's to mend, so UserError.

    It is only here that a SandboxError is a refusal: later on it leaves a reply ungraded.
    """
    from podium import sandbox
    from podium.harness.boxes import Boxes

    def mended(act: Callable[..., Any], *given: Any) -> Any:
        try:
            return act(*given)
        except sandbox.SandboxError as error:
            raise UserError(str(error)) from error

    def describe(box: Any, image: str) -> Any:
        return mended(box.facts, image)

    def engine() -> str:
        from podium.sandbox.images import (
            connect,  # with every box, so where Docker is asked for only
        )

        try:
            connect(timeout_s=5).close()
        except sandbox.SandboxError as error:
            return str(error)
        return ""

    return Boxes(open=partial(mended, sandbox.open_box), describe=describe, engine=engine)


def controls() -> Any:
    """Return the choices that need parts of several spokes."""
    from podium.baselines.oracle import make_plans
    from podium.baselines.single import choose
    from podium.harness.run.evaluate import Controls
    from podium.suites import log_eval_access, strip_instruction

    return Controls(
        choose=choose, make_plans=make_plans, opened=log_eval_access, bare=strip_instruction
    )


def suites_command(args: argparse.Namespace) -> int:
    """Print all suites or one; return 0."""
    from podium.harness.run.catalogue import show_suites
    from podium.suites.data_command import describe_sources

    known, name = whole_catalogue().suites, args.name
    sources = describe_sources(known[name]) if name is not None and name in known else ()
    say_listing(args, *show_suites(known, name, sources))
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Run an action on local data; return its exit code."""
    from podium.suites import data_command as data

    if args.action == "fetch":
        return data.fetch_data(args.names, args.data, say)
    if not args.json:
        acts = {"verify": data.verify_data, "list": data.show_data}
        return acts[args.action](args.names, args.data, say)
    if args.action == "list":
        say_listing(args, data.list_data(args.names, args.data), "")
        return 0
    found = {item.name: [*data.check_item(item, args.data)] for item in data.data_items(args.names)}
    say_listing(args, found, "")
    return 1 if any(one.state == "wrong" for several in found.values() for one in several) else 0


def systems_command(args: argparse.Namespace) -> int:
    """Print all systems or one; return 0."""
    from podium.harness.run.catalogue import show_systems

    say_listing(args, *show_systems(whole_catalogue().systems, args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """Print a pool's workers; return 0."""
    from podium.harness.pool_config import read_pool
    from podium.harness.prices import read_book
    from podium.harness.run.catalogue import show_workers

    spec = read_pool(args.pool)
    say_listing(args, *show_workers(spec, read_book(spec.prices)))
    return 0


def doctor_command(args: argparse.Namespace) -> int:
    """Print what was found; return 1 where something is to be fixed."""
    from podium.cli.run import run_request
    from podium.harness.run.catalogue import with_own
    from podium.harness.run.experiment import NEW
    from podium.harness.run.run import examine, examine_run

    if args.yes and not args.drill:
        raise UserError("--yes agrees to the price of a drill: add --drill, or leave it out.")
    known = whole_catalogue()
    if args.suite or args.system:
        request = run_request(args, log_dir=args.log_dir or NEW)
        found = examine_run(*with_own(request, known), controls())
    else:
        found = examine(args.pool, args.box, known)
    if args.drill:
        found = _drilled(found, args)
    lines = [*found.facts, *(f"- {one}" for one in found.problems)]
    lines += [f"- note: {note}" for note in found.notes]
    lines.append(
        f"{found.what}: " + (f"{len(found.problems)} to fix." if found.problems else "ready.")
    )
    say_listing(args, found, "\n".join(lines))
    return 1 if found.problems else 0


def _drilled(found: Any, args: argparse.Namespace) -> Any:
    """Return what a doctor has found with what a drill adds, once its price is agreed to."""
    from podium.harness.pool_config import read_pool
    from podium.harness.prices import read_book
    from podium.harness.run.drill import drill, drill_price, drill_total, fit_for_drill

    spec = read_pool(args.pool)
    book = read_book(spec.prices)
    slots = fit_for_drill(spec, book)
    say(drill_price(slots, book), file=sys.stderr)
    if not (args.yes or _agreed()):
        return replace(found, notes=(*found.notes, "the drill was not agreed to: nobody was asked"))
    drilled = drill(spec, book, slots)
    return replace(
        found,
        problems=(*found.problems, *(said for one in drilled for said in one.problems)),
        notes=(*found.notes, *(said for one in drilled for said in one.notes)),
        facts=(*found.facts, drill_total(drilled)),
    )


def _agreed() -> bool:
    """Ask at the terminal; UserError where there is none."""
    if not sys.stdin.isatty():
        raise UserError("A drill spends money, and no terminal is here to agree: add --yes.")
    say("Ask them? [y/N] ", file=sys.stderr, end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def sandbox_command(args: argparse.Namespace) -> int:
    """Run an action on images; return its exit code."""
    from podium.sandbox import SandboxError, images

    try:
        if args.action == "build" and args.box == "bwrap":
            return images.build_for_bwrap(say)
        if args.action == "build":
            return images.build_image(args.image, args.base_image, say)
        if args.action == "clean":
            return images.clean_engine(everything=args.all, say=say)
        lines: list[str] = []
        code = images.sandbox_status(lines.append)
        parts = [(what, said) for what, _, said in (line.partition(": ") for line in lines)]
        say_listing(args, records(("what", "says"), parts), "\n".join(lines))
        return code
    except SandboxError as error:
        raise UserError(str(error)) from error


HOME = Path(__file__).parents[2]
GROUPS = "all contestants routers controls frameworks single"
SYSTEMS = """
best-single self-consistency moa-paper moa-lite moa-3 self-moa fusion remom confidence ratings
self-reflection long-context best-of-n debate best-of-n-tests retry warming escalation ab-mcts
planner-executor-verifier router-knn router-cluster router-logistic router-mlp router-mf
router-contrastive router-llm smoothie-global smoothie-local cascade cascade-automix cascade-frugal
mas-sample router-mas random-trinity trinity random-worker random-workflow template-router
compute-matched-usd compute-matched-tokens rules-planner oracle langgraph langchain openai-agents
autogen ag2 agent-framework crewai conductor conductor-adaptive conductor-cost-aware
conductor-untrained conductor-served conductor-smollm conductor-prompted conductor-recursive
conductor-best-single
"""
"""Kept by hand: systems stand in code, whose import takes seconds, which no shell's start has."""


def completion_command(args: argparse.Namespace) -> int:
    """Print a script for a shell, with the names of today; return 0."""
    import shtab

    parser = build_parser()
    names = known_names()
    for command, action in every_action(parser):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE
        elif found := names.get(f"{command} {action.dest}") or names.get(action.dest):
            action.choices = found
    say(shtab.complete(parser, args.shell))
    return 0


def known_names() -> dict[str, list[str]]:
    """Return what may stand for an argument, by its name, also behind that of its command."""
    suites = [*read_toml(HOME / "suites" / "cards.toml")]
    systems = [*SYSTEMS.split(), *GROUPS.split()]
    pools, books = (_stems(HOME / "harness" / part) for part in ("pools", "prices"))
    return {
        **dict.fromkeys(("suite", "train_on", "suites name", "data names"), suites),
        **dict.fromkeys(("system", "match", "vs", "systems name"), systems),
        **dict.fromkeys(("book", "books", "old", "new"), books),
        "pool": pools,
        "config": _stems(HOME / "conductor" / "configs"),
    }


def _stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def every_action(
    parser: argparse.ArgumentParser, command: str = ""
) -> Iterator[tuple[str, argparse.Action]]:
    """Yield every argument with the first word of the command that takes it."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse lists them here
        commands: Any = action.choices
        if isinstance(commands, dict):
            for name, inner in cast("dict[str, Any]", commands).items():
                yield from every_action(inner, command or name)
        else:
            yield command, action
