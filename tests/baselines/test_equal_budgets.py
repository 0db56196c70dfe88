"""Each system within an equal budget: what it answers with once the budget is spent."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import anyio
import pytest

from podium.baselines import SYSTEMS
from podium.baselines._registry import (
    ab_mcts,
    best_of_n,
    best_of_n_tests,
    confidence,
    debate,
    fusion,
    moa_3,
    moa_lite,
    ratings,
    remom,
    retry,
    self_consistency,
    self_moa,
    smoothie_local,
)
from podium.baselines.cascade import AGREEMENT, VERIFIER, cascade_system
from podium.baselines.trinity import Role, Turn, turns_system
from podium.conductor.policy import RoundLimits, conductor_system
from podium.harness.envelope import CallInEnvelope, Envelope, equal_budgets
from podium.harness.inspect_adapters import best_within, system_of
from podium.harness.prices.cost import Price
from podium.harness.records import Answer, Grade, Question, Usage
from podium.harness.system import System
from tests.providers.scripted import ReplyFunction, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")
PROGRAM = Question(id="program-1", text="Print 4.", kind="program")
PLAN = "model_id = [0, 1, 2]\nsubtasks = {}\naccess_list = [[], [], []]".format(["Go."] * 3)


def drawing(*replies: str) -> ReplyFunction:
    """Return a worker that says one reply after the other to the same request, then the last."""
    return lambda heard: replies[min(heard.occurrence, len(replies) - 1)]


def judging(verdict: str, *replies: str) -> ReplyFunction:
    """Return a worker that answers, and as a judge gives its verdict."""
    draw = drawing(*replies)
    return lambda heard: verdict if "judge of several" in heard.system else draw(heard)


def within(
    text: str,
    system: System,
    question: Question = SUM,
    tests: Callable[[Question, str], Any] | None = None,
    **replies: Any,
) -> tuple[Answer, list[str]]:
    """Return the answer of a system within a budget, and whom it asked, in order."""
    rig = scripted_pool(**replies)
    (budget,) = equal_budgets(text)
    rig.pool.envelope = Envelope(budget)
    rig.pool.public_tests = tests
    return anyio.run(best_within, system, question, rig.pool), rig.asked


def of(solver: Any) -> System:
    return system_of(solver)


def working_then_thinking(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
    return 0, "thinker" if turns else "worker"


THREE = {"a": "ANSWER: 1", "b": "ANSWER: 2", "c": "ANSWER: 2"}
CALLS: dict[str, tuple[int, Callable[[], System], dict[str, Any], str, Sequence[str]]] = {
    "a vote of what came": (
        3,
        lambda: of(self_consistency(k=5)),
        {"a": drawing("ANSWER: 1", "ANSWER: 2", "ANSWER: 2", "ANSWER: 9", "ANSWER: 9")},
        "ANSWER: 2",
        ["a"] * 3,
    ),
    "a judge is kept its call": (
        4,
        lambda: of(best_of_n(n=5)),
        {"a": judging("CHOICE: 3", "ANSWER: 1", "ANSWER: 2", "ANSWER: 3")},
        "ANSWER: 3",
        ["a"] * 4,
    ),
    "without a call for the judge the first candidate": (
        1,
        lambda: of(best_of_n(n=5)),
        {"a": judging("CHOICE: 3", "ANSWER: 1", "ANSWER: 2", "ANSWER: 3")},
        "ANSWER: 1",
        ["a"],
    ),
    "an aggregation of what came": (
        3,
        lambda: of(moa_lite(aggregator="c")),
        {**THREE, "c": lambda heard: f"of {heard.system[-22:]}"},
        "of ANSWER: 1\n2. ANSWER: 2",
        ["a", "b", "c"],
    ),
    "an aggregation of nothing is none": (
        1,
        lambda: of(moa_lite()),
        THREE,
        "ANSWER: 1",
        ["a"],
    ),
    "what came of a layer": (
        5,
        lambda: of(moa_3()),
        {**THREE, "a": drawing("ANSWER: 1")},
        "ANSWER: 1",
        ["a", "b", "c", "a", "a"],
    ),
    "self-moa": (3, lambda: of(self_moa(k=6)), {"a": "ANSWER: 7"}, "ANSWER: 7", ["a"] * 3),
    "a panel, its judge and its writer": (
        4,
        lambda: of(fusion(aggregator="c")),
        {**THREE, "c": "ANSWER: 5"},
        "ANSWER: 5",
        ["a", "b", "c", "c"],
    ),
    "rounds and the call that ends them": (
        3,
        lambda: of(remom(breadth=4, aggregator="c")),
        {**THREE, "c": "ANSWER: 6"},
        "ANSWER: 6",
        ["a", "b", "c"],
    ),
    "a debate's last whole round": (
        4,
        lambda: of(debate(agents=3, rounds=2)),
        {"a": lambda heard: "ANSWER: 9" if "updated" in heard.messages[-1].text else "ANSWER: 3"},
        "ANSWER: 3",
        ["a"] * 4,
    ),
    "a cascade's last whole stage": (
        4,
        lambda: cascade_system(AGREEMENT, workers=("a", "b"), threshold=1.0),
        {"a": drawing("ANSWER: 1", "ANSWER: 8", "ANSWER: 8"), "b": "ANSWER: 2"},
        "ANSWER: 8",
        ["a", "a", "a", "b"],
    ),
    "a verifier's words are no answer": (
        2,
        lambda: cascade_system(VERIFIER, workers=("a", "b"), threshold=1.0),
        {"a": drawing("ANSWER: 1", "VERDICT: WRONG"), "b": "ANSWER: 2"},
        "ANSWER: 1",
        ["a", "a"],
    ),
    "a rating is no answer": (
        3,
        lambda: of(confidence(order=["a", "b"])),
        {"a": lambda heard: '{"confidence": 0.1}' if heard.system else "ANSWER: 1", "b": "7"},
        "7",
        ["a", "a", "b"],
    ),
    "a plan is a call, and the answer a conductor's last reply": (
        3,
        conductor_system,
        {**THREE, "conductor": PLAN},
        "ANSWER: 2",
        ["conductor", "a", "b"],
    ),
    "a later plan that is not paid for leaves the answer": (
        4,
        lambda: conductor_system(rounds=RoundLimits(further=1)),
        {**THREE, "conductor": PLAN},
        "ANSWER: 2",
        ["conductor", "a", "b", "c"],
    ),
    "what a worker said last": (
        2,
        lambda: turns_system(lambda *_: working_then_thinking),
        {"a": drawing("ANSWER: 1", "ANSWER: 2")},
        "ANSWER: 1",
        ["a", "a"],
    ),
    "the first choice": (2, lambda: of(ratings()), THREE, "ANSWER: 1", ["a", "b"]),
    "the nearest of fewer is their vote": (
        2,
        lambda: of(smoothie_local()),
        THREE,
        "ANSWER: 1",
        ["a", "b"],
    ),
    "a search's best grade": (
        3,
        lambda: of(ab_mcts(calls=9)),
        {"a": "ANSWER: 4"},
        "ANSWER: 4",
        ["a"] * 3,
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_system_gives_the_best_it_has(case: str) -> None:
    limit, made, replies, text, asked = CALLS[case]
    answer, heard = within(f"calls={limit}", made(), **replies)
    assert (answer.text, heard) == (text, [*asked])
    assert answer.stopped == "calls"


async def passes_two(question: Question, reply: str) -> Grade:
    return Grade(float(reply == "print(2)"), reply)


def test_programs_that_came_are_told_apart_by_public_tests() -> None:
    draws = drawing("print(1)", "print(2)", "print(3)")
    answer, _ = within("calls=2", of(best_of_n_tests(n=5)), PROGRAM, passes_two, a=draws)
    assert (answer.text, answer.noted["trials"]) == ("print(2)", 2)
    answer, asked = within("calls=2", of(retry(tries=5)), PROGRAM, passes_two, a="print(1)")
    assert (answer.text, len(asked)) == ("print(1)", 2)


def test_what_is_not_used_is_known() -> None:
    rig = scripted_pool(a="ANSWER: 1")
    (budget,) = equal_budgets("calls=9")
    rig.pool.envelope = Envelope(budget)
    answer = anyio.run(best_within, of(self_consistency(k=5)), SUM, rig.pool)
    assert (answer.stopped, rig.pool.envelope.unused) == (None, Decimal(4))


def test_tokens_are_input_and_output_and_a_call_goes_out_only_if_its_bound_fits() -> None:
    def asked(limit: int) -> int:
        rig = scripted_pool(a="ANSWER: 1")
        rig.pool.models["a"].config.max_tokens = 100
        (budget,) = equal_budgets(f"tokens={limit}")
        rig.pool.envelope = Envelope(budget)
        anyio.run(best_within, of(self_consistency(k=9)), SUM, rig.pool)
        return len(rig.asked)

    bound = 100 + 256 + len(SUM.text)  # of one call; it takes 5 tokens in and 2 out
    assert [asked(bound - 1), asked(bound), asked(bound + 7), asked(bound + 13)] == [0, 1, 2, 2]


def test_every_system_says_what_it_answers_with_or_that_it_cannot() -> None:
    unfit = {name for name, card in SYSTEMS.items() if not card.fits_budgets}
    assert {"oracle", "compute-matched-usd", "agents-as-tools"} & SYSTEMS.keys() <= unfit
    assert all(card.spent for card in SYSTEMS.values())
    assert "self-consistency" not in unfit


def test_cached_tokens_count_at_list_and_a_lost_try_as_the_most_it_can_be() -> None:
    usage = Usage(input=10, cache_read=90, output=5)
    price = Price(input=Decimal(1), output=Decimal(2), cache_read=Decimal("0.1"))
    for text, taken in (("tokens=900", Decimal(105)), ("usd=1", Decimal("0.00011"))):
        (budget,) = equal_budgets(text)
        call = CallInEnvelope(Decimal(7), price, Decimal(7))
        call.replied(budget, usage, lost=2)
        assert call.taken == taken + 14
