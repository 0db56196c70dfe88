"""`podium run` as a process of its own, at a local provider whose bill is the truth.

    with billed(folder, questions=12) as run:
        code = run.stopped(signal.SIGTERM, after=30)
        run.finished()
        run.bought_twice

Replies have some KB and take `wait_s` seconds; the provider bills a request that has arrived, even
if its client has gone. It lives in the caller's process, so no signal reaches it.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.ledger.call import Call
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import system_runs_below
from podium.harness.ledger.totals import Paid, add_up
from podium.harness.prices import read_book
from podium.harness.prices.cost import cost
from podium.reports.audit import audit
from podium.reports.audit.audit_report import Audit
from tests import ROOT
from tests.providers import Act, Server, serve

MODEL = "openai/gpt-4o-mini"
BOOK = f"""\
date = "2026-01-02"
source = "made up for tests"
[usd_per_mtok]
"{MODEL}" = {{ input = "1", output = "1" }}
"""
WORKER = """
[[workers]]
name = "olive-{number}"
model = "{model}"
knowledge_cutoff = "unknown"
config = {{ max_tokens = 1000, max_connections = 5 }}
args = {{ base_url = "{url}", api_key = "test-{number}", max_retries = 0 }}
"""
SAID = "All work and no play. "
"""Of which replies are made: 140 times, some 3 KB."""
LONGEST_S = 600
DEFAULTS = {signal.SIGINT: signal.default_int_handler}


def default_signals() -> None:
    """Let signals end this process, whatever started it: a background shell ignores SIGINT."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, DEFAULTS.get(number, signal.SIG_DFL))


@dataclass(slots=True)
class BilledRun:
    """A run's directory, its provider, and how many workers answer each question."""

    log_dir: Path
    server: Server
    words: Sequence[str]
    workers: int
    said: str = ""
    """What the last process wrote to stderr."""
    gone: list[int] = field(default_factory=list[int])
    """By each process that was stopped: requests that had arrived by then."""

    def start(
        self, prepare: Callable[[], None] = default_signals, **more: Any
    ) -> "subprocess.Popen[str]":
        """Start the command, or go on with it."""
        command = [sys.executable, "-m", "podium", *self.words, *map(str, more.pop("options", ()))]
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        settings = {"text": True, "start_new_session": True, "cwd": ROOT, **pipes, **more}
        return subprocess.Popen(command, preexec_fn=prepare, **settings)

    def ended(self, process: "subprocess.Popen[str]") -> int:
        """Wait for a process; return its exit code."""
        _, self.said = process.communicate(timeout=LONGEST_S)
        return process.returncode

    def stopped(self, number: int, after: int, **more: Any) -> int:
        """Start, send a signal once so many more requests have arrived, and wait for the end."""
        process, wanted = self.start(**more), len(self.server.bill.lines) + after
        self.await_requests(wanted, process)
        process.send_signal(number)
        self.gone.append(len(self.server.bill.lines))
        return self.ended(process)

    def await_requests(self, wanted: int, process: "subprocess.Popen[str]") -> None:
        """Wait until so many requests have arrived in all, or the process has ended."""
        end = time.monotonic() + LONGEST_S
        while len(self.server.bill.lines) < wanted and time.monotonic() < end:
            if process.poll() is not None:
                return
            time.sleep(0.002)

    def finished(self, **more: Any) -> int:
        """Let the run go on to its end; return its exit code."""
        return self.ended(self.start(**more))

    @property
    def requests(self) -> int:
        """What arrived at the provider, by its own count."""
        return len(self.server.bill.lines)

    @property
    def bought_twice(self) -> int:
        """Requests beyond those that are needed: a question to each worker, replies to one."""
        asked = Counter(line.prompt for line in self.server.bill.billed)
        needed = {prompt: 1 if SAID in prompt else self.workers for prompt in asked}
        return sum(max(0, count - needed[prompt]) for prompt, count in asked.items())

    @property
    def true_usd(self) -> Decimal:
        """Dollars on the provider's bill."""
        price = read_book(str(self.log_dir.parent / "book.toml")).price(MODEL)
        found = cost(self.server.bill.usage(), price) if price else None
        assert found is not None
        return found

    @property
    def rows(self) -> list[Call]:
        """The ledger of the run."""
        return [row for files in system_runs_below(self.log_dir) for row in rows_of(files)]

    @property
    def paid(self) -> Paid:
        """What the ledger says was paid, as a range."""
        return add_up(self.rows).paid

    def audit(self) -> Audit:
        """Audit the run."""
        return audit(self.log_dir)

    @property
    def failing(self) -> dict[str, list[str]]:
        """Invariants that fail in the audit, with their faults."""
        found = self.audit().verdicts
        return {one.invariant: [*map(str, one.faults)] for one in found if one.status == "fail"}

    @property
    def weak(self) -> list[str]:
        """Invariants that are weak in the audit."""
        return [one.invariant for one in self.audit().verdicts if one.status == "weak"]


@contextmanager
def billed(
    folder: Path,
    questions: int = 20,
    workers: int = 4,
    *,
    wait_s: float = 0.2,
    log_dir: Path | None = None,
) -> Generator[BilledRun]:
    """Yield a run that no process has begun: `moa-lite` of some workers, or one worker alone."""
    folder.mkdir(parents=True, exist_ok=True)
    act = Act(text=SAID * 140 + "ANSWER: 7", wait_s=wait_s)
    with serve(lambda asked: act) as server:
        (folder / "book.toml").write_text(BOOK)
        pool = [WORKER.format(number=n, model=MODEL, url=server.openai) for n in range(workers)]
        (folder / "pool.toml").write_text('label = "live"\nprices = "book.toml"\n' + "".join(pool))
        system = "moa-lite" if workers > 1 else "single:olive-0"
        place = log_dir or folder / "run"
        words = ["run", "--suite", "practice-integer", "--system", system, "--log-dir", str(place)]
        words += ["--pool", str(folder / "pool.toml"), "--limit", str(questions), "--yes"]
        yield BilledRun(place, server, words, workers)
