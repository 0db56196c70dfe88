"""Solvers that Inspect finds by name: `inspect eval TASK --solver podium/moa_3 -S pool=NAME`."""

from typing import Any

from podium.baselines import common
from podium.baselines.single import best_single, single

__all__ = ["best_single", "single"]


def __getattr__(name: str) -> Any:
    """Return the Inspect solver that is registered as `name`; AttributeError if none is."""
    if name not in common.SOLVERS:
        raise AttributeError(f"baselines has no solver {name!r}")
    return common.SOLVERS[name]
