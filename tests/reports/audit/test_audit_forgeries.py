"""Forgeries that leave every chain and every total whole still fail an audit by name.

Each test changes one record of a run the way somebody would who wants another bill, and makes the
journal's chain anew; there is no manifest, which would show any of it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.reports.audit import audit
from tests.harness.runs import sit
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
    """Return a run whose logs say, as those of `podium run` do, that journals have all calls."""
    folder = tmp_path_factory.mktemp("ran")
    sat(folder, journal=1)
    return folder


@pytest.fixture
def run(ran: Path, tmp_path: Path) -> Path:
    """Return a copy of it to tamper with."""
    return shutil.copytree(ran, tmp_path / "run")


def of_all(kind: str, change: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """Return a change of all lines of one kind."""
    return lambda line: change(line) if line["kind"] == kind else line


def without_usage(line: Json) -> Json:
    return {**line, "usage": None, "usd": None}


def test_nothing_fails_where_nothing_was_changed(run: Path) -> None:
    assert failing(run) == set()


@pytest.mark.parametrize(
    ("kind", "change", "invariant", "words"),
    [
        pytest.param(
            "outcome",
            lambda line: {**line, "refused": True, "usd": "0"},
            "I4",
            "states that it was refused, and the log has a reply",
            id="billed-call-called-refused",
        ),
        pytest.param(
            "outcome",
            lambda line: {
                **line,
                "usage": {**line["usage"], "orchestration_in": 4, "total_reported": None},
                "usd": "0.000012",
            },
            "I4",
            "total reported",
            id="total-taken-away",
        ),
        pytest.param(
            "intent",
            lambda line: {**line, "price_ref": "scripted/planner"},
            "I4",
            "names price scripted/planner",
            id="cheaper-price",
        ),
        pytest.param(
            "intent",
            lambda line: {**line, "service": "batch"},
            "I4",
            "(batch)",
            id="cheaper-service",
        ),
        pytest.param(
            "intent",
            lambda line: {**line, "sample": {**line["sample"], "question": "q9"}},
            "I4",
            "names question q9 epoch 1",
            id="another-question",
        ),
        pytest.param(
            "intent",
            lambda line: {**line, "scope": "training"},
            "I12",
            "counted as training",
            id="called-training",
        ),
        pytest.param(
            "head",
            lambda line: {**line, "label": "recorded"},
            "I4",
            "has label recorded",
            id="called-recorded",
        ),
    ],
)
def test_a_forged_journal_fails_by_name(
    run: Path, kind: str, change: Callable[[Json], Json], invariant: str, words: str
) -> None:
    edit_journal(run, of_kind(kind, change))
    assert words in said(audit(run), invariant)
    assert invariant in failing(run)


def test_a_journal_that_was_deleted_whole_fails_i4(run: Path) -> None:
    shutil.rmtree(run / "ledger")
    assert "recorded in a journal that is missing" in said(audit(run), "I4")
    assert "I4" in failing(run)


def test_the_first_of_two_journals_cannot_be_deleted_unseen(tmp_path: Path) -> None:
    sat(tmp_path, journal=1, limit=2)
    first = [*tmp_path.glob("ledger/*/*.jsonl")]
    sat(tmp_path, journal=1)
    assert failing(tmp_path) == set()
    for path in first:
        path.unlink()
    assert "the log has a call that no journal has" in said(audit(tmp_path), "I4")
    assert "I4" in failing(tmp_path)


def test_redacted_copies_are_shared_without_their_journals(tmp_path: Path) -> None:
    sit(tmp_path, journal=1, redacted=True, name="single:sage")
    assert failing(tmp_path) == set()
    assert "redacted copies" in said(audit(tmp_path), "I4")


def test_a_call_without_tokens_cannot_be_taken_out_of_its_log(run: Path) -> None:
    """It would leave a price where there was none."""

    def untold(sample: Json) -> None:
        for event in model_events(sample):
            event["output"]["usage"] = None
        sample["model_usage"], sample["role_usage"] = {}, {}

    edit_samples(run, untold)
    edit_journal(run, of_all("outcome", without_usage))
    edit_journal(run, lambda line: None if line["kind"] in ("totals", "closed") else line)
    assert "I4" not in failing(run)
    edit_samples(run, lambda sample: sample["events"].remove(model_events(sample)[0]))
    assert "the log lacks the call" in said(audit(run), "I4")


def test_a_call_nobody_counted_cannot_be_given_zeros(run: Path) -> None:
    def untold(sample: Json) -> None:
        model_events(sample)[0]["output"]["usage"] = None

    def nothing(line: Json) -> Json:
        return {**line, "usage": dict.fromkeys(line["usage"], 0), "usd": "0"}

    edit_samples(run, untold)
    edit_journal(run, of_all("outcome", nothing))
    assert "counts of its tokens, and the log has none" in said(audit(run), "I4")


def test_a_call_cannot_be_moved_to_another_sample(run: Path) -> None:
    moved: list[Any] = []

    def move(sample: Json) -> None:
        if sample["id"] == "q1":
            event = model_events(sample)[0]
            sample["events"].remove(event)
            sample["model_usage"].pop(event["model"])
            sample["role_usage"].pop(event["role"])
            moved.append(event)
        elif sample["id"] == "q2":
            sample["events"].extend(moved)
            for totals, name in (("model_usage", "model"), ("role_usage", "role")):
                usage = sample[totals][moved[0][name]]
                for key, count in moved[0]["output"]["usage"].items():
                    usage[key] = (usage.get(key) or 0) + (count or 0)

    edit_samples(run, move)
    assert "names question q1 epoch 1, the log q2 epoch 1" in said(audit(run), "I4")


def test_the_book_in_an_older_log_cannot_be_changed(tmp_path: Path) -> None:
    """The newest log's book prices the ledger; a report prices each log with its own."""
    sat(tmp_path, journal=1, limit=2)
    (old,) = tmp_path.glob("*.eval")
    sat(tmp_path, journal=1)

    def cheaper(name: str, found: Json) -> Json:
        metadata: Any = (found.get("eval") or {}).get("metadata")
        if metadata:
            metadata["podium"]["prices"]["usd_per_mtok"]["scripted/sage"]["output"] = "1"
        return found

    edit_log(old, cheaper)
    assert "under the same digest" in said(audit(tmp_path), "I5")


def test_a_built_in_price_that_podium_does_not_have_is_a_forgery(tmp_path: Path) -> None:
    sat(tmp_path)

    def changed(name: str, found: Json) -> Json:
        if "eval" in found:
            free = {"input": "0", "output": "0"}
            found["eval"]["metadata"]["podium"]["prices"]["built_in"] = {"scripted/": free}
        return found

    for path in tmp_path.glob("*.eval"):
        edit_log(path, changed)
    assert "its built-in prices are not podium's" in said(audit(tmp_path), "I5")
