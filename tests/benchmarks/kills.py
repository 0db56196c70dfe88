"""What a run buys twice, and what its ledger says it paid, when it is stopped again and again.

    python tests/benchmarks/kills.py                        # 20 stops, five by each signal
    python tests/benchmarks/kills.py --stops 10 --seed 3 --signal KILL

A run for each signal: questions to four workers at once and one that reads their replies, of a
local provider whose bill is the truth. It is stopped with calls in flight, at random, and goes on
until it is finished. `true` is the bill, `low` to `high` what the ledger says was paid. A reply
that no process lived to read is bought again; `bought twice` counts replies beyond those.
"""

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.runs import calls_of
from tests.harness.billed_run import BilledRun, billed

SIGNALS = ("INT", "TERM", "HUP", "KILL")
HEAD = (
    "signal", "stops", "requests", "needed", "lost in flight", "bought twice", "true $", "low $",
    "high $", "high / true", "audit fails",
)  # fmt: skip
QUESTIONS, WORKERS = 12, 4


def main() -> None:
    """Stop runs, let them finish, and print a row for each signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--signal", choices=SIGNALS, action="append")
    asked = parser.parse_args()
    names, luck = asked.signal or SIGNALS, random.Random(asked.seed)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    for name in names:
        with (
            tempfile.TemporaryDirectory() as folder,
            billed(Path(folder), QUESTIONS, WORKERS) as run,
        ):
            stops = asked.stops // len(names)
            for _ in range(stops):
                run.stopped(signal.Signals[f"SIG{name}"], after=luck.randint(1, 8))
            code = run.finished()
            assert code == 0, run.said
            print(f"| {' | '.join(map(str, (name, stops, *_row(run))))} |", flush=True)


def _row(run: BilledRun) -> tuple[object, ...]:
    found = [call for path in run.log_dir.glob(f"{FOLDER}/*/*.jsonl") for call in calls_of(path)]
    read = sum(bool(call.outcome) and not call.outcome["from_store"] for call in found)
    needed, lost = QUESTIONS * (WORKERS + 1), run.requests - read
    true, paid = run.true_usd, run.paid
    ratio = "unknown" if paid.high is None else f"{paid.high / true:.2f}"
    fails = ", ".join(run.failing) or "nothing"
    twice = run.bought_twice - lost
    return run.requests, needed, lost, twice, true, paid.low, paid.high, ratio, fails


if __name__ == "__main__":
    main()
