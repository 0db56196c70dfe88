"""How often two systems that differ by the margin itself are called equivalent: 5 % at most?

    PYTHONPATH=. python tests/benchmarks/equivalence_size.py [--draws 4000]

Single draws: exact, over all outcomes of n questions, the worst of many shares of questions that
the reference alone gets right; beside it Student's t alone and Tango's score alone. Means over
epochs: simulated (seed 1), the worst of what the questions may be like: a few won outright or half,
and of the others none, a few or all tossed a coin for by both.
"""

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy import stats

from podium.reports.equivalence import equivalence_p, tango, tost
from podium.reports.stats import Floats

SINGLE = ((30, 0.1), (60, 0.1), (100, 0.02), (149, 0.02), (200, 0.02), (200, 0.05), (500, 0.02))
MEANS = ((30, 0.1), (100, 0.05), (200, 0.02), (200, 0.05), (500, 0.02))
LOST = (0.0, *np.geomspace(1e-3, 0.3, 20).tolist())
Test = Callable[[Floats, float], float]


def split(won: int, lost: int, n: int) -> Floats:
    """Return the differences of n questions of single draws."""
    return np.array([1.0] * won + [-1.0] * lost + [0.0] * (n - won - lost))


def worst(n: int, margin: float, test: Test) -> float:
    """Return the largest chance of a claim where the true difference is the margin."""
    most = min(n, int(n * (margin + 0.3) + 10))
    claims = [
        [won, lost, n - won - lost]
        for won in range(most + 1)
        for lost in range(min(most, n - won) + 1)
        if won - lost < n * margin and test(split(won, lost, n), margin) < 0.05
    ]
    shares = [[lost + margin, lost, 1 - 2 * lost - margin] for lost in LOST]
    sure = [one for one in shares if one[2] > 0]
    return max(float(stats.multinomial.pmf(claims, n, one).sum()) for one in sure) if claims else 0


def simulated(n: int, margin: float, epochs: int, draws: int) -> float:
    """Return the largest share of claims of any kind of questions."""
    rng, found = np.random.default_rng(1), list[float]()
    for share, noise in product((margin, 2 * margin, 0.5), (0.0, 0.1, 0.2, 1.0)):
        claims = 0
        for _ in range(draws):
            kind = rng.random(n)
            won, tossed = kind < share, (kind >= share) & (kind < share + (1 - share) * noise)
            rest = np.where(tossed, 0.5, 1.0)
            ours = rng.binomial(epochs, np.where(won, margin / share, rest))
            theirs = rng.binomial(epochs, np.where(won, 0.0, rest))
            deltas = (ours - theirs) / epochs
            claims += equivalence_p(deltas, margin, single=False) < 0.05
        found.append(claims / draws)
    return max(found)


def main() -> None:
    """Print the worst chance of a false claim, case by case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4_000)
    draws = parser.parse_args().draws
    tests: dict[str, Test] = {
        "all three": lambda deltas, margin: equivalence_p(deltas, margin, single=True),
        "Student's t": tost,
        "Tango's score": lambda deltas, margin: max(
            tango(one, margin) for one in (deltas, -deltas)
        ),
    }
    print("single draws, exact: questions, margin, then the worst chance of a false claim in %")
    for n, margin in SINGLE:
        each = (f"{name} {100 * worst(n, margin, test):.2f}" for name, test in tests.items())
        print(f"{n:5} {margin:5}  {'  '.join(each)}")
    print(f"means over epochs, {draws} draws: questions, margin, epochs, the worst share in %")
    for (n, margin), epochs in product(MEANS, (2, 4, 8, 16)):
        print(f"{n:5} {margin:5} {epochs:3}  {100 * simulated(n, margin, epochs, draws):.2f}")


if __name__ == "__main__":
    main()
