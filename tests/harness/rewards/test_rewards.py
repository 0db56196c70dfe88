"""The reward core: outcomes in order, each with its status, whatever goes wrong."""

import math
import pickle
from decimal import Decimal
from threading import Event
from typing import Any

import anyio
import pytest

from podium.harness.errors import SpendLimit, TooManyMasked, UserError, WorkerError
from podium.harness.records import Grade, Question, Usage
from podium.harness.rewards.outcome import PAPER, RewardItem, Rollout, Status
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.sandbox import SandboxError
from podium.suites.livecodebench import LIVECODEBENCH
from tests.harness.rewards.small_suites import Graded, Ran, exam_of, exams, items, score, values


def statuses(reward: Reward, asked: list[RewardItem]) -> list[Status]:
    return [outcome.status for outcome in score(reward, asked)]


def test_outcomes_come_in_the_order_of_the_items() -> None:
    asked = items(*((f"q{n % 10}", str(n % 7)) for n in range(1000)))
    expected = [float(n % 10 == n % 7) for n in range(1000)]
    assert values(Reward(exams(Graded())), asked) == expected


def test_a_reply_without_an_answer_is_a_parsed_nothing_and_worth_0() -> None:
    (outcome,) = score(Reward(exams(Graded())), items(("q1", "?")))
    assert (outcome.value, dict(outcome.components)) == (0.0, {"correct": 0.0, "parsed": 0.0})
    assert (outcome.usage, outcome.usd, outcome.calls) == (Usage(), Decimal(0), 0)


def test_an_unknown_suite_question_or_epoch_is_refused_before_anything_is_graded() -> None:
    suite = Graded()
    reward = Reward(exams(suite))
    for wrong in (
        RewardItem("nothing", "q1", "1"),
        RewardItem("graded", "q99", "1"),
        RewardItem("graded", "q1", "1", epoch=0),
    ):
        with pytest.raises(UserError, match=r"nothing|q99|epoch 0"):
            score(reward, [*items(("q1", "1")), wrong])
    assert suite.calls == []
    assert reward.counts.items == 0


def test_what_the_grader_cannot_do_has_no_value_and_says_why() -> None:
    def down(question: Question, reply: str) -> Grade:
        raise SandboxError("the daemon is down")

    (outcome,) = score(Reward(exams(Graded(down))), items(("q1", "1")))
    assert (outcome.value, outcome.status) == (None, Status.SCORER_ERROR)
    assert dict(outcome.components) == {"correct": None, "parsed": None}
    assert "the daemon is down" in outcome.reason


def test_an_error_message_of_an_unpublishable_suite_is_not_repeated() -> None:
    def leak(question: Question, reply: str) -> Grade:
        raise ValueError(f"cannot grade {question.text}")

    (outcome,) = score(Reward(exams(Graded(leak, publishable=False))), items(("q1", "1")))
    assert outcome.reason == "q1 could not be graded (ValueError)"


def test_a_grade_that_is_none_has_no_value() -> None:
    for said in (math.nan, 2.5, -1.0, None):
        grade: Any = None if said is None else Grade(said, "x")
        reward = Reward(exams(Graded(lambda question, reply, grade=grade: grade)))
        (outcome,) = score(reward, items(("q1", "1")))
        assert (outcome.value, outcome.status) == (None, Status.SCORER_ERROR)


@pytest.mark.parametrize("status", [Status.WORKER_ERROR, Status.INVALID_ACTION])
def test_why_there_is_no_answer_is_not_repeated_of_an_unpublishable_suite(status: Status) -> None:
    async def leak(item: RewardItem, question: Question) -> Rollout:
        if status is Status.WORKER_ERROR:
            raise WorkerError(f"refused: {question.text}")
        return Rollout(None, status, reason=f"no workflow: {question.text}")

    (outcome,) = score(Reward(exams(Graded(publishable=False)), leak), items(("q1", "1")))
    assert outcome.status is status
    assert "Say 1." not in outcome.reason


def test_the_answerer_sees_no_target_and_its_text_is_graded() -> None:
    seen: list[Question] = []

    async def answer(item: RewardItem, question: Question) -> Rollout:
        seen.append(question)
        return Rollout(item.completion[::-1], usage=Usage(3, 4), usd=Decimal("0.25"), calls=2)

    reward = Reward({"graded": exam_of(Graded(lambda q, r: Grade(float(r == "ba"), r)))}, answer)
    (outcome,) = score(reward, items(("q1", "ab")))
    assert (outcome.value, outcome.usd, outcome.calls) == (1.0, Decimal("0.25"), 2)
    assert outcome.usage == Usage(3, 4)
    assert [question.target for question in seen] == [None]
    assert reward.counts.usd == Decimal("0.25")


def test_equal_completions_are_carried_out_anew_and_graded_once() -> None:
    carried: list[int] = []

    async def answer(item: RewardItem, question: Question) -> Rollout:
        carried.append(item.replicate)
        return Rollout(item.completion)

    suite = Graded()
    asked = [RewardItem("graded", "q1", "1", replicate=k) for k in range(3)]
    outcomes = score(Reward(exams(suite), answer), asked)
    assert sorted(carried) == [0, 1, 2]
    assert suite.calls == ["q1 1"]
    assert sorted(outcome.shared for outcome in outcomes) == [False, True, True]


def test_whose_failure_it_was_decides_whether_there_is_a_value() -> None:
    async def answer(item: RewardItem, question: Question) -> Rollout:
        if item.completion == "down":
            raise WorkerError("sage gave no reply")
        if item.completion == "money":
            raise SpendLimit("the limit is reached")
        if item.completion == "bug":
            raise KeyError("oops")
        if item.completion in ("invalid_action", "policy_fault"):
            return Rollout(None, Status(item.completion), reason="no workflow")
        return Rollout(item.completion)

    said = ("1", "2", "invalid_action", "policy_fault", "down", "money", "bug")
    settings = RewardSettings(max_masked=1.0, values=PAPER)
    outcomes = score(Reward(exams(Graded()), answer, settings), items(*(("q1", x) for x in said)))
    assert [(outcome.status.value, outcome.value) for outcome in outcomes] == [
        ("scored", 1.0),
        ("scored", 0.5),
        ("invalid_action", 0.0),
        ("policy_fault", 0.0),
        ("worker_error", None),
        ("budget", None),
        ("worker_error", None),
    ]
    assert outcomes[4].reason == "sage gave no reply"


def test_an_answerer_is_cancelled_at_its_deadline() -> None:
    ended: list[str] = []

    async def answer(item: RewardItem, question: Question) -> Rollout:
        try:
            await (anyio.sleep_forever() if item.completion == "slow" else anyio.sleep(0))
        finally:
            ended.append(item.completion)
        return Rollout(item.completion)

    reward = Reward(exams(Graded()), answer, RewardSettings(timeout_s=2.0, max_masked=1.0))
    assert statuses(reward, items(("q1", "slow"), ("q1", "1"))) == [Status.TIMEOUT, Status.SCORED]
    assert sorted(ended) == ["1", "slow"]


def test_no_more_items_are_worked_on_at_once_than_asked_for() -> None:
    at_once, most = 0, 0

    async def answer(item: RewardItem, question: Question) -> Rollout:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.01)
        at_once -= 1
        return Rollout(item.completion)

    reward = Reward(exams(Graded()), answer, RewardSettings(most=3))
    score(reward, items(*((f"q{n % 10}", str(n)) for n in range(20))))
    assert most == 3


def test_once_the_money_is_spent_no_other_item_is_begun() -> None:
    begun: list[str] = []

    async def answer(item: RewardItem, question: Question) -> Rollout:
        begun.append(item.question)
        return Rollout(item.completion, usd=Decimal("0.4"))

    settings = RewardSettings(most=1, max_usd=Decimal("1.0"), max_masked=1.0)
    reward = Reward(exams(Graded()), answer, settings)
    found = statuses(reward, items(*((f"q{n}", "1") for n in range(5))))
    assert found == [Status.SCORED] * 3 + [Status.BUDGET] * 2
    assert begun == ["q0", "q1", "q2"]
    assert reward.counts.usd == Decimal("1.2")


def test_too_large_a_share_without_a_value_ends_the_work_at_once() -> None:
    begun: list[str] = []

    async def answer(item: RewardItem, question: Question) -> Rollout:
        begun.append(item.completion)
        raise WorkerError("down")

    reward = Reward(exams(Graded()), answer, RewardSettings(most=1))
    with pytest.raises(TooManyMasked, match=r"32 of the latest 32 rewards .* worker_error: down"):
        score(reward, items(*(("q1", str(n)) for n in range(500))))
    assert len(begun) <= 33


def test_a_share_at_the_limit_is_borne_and_few_outcomes_mean_nothing() -> None:
    def flaky(question: Question, reply: str) -> Grade:
        if int(reply) % 10 < 3:
            raise OSError("flaky")
        return Grade(1.0, reply)

    reward = Reward(exams(Graded(flaky)), settings=RewardSettings(most=1))
    found = values(reward, items(*(("q1", str(n)) for n in range(3, 103))))
    assert found.count(None) == 30
    few = Reward(exams(Graded(flaky)))
    assert values(few, items(*(("q1", str(n * 10)) for n in range(31)))) == [None] * 31


def test_work_that_was_cut_short_is_refused_though_others_went_well_meanwhile() -> None:
    async def at_once() -> None:
        go = anyio.Event()

        async def answer(item: RewardItem, question: Question) -> Rollout:
            if item.completion == "slow":
                await anyio.sleep_forever()
            if item.completion != "known":
                await go.wait()
            if item.completion == "bad":
                raise WorkerError("down")
            return Rollout("1")

        settings = RewardSettings(most=64, masked_after=4)
        reward = Reward(exams(Graded()), answer, settings)
        await reward.score(items(("q1", "known")))
        said = [*["bad"] * 4, *["good"] * 30, "slow"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_later, go)
            with pytest.raises(TooManyMasked, match="3 of the latest 4"):
                await reward.score(items(*(("q1", one) for one in said)))

    anyio.run(at_once)


async def _later(go: anyio.Event) -> None:
    await anyio.sleep(0.05)
    go.set()


def test_an_outage_late_in_a_long_run_is_noticed() -> None:
    down = Event()

    def late(question: Question, reply: str) -> Grade:
        if down.is_set():
            raise OSError("down")
        return Grade(1.0, reply)

    reward = Reward(exams(Graded(late)))
    assert None not in values(reward, items(*(("q1", str(n)) for n in range(5000))))
    down.set()
    with pytest.raises(TooManyMasked):
        score(reward, items(*(("q2", str(n)) for n in range(200))))


def test_counts_have_every_status_from_the_start() -> None:
    counts = Reward(exams(Graded())).counts
    assert list(counts.by_status) == list(Status)
    assert (counts.items, counts.masked, counts.usd) == (0, 0, Decimal(0))


def test_a_reward_refuses_settings_that_mean_nothing_and_a_missing_box() -> None:
    for wrong in ({"most": 0}, {"max_masked": 1.5}, {"timeout_s": 0.0}, {"timeout_s": math.nan}):
        with pytest.raises(UserError):
            RewardSettings(**wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="open one with `open_box`"):
        Reward(exams(Ran()))


def test_a_reward_is_not_pickled_and_says_what_to_hand_over() -> None:
    with pytest.raises(TypeError, match="a function that makes one"):
        pickle.dumps(Reward(exams(Graded())))


def test_livecodebench_rewards_by_the_real_verdict_only() -> None:
    assert LIVECODEBENCH.official
    assert not LIVECODEBENCH.for_reward().official


def test_an_epoch_asks_the_question_in_its_own_form() -> None:
    class Turning(Graded):
        epochs = 4

        def at_epoch(self, question: Question, epoch: int) -> Question:
            return Question(question.id, question.text, "text", f"{question.target}@{epoch}")

    asked = [RewardItem("graded", "q1", "1@3", epoch=epoch) for epoch in (1, 2, 3)]
    assert values(Reward(exams(Turning())), asked) == [0.0, 0.0, 1.0]
