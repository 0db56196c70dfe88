"""What a run buys twice when it is killed again and again: the provider's own file is the truth.

    python tests/benchmarks/kills.py                        # 20 kills, about a minute
    python tests/benchmarks/kills.py --kills 60 --seed 3

Twelve questions of five equal calls, and six calls that choose the worker: 66 replies are needed.
A reply is read when its outcome is in a journal. One that was served and not read was in flight
when its process died: nobody has its text, so it is asked again, and the ledger names the call.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.audit import audit
from harness.ledger.journal import FOLDER
from harness.ledger.runs import calls_of
from tests.harness.toy_run import calls, toy_pool

COMMAND = [sys.executable, "-m", "tests.harness.run.killed_run"]
NEEDED = 2 * 3 + 12 * 5


def main() -> None:
    """Kill a run, let it finish, and print what became of its requests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log_dir = Path(folder) / "run"
        toy_pool(log_dir, connections=3)
        Path(f"{log_dir}.slow").write_text("0.03")
        command = [*COMMAND, str(log_dir), str(asked.kills), str(asked.seed)]
        subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
        _say(log_dir)


def _say(log_dir: Path) -> None:
    system_runs = Path(f"{log_dir}.sittings").read_text().splitlines()
    found = [call for path in (log_dir / FOLDER).glob("*/*.jsonl") for call in calls_of(path)]
    replayed = [call for call in found if call.outcome and call.outcome["from_store"]]
    read = Counter(
        f"{call.intent['role']} {call.intent['sample']['question']}"
        for call in found
        if call.outcome and not call.outcome["from_store"]
    )
    served, sent = calls(log_dir, "end"), calls(log_dir)
    unread = len(served) - read.total()
    named = sum(call.outcome is None for call in found)
    print(f"kills                                   {len(system_runs)}")
    print(
        f"  with calls in flight                  {sum(x.split()[2] != '0' for x in system_runs)}"
    )
    print(f"requests that reached the provider      {len(sent)}")
    print(f"  served                                {len(served)}")
    print(f"  read (their outcome is written)       {read.total()} of {NEEDED} needed")
    print(f"  read and bought again                 {read.total() - NEEDED}")
    print(f"  served and not read                   {unread}, of {named} named as in flight")
    print(f"replies read from the store             {len(replayed)}")
    print(f"left in the store                       {len([*log_dir.glob('paid-replies/*')])}")
    failing = [one.invariant for one in audit(log_dir).verdicts if one.status == "fail"]
    print(f"audit                                   {', '.join(failing) or 'nothing fails'}")


if __name__ == "__main__":
    main()
