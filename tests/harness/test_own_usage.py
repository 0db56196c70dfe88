"""I1 compares every call with its provider's own usage, in four dialects and without Inspect."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.reports.audit import audit
from podium.reports.audit.amounts import UNBELIEVED, UNREADABLE
from tests.harness.faulty_run import ALL_THREE, ONE_TRY, Left, run, run_pool
from tests.providers import CLIENTS_WARN, Server, ok, too_much_cached
from tests.providers.one_question import FULL
from tests.reports.audit.audited_run import Json, edit_journal, edit_samples, model_events, said

pytestmark = CLIENTS_WARN

OWN = "the provider's own usage says"
ADDED = {"openai": "output_tokens", "anthropic": "output_tokens", "google": "candidatesTokenCount"}


@pytest.fixture
def copied(clean: Left, tmp_path: Path) -> Path:
    """Return a copy of a run of three dialects to tamper with."""
    return shutil.copytree(clean.folder, tmp_path / "run")


def test_the_ledger_counts_what_each_of_three_providers_says_of_everything(tmp_path: Path) -> None:
    left = run(tmp_path, [ok(usage=FULL)] * 4, ALL_THREE)
    assert all(row.raw_usage for row in left.rows)
    assert {row.model.split("/")[0] for row in left.rows} == set(ADDED)
    assert left.faults("I1") == []
    assert UNREADABLE not in left.reasons("I1")


def test_the_ledger_counts_what_chat_completions_say_of_everything(tmp_path: Path) -> None:
    def write(server: Server) -> str:
        path = tmp_path / "pool.toml"
        path.write_text(
            'label = "live"\nprices = "list-2026-11-21"\n'
            '[[workers]]\nname = "koi"\nmodel = "openai/gpt-5-2025-08-07"\n'
            f"config = {{ {ONE_TRY} }}\n"
            f'args = {{ base_url = "{server.openai}", api_key = "test", responses_api = false }}\n'
        )
        return str(path)

    left = run_pool(tmp_path, [ok(usage=FULL)], write, "single:koi")
    assert "prompt_tokens" in (left.row.raw_usage or "")
    assert left.faults("I1") == []
    assert UNREADABLE not in left.reasons("I1")


@pytest.mark.parametrize("provider", ADDED)
def test_output_that_only_the_provider_counted_fails_i1(provider: str, copied: Path) -> None:
    lost = ADDED[provider]

    def more(line: Json) -> Json:
        raw = line["raw_usage"]
        ours = provider == _provider(raw)
        return {**line, "raw_usage": {**raw, lost: raw[lost] + 5}} if ours else line

    edit_journal(copied, outcomes(more))
    assert f"{OWN} 45 output, the ledger 40" in said(audit(copied), "I1")


def test_counts_that_were_changed_together_with_their_total_fail_i1(copied: Path) -> None:
    def more(line: Json) -> Json:
        usage = line["usage"]
        return {**line, "usage": {**usage, "output": 47, "total_reported": None}}

    edit_journal(copied, outcomes(more))
    assert f"{OWN} 40 output, the ledger 47" in said(audit(copied), "I1")


def test_googles_tokens_for_tools_are_missed_for_inspect_drops_them(copied: Path) -> None:
    def with_tools(line: Json) -> Json:
        raw = line["raw_usage"]
        if _provider(raw) != "google":
            return line
        return {**line, "raw_usage": {**raw, "toolUsePromptTokenCount": 8}}

    edit_journal(copied, outcomes(with_tools))
    assert f"{OWN} 108 input, the ledger 100" in said(audit(copied), "I1")


def test_more_cached_than_asked_cannot_be_though_inspect_clamps_googles(tmp_path: Path) -> None:
    left = run(tmp_path, [too_much_cached()], "single:quince")
    assert left.row.model.startswith("google/")
    assert (left.row.input_uncached, left.row.usd, left.row.usd_low) == (None, None, 0)
    assert left.row.usd_high is not None
    assert left.failing == set(), "Inspect's totals have what it counted, and that has a name"
    assert left.reasons("I1") == {UNBELIEVED: 1}


@pytest.mark.parametrize("raw", [{"tokens": 3}, ["prompt_tokens"], "prompt_tokens", 3])
def test_a_usage_that_nobody_here_can_read_is_weak_and_no_fault(raw: object, copied: Path) -> None:
    edit_journal(copied, outcomes(lambda line: {**line, "raw_usage": raw}))
    found = said(audit(copied), "I1")
    assert found.startswith("weak")
    assert UNREADABLE in found


def test_requests_that_inspect_adds_up_are_not_held_against_the_last_ones_usage(
    copied: Path,
) -> None:
    def twice(line: Json) -> Json:
        if _provider(line["raw_usage"]) != "anthropic":
            return line
        return {**line, "usage": {**line["usage"], "output": 80, "total_reported": None}}

    def continued(sample: Json) -> None:
        for event in model_events(sample):
            event["request_ids"] = [*event.get("request_ids", ()), {"id": "more", "status": 200}]

    edit_journal(copied, outcomes(twice))
    assert OWN in said(audit(copied), "I1")
    edit_samples(copied, continued)
    found = said(audit(copied), "I1")
    assert OWN not in found
    assert UNREADABLE in found


def outcomes(change: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """Return a change of the ends of all calls."""
    return lambda line: change(line) if line["kind"] == "outcome" else line


def _provider(raw: dict[str, Any]) -> str:
    if "promptTokenCount" in raw or "prompt_token_count" in raw:
        return "google"
    return "openai" if "total_tokens" in raw else "anthropic"
