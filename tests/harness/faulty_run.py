"""`podium run` against a local provider that follows a script, and what is left of it.

    left = run(tmp_path, [rate_limited()])
    left.rows, left.bill, left.failing

One worker, `olive`, answers practice questions unless another system is named; each test says what
the provider does. Inspect waits 3 to 6 seconds before a second try, and a stall lasts until a limit
that a slow machine keeps too: so tests of several files read the same three runs, `clean`,
`retried` and `unanswered`, which conftest.py knows.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.ledger.call import Call
from podium.harness.records import Usage
from podium.reports.audit import Audit, audit
from tests.providers import (
    Bill,
    Script,
    Server,
    cutting,
    failing,
    ok,
    rate_limited,
    serve,
    stalling,
    unreported,
    write_pool,
)
from tests.reports.audit.audited_run import rows_below

ONE_TRY = "max_tokens = 64, max_retries = 0, attempt_timeout = 20"
ONE_SHORT_TRY = "max_tokens = 64, max_retries = 0, attempt_timeout = 10"
TWO_TRIES = "max_tokens = 64, max_retries = 1, attempt_timeout = 20"
ALL_THREE = "moa-lite"
"""Asks all three workers at once, then `olive` once more."""
TOOK = Usage(input=100, output=40, cache_read=30, reasoning=12)


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left behind."""

    folder: Path
    bill: Bill
    rows: list[Call]
    audit: Audit

    @property
    def row(self) -> Call:
        """The only row."""
        (row,) = self.rows
        return row

    @property
    def failing(self) -> set[str]:
        """The invariants that do not hold."""
        return {one.invariant for one in self.audit.verdicts if one.status == "fail"}

    def of(self, worker: str) -> list[Call]:
        """Return the rows of one worker."""
        return [row for row in self.rows if row.role == worker]

    def read_again(self) -> list[Call]:
        """Return the rows of what is there now."""
        return rows_below(self.folder)

    def faults(self, invariant: str) -> list[str]:
        """What an audit says against one invariant."""
        found = (one.faults for one in self.audit.verdicts if one.invariant == invariant)
        return [fault.said for faults in found for fault in faults]

    def reasons(self, invariant: str) -> dict[str, int]:
        """What an audit finds weak about one invariant."""
        found = (one.reasons for one in self.audit.verdicts if one.invariant == invariant)
        return dict(reason for reasons in found for reason in reasons)


def run(
    folder: Path,
    script: Script = (),
    system: str = "single:olive",
    settings: str = ONE_TRY,
    limit: int = 1,
) -> Left:
    """Run some questions of `practice-integer` and audit what is left."""
    return run_pool(
        folder, script, lambda server: write_pool(folder, server, settings), system, limit
    )


def run_pool(
    folder: Path,
    script: Script,
    pool: Callable[[Server], str],
    system: str,
    limit: int = 1,
    *words: str,
) -> Left:
    """Run with a pool file of one's own, written when the server's address is known."""
    home = folder / "run"
    with serve(script) as server:
        asked = ["--suite", "practice-integer", "--system", system, "--pool", pool(server), "--yes"]
        asked += ["--limit", str(limit), "--log-dir", str(home), *words]
        copy_context().run(main, ["run", *asked])
    return Left(home, server.bill, rows_below(home), audit(home))


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Two questions of three workers, whose providers answer."""
    return run(tmp_path_factory.mktemp("clean"), [ok(usage=TOOK)] * 8, ALL_THREE, limit=2)


@pytest.fixture(scope="session")
def retried(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """One question of three workers; each provider refuses the first try and answers the second."""
    script = {
        "gpt-5-mini": [rate_limited(), ok(usage=TOOK), ok(usage=TOOK)],
        "claude-sonnet-5": [failing(529), ok(usage=TOOK)],
        "gemini-2.5-pro": [failing(500), ok(usage=TOOK)],
    }
    return run(tmp_path_factory.mktemp("retried"), script, ALL_THREE, TWO_TRIES)


@pytest.fixture(scope="session")
def unanswered(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Four questions of each worker by itself: one each is refused, stalls, is cut and is silent.

    A silent reply has no word about tokens.
    """
    script = {
        model: [failing(status), stalling(), cutting(), unreported()]
        for model, status in REFUSING.items()
    }
    return run(tmp_path_factory.mktemp("unanswered"), script, "single", ONE_SHORT_TRY, limit=4)


REFUSING = {"gpt-5-mini": 500, "claude-sonnet-5": 529, "gemini-2.5-pro": 429}
"""With which status a model's provider refuses in `unanswered`."""


def usage(rows: Sequence[Call], model: str | None = None) -> Usage:
    """Return what the ledger counts, all rows together or one model's, as a bill does."""
    counted = [row for row in rows if row.billable == "yes"]
    wanted = [row for row in counted if model in (None, row.model.split("/", 1)[1])]
    found = Usage(reasoning=0, total_reported=0)
    for row in wanted:
        assert row.usage is not None
        found += row.usage
    return found
