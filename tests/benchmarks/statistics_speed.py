"""Statistics of a block of systems, and scipy.stats.bootstrap on a part of it, in one run.

    python tests/benchmarks/statistics_speed.py [--systems 20] [--questions 1000] [--epochs 1]

Synthetic grades and costs. The block: BCa intervals of every paired difference, cost intervals and
ratios, membership of the Pareto frontier, Holm's adjustment, all from 10,000 resamples. The peer:
scipy.stats.bootstrap (BCa, batches of 200) of the paired difference of one system, as many times as
there are differences. Wall time.
"""

import argparse
import time

import numpy as np
from scipy import stats

from podium.reports.costs import BlockArrays, block_columns
from podium.reports.intervals import difference, holm_adjusted, question_means
from podium.reports.stats import RESAMPLES


def made(systems: int, questions: int, epochs: int) -> list[dict[str, list[float]]]:
    """Return grades of systems that grow better, on questions that grow harder."""
    rng = np.random.default_rng(1)
    ease = np.linspace(1.2, 0.2, questions)[:, None]
    found: list[dict[str, list[float]]] = []
    for skill in np.linspace(0.5, 0.9, systems):
        grades = (rng.random((questions, epochs)) < ease * skill).astype(float)
        found.append({f"q{at}": row.tolist() for at, row in enumerate(grades)})
    return found


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    values = made(args.systems, args.questions, args.epochs)
    scores = np.array([list(question_means(each).values()) for each in values]).T
    usd = np.random.default_rng(2).lognormal(size=scores.shape) / 100

    started = time.perf_counter()
    found = holm_adjusted([difference(each, values[0]) for each in values[1:]])
    columns = block_columns(BlockArrays(scores, usd, 1000 * usd, np.ones(args.systems, bool)), 0)
    ours = time.perf_counter() - started
    assert len(found) == args.systems - 1
    assert columns[1]["paired_bca_low"] is not None

    started = time.perf_counter()
    deltas = scores[:, 1] - scores[:, 0]
    peer = stats.bootstrap((deltas,), np.mean, n_resamples=RESAMPLES, batch=200, rng=1)
    theirs = (time.perf_counter() - started) * (args.systems - 1)
    low = columns[1]["paired_bca_low"]
    print(f"{args.systems} systems, {args.questions} questions, {args.epochs} epochs, {RESAMPLES}")
    print(f"whole block: {ours:.2f} s; scipy, {args.systems - 1} differences alone: {theirs:.2f} s")
    print(
        f"ratio {theirs / ours:.1f}; low end {low:.4f}, scipy's {peer.confidence_interval.low:.4f}"
    )


if __name__ == "__main__":
    main()
