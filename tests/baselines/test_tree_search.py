"""AB-MCTS-A: what it asks, by what it is guided, and that it draws from no state but its own."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import anyio
import numpy as np
import pytest

from podium.baselines import SYSTEMS
from podium.baselines.ab_mcts import ab_mcts_system, agreement
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.records import Answer, Question
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.estimate import estimate
from podium.harness.run.forecast import counted_all
from podium.harness.run.run_request import RequestReader
from podium.harness.system import System
from tests.baselines.shown_suite import CODE, by_text
from tests.providers.scripted import Heard, ScriptedPool, scripted_pool

pytest.importorskip("treequest", reason="the extra `routers` is not installed")

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")


def said(heard: Heard) -> str:
    """Return one of three answers, by who is asked and what."""
    draw = Random(f"{heard.worker}/{heard.turns}/{heard.epoch}/{heard.occurrence}").randrange(3)
    return f"{heard.worker} finds\nANSWER: {4 + draw}"


def crew() -> ScriptedPool:
    return scripted_pool(ada=said, bob=said, cleo=said)


def searched(
    system: System, rig: ScriptedPool, question: Question = SUM, epoch: int = 1
) -> tuple[Answer, list[dict[str, Any]]]:
    """Return the answer to a question and the steps that led to it."""
    pool = rig.again(epoch)
    pool.public_tests = rig.pool.public_tests
    answer = anyio.run(system, question, pool)
    return answer, json.loads(answer.plan or "")


def writers(shares: Mapping[str, float]) -> ScriptedPool:
    """Return two who write programs, named after who was asked what and how often."""

    def write(heard: Heard) -> str:
        return f"{heard.worker} {len(heard.messages)} {heard.occurrence}"

    rig = scripted_pool(ada=write, bob=write)
    rig.pool.public_tests, _ = by_text(shares)
    return rig


def test_it_makes_ten_calls_unless_told_otherwise() -> None:
    rig = crew()
    assert len(searched(ab_mcts_system(), rig)[1]) == len(rig.heard) == 10
    assert len(searched(ab_mcts_system(calls=3), crew())[1]) == 3
    assert len(searched(ab_mcts_system(calls=7, batch=3), crew())[1]) == 7


def test_wider_asks_afresh_and_deeper_shows_one_reply_and_what_is_known_of_it() -> None:
    rig = crew()
    answer, steps = searched(ab_mcts_system(calls=20), rig)
    fresh = [step for step in steps if not step["reads"]]
    deeper = [step for step in steps if step["reads"]]
    assert fresh
    assert deeper
    assert all(step["subtask"] == "" for step in fresh)
    assert all(len(step["reads"]) == 1 for step in deeper)
    assert all("other answers so far agree" in step["subtask"] for step in deeper)
    assert answer.depth > 1
    asked = [heard for heard in rig.heard if len(heard.messages) == 3]
    assert len(asked) == len(deeper)
    assert asked[0].turns[0] == ("user", SUM.text)


def test_the_same_seed_repeats_the_search_and_others_do_not() -> None:
    def plan(seed: int = 0, epoch: int = 1, question: Question = SUM) -> Any:
        return searched(ab_mcts_system(seed=seed), crew(), question, epoch)[1]

    assert plan() == plan()
    other = Question(id="sum-2", text=SUM.text, kind="integer")
    assert len({str(found) for found in (plan(), plan(1), plan(epoch=2), plan(0, 1, other))}) == 4


def test_nobody_elses_random_numbers_are_changed_nor_used() -> None:
    first = searched(ab_mcts_system(), crew())[1]
    np.random.seed(17)
    before: Any = np.random.get_state()
    again = searched(ab_mcts_system(), crew())[1]
    after: Any = np.random.get_state()
    assert first == again
    assert np.array_equal(before[1], after[1])
    assert before[2:] == after[2:]


def test_two_searches_at_once_do_not_disturb_each_other() -> None:
    alone = searched(ab_mcts_system(), crew())[1]
    found: list[Any] = []

    async def one() -> None:
        answer = await ab_mcts_system()(SUM, crew().pool)
        found.append(json.loads(answer.plan or ""))

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

    anyio.run(both)
    assert found == [alone, alone]


def test_public_tests_guide_it_and_the_best_reply_is_the_answer() -> None:
    rig = writers({"ada 1 0": 0.5, "bob 1 0": 0.25, "ada 3 0": 1.0})
    answer, steps = searched(ab_mcts_system(calls=12), rig, CODE)
    texts = [reply.text for reply in answer.replies]
    worth = {"ada 3 0": 1.0, "ada 1 0": 0.5, "bob 1 0": 0.25}
    assert answer.text == max(texts, key=lambda text: worth.get(text, 0.0))
    assert answer.noted["trials"] == 12
    assert answer.noted["step"] == texts.index(answer.text) + 1
    deeper = [step for step in steps if step["reads"]]
    assert all("was run" in step["subtask"] for step in deeper)


def test_a_worker_that_passes_more_tests_is_asked_more_often() -> None:
    rig = scripted_pool(dull="no", keen="yes")
    rig.pool.public_tests, _ = by_text({"yes": 1.0})
    asked = [step["worker"] for step in searched(ab_mcts_system(calls=40), rig, CODE)[1]]
    assert asked.count("keen") > 2 * asked.count("dull")


def test_agreement_is_with_the_other_answers_and_none_is_worth_nothing() -> None:
    answers = ["4", "4", None, "5"]
    assert [agreement(answers, at).value for at in range(4)] == [1 / 3, 1 / 3, 0.0, 0.0]
    assert agreement(["4"], 0).value == 0.5


def test_without_tests_the_answer_that_most_replies_share_wins() -> None:
    rig = scripted_pool(ada="ANSWER: 4", bob=lambda heard: f"ANSWER: {9 + heard.occurrence}")
    answer, _ = searched(ab_mcts_system(calls=12), rig)
    assert answer.text == "ANSWER: 4"
    assert "trials" not in answer.noted


def test_programs_without_a_sandbox_are_scored_by_agreement() -> None:
    rig = scripted_pool(ada="```python\nprint(1)\n```", bob="I cannot.")
    assert searched(ab_mcts_system(calls=6), rig, CODE)[0].text.startswith("```python")


def test_replies_of_a_batch_are_asked_side_by_side() -> None:
    answer, steps = searched(ab_mcts_system(calls=4, batch=4), crew())
    assert [step["reads"] for step in steps] == [[], [], [], []]
    assert answer.depth == 1


def test_a_dry_run_counts_its_calls_and_its_manifest_says_as_many() -> None:
    manifest = SYSTEMS["ab-mcts"]
    assert manifest.calls.expected
    assert manifest.calls.span(3, {}) == (10, 10)
    assert manifest.calls.span(3, {"calls": 4}) == (4, 4)
    assert len(counted_all(ab_mcts_system(), [(SUM, 1)], ("ada", "bob"))[0]) == 10
    assert len(counted_all(ab_mcts_system(), [(CODE, 1)], ("ada", "bob"))[0]) == 10


def test_senseless_numbers_are_refused() -> None:
    with pytest.raises(UserError, match="calls"):
        ab_mcts_system(calls=0)
    with pytest.raises(UserError, match="batch"):
        ab_mcts_system(batch=0)


def test_a_dry_run_takes_every_call_for_the_dearest_workers() -> None:
    book, spec = read_book("rehearsal"), read_pool("rehearsal")
    request = RunRequest(
        ("practice-integer",), ("ab-mcts@3",), "rehearsal", Path("nowhere"), limit=2
    )
    (line,) = estimate(RequestReader(request, whole_catalogue(), controls()).read()).lines
    sage = book.prices["rehearsal/sage"]
    limit = spec.worker("sage").config.max_tokens
    assert limit
    replies = 2 * 3 * limit * sage.output / 10**6
    assert line.most.calls == 6
    assert line.most.usd is not None
    assert replies < line.most.usd < 2 * replies
