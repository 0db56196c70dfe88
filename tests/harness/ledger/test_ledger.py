"""The ledger against real logs: nothing counted twice, nothing lost in silence."""

import shutil
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai import Task, eval_set
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import CachePolicy, ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from podium.harness.errors import UserError
from podium.harness.ledger.call import Call
from podium.harness.ledger.logs import find_logs, newest_logs
from podium.harness.ledger.system_runs import load_runs, spent
from podium.harness.ledger.totals import SystemRun, system_totals
from podium.harness.pool import Pool
from podium.harness.prices.cost import cost
from podium.harness.records import CONDUCTOR, Answer, Question
from podium.reports.audit import audit
from tests.harness.ledger.ledger_rows import rows_in
from tests.harness.runs import BOOK, Crew, Heard, failing_on, number, sit, steps, wrong
from tests.providers.scripted import script


def only(tmp_path: Path) -> SystemRun:
    """Return the one sitting below a directory."""
    system_runs, _ = load_runs([tmp_path])
    assert len(system_runs) == 1
    return system_runs[0]


def calls_of(log: EvalLog) -> list[Call]:
    return rows_in(Path(log.location))


def test_each_call_is_one_row_with_its_role_step_and_price(tmp_path: Path) -> None:
    (log,) = sit(tmp_path, "pair", steps("sage", "clerk"))
    rows = calls_of(log)
    assert len(rows) == 8
    assert len({row.event for row in rows}) == 8
    first = [row for row in rows if row.question == "q1"]
    assert [(row.role, row.step, row.scope) for row in first] == [
        ("sage", "step 1: sage", "inference"),
        ("clerk", "step 2: clerk", "inference"),
    ]
    for row in rows:
        assert row.usage is not None
        assert row.usd == cost(row.usage, BOOK.prices[row.model])
        assert row.counted
        assert row.billable == "yes"
        assert row.latency_s is not None
        assert row.latency_s >= 0


def test_the_sum_of_calls_is_inspects_own_total(tmp_path: Path) -> None:
    (log,) = sit(tmp_path, "pair", steps("sage", "clerk"), epochs=2)
    assert audit(tmp_path).ok
    assert not audit(tmp_path).table.causes["runs"]
    total = sum(row.usage.input + row.usage.output for row in calls_of(log) if row.usage)
    assert total == sum(usage.total_tokens for usage in log.stats.model_usage.values()) > 0


def test_a_query_adds_up_its_calls_and_tells_conductor_from_workers(tmp_path: Path) -> None:
    async def conducted(question: Question, pool: Pool) -> Answer:
        request = [ChatMessageUser(content=question.text)]
        await pool.ask(CONDUCTOR, request, "conductor: plan")
        return await steps("sage", "clerk")(question, pool)

    sit(tmp_path, "conductor-prompted", conducted, Crew(planner=lambda heard: "one two three"))
    system_run = only(tmp_path)
    first = system_run.attempts[0]
    found = first.totals
    # "Say 1" is two tokens in; workers say one token each, the planner three.
    assert (found.calls, first.steps, first.depth) == (3, 2, 1)
    assert (found.tokens_in, found.tokens_out) == (6, 5)
    assert (found.worker_tokens_out, found.conductor_tokens) == (2, 5)
    assert found.usd == Decimal("0.000014") + Decimal("0.000005") + Decimal("0.0000008")
    calls = rows_in(*system_run.paths)
    assert {call.step for call in calls if call.role == CONDUCTOR} == {"conductor: plan"}


def test_a_resumed_run_takes_samples_from_the_newest_log_and_spend_from_all(tmp_path: Path) -> None:
    pair = steps("sage", "clerk")
    sit(tmp_path, "pair", pair, Crew(clerk=failing_on("Say 2")))
    before = only(tmp_path)
    logs = sit(tmp_path, "pair", pair)
    after = only(tmp_path)
    assert len({log.eval.task_id for log in logs}) == 1
    assert len(logs) == len(after.logs) == 2
    assert [attempt.graded for attempt in before.attempts].count(False) == 1
    assert all(attempt.graded for attempt in after.attempts)
    # Eight answered calls, and of the failed attempt one reply and one error.
    calls = rows_in(*after.paths)
    assert len(calls) == 10
    assert [call.counted for call in calls].count(False) == 2
    assert system_totals(after).usd_at_least == 4 * Decimal("0.000019") + Decimal("0.000014")
    assert system_totals(after).usd == Decimal("0.000019")


def test_a_failed_call_makes_what_was_paid_unknown_and_not_smaller(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=failing_on("Say 3")))
    found = system_totals(only(tmp_path))
    assert found.usd_paid is None
    assert found.usd_at_least == 3 * Decimal("0.000014")
    assert (found.n_failed, found.n_graded, found.n_asked) == (1, 3, 4)


def test_a_finished_question_is_carried_over_with_the_ids_of_its_calls(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=failing_on("Say 2")))
    older, newer = sit(tmp_path, "single:sage")
    kept = {call.event for call in calls_of(older)} & {call.event for call in calls_of(newer)}
    # Three answered questions, and the failed call that Inspect keeps with the retried one.
    assert len(kept) == 4


@solver(name="cached")
def cached() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        policy = CachePolicy(expiry="1h", per_epoch=False)
        state.output = await get_model(role="sage").generate(state.input_text, cache=policy)
        return state

    return solve


def test_a_cache_read_has_a_price_and_is_not_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    (log,) = sit(logs, "single:sage", solver=cached(), epochs=2, settings={"max_samples": 1})
    reads = [call for call in calls_of(log) if call.billable == "no"]
    assert len(reads) == 4
    found = system_totals(only(logs))
    assert found.usd == Decimal("0.000014")
    assert found.usd_paid == Decimal("0.000007")
    assert spent(logs, BOOK) == 4 * Decimal("0.000014")
    assert audit(logs).ok, "Inspect's totals are those of the calls that were billed"


def test_grading_calls_are_billed_apart(tmp_path: Path) -> None:
    (log,) = sit(tmp_path, "single:sage", ask_grader=True)
    rows = calls_of(log)
    assert [row.scope for row in rows if row.question == "q1"] == ["inference", "scoring"]
    found = system_totals(only(tmp_path))
    assert found.calls == 1
    assert found.usd_grading is not None
    assert found.usd_grading > 0
    assert found.usd == Decimal("0.000014")
    assert set(audit(tmp_path).table.dollars) == {"live inference", "live scoring"}


def test_one_unpriced_call_leaves_no_dollar_figure(tmp_path: Path) -> None:
    prices = {**BOOK.as_json(), "usd_per_mtok": {"scripted/sage": {"input": "2", "output": "10"}}}
    sit(tmp_path, "pair", steps("sage", "clerk"), prices=prices)
    found = system_totals(only(tmp_path))
    assert found.usd is None
    assert found.usd_paid is None
    assert found.n_unpriced == 4
    assert found.tokens_out == 2


@pytest.mark.parametrize("label", ["recorded", "rehearsal"])
def test_only_live_calls_are_paid(tmp_path: Path, label: str) -> None:
    sit(tmp_path, "single:sage", label=label)
    found = system_totals(only(tmp_path))
    assert found.usd == Decimal("0.000014")
    assert found.usd_paid == 0
    assert spent(tmp_path, BOOK) == 4 * Decimal("0.000014"), "a limit counts what would be paid"
    assert (found.critical_path_s is None) == (label == "recorded")


def test_a_reply_that_could_not_be_graded_is_unscored_with_its_reason(tmp_path: Path) -> None:
    def speak(heard: Heard) -> str:
        return "broken" if "Say 4" in heard.last else number(heard)

    sit(tmp_path, "single:sage", crew=Crew(sage=speak))
    system_run = only(tmp_path)
    (unscored,) = [attempt for attempt in system_run.attempts if not attempt.graded]
    assert unscored.question == "q4"
    assert "the box is down" in unscored.reason
    assert system_totals(system_run).n_graded == 3


def test_a_reply_without_an_answer_is_wrong_and_counted(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=lambda heard: "I cannot say"))
    found = system_totals(only(tmp_path))
    assert (found.n_graded, found.n_unparsed) == (4, 4)


def test_an_enlarged_run_is_the_same_sitting(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=2)
    sit(tmp_path, "single:sage", limit=4)
    system_run = only(tmp_path)
    assert (system_run.asked, len(system_run.attempts), len(rows_in(*system_run.paths))) == (
        4,
        4,
        4,
    )


def test_several_directories_are_read_and_a_copy_counts_once(tmp_path: Path) -> None:
    sit(tmp_path / "a", "single:sage")
    sit(tmp_path / "b", "single:clerk", steps("clerk"), Crew(clerk=wrong))
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    places = [tmp_path / name for name in ("a", "b", "c", "a")]
    system_runs, _ = load_runs(places)
    assert sorted(system_run.facts.system for system_run in system_runs) == [
        "single:clerk",
        "single:sage",
    ]
    assert [len(rows_in(*system_run.paths)) for system_run in system_runs] == [4, 4]
    assert len(newest_logs([tmp_path])) == 2


def test_a_truncated_log_is_named(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage")
    (path,) = find_logs([tmp_path])
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(UserError, match=r"single-sage.*is damaged or no Inspect log.*move it away"):
        load_runs([tmp_path])


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.eval").write_text("hello")
    with pytest.raises(UserError, match=r"notes\.eval is damaged or no Inspect log"):
        load_runs([tmp_path])


def test_a_foreign_log_is_passed_over_unless_nothing_else_is_left(tmp_path: Path) -> None:
    foreign_log(tmp_path / "foreign")
    with pytest.raises(UserError, match="not written by `podium run`"):
        load_runs([tmp_path])
    sit(tmp_path / "ours", "single:sage")
    system_runs, foreign = load_runs([tmp_path])
    assert len(system_runs) == len(foreign) == 1
    assert foreign[0].parent.name == "foreign"


def foreign_log(log_dir: Path) -> None:
    """Write a log as an Inspect user has it who does not know podium."""
    model = get_model(script("stranger", number), memoize=False)
    task = Task(dataset=[Sample(input="Say 1")], name="stranger")
    copy_context().run(
        eval_set, [task], log_dir=str(log_dir), model=model, display="none", score_display=False
    )


def test_a_log_of_another_version_names_the_field(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", schema=99)
    with pytest.raises(UserError, match=r"another version of podium \(field schema"):
        load_runs([tmp_path])


def test_a_directory_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \.eval log in"):
        find_logs([tmp_path])
    with pytest.raises(UserError, match=r"There is no .*nowhere"):
        find_logs([tmp_path / "nowhere"])


def test_a_log_can_be_read_without_its_directory(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage")
    (path,) = find_logs([tmp_path])
    assert find_logs([path]) == (path,)
    assert len(rows_in(path)) == 4
