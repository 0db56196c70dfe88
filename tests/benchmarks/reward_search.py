"""What does a grader pay to a searcher who does not know the answer?

    PYTHONPATH=. python tests/benchmarks/reward_search.py [SUITE ...] [--replies 100000]
        [--seed 0] [--against CHECKOUT] [--rows]

Two searches share the replies of a suite; both draw keys anew for each reply and use no model.
Evolution (guessing.py) looks for one reply that passes for two keys of a round: without it
nothing can earn more than the best single guess. A bandit (hedging.py) composes replies that
hold no answer at all and learns which are paid: a guess in disguise, worth nothing to an examiner.
`--against` first lets the graders of another checkout be searched; `--rows` prints what was found
as rows of the battery. Families that need math-verify get a tenth: some 30 ms a reply.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests import ROOT
from tests.benchmarks.graders import commit_of
from tests.harness.rewards.guessing import LEVEL, Hunt, hunt
from tests.harness.rewards.guessing_rounds import FAMILIES, HEDGED, budget
from tests.harness.rewards.hedging import Hedging, PaidHedge, hedging


def evolved(suite: str, replies: int, seed: int) -> None:
    """Print what one reply for two keys came to."""
    print("  one reply for two keys")
    for family, share in budget(suite, replies).items():
        started = time.monotonic()
        print(f"    {_hunted(hunt(suite, family, share, seed))}{_since(started)}", flush=True)


def _hunted(found: Hunt) -> str:
    best = max((trick.reward for trick in found.tricks), default=found.guess)
    line = (
        f"{found.family:<22}{found.replies:>8,} replies {found.templates:>7,} templates;"
        f" chance {1 / found.keys:.2f}, a boxed guess {found.guess:.2f}, the best {best:.2f};"
        f" {len(found.tricks)} tricks, {len(found.proven)} beyond chance at {LEVEL}"
    )
    said = (f"      {trick.reward:.2f} {''.join(trick.template)!r}" for trick in found.tricks)
    return "\n".join((line, *said))


def hedged(suite: str, replies: int, seed: int, as_rows: bool) -> None:
    """Print what replies without an answer were paid."""
    print("  replies without an answer")
    for family, share in budget(suite, replies, HEDGED[suite]).items():
        started = time.monotonic()
        found = hedging(suite, family, share, seed)
        print(f"    {_summed(found)}{_since(started)}", flush=True)
        for paid in found.paid:
            print(_row(paid) if as_rows else f"      {paid.reward:.2f} {paid.reply!r}")


def _summed(found: Hedging) -> str:
    earned = sum(paid.reward for paid in found.paid) / max(1, len(found.paid))
    return (
        f"{found.family:<22}{found.replies:>8,} replies, {found.rewarded:>6,} paid, by"
        f" {len(found.paid)} of {found.forms} forms, which earn {earned:.2f} on average"
    )


def _row(paid: PaidHedge) -> str:
    row = {"reply": paid.reply, "gold": paid.key, "right": False, "why": "a hedge that was paid"}
    return json.dumps(row | ({"choices": paid.choices} if paid.choices else {}), ensure_ascii=False)


def _since(started: float) -> str:
    return f" ({time.monotonic() - started:.0f} s)"


def elsewhere(checkout: Path) -> int:
    """Run this search with the graders of another checkout."""
    print(f"Graders of {commit_of(checkout)}:", flush=True)
    own = sys.argv[1:]
    at = own.index("--against")
    path = os.pathsep.join((str(checkout.resolve()), str(ROOT)))
    return subprocess.run(
        [sys.executable, __file__, *own[:at], *own[at + 2 :]],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    ).returncode


def main() -> None:
    """Search the suites that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="*", help="all, unless named")
    parser.add_argument("--replies", type=int, default=100_000, help="a suite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--against", type=Path, help="another checkout, whose graders come first")
    parser.add_argument("--rows", action="store_true", help="print what was found as rows")
    asked = parser.parse_args()
    if unknown := sorted({*asked.suites} - {*FAMILIES}):
        parser.error(f"no keys of {', '.join(unknown)}; there are: {', '.join(FAMILIES)}")
    if asked.against:
        elsewhere(asked.against)
        print("\nGraders of this checkout:", flush=True)
    for suite in asked.suites or FAMILIES:
        print(f"{suite}: {asked.replies:,} replies")
        evolved(suite, asked.replies // 2, asked.seed)
        hedged(suite, asked.replies // 2, asked.seed, asked.rows)


if __name__ == "__main__":
    main()
