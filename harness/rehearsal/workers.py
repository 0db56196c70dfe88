"""Who the rehearsal workers are, and the scratch paper on which they compute and slip."""

import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from harness.errors import UserError

# § Who the rehearsal workers are: what each has learnt, how far it reaches, how it slips and
# § speaks.
# §
# § Every number here is a property of a program, not of a question: vocabulary, digits,
# § steps, slips.
# § Pools may override `slip` and `verbosity` (model arguments); skills belong to the worker.


Facts = Literal["none", "common", "all"]
Manner = Literal["solve", "recite", "verify", "format", "plan"]

ARITHMETIC = frozenset(
    {"sum", "difference", "product", "quotient", "floor quotient", "power", "remainder"}
)
SCHOOL = ARITHMETIC | {
    "common divisor",
    "common multiple",
    "digit sum",
    "digit count",
    "factorial",
    "binomial",
    "logarithm",
    "arithmetic series",
    "search",
    "divisible",
    "even",
    "odd",
    "square",
    "prime",
}
SCHOLARLY = SCHOOL | {
    "divisor count",
    "base conversion",
    "base reading",
    "geometric series",
    "remainder",
}


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker program with its parameters."""

    name: str
    manner: Manner = "solve"
    slip: float = 0.01
    """Slips per elementary operation at temperature 1."""
    digits: int = 60
    reach: int = 20_000
    knows: frozenset[str] = field(default_factory=frozenset[str])
    """Operations learnt; empty means all, `{"nothing"}` means none."""
    floats: bool = False
    facts: Facts = "none"
    formulas: bool = False
    stories: bool = False
    """Reads word problems about prices, rates and rows."""
    families: int = 0
    """How many operations of programs it knows, commonest first."""
    code_slip: float = 0.0
    """Slips per line of a program."""
    passes: int = 1
    """How often it works a problem out; two results that differ are settled by a third."""
    verbosity: float = 1.0
    prose: bool = False
    """Ends in prose ("So it is 42.") rather than in the asked form."""
    latency_s: float = 1.0
    tokens_per_s: float = 80.0


NOTHING = frozenset({"nothing"})

WORKERS: dict[str, Worker] = {
    worker.name: worker
    for worker in (
        Worker(
            "abacus",
            slip=0.02,
            digits=400,
            stories=True,
            verbosity=1.0,
            latency_s=0.6,
            tokens_per_s=120,
        ),
        Worker(
            "scribe",
            slip=0.03,
            digits=12,
            knows=ARITHMETIC,
            families=200,
            code_slip=0.05,
            verbosity=1.0,
            latency_s=1.2,
            tokens_per_s=90,
        ),
        Worker(
            "scholar",
            manner="recite",
            slip=0.03,
            knows=NOTHING,
            facts="all",
            formulas=True,
            verbosity=1.2,
            latency_s=0.9,
            tokens_per_s=100,
        ),
        Worker(
            "sage",
            slip=0.035,
            digits=30,
            reach=400,
            knows=SCHOLARLY,
            facts="common",
            formulas=True,
            stories=True,
            passes=2,
            families=44,
            code_slip=0.03,
            verbosity=1.6,
            latency_s=3.0,
            tokens_per_s=45,
        ),
        Worker(
            "swift",
            slip=0.04,
            digits=16,
            reach=120,
            knows=SCHOOL,
            floats=True,
            facts="common",
            formulas=True,
            families=30,
            code_slip=0.04,
            verbosity=0.7,
            prose=True,
            latency_s=0.2,
            tokens_per_s=250,
        ),
        Worker(
            "planner",
            manner="plan",
            slip=0.03,
            digits=12,
            reach=100,
            knows=ARITHMETIC,
            verbosity=1.2,
            latency_s=1.0,
            tokens_per_s=100,
        ),
        Worker(
            "verifier",
            manner="verify",
            slip=0.01,
            digits=60,
            reach=2000,
            knows=SCHOLARLY,
            families=30,
            code_slip=0.012,
            verbosity=1.3,
            latency_s=1.5,
            tokens_per_s=80,
        ),
        Worker(
            "polymath",
            slip=0.004,
            digits=400,
            facts="all",
            formulas=True,
            stories=True,
            families=400,
            code_slip=0.003,
            verbosity=1.0,
            latency_s=0.5,
            tokens_per_s=150,
        ),
        Worker(
            "formatter",
            manner="format",
            slip=0.0,
            knows=NOTHING,
            verbosity=0.5,
            latency_s=0.2,
            tokens_per_s=200,
        ),
    )
}


def find_worker(name: str) -> Worker:
    """Return a worker by name; UserError lists the known ones."""
    if name not in WORKERS:
        known = ", ".join(WORKERS)
        raise UserError(f"There is no rehearsal worker {name!r}; known workers: {known}.")
    return WORKERS[name]


# § A worker's scratch paper: where it computes, how much it can hold, and where it slips.
# §
# § Failures come from limits (too many digits, too many steps, an operation never learnt) and
# § from
# § slips: a small probability *per elementary operation*, like sampling temperature. So
# § longer work
# § fails more often, independent replicates fail differently, and voting helps.


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
