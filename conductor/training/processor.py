"""Processor seconds of a training, written as they pass: a kill takes a step's, or a warm start's.

`cpu.jsonl` has lines `{"step": 3, "cpu_s": 2.13}`: what a process and the children that it waited
for have used since its line before. Every process of every sitting adds its own, so the sum is what
a training took; nothing is taken back when a step is made again. A container's own processor time
is not in it, nor what the command took before it began to train.

Not here: the sum of an ablation (reports/ablations.py).
"""

import resource
import sys
from pathlib import Path

from conductor.training.folder import append_line, read_lines

CPU = "cpu.jsonl"


class Clock:
    """Counts from when it is made; writes as soon as it is told where."""

    def __init__(self) -> None:
        """Begin to count."""
        self.folder: Path | None = None
        """A run folder; None until it is known to be this training's."""
        self._noted, self._step = _used(), 0

    def note(self, step: int | None = None) -> None:
        """Write what was used since the last time; without a step, as part of the latest one."""
        self._step = self._step if step is None else step
        spent = round(_used() - self._noted, 2)
        if self.folder and spent > 0:
            self._noted += spent
            append_line(self.folder / CPU, {"step": self._step, "cpu_s": spent})


def cpu_seconds(folder: Path) -> float | None:
    """Return what all sittings of a run have used; None where none has written it."""
    lines = read_lines(folder / CPU)
    return sum(line["cpu_s"] for line in lines) if lines else None


def peak_gib() -> float:
    """Return the most memory that this process has held so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)


def _used() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
