"""Models that a task's own code calls by role: a simulated user, a grader.

Their calls are recorded and paid like a system's, in a separate scope: the cost of the environment
belongs to no system, and counts in `--max-usd` alone.
"""

from collections.abc import Sequence
from typing import Any, cast

from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, Model, ModelOutput
from inspect_ai.model._call_tools import prepare_tools  # how Inspect describes a task's tools
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import ToolInfo

from podium.harness.context import current, run_context
from podium.harness.inspect_adapters import sample_ref
from podium.harness.ledger.call import Scope
from podium.harness.ledger.recorder import Recorder, TaskJournal
from podium.harness.pool import ask_once, step_span
from podium.harness.records import ENVIRONMENT, GRADER
from podium.harness.request import Offered, Request


def environment_model(
    model: Model, role: str, price_ref: str, journal: TaskJournal | None
) -> Model:
    """Record each `generate` of a task's model as a call in the ledger; return the same model."""
    generate, recorders = model.generate, dict[str, Recorder]()
    scope: Scope = "scoring" if role == GRADER else ENVIRONMENT
    step = role if role == GRADER else f"{ENVIRONMENT}: {role}"

    async def recorded(
        input: str | list[ChatMessage],
        tools: Any = (),
        tool_choice: Any = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as Inspect's own
        **options: Any,
    ) -> ModelOutput:
        state = sample_state()
        turns: Sequence[ChatMessage]
        turns = [ChatMessageUser(content=input)] if isinstance(input, str) else input
        offered = Offered(await _described(tools), tool_choice, config)
        request = Request(role, model, turns, price_ref, step, offered)
        if state and journal and state.uuid not in recorders:
            recorders[state.uuid] = Recorder(journal, scope, sample_ref(state))
        recorder = recorders.get(state.uuid) if state else None

        async def ask() -> ModelOutput:
            return await generate(input, tools, tool_choice, config, **options)

        async with step_span(step):
            with run_context(recorder=recorder):
                return (await ask_once(request, current().spend, ask))[1]

    cast(Any, model)._set_role(role)  # as `get_model(role=...)` does for the model that it returns
    cast(Any, model).generate = recorded
    return model


async def _described(tools: Any) -> list[ToolInfo]:
    prepared = await prepare_tools(tools)
    return [
        ToolInfo(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in prepared.tdefs
    ]
