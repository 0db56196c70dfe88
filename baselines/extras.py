"""Packages that an extra brings: imported where they are used, and named where they are absent."""

from importlib import import_module
from typing import Any

from harness.errors import UserError


def needed(module: str, extra: str) -> Any:
    """Return an optional module; UserError names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(
            f"{module.partition('.')[0]} is not installed ({error}): pip install '.[{extra}]'."
        ) from None
