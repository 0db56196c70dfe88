"""A suite or a system in a file of one's own: `--suite mine.py@NAME`, `--system mine.py@NAME`.

The part is known by its own name from then on, in tables and logs; the file says what it is.
"""

import argparse
import hashlib
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from inspect import getdoc, iscoroutinefunction, isfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from harness.errors import UserError
from harness.files import first_line

OWN = ".py@"
PARTS = {
    "suite": "suite",
    "suites": "suite",
    "train_on": "suite",
    "system": "system",
    "systems": "system",
}
"""Arguments of commands that name parts."""
SUITE = ("name", "version", "dates", "splits", "publishable", "needs_box", "image", "card")
SUITES: dict[str, Any] = {}
SYSTEMS: dict[str, Any] = {}
SOLVERS: dict[str, Callable[..., Any]] = {}
"""What was loaded: suites and cards by name, solvers by the name in a card."""


def load_own_parts(args: argparse.Namespace) -> None:
    """Load what a command line names in files, and put the parts' own names in its place."""
    command = getattr(args, "command_name", "")
    for key, noun in {**PARTS, "name": command.removesuffix("s")}.items():
        named = getattr(args, key, None)
        if isinstance(named, str) and OWN in named:
            setattr(args, key, _load(named, noun))
        elif isinstance(named, list):
            words = cast(list[str], named)
            setattr(args, key, [_load(one, noun) if OWN in one else one for one in words])


def _load(named: str, noun: str) -> str:
    place, _, attribute = named.rpartition("@")
    path = Path(place).expanduser()
    module = _module(path)
    if not hasattr(module, attribute):
        has = ", ".join(name for name in vars(module) if not name.startswith("_"))
        raise UserError(f"{path} has no {attribute!r}; it has: {has}.")
    part = getattr(module, attribute)
    return _add_system(part, path, attribute) if noun == "system" else _add_suite(part, named)


def _module(path: Path) -> ModuleType:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a Python file.") from error
    name = f"own_{path.stem}_{hashlib.sha256(content).hexdigest()[:12]}"
    if name not in sys.modules:
        sys.modules[name] = module = ModuleType(name)
        module.__file__ = str(path)
        try:
            exec(compile(content, str(path), "exec"), vars(module))
        except Exception as error:
            del sys.modules[name]
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise UserError(f"{path} cannot be imported ({reason}): mend it.") from error
    return sys.modules[name]


def _add_suite(part: Any, named: str) -> str:
    from suites import SUITES as OURS

    lacking = [one for one in (*SUITE, "data_revision", "load", "grade") if not hasattr(part, one)]
    if lacking:
        raise UserError(f"{named} is no suite: it has no {', '.join(lacking)} (harness/suite.py).")
    if part.name in OURS:
        raise UserError(f"{named} is called {part.name!r} like a suite of podium's: rename it.")
    SUITES[part.name] = part
    return str(part.name)


def _add_system(part: Any, path: Path, attribute: str) -> str:
    """Add an `async` function that answers, or a plain one that returns a workflow."""
    from baselines import SYSTEMS as OURS
    from baselines.common import registered
    from harness.system import SystemCard, planned

    if not isfunction(part) or list(signature(part).parameters) != ["question", "pool"]:
        raise UserError(
            f"{path}@{attribute} is no system: write `async def {attribute}(question, pool)` that "
            "returns an Answer, or without `async` one that returns a Workflow."
        )
    name = attribute.replace("_", "-")
    if name in OURS:
        raise UserError(f"{path}@{attribute} is called like a system of podium's: rename it.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    solver = f"{path.name}/{attribute}"
    SYSTEMS[name] = SystemCard(
        name=name,
        solver=solver,
        summary=(getdoc(part) or "no docstring").partition("\n")[0],
        source=f"{path.name} (sha256 {digest})",
        calls="not said",
    )
    system = part if iscoroutinefunction(part) else planned(part)
    SOLVERS[solver] = registered(lambda: system, attribute)
    return name


def with_own(known: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return known parts and one's own; what is made when asked for stays so."""
    return ChainMap(cast(dict[str, Any], own), cast(dict[str, Any], known))
