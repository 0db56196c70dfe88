"""Every invariant of the audit: a run that passes it, and a fault that fails it by name."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.manifest import write_manifest
from podium.reports.audit import INVARIANTS, as_json, audit
from tests.harness.runs import steps
from tests.reports.audit.audited_run import (
    Json,
    edit_journal,
    edit_log,
    edit_samples,
    failing,
    model_events,
    of_kind,
    said,
    sat,
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of a pair of workers, with its journal and manifest."""
    folder = tmp_path_factory.mktemp("ran")
    sat(folder)
    write_manifest(folder)
    return folder


@pytest.fixture
def run(ran: Path, tmp_path: Path) -> Path:
    """Return a copy of it to tamper with; its manifest is of what it was."""
    return shutil.copytree(ran, tmp_path / "run")


def without_manifest(folder: Path) -> Path:
    (folder / "MANIFEST.json").unlink()
    return folder


def test_there_are_eighteen_invariants_and_each_says_what_it_promises() -> None:
    assert [one.id for one in INVARIANTS] == [f"I{number}" for number in range(1, 19)]
    assert all(one.title and one.meaning.endswith(".") for one in INVARIANTS)


def test_a_run_that_nobody_touched_passes_all_that_can_be_checked(run: Path) -> None:
    found = audit(run)
    assert found.ok
    status = {one.invariant: one.status for one in found.verdicts}
    assert {name for name, one in status.items() if one == "not applicable"} == {
        "I10",
        "I17",
        "I18",
    }


def test_an_audit_is_the_same_bytes_each_time(run: Path) -> None:
    first = as_json(audit(run))
    assert first == as_json(audit(run))
    assert str(run).encode() not in first


def tokens(sample: Json) -> None:
    """Change one call's tokens in the log."""
    for event in model_events(sample)[:1]:
        event["output"]["usage"]["output_tokens"] += 5


def unstated(sample: Json) -> None:
    """Change what the provider says of the whole."""
    for event in model_events(sample)[:1]:
        event["output"]["usage"]["total_tokens"] += 1000


def sample_total(sample: Json) -> None:
    for usage in sample["model_usage"].values():
        usage["input_tokens"] += 1


def role_total(sample: Json) -> None:
    for usage in sample["role_usage"].values():
        usage["output_tokens"] += 1


def second_event(sample: Json) -> None:
    """Put a call into the log that no journal has."""
    event = dict(model_events(sample)[0], uuid="made-up", span_id="elsewhere")
    sample["events"].append(event)


def no_event(sample: Json) -> None:
    """Take a call out of the log."""
    sample["events"].remove(model_events(sample)[0])


def backwards(sample: Json) -> None:
    for event in model_events(sample)[:1]:
        event["timestamp"], event["completed"] = event["completed"], event["timestamp"]
        event["completed"] = "2000-01-01T00:00:00+00:00"


def from_cache(sample: Json) -> None:
    """Let the log say that a call that the journal bills was read from the local cache."""
    for event in model_events(sample)[:1]:
        event["cache"] = "read"


def as_grading(sample: Json) -> None:
    """Let the log say that a call of inference was the scorer's."""
    for event in sample["events"]:
        if event["event"] == "span_begin" and event["name"] == "solvers":
            event["name"] = "scorers"


def fewer_steps(sample: Json) -> None:
    sample["metadata"]["podium"]["steps"] = 3


@pytest.mark.parametrize(
    ("change", "invariant", "words"),
    [
        pytest.param(sample_total, "I2", "Inspect's total less the ledger's: +1 input", id="I2"),
        pytest.param(role_total, "I2", "role clerk", id="I2-role"),
        pytest.param(tokens, "I4", "the journal's tokens less the log's: -5 output", id="I4"),
        pytest.param(second_event, "I4", "a call that no journal has", id="I4-escape"),
        pytest.param(no_event, "I4", "the log lacks the call", id="I4-lost"),
        pytest.param(fewer_steps, "I7", "3 replies of workers", id="I7"),
        pytest.param(from_cache, "I8", "it was read from a cache, and the journal bills", id="I8"),
        pytest.param(backwards, "I11", "ended before it began", id="I11"),
        pytest.param(as_grading, "I12", "made by the scorers", id="I12"),
    ],
)
def test_a_changed_log_fails_by_name(
    run: Path, change: Callable[[Json], None], invariant: str, words: str
) -> None:
    edit_samples(run, change)
    found = audit(run)
    assert not found.ok
    assert words in said(found, invariant)
    assert said(found, "I14").startswith("fail"), "its manifest shows it, too"


def test_a_changed_total_of_the_run_fails_i3(run: Path) -> None:
    def changed(name: str, found: Json) -> Json:
        if name == "header.json":
            for usage in found["stats"]["model_usage"].values():
                usage["output_tokens"] += 7
        return found

    for path in run.glob("*.eval"):
        edit_log(path, changed)
    assert "Inspect's total less the ledger's: +7 output" in said(audit(run), "I3")
    assert failing(without_manifest(run)) == {"I3"}


def test_a_sample_that_was_taken_out_of_its_log_fails_i4(run: Path) -> None:
    for path in run.glob("*.eval"):
        edit_log(path, lambda name, found: None if "q3" in name else found)
    assert "no log has question q3 epoch 1" in said(audit(run), "I4")


def test_a_made_up_price_book_fails_i5(run: Path) -> None:
    def cheaper(name: str, found: Json) -> Json:
        metadata: Any = (found.get("eval") or {}).get("metadata")
        if metadata:
            metadata["podium"]["prices"]["usd_per_mtok"]["scripted/sage"]["output"] = "1"
        return found

    for path in run.glob("*.eval"):
        edit_log(path, cheaper)
    assert "and its tokens cost 0.000005" in said(audit(run), "I5")


Line = Callable[[Json], Json | None]


def more_output(line: Json) -> Json:
    return {**line, "usage": {**line["usage"], "output": 50, "total_reported": None}}


def other_total(line: Json) -> Json:
    return {**line, "usage": {**line["usage"], "total_reported": 7250}}


def much_reasoning(line: Json) -> Json:
    return {**line, "usage": {**line["usage"], "reasoning": 900}}


def cheap(line: Json) -> Json:
    return {**line, "usd": "0.000001"}


def as_read(line: Json) -> Json:
    return {**line, "cache": "read"}


def refused(line: Json) -> Json:
    return {**line, "usage": None, "error": "RateLimitError", "http_status": 429}


@pytest.mark.parametrize(
    ("kind", "change", "invariant", "words"),
    [
        pytest.param("outcome", other_total, "I1", "unexplained tokens: +7,247", id="I1"),
        pytest.param(
            "outcome", much_reasoning, "I1", "900 reasoning tokens are more", id="I1-part"
        ),
        pytest.param("outcome", more_output, "I2", "-49 output", id="I2"),
        pytest.param("outcome", more_output, "I4", "+49 output", id="I4"),
        pytest.param("outcome", refused, "I4", "less the log's", id="I4-hidden"),
        pytest.param("intent", lambda line: None, "I4", "no intent", id="I4-no-intent"),
        pytest.param(
            "totals", lambda line: {**line, "input_tokens": 0}, "I4", "hooks", id="I4-hooks"
        ),
        pytest.param("outcome", cheap, "I5", "recorded as 0.000001", id="I5"),
        pytest.param("outcome", as_read, "I8", "that a provider was asked", id="I8"),
        pytest.param(
            "intent",
            lambda line: {**line, "scope": "training"},
            "I7",
            "calls with a reply",
            id="I7",
        ),
        pytest.param(
            "intent",
            lambda line: {**line, "scope": "scoring"},
            "I12",
            "counted as scoring",
            id="I12",
        ),
        pytest.param(
            "head",
            lambda line: {**line, "schema": "other"},
            "I13",
            "header of this version",
            id="I13",
        ),
    ],
)
def test_a_changed_journal_fails_by_name_even_where_its_chain_was_made_anew(
    run: Path, kind: str, change: Line, invariant: str, words: str
) -> None:
    edit_journal(without_manifest(run), of_kind(kind, change))
    found = audit(run)
    assert words in said(found, invariant)
    assert said(found, invariant).startswith("fail")


def test_a_changed_journal_breaks_its_chain(run: Path) -> None:
    edit_journal(without_manifest(run), of_kind("outcome", cheap), whole=False)
    assert "edited" in said(audit(run), "I14")


def test_a_journal_whose_end_was_cut_off_is_told_by_the_manifest(run: Path) -> None:
    for path in run.glob("ledger/*/*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-2]))
    assert "truncated" in said(audit(run), "I14")


def test_a_strict_audit_does_not_accept_gaps(run: Path) -> None:
    assert failing(run, strict=True) == set()
    assert "I14" in failing(without_manifest(run), strict=True)
    shutil.rmtree(run / "ledger")
    assert failing(run) == set()
    assert {"I4", "I5", "I14"} <= failing(run, strict=True)


def test_a_conductor_without_a_token_of_its_own_fails_i7(tmp_path: Path) -> None:
    sat(tmp_path, "conductor-prompted", steps("sage"))
    assert "none of the conductor's tokens are counted" in said(audit(tmp_path), "I7")
    shutil.rmtree(tmp_path)
    sat(tmp_path, "conductor-prompted", steps("sage"), args={"plans": "earlier.json"})
    assert said(audit(tmp_path), "I7").startswith("pass")
