"""A reply is worth in training what it is worth in an evaluation, through every adapter.

For each suite whose data is here a real `eval` grades scripted replies, a kind of reply per epoch:
right, wrong, without an answer, hostile. The same replies then go through the reward and all its
adapters. Other suites join by standing in SUITES.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from podium.harness.inspect_adapters import as_scorer, ask_differently, keep_files_private, sample
from podium.harness.records import PODIUM, Grade, Question
from podium.harness.rewards.outcome import NoValue, RewardClient, RewardItem, RewardScorer
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import attacks
from podium.harness.rewards.trainers import (
    TrlReward,
    openrlhf_reward,
    verifiers_reward,
    verl_reward,
)
from podium.harness.suite import Suite, Varied, at_epoch
from podium.sandbox import IMAGE, Box
from podium.suites import SUITES
from podium.suites.data import fetch_rows
from tests.harness.rewards.service import post
from tests.harness.rewards.small_suites import (
    Graded,
    exam_of,
    loaded,
    made_up_rlpr,
    needs_image,
    same,
    served,
)
from tests.suites.checked_programs import fenced
from tests.suites.gold import gold_reply
from tests.suites.livecodebench_rows import DOUBLE, row
from tests.suites.livecodebench_rows import exam as livecodebench

HOSTILE = "\\boxed{" * 2000 + "}" * 1000 + "<think>Answer: \x00" + "9" * 20000


def right(suite: Suite[Any], question: Question) -> str:
    """Return a reply that the suite's grader should find right."""
    if suite.name in ("humaneval", "bigcodebench"):
        (one,) = (one for one in fetch_rows(suite.name) if one["task_id"] == question.id)
        return fenced(str(one.get("code_prompt", one["prompt"])) + str(one["canonical_solution"]))
    if suite.name == "mbpp":
        number = question.id.rpartition("-")[2]
        (one,) = (one for one in fetch_rows("mbpp") if str(one["task_id"]) == number)
        return fenced(str(one["code"]))
    if suite.name.startswith("livecodebench"):
        return DOUBLE
    return (
        gold_reply(question) if question.kind != "text" else rf"It is \boxed{{{question.target}}}."
    )


def wrong(suite: Suite[Any], question: Question) -> str:
    """Return a reply of the right form with a wrong answer."""
    if question.kind == "program":
        return fenced("print('no')")
    if question.kind == "choice":
        letters = "ABCD".replace(question.target or "", "")
        return f"Answer: {letters[0]}"
    return r"So it is \boxed{-987654321}."


KINDS: Mapping[str, Callable[[Suite[Any], Question], str]] = {
    "right": right,
    "wrong": wrong,
    "unparsed": lambda suite, question: "I would rather not say.",
    "hostile": lambda suite, question: HOSTILE,
    "attack": lambda suite, question: list(attacks(question).values())[-1],
}
"""The replies, one kind per epoch, so that a suite that varies is asked in all its forms."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply of the log and what the evaluation gave it."""

    item: RewardItem
    value: float | None
    kind: str


def sat(
    suite: Suite[Any], questions: Sequence[Question], box: Box | None, logs: Path
) -> list[Said]:
    """Evaluate: every question in as many epochs as there are kinds of replies."""
    kinds = list(KINDS.items())
    asked = {question.id: question for question in questions}

    def reply(id: str, epoch: int) -> str:
        return kinds[epoch - 1][1](suite, at_epoch(suite, asked[id], epoch))

    @solver
    def scripted() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            said = reply(str(state.sample_id), state.epoch)
            state.output = ModelOutput.from_content("scripted/none", said)
            return state

        return solve

    if not suite.publishable:
        keep_files_private()
    task = Task(
        dataset=MemoryDataset([sample(question) for question in questions]),
        setup=ask_differently(suite.at_epoch) if isinstance(suite, Varied) else None,
        solver=scripted(),
        scorer=as_scorer(suite, box),
        epochs=len(kinds),
    )
    (log,) = inspect_eval(task, model="mockllm/model", log_dir=str(logs), display="none")
    assert log.status == "success"
    found: list[Said] = []
    for one in log.samples or []:
        id, epoch = str(one.id), one.epoch
        value = float((one.scores or {})[PODIUM].value)  # pyright: ignore[reportArgumentType]
        item = RewardItem(suite.name, id, reply(id, epoch), epoch)
        found.append(Said(item, None if math.isnan(value) else value, kinds[epoch - 1][0]))
    return found


def by_adapter(
    reward: RewardScorer, url: str, said: Sequence[Said]
) -> dict[str, list[float | None]]:
    """Return what every adapter makes of the replies; None for what it says has no value.

    A label names no epoch, so what is asked by label is asked of the first epoch only; the others
    are left as the evaluation has them.
    """
    asked = [one.item for one in said]
    texts = [item.completion for item in asked]
    columns: dict[str, Any] = {
        name: [getattr(item, name) for item in asked] for name in ("suite", "question", "epoch")
    }
    client = RewardClient(url)
    return {
        "core": [one.value for one in asyncio.run(reward.score(asked))],
        "http": [one.value for one in asyncio.run(client.score(asked))],
        "trl": asyncio.run(TrlReward(reward)(texts, texts, **columns)),
        "verl": [verl(reward, item) for item in asked],
        "verifiers": [verifiers(reward, one) for one in said],
        "openrlhf": [openrlhf(reward, one) for one in said],
        **{path: [by_label(url, path, one) for one in said] for path in BODIES},
    }


BODIES: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "/get_reward": lambda label, text: {
        "query": [f"Q{text}"],
        "prompts": ["Q"],
        "labels": [label],
    },
    "/rm": lambda label, text: {"response": text, "label": label},
    "/verify": lambda label, text: {
        "responses_create_params": {},
        "response": {"output": [{"content": [{"type": "output_text", "text": text}]}]},
        "label": label,
    },
}


def by_label(url: str, path: str, one: Said) -> float | None:
    if one.item.epoch > 1 and isinstance(SUITES.get(one.item.suite), Varied):
        return one.value
    label = f"{one.item.suite}/{one.item.question}"
    status, body = post(f"{url}{path}", BODIES[path](label, one.item.completion))
    if status == 503:
        return None
    assert status == 200, body
    if path == "/rm":
        return body
    if path == "/verify":
        return None if body["mask_sample"] else body["reward"]
    return body["rewards"][0]


def verl(reward: RewardScorer, item: RewardItem) -> float | None:
    extra = {"question": item.question, "epoch": item.epoch}
    compute = verl_reward(reward, on_unscored="zero")
    said: Any = asyncio.run(compute(item.suite, item.completion, "", extra))  # pyright: ignore[reportArgumentType]
    assert said["score"] == 0.0 or not said["unscored"]
    return None if said["unscored"] else said["score"]


def verifiers(reward: RewardScorer, one: Said) -> float | None:
    task = SimpleNamespace(id=f"{one.item.suite}/{one.item.question}")
    trace = SimpleNamespace(last_reply=one.item.completion)
    if one.item.epoch > 1 and isinstance(SUITES.get(one.item.suite), Varied):
        return one.value
    try:
        return asyncio.run(verifiers_reward(reward)(task, trace))  # pyright: ignore[reportArgumentType]
    except NoValue:
        return None


def openrlhf(reward: RewardScorer, one: Said) -> float | None:
    label = f"{one.item.suite}/{one.item.question}"
    if one.item.epoch > 1 and isinstance(SUITES.get(one.item.suite), Varied):
        return one.value
    ask = openrlhf_reward(reward, on_unscored="raise")
    try:
        return ask([f"Q{one.item.completion}"], ["Q"], [label])["rewards"]
    except NoValue:
        return None


def agree(
    suite: Suite[Any], questions: Sequence[Question], box: Box | None, logs: Path
) -> list[Said]:
    """Evaluate, reward through everything, and compare; return what the evaluation said."""
    said = sat(suite, questions, box, logs)
    exam = exam_of(suite, questions)
    asked = {suite.name: exam}
    reward = Reward(asked, settings=RewardSettings(max_masked=1.0), box=box)
    with served(reward, asked) as url:
        for name, values in by_adapter(reward, url, said).items():
            assert values == [one.value for one in said], f"{suite.name} by {name}"
    return said


def by_kind(said: Sequence[Said]) -> dict[str, set[float | None]]:
    return {kind: {one.value for one in said if one.kind == kind} for kind in KINDS}


GRADED = {"right": {1.0}, "wrong": {0.0}, "unparsed": {0.0}, "hostile": {0.0}, "attack": {0.0}}


@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if not suite.needs_box])
def test_a_text_is_worth_the_same_everywhere(name: str, tmp_path: Path) -> None:
    suite, questions = loaded(name, 2)
    assert by_kind(agree(suite, questions, None, tmp_path)) == GRADED


def test_so_is_a_text_in_the_columns_of_rlpr(tmp_path: Path) -> None:
    assert by_kind(agree(*made_up_rlpr(), None, tmp_path)) == GRADED


RUN = [name for name, suite in SUITES.items() if suite.needs_box and suite.image == IMAGE]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_program_is_worth_the_same_everywhere(
    name: str, subprocess_box: Box, tmp_path: Path
) -> None:
    suite, questions = loaded(name, 2)
    assert by_kind(agree(suite, questions, subprocess_box, tmp_path)) == GRADED


def test_so_is_a_program_of_livecodebench(subprocess_box: Box, tmp_path: Path) -> None:
    suite = livecodebench(tmp_path, row())
    assert by_kind(agree(suite, suite.load(), subprocess_box, tmp_path)) == GRADED


@pytest.mark.docker
@pytest.mark.parametrize("name", ["practice-code", "bigcodebench"])
def test_a_program_in_a_container_is_worth_the_same(
    name: str, docker_box: Box, tmp_path: Path
) -> None:
    suite, questions = loaded(name, 1)
    needs_image(suite, docker_box)
    assert by_kind(agree(suite, questions, docker_box, tmp_path)) == GRADED


def test_what_the_evaluation_leaves_unscored_has_no_value_anywhere(tmp_path: Path) -> None:
    def flaky(question: Question, reply: str) -> Grade:
        if reply == wrong(suite, question):
            raise OSError("the disk is full")
        return same(question, reply.removeprefix(r"It is \boxed{").removesuffix("}."))

    suite = Graded(flaky)
    assert by_kind(agree(suite, suite.load()[:2], None, tmp_path))["wrong"] == {None}
