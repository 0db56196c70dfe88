"""Tokens that nobody reported are unknown; tokens that nobody billed are not paid."""

from contextvars import copy_context
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import ModelUsage

from podium.harness.ledger.system_runs import load_runs, spent
from podium.harness.ledger.totals import SystemRun, system_totals
from podium.harness.records import Usage
from podium.harness.usage import usage_from
from tests.harness.ledger.ledger_rows import rows_in
from tests.harness.runs import BOOK, Crew, sit, steps


def only(log_dir: Path) -> SystemRun:
    """Return the one sitting below a directory."""
    ((system_run,), _) = load_runs([log_dir])
    return system_run


def test_reasoning_that_was_not_reported_is_unknown_and_not_zero(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"))
    system_run = only(tmp_path)
    assert [call.usage.reasoning for call in rows_in(*system_run.paths) if call.usage] == [None] * 8
    assert system_run.attempts[0].totals.tokens_reasoning is None
    assert system_totals(system_run).tokens_reasoning is None


def test_reasoning_adds_up_only_where_all_of_it_is_known() -> None:
    some, none, unknown = Usage(reasoning=3), Usage(reasoning=0), Usage()
    assert (some + none).reasoning == 3
    assert (some + unknown).reasoning is None
    assert usage_from(ModelUsage(input_tokens=1, reasoning_tokens=0)) == Usage(1, reasoning=0)


def test_votes_read_from_the_cache_are_votes_of_their_own_and_not_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    crew = Crew(sage=lambda heard: f"{heard.occurrence}")
    votes = steps(*["sage"] * 5)
    for run in ("1", "2"):
        # Inspect leaves the settings of an eval behind in the caller's context.
        copy_context().run(sit, tmp_path / run, "votes", votes, crew, settings={"cache": True})
    first, second = only(tmp_path / "1"), only(tmp_path / "2")
    assert [call.billable for call in rows_in(*first.paths)] == ["yes"] * 20
    assert [call.billable for call in rows_in(*second.paths)] == ["no"] * 20
    assert system_totals(first).usd_spent == 20 * Decimal("0.000014")
    assert system_totals(second).usd_spent == 0
    assert spent(tmp_path / "2", BOOK) == 0
