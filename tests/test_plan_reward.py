"""Workflows as completions: carried out as an evaluation does, and whose doing a failure is."""

import pickle
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from scripted import SCRIPTS, Heard, script
from serving import Sitting, get, listening, post, service_of, train
from toy import Toy, calls, toy_pool

from conductor.plan_reward import Planned, PlanSettings, planned, shown_to_policy
from conductor.policy import conductor_prompted
from conductor.prompt import plan_request
from harness.execute import Budget
from harness.pool_file import PoolSpec, WorkerSpec, read_pool
from harness.prices import Book, Price, read_book
from harness.records import PODIUM, Usage
from harness.rewards.core import Answerer, Reward, RewardSettings
from harness.rewards.items import RewardItem, RewardOutcome, Status
from harness.rewards.wire import items_json
from harness.task import as_task
from suites import SUITES

BOOK = Book("test", "2026-01-01", "a test", {"scripted/echo": Price(Decimal(1), Decimal(1))}, "0")
USUAL = RewardSettings()
NOTHING = PlanSettings()


def plan(*steps: tuple[int, str, object]) -> str:
    """Write a plan as a conductor does: model, subtask and what it may read."""
    models, subtasks, access = zip(*steps, strict=True)
    lists = (list(models), list(subtasks), list(access))
    names = ("model_id", "subtasks", "access_list")
    return "\n".join(f"{name} = {made!r}" for name, made in zip(names, lists, strict=True))


SOLVE = plan((0, "Solve it.", []))
PLANS = (
    plan((1, "Solve it.", [])),
    plan((0, "Solve it.", []), (1, "Check it.", ["all"])),
    plan((3, "Say what you know.", []), (1, "Solve it.", [0])),
    "I would ask model 1.",
)


def chosen(question: str) -> str:
    return PLANS[sum(map(ord, question)) % len(PLANS)]


def rewarded(
    answer: Answerer,
    exams: dict[str, Sitting],
    items: Sequence[RewardItem],
    settings: RewardSettings = USUAL,
) -> list[RewardOutcome]:
    return anyio.run(Reward(exams, answer, settings).score, items)


def spec_of(**models: str) -> PoolSpec:
    slots = tuple(WorkerSpec(name=name, model=model) for name, model in models.items())
    return PoolSpec(name="made", label="live", prices="none", workers=slots)


# --- parity -----------------------------------------------------------------------------------


def test_a_plan_is_worth_in_training_what_an_evaluation_gives_it(tmp_path: Path) -> None:
    suite, n = SUITES["practice-integer"], 24
    exams = train(suite, first=n)
    texts = {question.text: question for question in exams[suite.name].questions.values()}

    def conduct(heard: Heard) -> str:
        asked = heard.messages[0].text
        return chosen(next(text for text in texts if f"\n{text}\n" in asked))

    solving = conductor_prompted(pool="rehearsal", retries=0)
    (log,) = evaluate(
        as_task(suite, split="train", limit=n, solver=solving),
        model="none",
        model_roles={"conductor": get_model(script("conduct", conduct))},
        display="none",
        log_dir=str(tmp_path),
    )
    graded: dict[str, Any] = {
        str(one.id): (one.scores or {})[PODIUM].value for one in log.samples or []
    }
    spec = read_pool("rehearsal")
    items = [RewardItem(suite.name, one.id, chosen(one.text)) for one in texts.values()]
    outcomes = rewarded(planned(spec, read_book(spec.prices)), exams, items)
    assert {item.question: one.value for item, one in zip(items, outcomes, strict=True)} == graded
    assert {one.status for one in outcomes} == {Status.SCORED, Status.INVALID_ACTION}
    assert {one.value for one in outcomes} == {0.0, 1.0}


def test_a_workflow_over_http_is_worth_the_same_and_pays_the_same() -> None:
    suite = SUITES["practice-integer"]
    exams = train(suite, first=6)
    spec = read_pool("rehearsal")
    book = read_book(spec.prices)
    ids = list(exams[suite.name].questions)
    items = [RewardItem(suite.name, one, PLANS[1]) for one in ids]
    near = rewarded(planned(spec, book), exams, items)
    with listening(service_of(exams, answer=planned(spec, book))) as url:
        rows = post(f"{url}/score", items_json(items))[1]["outcomes"]
        counts = get(f"{url}/counts")[1]
    assert [(row["value"], row["usd"], row["calls"]) for row in rows] == [
        (one.value, str(one.usd), 2) for one in near
    ]
    assert Decimal(counts["usd"]) == sum((one.usd or 0 for one in near), Decimal(0)) > 0


# --- replicates -------------------------------------------------------------------------------


def echoing(heard: Heard) -> str:
    return f"epoch {heard.epoch}, time {heard.occurrence}"


def test_equal_plans_of_a_group_get_fresh_replies() -> None:
    texts: list[str] = []

    class Noting(Toy):
        def grade(self, question: Any, reply: str, box: object | None = None) -> Any:
            texts.append(reply)
            return super().grade(question, reply, box)

    script("echo", echoing)
    twice = plan((0, "Solve it.", []), (0, "Solve it.", []))
    items = [RewardItem("toy", "train-0", twice, replicate=k) for k in range(3)]
    rewarded(planned(spec_of(ada="scripted/echo"), BOOK), train(Noting()), items)
    assert sorted(texts) == [f"epoch {k}, time 1" for k in (1, 2, 3)]


def test_trainers_that_number_nothing_get_fresh_replies_too() -> None:
    seen: list[int] = []

    def noting(heard: Heard) -> str:
        seen.append(heard.epoch)
        return "42"

    script("echo", noting)
    answer = planned(spec_of(ada="scripted/echo"), BOOK)
    with listening(service_of(train(Toy()), answer=answer)) as url:
        for _ in range(3):
            assert post(f"{url}/rm", {"response": SOLVE, "label": "toy/train-0"}) == (200, 1.0)
    assert seen == [1, 2, 3]


# --- whose doing it is ------------------------------------------------------------------------


def one_of(
    answer: Planned, completion: str = SOLVE, settings: RewardSettings = USUAL
) -> RewardOutcome:
    items = [RewardItem("toy", "train-0", completion)]
    return rewarded(answer, train(Toy()), items, settings)[0]


def test_a_completion_that_is_no_workflow_is_the_policys_doing_and_asks_nobody() -> None:
    script("echo", echoing)
    outcome = one_of(planned(spec_of(ada="scripted/echo"), BOOK), "Just ask Ada.")
    assert (outcome.value, outcome.status) == (0.0, Status.INVALID_ACTION)
    assert (outcome.calls, outcome.usd, outcome.usage) == (0, Decimal(0), Usage())
    assert "no complete list model_id" in outcome.reason


def test_a_worker_that_is_down_is_not_the_policys_doing(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    Path(f"{log}.broken").write_text("train-0")
    outcome = one_of(planned(spec, read_book(spec.prices)))
    assert (outcome.value, outcome.status) == (None, Status.WORKER_ERROR)
    assert "ada (toy/ada) gave no reply: the provider is down" in outcome.reason


def test_what_was_paid_before_a_failure_is_counted(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    script("down", lambda heard: 1 / 0)  # pyright: ignore[reportArgumentType]
    broken = WorkerSpec(name="down", model="scripted/down")
    spec = spec.model_copy(update={"workers": (*spec.workers, broken)})
    chain = plan((0, "Solve it.", []), (2, "Check it.", ["all"]))
    outcome = one_of(planned(spec, read_book(spec.prices)), chain)
    assert outcome.status is Status.WORKER_ERROR
    assert (outcome.calls, outcome.usd) == (1, Decimal("0.01"))


def test_a_worker_that_takes_too_long_is_not_the_policys_doing(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    Path(f"{log}.slow").write_text("30")
    outcome = one_of(planned(spec, read_book(spec.prices)), settings=RewardSettings(timeout_s=0.3))
    assert (outcome.value, outcome.status) == (None, Status.TIMEOUT)
    assert (calls(log), calls(log, "end")) == (["ada train-0"], [])


def test_no_call_is_made_that_could_pass_the_dollar_limit(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    answer = planned(spec, read_book(spec.prices), PlanSettings(max_usd=Decimal("0.02")))
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
    outcome = one_of(planned(spec_of(ada="narrow/ada"), BOOK), LONG)
    assert (outcome.value, outcome.status) == (0.0, Status.POLICY_FAULT)
    assert "does not fit that worker's context" in outcome.reason


def test_a_refused_length_does_not_stop_a_run_that_has_a_dollar_limit() -> None:
    settings = PlanSettings(max_usd=Decimal(1))
    script("echo", lambda heard: "42")
    spec = spec_of(ada="narrow/ada", bob="scripted/echo")
    answer, exams = planned(spec, BOOK, settings), train(Toy())
    plans = (LONG, plan((1, "Solve it.", [])))

    async def both() -> list[Status]:
        reward = Reward(exams, answer)
        items = [RewardItem("toy", "train-0", completion) for completion in plans]
        return [(await reward.score([item]))[0].status for item in items]

    assert anyio.run(both) == [Status.POLICY_FAULT, Status.SCORED]


def test_a_refusal_that_is_not_the_answer_leaves_the_answer_to_be_graded() -> None:
    chain = plan((0, "Solve it. " * 30, []), (0, "Solve it.", []))
    outcome = one_of(planned(spec_of(ada="narrow/ada"), BOOK), chain)
    assert (outcome.value, outcome.status) == (1.0, Status.SCORED)


def test_tokens_and_dollars_are_unknown_where_a_worker_reports_none() -> None:
    outcome = one_of(planned(spec_of(ada="narrow/ada"), BOOK))
    assert (outcome.value, outcome.usage, outcome.usd, outcome.calls) == (1.0, None, None, 1)


def test_a_workflow_that_its_own_budget_stops_is_graded_as_it_stands(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    chain = plan((0, "Solve it.", []), (1, "Solve it.", ["all"]))
    book = read_book(spec.prices)
    assert one_of(planned(spec, book), chain).value == 0.0
    stopped = one_of(planned(spec, book, PlanSettings(Budget(calls=1))), chain)
    assert (stopped.value, stopped.status, stopped.calls) == (1.0, Status.SCORED, 1)


def test_no_worker_is_sent_the_target() -> None:
    heard: list[Heard] = []

    def listen(said: Heard) -> str:
        heard.append(said)
        return "nothing"

    script("echo", listen)
    one_of(planned(spec_of(ada="scripted/echo"), BOOK))
    assert heard
    assert not any("42" in text for said in heard for _, text in said.turns)


# --- around it --------------------------------------------------------------------------------


def test_an_answerer_pickles_without_its_models() -> None:
    SCRIPTS["echo"] = lambda heard: "42"
    answer = planned(spec_of(ada="scripted/echo"), BOOK, PlanSettings(max_steps=3))
    assert one_of(answer).value == 1.0
    again = pickle.loads(pickle.dumps(answer))
    assert one_of(again).value == 1.0
    assert one_of(again, plan(*[(0, "Solve it.", [])] * 4)).status is Status.INVALID_ACTION


def test_a_policy_is_shown_what_a_prompted_conductor_is_shown() -> None:
    spec = read_pool("rehearsal")
    (question,) = train(Toy(), first=1)["toy"].questions.values()
    cards = [spec.worker(name).card for name in spec.names]
    (turn,) = plan_request(question.text, cards)
    assert shown_to_policy(spec)(question) == [{"role": "user", "content": turn.text}]
