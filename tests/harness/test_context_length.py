"""Which refusals mean that a request is longer than its model's context, in whose words."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
import httpx
import openai
import pytest
from inspect_ai.model import ChatCompletionChoice, ModelOutput, ModelUsage

from podium.harness.context_length import (
    CODES,
    DIALECTS,
    LOOKALIKES,
    LengthRefusal,
    Lookalike,
    is_refused,
    read_refusal,
    refusal,
)
from podium.harness.errors import WorkerError
from podium.harness.text import markdown_cell
from tests import ROOT

DIALECT = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.server)
OPENAI = DIALECTS[0].words


def error(status: int, body: object) -> openai.APIStatusError:
    """Return what OpenAI's client raises: it keeps what stands under `error`, else the body."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response: Any = httpx.Response(status, request=request)  # the client has its own httpx
    return openai.APIStatusError(f"Error code: {status} - {body}", response=response, body=inner)


def shapes(words: str) -> Mapping[str, object]:
    """Return the bodies in which servers and the gateways before them put their words."""
    inner = {"message": words, "type": "invalid_request_error", "param": None, "code": None}
    upstream = {"raw": json.dumps({"error": {"message": words}}), "provider_name": "Any"}
    return {
        "openai": {"error": inner},
        "flat": {"object": "error", **inner},
        "text in error": {"error": words, "error_type": "validation"},
        "list": [{"error": {"message": words}}],
        "detail": {"detail": words},
        "gateway": {"error": {"message": "Provider returned error", "metadata": upstream}},
        "raw text": {"error": {"message": "Provider returned error", "metadata": {"raw": words}}},
        "prefixed": {"error": {"message": f"litellm.BadRequestError: AnyException - {words}"}},
        "plain": words,
    }


@DIALECT
@pytest.mark.parametrize("shape", [*shapes("")])
def test_a_refusal_is_known_in_every_body_that_a_server_can_put_it_into(
    dialect: LengthRefusal, shape: str
) -> None:
    found = refusal(error(dialect.status, shapes(dialect.words)[shape]))
    assert found is not None
    assert dialect.words in found


@DIALECT
def test_each_pattern_finds_its_own_words_and_no_lookalike(dialect: LengthRefusal) -> None:
    pattern = re.compile(dialect.pattern, re.IGNORECASE)
    assert pattern.search(dialect.words.upper())
    assert [one.words for one in LOOKALIKES if pattern.search(one.words)] == []


@pytest.mark.parametrize("shape", [*shapes("")])
@pytest.mark.parametrize(
    "other", LOOKALIKES, ids=lambda one: f"{one.server} {one.status} {one.about}"
)
def test_a_refusal_about_something_else_is_none(other: Lookalike, shape: str) -> None:
    assert refusal(error(other.status, shapes(other.words)[shape])) is None


@pytest.mark.parametrize("code", sorted(CODES))
@pytest.mark.parametrize("key", ["code", "type"])
def test_a_code_says_it_without_known_words(code: str, key: str) -> None:
    body = {"error": {"message": "Das ist dem Modell zu lang, so leid es uns tut.", key: code}}
    assert refusal(error(400, body)) == "Das ist dem Modell zu lang, so leid es uns tut."


OTHERS: Mapping[str, str] = {
    "newer vLLM": "This model's maximum context length is 16384 tokens. However, you requested "
    "8192 output tokens and your prompt contains at least 8193 input tokens, for a total of at "
    "least 16385 tokens. Please reduce the length of the input prompt or the number of requested "
    "output tokens. (parameter=input_tokens, value=8193)",
    "multimodal vLLM": "The prompt (total length 5000) is too long to fit into the model (context "
    "length 4096).",
    "legacy completions": "This model's maximum context length is 8192 tokens, however you "
    "requested 9000 tokens (8000 in your prompt; 1000 for the completion). Please reduce your "
    "prompt; or completion length.",
    "vLLM V1": "Input length (265330) exceeds model's maximum context length (262144).",
    "Poolside": "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    "SambaNova": "The maximum context length of DeepSeek-R1 is 8192. However, answering your "
    "request will take 9000 tokens. Please reduce the length of the messages or the specified "
    "max_completion_tokens value.",
    "Cerebras": "Please reduce the length of the messages or completion. Current length is 9000 "
    "while limit is 8192",
    "MLX": "Prompt too long: 9000 tokens exceeds max context window of 8192 tokens",
    "Ollama": "the input length exceeds the context length",
    "older llama.cpp": "the request exceeds the available context size. try increasing the context "
    "size or enable context shift",
    "Cohere": "too many tokens: size limit exceeded by 12345 tokens.",
    "TensorRT-LLM": "Prompt length (5000) exceeds maximum input length (4096)",
    "newer Gemini": "The input token count exceeds the maximum number of tokens allowed 1048576.",
    "the limit first": "Maximum context length exceeded: your prompt has 9000 tokens.",
    "LM Studio": "Trying to keep the first 4000 tokens when context overflows. However, the model "
    "is loaded with context length of only 4096 tokens, which is not enough",
}


@pytest.mark.parametrize("words", OTHERS.values(), ids=OTHERS)
def test_wordings_beside_the_table_are_known_too(words: str) -> None:
    assert refusal(error(400, {"error": {"message": words}})) == words


ELSEWHERE: Mapping[str, str] = {
    "long context beta": "The long context beta is not yet available for this subscription.",
    "image": "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes",
    "parameter": "Unsupported parameter: context. Remove it and try again.",
    "images": "Request exceeded the allowed number of images",
    "tools": "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
    "an array with length 140 instead.",
    "memory": "model requires more system memory (12.0 GiB) than is available (8.0 GiB)",
    "credit": "Your credit balance is too low to access the API.",
    "safety": "Your request was rejected as a result of our safety system.",
    "batch": "input is too large to process. increase the physical batch size",
    "stop": "Invalid 'stop': too many stop sequences.",
    "least": "max_tokens must be at least 1, got 0.",
    "day": "This model's maximum context length is 8192 tokens per day and project.",
}


@pytest.mark.parametrize("words", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_bad_request_of_another_kind_is_none(words: str) -> None:
    assert refusal(error(400, {"error": {"message": words}})) is None


@pytest.mark.parametrize("status", [401, 402, 404, 408, 409, 429])
def test_a_status_that_means_something_else_is_none_whatever_the_words(status: int) -> None:
    assert refusal(error(status, {"error": {"message": OPENAI}})) is None


@pytest.mark.parametrize("status", [400, 403, 413, 422, 500, 502, 503])
def test_any_status_of_a_bad_request_or_a_broken_server_may_carry_it(status: int) -> None:
    assert refusal(error(status, {"error": {"message": OPENAI}})) == OPENAI


def test_what_a_server_quotes_of_the_question_does_not_count() -> None:
    quoted = {"loc": ["body", "messages"], "msg": "Field required", "input": OPENAI}
    assert refusal(error(422, {"detail": [quoted]})) is None
    assert refusal(error(400, {"error": {"message": "Bad request", "param": OPENAI}})) is None


def test_a_failure_of_our_own_is_none() -> None:
    assert refusal(WorkerError(OPENAI)) is None


@pytest.mark.parametrize(
    "body", [None, "", "{", "[" * 3000, {"error": None}, {"error": []}, 7], ids=str
)
def test_a_body_that_nobody_can_read_is_none(body: Any) -> None:
    assert refusal(error(400, body)) is None


def test_a_refusal_becomes_the_reply_that_inspect_makes_of_openais_code() -> None:
    async def raising() -> object:
        raise error(500, {"error": {"message": "Context size has been exceeded."}})

    async def returning() -> object:
        return error(400, {"error": {"message": OPENAI}}), "the call"

    output = anyio.run(lambda: read_refusal(raising(), "gemma"))
    assert is_refused(output)
    assert (output.model, output.completion, output.usage) == (
        "gemma",
        "Context size has been exceeded.",
        None,
    )
    found, call = anyio.run(lambda: read_refusal(returning(), "gemma"))
    assert (found.completion, found.stop_reason, call) == (OPENAI, "model_length", "the call")


def test_other_failures_and_replies_pass_as_they_are() -> None:
    broken = error(500, {"error": {"message": "Internal server error"}})
    reply = ModelOutput.from_content("gemma", OPENAI)

    async def raising() -> object:
        raise broken

    async def returning() -> object:
        return reply

    with pytest.raises(openai.APIStatusError) as raised:
        anyio.run(lambda: read_refusal(raising(), "gemma"))
    assert raised.value is broken
    assert anyio.run(lambda: read_refusal(returning(), "gemma")) is reply


@pytest.mark.parametrize(
    ("stop", "tokens", "expected"),
    [
        pytest.param("model_length", None, True, id="no usage"),
        pytest.param("model_length", 0, True, id="nothing written"),
        pytest.param("model_length", 5, False, id="cut where the context ends"),
        pytest.param("max_tokens", 0, False, id="another limit"),
        pytest.param("stop", None, False, id="a reply"),
    ],
)
def test_a_reply_is_a_refusal_when_it_stops_for_length_and_nothing_was_written(
    stop: Any, tokens: int | None, expected: bool
) -> None:
    output = ModelOutput.from_content("gemma", "words", stop_reason=stop)
    if tokens is not None:
        output.usage = ModelUsage(input_tokens=9, output_tokens=tokens, total_tokens=9 + tokens)
    assert is_refused(output) is expected


def test_a_reply_without_choices_is_no_refusal() -> None:
    assert not is_refused(ModelOutput(model="gemma", choices=list[ChatCompletionChoice]()))
    assert not is_refused(None)


# --- the page -----------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "context-length.md"
VERDICT = "wrong, *too long*"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as the page has it, which `python -m` of this module writes."""
    cells = ([markdown_cell(str(cell)) for cell in row] for row in rows)
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(one: LengthRefusal | Lookalike) -> tuple[object, ...]:
    return one.server, one.status, f"`` {one.words} ``"


def tables() -> Mapping[str, str]:
    """Return the page's tables by their marks."""
    known = [(*shown(one), VERDICT, one.source) for one in DIALECTS]
    other = [(*shown(one), f"unanswered: {one.about}") for one in LOOKALIKES]
    heads = ("server", "status", "wording", "verdict")
    return {"length-refusals": table((*heads, "source"), known), "lookalikes": table(heads, other)}


def with_tables(page: str) -> str:
    """Return the page with its tables as the wordings have them."""
    for mark, made in tables().items():
        begin, end = f"<!-- {mark} -->\n", f"<!-- {mark}:end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}{made}\n{end}{rest.split(end)[1]}"
    return page


def test_the_page_shows_every_wording_with_its_verdict() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
