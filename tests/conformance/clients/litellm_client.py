"""LiteLLM as a client: it takes the cost from our header, and computes none of its own."""

import litellm
from cases import MODEL, QUESTION, URL, run

ASKED = {
    "model": f"openai/{MODEL}",
    "api_base": f"{URL}/v1",
    "api_key": "none",
    "messages": [{"role": "user", "content": QUESTION}],
    "num_retries": 0,
}


def completion() -> None:
    found = litellm.completion(**ASKED)
    assert found.choices[0].message.content
    assert found.usage.total_tokens > 0


def cost_header() -> None:
    found = litellm.completion(**ASKED)
    headers = found._hidden_params["additional_headers"]
    cost = headers["llm_provider-x-litellm-response-cost"]
    assert float(cost) == found.usage.cost > 0


def completion_stream() -> None:
    options = {"include_usage": True}
    chunks = [*litellm.completion(**ASKED, stream=True, stream_options=options)]
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


def responses() -> None:
    asked = {name: ASKED[name] for name in ("model", "api_base", "api_key")}
    found = litellm.responses(**asked, input=QUESTION)
    assert found.output[-1].content[0].text


def unknown_model_is_not_found() -> None:
    try:
        litellm.completion(**{**ASKED, "model": "openai/podium/none"})
    except litellm.NotFoundError:
        return
    raise AssertionError("it was answered")


run(completion, cost_header, completion_stream, responses, unknown_model_is_not_found)
