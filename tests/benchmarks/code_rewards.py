"""How long a trainer waits for the rewards of one step of programs, by box.

    PYTHONPATH=. python tests/benchmarks/code_rewards.py [--box docker bwrap ...] [--rounds 3]

256 programs that o1-mini wrote (recorded; one per problem, spread evenly over its 880), each with
its public and recovered tests, go to `Reward.score` at once. Two times of each: `own`, while it was
graded, and `since`, from the step's beginning until it was. Rounds alternate between the boxes; a
new `Reward` each time remembers no grade of the one before.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.splits import SuiteSplit
from podium.sandbox import Box, open_box
from podium.suites import SUITES
from tests.suites.recorded_programs import Recorded, have, recorded

SUITE = "practice-code"  # grades a fenced program on the tests in a question's target
BOXES = ("docker", "docker:runsc", "bwrap")


@dataclass
class ClockedSuite:
    """The suite, noting when each grade was there."""

    suite: Any
    graded: list[float] = field(default_factory=list[float])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.suite, name)

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        grade = self.suite.grade(question, reply, box)
        self.graded.append(time.monotonic())
        return grade


@dataclass(frozen=True, slots=True)
class Step:
    """The seconds of one step: each item's own, each item's since the beginning, and all."""

    own: Sequence[float]
    since: Sequence[float]
    right: int
    unscored: int

    @property
    def seconds(self) -> float:
        """Until the last reward was there."""
        return max(self.since)


def asked(rows: Sequence[Recorded]) -> tuple[dict[str, Question], list[RewardItem]]:
    """Return the questions, and the completions to be rewarded for them."""
    questions = {
        row.question: Question(row.question, row.title, "program", row.tests.as_json())
        for row in rows
    }
    items = [RewardItem(SUITE, row.question, f"```python\n{row.code}\n```") for row in rows]
    return questions, items


def step(rows: Sequence[Recorded], box: Box) -> Step:
    """Reward all of the programs at once."""
    suite: Any = ClockedSuite(SUITES[SUITE])
    questions, items = asked(rows)
    reward = Reward({SUITE: SuiteSplit(suite, questions)}, box=box)
    started = time.monotonic()
    outcomes = asyncio.run(reward.score(items))
    since = [moment - started for moment in suite.graded]
    right = sum(outcome.value == 1 for outcome in outcomes)
    lost = sum(outcome.value is None for outcome in outcomes)
    return Step([outcome.latency_s for outcome in outcomes], since, right, lost)


def shown(times: Sequence[float]) -> str:
    """Return the median and the 99th percentile in milliseconds."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return f"p50 {cuts[49] * 1000:6.0f} ms, p99 {cuts[98] * 1000:6.0f} ms"


def main() -> int:
    """Print a line per box and round; 2 when the recorded programs are not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--box", nargs="+", default=BOXES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=256)
    args = parser.parse_args()
    if reason := have():
        print(reason, file=sys.stderr)
        return 2
    every = list(recorded())
    rows = [every[n * len(every) // args.items] for n in range(args.items)]
    with ExitStack() as stack:
        boxes = [stack.enter_context(closing(open_box(name))) for name in args.box]
        for box in boxes:
            print(box.facts(), flush=True)
            step(rows[:8], box)
        for n in range(args.rounds):
            for box in boxes:
                found = step(rows, box)
                print(
                    f"{n + 1} {box.name:14} own: {shown(found.own)}; since: {shown(found.since)}; "
                    f"all {found.seconds:6.1f} s; {found.right} right, {found.unscored} unscored",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
