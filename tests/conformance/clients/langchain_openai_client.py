"""LangChain's ChatOpenAI: by chat completions and by responses, whole and streamed."""

from cases import MODEL, QUESTION, URL, run
from langchain_openai import ChatOpenAI

SETTINGS = {"model": MODEL, "base_url": f"{URL}/v1", "api_key": "none", "max_retries": 0}


def invoke() -> None:
    found = ChatOpenAI(**SETTINGS).invoke(QUESTION)
    assert found.text
    assert found.usage_metadata["total_tokens"] > 0


def stream() -> None:
    chunks = [*ChatOpenAI(**SETTINGS, stream_usage=True).stream(QUESTION)]
    assert "".join(one.text for one in chunks)
    assert sum((one.usage_metadata or {}).get("total_tokens", 0) for one in chunks) > 0


def responses_invoke() -> None:
    found = ChatOpenAI(**SETTINGS, use_responses_api=True).invoke(QUESTION)
    assert found.text
    assert found.usage_metadata["total_tokens"] > 0


def responses_stream() -> None:
    chunks = [*ChatOpenAI(**SETTINGS, use_responses_api=True).stream(QUESTION)]
    assert "".join(one.text for one in chunks)


run(invoke, stream, responses_invoke, responses_stream)
