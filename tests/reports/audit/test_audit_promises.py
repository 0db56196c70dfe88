"""I7: the calls of every answered question are as many as its system's manifest says."""

from pathlib import Path

import pytest

from podium.harness.execute import Budget, Session, execute
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.system import System, planned
from podium.harness.workflow import Step, Workflow
from podium.reports.audit import audit
from tests.harness.runs import Crew, number, sit, steps
from tests.providers.scripted import Heard
from tests.reports.audit.audited_run import failing, said, sat

PAIR = steps("sage", "clerk")
"""Two calls a question."""


def status(folder: Path) -> str:
    """Return what the audit says of I7."""
    return said(audit(folder), "I7").splitlines()[0]


@pytest.mark.parametrize("promise", [(2, 2), (1, 2), (0, 5)])
def test_calls_within_the_promise_pass(tmp_path: Path, promise: tuple[int, int]) -> None:
    sat(tmp_path, system=PAIR, calls_expected=promise)
    assert status(tmp_path) == "pass"


def test_more_calls_than_promised_fail_and_name_every_question(tmp_path: Path) -> None:
    sat(tmp_path, system=PAIR, calls_expected=(1, 1))
    assert failing(tmp_path) == {"I7"}
    found = said(audit(tmp_path), "I7").splitlines()[1:]
    wrong = "2 worker calls with a reply, but its manifest states 1"
    assert found == [f"sample q{n} epoch 1: {wrong}" for n in range(1, 5)]


def test_fewer_calls_than_promised_fail(tmp_path: Path) -> None:
    sat(tmp_path, system=PAIR, calls_expected=(3, 9))
    assert "2 worker calls with a reply, but its manifest states 3-9" in said(audit(tmp_path), "I7")


def test_a_question_that_its_budget_stopped_may_have_fewer(tmp_path: Path) -> None:
    two = Workflow((Step("sage"), Step("clerk", reads="all")))
    sat(tmp_path, system=planned(lambda *_: two, Budget(calls=1)), calls_expected=(2, 2))
    assert status(tmp_path) == "pass"


def forgiving() -> System:
    """Return a system that goes on without a worker that gives no reply."""

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        reply = await session.ask(Step("sage"))
        try:
            await session.ask(Step("clerk"))
        except Exception:
            return session.answer(reply.text)
        return session.answer(reply.text)

    return answer


def broken(heard: Heard) -> str:
    """Be down."""
    raise RuntimeError("provider down")


def test_a_call_without_a_reply_is_a_reason_for_fewer(tmp_path: Path) -> None:
    sat(tmp_path, system=forgiving(), crew=Crew(clerk=broken), calls_expected=(2, 2))
    assert status(tmp_path) == "pass"


def failing_once(heard: Heard) -> str:
    """Fail on the first call of question 2, as a provider does."""
    if heard.last == "Say 2" and not FAILED:
        FAILED.append("q2")
        raise RuntimeError("provider down")
    return number(heard)


FAILED: list[str] = []


def test_calls_of_an_attempt_that_was_made_again_do_not_count(tmp_path: Path) -> None:
    FAILED.clear()
    crew, again = Crew(clerk=failing_once), {"retry_on_error": 1}
    sat(tmp_path, system=PAIR, crew=crew, settings=again, calls_expected=(2, 2))
    assert FAILED
    assert status(tmp_path) == "pass"


def test_calls_of_a_grader_do_not_count(tmp_path: Path) -> None:
    sit(tmp_path, "pair", PAIR, ask_grader=True, calls_expected=(2, 2))
    assert status(tmp_path) == "pass"


def test_a_conductors_own_calls_are_no_worker_calls(tmp_path: Path) -> None:
    async def planning(question: Question, pool: Pool) -> Answer:
        await execute(Workflow((Step("conductor"),)), question, pool)
        return await execute(Workflow((Step("sage"),)), question, pool)

    sat(tmp_path, "conductor-x", planning, Crew(planner=number), calls_expected=(1, 1))
    assert status(tmp_path) == "pass"


def test_a_log_that_promises_nothing_is_held_to_nothing(tmp_path: Path) -> None:
    sat(tmp_path, system=PAIR)
    assert status(tmp_path) == "pass"
