"""Rewards for verifiers: a reward of its v1 tasks (verifiers 0.4.0, v1/task.py, `Task.score`).

    [env.taskset.task.rewards]
    podium = { fn = "my_rewards:podium" }     # podium = verifiers_reward(make)

or a method of your task, `@vf.reward` over `await podium(self.data, trace)`. A task's `id` is the
label `suite/question`. What has no value is raised: verifiers records a TaskError on the trace,
which is then not ok, and prime-rl drops it. Its older Rubric is not in that release any more.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from harness.rewards.labels import item_of
from harness.rewards.trainer import Made, Source, value_of

TaskReward = Callable[[Any, Any], Awaitable[float]]


def verifiers_reward(scores: Source) -> TaskReward:
    """Return a reward of (task data, trace): the value of the last reply, or NoValue raised."""
    made = Made(scores)

    async def podium(task: Any, trace: Any) -> float:
        (outcome,) = await made().score([item_of(task.id or "", trace.last_reply)])
        return value_of(outcome, "raise")

    return podium
