"""The catalogue of suites and systems; commands on suites, data, systems, workers and sandboxes."""

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
    """Return the catalogue of all suites, systems and sandboxes, from podium and other packages."""
    import_module("podium.suites._registry")  # it also registers the sources of imported recordings

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


ROOMS = ("podium", "baselines", "conductor")  # prefixes of podium's solvers; the last two are old


def registered_solver(name: str) -> Callable[..., Any]:
    """Return the function that makes another package's solver; UserError if none is registered."""
    from inspect_ai._util.registry import registry_lookup

    solver = registry_lookup("solver", name)
    if solver is None:
        raise UserError(
            f"There is no solver {name!r}. Pass the function that makes the system to "
            "podium.registered; the card's solver is that function's name without _system, or "
            "PACKAGE/NAME in a package."
        )
    return cast(Callable[..., Any], solver)


def draw_pools(count: int) -> Any:
    """Return a training pool that joins `count` randomly drawn pools of practice workers."""
    from podium.suites.practice.workers.drawing import draw_many

    return draw_many(count)


def suite_versions() -> dict[str, str]:
    """Return the installed version of each suite."""
    from podium.suites import SUITES

    return {name: suite.version for name, suite in SUITES.items()}


def boxes() -> Any:
    """Return functions that open and check sandboxes; they raise UserError for a SandboxError.

    A later SandboxError, of an open sandbox, does not end the run: the reply stays ungraded.
    """
    from podium import sandbox
    from podium.harness.boxes import Boxes

    def mended(act: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return act(*arguments)
        except sandbox.SandboxError as error:
            raise UserError(str(error)) from error

    def describe(box: Any, image: str) -> Any:
        return mended(box.facts, image)

    def engine() -> str:
        from podium.sandbox.images import (
            connect,  # slow, so imported only if Docker is checked
        )

        try:
            connect(timeout_s=5).close()
        except sandbox.SandboxError as error:
            return str(error)
        return ""

    return Boxes(open=partial(mended, sandbox.open_box), describe=describe, engine=engine)


def controls() -> Any:
    """Return functions that a run needs from packages that the harness does not import."""
    from podium.baselines.oracle import make_plans
    from podium.baselines.single import choose
    from podium.harness.run.evaluate import Controls
    from podium.suites import log_eval_access, strip_instruction

    return Controls(
        choose=choose, make_plans=make_plans, opened=log_eval_access, bare=strip_instruction
    )


def suites_command(args: argparse.Namespace) -> int:
    """Print all suites, or one suite's card; return 0."""
    from podium.harness.run.catalogue import show_suites
    from podium.suites.data_command import describe_sources

    catalogue, name = whole_catalogue(), args.name
    if args.inspect:
        from podium.harness.task_suite import show_tasks

        say_listing(args, *show_tasks())
        return 0
    if args.rules:
        return _rules_command(args, catalogue.suites)
    here = name is not None and name in catalogue.suites and name in catalogue.ours
    sources = describe_sources(catalogue.suites[name]) if here else ()
    say_listing(args, *show_suites(catalogue, name, sources, _cutoffs(args)))
    return 0


def _cutoffs(args: argparse.Namespace) -> Mapping[str, str]:
    """Return worker -> knowledge cutoff for the pool of `--pool`; empty without the option."""
    from podium.harness.pool_config import read_pool

    if args.pool and not args.name:
        raise UserError(
            "--pool compares its workers with the dates of one suite. Add the name of a suite."
        )
    return {slot.name: slot.cutoff for slot in read_pool(args.pool).workers} if args.pool else {}


def _rules_command(args: argparse.Namespace, suites: Mapping[str, Any]) -> int:
    """Print the table of rules that extract answers from replies; return 0."""
    from podium.harness.rules import rule_table
    from podium.harness.run.catalogue import find_named
    from podium.harness.suite import Explained

    if args.name is None or not isinstance(find_named(suites, args.name, "suite"), Explained):
        other = f", not {args.name}" if args.name else ""
        raise UserError(
            "--rules needs a suite that extracts answers from text, such as gpqa-diamond, mmlu, "
            f"aime25, math500 or rlpr{other}."
        )
    say_listing(args, *rule_table())
    return 0


def data_command(args: argparse.Namespace) -> int:
    """Run `podium data fetch`, `verify` or `list`; return the exit code."""
    from podium.suites import data_command as data

    if args.action == "fetch":
        return data.fetch_data(args.names, args.data, say)
    if not args.json:
        acts = {"verify": data.verify_data, "list": data.show_data}
        return acts[args.action](args.names, args.data, lambda text: say(fitted_text(text)))
    if args.action == "list":
        say_listing(args, data.list_data(args.names, args.data), "")
        return 0
    facts = {item.name: [*data.check_item(item, args.data)] for item in data.data_items(args.names)}
    say_listing(args, facts, "")
    return 1 if any(row.state == "wrong" for several in facts.values() for row in several) else 0


def systems_command(args: argparse.Namespace) -> int:
    """Print all systems, or one system's card; return 0."""
    from podium.harness.run.catalogue import show_systems

    say_listing(args, *show_systems(whole_catalogue(), args.name))
    return 0


def workers_command(args: argparse.Namespace) -> int:
    """Print a pool's workers, or their results in a run (--profile); return 0."""
    from podium.harness.pool_config import read_pool
    from podium.harness.run.catalogue import show_workers

    spec = read_pool(args.pool)
    if args.profile:
        say_listing(args, *_profile(args.profile, spec))
    else:
        say_listing(args, *show_workers(spec, spec.book()))
    return 0


def _profile(folder: Path, spec: Any) -> tuple[Any, str]:
    """Return workers' results on a run's train questions (their profile), as facts and as text."""
    from podium.harness.profiles import measured_in, read_profile
    from podium.reports.profile_table import kinds_text, profile_text

    suites = whole_catalogue().suites
    profile = read_profile(folder, spec, {name: suites[name].version for name in suites})
    text = f"{profile_text(profile)}\n\n{kinds_text(spec.names, measured_in(folder, spec.names))}"
    return {**asdict(profile), "sha256": profile.sha256}, text


def sandbox_command(args: argparse.Namespace) -> int:
    """Run `podium sandbox build`, `status` or `clean`; return the exit code."""
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
        rows = [(name, text) for name, _, text in (line.partition(": ") for line in lines)]
        say_listing(args, records(("what", "says"), rows), "\n".join(lines))
        return code
    except SandboxError as error:
        raise UserError(str(error)) from error


Group = Literal["podium.suites", "podium.systems", "podium.exporters"]
OURS = "podium"


class InstalledParts(Mapping[str, Any]):
    """Suites, systems or exporters of installed packages, by name; imported when first used."""

    def __init__(self, group: Group) -> None:
        """Store the group's name; the search of installed packages (30 ms) is done on first use."""
        self._group: Group = group
        self._loaded: dict[str, Any] = {}

    @cached_property
    def _entries(self) -> Mapping[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._group)}

    def __getitem__(self, name: str) -> Any:
        """Return the object called `name`; KeyError if unknown, UserError if loading it fails."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self._entries[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Return whether an installed package offers `name`; does not import the object."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all offered objects; imports no object."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of offered objects."""
        return len(self._entries)

    def package(self, name: str) -> str:
        """Return name and version of the package that offers `name`; `podium` if no package does.

        >>> InstalledParts("podium.systems").package("moa-lite")
        'podium'
        """
        entry = self._entries.get(name)
        return f"{entry.dist.name} {entry.dist.version}" if entry and entry.dist else OURS

    def _load(self, entry: EntryPoint) -> Any:
        noun = self._group.removeprefix("podium.").removesuffix("s")
        offers = f"{self.package(entry.name)} offers the {noun} {entry.name!r}"
        try:
            plugin = entry.load()
        except Exception as error:  # third-party code may raise anything
            raise UserError(
                f"{offers}, which cannot be loaded ({type(error).__name__}: {error}). "
                "Repair or uninstall that package."
            ) from error
        attribute = {"suite": "grade", "system": "solver", "exporter": "__call__"}[noun]
        if not hasattr(plugin, attribute):
            raise UserError(
                f"{offers}, but {entry.value} is not a valid {noun}. Repair that package."
            )
        name = entry.name if noun == "exporter" else plugin.name
        if name != entry.name:
            raise UserError(
                f"{offers}, but the {noun} calls itself {name!r}. In that package, give the entry "
                "point and its object the same name."
            )
        return plugin
