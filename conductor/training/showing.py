# pyright: basic, reportMissingImports=false
"""What a person sees of a training: a bar with the last step's figures, and no library's chatter.

What torch's libraries hand out has no types here: they are installed elsewhere.
"""

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm
from transformers import PrinterCallback, ProgressCallback
from transformers.utils import logging

THEIRS = (ProgressCallback, PrinterCallback)
"""Callbacks that print every figure of every step, as dictionaries."""


class Bar:
    """A progress bar over a training's steps, on a terminal only; lines are said above it."""

    def __init__(self, steps: int, made: int) -> None:
        """Draw the bar where a training stands."""
        self._bar: Any = tqdm(total=steps, initial=made, disable=None, dynamic_ncols=True)

    def step(self, line: Mapping[str, Any]) -> None:
        """Move on by a step and show what it came to."""
        reward, parsed = line.get("reward"), line.get("parsed") or 0.0
        shown = "unknown" if reward is None else f"{reward:.3f}"
        self._bar.set_postfix_str(f"reward {shown}, read {parsed:.0%}")
        self._bar.update(1)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.close()


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers' bars and its warnings about its own next version to itself."""
    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            yield
        finally:
            logging.set_verbosity(before)
            logging.enable_progress_bar()
