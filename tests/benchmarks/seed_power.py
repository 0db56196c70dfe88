"""Which difference do so many questions and seeds of a training show?

    PYTHONPATH=. python tests/benchmarks/seed_power.py [--discordant 0.2]

A trained conductor's mean over seeds is held against one reference on the same questions. Both are
drawn, so the variance of the difference is that between questions (the share on which the two
differ, over their number) and that between seeds (over theirs); the interval is Student's t with
Satterthwaite's degrees of freedom, as in `podium report --targets`. Detectable: with 80 % power,
two-sided at 5 %. Beside it the half width of the interval, which is what a margin ("not 2 points
below") has to hold where the true difference is 0.
"""

import argparse
import sys
from collections.abc import Sequence
from math import sqrt

from scipy import stats

QUESTIONS = (240, 300, 1200)
SEEDS = (3, 5, 10)
SPREADS = (0.0, 1.0, 2.0, 3.5)
"""Standard deviations between seeds in points; 1.7, 2.0 and 3.5 were seen on 240 questions, where
about 1.8 is the noise of the questions alone."""


def spread(questions: int, seeds: int, deviation: float, discordant: float) -> tuple[float, float]:
    """Return (half width of the interval, detectable difference), in points."""
    of_questions, of_seeds = 1e4 * discordant / questions, deviation**2 / seeds
    total = of_questions + of_seeds
    freedom = total**2 / (of_questions**2 / (questions - 1) + of_seeds**2 / (seeds - 1))
    half = float(stats.t.ppf(0.975, freedom)) * sqrt(total)
    return half, half + float(stats.t.ppf(0.8, freedom)) * sqrt(total)


def main(words: Sequence[str] | None = None) -> int:
    """Print a row per number of questions and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--discordant", type=float, default=0.2)
    given = parser.parse_args(words)
    print("| questions | seeds |", " | ".join(f"SD {one:g}" for one in SPREADS), "|")
    print("|---|---|" + "---|" * len(SPREADS))
    for questions in QUESTIONS:
        for seeds in SEEDS:
            cells = (spread(questions, seeds, one, given.discordant) for one in SPREADS)
            said = " | ".join(f"{seen:.1f} (±{half:.1f})" for half, seen in cells)
            print(f"| {questions:,} | {seeds} | {said} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
