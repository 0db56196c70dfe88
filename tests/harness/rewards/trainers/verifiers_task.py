"""Run by a Python that has verifiers: a taskset whose reward is ours, scored as its runs score it.

`python verifiers_task.py URL`, where URL is a reward service for the exam of small_suites.py.
Prints one JSON object; test_trainers.py says what must be in it.
"""

import asyncio
import json
import sys
from collections.abc import Iterable

import verifiers.v1 as vf
from verifiers.v1.errors import RolloutError
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage

from podium.harness.rewards.outcome import RewardClient
from podium.harness.rewards.trainers import verifiers_reward

podium = verifiers_reward(RewardClient(sys.argv[1]))


class PodiumTask(vf.Task[vf.TaskData]):
    """A question of the exam."""

    @vf.reward
    async def podium(self, task: vf.TaskData, trace: Trace) -> float:
        """Reward the last reply."""
        return await podium(task, trace)


class PodiumTasks(vf.Taskset[PodiumTask]):
    """The exam's questions; a task's id is its label."""

    def load(self) -> Iterable[PodiumTask]:
        """Yield them."""
        for n in range(4):
            yield PodiumTask(vf.TaskData(id=f"graded/q{n}", prompt=f"Say {n}."))


async def scored(task: PodiumTask, reply: str) -> dict[str, object]:
    """Score one reply as `verifiers.v1.rollout` does: an error is recorded on the trace."""
    trace = Trace(
        task=TraceTask(type="PodiumTask", data=task.data),
        agent=AgentInfo(config=vf.AgentConfig()),
        nodes=[MessageNode(message=AssistantMessage(content=reply), sampled=True)],
        ok=True,
    )
    try:
        await task.score(trace)
    except RolloutError as error:
        trace.record_error(error)
    reward = trace.rewards.get("podium")
    return {
        "ok": trace.ok,
        "reward": None if reward is None else reward.value,
        "errors": [error.type for error in trace.errors],
        "stop": trace.stop_condition,
    }


async def main() -> None:
    """Score four replies."""
    tasks = list(PodiumTasks(vf.TasksetConfig()))
    said = ["0", "7", "broken", "?"]
    made = [await scored(task, reply) for task, reply in zip(tasks, said, strict=True)]
    print(json.dumps(made))


if __name__ == "__main__":
    asyncio.run(main())
