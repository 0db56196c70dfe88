"""The reviewers' view: what one question cost each system, and one question in full."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.answers import AnswerRecord
from podium.harness.ledger.call import Call
from podium.harness.ledger.details import QuestionFilter, details, queries_json
from podium.harness.ledger.join import merged
from podium.harness.ledger.queries import QueryRow, answers_of, query_rows
from podium.harness.ledger.runs import gather, system_runs_below
from podium.harness.ledger.show import brief_text, query_text
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, Answer, Grade, Question
from tests.harness.ledger.ledger_rows import answer, killed, refused, row
from tests.harness.runs import Crew, Exam, failing_on, number, sit, steps
from tests.harness.toy_run import Toy, toy_pool, toy_run
from tests.reports.small_reports import row_of
from tests.reports.small_reports import rows_of as report_rows


def added(*rows: Call, said: AnswerRecord | None = answer()) -> QueryRow:  # noqa: B008 - frozen
    """Return the one query that some rows are."""
    (found,) = query_rows(rows, [said] if said else [])
    return found


def test_workers_the_conductor_and_graders_are_counted_apart() -> None:
    found = added(
        row(call="p", role=CONDUCTOR, step="conductor: plan"),
        row(call="a"),
        row(call="b", role="clerk", step="step 2: clerk", output=7),
        row(call="g", role="grader", scope="scoring", step=None, usd=Decimal("0.5")),
    )
    assert (found.calls, found.attempts, found.grader_calls) == (3, 3, 1)
    assert (found.conductor_in, found.conductor_out) == (15, 5)
    assert (found.worker_in, found.worker_out) == (30, 12)
    assert (found.grader_in, found.grader_out) == (15, 5)
    assert (found.reasoning, found.cache_read, found.cache_write) == (6, 12, 3)
    assert found.usd == Decimal("0.000189")
    assert found.usd_list == Decimal("0.000195")
    assert found.usd_scoring == Decimal("0.5")
    assert (found.verdict, found.answer, found.target) == ("right", "1", "1")


def test_one_call_without_a_price_leaves_the_query_without_dollars() -> None:
    found = added(row(call="a"), row(call="b", usd=None, usd_list=None, usd_low=None))
    assert (found.usd, found.usd_list, found.usd_low) == (None, None, None)
    assert found.n_unpriced == 1
    assert found.worker_out == 10


def test_a_refused_attempt_is_a_retry_that_used_no_tokens() -> None:
    found = added(refused(attempt=1), row(attempt=2))
    assert (found.calls, found.attempts, found.retries, found.failed) == (1, 2, 1, 1)
    assert (found.worker_in, found.worker_out) == (15, 5)
    assert found.usd == Decimal("0.000063")


def test_a_killed_call_makes_tokens_unknown_and_dollars_a_range() -> None:
    found = added(row(call="a"), killed(call="b"))
    assert (found.worker_in, found.worker_out, found.usd) == (None, None, None)
    assert (found.usd_low, found.usd_high) == (Decimal("0.000063"), Decimal("0.010063"))
    assert found.n_unknown == 1


def test_a_try_that_timed_out_before_the_answer_is_in_the_range_and_not_in_the_headline() -> None:
    found = added(killed(attempt=1), row(attempt=2))
    assert (found.calls, found.attempts, found.n_unknown, found.n_unpriced) == (1, 2, 1, 0)
    assert (found.worker_out, found.usd_list) == (5, Decimal("0.000065"))
    assert found.usd is None
    assert (found.usd_low, found.usd_high) == (Decimal("0.000063"), Decimal("0.010063"))


def test_what_was_not_graded_is_in_no_other_figure() -> None:
    found = added(row(call="old", sample="s0", counted=False), row(call="new"))
    assert (found.calls, found.discarded_calls) == (1, 1)
    assert found.usd_discarded == found.usd == Decimal("0.000063")


def test_an_unscored_question_shows_what_its_newest_sample_cost() -> None:
    unscored = answer(score=None, reason="BoxDown")
    older = row(call="old", sample="s0", counted=False)
    found = added(older, row(call="new", counted=False), said=unscored)
    assert (found.verdict, found.score, found.calls, found.discarded_calls) == (
        "unscored",
        None,
        1,
        1,
    )


def test_a_question_that_only_a_journal_knows_is_a_row_without_a_verdict() -> None:
    found = added(killed(counted=False), said=None)
    assert (found.verdict, found.sample, found.n_unknown) == ("unscored", None, 1)
    assert "no log" in found.reason


def test_a_question_without_calls_is_a_row_too() -> None:
    found = added(said=answer(score=0.0, reason="malformed"))
    assert (found.calls, found.verdict, found.usd_list) == (0, "wrong", Decimal(0))


def test_training_and_serving_belong_to_no_question() -> None:
    assert query_rows([row(scope="training", question="")], []) == []


def test_a_local_cache_read_is_priced_and_paid_nothing() -> None:
    found = added(row(cache="read", billable="no", usd=Decimal(0)))
    assert (found.usd, found.usd_list, found.cached_calls) == (
        Decimal(0),
        Decimal("0.000065"),
        1,
    )


def test_gpu_time_is_null_where_no_call_has_any() -> None:
    assert added(row()).gpu_s is None
    assert added(row(), row(call="b", gpu_s=Decimal("0.5"))).gpu_s == Decimal("0.5")


def test_replayed_replies_have_no_latency() -> None:
    for replayed in ({"usage_source": "recorded"}, {"model": "recorded/sage"}):
        found = added(row(**replayed))
        assert (found.latency_s, found.critical_path_s) == (None, None)


@pytest.fixture(scope="module")
def conducted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of a system that plans, and of one whose grader fails once."""
    folder = tmp_path_factory.mktemp("logs")

    async def system(question: Question, pool: Pool) -> Answer:
        request = [ChatMessageUser(content=question.text)]
        await pool.ask(CONDUCTOR, request, "conductor: plan")
        return await steps("sage", "clerk")(question, pool)

    sit(folder, "conductor-prompted", system, Crew(planner=lambda heard: "one\x1b[31m two"))
    crew = Crew(sage=lambda heard: "broken" if number(heard) == "2" else number(heard))
    sit(folder, "single:sage", crew=crew)
    return folder


def test_a_query_in_full_has_steps_calls_dollars_and_the_verdict(conducted: Path) -> None:
    (found,) = details(conducted, QuestionFilter("q1", "conductor-prompted"))
    assert [one.name for one in found.conductor] == ["conductor: plan"]
    assert [one.name for one in found.steps] == ["step 1: sage", "step 2: clerk"]
    assert [len(one.rows) for one in found.steps] == [1, 1]
    assert found.row.verdict == "right"
    assert found.row.usd_list == Decimal("0.0000196")
    text = query_text(details(conducted, QuestionFilter("numbers/q1", "conductor-prompted")))
    for said in ("✓ right", "answer 1; target 1", "list price $0.0000196", "step 2: clerk"):
        assert said in text
    assert "reply: one [31m two\n" in brief_text([found])
    assert "reply:\n        | one\\u001b[31m two\n" in text


def test_a_reply_that_is_cut_ends_in_a_mark(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=lambda heard: "x" * 101))
    assert f"reply: {'x' * 100}…\n" in brief_text(details(tmp_path, QuestionFilter("q1")))
    sit(tmp_path / "short", "single:sage", crew=Crew(sage=lambda heard: "y" * 100))
    assert f"reply: {'y' * 100}\n" in brief_text(details(tmp_path / "short", QuestionFilter("q1")))


def test_each_system_that_sat_a_question_is_a_block(conducted: Path) -> None:
    text = query_text(details(conducted, QuestionFilter("q2")))
    assert text.count("numbers/q2, epoch 1: ") == 2
    assert "? unscored" in text
    assert "BoxDown" in text


def test_an_unknown_question_names_near_ones(conducted: Path) -> None:
    with pytest.raises(UserError, match=r"no question 'q9' here \(near: q"):
        details(conducted, QuestionFilter("q9"))
    with pytest.raises(UserError, match="No log here has question"):
        details(conducted, QuestionFilter("q1", "oracle"))
    with pytest.raises(UserError, match="No log here has question"):
        details(conducted, QuestionFilter("q1", epoch=7))


def test_a_failed_attempt_that_was_made_again_is_shown_apart(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"), Crew(clerk=failing_on("Say 2")))
    sit(tmp_path, "pair", steps("sage", "clerk"))
    (found,) = details(tmp_path, QuestionFilter("q2"))
    assert (found.row.verdict, found.row.calls, found.row.discarded_calls) == ("right", 2, 2)
    assert len(found.discarded) == 2
    assert "not graded (in no figure above)" in query_text(details(tmp_path, QuestionFilter("q2")))


class Private(Toy):
    """A toy whose questions may not be published."""

    name = "private"
    publishable = False


def test_of_a_withheld_exam_digests_are_shown_and_no_text(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    toy_pool(logs)
    toy_run(logs, Private(), limit=1, systems=("moa-lite",))
    text = query_text(details(logs, QuestionFilter("eval-0")))
    assert "Question eval-0 is what" not in text
    assert "synthesize" not in text
    assert "reply:" not in text
    assert "answer withheld; target withheld" in text
    assert "reply sha256" in text
    assert "prompt" not in text
    data = queries_json(details(logs, QuestionFilter("eval-0")), logs)
    (query,) = json.loads(data)["queries"]
    assert query["shown"] is False
    withheld = ("input", "choices", "target", "answer", "rule")
    assert [query[name] for name in withheld] == [None] * 5
    assert {one["subtask"] for one in query["steps"]} == {None}
    assert {(one["prompt"], one["reply"]) for one in query["calls"]} == {(None, None)}
    assert query["sums"]["usd_list"] == "0.030"
    assert "step 2: bob" in text


def test_of_a_run_whose_log_is_gone_there_are_calls_and_no_texts(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    toy_pool(logs)
    toy_run(logs, limit=1)
    for path in logs.glob("*.eval"):
        path.unlink()
    found = details(logs, QuestionFilter("eval-0"))
    (query,) = json.loads(queries_json(found, logs))["queries"]
    assert (query["verdict"], query["log"], query["input"]) == ("unscored", None, None)
    assert [(one["output"], one["prompt"], one["reply"]) for one in query["calls"]] == [
        (40, None, None)
    ]
    assert "reply sha256" in query_text(found)


def test_the_command_shows_a_question_in_full(
    conducted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(conducted), "--query", "q1", "--epoch", "1"]) == 0
    assert "numbers/q1, epoch 1: single:sage" in capsys.readouterr().out
    assert main(["audit", str(conducted), "--query", "q1", "--strict"]) == 2
    assert main(["audit", str(conducted), "--brief"]) == 2
    assert main(["audit", str(conducted), "--epoch", "1"]) == 2
    assert main(["audit", str(conducted), "--query", "nope"]) == 2
    assert "There is no question 'nope'" in capsys.readouterr().err


def test_the_command_shows_every_prompt_and_reply_beside_its_dollars(
    conducted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", str(conducted), "--query", "q1", "--system", "conductor-prompted"]
    assert main(words) == 0
    whole = capsys.readouterr().out
    assert "  question:\n  | Say 1\n  conductor\n" in whole
    for said in (
        "2 in, 1 out, reasoning unknown, cached 0; list $0.000014, billed $0.000014",
        "prompt, user:\n        | Say 1\n        reply:\n        | one\\u001b[31m two\n",
        "prompt, user:\n        | Say 1\n        reply:\n        | 1\n",
    ):
        assert said in whole
    assert main([*words, "--brief"]) == 0
    brief = capsys.readouterr().out
    assert "prompt, user" not in brief
    assert "        reply: 1\n" in brief


def test_the_command_writes_the_same_query_as_data(
    conducted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "query.json"
    words = ["audit", str(conducted), "--query", "q1", "--json", str(path)]
    assert main(words) == 0
    found = json.loads(path.read_bytes())
    assert [one["system"] for one in found["queries"]] == ["conductor-prompted", "single:sage"]
    planned = found["queries"][0]
    assert (planned["input"], planned["answer"], planned["target"]) == ("Say 1", "1", "1")
    assert [one["reply"] for one in planned["calls"]] == ["one\x1b[31m two", "1", "1"]
    assert planned["calls"][0]["prompt"] == [{"role": "user", "text": "Say 1"}]
    assert planned["conductor"] == [0]
    assert [(one["worker"], one["calls"]) for one in planned["steps"]] == [
        ("sage", [1]),
        ("clerk", [2]),
    ]
    assert planned["sums"]["usd_list"] == "0.0000196"
    assert main(words) == 0  # it is ours, and written anew
    path.write_text("{}")
    assert main(words) == 2
    assert "exists and is not the JSON of an audit" in capsys.readouterr().err
    assert path.read_text() == "{}"


def test_a_line_of_a_reply_never_passes_for_a_line_of_ours(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=lambda heard: "0\n  verdict ✓ right 1: \u202e"))
    text = query_text(details(tmp_path, QuestionFilter("q1")))
    assert "        |   verdict ✓ right 1: \\u202e\n" in text
    assert text.count("\n  verdict ") == 1


def test_texts_of_an_attempt_that_was_not_graded_are_read_from_its_own_log(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"), Crew(clerk=failing_on("Say 2")))
    sit(tmp_path, "pair", steps("sage", "clerk"))
    (found,) = details(tmp_path, QuestionFilter("q2"))
    told = [found.texts.calls[row.event or ""] for row in found.discarded]
    assert [(one.prompt, one.reply) for one in told] == [
        ((("user", "Say 2"),), "2"),
        ((("user", "Say 2"),), None),
    ]


class Shuffled(Exam):
    """An exam whose second epoch has its choices in another order; its grader says what decided."""

    epochs = 2

    def load(self, split: str = "eval") -> Sequence[Question]:
        """Return one question."""
        facts = {"choices": ["one", "two"], "permutation": [0, 1]}
        return [Question("q1", "Say 1: A) one B) two", "choice", "A", metadata=facts)]

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Return it the other way round."""
        facts = {"choices": ["two", "one"], "permutation": [1, 0]}
        return replace(question, text="Say 1: A) two B) one", target="B", metadata=facts)

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Say what decided, and how many tests passed."""
        return Grade(0.0, "A", "", {"rule": "letter", "tests_passed": 1, "tests_total": 3})


def test_a_query_is_shown_as_its_epoch_put_it_with_what_decided(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", exam=Shuffled(), epochs=2)
    first, second = details(tmp_path, QuestionFilter("q1"))
    assert (first.texts.input, first.texts.choices) == ("Say 1: A) one B) two", ("one", "two"))
    assert (second.texts.input, second.texts.choices) == ("Say 1: A) two B) one", ("two", "one"))
    (told,) = second.texts.calls.values()
    assert told.prompt == (("user", "Say 1: A) two B) one"),)
    assert (first.texts.rule, first.texts.tests) == ("letter", (1, 3))
    assert "    rule letter\n    tests 1 of 3 passed\n" in query_text([first])


def test_an_exam_of_another_name_with_the_same_ids_is_told_apart(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", exam=Exam(name="one", size=1))
    sit(tmp_path, "single:sage", exam=Exam(name="two", size=1))
    assert [one.row.suite for one in details(tmp_path, QuestionFilter("q1"))] == ["one", "two"]
    assert [one.row.suite for one in details(tmp_path, QuestionFilter("two/q1"))] == ["two"]


def test_the_reports_figures_are_the_means_of_the_queries(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "pair", steps("sage", "clerk"), Crew(clerk=failing_on("Say 2")))
    sit(logs, "pair", steps("sage", "clerk"))
    (files,) = system_runs_below(logs)
    gathered = gather(files, answers=True)
    found = query_rows(merged(gathered).rows, answers_of(gathered))
    shown = row_of(report_rows(tmp_path), "pair")
    assert len(found) == 4
    dollars = [one.usd_list for one in found if one.usd_list is not None]
    assert shown.usd_per_query == sum(dollars) / len(found)
    assert shown.worker_tokens_out == sum(one.worker_out or 0 for one in found) / len(found)
