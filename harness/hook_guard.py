"""Hooks of other packages, which Inspect hands every question to, kept from private exams.

MLflow, Weights & Biases and others subscribe to Inspect's events as soon as they are installed, and
send what they hear to a server. What podium keeps to itself is harness/private.py.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import registry_info
from inspect_ai.hooks._hooks import Hooks, get_all_hooks

from harness.errors import UserError
from harness.suite import Suite

TRUSTED = ("inspect_ai", "harness", "suites", "baselines", "conductor")
"""Packages whose hooks keep to this machine: Inspect's own and ours."""
TELEMETRY = "INSPECT_TELEMETRY"
"""Names a function of another package that Inspect sends whole logs to."""


def listeners() -> Iterator[tuple[str, str]]:
    """Yield each active hook of another package by name, and how it is switched off."""
    ensure_entry_points()
    for hook in get_all_hooks():
        package = type(hook).__module__.partition(".")[0]
        if package not in TRUSTED and _is_active(hook):
            off = f"uninstall {package!r}, or switch it off as its makers say"
            yield registry_info(hook).name, off
    if function := os.environ.get(TELEMETRY, "").strip():
        yield function, f"unset {TELEMETRY}"


def _is_active(hook: Hooks) -> bool:
    try:
        return hook.enabled()
    except Exception:  # whoever cannot say that it is off may listen
        return True


def refuse_listeners(suites: Iterable[Suite[Any]]) -> None:
    """Raise UserError for an exam that must not be published while somebody else listens."""
    private = next((suite.name for suite in suites if not suite.publishable), None)
    if private is None:
        return
    for name, off in listeners():
        raise UserError(
            f"The questions of {private} must not be published, and Inspect would hand them to the "
            f"hook {name!r}: {off}, for this run."
        )
