"""The executor and the pool, over a real provider whose replies take time, fail or hang."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

import anyio
import pytest
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError, WorkerError
from podium.harness.execute import EARLIER, Budget, advice, execute
from podium.harness.pool import Pool
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.records import Answer, Question, Reply
from podium.harness.workflow import REPLIES, Malformed, Reads, Step, Workflow, check
from tests.providers.scripted import Heard, scripted_pool

QUESTION = Question(id="q1", text="What is 6 times 7?", kind="integer")


@dataclass(slots=True)
class Traffic:
    """What a timed provider saw: calls begun, finished and cut off."""

    begun: list[str] = field(default_factory=list[str])
    finished: list[str] = field(default_factory=list[str])
    cut_off: list[str] = field(default_factory=list[str])


class TimedAPI(ModelAPI):
    """Waits `seconds`, then answers, or fails when its text is a `!`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self.seconds: float = model_args["seconds"]
        self.text: str = model_args["text"]
        self.traffic: Traffic = model_args["traffic"]

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        self.traffic.begun.append(self.model_name)
        try:
            await anyio.sleep(self.seconds)
        except anyio.get_cancelled_exc_class():
            self.traffic.cut_off.append(self.model_name)
            raise
        if self.text == "!":
            raise RuntimeError("the server is on fire")
        self.traffic.finished.append(self.model_name)
        output = ModelOutput.from_content(self.model_name, self.text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output


@modelapi(name="timed")
def timed() -> type[ModelAPI]:
    return TimedAPI


def timed_pool(traffic: Traffic, spend: Spend | None = None, **workers: tuple[float, str]) -> Pool:
    models = {
        name: get_model(f"timed/{name}", memoize=False, seconds=seconds, text=text, traffic=traffic)
        for name, (seconds, text) in workers.items()
    }
    return Pool(models=models, spend=spend)


def book(**rates: str) -> Book:
    prices = {f"timed/{name}": Price(Decimal(rate), Decimal(rate)) for name, rate in rates.items()}
    return Book("test", "2026-01-01", "made up for a test", prices, "0" * 64)


def run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    async def main() -> Answer:
        return await work()

    return anyio.run(main)


def answer(workflow: Workflow, pool: Pool, budget: Budget | None = None) -> Answer:
    return run(lambda: execute(workflow, QUESTION, pool, budget))


def test_the_depth_of_a_workflow_is_its_critical_path() -> None:
    pool = timed_pool(Traffic(), a=(0, "a"), b=(0, "b"), c=(0, "c"), d=(0, "d"))
    steps = (Step("a"), Step("b"), Step("c", reads=(0,)), Step("d", reads=(1, 2)))
    got = answer(Workflow(steps), pool)
    assert (got.text, got.depth) == ("d", 3)


def test_a_step_starts_before_unrelated_slow_steps_have_replied() -> None:
    traffic = Traffic()
    pool = timed_pool(traffic, slow=(0.5, "s"), quick=(0.05, "q"), last=(0.05, "l"))
    steps = (Step("slow"), Step("quick"), Step("last", reads=(1,)))
    answer(Workflow(steps), pool)
    assert traffic.finished == ["quick", "last", "slow"]


def test_a_failed_step_cuts_off_the_others_and_is_reported_once_by_name() -> None:
    traffic = Traffic()
    pool = timed_pool(traffic, bad=(0.05, "!"), slow=(30, "s"))
    with pytest.raises(WorkerError, match=r"bad .* gave no reply: .*the server is on fire"):
        answer(Workflow((Step("bad"), Step("slow"), Step("slow", reads="all"))), pool)
    assert traffic.cut_off == ["slow"]
    assert traffic.begun == ["bad", "slow"]


def test_a_cancelled_answer_leaves_no_call_behind() -> None:
    traffic = Traffic()
    pool = timed_pool(traffic, a=(30, "a"), b=(30, "b"))

    async def main() -> None:
        with anyio.move_on_after(0.1):
            await execute(Workflow((Step("a"), Step("b"))), QUESTION, pool)

    anyio.run(main)
    assert sorted(traffic.cut_off) == ["a", "b"]
    assert traffic.finished == []


@pytest.mark.parametrize(
    ("budget", "stopped", "asked"),
    [
        pytest.param(Budget(calls=2), "calls", ["a", "b"], id="calls"),
        pytest.param(Budget(depth=1), "depth", ["a"], id="depth"),
        pytest.param(Budget(tokens=15), "tokens", ["a"], id="tokens"),
        pytest.param(Budget(usd=Decimal("0.00003")), "usd", ["a", "b"], id="dollars"),
    ],
)
def test_a_spent_budget_starts_no_further_step(
    budget: Budget, stopped: str, asked: list[str]
) -> None:
    traffic = Traffic()
    pool = timed_pool(traffic, Spend(book(a="1", b="1", c="1")), a=(0, "a"), b=(0, "b"), c=(0, "c"))
    steps = (Step("a"), Step("b", reads=(0,)), Step("c", reads=(1,)))
    got = answer(Workflow(steps), pool, budget)
    assert traffic.begun == asked
    assert (got.stopped, got.text, got.depth) == (stopped, asked[-1], len(asked))


def test_a_dollar_budget_refuses_a_worker_without_a_price() -> None:
    pool = timed_pool(Traffic(), Spend(book(b="1")), a=(0, "a"), b=(0, "b"))
    with pytest.raises(WorkerError, match="a has no price"):
        answer(Workflow((Step("a"), Step("b", reads="all"))), pool, Budget(usd=Decimal("1")))


def test_a_run_that_has_spent_its_dollars_makes_no_further_call() -> None:
    traffic = Traffic()
    spend = Spend(book(a="1000000"), limit=Decimal("10"))
    pool = timed_pool(traffic, spend, a=(0, "a"))
    with pytest.raises(SpendLimit, match="--max-usd 10 is spent"):
        answer(Workflow((Step("a"), Step("a", reads="all"))), pool)
    assert traffic.begun == ["a"]
    assert spend.spent == Decimal("15")


def test_a_meter_that_fails_lets_no_call_out() -> None:
    traffic = Traffic()
    spend = Spend(book(a="1"), limit=cast(Any, "10"))  # a text, which cannot be calculated with
    with pytest.raises(WorkerError, match="unsupported operand"):
        answer(Workflow((Step("a"),)), timed_pool(traffic, spend, a=(0, "a")))
    assert traffic.begun == []


def test_an_unknown_worker_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no worker 'zeus'; its workers are: a"):
        answer(Workflow((Step("zeus"),)), scripted_pool(a="1").pool)


def turns(reads: Reads, subtask: str = "Finish.", system: str | None = None) -> list[Any]:
    scripted = scripted_pool(one="1st", two="2nd", three="3rd")
    steps = (Step("one", "Look it up."), Step("two"), Step("three", subtask, reads, system))
    answer(Workflow(steps), scripted.pool)
    heard: Heard = next(heard for heard in scripted.heard if heard.worker == "three")
    return heard.turns


def test_a_step_without_subtask_and_reads_is_the_canonical_request() -> None:
    assert turns((), "") == [("user", QUESTION.text)]


def test_replies_that_a_step_reads_are_earlier_turns_and_the_question_opens_them() -> None:
    assert turns("all") == [
        ("user", f"{QUESTION.text}\n\nLook it up."),
        ("assistant", "1st"),
        ("user", "Continue."),
        ("assistant", "2nd"),
        ("user", "Finish."),
    ]


def test_a_step_sees_nothing_that_it_does_not_read() -> None:
    assert turns((1,)) == [("user", QUESTION.text), ("assistant", "2nd"), ("user", "Finish.")]


def test_a_system_message_with_the_marker_gets_the_replies_numbered() -> None:
    assert turns("all", "", f"Responses:\n{REPLIES}") == [
        ("system", "Responses:\n1. 1st\n2. 2nd"),
        ("user", QUESTION.text),
    ]


def test_the_same_request_twice_is_two_replicates_and_each_epoch_has_its_own() -> None:
    scripted = scripted_pool(a="x")
    answer(Workflow((Step("a"), Step("a"), Step("a", "Other."))), scripted.pool)
    answer(Workflow((Step("a"),)), scripted.again(epoch=2))
    seen = [(heard.epoch, heard.occurrence) for heard in scripted.heard]
    assert seen == [(1, 0), (1, 1), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        pytest.param((), "at least one step", id="empty"),
        pytest.param((Step("a"),) * 6, "6 steps, at most 5", id="too-long"),
        pytest.param((Step("zeus"),), "unknown worker 'zeus' (known: a, b)", id="stranger"),
        pytest.param((Step("a", reads=(0,)),), "reads step 1, which has not run", id="itself"),
        pytest.param((Step("a"), Step("b", reads=(-1,))), "has not run", id="negative"),
    ],
)
def test_a_workflow_that_cannot_run_says_why(steps: tuple[Step, ...], reason: str) -> None:
    verdict = check(Workflow(steps), {"a", "b"})
    assert isinstance(verdict, Malformed)
    assert reason in verdict.reason


def test_a_workflow_that_can_run_is_returned_as_it_is() -> None:
    workflow = Workflow((Step("a"), Step("b", reads=(0,)), Step("a", reads="all")))
    assert check(workflow, {"a", "b"}) is workflow
    assert workflow.depths() == (1, 2, 3)


@pytest.mark.parametrize(
    ("system", "advised"),
    [
        (None, f"{EARLIER}\n1. It is 42.\n\nDecide."),
        ("Be strict.", f"Be strict.\n\n{EARLIER}\n1. It is 42.\n\nDecide."),
        (f"Merge:\n{REPLIES}", "Merge:\n1. It is 42.\n\nDecide."),
    ],
)
def test_who_acts_is_told_every_earlier_reply_whatever_its_system_message(
    system: str | None, advised: str
) -> None:
    last = Step("b", "Decide.", reads="all", system=system)
    history = [(Step("a"), Reply("a", "It is 42.", None, None))]
    assert advice(last, history) == advised
    assert advice(Step("b"), []) == ""
