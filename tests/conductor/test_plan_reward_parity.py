"""A plan is worth in training what an evaluation gives it: for every suite whose data is here.

A scripted conductor writes another plan in every epoch, scripted workers answer right and wrong,
and `conductor-prompted` sits the exam. The same plans then go through the reward.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import get_model

from podium.conductor.grpo_reward import PlanAnswerer
from podium.conductor.policy import conductor_prompted
from podium.harness.inspect_adapters import as_scorer, ask_differently, keep_files_private, sample
from podium.harness.records import PODIUM, Question
from podium.harness.rewards.outcome import PAPER, RewardItem, Status
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.suite import Suite, Varied, at_epoch
from podium.sandbox import IMAGE, Box
from podium.suites import SUITES
from tests.conductor.plans import BOOK, plan, spec_of
from tests.harness.rewards.small_suites import exam_of, loaded, made_up_rlpr, needs_image
from tests.harness.rewards.test_reward_parity import HOSTILE, right, wrong
from tests.providers.scripted import Heard, script
from tests.suites.livecodebench_rows import exam as livecodebench
from tests.suites.livecodebench_rows import row

PLANS = (
    plan((0, "Solve it.", [])),
    plan((0, "Solve it.", []), (1, "Check it.", ["all"])),
    plan((1, "Look at it.", []), (0, "Solve it.", [0])),
    plan((2, "Solve it.", [])),
    "I would ask model 0.",
)
"""Right, then wrong; wrong, then right; a reply that is hostile; no plan. One for every epoch."""

WORTH = (1.0, 0.5, 1.0, 0.5, 0.0)


def workers(suite: Suite[Any], questions: Sequence[Question]) -> dict[str, str]:
    """Register a worker that is right, one that is wrong and one that is hostile; return them."""
    forms = [
        at_epoch(suite, asked, epoch) for asked in questions for epoch in range(1, len(PLANS) + 1)
    ]
    by_text = {form.text: form for form in sorted(forms, key=lambda one: len(one.text))}

    def answering(reply: Callable[[Suite[Any], Question], str]) -> Callable[[Heard], str]:
        def answer(heard: Heard) -> str:
            said = heard.messages[0].text
            return reply(suite, next(by_text[text] for text in by_text if said.startswith(text)))

        return answer

    return {
        "gold": script("gold", answering(right)),
        "lead": script("lead", answering(wrong)),
        "mud": script("mud", lambda heard: HOSTILE),
    }


def evaluated(
    suite: Suite[Any], questions: Sequence[Question], box: Box | None, logs: Path
) -> dict[tuple[str, int], float | None]:
    """Let the conductor sit the exam; return what every (question, epoch) got."""
    names = {
        **workers(suite, questions),
        "conductor": script("conduct", lambda heard: PLANS[heard.epoch - 1]),
    }
    if not suite.publishable:
        keep_files_private()
    task = Task(
        dataset=MemoryDataset([sample(question) for question in questions]),
        setup=ask_differently(suite.at_epoch) if isinstance(suite, Varied) else None,
        solver=conductor_prompted(retries=0),
        scorer=as_scorer(suite, box),
        epochs=len(PLANS),
    )
    roles = {name: get_model(model, memoize=False) for name, model in names.items()}
    (log,) = inspect_eval(task, model="none", model_roles=roles, log_dir=str(logs), display="none")
    assert log.status == "success"
    found: dict[tuple[str, int], float | None] = {}
    for one in log.samples or []:
        value = float((one.scores or {})[PODIUM].value)  # pyright: ignore[reportArgumentType]
        found[str(one.id), one.epoch] = None if math.isnan(value) else value
    return found


def agree(suite: Suite[Any], questions: Sequence[Question], box: Box | None, logs: Path) -> None:
    """Compare the grades bit by bit, and the values that the paper's reward makes of them."""
    said = evaluated(suite, questions, box, logs)
    items = [RewardItem(suite.name, id, PLANS[epoch - 1], epoch) for id, epoch in said]
    answer = PlanAnswerer(spec_of(**workers(suite, questions)), BOOK)
    settings = RewardSettings(values=PAPER)
    reward = Reward({suite.name: exam_of(suite, questions)}, answer, settings, box)
    outcomes = asyncio.run(reward.score(items))
    assert [one.components["correct"] for one in outcomes] == list(said.values())
    assert [one.value for one in outcomes] == [WORTH[item.epoch - 1] for item in items]
    malformed = {item.epoch for item, one in zip(items, outcomes, strict=True) if one.work is None}
    assert malformed == {5}
    assert {one.status for one in outcomes} == {Status.SCORED, Status.INVALID_ACTION}
    shown = {one.work.plan for one in outcomes if one.work}
    assert (shown == {""}) == (not suite.publishable)


@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if not suite.needs_box])
def test_a_plan_for_a_text_is_worth_what_the_exam_gives_it(name: str, tmp_path: Path) -> None:
    agree(*loaded(name, 2), None, tmp_path)


def test_so_is_a_plan_in_the_columns_of_rlpr(tmp_path: Path) -> None:
    suite, questions = made_up_rlpr()
    agree(suite, questions[:2], None, tmp_path)


RUN = [name for name, suite in SUITES.items() if suite.needs_box and suite.image == IMAGE]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_plan_for_a_program_is_worth_what_the_exam_gives_it(
    name: str, subprocess_box: Box, tmp_path: Path
) -> None:
    suite, questions = loaded(name, 1)
    agree(suite, questions[:1], subprocess_box, tmp_path)


@pytest.mark.slow
def test_so_is_a_plan_for_a_program_of_livecodebench(subprocess_box: Box, tmp_path: Path) -> None:
    suite = livecodebench(tmp_path, row())
    agree(suite, suite.load()[:1], subprocess_box, tmp_path)


@pytest.mark.docker
def test_so_is_a_plan_for_a_program_in_a_container(docker_box: Box, tmp_path: Path) -> None:
    suite, questions = loaded("bigcodebench", 1)
    needs_image(suite, docker_box)
    agree(suite, questions[:1], docker_box, tmp_path)
