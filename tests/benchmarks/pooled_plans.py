"""Plans that a training's own tries foretell to be right: what a warm start may teach a new one.

    PYTHONPATH=. python tests/benchmarks/pooled_plans.py RUN ... --out plans.jsonl [--seed 0]

RUN is a folder of `podium train`. Where a question was tried a dozen times and workers slip, which
of its own plans were right is chance; what is pooled here is who did what. Per suite, a ridge
logistic regression on who works, after whom and last, over all questions and apart in six clusters
of them (TF-IDF, k-means), is fitted to rewards, cost term included. For each train question weights
are drawn from its Laplace approximation, and the sequence of up to three workers of which these
foretell most is written: what is sure often, what is unsure now and then (Thompson 1933). No target
and no plan of others is seen. `[warm_start] kind = "given-plans"` reads the file.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podium.baselines.routers import TfIdf
from podium.baselines.routers.optimisers import k_means, ridge_logistic, sigmoid
from podium.suites import SUITES

Floats = NDArray[np.float64]
Workers = tuple[str, ...]
LONGEST, CLUSTERS = 3, 6
PULL, PULL_APART = 1.0, 4.0  # ridge on what workers do, and on how a cluster departs


def roles(workers: Workers) -> set[str]:
    """Return what a sequence is made of.

    >>> sorted(roles(("a", "b")))
    ['a', 'a before b', 'a first', 'b', 'b last', 'length 2']
    """
    found = {f"length {len(workers)}", f"{workers[0]} first", f"{workers[-1]} last", *workers}
    return found | {f"{one} before {other}" for one, other in pairwise(workers)}


def tries(runs: Sequence[Path]) -> list[tuple[str, str, Workers, float]]:
    """Return suite, question, workers and reward, of each plan that could be read.

    A right answer's reward is 1 less its cost, a wrong one's 0.5 in both rewards: here 1 and 0.
    """
    lines = [json.loads(line) for run in runs for line in (run / "plans.jsonl").open()]
    found = [
        (
            one["suite"],
            one["question"],
            tuple(worker for worker, _ in one["plan"]),
            max(0.0, 2 * one["value"] - 1),
        )
        for one in lines
        if one["plan"] and one["correct"] is not None
    ]
    return [one for one in found if len(one[2]) <= LONGEST]


def foretold(seen: Sequence[tuple[str, str, Workers, float]], seed: int) -> dict[str, Workers]:
    """Return a sequence of workers for each train question of one suite."""
    texts = {one.id: one.text for one in SUITES[seen[0][0]].load("train")}
    rows = TfIdf().embed(TfIdf().fit([*texts.values()]), [*texts.values()])
    cluster = dict(zip(texts, k_means(rows, CLUSTERS, 10, 0)[1].tolist(), strict=True))
    able = sorted({worker for _, _, workers, _ in seen for worker in workers})
    plans = [one for n in range(1, LONGEST + 1) for one in product(able, repeat=n)]
    names = sorted(set[str]().union(*map(roles, plans)))
    played = {one: np.array([float(name in roles(one)) for name in names]) for one in plans}

    def design(workers: Sequence[Workers], at: Sequence[int]) -> Floats:
        who = np.array([played[one] for one in workers])
        where = np.eye(CLUSTERS)[list(at)]
        apart = (where[:, :, None] * who[:, None, :]).reshape(len(who), -1)
        return np.hstack([np.ones((len(who), 1)), who, where, apart])

    known = design([one[2] for one in seen], [cluster[one[1]] for one in seen])
    reward = np.array([one[3] for one in seen])
    counts = [1, len(names), CLUSTERS, CLUSTERS * len(names)]
    pull = np.repeat([0.05, PULL, PULL, PULL_APART], counts)
    weights = ridge_logistic(known, reward, pull)
    mean = sigmoid(known @ weights)
    bent = (known * (mean * (1 - mean))[:, None]).T @ known + np.diag(pull)
    root = np.linalg.inv(np.linalg.cholesky(bent)).T  # root @ root.T is the inverse
    choices = {at: design(plans, [at] * len(plans)) for at in range(CLUSTERS)}
    random, found = np.random.default_rng(seed), dict[str, Workers]()
    for id, at in cluster.items():
        worth = choices[at] @ (weights + root @ random.standard_normal(len(weights)))
        found[id] = plans[int(worth.argmax())]
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    seen, plans = tries(given.runs), dict[str, Workers]()
    for suite in sorted({one[0] for one in seen}):
        plans |= foretold([one for one in seen if one[0] == suite], given.seed)
    with given.out.open("x") as file:
        for id, workers in plans.items():
            file.write(json.dumps({"question": id, "workers": workers}) + "\n")
    print(f"{len(plans)} questions, {len({*plans.values()})} sequences: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
