"""What sharing draws saves, and what a run that shares them buys twice when it is killed.

    python tests/benchmarks/shared_draws.py                # both tables; rehearsal, no network
    python tests/benchmarks/shared_draws.py --limit 100 --kills 40

`apart` and `shared` are the same systems on the same questions with `--fresh-draws` and without:
dollars that a live run would have paid, at the rehearsal book. `kills` stops a toy run of three
systems by SIGKILL at random moments and lets it finish; its provider's own list is the truth.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.cli import main as podium
from podium.cli.run_commands import CHECKPOINTS
from podium.cli.run_commands import SYSTEMS as DEMO
from tests import ROOT
from tests.harness.toy_run import calls, toy_pool
from tests.reports.audit.audited_run import failing, rows_below

FIELDS = {
    "single x 3, self-consistency@5, best-of-n@5, moa-lite, fusion, debate": (
        *("single:abacus", "single:sage", "single:swift", "self-consistency@5", "best-of-n@5"),
        *("moa-lite", "fusion", "debate"),
    ),
    "the demo's field": (*DEMO.split(), *CHECKPOINTS),
}
SUITES = ("practice-choice", "practice-composed")
TOY = ("single:ada", "self-consistency@3", "best-of-n@3")
NEEDED = 12 * (3 + 1)
"""Calls of the toy run: three draws of ada a question, and the judge's."""


def bought(folder: Path, systems: tuple[str, ...], limit: int, *, fresh: bool) -> list[Decimal]:
    """Run some systems; return calls bought, dollars paid for them and would-be dollars."""
    words = ["run", "--pool", "rehearsal", "--time-scale", "0", "--display", "none"]
    words += [word for suite in SUITES for word in ("--suite", suite)]
    words += [word for name in systems for word in ("--system", name)]
    words += ["--limit", str(limit), "--log-dir", str(folder), *["--fresh-draws"] * fresh]
    with redirect_stdout(StringIO()):
        assert podium(words) == 0
    assert not failing(folder)
    rows = [row for row in rows_below(folder) if not row.task.endswith("(selection)")]
    paid = sum((row.usd or Decimal(0) for row in rows), Decimal(0))
    listed = sum((row.usd_list or Decimal(0) for row in rows), Decimal(0))
    return [Decimal(sum(row.cache != "read" for row in rows)), paid, listed]


def killed(folder: Path, kills: int, seed: int) -> tuple[int, int, int]:
    """Kill a run again and again, let it finish; return what was sent, answered, bought twice."""
    log_dir, luck = folder / "run", random.Random(seed)
    toy_pool(log_dir, connections=3)
    Path(f"{log_dir}.slow").write_text("0.05")
    command = [sys.executable, "-m", "tests.harness.toy_run", str(log_dir)]
    command += [word for name in TOY for word in ("--system", name)]
    for _ in range(kills):
        process, before = subprocess.Popen(command, cwd=ROOT), len(calls(log_dir))
        most = before + luck.randint(1, 3)
        while process.poll() is None and len(calls(log_dir)) < most:
            time.sleep(0.01)
        process.kill()
        process.wait()
    subprocess.run(command, cwd=ROOT, check=True)
    assert failing(log_dir) <= {"I11"}, "the toy counts the same tokens for each prompt"
    answered = Counter(call for call in calls(log_dir, "end") if " eval-" in call)
    return len(calls(log_dir)), answered.total(), answered.total() - NEEDED


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print("| systems | draws | calls bought | paid USD | would-be USD |\n|---|---|---|---|---|")
    for name, systems in FIELDS.items():
        for draws in ("apart", "shared"):
            with tempfile.TemporaryDirectory() as folder:
                figures = bought(Path(folder) / "run", systems, asked.limit, fresh=draws == "apart")
            print(f"| {name} | {draws} | {' | '.join(f'{one:f}' for one in figures)} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sent, answered, twice = killed(Path(folder), asked.kills, asked.seed)
    print(f"\n{asked.kills} kills: {sent} calls sent, {answered} answered of {NEEDED} needed,")
    print(f"{twice} bought twice: their replies reached no process that lived to keep them.")


if __name__ == "__main__":
    main()
