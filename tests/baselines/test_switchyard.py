"""NVIDIA's Switchyard as a system: the library itself decides, and scripted workers answer."""

import json
from dataclasses import replace

import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.tool import ToolCall, ToolCallError, ToolInfo

from podium.baselines.routers.switchyard import SWITCHYARD, by_price, router_switchyard_system
from podium.harness.conversation import Conversation, ConversationPool, question_of
from podium.harness.errors import UserError
from podium.harness.pool_config import pool_of
from podium.harness.records import Question
from tests.baselines.tries import ask
from tests.providers.scripted import ScriptedPool, scripted_pool

pytest.importorskip("switchyard", reason="nemo-switchyard is not installed: pip install '.[dev]'")

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")
PRICES = {"middle": 2, "dear": 9, "cheap": 1}
WORKER = """[[workers]]
name = "{0}"
model = "rehearsal/{0}"
knowledge_cutoff = "unknown"
price = {{ input = "1", output = "{1}" }}
"""


def priced(**replies: str) -> ScriptedPool:
    """Return scripted workers, each of which says its price, with prices as in a pool file."""
    said = {name: str(price) for name, price in PRICES.items()} | replies
    rig = scripted_pool(seed=0, **said)
    workers = "".join(WORKER.format(*one) for one in PRICES.items())
    rig.pool.spec = pool_of(f'name = "three"\nlabel = "rehearsal"\n{workers}')
    return rig


def episode(failures: int) -> Conversation:
    """Return a conversation in which an agent called a tool, which failed so often."""
    turns: list[ChatMessage] = [ChatMessageUser(content="Book it.")]
    for n in range(failures):
        call = ToolCall(id=str(n), function="book", arguments={"seat": n})
        error = ToolCallError("unknown", "Error: failed")
        turns.append(ChatMessageAssistant(content="", tool_calls=[call]))
        turns.append(ChatMessageTool(content="", tool_call_id=str(n), error=error))
    return Conversation(messages=turns, tools=[ToolInfo(name="book", description="Book a seat.")])


def test_the_efficient_worker_has_the_lowest_price_and_the_capable_one_the_highest() -> None:
    assert by_price(priced().pool) == ["cheap", "middle", "dear"]
    assert by_price(scripted_pool(b="1", a="2").pool) == ("b", "a")


def test_without_signals_the_efficient_worker_answers_and_why_is_noted() -> None:
    rig = priced()
    answer = ask(router_switchyard_system(), rig.pool, SUM)
    assert (answer.text, rig.asked) == ("1", ["cheap"])
    assert answer.noted == {"route": "cheap", "switchyard": {"source": "fall_open"}}
    assert rig.heard[0].turns == [("user", SUM.text)]


@pytest.mark.parametrize(("failures", "chosen"), [(0, "cheap"), (3, "dear")])
def test_tools_that_fail_again_and_again_bring_the_capable_worker(
    failures: int, chosen: str
) -> None:
    rig, asked = priced(), episode(failures)
    question = question_of("q", asked)
    pool = ConversationPool.within(rig.pool, asked, question.text, SWITCHYARD.acts)
    answer = ask(router_switchyard_system(), pool, question)
    assert answer.noted["route"] == chosen
    assert len(rig.heard[-1].messages) == 1 + 2 * failures, "it is sent the conversation itself"


@pytest.mark.parametrize(("chance", "chosen"), [(0.9, "cheap"), (0.1, "dear")])
def test_the_classifier_believes_the_capable_worker(chance: float, chosen: str) -> None:
    said = {"crux": "a sum", "primary_rule": "none", "capability_boundary": "unmatched"}
    rig = priced(dear=json.dumps({**said, "p_solve": chance}))
    answer = ask(router_switchyard_system("classifier"), rig.pool, SUM)
    assert rig.asked == ["dear", chosen]
    assert "probability forecaster" in rig.heard[0].system
    assert len(answer.replies) == 2


def test_a_classifier_without_a_verdict_leaves_it_to_the_capable_worker() -> None:
    rig = priced(dear="I would not know.")
    answer = ask(router_switchyard_system("classifier"), rig.pool, SUM)
    assert answer.text == "I would not know."
    assert answer.noted["switchyard"]["reason_code"] == "parse_error"


def test_a_random_choice_is_made_by_the_seed_the_question_and_the_epoch() -> None:
    def drawn(seed: int, epoch: int = 1) -> list[str]:
        system, rig = router_switchyard_system("random", seed=seed), priced()
        questions = [replace(SUM, text=f"What is {n} + 2?") for n in range(12)]
        return [ask(system, rig.again(epoch), one).text for one in questions]

    assert drawn(0) == drawn(0)
    assert {*drawn(0)} == {"1", "9"}
    assert len({tuple(drawn(seed, epoch)) for seed in range(2) for epoch in (1, 2)}) == 4


def test_other_workers_and_algorithms_are_named_and_unknown_ones_refused() -> None:
    rig = priced()
    assert ask(router_switchyard_system(efficient="middle"), rig.pool, SUM).text == "2"
    with pytest.raises(UserError, match="no worker 'nobody'; its workers are: middle"):
        ask(router_switchyard_system(efficient="nobody"), rig.pool, SUM)
    with pytest.raises(UserError, match="stage, classifier or random"):
        SWITCHYARD.methods.arguments("best")
