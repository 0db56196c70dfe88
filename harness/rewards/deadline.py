"""A box that keeps to a deadline: no run outlasts it, and after it none begins.

A program that runs into its own limit has failed, and that is graded. One that is ended here was
not given its time, so nothing is said about it: `DeadlinePassed` is raised instead of an outcome.
Not here: which deadline an item has (core.py). The box is any `sandbox.Box`; the hub imports none.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from harness.errors import PodiumError

OFFICIAL = "official"
"""The runner that takes all inputs in one process: its limits hold for all of them together."""


class DeadlinePassed(PodiumError):
    """The time that an item had is over; whatever ran for it was ended."""


@dataclass(slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds; `expire` brings it forward from any thread."""

    at: float

    @property
    def left_s(self) -> float:
        """Seconds left; negative when it has passed."""
        return self.at - monotonic()

    def expire(self) -> None:
        """Let it have passed: nobody waits for the result any more."""
        self.at = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DeadlineBox:
    """The same box, for one item. Its limits are shortened to what is left, never lengthened.

    It equals its box, and others of it: a suite may remember what it once asked a box.
    """

    box: Any
    deadline: Deadline

    def __eq__(self, other: object) -> bool:
        return self.box == (other.box if isinstance(other, DeadlineBox) else other)

    def __hash__(self) -> int:
        return hash(self.box)

    @property
    def name(self) -> str:
        """The box's own name."""
        return self.box.name

    def facts(self, image: str) -> Any:
        """Say what the box says of an image."""
        return self.box.facts(image)

    def close(self) -> None:
        """Leave the box open: it is others' too."""

    def run(
        self, program: Any, inputs: Iterable[bytes], limits: Any, *, alone: bool = False
    ) -> Generator[Any]:
        """Yield the box's outcomes, one per input, until the deadline.

        Raises DeadlinePassed at it, and what the box raises. While more is left than one run may
        take, inputs go to the box as they are, so that it can do several in one go; then one by
        one, each with what is left as its wall limit.
        """
        given = iter(inputs)
        if program.runner != OFFICIAL:
            early = _while(lambda: self.deadline.left_s >= limits.wall_s, given)
            with closing(self.box.run(program, early, limits, alone=alone)) as outcomes:
                yield from outcomes
        for batch in [given] if program.runner == OFFICIAL else ([one] for one in given):
            yield from self._shortened(program, batch, limits, alone)

    def _shortened(
        self, program: Any, inputs: Iterable[bytes], limits: Any, alone: bool
    ) -> Generator[Any]:
        left = self.deadline.left_s
        if left <= 0:
            raise DeadlinePassed("The time for this reply was over before it was graded.")
        shorter = replace(limits, wall_s=min(limits.wall_s, left))
        with closing(self.box.run(program, inputs, shorter, alone=alone)) as outcomes:
            for outcome in outcomes:
                ended = outcome.status == "time" and outcome.cpu_s < limits.cpu_s
                if ended and shorter.wall_s < limits.wall_s:
                    raise DeadlinePassed("The time for this reply was over while it was graded.")
                yield outcome


def _while(there_is_time: Callable[[], bool], given: Iterator[bytes]) -> Generator[bytes]:
    """Yield inputs as long as there is time; what is not taken stays in `given`."""
    while there_is_time():
        try:
            one = next(given)
        except StopIteration:
            return
        yield one
