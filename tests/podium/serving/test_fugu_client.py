"""podium's own client of such products, against what these dialects write."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.tool import ToolCall, ToolInfo

from podium.harness.usage import usage_of_reply
from podium.serving.chat import ChatCompletions
from podium.serving.exchange import Dialect
from podium.serving.responses import OpenAIResponses
from tests.podium.serving.canned import BILL, CLOCK, TEXT, canned_reply, canned_server
from tests.podium.serving.stream_checks import billed
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN
BOTH = pytest.mark.parametrize(
    ("dialect", "path"),
    [(ChatCompletions(), "chat/completions"), (OpenAIResponses(), "responses")],
    ids=["chat", "responses"],
)


def asked(url: str, dialect: Dialect, *tools: ToolInfo) -> ModelOutput:
    """Return what `fugu/` makes of a reply of ours."""
    own: dict[str, Any] = {"responses_api": dialect.name == "responses", "memoize": False}

    async def ask() -> ModelOutput:
        async with get_model("fugu/moa", base_url=url, api_key="k", **own) as model:
            return await model.generate("Hi.", tools=tools)

    return asyncio.run(ask())


@BOTH
def test_the_client_bills_what_the_server_billed(dialect: Dialect, path: str) -> None:
    with canned_server(dialect, path, canned_reply()) as url:
        output = asked(url, dialect)
    assert output.completion == TEXT
    assert usage_of_reply(output) == billed(BILL)


@BOTH
def test_a_call_of_a_function_comes_back_as_it_was_made(dialect: Dialect, path: str) -> None:
    call = ToolCall(id="call_9", function="clock", arguments={"zone": ["CET", 1]})
    unknown = replace(BILL, orchestration=None)
    with canned_server(dialect, path, canned_reply("", tool_calls=[call], bill=unknown)) as url:
        output = asked(url, dialect, ToolInfo(name=CLOCK["name"], description="Say the time."))
    assert output.stop_reason == "tool_calls"
    (found,) = output.message.tool_calls or []
    assert (found.id, found.function, found.arguments) == ("call_9", "clock", call.arguments)
    assert usage_of_reply(output) is None
