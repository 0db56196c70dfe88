"""The openai package: an agent's loop in both dialects, a tool called and its result answered."""

import json

import openai
from cases import MODEL, URL, run

client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0, timeout=60)
PARAMETERS = {"type": "object", "properties": {"location": {"type": "string"}}}
WEATHER = {"name": "get_weather", "description": "Look it up.", "parameters": PARAMETERS}
ASKED = {"role": "user", "content": "Does it rain in San Francisco?"}


def chat_loop() -> None:
    turns = [ASKED]
    tools = [{"type": "function", "function": WEATHER}]
    for _ in range(3):
        found = client.chat.completions.create(model=MODEL, messages=turns, tools=tools)
        reply = found.choices[0].message
        if not reply.tool_calls:
            break
        turns.append(reply)
        for call in reply.tool_calls:
            turns.append(
                {"role": "tool", "tool_call_id": call.id, "content": _called(call.function)}
            )
    assert len(turns) == 3
    assert reply.content == "The tool says: fog in San Francisco"
    assert found.usage.prompt_tokens_details.model_extra["orchestration_input_tokens"] > 0


def responses_loop() -> None:
    items = [ASKED]
    tools = [{"type": "function", "strict": False, **WEATHER}]
    for _ in range(3):
        with client.responses.stream(model=MODEL, input=items, tools=tools) as stream:
            stream.until_done()
            found = stream.get_final_response()
        calls = [item for item in found.output if item.type == "function_call"]
        if not calls:
            break
        items += found.output
        for call in calls:
            said = {"call_id": call.call_id, "output": _called(call)}
            items.append({"type": "function_call_output", **said})
    assert len(items) == 3
    assert found.output_text == "The tool says: fog in San Francisco"


def _called(function: object) -> str:
    assert function.name == "get_weather"
    return f"fog in {json.loads(function.arguments)['location']}"


run(chat_loop, responses_loop)
