"""Dynamic sampling: questions whose plans all got one reward make room for others.

From DAPO (arXiv 2503.14476, section 3.2), with a bound on rounds: a group of equal rewards has no
advantage and teaches nothing. Others come from the rows after the training's own, by step and
round, so that a resumed run meets the same ones. Not here: writing and scoring plans (grpo.py).
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

import torch

from conductor.training.job import Training
from conductor.training.rows import Asking, Row
from conductor.training.settings import batches
from harness.rewards.trainers import Prompt

Group = dict[str, Any]
"""The plans of one question, as TRL hands them to the update: tensors by name."""


class Writes(Protocol):
    """What a trainer does for it."""

    def scored(self, inputs: Sequence[Any]) -> Group:
        """Return plans for these rows, written and scored, as TRL hands them on."""
        ...

    @property
    def constant(self) -> Collection[Prompt]:
        """The prompts of the latest of them that teach nothing."""
        ...


@dataclass(slots=True)
class Resampling:
    """The rounds of a training; `said` is what the latest batch came to, for the log."""

    rows: Sequence[Row]
    """All that may stand in, in order: `rounds` times a batch for every generation."""
    asking: Asking
    sizes: Mapping[str, int]
    """As `settings.batches` returns them."""
    rounds: int
    pad: int
    """The token that fills up prompts and completions."""
    said: dict[str, float] = field(default_factory=dict[str, float])
    _step: int = -1
    _nth: int = 0

    def learnt_from(self, writes: Writes, inputs: Sequence[Any], step: int) -> Group:
        """Return a batch of the size of `inputs`, groups that teach something first."""
        generation = self._generation(step)
        good, dull = self._written(writes, inputs)
        wanted, more, started = len(good) + len(dull), 0, monotonic()
        asked = {_key(one) for one in inputs}
        for at in range(self.rounds):
            others = [
                row for row in self._spare(generation, at) if _key(row.as_columns()) not in asked
            ]
            others = others[: wanted - len(good)]
            if not others:
                continue
            asked |= {_key(row.as_columns()) for row in others}
            found, _ = self._written(writes, self._inputs(others))
            good, more = good + found, more + len(others)
        self.said = {
            "informative": len(good) / wanted,
            "resampled": more / (wanted + more),
            "resample_seconds": round(monotonic() - started, 3) if more else 0.0,
        }
        return joined([*good, *dull][:wanted], self.pad)

    def _written(self, writes: Writes, inputs: Sequence[Any]) -> tuple[list[Group], list[Group]]:
        """Return the groups that teach something, and those that do not."""
        size = self.sizes["group"]
        made, constant = writes.scored(inputs), set(writes.constant)
        groups = divided(made, size)
        prompts = [_prompt(one) for one in inputs[::size]]
        pairs = list(zip(groups, prompts, strict=True))
        good = [group for group, prompt in pairs if prompt not in constant]
        return good, [group for group, prompt in pairs if prompt in constant]

    def _generation(self, step: int) -> int:
        """Return which batch of plans this is, from 0; a resumed run goes on counting."""
        self._nth = self._nth + 1 if step == self._step else 0
        self._step = step
        return step * self.sizes["accumulate"] // self.sizes["parts"] + self._nth

    def _spare(self, generation: int, at: int) -> Sequence[Row]:
        size = self.sizes["questions"]
        begins = (generation * self.rounds + at) * size
        return self.rows[begins : begins + size]

    def _inputs(self, rows: Sequence[Row]) -> list[Any]:
        """Return rows as the data set would have them, each once per plan."""
        rendered = [{**row.as_columns(), "prompt": self.asking.messages(row)} for row in rows]
        return [one for one in rendered for _ in range(self.sizes["group"])]


def resampling(training: Training, pad: int) -> Resampling:
    """Return the rounds that a configuration asks for, maybe none."""
    rounds, sizes = training.config.reward.resample, batches(training.config)
    rows = training.rows(sizes["rows"] * (1 + rounds))[sizes["rows"] :]
    return Resampling(rows, training.asking, sizes, rounds, pad)


def _key(columns: Mapping[str, Any]) -> tuple[str, str]:
    return columns["suite"], columns["question"]


def _prompt(columns: Mapping[str, Any]) -> Prompt:
    names = ("suite", "question", "epoch", "workers", "first")
    suite, question, epoch, workers, first = (columns[name] for name in names)
    return Prompt(suite, question, epoch, tuple(workers), first)


def divided(made: Group, size: int) -> list[Group]:
    """Return a batch as groups of `size` rows each; what is no row of it is left out."""
    rows = len(made["advantages"])
    tensors = {name: one for name, one in made.items() if getattr(one, "ndim", 0)}
    return [
        {name: one[at : at + size] for name, one in tensors.items()} for at in range(0, rows, size)
    ]


def joined(groups: Sequence[Group], pad: int) -> Group:
    """Return groups as one batch: prompts are filled up on the left, all else on the right."""
    whole: Group = {}
    for name in groups[0]:
        parts = [group[name] for group in groups]
        width = max(part.shape[1] for part in parts) if parts[0].ndim > 1 else 0
        filler = pad if name.endswith("_ids") else 0
        left = name.startswith("prompt_")
        whole[name] = torch.cat([_filled(part, width, filler, left=left) for part in parts])
    whole["num_items_in_batch"] = whole["completion_mask"].sum()
    return whole


def _filled(part: Any, width: int, filler: int, *, left: bool) -> Any:
    if part.ndim < 2 or part.shape[1] == width:
        return part
    short = width - part.shape[1]
    return torch.nn.functional.pad(part, (short, 0) if left else (0, short), value=filler)
