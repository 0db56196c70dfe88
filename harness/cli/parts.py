"""Every part of podium that can be named, put together: the only place where all spokes meet.

Imports of the spokes, and of anything slow, stand inside the functions: `--help` is quick.
"""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from harness.errors import UserError


def catalogue() -> Any:
    """Return every part that can be named: the only place where all spokes meet."""
    import_module("suites._registry")  # it also says where imported recordings come from

    from baselines import SYSTEMS as BASELINES
    from conductor import SYSTEMS as CONDUCTORS
    from harness.compose import Catalogue
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
    from baselines.oracle_plans import make_plans
    from baselines.single import choose
    from harness.job import Controls
    from suites.bare import bare
    from suites.openings import log_opening

    return Controls(choose=choose, make_plans=make_plans, opened=log_opening, bare=bare)
