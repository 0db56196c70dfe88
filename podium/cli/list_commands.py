"""Every part by name, for all commands; and the commands that list parts or look after them."""

import argparse
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

from podium.cli.arguments import say_listing
from podium.harness.errors import UserError
from podium.harness.text import fitted_text, records, say


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
        room, _, name = registry_name.rpartition("/")
        if room in ROOMS:
            return getattr(conductors if hasattr(conductors, name) else written_by_hand, name)
        return registered_solver(registry_name)

    suites, systems = InstalledParts("podium.suites"), InstalledParts("podium.systems")
    return Catalogue(
        suites=ChainMap[str, Any](cast(Any, SUITES), cast(Any, suites)),
        systems=ChainMap({**BASELINES, **CONDUCTORS}, cast(Any, systems)),
        solver=lambda name, args: factory(name)(**args),
        parameters=lambda name: signature(factory(name)).parameters,
        boxes=boxes(),
        draw_pools=draw_pools,
        ours=frozenset((*SUITES, *BASELINES, *CONDUCTORS)),
        package=lambda name: (suites if name in suites else systems).package(name),
    )


ROOMS = ("podium", "baselines", "conductor")  # of names of our solvers, the latter two before 0.2


def registered_solver(name: str) -> Callable[..., Any]:
    """Return what makes a solver of other people's; UserError where nothing has registered it."""
    from inspect_ai._util.registry import registry_lookup

    made = registry_lookup("solver", name)
    if made is None:
        raise UserError(
            f"No solver is called {name!r}: pass the function that makes the system to "
            "podium.registered, and name its card's solver as that function without _system; in a "
            "package, PACKAGE/NAME."
        )
    return cast(Callable[..., Any], made)


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

    known, name = whole_catalogue(), args.name
    if args.inspect:
        from podium.harness.task_suite import show_tasks

        say_listing(args, *show_tasks())
        return 0
    if args.rules:
        return _rules_command(args, known.suites)
    here = name is not None and name in known.suites and name in known.ours
    sources = describe_sources(known.suites[name]) if here else ()
    say_listing(args, *show_suites(known, name, sources, _cutoffs(args)))
    return 0


def _cutoffs(args: argparse.Namespace) -> Mapping[str, str]:
    """Return the knowledge cutoff of each worker of `--pool`; none without it."""
    from podium.harness.pool_config import read_pool

    if args.pool and not args.name:
        raise UserError("--pool holds its workers against one suite: name the suite, too.")
    return {one.name: one.cutoff for one in read_pool(args.pool).workers} if args.pool else {}


def _rules_command(args: argparse.Namespace, suites: Mapping[str, Any]) -> int:
    """Print the table of rules by which a suite reads replies; return 0."""
    from podium.harness.rules import rule_table
    from podium.harness.run.catalogue import find_named
    from podium.harness.suite import Explained

    if args.name is None or not isinstance(find_named(suites, args.name, "suite"), Explained):
        raise UserError(
            f"--rules prints how a suite reads answers out of text; {args.name or 'no suite'} does "
            "not: name one such as gpqa-diamond, mmlu, aime25, math500 or rlpr."
        )
    say_listing(args, *rule_table())
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Run an action on local data; return its exit code."""
    from podium.suites import data_command as data

    if args.action == "fetch":
        return data.fetch_data(args.names, args.data, say)
    if not args.json:
        acts = {"verify": data.verify_data, "list": data.show_data}
        return acts[args.action](args.names, args.data, lambda text: say(fitted_text(text)))
    if args.action == "list":
        say_listing(args, data.list_data(args.names, args.data), "")
        return 0
    found = {item.name: [*data.check_item(item, args.data)] for item in data.data_items(args.names)}
    say_listing(args, found, "")
    return 1 if any(one.state == "wrong" for several in found.values() for one in several) else 0


def systems_command(args: argparse.Namespace) -> int:
    """Print all systems or one; return 0."""
    from podium.harness.run.catalogue import show_systems

    say_listing(args, *show_systems(whole_catalogue(), args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """Print a pool's workers; return 0."""
    from podium.harness.pool_config import read_pool
    from podium.harness.run.catalogue import show_workers

    spec = read_pool(args.pool)
    if args.profile:
        say_listing(args, *_profile(args.profile, spec))
    else:
        say_listing(args, *show_workers(spec, spec.book()))
    return 0


def _profile(folder: Path, spec: Any) -> tuple[Any, str]:
    """Return what a pool's workers showed in a run, and the same as a text."""
    from podium.harness.profiles import measured_in, read_profile
    from podium.reports.profile_table import kinds_text, profile_text

    known = whole_catalogue().suites
    profile = read_profile(folder, spec, {name: known[name].version for name in known})
    text = f"{profile_text(profile)}\n\n{kinds_text(spec.names, measured_in(folder, spec.names))}"
    return {**asdict(profile), "sha256": profile.sha256}, text


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


Group = Literal["podium.suites", "podium.systems", "podium.exporters"]
OURS = "podium"


class InstalledParts(Mapping[str, Any]):
    """Parts of one group by name; a package is imported when its part is first asked for."""

    def __init__(self, group: Group) -> None:
        """Read nothing yet: looking through all installed packages takes some 30 ms."""
        self._group: Group = group
        self._loaded: dict[str, Any] = {}

    @cached_property
    def _entries(self) -> Mapping[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._group)}

    def __getitem__(self, name: str) -> Any:
        """Return a part; KeyError where there is none, UserError where it cannot be had."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self._entries[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Say whether a package offers a part of this name, whether or not it can be loaded."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield names; nothing is imported."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._entries)

    def package(self, name: str) -> str:
        """Return which package and version a part is from; ours where none offers it.

        >>> InstalledParts("podium.systems").package("moa-lite")
        'podium'
        """
        entry = self._entries.get(name)
        return f"{entry.dist.name} {entry.dist.version}" if entry and entry.dist else OURS

    def _load(self, entry: EntryPoint) -> Any:
        noun = self._group.removeprefix("podium.").removesuffix("s")
        offers = f"{self.package(entry.name)} offers the {noun} {entry.name!r}"
        try:
            part = entry.load()
        except Exception as error:  # it is other people's code
            raise UserError(
                f"{offers}, which cannot be loaded ({type(error).__name__}: {error}): mend or "
                "uninstall that package."
            ) from error
        wanted = {"suite": "grade", "system": "solver", "exporter": "__call__"}[noun]
        if not hasattr(part, wanted):
            raise UserError(f"{offers}, and {entry.value} is no {noun}: mend that package.")
        called = entry.name if noun == "exporter" else part.name
        if called != entry.name:
            raise UserError(
                f"{offers}, which calls itself {called!r}: one name in both, in that package."
            )
        return part
