"""`conductor-profiled` with one step on recorded verdicts of real models, beside the best single.

    python -m tests.benchmarks.profiles_on_verdicts SOURCE SPLIT    # e.g. lcb-leaderboard date:0.3

Both learn from the same single calls: each repetition draws train questions, and puts each of them
to all models of a pool (12 at random if there are more). The policy may only choose who solves the
question, because a recording has no replies to other subtasks.
"""

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np

from podium.baselines.route_eval import Split, best_single_worker, split_matrix
from podium.cli.train_commands import whole_matrix
from podium.conductor import profile_policy as policy
from podium.conductor.profiled import TRAINED, read_policy
from podium.harness.errors import UserError
from podium.harness.learning import Floats, Matrix
from podium.harness.profiles import measure_table
from podium.harness.question_kinds import form_of
from tests.reports.crossed import crossed_mean

CALLS, REPETITIONS = 160, 20
ROWS = ("policy", "best-single", "best in hindsight")


class Repetition(NamedTuple):
    """Results of the systems in ROWS on all test questions, after one draw of train questions."""

    scores: Floats  # (rows, questions)
    usd: Floats  # (rows, questions); NaN without prices
    one_step: float  # share of the policy's own plans that have one step
    calls: int  # single calls that each system learned from


def chosen_by_policy(weights: policy.Weights, train: Matrix, test: Matrix) -> tuple[Any, float]:
    """Return the worker of each test question, and the share of own plans with one step."""
    table = measure_table(train, 0)
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


def repeat(matrix: Matrix, split: Split, calls: int, seed: int) -> Repetition:
    """Draw models and train questions, and return what each system gets on the test questions."""
    rng, weights = np.random.default_rng(seed), read_policy(TRAINED).arrays
    size = min(len(matrix.workers), policy.MOST_WORKERS)
    models = rng.permutation(len(matrix.workers))[:size].tolist()
    pool = matrix.with_workers([matrix.workers[index] for index in models])
    test_rows = np.sort(np.concatenate([fold.test for fold in split.folds]))
    chosen = np.zeros((len(ROWS), len(matrix.questions)), np.intp)
    chosen[2] = best_single_worker(pool.rows(test_rows))
    shares, most_calls = list[float](), 0
    for fold in split.folds:
        train = pool.rows(rng.permutation(fold.train)[: calls // size])
        chosen[0, fold.test], share = chosen_by_policy(weights, train, pool.rows(fold.test))
        chosen[1, fold.test] = best_single_worker(train)
        shares.append(share)
        most_calls = max(most_calls, len(train.questions) * size)
    cells = test_rows, chosen[:, test_rows]
    return Repetition(pool.scores[cells], pool.usd[cells], float(np.mean(shares)), most_calls)


def main() -> int:
    """Print the comparison, a line for each reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="as in podium route --list")
    parser.add_argument("split", help="as in podium route --split")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    arguments = parser.parse_args()
    matrix = whole_matrix(arguments.source, None)
    if not all(question.text for question in matrix.questions):
        raise UserError(f"{matrix.name} lacks texts of questions, which have kinds and lengths.")
    split = split_matrix(matrix, arguments.split, 0, drop_shared=True)
    seeds = range(arguments.repetitions)
    repetitions = [repeat(matrix, split, arguments.calls, seed) for seed in seeds]
    scores = np.stack([each.scores for each in repetitions])
    usd = np.stack([each.usd for each in repetitions])
    accuracy, mean_usd = 100 * scores.mean(axis=(0, 2)), usd.mean(axis=(0, 2))
    calls = max(each.calls for each in repetitions)
    print(f"{arguments.source} {arguments.split}: {scores.shape[2]} questions, {calls} calls")
    print(f"own plans of one step: {100 * np.mean([each.one_step for each in repetitions]):.0f} %")
    print(f"{ROWS[0]} {accuracy[0]:.1f}")
    for row, name in enumerate(ROWS[1:], 1):
        difference = crossed_mean([scores[:, 0] - scores[:, row]])
        low, high = difference.interval or (difference.mean, difference.mean)
        ratio = f"{mean_usd[0] / mean_usd[row]:.2f} x its dollars" if mean_usd[row] > 0 else ""
        print(
            f"{name} {accuracy[row]:.1f}: policy minus it {100 * difference.mean:+.1f} "
            f"[{100 * low:+.1f},{100 * high:+.1f}] {ratio or 'no dollars'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
