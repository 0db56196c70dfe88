"""What a request came to, as Fugu bills it: the last worker's tokens, and all others apart."""

from collections.abc import Sequence
from dataclasses import replace

from podium.harness.ledger.call import Call
from podium.harness.ledger.critical_path import step_number
from podium.harness.ledger.totals import add_up, usage_of
from podium.harness.records import Usage
from podium.serving.exchange import RequestBill

NO_TOKENS = Usage(reasoning=0)
NO_ORCHESTRATION = dict.fromkeys(
    ("orchestration_in", "orchestration_in_cached", "orchestration_out"), 0
)


def bill_of(rows: Sequence[Call]) -> RequestBill:
    """Return what the calls of a request come to; no call answered where all have failed."""
    steps = {row.call: step_number(row.step) for row in rows if row.error is None}
    last = max((step for step in steps.values() if step is not None), default=None)
    visible = [row for row in rows if row.error is None and last and steps[row.call] == last]
    own, others = usage_of(visible), usage_of(row for row in rows if row not in visible)
    return RequestBill(
        visible=own and replace(own, **NO_ORCHESTRATION, total_reported=None),
        orchestration=own and others and _orchestration(own) + _whole(others),
        calls=len({row.call for row in rows}),
        usd=add_up(rows).billed,
    )


def _whole(usage: Usage) -> Usage:
    """Return tokens with those among them that a worker spent on models of its own."""
    return replace(usage, **NO_ORCHESTRATION, total_reported=None) + _orchestration(usage)


def _orchestration(usage: Usage) -> Usage:
    cached = usage.orchestration_in_cached
    asked = usage.orchestration_in - cached
    return replace(NO_TOKENS, input=asked, cache_read=cached, output=usage.orchestration_out)
