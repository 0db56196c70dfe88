"""Faults of a provider in the middle of a task's sample: the ledger is held against its bill."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.reports.audit import audit
from tests.harness.test_inspect_tasks import act, ran
from tests.providers import CLIENTS_WARN
from tests.providers.dialect import Asked
from tests.providers.script import Act, cutting, dropping, failing, rate_limited
from tests.providers.server import serve
from tests.reports.audit.audited_run import rows_below

pytestmark = [pytest.mark.slow, CLIENTS_WARN]
MIDDLE = 3
"""The request that fails: a mixture's first turn is being answered, a worker's second one."""


def _without_choices(body: Mapping[str, Any]) -> object:
    return {**body, "choices": []}


def _cut_off(body: Mapping[str, Any]) -> object:
    call = {"name": "look", "arguments": '{"place": "bo'}
    calls = [{"id": "call-1", "type": "function", "function": call}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {**body, "choices": [{"index": 0, "finish_reason": "length", "message": message}]}


FAULTS: Mapping[str, Act] = {
    "429": rate_limited(),
    "500": failing(500),
    "503": failing(503),
    "dropped": dropping(),
    "cut": cutting(),
    "billed without choices": Act(change=_without_choices),
    "a call of a tool cut off": Act(change=_cut_off),
}


@pytest.mark.parametrize("system", ["single:a", "moa-lite"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_middle_of_a_sample_is_counted_as_it_was_billed(
    fault: str, system: str, tmp_path: Path
) -> None:
    came = 0

    def unlucky(asked: Asked) -> Act:
        nonlocal came
        came += 1
        return FAULTS[fault] if came == MIDDLE else act(asked)

    with serve(unlucky) as server:
        if not ran(tmp_path, server, "looking", system).finished:
            assert ran(tmp_path, server, "looking", system).finished
    # Of a sample that is begun again, what was paid for is read from the store.
    rows = [row for row in rows_below(tmp_path / "run") if not row.from_store]
    lines = server.bill.lines
    assert len(rows) == len(lines), "every request is one row"
    counted = [(row.input_total, row.output) for row in rows if row.billable == "yes" and row.usage]
    billed = [(line.usage.input_total, line.usage.output) for line in lines if line.billed]
    unseen = fault in ("dropped", "cut")  # was it billed? Its reply never came
    assert sum(row.billable == "unknown" for row in rows) == unseen
    assert len(counted) == len(billed) - unseen
    if not unseen:
        assert sorted(counted) == sorted(billed)
    low = sum((row.usd_low or Decimal(0) for row in rows), Decimal(0))
    usd = sum((Decimal(asked + 2 * said) for asked, said in billed), Decimal(0)) / 1_000_000
    assert low <= usd
    assert unseen or low == usd
    (one,), _ = load_runs([tmp_path / "run"])
    assert [attempt.value for attempt in one.attempts] == [1.0, 1.0]
    assert audit(tmp_path / "run").ok
