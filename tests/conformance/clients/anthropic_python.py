"""The anthropic package: messages whole and streamed, a count of tokens, errors."""

import anthropic
from cases import MODEL, QUESTION, URL, raised, run

client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0, timeout=60)
ASKED = {
    "model": MODEL,
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": QUESTION}],
}


def create() -> None:
    raw = client.messages.with_raw_response.create(**ASKED)
    found = raw.parse()
    assert found.content[0].text
    assert found.stop_reason == "end_turn"
    assert found.usage.output_tokens > 0
    assert raw.headers["x-request-id"]


def stream() -> None:
    with client.messages.stream(**ASKED) as said:
        text = "".join(said.text_stream)
        final = said.get_final_message()
    assert text == final.content[0].text != ""
    assert final.usage.output_tokens > 0


def count_tokens() -> None:
    asked = {name: ASKED[name] for name in ("model", "messages")}
    assert client.messages.count_tokens(**asked).input_tokens > 0


def models() -> None:
    assert MODEL in [one.id for one in client.models.list()]


def unknown_model_is_not_found() -> None:
    asked = {**ASKED, "model": "podium/none"}
    error = raised(anthropic.NotFoundError, lambda: client.messages.create(**asked))
    assert error.body["error"]["type"] == "not_found_error"
    assert error.body["request_id"]


def no_messages_is_a_bad_request() -> None:
    asked = {**ASKED, "messages": []}
    error = raised(anthropic.BadRequestError, lambda: client.messages.create(**asked))
    assert error.body["error"]["type"] == "invalid_request_error"


run(create, stream, count_tokens, models, unknown_model_is_not_found, no_messages_is_a_bad_request)
