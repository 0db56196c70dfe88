"""A limit per question stops that question before its next call, and no other question."""

from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from inspect_ai.log import read_eval_log

from podium.baselines.controls import random_workflow_system
from podium.cli.commands import build_parser
from podium.harness.budget import Spend
from podium.harness.errors import QuestionLimit, SpendLimit
from podium.harness.ledger.logs import newest_logs
from podium.harness.ledger.system_runs import load_runs
from podium.harness.records import Usage
from tests.harness.runs import BOOK, allowed
from tests.harness.toy_run import Toy, calls, toy_pool, toy_run

SAGE, CLERK = "scripted/sage", "scripted/clerk"
TWO_DOLLARS = Usage(input=1_000_000)
CENT = Decimal("0.01")
"""What one call of the toy costs: 100 tokens x $100 / Mtok."""


def meter(per_question: str, limit: str | None = None) -> Spend:
    most = Decimal(limit) if limit else None
    return Spend(BOOK, most, per_question=Decimal(per_question))


async def ask(spend: Spend, worker: str = SAGE, usage: Usage | None = TWO_DOLLARS) -> None:
    async with allowed(spend, worker):
        await anyio.sleep(0)
        spend.add(spend.price(worker, usage))


async def ask_until_refused(spend: Spend, most: int = 10) -> int:
    for made in range(most):
        try:
            await ask(spend)
        except QuestionLimit:
            return made
    return most


@pytest.mark.parametrize(
    ("per_question", "made"),
    [("4", 2), ("5.99", 2), ("6", 3), ("2", 1), ("1.5", 1)],
    ids=["exactly", "almost-three", "three", "one", "less-than-one-as-nobody-knew"],
)
def test_a_question_makes_no_call_that_could_pass_its_limit(per_question: str, made: int) -> None:
    run = meter(per_question)
    assert anyio.run(ask_until_refused, run.for_question()) == made
    assert run.spent == 2 * made


def test_other_questions_go_on_and_know_what_a_call_costs() -> None:
    async def both() -> tuple[int, int]:
        run = meter("1.5")
        first = await ask_until_refused(run.for_question())
        return first, await ask_until_refused(run.for_question())

    assert anyio.run(both) == (1, 0)


def test_what_a_call_is_expected_to_cost_is_the_runs_dearest_call_not_its_mean() -> None:
    async def all_of_them() -> int:
        run = meter("5")
        cheap, dear = Usage(input=500_000), Usage(input=2_000_000)
        for usage in (cheap, cheap, cheap, dear):
            await ask(run.for_question(), usage=usage)
        return await ask_until_refused(run.for_question())

    assert anyio.run(all_of_them) == 1  # a second could bring it to six


def test_a_dear_question_does_not_stop_those_whose_calls_can_cost_only_little() -> None:
    async def all_of_them() -> int:
        run, made = meter("5"), 0
        await ask(run.for_question(), usage=Usage(input=5_000_000))
        question = run.for_question()
        with suppress(QuestionLimit):
            while made < 10:
                async with allowed(question, SAGE, Decimal(2)):
                    question.add(question.price(SAGE, TWO_DOLLARS))
                made += 1
        return made

    assert anyio.run(all_of_them) == 2


def test_calls_that_run_side_by_side_hold_back_what_they_may_cost() -> None:
    async def at_once(run: Spend) -> list[str]:
        question, ended = run.for_question(), list[str]()

        async def one() -> None:
            try:
                await ask(question)
                ended.append("asked")
            except QuestionLimit:
                ended.append("refused")

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
        return ended

    run = meter("4")
    assert Counter(anyio.run(at_once, run)) == {"asked": 2, "refused": 3}
    assert run.spent == 4


def test_a_refusal_waits_for_calls_in_flight_so_that_none_is_broken_off() -> None:
    order: list[str] = []

    async def slow(question: Spend, gate: anyio.Event) -> None:
        async with allowed(question, SAGE):
            await gate.wait()
            question.add(question.price(SAGE, TWO_DOLLARS))
            order.append("ended")

    async def refused(question: Spend) -> None:
        with pytest.raises(QuestionLimit):
            await ask(question)
        order.append("refused")

    async def both() -> None:
        question, gate = meter("2").for_question(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow, question, gate)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(refused, question)
            await anyio.wait_all_tasks_blocked()
            gate.set()

    anyio.run(both)
    assert order == ["ended", "refused"]


def test_the_runs_own_limit_holds_inside_a_question() -> None:
    run = meter("100", limit="5")
    with pytest.raises(SpendLimit, match="of --max-usd 5 is spent") as stop:
        anyio.run(ask_until_refused, run.for_question())
    assert not isinstance(stop.value, QuestionLimit)
    assert run.spent == 4


def test_after_a_call_without_a_price_no_question_may_go_on() -> None:
    async def two_questions(run: Spend) -> None:
        await ask(run.for_question(), usage=None)
        await ask(run.for_question())

    with pytest.raises(SpendLimit, match="--max-usd-per-query cannot be enforced"):
        anyio.run(two_questions, meter("100"))


def test_a_run_without_such_a_limit_has_one_meter() -> None:
    run = Spend(BOOK)
    assert run.for_question() is run


def planned_calls() -> dict[str, int]:
    """Return how many steps the random control plans per question of the toy."""
    from podium.harness.run.forecast import counted_all

    system = random_workflow_system(seed=0)
    return {
        one.id: len(counted_all(system, [(one.sealed(), 1)], ("ada", "bob"))[0])
        for one in Toy().load()
    }


def test_a_raised_limit_asks_only_what_was_stopped(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    plans = planned_calls()
    short = {name for name, steps in plans.items() if steps <= 2}
    assert 0 < len(short) < 12
    outcome = toy_run(log_dir, systems=("random-workflow",), max_usd_per_query=2 * CENT)
    asked = Counter(call.split()[1] for call in calls(log_dir))
    assert not outcome.finished
    assert len(outcome.trouble) == 1
    assert outcome.trouble[0].startswith("budget per question: another call could pass --max-usd-p")
    assert outcome.trouble[0].endswith(f"({12 - len(short)} questions)")
    assert asked == {name: min(steps, 2) for name, steps in plans.items()}
    ((system_run,), _) = load_runs([log_dir])
    graded = {one.question for one in system_run.attempts if one.graded}
    assert graded == short
    assert all("budget per question" in one.reason for one in system_run.attempts if not one.graded)

    assert toy_run(log_dir, systems=("random-workflow",), max_usd_per_query=Decimal(1)).finished
    again = Counter(call.split()[1] for call in calls(log_dir))
    again.subtract(asked)
    left = {name: steps - 2 for name, steps in plans.items() if name not in short}
    assert +again == left, "what was paid for is not asked again"
    (newest,) = newest_logs([log_dir])
    assert len(read_eval_log(str(newest)).samples or []) == 12


@pytest.mark.parametrize("amount", ["0", "-1", "NaN", "inf", "much"])
def test_a_limit_per_question_is_a_positive_amount(
    amount: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--suite", "aime25", "--log-dir", "x", "--max-usd-per-query", amount]
    with pytest.raises(SystemExit):
        build_parser().parse_args(words)
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "US dollars" in said
