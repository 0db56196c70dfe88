"""The rules that read practice-deep: who does which part, who reads whom."""

from podium.baselines.rules_planner import plan_parts, read_parts
from podium.harness.pool_config import read_pool
from podium.harness.workflow import MAX_STEPS, Step, Workflow, check
from podium.suites import SUITES
from tests.suites.test_practice_deep import sequence

POOL = read_pool("rehearsal-deep")
CARDS = [(worker.name, worker.card or "") for worker in POOL.workers]


def planned(text: str) -> Workflow:
    return plan_parts(read_parts(text, CARDS))


def test_parts_that_need_nothing_of_each_other_are_done_side_by_side() -> None:
    plan = planned(
        "Let h be the atomic number of gold. Let v be the position of Mars in order from the Sun. "
        "What is the greatest common divisor of h and v?"
    )
    assert plan.steps == (
        Step("chemist"),
        Step("astronomer"),
        Step("divider", reads=(0, 1)),
    )


def test_a_step_reads_what_those_it_reads_have_read() -> None:
    plan = planned(
        "Let k be the number of positive divisors of 30. Let c be the number of letters in the "
        "English name of the element with atomic number k. What is 3 * c + 26?"
    )
    assert plan.steps == (
        Step("divider"),
        Step("chemist", reads=(0,)),
        Step("clerk", reads=(0, 1)),
    )


def test_who_is_said_to_do_everything_is_asked_nothing() -> None:
    plans = [planned(question.text) for question in SUITES["practice-deep"].load("validation")]
    asked = {step.worker for plan in plans for step in plan.steps}
    assert asked == {*POOL.names} - {"guesser", "essayist"}
    assert all(isinstance(check(plan, POOL.names), Workflow) for plan in plans)
    assert max(len(plan.steps) for plan in plans) == MAX_STEPS


def test_workers_are_asked_in_the_order_of_the_parts_that_they_do() -> None:
    for question in SUITES["practice-deep"].load("validation"):
        workers = [step.worker for step in planned(question.text).steps]
        assert workers == sequence(question.topic), question.text


def test_a_question_in_another_grammar_goes_to_one_worker() -> None:
    assert len(planned("How many legs have five cats?\n\nAnswer in one word.").steps) == 1
