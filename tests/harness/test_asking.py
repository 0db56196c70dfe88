"""What is written down of a call: before it goes out, between its attempts, and however it ends."""

import stat
from collections import Counter
from pathlib import Path

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from podium.harness.errors import WorkerError
from podium.harness.ledger.journal import FOLDER, folder_of, read_chain
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool
from podium.harness.request import request_digest
from tests.providers.flaky import HEAD, SECRET, SENT, events, lines, model, sat


def test_a_call_has_an_intent_and_an_outcome_that_name_its_event(tmp_path: Path) -> None:
    log = sat(tmp_path, ["q1: answer"])
    head, intent, outcome, answer, totals, closed = lines(tmp_path)
    (event,) = events(log)
    (sample,) = log.samples or []
    assert (head["kind"], head["task"], head["label"]) == ("head", "moods", "live")
    assert intent["sample"] == {"question": "q1", "epoch": 1, "uuid": sample.uuid}
    assert (intent["role"], intent["step"], intent["model"]) == (
        "sage",
        "step 1: sage",
        "moody/sage",
    )
    assert intent["prompt_sha256"] == request_digest(event.input)
    assert intent["prompt_bytes"] == len("q1: answer")
    assert (intent["max_tokens"], intent["scope"]) == (777, "inference")
    assert (intent["span"], outcome["event"]) == (event.span_id, event.uuid)
    assert (outcome["usage"]["input"], outcome["usage"]["output"]) == (7, 3)
    assert (outcome["served_model"], outcome["request_id"]) == ("sage-2026-01", "reply-1")
    assert (outcome["stop"], outcome["cache"], outcome["error"]) == ("stop", "none", None)
    assert (totals["model"], totals["calls"], totals["input_tokens"]) == ("moody/sage", 1, 7)
    assert [line["kind"] for line in (answer, closed)] == ["answer", "closed"]


def test_of_a_providers_own_usage_only_what_is_no_prose_is_kept(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer"])
    (outcome,) = lines(tmp_path, "outcome")
    assert outcome["raw_usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "tier": "default"}


def test_every_attempt_over_http_is_a_line_and_an_event(tmp_path: Path) -> None:
    log = sat(tmp_path, ["q1: 429 500 answer", "q2: 429 answer", "q3: answer"])
    spans = Counter(event.span_id for event in events(log))
    for intent in lines(tmp_path, "intent"):
        mine = [row for row in lines(tmp_path) if row.get("call") == intent["call"]]
        retries = [row for row in mine if row["kind"] == "retry"]
        (outcome,) = [row for row in mine if row["kind"] == "outcome"]
        assert [row["attempt"] for row in retries] == list(range(1, len(retries) + 1))
        assert spans[intent["span"]] == len(retries) + 1
        tried = [event for event in events(log) if event.span_id == intent["span"]]
        assert outcome["event"] == tried[-1].uuid
    retries = lines(tmp_path, "retry")
    assert [(row["error"], row["http_status"]) for row in retries if row["attempt"] == 2] == [
        ("Refused", 500)
    ]
    assert len(SENT) == 3 + len(retries) == len(events(log)) == 6


@pytest.mark.parametrize(
    ("fates", "kind", "status"),
    [
        pytest.param("429 429 429", "Refused", 429, id="retries exhausted"),
        pytest.param("400", "Refused", 400, id="refused for good"),
        pytest.param("500 die", "RuntimeError", None, id="no status"),
    ],
)
def test_a_call_that_fails_leaves_its_kind_and_not_its_words(
    tmp_path: Path, fates: str, kind: str, status: int | None
) -> None:
    log = sat(tmp_path, [f"q1: {fates}"], [model(max_retries=2)])
    (outcome,) = lines(tmp_path, "outcome")
    assert (outcome["error"], outcome["http_status"]) == (kind, status)
    assert (outcome["usage"], outcome["refused"]) == (None, False)
    assert outcome["event"] == events(log)[-1].uuid
    assert len(lines(tmp_path, "retry")) + 1 == len(events(log)) == len(SENT)


def test_no_word_of_a_question_a_reply_or_an_error_is_in_a_journal(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer", "q2: 400", "q3: long", "q4: 429 die"])
    (path,) = folder_of(tmp_path, HEAD.task).glob("*.jsonl")
    written = path.read_text()
    assert not [word for word in ("swordfish", SECRET, "q1: answer") if word in written]


@pytest.mark.slow
def test_a_call_that_hangs_is_ended_by_a_limit_and_may_be_billed(tmp_path: Path) -> None:
    log = sat(tmp_path, ["q1: hang"], time_limit=3)
    (outcome,) = lines(tmp_path, "outcome")
    assert (outcome["error"], outcome["refused"]) == ("CancelledError", False)
    assert outcome["event"] == events(log)[-1].uuid
    assert not events(log)[-1].pending


def test_a_call_that_was_cancelled_before_it_was_sent_is_none(tmp_path: Path) -> None:
    SENT.clear()

    async def ask(pool: Pool) -> None:
        async with anyio.create_task_group() as tasks:
            for question in ("q1: hang", "q2: hang"):
                asked = [ChatMessageUser(content=question)]
                tasks.start_soon(pool.ask, "sage", asked, question)
            while not SENT:
                await anyio.sleep(0.01)
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()

    with recording_calls(tmp_path, "training", HEAD):
        anyio.run(ask, Pool({"sage": model(max_connections=1)}))
    assert SENT == ["sage hang"]
    assert [row["kind"] for row in lines(tmp_path)] == ["head", "intent", "outcome", "closed"]
    assert lines(tmp_path, "outcome")[0]["error"] == "CancelledError"


def test_a_step_that_fails_cancels_its_neighbour_and_both_are_written_down(tmp_path: Path) -> None:
    workers = [model("sage"), model("clerk")]
    SENT.clear()

    async def ask(pool: Pool) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.ask, "sage", [ChatMessageUser(content="q1: hang")], "one")
            while not SENT:
                await anyio.sleep(0.01)
            tasks.start_soon(pool.ask, "clerk", [ChatMessageUser(content="q1: die")], "two")

    with (
        recording_calls(tmp_path, "training", HEAD),
        pytest.RaisesGroup(WorkerError),
    ):
        anyio.run(ask, Pool({one.name: one for one in workers}))
    ended = {row["call"]: row["error"] for row in lines(tmp_path, "outcome")}
    roles = {row["role"]: ended[row["call"]] for row in lines(tmp_path, "intent")}
    assert roles == {"sage": "CancelledError", "clerk": "RuntimeError"}


def test_a_request_that_was_refused_for_its_length_is_not_billed(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: long"])
    (outcome,) = lines(tmp_path, "outcome")
    assert (outcome["refused"], outcome["stop"]) == (True, "model_length")


def test_a_reply_from_inspects_cache_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    for run in ("1", "2"):
        sat(tmp_path / run, ["q1: answer"], [model(cache=True)])
    (first,), (second,) = (lines(tmp_path / run, "outcome") for run in ("1", "2"))
    assert (first["cache"], second["cache"]) == ("write", "read")
    assert first["usage"] == second["usage"]
    assert SENT == []
    assert lines(tmp_path / "2", "totals") == [], "nothing was called"


def test_a_call_that_cannot_be_written_down_is_not_made(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    log = sat(tmp_path, ["q1: answer"])
    (sample,) = log.samples or []
    assert (SENT, events(log)) == ([], [])
    assert sample.error
    assert "WorkerError" in sample.error.message


def test_calls_outside_an_eval_are_written_down_with_their_retries(tmp_path: Path) -> None:
    pool = Pool({"sage": model()})
    with recording_calls(tmp_path, "serving", HEAD):
        anyio.run(pool.ask, "sage", [ChatMessageUser(content="q1: 429 answer")], "asked")
    head, intent, retry, again, outcome, _ = lines(tmp_path)
    assert (head["kind"], retry["http_status"]) == ("head", 429)
    assert (intent["scope"], intent["sample"], intent["step"]) == ("serving", None, "asked")
    assert {one["call"] for one in (intent, retry, again)} == {outcome["call"]}
    assert outcome["usage"]["output"] == 3


def test_without_a_journal_nothing_is_written(tmp_path: Path) -> None:
    pool = Pool({"sage": model()})
    reply = anyio.run(pool.ask, "sage", [ChatMessageUser(content="q1: answer")], "asked")
    assert reply.usage
    assert list(tmp_path.iterdir()) == []


def test_a_journal_is_chained_and_as_readable_as_the_process_makes_files(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer", "q2: 429 answer"])
    (path,) = folder_of(tmp_path, HEAD.task).glob("*.jsonl")
    chain = read_chain(path)
    assert (chain.faults, chain.lines) == ((), len(lines(tmp_path)))
    assert not stat.S_IMODE(path.stat().st_mode) & 0o111
