"""A call that is cancelled before its request is sent is no attempt that may have been billed."""

from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from podium.harness.ledger.call import Call
from podium.harness.ledger.join import journal_calls
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from tests.harness.limited_runs import HEAD
from tests.providers import CLIENTS_WARN, Bill, serve, stalling, write_pool

pytestmark = CLIENTS_WARN


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What is left of a call that was cancelled."""

    bill: Bill
    row: Call


def cancelled(folder: Path, worker: str, *, once_it_arrived: bool) -> Cancelled:
    """Cancel a call before its client has its request, or once the provider has it."""
    with serve([stalling(20)]) as server:
        spec = read_pool(write_pool(folder, server))
        pool = Pool(pool_models(spec), spec)

        async def ask() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pool.ask, worker, [ChatMessageUser(content="3 + 4?")], "step")
                while not any(folder.glob(f"{FOLDER}/*/*.jsonl")):
                    await anyio.sleep(0)
                while once_it_arrived and not server.bill.lines:
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()

        with recording_calls(folder, "training", HEAD):
            anyio.run(ask)
        (path,) = folder.glob(f"{FOLDER}/*/*.jsonl")
        ((_, (row,)),) = journal_calls(path, read_book(spec.prices))
        return Cancelled(server.bill, row)


@pytest.mark.parametrize("worker", ["olive", "plum"])
def test_a_call_that_was_cancelled_before_it_was_sent_costs_nothing(
    worker: str, tmp_path: Path
) -> None:
    found = cancelled(tmp_path, worker, once_it_arrived=False)
    assert found.bill.lines == []
    assert (found.row.billable, found.row.usd_high) == ("no", 0)


@pytest.mark.parametrize("worker", ["olive", "plum", "quince"])
def test_a_call_that_was_cancelled_once_it_was_sent_may_have_been_billed(
    worker: str, tmp_path: Path
) -> None:
    found = cancelled(tmp_path, worker, once_it_arrived=True)
    assert len(found.bill.billed) == 1
    assert found.row.billable == "unknown"
    assert found.row.usd_high
    assert found.row.usd_high > 0
