"""Prompts and scores of Inspect tasks that call their model once, without an Inspect run.

The task's own solver runs with a given reply instead of a model's, so that the prompt is built and
the reply is scored as in a run.
"""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, TypeVar, cast

import anyio
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, token_limit

from podium.harness.conversation import Conversation, question_of
from podium.harness.errors import UserError
from podium.harness.execute import first_failure

MODEL = "podium/reply"
"""The model name in outputs that contain a given reply instead of a model's."""

GIVES_TOOLS = "It gives tools to its model, and a single reply cannot call tools."

ResultT = TypeVar("ResultT")


class _AskedOnce(Exception):
    """Ends a task's solver as soon as its prompt to the model is known."""


def asked_of(task: Task, sample: Sample) -> str:
    """Return the prompt that a task sends to its model, as one text; UserError if it sends none."""
    return _in_a_thread(lambda: _asked_of(task, sample))


def score_of(task: Task, sample: Sample, reply: str) -> Score | None:
    """Return a reply's score by the task's first scorer (which may be None), or raise its error."""
    return _in_a_thread(lambda: _score_of(task, sample, reply))


def _in_a_thread(work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    # In a thread, since the caller may be in an event loop or in a sample of Inspect.
    async def without_models() -> ResultT:
        with token_limit(0):  # a model that the task's code calls would be billed without a record
            try:
                return await work()
            except* LimitExceededError:
                raise UserError("Its solver or scorer calls a model of its own.") from None
            except* Exception as group:
                raise first_failure(group) from None

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, without_models).result()


async def _asked_of(task: Task, sample: Sample) -> str:
    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        _refuse_tools(state)
        prompts.append(question_of("", Conversation(messages=state.messages)).text)
        raise _AskedOnce

    prompts, state = list[str](), _state(sample)
    try:
        await _solved(task, state, generate)
    except _AskedOnce:
        return prompts[0]
    raise UserError(
        "The task's solver does not call the model through `generate`. Use another task."
    )


async def _score_of(task: Task, sample: Sample, reply: str) -> Score | None:
    replies = list[str]()

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        if replies:
            raise UserError("It calls its model more than once.")
        _refuse_tools(state)
        replies.append(reply)
        state.output = ModelOutput.from_content(MODEL, reply)
        state.messages.append(state.output.message)
        return state

    state = await _solved(task, _state(sample), generate)
    scorer = cast(list[Scorer], task.scorer)[0]
    return await scorer(state, Target(sample.target))


async def _solved(task: Task, state: TaskState, generate: Any) -> TaskState:
    for solver in filter(None, (task.setup, task.solver)):
        state = await cast(Any, solver)(state, generate)
    return state


def _state(sample: Sample) -> TaskState:
    turns = sample.input
    messages = list[ChatMessage]()
    messages += [ChatMessageUser(content=turns)] if isinstance(turns, str) else deepcopy(turns)
    return TaskState(
        model=ModelName(MODEL),
        sample_id=sample.id or 0,
        epoch=1,
        input=turns,
        messages=messages,
        target=Target(sample.target),
        choices=sample.choices,
        metadata=deepcopy(sample.metadata),
    )


def _refuse_tools(state: TaskState) -> None:
    if state.tools:
        raise UserError(GIVES_TOOLS)
