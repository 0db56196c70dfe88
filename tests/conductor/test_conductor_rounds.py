"""Later rounds: what a conductor is shown of its work, and what all rounds together may take."""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from podium.conductor.parse import KEEP, PlanFormat, join_rounds, read_later_plan
from podium.conductor.policy import (
    ANSWER_STANDS,
    CONDUCTOR_RECURSIVE,
    RoundLimits,
    conductor_recursive,
    conductor_system,
)
from podium.conductor.prompt import later_prompt, plan_prompt
from podium.harness.budget import Spend
from podium.harness.errors import UserError, WorkerError
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.records import FALLBACK, Answer, Question
from podium.harness.workflow import Malformed, Reads, Step, Workflow
from podium.reports.audit import audit
from tests.harness.runs import Crew, sit
from tests.providers.scripted import ScriptedPool, scripted_pool
from tests.reports.audit.audited_run import said

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")
CHAIN = 'model_id = [1, 0]\nsubtasks = ["Look up.", "Compute."]\naccess_list = [[], ["all"]]'
CHECK = 'model_id = [1, 1]\nsubtasks = ["Check.", "Decide."]\naccess_list = [["all"], ["all"]]'
ANEW = 'model_id = [1]\nsubtasks = ["Again."]\naccess_list = [[]]'
KEPT = "It is right.\nmodel_id = []\nsubtasks = []\naccess_list = []"
TWICE = RoundLimits()
PAPER = PlanFormat()


def crew(*plans: str, **replies: str) -> ScriptedPool:
    """Return workers, and a conductor that says these plans in turn."""
    said = iter(plans)
    return scripted_pool(
        abacus=replies.get("abacus", "4"), sage="I am sage", conductor=lambda heard: next(said)
    )


def answered(
    rig: ScriptedPool, rounds: RoundLimits = TWICE, form: PlanFormat = PAPER, retries: int = 0
) -> Answer:
    return anyio.run(conductor_system(form, retries=retries, rounds=rounds), SUM, rig.pool)


def plan_of(answer: Answer) -> Workflow:
    """Return the workflow as the log has it."""
    rows: list[Mapping[str, Any]] = json.loads(answer.plan or "[]")
    reads: list[Reads] = [
        row["reads"] if row["reads"] == "all" else tuple(row["reads"]) for row in rows
    ]
    return Workflow(
        tuple(
            Step(row["worker"], row["subtask"], read) for row, read in zip(rows, reads, strict=True)
        )
    )


# --- what is shown and read -------------------------------------------------------------------


def test_a_later_round_shows_the_plan_and_its_last_reply_and_offers_to_keep_it() -> None:
    first = plan_prompt(PAPER, "Why?", ["does sums"])
    *before, said, told = later_prompt(PAPER, first, CHAIN, "Because {x}.")
    assert before == first
    assert (said.role, said.text) == ("assistant", CHAIN)
    assert told.role == "user"
    assert "\nBecause {x}.\n" in told.text
    assert '"all" includes the last step of the earlier plan' in told.text
    assert "at most 5 steps" in told.text
    assert "leave all three lists empty" in told.text


def test_without_access_a_later_round_does_not_promise_the_earlier_answer() -> None:
    off = replace(PAPER, access="off")
    assert '"all"' not in later_prompt(off, plan_prompt(off, "Why?", [""]), CHAIN, "So.")[-1].text


def test_in_the_compact_layout_a_later_round_is_one_turn_that_ends_as_the_first() -> None:
    form = PlanFormat(layout="compact")
    first = plan_prompt(form, "Why?", ["does sums", ""])
    (turn,) = later_prompt(form, first, CHAIN, "So.")
    assert turn.text == (
        "Why?\n\nModels:\n0: does sums\n1:\n\n"
        f"Earlier plan:\n{CHAIN}\n\nEarlier answer:\nSo.\n\nPlan:"
    )
    (third,) = later_prompt(form, [turn], ANEW, "Thus.")
    assert third.text.startswith(turn.text.removesuffix("Plan:"))
    assert third.text.endswith(f"Earlier plan:\n{ANEW}\n\nEarlier answer:\nThus.\n\nPlan:")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("lists", KEPT),
        ("json", '{"model_id": [], "subtasks": [], "access_list": []}'),
        ("json", '{"steps": []}'),
    ],
)
def test_three_empty_lists_keep_the_answer_in_a_later_round_only(reply: Any, text: str) -> None:
    form = PlanFormat(reply=reply)
    assert read_later_plan(form, text, ("a", "b")) is KEEP
    assert isinstance(read_later_plan(form, "no plan", ("a", "b")), Malformed)
    rig = crew(text)
    assert (answered(rig, form=form).plan or "").startswith("malformed: three empty lists")


def test_all_of_a_later_round_is_the_last_step_before_it_and_its_own() -> None:
    one = Workflow((Step("a"), Step("b", reads="all")))
    later = Workflow(
        (Step("c", reads="all"), Step("d"), Step("e", reads=(0,)), Step("f", "", "all"))
    )
    reads = [step.reads for step in join_rounds(one, later).steps]
    assert reads == [(), "all", (1,), (), (2,), (1, 2, 3, 4)]


# --- running ----------------------------------------------------------------------------------


def test_a_conductor_that_keeps_its_answer_asks_no_worker_again() -> None:
    rig = crew(CHAIN, KEPT)
    answer = answered(rig)
    assert rig.asked == ["conductor", "sage", "abacus", "conductor"]
    assert (answer.text, answer.depth, len(answer.replies)) == ("4", 2, 2)
    assert answer.noted == {"rounds": [2], "ended": "kept"}


def test_the_steps_of_a_later_round_read_the_earlier_answer_as_past_turns() -> None:
    rig = crew(CHAIN, CHECK)
    answer = answered(rig)
    assert rig.asked[3:] == ["conductor", "sage", "sage"]
    assert rig.heard[3].turns[-2] == ("assistant", CHAIN)
    assert "\n4\n" in rig.heard[3].last
    assert rig.heard[4].turns == [
        ("user", f"{SUM.text}\n\nCompute."),
        ("assistant", "4"),
        ("user", "Check."),
    ]
    assert rig.heard[5].turns[3:] == [("assistant", "I am sage"), ("user", "Decide.")]
    assert (answer.text, answer.depth) == ("I am sage", 4)
    assert answer.noted == {"rounds": [2, 2], "ended": "rounds"}


@pytest.mark.parametrize("later", [CHECK, ANEW])
def test_the_log_of_several_rounds_alone_says_who_read_what_and_how_deep_it_went(
    later: str,
) -> None:
    rig = crew(CHAIN, later)
    answer = answered(rig)
    plan = plan_of(answer)
    assert [step.worker for step in plan.steps] == [reply.worker for reply in answer.replies]
    workers = [heard for heard in rig.heard if heard.worker != "conductor"]
    for index, heard in enumerate(workers):
        subtasks = [plan.steps[read].subtask for read in (*plan.reads(index), index)]
        texts = [
            text.removeprefix(f"{SUM.text}\n\n") for role, text in heard.turns if role == "user"
        ]
        assert texts == subtasks
    deep, start = 0, 0
    for size in answer.noted["rounds"]:
        depths: list[int] = []
        for index in range(start, start + size):
            own = (read - start for read in plan.reads(index) if read >= start)
            depths.append(1 + max((depths[read] for read in own), default=0))
        deep, start = deep + max(depths), start + size
    assert (answer.depth, len(plan.steps)) == (deep, start)


def test_a_later_plan_that_cannot_be_read_leaves_the_answer_and_says_so() -> None:
    rig = crew(CHAIN, "no plan", "no plan")
    answer = answered(rig, retries=1)
    assert rig.asked == ["conductor", "sage", "abacus", "conductor", "conductor"]
    assert (answer.text, len(answer.replies)) == ("4", 2)
    assert answer.noted == {"rounds": [2], "ended": "malformed", FALLBACK: ANSWER_STANDS}


def test_a_first_plan_that_cannot_be_read_has_no_further_round() -> None:
    rig = crew("no plan")
    answer = answered(rig)
    assert (rig.asked, answer.text, answer.noted) == (["conductor"], "", {})


def test_rounds_go_on_until_the_conductor_keeps_the_answer() -> None:
    rig = crew(CHAIN, ANEW, ANEW, KEPT)
    answer = answered(rig, RoundLimits(further=5))
    assert answer.noted == {"rounds": [2, 1, 1], "ended": "kept"}
    assert (len(answer.replies), answer.depth) == (4, 4)
    names = [heard.messages for heard in rig.heard if heard.worker == "conductor"]
    assert [len(messages) for messages in names] == [1, 3, 5, 7]


def test_a_rehearsal_conductor_keeps_its_answer() -> None:
    spec = read_pool("rehearsal")
    pool = Pool(models=pool_models(spec), spec=spec)
    answer = anyio.run(conductor_system(rounds=TWICE), SUM, pool)
    assert answer.noted["ended"] == "kept"


# --- limits -----------------------------------------------------------------------------------


def test_a_later_round_is_offered_the_calls_that_are_left() -> None:
    rig = crew(CHAIN, CHECK, ANEW)
    answer = answered(rig, RoundLimits(max_calls=3), retries=1)
    assert "at most 1 steps" in rig.heard[3].last
    assert "2 steps, at most 1 are allowed" in rig.heard[4].last
    assert (len(answer.replies), answer.noted["rounds"]) == (3, [2, 1])


@pytest.mark.parametrize("most", [1, 2])
def test_without_calls_left_the_conductor_is_not_asked_again(most: int) -> None:
    rig = crew(CHAIN)
    answer = answered(rig, RoundLimits(max_calls=most))
    assert (rig.asked.count("conductor"), answer.noted["ended"]) == (1, "calls")


def test_the_usual_limit_is_less_than_twice_the_calls_of_the_longest_plan() -> None:
    assert TWICE.calls(PlanFormat()) == 9
    assert RoundLimits().calls(PlanFormat(max_steps=2)) == 3
    assert RoundLimits(further=0).calls(PlanFormat()) == 5
    expected = CONDUCTOR_RECURSIVE.calls.span
    assert expected is not None
    assert expected(7, {}) == (0, 9)
    assert expected(7, {"max_steps": 2, "rounds": 3, "max_calls": 20}) == (0, 8)
    assert expected(7, {"rounds": 0}) == (0, 5)
    assert expected(7, {"max_calls": 1}) == (0, 5)  # a first plan runs whole


def test_a_dollar_limit_cannot_hold_where_a_call_has_no_price() -> None:
    with pytest.raises(WorkerError, match="no price"):
        answered(crew(CHAIN, KEPT), RoundLimits(max_usd=Decimal(1)))


def priced(rig: ScriptedPool) -> ScriptedPool:
    """Return the same crew at a dollar a token."""
    each = Price(Decimal(10**6), Decimal(10**6))
    book = Book("test", "2026-01-01", "a test", {f"scripted/{one}": each for one in ROLES}, "0")
    return ScriptedPool(replace(rig.pool, spend=Spend(book)), rig.heard)


ROLES = ("abacus", "sage", "conductor")


def test_dollars_of_the_conductor_count_and_end_the_rounds() -> None:
    free = answered(priced(crew(CHAIN, CHECK)))
    assert free.noted["ended"] == "rounds"
    workers = sum((reply.usd or Decimal(0) for reply in free.replies[:2]), Decimal(0))
    limited = answered(priced(crew(CHAIN)), RoundLimits(max_usd=workers + 1))
    assert (limited.text, limited.stopped) == ("", "usd")  # its conductor alone cost more
    rig = priced(crew(CHAIN))
    asked = len(plan_prompt(PAPER, SUM.text, ["", ""])[0].text.split()) + len(CHAIN.split())
    enough = answered(rig, RoundLimits(max_usd=workers + asked))
    assert (enough.text, enough.stopped, enough.noted["ended"]) == ("4", None, "usd")
    assert rig.asked == ["conductor", "sage", "abacus"]


def test_the_audit_finds_every_call_of_every_round(tmp_path: Path) -> None:
    plans = {1: CHAIN, 3: CHECK}
    people = Crew(planner=lambda heard: plans[len(heard.messages)])
    sit(tmp_path, "conductor-recursive", conductor_system(rounds=TWICE), people)
    found = audit(tmp_path)
    assert said(found, "I7").startswith("pass")
    assert said(found, "I2").startswith("pass")


@pytest.mark.parametrize(
    "arguments",
    [
        {"rounds": -1},
        {"max_calls": 0},
        {"max_usd": "0"},
        {"max_usd": "much"},
        {"max_usd": "NaN"},
        {"reply": "xml"},
        {"access": "some"},
        {"max_steps": 0},
        {"retries": -1},
    ],
)
def test_what_cannot_be_meant_is_refused_when_the_solver_is_made(arguments: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        conductor_recursive(**arguments)
