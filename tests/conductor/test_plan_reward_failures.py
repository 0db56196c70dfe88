"""Whose doing it is when a workflow comes to nothing: the policy's, a worker's, the money's."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.harness.context_length import DIALECTS, LengthRefusal
from podium.harness.execute import Budget
from podium.harness.pool_config import PoolSpec, WorkerSpec, read_pool
from podium.harness.prices import read_book
from podium.harness.records import Question, Usage
from podium.harness.rewards.outcome import RewardItem, Status, items_json
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.suite import Split
from tests.conductor.plans import BOOK, SOLVE, one_of, plan, rewarded, spec_of
from tests.harness.rewards.service import listening, post, service_of, train
from tests.harness.toy_run import Toy, calls, toy_pool
from tests.providers import CLIENTS_WARN, Act, ok, serve
from tests.providers.dialect import Asked
from tests.providers.scripted import Heard, script


def test_a_completion_that_is_no_workflow_is_the_policys_doing_and_asks_nobody() -> None:
    script("echo", lambda heard: "42")
    outcome = one_of(PlanAnswerer(spec_of(ada="scripted/echo"), BOOK), "Just ask Ada.")
    assert (outcome.value, outcome.status) == (0.0, Status.INVALID_ACTION)
    assert (outcome.calls, outcome.usd, outcome.usage) == (0, Decimal(0), Usage())
    assert "no complete list model_id" in outcome.reason


def test_a_worker_that_is_down_is_not_the_policys_doing(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    Path(f"{log}.broken").write_text("train-0")
    outcome = one_of(PlanAnswerer(spec, read_book(spec.prices)))
    assert (outcome.value, outcome.status) == (None, Status.WORKER_ERROR)
    assert "ada (toy/ada) gave no reply: the provider is down" in outcome.reason


def test_what_was_paid_before_a_failure_is_counted(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    script("down", lambda heard: 1 / 0)  # pyright: ignore[reportArgumentType]
    broken = WorkerSpec(name="down", model="scripted/down")
    spec = spec.model_copy(update={"workers": (*spec.workers, broken)})
    chain = plan((0, "Solve it.", []), (2, "Check it.", ["all"]))
    outcome = one_of(PlanAnswerer(spec, read_book(spec.prices)), chain)
    assert outcome.status is Status.WORKER_ERROR
    assert (outcome.calls, outcome.usd) == (1, Decimal("0.01"))


def test_a_worker_that_takes_too_long_is_not_the_policys_doing(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    Path(f"{log}.slow").write_text("30")
    outcome = one_of(
        PlanAnswerer(spec, read_book(spec.prices)), settings=RewardSettings(timeout_s=0.3)
    )
    assert (outcome.value, outcome.status) == (None, Status.TIMEOUT)
    assert (calls(log), calls(log, "end")) == (["ada train-0"], [])


def test_no_call_is_made_that_could_pass_the_dollar_limit(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    answer = PlanAnswerer(spec, read_book(spec.prices), PlanSettings(max_usd=Decimal("0.02")))
    items = [RewardItem("toy", f"train-{n}", SOLVE) for n in range(4)]
    outcomes = rewarded(answer, train(Toy()), items)
    assert sorted(one.status.value for one in outcomes) == ["budget", "budget", "scored", "scored"]
    assert {one.value for one in outcomes if one.status is Status.BUDGET} == {None}
    assert len(calls(log)) == 2


class NarrowAPI(ModelAPI):
    """A provider whose models refuse long requests, as Inspect's providers report that."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        if sum(len(turn.text) for turn in input) > 200:
            said = "This model's maximum context length is 200 characters."
            return ModelOutput.from_content(self.model_name, said, stop_reason="model_length")
        return ModelOutput.from_content(self.model_name, "42")


@modelapi(name="narrow")
def narrow() -> type[ModelAPI]:
    return NarrowAPI


LONG = plan((0, "Solve it. " * 30, []))


def test_a_request_too_long_for_its_worker_is_the_policys_doing() -> None:
    outcome = one_of(PlanAnswerer(spec_of(ada="narrow/ada"), BOOK), LONG)
    assert (outcome.value, outcome.status) == (0.0, Status.POLICY_FAULT)
    assert "does not fit that worker's context" in outcome.reason


class Wordy(Toy):
    """Questions that are longer than a narrow worker's context."""

    def load(self, split: Split = "eval") -> Sequence[Question]:
        return [replace(one, text=one.text * 20) for one in super().load(split)]


READS = plan((1, "Solve it.", []), (0, "Solve it.", [0]))


@pytest.mark.parametrize("form", [SOLVE, plan((0, "", []))], ids=["short subtask", "no subtask"])
def test_a_bare_question_too_long_for_its_worker_has_no_value(form: str) -> None:
    answer = PlanAnswerer(spec_of(ada="narrow/ada"), BOOK)
    (outcome,) = rewarded(answer, train(Wordy()), [RewardItem("toy", "train-0", form)])
    assert (outcome.value, outcome.status) == (None, Status.WORKER_ERROR)
    assert "The question alone does not fit ada's context" in outcome.reason


@pytest.mark.parametrize("questions", [Toy(), Wordy()], ids=["short question", "long question"])
def test_what_a_step_reads_is_the_policys_doing_whatever_the_question(questions: Toy) -> None:
    script("long", lambda heard: "I think. " * 30)
    answer = PlanAnswerer(spec_of(ada="narrow/ada", bob="scripted/long"), BOOK)
    (outcome,) = rewarded(answer, train(questions), [RewardItem("toy", "train-0", READS)])
    assert (outcome.value, outcome.status) == (0.0, Status.POLICY_FAULT)


def test_a_bare_refusal_among_its_steps_shows_that_the_question_alone_does_not_fit() -> None:
    answer = PlanAnswerer(spec_of(ada="narrow/ada"), BOOK)
    twice = plan((0, "Solve it.", []), (0, "Check it.", [0]))
    (outcome,) = rewarded(answer, train(Wordy()), [RewardItem("toy", "train-0", twice)])
    assert (outcome.value, outcome.status) == (None, Status.WORKER_ERROR)


@CLIENTS_WARN
@pytest.mark.parametrize(
    "dialect", [DIALECTS[3], DIALECTS[12], DIALECTS[14]], ids=lambda one: one.server
)
def test_over_http_every_servers_refusal_is_worth_the_same(dialect: LengthRefusal) -> None:
    def act(asked: Asked) -> Act:
        words = json.dumps({"error": {"message": dialect.words}}).encode()
        return Act(status=dialect.status, content=words) if len(asked.prompt) > 200 else ok("42")

    forms = {SOLVE: (1.0, "scored"), LONG: (0.0, "policy_fault")}
    items = [RewardItem("toy", "train-0", one) for one in forms]
    with serve(act) as server:
        settings = {"base_url": server.openai, "api_key": "test-ada"}
        ada = WorkerSpec(name="ada", model="openai-api/local/gemma", args=settings)
        spec = PoolSpec(name="made", label="live", prices="none", workers=(ada,))
        with listening(service_of(train(Toy()), answer=PlanAnswerer(spec, BOOK))) as url:
            rows = post(f"{url}/score", items_json(items[:2]))[1]["outcomes"]
        with listening(service_of(train(Wordy()), answer=PlanAnswerer(spec, BOOK))) as url:
            rows += post(f"{url}/score", items_json(items[:1]))[1]["outcomes"]
    found = [(row["value"], row["status"]) for row in rows]
    assert found == [*forms.values(), (None, "worker_error")]
    assert len(server.bill.lines) == 3


def test_a_refused_length_does_not_stop_a_run_that_has_a_dollar_limit() -> None:
    settings = PlanSettings(max_usd=Decimal(1))
    script("echo", lambda heard: "42")
    spec = spec_of(ada="narrow/ada", bob="scripted/echo")
    answer, exams = PlanAnswerer(spec, BOOK, settings), train(Toy())
    plans = (LONG, plan((1, "Solve it.", [])))

    async def both() -> list[Status]:
        reward = Reward(exams, answer)
        items = [RewardItem("toy", "train-0", completion) for completion in plans]
        return [(await reward.score([item]))[0].status for item in items]

    assert anyio.run(both) == [Status.POLICY_FAULT, Status.SCORED]


def test_a_refusal_that_is_not_the_answer_leaves_the_answer_to_be_graded() -> None:
    chain = plan((0, "Solve it. " * 30, []), (0, "Solve it.", []))
    outcome = one_of(PlanAnswerer(spec_of(ada="narrow/ada"), BOOK), chain)
    assert (outcome.value, outcome.status) == (1.0, Status.SCORED)


def test_tokens_and_dollars_are_unknown_where_a_worker_reports_none() -> None:
    outcome = one_of(PlanAnswerer(spec_of(ada="narrow/ada"), BOOK))
    assert (outcome.value, outcome.usage, outcome.usd, outcome.calls) == (1.0, None, None, 1)


def test_a_workflow_that_its_own_budget_stops_is_graded_as_it_stands(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    chain = plan((0, "Solve it.", []), (1, "Solve it.", ["all"]))
    book = read_book(spec.prices)
    assert one_of(PlanAnswerer(spec, book), chain).value == 0.0
    stopped = one_of(PlanAnswerer(spec, book, PlanSettings(Budget(calls=1))), chain)
    assert (stopped.value, stopped.status, stopped.calls) == (1.0, Status.SCORED, 1)


def test_no_worker_is_sent_the_target() -> None:
    heard: list[Heard] = []

    def listen(said: Heard) -> str:
        heard.append(said)
        return "nothing"

    script("echo", listen)
    one_of(PlanAnswerer(spec_of(ada="scripted/echo"), BOOK))
    assert heard
    assert not any("42" in text for said in heard for _, text in said.turns)
