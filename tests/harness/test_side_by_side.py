"""Steps that do not read each other are in flight at the same time; no clock decides it.

Every worker waits until as many calls have begun as should be in flight together. Steps asked one
after another would wait for ever; a guard of a minute ends the test then.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.execute import Session, execute
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.workflow import Step, Workflow

QUESTION = Question(id="q1", text="What is 6 times 7?", kind="integer")
GUARD_S = 60


@dataclass
class Meeting:
    """Calls wait here until a whole group has come; the groups come one after another."""

    groups: tuple[int, ...]
    began: list[str] = field(default_factory=list[str])
    open: list[anyio.Event] = field(default_factory=list[anyio.Event])

    def __post_init__(self) -> None:
        self.open = [anyio.Event() for _ in self.groups]

    async def come(self, who: str) -> None:
        self.began.append(who)
        end = 0
        for size, gate in zip(self.groups, self.open, strict=True):
            end += size
            if len(self.began) == end:
                gate.set()
            if len(self.began) <= end:
                await gate.wait()
                return


class MeetingAPI(ModelAPI):
    """Replies once its group is complete."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self.meeting: Meeting = model_args["meeting"]

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        await self.meeting.come(self.model_name)
        return ModelOutput.from_content(self.model_name, "ANSWER: 42")


@modelapi(name="meeting")
def meeting() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return MeetingAPI


def met(ask: Callable[[Pool], Awaitable[Answer]], *groups: int) -> list[str]:
    """Return who was asked, in order, while the calls met in these groups."""

    async def run() -> list[str]:
        place = Meeting(groups)
        models = {
            name: get_model(f"meeting/{name}", memoize=False, meeting=place)
            for name in ("ada", "bob", "cleo")
        }
        with anyio.fail_after(GUARD_S):
            await ask(Pool(models))
        return place.began

    return anyio.run(run)


@pytest.mark.parametrize(
    ("steps", "groups"),
    [
        ((Step("ada"), Step("bob"), Step("cleo"), Step("ada", reads="all")), (3, 1)),
        (
            (
                Step("ada"),
                Step("bob", reads=(0,)),
                Step("cleo", reads=(0,)),
                Step("ada", reads=(1, 2)),
            ),
            (1, 2, 1),
        ),
        ((Step("ada"), Step("bob"), Step("cleo", reads=(0,)), Step("ada", reads=(1,))), (2, 2)),
    ],
    ids=["fan-in", "diamond", "two chains"],
)
def test_steps_of_a_workflow_that_do_not_wait_for_each_other_are_in_flight_together(
    steps: tuple[Step, ...], groups: tuple[int, ...]
) -> None:
    workflow = Workflow(steps)
    began = met(lambda pool: execute(workflow, QUESTION, pool), *groups)
    assert len(began) == len(steps)


def test_steps_that_a_session_asks_at_once_are_in_flight_together() -> None:
    async def ask(pool: Pool) -> Answer:
        session = Session(QUESTION, pool)
        await session.ask_all([Step("ada"), Step("bob"), Step("cleo")])
        await session.ask_all([Step("ada", reads="all"), Step("bob", reads=(0,))])
        return session.answer("42")

    assert met(ask, 3, 2)[3:] == ["ada", "bob"]


def test_two_sessions_of_one_process_do_not_wait_for_each_other() -> None:
    async def one(pool: Pool) -> None:
        session = Session(QUESTION, pool)
        await session.ask(Step("ada"))
        await session.ask(Step("bob", reads=(0,)))

    async def ask(pool: Pool) -> Answer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, pool)
            tasks.start_soon(one, Pool(pool.models))
        return Answer("42")

    assert met(ask, 2, 2) == ["ada", "ada", "bob", "bob"]
