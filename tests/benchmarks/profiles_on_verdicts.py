"""`conductor-profiled` with one step on recorded verdicts of real models, beside the best single.

    python -m tests.benchmarks.profiles_on_verdicts SOURCE SPLIT    # e.g. lcb-leaderboard date:0.3

Both learn from the same single calls: each repetition draws train questions, and puts each of them
to all models of a pool (12 at random if there are more). The policy may only choose who solves the
question, because a recording has no replies to other subtasks.
"""

import argparse
import sys
from typing import Any

import numpy as np

from podium.baselines.route_eval import Split, best_single_worker, split_matrix
from podium.cli.train_commands import whole_matrix
from podium.conductor import profile_policy as policy
from podium.conductor.profiled import TRAINED, read_policy
from podium.harness.learning import Floats, Matrix
from podium.harness.profiles import measure_table
from podium.harness.question_kinds import form_of
from tests.reports.crossed import crossed_mean

CALLS, REPETITIONS = 160, 20
ROWS = ("policy", "best-single", "best in hindsight")


def asked_by_policy(weights: policy.Weights, taught: Matrix, test: Matrix) -> tuple[Any, float]:
    """Return the worker of each test question, and the share of own plans with one step."""
    table = measure_table(taught, 0)
    kinds = table.kinds.of(test.questions).tolist()
    rows = [
        (table, kind, policy.question_numbers(form_of(question.kind), len(question.text)))
        for kind, question in zip(kinds, test.questions, strict=True)
    ]
    read = policy.read(weights, policy.show(rows), np)
    begun = policy.begin(read)
    state = policy.state_of(weights, read, begun, 0, np)
    solve = np.eye(policy.CHOICES, dtype=np.float32)[np.zeros(len(rows), np.int64)]
    scores = policy.worker_scores(weights, read, begun, state, solve, np)
    one_step = (policy.write(weights, read).tasks[:, 1] == policy.END).mean()
    return scores.argmax(axis=1), float(one_step)


def repetition(matrix: Matrix, split: Split, calls: int, seed: int) -> tuple[Floats, Floats, float]:
    """Return (rows of ROWS, questions) arrays of scores and dollars, and the one-step share."""
    rng, weights = np.random.default_rng(seed), read_policy(TRAINED).arrays
    size = min(len(matrix.workers), policy.MOST_WORKERS)
    drawn = rng.permutation(len(matrix.workers))[:size].tolist()
    pool = matrix.with_workers([matrix.workers[index] for index in drawn])
    judged = np.sort(np.concatenate([fold.test for fold in split.folds]))
    asked = np.zeros((len(ROWS), len(matrix.questions)), np.intp)
    asked[2] = best_single_worker(pool.rows(judged))
    shares = list[float]()
    for fold in split.folds:
        taught = pool.rows(rng.permutation(fold.train)[: calls // size])
        asked[0, fold.test], share = asked_by_policy(weights, taught, pool.rows(fold.test))
        asked[1, fold.test] = best_single_worker(taught)
        shares.append(share)
    cells = judged, asked[:, judged]
    return pool.scores[cells], pool.usd[cells], float(np.mean(shares))


def main() -> int:
    """Print the comparison, a line for each reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="as in podium route --list")
    parser.add_argument("split", help="as in podium route --split")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args()
    matrix = whole_matrix(given.source, None)
    split = split_matrix(matrix, given.split, 0, drop_shared=True)
    drawn = [repetition(matrix, split, given.calls, seed) for seed in range(given.repetitions)]
    scores, usd = (np.stack([one[index] for one in drawn]) for index in (0, 1))
    means, spent = 100 * scores.mean(axis=(0, 2)), usd.mean(axis=(0, 2))
    print(f"{given.source} {given.split}: {scores.shape[2]} questions, {given.calls} calls")
    print(f"own plans of one step: {100 * np.mean([one[2] for one in drawn]):.0f} %")
    print(f"{ROWS[0]} {means[0]:.1f}")
    for row, name in enumerate(ROWS[1:], 1):
        less = crossed_mean([scores[:, 0] - scores[:, row]])
        low, high = less.interval or (less.mean, less.mean)
        ends = f"[{100 * low:+.1f},{100 * high:+.1f}]"
        dollars = f"{spent[0] / spent[row]:.2f} x its dollars" if spent[row] > 0 else "no dollars"
        print(f"{name} {means[row]:.1f}: less it {100 * less.mean:+.1f} {ends}, {dollars}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
