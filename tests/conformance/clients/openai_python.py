"""The openai package: both dialects, whole and streamed, errors, headers."""

import openai
from cases import MODEL, QUESTION, URL, raised, run

client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0, timeout=60)
ASKED = [{"role": "user", "content": QUESTION}]


def chat() -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=ASKED)
    found = raw.parse()
    assert found.choices[0].message.content
    assert found.usage.total_tokens > 0
    assert found.usage.model_extra["cost"] > 0
    assert raw.headers["x-request-id"] == found._request_id
    assert raw.headers["x-litellm-total-tokens"] == str(found.usage.total_tokens)
    assert float(raw.headers["x-litellm-response-cost"]) == found.usage.model_extra["cost"]


def chat_stream_with_usage() -> None:
    options = {"include_usage": True}
    chunks = [
        *client.chat.completions.create(
            model=MODEL, messages=ASKED, stream=True, stream_options=options
        )
    ]
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert chunks[-1].usage.total_tokens > 0
    assert not chunks[-1].choices


def chat_stream_helper() -> None:
    with client.chat.completions.stream(model=MODEL, messages=ASKED) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_completion().choices[0].message.content
    assert "content.done" in kinds


def responses() -> None:
    found = client.responses.create(model=MODEL, input=QUESTION)
    assert found.output_text
    assert found.status == "completed"
    details = found.usage.output_tokens_details.model_extra
    assert "orchestration_output_tokens" in details
    assert found.usage.model_extra["cost"] > 0


def responses_stream() -> None:
    with client.responses.stream(model=MODEL, input=QUESTION) as stream:
        events = [*stream]
        final = stream.get_final_response()
    assert [one.sequence_number for one in events] == [*range(len(events))]
    assert final.output_text
    assert final.usage.total_tokens > 0


def models() -> None:
    assert MODEL in [one.id for one in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


def unknown_model_is_not_found() -> None:
    create = client.chat.completions.create
    asked = {"model": "podium/none", "messages": ASKED}
    error = raised(openai.NotFoundError, lambda: create(**asked))
    assert error.request_id
    assert error.param == "model"


def n_of_3_is_a_bad_request() -> None:
    create = client.chat.completions.create
    error = raised(openai.BadRequestError, lambda: create(model=MODEL, messages=ASKED, n=3))
    assert error.param == "n"


run(
    chat,
    chat_stream_with_usage,
    chat_stream_helper,
    responses,
    responses_stream,
    models,
    unknown_model_is_not_found,
    n_of_3_is_a_bad_request,
)
