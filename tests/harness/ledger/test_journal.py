"""What journals say when they are read again: calls, attempts, and what has been spent."""

import pickle
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.harness.errors import UserError
from podium.harness.ledger.call import TEMPLATE
from podium.harness.ledger.join import journal_calls
from podium.harness.ledger.journal import (
    FOLDER,
    OLDER,
    CallOutcome,
    Head,
    SampleRef,
    open_journal,
    read_lines,
)
from podium.harness.ledger.runs import CallRecord, calls_of
from podium.harness.ledger.system_runs import spent
from podium.harness.prices import Book, read_book
from podium.harness.prices.cost import Price
from podium.harness.records import GRADER, Usage
from podium.harness.request import request_digest
from tests.conductor.plans import BOOK as PLAN_BOOK
from tests.conductor.plans import one_of, spec_of
from tests.harness import judged_run as judging
from tests.harness.toy_run import PRICES, calls, toy_pool, toy_run
from tests.providers.flaky import HEAD, events, lines, model, sat
from tests.providers.scripted import script
from tests.reports.audit.audited_run import edit_journal

BOOK = Book(
    name="moods",
    date="2026-01-02",
    source="made up for tests",
    prices={"moody/sage": Price(Decimal(1_000_000), Decimal(2_000_000))},
    sha256="0" * 64,
)
"""A dollar for a token that goes in, two for one that comes out: 13 for an answer."""

ANSWER = Decimal(7 + 2 * 3)
BOUND = Decimal(10 + TEMPLATE + 2 * 100)
"""The most that a call of ten bytes and 100 tokens at most can cost."""


def intent(**changes: object) -> dict[str, object]:
    """Return what is written before a call whose prompt has ten bytes."""
    return {
        "scope": "inference",
        "sample": asdict(SampleRef("q1", 1, "sample")),
        "role": "sage",
        "step": None,
        "model": "moody/sage",
        "price_ref": "moody/sage",
        "service": "standard",
        "prompt_sha256": "0" * 64,
        "prompt_bytes": 10,
        "max_tokens": 100,
        "span": None,
        **changes,
    }


def test_the_lines_of_a_call_are_read_together(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: 429 500 answer", "q2: answer"])
    (path,) = (tmp_path / FOLDER).glob("*/*.jsonl")
    found = {one.intent["sample"]["question"]: each for one, each in journal_calls(path, BOOK)}
    assert [len(found[name]) for name in ("q1", "q2")] == [3, 1]
    assert [call.billable for call in found["q1"]] == ["no", "no", "yes"]


def test_lines_that_nobody_can_read_are_left_out_and_named(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer", "q2: answer"])
    (path,) = (tmp_path / FOLDER).glob("*/*.jsonl")
    written = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*written[:2], b"[1]\n{\n\xff\n", *written[2:], written[-1][:9]]))
    unreadable: list[int] = []
    assert len(list(read_lines(path, unreadable))) == len(written)
    assert unreadable == [3, 4, 5]
    assert len(list(calls_of(path))) == 2


def test_two_processes_write_two_files_and_nobody_overwrites_one(tmp_path: Path) -> None:
    paths = {open_journal(tmp_path, HEAD).path for _ in range(20)}
    assert len(paths) == len(list((tmp_path / FOLDER / "moods").iterdir())) == 20


def test_a_task_without_a_name_goes_by_its_system(tmp_path: Path) -> None:
    head = Head("", "", "conductor training", "live", "", "")
    assert open_journal(tmp_path, head).path.parent == tmp_path / FOLDER / "conductor_training"


def test_what_was_spent_is_counted_from_journals(tmp_path: Path) -> None:
    assert spent(tmp_path, BOOK) == 0
    sat(tmp_path, ["q1: 429 answer", "q2: answer", "q3: 400", "q4: long"])
    assert spent(tmp_path, BOOK) == 2 * ANSWER, "what a provider refused is not billed"


def test_a_call_in_flight_at_kill_9_counts_as_the_most_it_can_have_cost(tmp_path: Path) -> None:
    open_journal(tmp_path, HEAD).intent(intent())
    assert spent(tmp_path, BOOK) == BOUND


def test_a_call_that_nothing_bounds_counts_as_the_dearest_of_its_price(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer"])
    open_journal(tmp_path, HEAD).intent(intent(max_tokens=None))
    assert spent(tmp_path, BOOK) == 2 * ANSWER


def test_an_attempt_that_ended_in_silence_counts_beside_the_one_after_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, HEAD)
    call = journal.intent(intent())
    journal.retry(call, 1, "AttemptTimeoutError", None)
    journal.again(call)
    journal.outcome(call, CallOutcome(event=None, usage=Usage(input=7, output=3)))
    assert spent(tmp_path, BOOK) == BOUND + ANSWER


def test_an_attempt_that_was_announced_and_never_sent_counts_nothing(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, HEAD)
    journal.retry(journal.intent(intent()), 1, "RateLimitError", 429)
    assert spent(tmp_path, BOOK) == 0
    edit_journal(tmp_path, lambda line: {**line, "schema": OLDER} if "schema" in line else line)
    assert spent(tmp_path, BOOK) == BOUND, "an older journal does not say"


def test_a_journaled_reply_without_a_price_is_not_counted_as_nothing(tmp_path: Path) -> None:
    sat(tmp_path, ["q1: answer"], [model("clerk")])
    with pytest.raises(UserError, match=r"Calls of 'clerk' in .* have no price, so --max-usd"):
        spent(tmp_path, BOOK)


def test_logs_that_are_older_than_journals_are_counted_from_the_logs(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=5)
    book_file = tmp_path / "book.toml"
    book_file.write_text(PRICES)
    book = read_book(str(book_file))
    cents = len(calls(log_dir)) * Decimal("0.01")
    assert spent(log_dir, book) == cents
    (journal,) = (log_dir / FOLDER).glob("*/*.jsonl")
    journal.unlink()
    assert spent(log_dir, book) == cents, "also where the log says that a journal has them"


def test_a_choice_of_the_best_worker_has_journals_of_its_own_at_the_root(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, systems=("best-single",), limit=2, selection_limit=2)
    assert sorted(path.name for path in (log_dir / FOLDER).iterdir()) == [
        "toy_best-single",
        "toy_single_ada_selection_",
        "toy_single_bob_selection_",
    ]
    paths = (log_dir / FOLDER).glob("*/*.jsonl")
    assert sum(1 for path in paths for _ in calls_of(path)) == len(calls(log_dir)) == 6


def test_a_retried_question_has_its_calls_in_the_journal_though_no_log_kept_them(
    tmp_path: Path,
) -> None:
    log = sat(tmp_path, ["q1: die answer"], retry_on_error=1)
    ended = {row["event"]: row["error"] for row in lines(tmp_path, "outcome")}
    assert list(ended.values()) == ["RuntimeError", None]
    assert [event.uuid for event in events(log)] == list(ended)[1:]


def test_the_workers_that_a_reward_asks_are_written_down_as_training(tmp_path: Path) -> None:
    script("echo", lambda heard: "42")
    answer = PlanAnswerer(spec_of(echo="scripted/echo"), PLAN_BOOK, PlanSettings(log_dir=tmp_path))
    outcomes = [one_of(answer), one_of(pickle.loads(pickle.dumps(answer)))]
    assert [outcome.calls for outcome in outcomes] == [1, 1]
    paths = list((tmp_path / FOLDER / "rewards_of_made").iterdir())
    found = [call for path in paths for call in calls_of(path)]
    assert len(paths) == len(found) == 2
    assert {call.intent["scope"] for call in found} == {"training"}
    assert {call.intent["sample"]["question"] for call in found} == {"train-0"}
    assert all(call.outcome and call.outcome["usd"] for call in found)


def judged_calls(log_dir: Path) -> list[CallRecord]:
    """Return the calls that were made for grading, in order."""
    paths = sorted((log_dir / FOLDER / "rlpr_single_pupil").glob("*.jsonl"))
    found = [call for path in paths for call in calls_of(path)]
    return [call for call in found if call.intent["scope"] == "scoring"]


def test_a_judges_call_is_written_down_word_for_word_as_it_is_sent(tmp_path: Path) -> None:
    log_dir = judging.sat(tmp_path, judging.Judge())
    (call,) = judged_calls(log_dir)
    log = read_eval_log(str(max(log_dir.glob("*.eval"))), resolve_attachments=True)
    (event,) = [one for one in events(log) if one.role == GRADER]
    assert (call.intent["role"], call.intent["span"]) == (GRADER, event.span_id)
    assert call.intent["prompt_sha256"] == request_digest(event.input)
    assert call.outcome
    assert call.outcome["event"] == event.uuid
    assert call.outcome["usage"]["output"] == len(judging.Judge().says.split())


def test_a_judge_that_is_asked_again_adds_to_the_tasks_journals(tmp_path: Path) -> None:
    log_dir = judging.sat(tmp_path, judging.Judge("down"))
    judging.sat(tmp_path, judging.Judge())
    ended = [call.outcome and call.outcome["error"] for call in judged_calls(log_dir)]
    assert ended == ["RuntimeError", None]
    paths = (log_dir / FOLDER / "rlpr_single_pupil").glob("*.jsonl")
    assert all(
        call.billable for path in paths for _, each in journal_calls(path, BOOK) for call in each
    )
