"""Workflows as completions: worth what an evaluation gives them, with replies of their own."""

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.model import (
    get_model,
)

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings, shown_to_policy
from podium.conductor.parse import PlanFormat
from podium.conductor.policy import conductor_prompted
from podium.conductor.prompt import plan_prompt
from podium.harness.inspect_adapters import as_task
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.records import PODIUM
from podium.harness.rewards.outcome import RewardItem, Status, items_json
from podium.suites import SUITES
from tests.conductor.plans import BOOK, SOLVE, one_of, plan, rewarded, spec_of
from tests.harness.rewards.service import get, listening, post, service_of, train
from tests.harness.toy_run import Toy
from tests.providers.scripted import SCRIPTS, Heard, script

PLANS = (
    plan((1, "Solve it.", [])),
    plan((0, "Solve it.", []), (1, "Check it.", ["all"])),
    plan((3, "Say what you know.", []), (1, "Solve it.", [0])),
    "I would ask model 1.",
)


def chosen(question: str) -> str:
    return PLANS[sum(map(ord, question)) % len(PLANS)]


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
        model_roles={"conductor": get_model(script("conduct", conduct), memoize=False)},
        display="none",
        log_dir=str(tmp_path),
    )
    graded: dict[str, Any] = {
        str(one.id): (one.scores or {})[PODIUM].value for one in log.samples or []
    }
    spec = read_pool("rehearsal")
    items = [RewardItem(suite.name, one.id, chosen(one.text)) for one in texts.values()]
    outcomes = rewarded(PlanAnswerer(spec, read_book(spec.prices)), exams, items)
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
    near = rewarded(PlanAnswerer(spec, book), exams, items)
    with listening(service_of(exams, answer=PlanAnswerer(spec, book))) as url:
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
    rewarded(PlanAnswerer(spec_of(ada="scripted/echo"), BOOK), train(Noting()), items)
    assert sorted(texts) == [f"epoch {k}, time 1" for k in (1, 2, 3)]


def test_trainers_that_number_nothing_get_fresh_replies_too() -> None:
    seen: list[int] = []

    def noting(heard: Heard) -> str:
        seen.append(heard.epoch)
        return "42"

    script("echo", noting)
    answer = PlanAnswerer(spec_of(ada="scripted/echo"), BOOK)
    with listening(service_of(train(Toy()), answer=answer)) as url:
        for _ in range(3):
            assert post(f"{url}/rm", {"response": SOLVE, "label": "toy/train-0"}) == (200, 1.0)
    assert seen == [1, 2, 3]


# --- around it --------------------------------------------------------------------------------


def test_an_answerer_pickles_without_its_models() -> None:
    SCRIPTS["echo"] = lambda heard: "42"
    answer = PlanAnswerer(
        spec_of(ada="scripted/echo"), BOOK, PlanSettings(form=PlanFormat(max_steps=3))
    )
    assert one_of(answer).value == 1.0
    again = pickle.loads(pickle.dumps(answer))
    assert one_of(again).value == 1.0
    assert one_of(again, plan(*[(0, "Solve it.", [])] * 4)).status is Status.INVALID_ACTION


def test_a_policy_is_shown_what_a_prompted_conductor_is_shown() -> None:
    spec = read_pool("rehearsal")
    (question,) = train(Toy(), first=1)["toy"].questions.values()
    cards = [spec.worker(name).card for name in spec.names]
    (turn,) = plan_prompt(PlanFormat(), question.text, cards)
    assert shown_to_policy(spec)(question) == [{"role": "user", "content": turn.text}]
