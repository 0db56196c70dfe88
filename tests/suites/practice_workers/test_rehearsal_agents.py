"""Rehearsal agents and their user, on a small task of the form of tau2 and on tau2 itself."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver, use_tools
from inspect_ai.tool import Tool, ToolCall, ToolInfo, ToolParams, tool
from inspect_ai.util import store

from podium.baselines.routers.router_systems import named_worker, routing_prompt
from podium.conductor.parse import parse_lists
from podium.conductor.prompt import PlanFormat, plan_prompt
from podium.harness.conversation import Conversation, question_of
from podium.harness.pool_config import read_pool
from podium.harness.workflow import Workflow
from podium.suites.practice.workers.workers import WORKERS

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")


@tool
def shop_put() -> Tool:
    async def execute(item: str, count: int) -> str:
        """Put an item into the basket.

        Args:
            item: The item's name.
            count: How many.
        """
        basket: dict[str, int] = {**store().get("basket", {}), item: count}
        store().set("basket", basket)
        return f"basket: {basket}"

    return execute


@tool
def switch_on() -> Tool:
    async def execute() -> str:
        """Switch the user's own device on."""
        store().set("on", True)
        return "on"

    return execute


@solver
def talk() -> Solver:
    """User and agent in turn, as tau2 has them: each sees the other's words alone."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        agent, user = get_model(), get_model(role="user")
        heard: list[ChatMessage] = []
        for _ in range(30):
            said, output = await user.generate_loop(state.messages, tools=[switch_on()])
            state.messages.extend(said)
            if any(stop in output.completion for stop in STOPS):
                break
            heard.append(ChatMessageUser(content=output.completion))
            new, output = await agent.generate_loop(heard, tools=[shop_put()])
            heard.extend(new)
            state.messages.append(ChatMessageUser(content=output.completion))
        store().set("heard", [message.model_dump() for message in heard])
        return state

    return solve


@scorer(metrics=[accuracy()])
def as_expected() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        basket = {"apple": 2, "pear": 3, "plum": 4}
        right = store().get("basket") == basket and store().get("on", False)
        heard = [message.text for message in state.messages if message.role == "user"]
        told = not heard[1:] or any("42" in text for text in heard)
        return Score(value=CORRECT if right and told else INCORRECT)

    return score


PUT: list[dict[str, Any]] = [
    {"name": "put", "arguments": {"item": item, "count": count}}
    for item, count in (("apple", 2), ("pear", 3), ("plum", 4))
]
ON = {"name": "switch_on", "arguments": {}, "requestor": "user"}
INSTRUCTIONS = {"reason_for_call": "You want fruit.", "known_info": "Your name is Ada."}


def samples(scenario: bool, number: int = 6) -> list[Sample]:
    task: dict[str, Any] = {
        "evaluation_criteria": {
            "actions": [PUT[0], ON, *PUT[1:]] if scenario else PUT,
            "communicate_info": ["42"],
        },
    }
    if scenario:
        task["user_scenario"] = {"instructions": INSTRUCTIONS}
    return [Sample(id=at, input="Begin.", metadata={"task": task}) for at in range(number)]


def model(worker: str, **args: Any) -> Model:
    return get_model(f"rehearsal/{worker}", memoize=False, **args)


def played(task: Task | str, folder: Path, agent: Model, **options: Any) -> EvalLog:
    roles: dict[str, str | Model] = {"user": model("customer")}
    (log,) = eval(
        task, agent, model_roles=roles, log_dir=str(folder), display="none",
        fail_on_error=True, **options,
    )  # fmt: skip
    assert log.status == "success", log.error
    return log


def shopping(folder: Path, worker: str = "steward", **args: Any) -> EvalLog:
    task = Task(dataset=samples(scenario=True), solver=talk(), scorer=as_expected())
    return played(task, folder, model(worker, **args))


def right(log: EvalLog) -> list[int | str]:
    scores = {s.id: next(iter((s.scores or {}).values())) for s in log.samples or []}
    return [sample for sample, score in scores.items() if score.value == CORRECT]


def transcript(sample: EvalSample) -> list[Any]:
    heard = [ChatMessageAssistant.model_validate(m) if m["role"] == "assistant" else None
             for m in sample.store.get("heard", [])]  # fmt: skip
    calls = [call for turn in heard if turn for call in turn.tool_calls or []]
    words = [(message.role, message.text) for message in sample.messages]
    return [words, [(call.id, call.function, call.arguments) for call in calls]]


def test_an_agent_that_never_slips_does_all_and_one_that_always_slips_does_not(
    tmp_path: Path,
) -> None:
    assert len(right(shopping(tmp_path / "none", slip=0))) == 6
    assert right(shopping(tmp_path / "all", slip=1)) == []


@pytest.mark.slow
def test_the_same_seed_makes_the_same_transcripts_and_tokens(tmp_path: Path) -> None:
    logs = [shopping(tmp_path / str(at), "trainee", seed=seed) for at, seed in enumerate((3, 3, 4))]
    first, again, other = ([transcript(s) for s in log.samples or []] for log in logs)
    usage = [log.stats.model_usage["rehearsal/trainee"] for log in logs]
    assert (first, usage[0]) == (again, usage[1])
    assert first != other


def test_the_conversation_follows_the_script(tmp_path: Path) -> None:
    sample = (shopping(tmp_path, slip=0).samples or [])[0]
    words, calls = transcript(sample)
    texts = [text for role, text in words if text and role != "tool"]
    assert texts[1] == "I want fruit."
    assert texts[3] == "My name is Ada."
    assert texts[-2:] == [
        "Everything is done. Please note: 42.", "Thank you, goodbye. ###STOP###"
    ]  # fmt: skip
    assert [name for _, name, _ in calls] == ["shop_put"] * 3
    assert [number for number, _, _ in calls] == ["steward-1", "steward-3", "steward-4"]
    (own,) = [m for m in sample.messages if isinstance(m, ChatMessageTool)]
    assert own.function == "switch_on"


def test_a_worker_without_tools_talks_until_the_user_gives_up(tmp_path: Path) -> None:
    sample = (shopping(tmp_path, "adviser").samples or [])[0]
    words, calls = transcript(sample)
    assert calls == []
    assert any("`put`" in text for _, text in words)
    assert words[-1][1].endswith("###OUT-OF-SCOPE###")


def test_without_a_user_the_first_turn_acts(tmp_path: Path) -> None:
    chain = [use_tools(shop_put()), generate()]
    task = Task(dataset=samples(scenario=False, number=1), solver=chain)
    (sample,) = played(task, tmp_path, model("steward", slip=0)).samples or []
    assert sample.store["basket"] == {"apple": 2, "pear": 3, "plum": 4}


def asked(worker: str, config: GenerateConfig, **options: Any) -> ModelOutput:
    info = ToolInfo(name="shop_put", description="Put.", parameters=ToolParams())
    return asyncio.run(model(worker).generate("Hello", tools=[info], config=config, **options))


@pytest.mark.parametrize("worker", ["concierge", "adviser", "customer"])
def test_outside_a_sample_of_this_form_agents_only_talk(worker: str) -> None:
    output = asked(worker, GenerateConfig())
    assert output.message.tool_calls is None
    assert "cannot give an answer" in output.completion


@solver
def ask(messages: list[ChatMessage], config: GenerateConfig, **options: Any) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = await get_model().generate(messages, config=config, **options)
        return state

    return solve


def turn(
    agent: Model,
    folder: Path,
    *messages: ChatMessage,
    max_tokens: int | None = None,
    **options: Any,
) -> ModelOutput:
    """Return an agent's reply to a conversation within a sample of the task without a user."""
    solver = ask([*messages], GenerateConfig(max_tokens=max_tokens), **options)
    task = Task(dataset=samples(scenario=False, number=1), solver=solver)
    return (played(task, folder, agent).samples or [])[0].output


BEGIN = ChatMessageUser(content="Begin.")


def test_tool_choice_none_and_a_short_limit_leave_calls_out(tmp_path: Path) -> None:
    agent, tools = model("steward", slip=0), [shop_put()]
    assert turn(agent, tmp_path, BEGIN, tools=tools).stop_reason == "tool_calls"
    talked = turn(agent, tmp_path, BEGIN, tools=tools, tool_choice="none")
    assert talked.message.tool_calls is None
    cut = turn(agent, tmp_path, BEGIN, tools=tools, max_tokens=3)
    assert (cut.stop_reason, cut.message.tool_calls) == ("max_tokens", None)


def test_two_workers_that_advise_the_same_step_outvote_a_slip(tmp_path: Path) -> None:
    agent, step = (
        model("steward", slip=1),
        f"The next step is `put` with {json.dumps(PUT[0]['arguments'])}.",
    )
    for advice, followed in ((f"1. {step}\n2. {step}", True), ("1. Go on.\n2. Stop.", False)):
        messages = (BEGIN, ChatMessageUser(content=advice))
        calls = turn(agent, tmp_path, *messages, tools=[shop_put()]).message.tool_calls or []
        assert ([call.arguments for call in calls] == [PUT[0]["arguments"]]) is followed


def test_an_adviser_reads_how_far_a_transcript_is(tmp_path: Path) -> None:
    call = ToolCall(id="1", function="shop_put", arguments=PUT[0]["arguments"])
    info = ToolInfo(name="shop_put", description="Put.", parameters=ToolParams())
    turns = [BEGIN, ChatMessageAssistant(content="", tool_calls=[call])]
    question = question_of("0", Conversation(messages=turns, tools=[info]))
    said = turn(model("adviser", slip=0), tmp_path, ChatMessageUser(content=question.text))
    assert said.completion == f"The next step is `put` with {json.dumps(PUT[1]['arguments'])}."


def test_tools_and_calls_are_in_the_tokens() -> None:
    usage = asked("concierge", GenerateConfig()).usage
    alone = asyncio.run(model("concierge").generate("Hello")).usage
    assert usage
    assert alone
    assert usage.input_tokens > alone.input_tokens


@pytest.mark.parametrize("number", range(8))
def test_the_dispatcher_writes_plans_that_a_pool_of_agents_can_run(number: int) -> None:
    spec, asked = read_pool("rehearsal-agents"), f"Book seat {number}."
    cards = [worker.card for worker in spec.workers]
    said = asyncio.run(model("dispatcher").generate(plan_prompt(PlanFormat(), asked, cards)))
    plan = parse_lists(said.completion, spec.names)
    assert isinstance(plan, Workflow), said.completion
    assert len(plan.steps) in (1, 2)
    routed = asyncio.run(model("dispatcher").generate(routing_prompt(asked, cards)))
    assert named_worker(routed.completion, len(cards)) is not None


def test_dearer_agents_of_the_pool_are_slower_and_slip_less() -> None:
    spec = read_pool("rehearsal-agents")
    agents = [WORKERS[name] for name in spec.names if WORKERS[name].manner == "act"]
    prices = [spec.book().prices[f"rehearsal/{agent.name}"].output for agent in agents]
    assert prices == sorted(prices, reverse=True)
    assert [agent.slip for agent in agents] == sorted(agent.slip for agent in agents)
    latencies = [agent.latency_s for agent in agents]
    assert latencies == sorted(latencies, reverse=True)
