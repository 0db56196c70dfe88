"""A run of a task that is killed in the middle of its samples buys nothing twice.

The server's own list of requests is the truth. `PODIUM_KILLS` names another number of kills.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.reports.audit import audit
from tests import ROOT
from tests.harness.test_inspect_tasks import TASKS, act, pool
from tests.providers import CLIENTS_WARN
from tests.providers.dialect import Asked
from tests.providers.script import Act
from tests.providers.server import Server, serve
from tests.reports.audit.audited_run import rows_below

pytestmark = [pytest.mark.slow, CLIENTS_WARN]
KILLS, SEED = int(os.environ.get("PODIUM_KILLS", "5")), 11
SAMPLES = 8
SYSTEMS = ("single:a", "moa-lite")
AT_ONCE = 3
"""Calls in flight: a sample of each system, of which a mixture asks two workers."""


def slowly(asked: Asked) -> Act:
    done = act(asked)
    return Act(text=done.text, change=done.change, wait_s=0.15)


def started(home: Path, made: str) -> subprocess.Popen[bytes]:
    systems = [word for system in SYSTEMS for word in ("--system", system)]
    where = ["--suite", f"{TASKS}@looking", "-T", f"n={SAMPLES}", "--log-dir", str(home / "run")]
    words = [*where, *systems, "--pool", made, "--yes", "--display", "none"]
    return subprocess.Popen(
        [sys.executable, "-m", "podium", "run", *words],
        cwd=ROOT,
        env={**os.environ, "INSPECT_EVAL_MAX_SAMPLES": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed(home: Path, made: str, server: Server, rng: random.Random) -> bool:
    """Kill a run once it has asked some more; False if it ended before."""
    process, asked = started(home, made), len(server.bill.lines)
    more = rng.randint(1, 4)
    while process.poll() is None:
        if len(server.bill.lines) >= asked + more:
            time.sleep(rng.random() * 0.1)
            process.kill()
            return process.wait() != 0
        time.sleep(0.005)
    return False


def test_no_reply_that_was_written_down_is_bought_again(tmp_path: Path) -> None:
    rng, kills = random.Random(SEED), 0
    with serve(slowly) as server:
        made = pool(tmp_path, server)
        while kills < KILLS and killed(tmp_path, made, server, rng):
            kills += 1
        process = started(tmp_path, made)
        assert process.wait(300) == 0
        sent = Counter((line.model, line.prompt) for line in server.bill.lines)
    rows = rows_below(tmp_path / "run")
    unknown = sum(row.billable == "unknown" for row in rows)
    needed = SAMPLES * (2 + 6)  # two turns of one call, and of three
    assert kills == KILLS
    told = f"{kills} kills, {sent.total()} requests for {needed} calls, {unknown} in flight"
    assert needed <= sent.total() <= needed + unknown, told
    assert unknown <= AT_ONCE * kills, told
    runs = load_runs([tmp_path / "run"])[0]
    assert len(runs) == len(SYSTEMS)
    assert {one.value for run in runs for one in run.attempts} == {1.0}
    assert audit(tmp_path / "run").ok
