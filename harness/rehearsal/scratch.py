"""A worker's scratch paper: where it computes, how much it can hold, and where it slips.

Failures come from limits (too many digits, too many steps, an operation never learnt) and from
slips: a small probability *per elementary operation*, like sampling temperature. So longer work
fails more often, independent replicates fail differently, and voting helps.
"""

import random
from dataclasses import dataclass, field
from fractions import Fraction

Number = int | Fraction


class OutOfReach(Exception):
    """This worker cannot do that: a limit of the program, turned into a weaker reply by `minds`."""


@dataclass(slots=True)
class Scratch:
    """Working memory for one reply."""

    random: random.Random
    slip: float = 0.0
    """Probability that one elementary operation goes wrong."""
    digits: int = 60
    """Longest number that can be held."""
    reach: int = 20_000
    """Longest search or table, in steps."""
    knows: frozenset[str] = frozenset()
    """Operations this worker has learnt; empty means all of them."""
    floats: bool = False
    """Compute powers in floating point, as a hasty program does."""
    lines: list[str] = field(default_factory=list[str])
    slipped: int = 0

    def learnt(self, operation: str) -> None:
        """Raise `OutOfReach` unless the operation is one this worker has learnt."""
        if self.knows and operation not in self.knows:
            raise OutOfReach(f"I do not know how to work out a {operation}")

    def slips(self, operations: float = 1.0) -> bool:
        """Say whether any of some elementary operations goes wrong.

        Always one draw, so that workers that share a stream stay in step when their rates differ.
        """
        wrong = self.random.random() < 1.0 - (1.0 - self.slip) ** operations
        self.slipped += wrong
        return wrong

    def hold(self, value: Number, operations: float = 1.0) -> Number:
        """Return a result as it lands on the paper: refused when too long, sometimes misread."""
        size = len(str(abs(value.numerator))) if abs(value.numerator) < 10**4000 else 4001
        if size > self.digits:
            raise OutOfReach(f"a number of {size} digits is too long for me")
        if not self.slips(operations):
            return value
        bump = 10 ** random.Random(f"{self.slipped}/{value}").randrange(min(size, 3))
        return value - bump if value > bump and self.slipped % 2 else value + bump

    def search(self, steps: int) -> None:
        """Raise `OutOfReach` when a search is longer than this worker can follow."""
        if steps > self.reach:
            raise OutOfReach(f"a search of {steps} steps is too long for me")

    def note(self, line: str) -> None:
        """Write one line of working."""
        if len(self.lines) < 40:
            self.lines.append(line[:300])
