"""The adapters by themselves: what they ask, what they say, and what they refuse.

The real libraries call them in test_trainers.py; here is what those runs do not show.
"""

import asyncio
import inspect
import pickle
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import BadBody, NoValue, RewardItem, RewardOutcome, Status
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.trainers import (
    TrlReward,
    completion_text,
    compute_score,
    openrlhf_reward,
    replicated,
    trl_rows,
    verifiers_reward,
    verl_reward,
)
from tests.harness.rewards.small_suites import Graded, exam_of, exams, same


def flaky(question: Question, reply: str) -> Grade:
    if reply == "broken":
        raise OSError("the disk is full")
    return same(question, reply)


def made() -> Reward:
    """Make the reward of these tests: a function that can be handed to another process."""
    return Reward(exams(Graded(flaky)), settings=RewardSettings(max_masked=1.0))


class Heard:
    """A reward that keeps what it was asked, and in which thread."""

    def __init__(self) -> None:
        self.items: list[RewardItem] = []
        self.threads: set[str] = set()

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        self.items += items
        self.threads.add(threading.current_thread().name)
        return [RewardOutcome(1.0, Status.SCORED) for _ in items]


COLUMNS = {"suite": ["graded"] * 3, "question": ["q1", "q2", "q3"]}
SAID = ["1", "7", "broken"]


# --- TRL --------------------------------------------------------------------------------------


def trl(reward: TrlReward, said: Sequence[Any], **columns: Any) -> list[float | None]:
    return asyncio.run(reward([""] * len(said), said, [[1]] * len(said), **columns))


def test_trl_gets_values_and_none_for_texts_and_for_chats() -> None:
    chats = [[{"role": "assistant", "content": text}] for text in SAID]
    for said in (SAID, chats):
        assert trl(TrlReward(made), said, **COLUMNS) == [1.0, 0.0, None]


def test_trl_pickles_the_function_and_makes_the_reward_where_it_is_used() -> None:
    reward = TrlReward(made, name="right")
    assert trl(reward, SAID, **COLUMNS) == [1.0, 0.0, None]
    again = pickle.loads(pickle.dumps(reward))
    assert again.__name__ == "right"
    assert trl(again, SAID, **COLUMNS) == [1.0, 0.0, None]


def test_trl_sees_an_async_callable() -> None:
    for reward in (TrlReward(made), pickle.loads(pickle.dumps(TrlReward(made)))):
        assert inspect.iscoroutinefunction(reward.__call__)


def test_values_that_nobody_awaits_are_a_list() -> None:
    values = TrlReward(made)([""] * 3, SAID, **COLUMNS)
    assert "await them" in repr(values)
    assert (list(values), len(values), values[0]) == ([1.0, 0.0, None], 3, 1.0)


def test_values_are_a_list_beside_a_running_loop_and_are_awaited_in_a_task() -> None:
    async def values() -> list[Any]:
        reward = TrlReward(made)
        now = list(reward([""] * 3, SAID, **COLUMNS))
        later = asyncio.create_task(reward([""] * 3, SAID, **COLUMNS))
        return [now, await later, *await asyncio.gather(reward([""] * 3, SAID, **COLUMNS))]

    assert asyncio.run(values()) == [[1.0, 0.0, None]] * 3


def test_values_that_cannot_be_scored_say_why_without_an_await() -> None:
    with pytest.raises(UserError, match="no column 'question'"):
        list(TrlReward(made)([""] * 3, SAID, suite=["graded"] * 3))


def test_trl_logs_the_same_metrics_whatever_happened() -> None:
    logged: list[dict[str, float]] = []
    extra: dict[str, list[Any]] = {}
    for said in (SAID, ["1", "2", "3"]):
        one: dict[str, float] = {}
        logs: dict[str, Any] = {"log_metric": one.__setitem__, "log_extra": extra.__setitem__}
        trl(TrlReward(made), said, trainer_state=None, environments=None, **logs, **COLUMNS)
        logged.append(one)
    assert list(logged[0]) == list(logged[1])
    assert {f"podium/{status.value}" for status in Status} < set(logged[0])
    assert logged[0]["podium/masked"] == pytest.approx(1 / 3)
    assert logged[1]["podium/masked"] == 0
    assert extra["podium_status"] == ["scored"] * 3


def test_trl_without_the_columns_is_told_how_to_make_them() -> None:
    with pytest.raises(UserError, match=r"no column 'question'.*rows\(\)"):
        trl(TrlReward(made), SAID, suite=["graded"] * 3)


def test_trl_asks_for_the_epoch_of_a_row_and_numbers_equal_completions() -> None:
    heard = Heard()
    columns = {"suite": ["graded"] * 3, "question": ["q1"] * 3, "epoch": [2, 2, 3]}
    trl(TrlReward(heard), ["a", "a", "a"], **columns)
    assert [(item.epoch, item.replicate) for item in heard.items] == [(2, 0), (2, 1), (3, 0)]


def test_the_rows_of_a_data_set_hold_no_target() -> None:
    exam = exam_of(Graded())
    for chat in (True, False):
        made_rows = trl_rows(exam, chat=chat)
        assert len(made_rows) == 10
        assert set(made_rows[0]) == {"prompt", "suite", "question"}
    secret = Question("q", "Say it.", "text", "the-target")
    assert "the-target" not in str(trl_rows(exam_of(Graded(), [secret])))


def test_only_what_the_assistant_says_last_is_the_completion() -> None:
    turns = [
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "and?"},
        {"role": "assistant", "content": [{"type": "text", "text": "se"}, {"text": "cond"}]},
        {"role": "tool", "content": "1"},
    ]
    assert completion_text(turns) == "second"
    assert completion_text([]) == ""
    assert completion_text([{"role": "assistant", "content": None}]) == ""
    assert completion_text([{"role": "assistant", "tool_calls": [{"id": "1"}]}]) == ""


def test_equal_items_are_numbered_in_their_order() -> None:
    one, two = RewardItem("s", "q", "a"), RewardItem("s", "q", "b")
    assert [item.replicate for item in replicated([one, two, one, one])] == [0, 0, 1, 2]


# --- verl -------------------------------------------------------------------------------------


def verl(reward: Any, said: str, extra: dict[str, Any] | None) -> dict[str, Any]:
    """Call as verl's naive reward manager does, keywords and all."""
    return asyncio.run(
        reward(data_source="graded", solution_str=said, ground_truth="", extra_info=extra)
    )


def test_verl_gets_the_same_keys_always() -> None:
    reward = verl_reward(made, on_unscored="zero")
    found = [verl(reward, said, {"question": "q1", "num_turns": None}) for said in SAID]
    assert [list(one) for one in found] == [["score", "acc", "unscored", "status", "usd"]] * 3
    assert [one["score"] for one in found] == [1.0, 0.0, 0.0]
    assert [one["unscored"] for one in found] == [0.0, 0.0, 1.0]


def test_verl_raises_what_has_no_value_where_it_was_told_to() -> None:
    with pytest.raises(NoValue, match="the disk is full"):
        verl(verl_reward(made, on_unscored="raise"), "broken", {"question": "q1"})


@pytest.mark.parametrize("unsaid", [None, "", "skip"])
def test_nobody_guesses_what_a_missing_value_is_to_be(unsaid: Any) -> None:
    with pytest.raises(
        UserError, match="choose whether an item without a value fails or counts as 0"
    ):
        verl_reward(made, on_unscored=unsaid)
    with pytest.raises(UserError, match="fails or counts as 0"):
        openrlhf_reward(made, on_unscored=unsaid)
    with pytest.raises(UserError, match="fails or counts as 0"):
        asyncio.run(compute_score("graded", "1", url="http://127.0.0.1:1", on_unscored=unsaid))


def test_verl_takes_only_a_true_async_function_for_one() -> None:
    assert inspect.iscoroutinefunction(verl_reward(made, on_unscored="raise"))
    assert inspect.iscoroutinefunction(compute_score)


def test_verl_without_a_question_is_told_where_to_put_it() -> None:
    for extra in (None, {}):
        with pytest.raises(UserError, match=r"extra_info\.question"):
            verl(verl_reward(made, on_unscored="zero"), "1", extra)


# --- verifiers --------------------------------------------------------------------------------


def test_verifiers_gets_a_value_or_an_exception() -> None:
    podium = verifiers_reward(made)

    def reward(said: str) -> float:
        task, trace = SimpleNamespace(id="graded/q1"), SimpleNamespace(last_reply=said)
        return asyncio.run(podium(task, trace))  # pyright: ignore[reportArgumentType]

    assert (reward("1"), reward("2")) == (1.0, 0.0)
    with pytest.raises(NoValue, match="scorer_error"):
        reward("broken")


def test_a_task_without_a_label_is_refused() -> None:
    task, trace = SimpleNamespace(id=None), SimpleNamespace(last_reply="1")
    with pytest.raises(BadBody, match="A label must be SUITE/QUESTION"):
        asyncio.run(verifiers_reward(made)(task, trace))  # pyright: ignore[reportArgumentType]


# --- OpenRLHF ---------------------------------------------------------------------------------


def test_openrlhf_gets_numbers_for_one_query() -> None:
    reward_func = openrlhf_reward(made, on_unscored="zero")
    said = reward_func(["<s>Say 1.1</s>"], ["<s>Say 1."], ["graded/q1"])
    assert said == {"rewards": 1.0, "scores": 1.0, "extra_logs": {"unscored": 0.0}}
    unscored = reward_func(["Say 1.broken<|im_end|>"], ["Say 1."], ["graded/q1"])
    assert unscored == {"rewards": 0.0, "scores": 0.0, "extra_logs": {"unscored": 1.0}}


def test_openrlhf_gets_lists_for_several() -> None:
    said = openrlhf_reward(made, on_unscored="raise")(
        ["p1", "p7"], ["p", "p"], ["graded/q1", "graded/q1"]
    )
    assert (said["rewards"], said["extra_logs"]) == ([1.0, 0.0], {"unscored": [0.0, 0.0]})


def test_openrlhf_is_never_rewarded_for_its_prompt() -> None:
    reward_func = openrlhf_reward(made, on_unscored="raise")
    with pytest.raises(BadBody, match="does not begin with its prompt"):
        reward_func(["something else 1"], ["Say 1."], ["graded/q1"])


def test_threads_of_openrlhf_share_one_reward_and_one_loop() -> None:
    heard: list[Heard] = []

    def make() -> Heard:
        heard.append(Heard())
        return heard[-1]

    reward_func = openrlhf_reward(make, on_unscored="raise")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: reward_func([f"p{n}"], ["p"], ["graded/q1"]), range(32)))
    (one,) = heard
    assert len(one.items) == 32
    assert one.threads == {"podium rewards"}
