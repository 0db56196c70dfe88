"""The reconciliation table of a run with retries, cache hits and a killed process (synthetic).

    python tests/benchmarks/reconciliation.py [--out NEW_FOLDER]        # less than a minute

Three workers answer questions of a local server that speaks the dialects of OpenAI, Anthropic and
Google; to podium they are live, with test keys and made-up prices. Scripted are 429, 500 and 529,
a request that is not answered in time, tokens that the provider had cached, replies from Inspect's
local cache, a judge, and SIGKILL with two calls in flight, after which the same command goes on.
Then `podium audit` holds against each other: our rows, Inspect's samples, runs and hooks, and the
server's own bill. Every difference must have a name, and every request that reached the server
must be one row. Nobody is paid, and nothing leaves this machine.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.cli import main as podium
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.ledger.call import Call
from podium.harness.ledger.journal import read_lines
from podium.harness.records import Usage
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.run import run
from podium.reports.audit import audit
from tests.harness.judged_run import Whole
from tests.providers import Act, Server, failing, ok, rate_limited, serve, stalling, write_pool
from tests.reports.audit.audited_run import rows_below
from tests.suites.test_rlpr import PROSE, folder, row

QUESTIONS, IN_FLIGHT, LONGEST_S = 4, 2, 120
TRIES = "max_tokens = 64, max_retries = 3, attempt_timeout = 8"
SAID = "<answer>The air is thinner above.</answer>\nANSWER: 7"
CACHED = ok(SAID, Usage(input=100, output=40, cache_read=300, reasoning=12))
WROTE = ok(SAID, Usage(input=100, output=40, cache_read=300, cache_write=50))
SCRIPT: Mapping[str, Sequence[Act]] = {
    "gpt-5-mini": [rate_limited(), CACHED, ok(SAID), CACHED, *[ok(SAID)] * 99],
    "claude-sonnet-5": [failing(529), WROTE, ok(SAID), WROTE, *[ok(SAID)] * 99],
    "gemini-2.5-pro": [
        *(CACHED, stalling(), stalling(), ok(SAID)),  # the first sitting, which is killed
        *(stalling(), failing(500), rate_limited(), ok(SAID), CACHED),  # the second
        *[ok(SAID)] * 99,
    ],
    "gpt-5-nano": [ok("They agree. \\boxed{Y}")] * 99,
}
GRADER = """
[grader]
model = "openai/gpt-5-nano"
args = {{ base_url = "{url}", api_key = "test-grader" }}
"""
RATE = '"openai/gpt-5-nano" = { input = "0.05", output = "0.4", cache_read = "0.005" }\n'


def write_pools(home: Path, server: Server) -> tuple[str, str]:
    """Write the pool of the exam, whose first worker caches locally, and one with a judge."""
    home.mkdir(parents=True)
    pool = Path(write_pool(home, server, TRIES, sdk_retries=1))
    text = pool.read_text()
    with (home / "book.toml").open("a") as book:
        book.write(RATE)
    judged = home / "judged.toml"
    judged.write_text(text + GRADER.format(url=server.openai))
    pool.write_text(text.replace("max_tokens", "cache = true, max_tokens", 1))
    return str(pool), str(judged)


def system_run(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Begin this script in a process of its own: it dies alone."""
    here = [sys.executable, __file__, "--sit", *words]
    return subprocess.Popen(here, start_new_session=True, stdout=subprocess.DEVNULL)


def sit(words: Sequence[str]) -> int:
    """Run `podium run`; or a judged exam of two made-up questions, which no suite has."""
    if words[0] != "judged":
        return podium(["run", *words])
    data, pool, log_dir = words[1:]
    prose = [row(f"What does pressure do {n} m up?", PROSE) for n in (100, 900)]
    suite = Whole(data=folder(Path(data), prose))
    asked = RunRequest(("rlpr",), ("single:plum",), pool, Path(log_dir), display="none")
    parts = replace(whole_catalogue(), suites={"rlpr": suite})
    return 0 if run(asked, parts, controls()).finished else 1


def open_calls(run_dir: Path) -> int:
    """Return how many calls the journals have begun and not ended."""
    kinds: Counter[str] = Counter()
    for path in run_dir.glob("ledger/*/*.jsonl"):
        kinds.update(line["kind"] for line in read_lines(path))
    return kinds["intent"] - kinds["outcome"]


def kill_when_stalled(process: subprocess.Popen[bytes], run_dir: Path, server: Server) -> None:
    """Kill a sitting once all it waits for are the requests that the server does not answer."""
    began, quiet = time.monotonic(), 0
    while quiet < 10:
        assert process.poll() is None, "the sitting ended before it was killed"
        assert time.monotonic() - began < LONGEST_S, "the sitting did not get there"
        time.sleep(0.1)
        stalled = sum(line.ending == "stalled" for line in server.bill.lines)
        still = stalled == IN_FLIGHT and open_calls(run_dir) == IN_FLIGHT
        quiet = quiet + 1 if still else 0
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def runs(home: Path) -> tuple[Server, list[Call]]:
    """Make both runs; return the server with its bill, and the rows of the ledger."""
    exam, judged = home / "runs" / "exam", home / "runs" / "judged"
    with serve(SCRIPT) as server:
        pool, with_judge = write_pools(home, server)
        words = ["--suite", "practice-integer", "--system", "single:olive", "--system", "moa-lite"]
        words += ["--pool", pool, "--limit", str(QUESTIONS), "--log-dir", str(exam), "--seed", "1"]
        words += ["--yes"]
        kill_when_stalled(system_run(words), exam, server)
        assert system_run(words).wait() == 0
        assert system_run(["judged", str(home), with_judge, str(judged)]).wait() == 0
    return server, rows_below(home / "runs")


def show(home: Path) -> int:
    """Make the runs, print the audit and what the server says; return 1 where they differ."""
    os.environ["INSPECT_CACHE_DIR"] = str(home / "cache")
    began = time.monotonic()
    server, rows = runs(home)
    bill = server.bill
    bill.write_csv(home / "bill.csv")
    words = [str(home / "runs"), "--invoice", str(home / "bill.csv"), "--whole-account"]
    left = podium(["audit", *words])
    sent = [one for one in rows if one.cache != "read"]
    by_status = Counter(
        line.status if line.ending == "whole" else line.ending for line in bill.lines
    )
    said = ", ".join(f"{status}: {often}" for status, often in by_status.items())
    print(f"\nThe server had {len(bill.lines)} requests ({said}) and bills {len(bill.billed)}.")
    print(f"The ledger has {len(rows)} rows: {len(rows) - len(sent)} local, {len(sent)} sent.")
    print(f"SYNTHETIC: a local server's replies; {time.monotonic() - began:.0f} s in all.")
    assert len(bill.lines) == len(sent), "a request without a row, or a row without a request"
    assert len(rows) > len(sent), "nothing came from the local cache"
    unnamed = [
        name for name, why in audit(home / "runs").table.causes.items() if "UNEXPLAINED" in why
    ]
    assert not unnamed, f"differences without a name: {unnamed}"
    return left


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description="Show how a run's money reconciles.")
    parser.add_argument("--out", type=Path, help="keep the runs there; default: do not keep them")
    parser.add_argument("--sit", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.sit:
        return sit(asked.sit)
    if asked.out:
        return show(asked.out.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        return show(Path(scratch) / "reconciliation")


if __name__ == "__main__":
    sys.exit(main())
