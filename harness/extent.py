"""How much of which exam a run covers: as asked, else as its experiment has it, else as is usual.

Epochs and prompts belong to a suite: four epochs of one exam say nothing about another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

from harness.compose import Request
from harness.errors import UserError
from harness.experiment import Experiment
from harness.suite import OFFICIAL, Prompt, Split, Suite, prompt_of, usual_epochs, with_prompt
from harness.task import refuse_no_epochs


@dataclass(frozen=True, slots=True)
class Extent:
    """What a run covers."""

    limit: int | None = None
    seed: int = 0
    split: Split = "eval"
    time_scale: float = 0.01
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Suite -> how often each of its questions is asked."""


def extent(asked: Request, stored: Experiment | None, suites: Sequence[Suite[Any]]) -> Extent:
    """Return what a run of some suites covers: as asked, else as stored, else the defaults.

    UserError for numbers that leave nothing to ask or cannot be slept.
    """
    refuse_no_epochs(asked.epochs)
    old = Extent()
    if stored:
        old = Extent(stored.limit, stored.seed, cast(Split, stored.split), stored.time_scale)
    scale = old.time_scale if asked.time_scale is None else asked.time_scale
    if not 0 <= scale < inf:
        raise UserError(f"--time-scale must be 0 or a positive number, not {scale}.")
    return Extent(
        limit=old.limit if asked.limit is None else asked.limit,
        seed=old.seed if asked.seed is None else asked.seed,
        split=asked.split or old.split,
        time_scale=scale,
        epochs={suite.name: _epochs(asked, stored, suite) for suite in suites},
    )


def _epochs(asked: Request, stored: Experiment | None, suite: Suite[Any]) -> int:
    if asked.epochs is not None:
        return asked.epochs
    known = stored.epochs.get(suite.name) if stored else None
    return known or usual_epochs(suite)


def prompts(
    asked: Request, stored: Experiment | None, suites: Sequence[Suite[Any]]
) -> dict[str, Prompt]:
    """Return suite -> prompt for the requested suites and for those of the experiment."""
    known = dict[str, Prompt](stored.prompts if stored else {})
    if asked.prompt:
        known.update(dict.fromkeys((suite.name for suite in suites), asked.prompt))
    return known


def without_prompt(suites: Sequence[Suite[Any]], prompt: Prompt | None) -> str:
    """Return the sentence on suites that do not know a prompt; empty when all do."""
    if prompt is None:
        return ""
    names = [suite.name for suite in suites if prompt_of(with_prompt(suite, prompt)) != prompt]
    if not names:
        return ""
    return f"No {prompt} prompt is known for {', '.join(names)}: asked with the {OFFICIAL} one."


class InPrompts(Mapping[str, Suite[Any]]):
    """Suites by name, each with its questions put as one experiment puts them."""

    def __init__(self, suites: Mapping[str, Suite[Any]], prompts: Mapping[str, Prompt]) -> None:
        """Put the suites named in `prompts` so, where that way is known, and others as they are."""
        self._suites = suites
        self._prompts = prompts

    def __getitem__(self, name: str) -> Suite[Any]:
        suite = self._suites[name]
        prompt = self._prompts.get(suite.name)
        return with_prompt(suite, prompt) if prompt else suite

    def __iter__(self) -> Iterator[str]:
        return iter(self._suites)

    def __len__(self) -> int:
        return len(self._suites)
