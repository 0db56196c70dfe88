"""Failures that a provider reports inside a reply with HTTP status 200.

A gateway (a server between podium and the provider) that loses the provider has often sent its
status already, so the body reports the failure: an `error`, or a finish reason that means a
failure. Inspect treats most of these as replies. Here they become an exception that is retried like
a 5xx, and their usage is counted. Before its next attempt a call waits as long as its provider
asks, up to a limit, with a message.
"""

import json
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from inspect_ai._util.http import is_retryable_http_status, parse_retry_after
from inspect_ai.hooks._hooks import emit_model_usage
from inspect_ai.log._samples import (
    _active_model_event,  # pyright: ignore[reportPrivateUsage] - it has no public name
)
from inspect_ai.model import Model, ModelAPI, ModelCall, ModelOutput, ModelUsage
from inspect_ai.model._model import RetryDecision, record_and_check_model_usage
from tenacity import RetryCallState, wait_exponential_jitter
from tenacity.wait import WaitBaseT, wait_base

from podium.harness.api_keys import Cleaner, known_keys
from podium.harness.ledger.hooks import WRAPPERS, kind_and_status
from podium.harness.ledger.recorder import HttpResponse, call_in_flight
from podium.harness.pool_config import provider_of
from podium.harness.text import make_storable
from podium.harness.usage import NOTHING, Raw, believed, dialect_of, raw_usage, usage_from_raw

FAILED = re.compile(
    r"error|fail|abort|cancel|overload|insufficient|unavailable|time.?d?.?out|network|interrupt"
    r"|disconnect|exception",
    re.IGNORECASE,
)
"""Words in a finish reason or status which mean that a failure cut the reply off: `error`
(OpenRouter, vLLM, Mistral), `network_error` (Zhipu), `insufficient_system_resource` (DeepSeek),
`abort` (vLLM, SGLang), `cancelled` (TensorRT-LLM), `failed` (OpenAI's Responses API)."""
PERMANENT = re.compile(
    r"invalid.?(?:request|prompt|api)|authenti|permission|forbidden|not.?found|quota|billing|credit"
    r"|context|length|policy|filter|unsupported|too.?large",
    re.IGNORECASE,
)
"""Words in an error's code or type which mean that a retry is useless."""
RATE_LIMIT = re.compile(r"rate.?limit|too.?many", re.IGNORECASE)
GOOGLES = frozenset({"candidates", "usage_metadata", "usageMetadata", "sdkHttpResponse"})
"""Fields by which a reply of Google's is recognised, because its client drops the field `error`."""
LONGEST = 300
"""Maximum characters of a provider's message that an error quotes."""


class UpstreamFailure(Exception):
    """A provider sent HTTP status 200 and a body that reports a failure; there is no reply."""

    def __init__(self, sentence: str, decision: RetryDecision, status: int | None = None) -> None:
        """Store the failure as a sentence, whether to retry, and the HTTP status in the body."""
        super().__init__(sentence)
        self.decision = decision
        self.status_code = status
        call = call_in_flight()
        self.headers = dict(call.response.headers) if call and call.response else {}


OPENAI = "api.openai.com"
REFUSALS = ("content_filter", "model_length")
"""Stop reasons that Inspect gives to refusals: no failures, even if the body has an error."""


def dialect_fix(model: Model, error: BaseException) -> str:
    """Return the advice for a server without /responses; empty if the error has another cause.

    Inspect's `openai/` sends requests to /responses; most servers that speak OpenAI's dialect have
    /chat/completions only, and answer 404 or another dialect's body.
    """
    while type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
    url = str(model.api.base_url or "")
    unread = isinstance(error, TypeError | AttributeError)
    lacks = getattr(error, "status_code", None) == 404 and "model" not in str(error).lower()
    if not (unread or lacks) or not getattr(model.api, "responses_api", False) or OPENAI in url:
        return ""
    return (
        f": the server at {url} does not answer /responses. Name the model "
        f"openai-api/NAME/{model.name} and set NAME_BASE_URL={url}"
    )


def failure_in(output: ModelOutput, call: ModelCall | None) -> UpstreamFailure | None:
    """Return the failure that Inspect treats as a reply; None if the output is a real reply."""
    refused = not output.empty and output.stop_reason in REFUSALS
    return None if call is None or call.error or refused else reported_failure(call.response)


def reported_failure(response: Raw | None, *, began: bool = False) -> UpstreamFailure | None:
    """Return the failure that a response body reports; None if the body is a reply."""
    body = _object(response)
    choice = _first(body.get("choices"))
    error = _error(choice.get("error")) or _error(body.get("error"))
    reason = next(
        (text for text in _reasons(body, choice) if FAILED.search(text.partition(" ")[2])), ""
    )
    if not (error or reason):
        return None
    from inspect_ai.model._openai import http_status_from_error_code  # see _behind

    code = http_status_from_error_code(error.get("code"))
    began = began or bool(choice or body.get("output") or body.get("content"))
    return UpstreamFailure(
        _sentence(error, reason), _decision(error, code), None if began else code
    )


def _reasons(body: Raw, choice: Raw) -> Iterator[str]:
    """Yield the reasons why a reply ended that a body states, each as `FIELD REASON`."""
    candidate = _first(body.get("candidates"))
    for name, value in (
        ("finish_reason", choice.get("finish_reason") or choice.get("native_finish_reason")),
        ("finish_reason", candidate.get("finishReason") or candidate.get("finish_reason")),
        ("reply", "failed: no candidates" if _is_empty_of_google(body) else None),
        ("stop_reason", body.get("stop_reason")),
        ("status", body.get("status")),
        ("incomplete", _object(body.get("incomplete_details")).get("reason")),
    ):
        if isinstance(value, str):
            yield f"{name} {value}"


def _is_empty_of_google(body: Raw) -> bool:
    """Return whether Google sent no reply and no reason, for which Inspect makes up a text."""
    feedback = body.get("prompt_feedback") or body.get("promptFeedback")
    return not GOOGLES.isdisjoint(body) and not (body.get("candidates") or feedback)


def _error(value: object) -> Raw:
    """Return a body's error as an object; an empty object if no field of the error is set."""
    if isinstance(value, str):
        return {"message": value} if value else NOTHING
    error = _object(value)
    return error if any(error.values()) else NOTHING


def _sentence(error: Raw, reason: str) -> str:
    code = error.get("code") or error.get("type")
    facts = [reason, f"code {code}" if isinstance(code, str | int) else ""]
    message = error.get("message")
    text = " ".join(message.split())[:LONGEST] if isinstance(message, str) else ""
    place = ", ".join(filter(None, facts))
    sentence = "the provider reported a failure in its reply" + (f" ({place})" if place else "")
    return f"{sentence}: {text}" if text else sentence


def _decision(error: Raw, code: int | None) -> RetryDecision:
    """Return whether to retry after an error: by its HTTP status, else by its code and type."""
    words = " ".join(str(error.get(name) or "") for name in ("code", "type"))
    if code == 429 or (code is None and RATE_LIMIT.search(words)):
        return RetryDecision.rate_limit()
    if not is_retryable_http_status(code) if code else PERMANENT.search(words):
        return RetryDecision.no()
    return RetryDecision.transient()


def name_failures(model: Model) -> Model:
    """Make a model raise `UpstreamFailure` if a reply reports one, and retry; return the model."""
    ask, classify = model.api.generate, model.api.should_retry

    @wraps(ask)
    async def generate(*args: Any, **kwargs: Any) -> Any:
        _keep_responses(model.api)
        try:
            result: Any = await ask(*args, **kwargs)
        except Exception as error:
            body = await _kept_body()
            if failure := _behind(error, body):
                await _count(model, _left_behind(model, body), body)
                raise failure from error
            raise
        output, call = cast(
            "tuple[Any, ModelCall | None]", result if isinstance(result, tuple) else (result, None)
        )
        if isinstance(output, ModelOutput) and call and (failure := failure_in(output, call)):
            await _count(model, output, call.response)
            raise failure
        return cast(Any, result)

    def should_retry(error: Exception) -> bool | RetryDecision:
        return error.decision if isinstance(error, UpstreamFailure) else classify(error)

    cast(Any, model.api).generate = generate
    cast(Any, model.api).should_retry = should_retry
    return model


def _keep_responses(api: ModelAPI) -> None:
    """Store the provider's response in the call in flight, before any client reads it."""
    # A client's parse error lacks the response. Done per call: providers may replace clients.
    client: object = getattr(getattr(api, "client", None), "_client", None)
    hooks: Any = getattr(client, "event_hooks", None)
    if hooks and _keep_response not in hooks["response"]:
        hooks["response"].append(_keep_response)


async def _keep_response(response: HttpResponse) -> None:
    call = call_in_flight()
    if call is None:
        return
    call.response = response if response.status_code == 200 else None
    if call.response and _is_json(response):  # not a stream, which its client reads in pieces
        await response.aread()


def _is_json(response: HttpResponse) -> bool:
    return "json" in response.headers.get("content-type", "")


async def _kept_body() -> Raw:
    response = call.response if (call := call_in_flight()) else None
    try:
        body: object = json.loads(await response.aread() if response and _is_json(response) else "")
    except (ValueError, RecursionError):
        return NOTHING
    return _object(Cleaner(known_keys()).cleaned(make_storable(body)))


def _behind(error: Exception, body: Raw) -> UpstreamFailure | None:
    """Return the provider's failure that made Inspect or a client raise an error; else None."""
    # The client is slow to import and most commands do not need it: import it only on failure.
    from inspect_ai.model._openai import OpenAIResponseError
    from openai import APIError

    if type(error) is APIError:  # in the middle of a stream
        return reported_failure({"error": error.body}, began=True)
    if isinstance(error, OpenAIResponseError) and not body:
        return reported_failure({"error": {"code": error.code, "message": error.message}})
    return reported_failure(body)


def _left_behind(model: Model, body: Raw) -> ModelOutput | None:
    """Return an output with only the usage in a body that the client could not parse, or None."""
    raw = raw_usage(body)
    dialect = dialect_of(raw) if raw else None
    usage = believed(usage_from_raw(dialect, raw), raw) if raw and dialect else None
    if usage is None:
        return None
    counted = ModelUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        total_tokens=usage.parts_total if usage.total_reported is None else usage.total_reported,
        input_tokens_cache_read=usage.cache_read,
        input_tokens_cache_write=usage.cache_write,
        reasoning_tokens=usage.reasoning,
    )
    return ModelOutput(model=str(body.get("model") or model.name), choices=[], usage=counted)


async def _count(model: Model, output: ModelOutput | None, response: Raw | None) -> None:
    """Add the usage of a failed reply to the log, the ledger and Inspect's totals."""
    event, call = _active_model_event.get(), call_in_flight()
    if output is None or event is None or call is None:
        return
    if event.call:
        event.call.response = make_storable(dict(response or {}))
    call.broken = event.output = make_storable(output)
    if output.usage:
        call.tell_price(output, response)
        record_and_check_model_usage(model, output.usage, event.role, output)
        await emit_model_usage(model_name=str(model), usage=output.usage, call_duration=0.0)


def _object(value: object) -> Raw:
    return cast(Raw, value) if isinstance(value, Mapping) else NOTHING


def _first(value: object) -> Raw:
    return _object(cast("list[object]", value)[0]) if isinstance(value, list) and value else NOTHING


LONGEST_S = 120.0
"""Maximum wait, in seconds: if a provider requests more, a call waits this long and retries."""
SHORTEST_S = 0.02
"""Minimum wait, in seconds: a provider's shorter waits are ignored, since retries would be a busy
loop."""
ABSURD_S = 86_400.0
"""A wait longer than a day is treated as a mistake, such as a time of day in seconds."""
SPREAD = 0.1
"""Maximum random addition to a requested wait, as a share of the wait: calls that were refused
together are then not all retried at once."""


def requested_wait(error: BaseException) -> float | None:
    """Return how many seconds a failure's headers or body ask to wait; None without a usable wait.

    The header `retry-after-ms` is more exact than `retry-after` (seconds, or a date), which comes
    next, then Google's delay in the body.
    """
    waits = (seconds for seconds in _waits(error) if seconds is not None)
    usable = (seconds for seconds in waits if SHORTEST_S <= seconds <= ABSURD_S)
    return next(usable, None)


def _waits(error: BaseException | None) -> Iterator[float | None]:
    while error is not None:
        response: Any = getattr(error, "response", None)
        headers = _object(getattr(response, "headers", None) or getattr(error, "headers", None))
        if headers:
            by_name = {name.lower(): str(value) for name, value in headers.items()}
            yield _milliseconds(by_name.get("retry-after-ms", ""))
            yield parse_retry_after({"retry-after": by_name.get("retry-after", "")})
        yield from (parse_retry_after({"retry-after": text}) for text in _delays(error))
        error = error.__cause__


def _milliseconds(text: str) -> float | None:
    try:
        return float(text) / 1000
    except ValueError:
        return None


def _delays(error: BaseException) -> Iterator[str]:
    """Yield the delays in an error of Google's, from `RetryInfo`, e.g. `34s`."""
    body = _object(getattr(error, "details", None))
    details: object = _object(body.get("error", body)).get("details")
    for detail in cast("list[object]", details) if isinstance(details, list) else ():
        if isinstance(delay := _object(detail).get("retryDelay"), str):
            yield delay


@dataclass(slots=True)
class RetryWait(wait_base):
    """Computes how long a call to a model waits before its next attempt."""

    who: str
    backoff: WaitBaseT
    """Computes the wait after failures for which the provider requests no wait."""
    clock: Callable[[], float] = time.monotonic
    printed_until: float = -math.inf
    """Time until which the last printed wait lasts: no other wait is printed before it."""

    def __call__(self, retry_state: RetryCallState) -> float:
        """Return the seconds to wait before the next attempt."""
        outcome = retry_state.outcome
        error = outcome.exception() if outcome else None
        seconds = requested_wait(error) if error else None
        call = call_in_flight()
        if call:
            call.asked_wait = ""
        if error is None:
            return self.backoff(retry_state)
        if seconds is None:
            waited = self.backoff(retry_state)
            sentence = f"{self.who}: {_failure(error)}, trying again in {_shown(waited)}"
        else:
            waited = min(seconds * (1 + SPREAD * random.random()), LONGEST_S)
            sentence = self._sentence(seconds, kind_and_status(error)[1])
        if call and self.clock() >= self.printed_until:
            self.printed_until = self.clock() + waited
            call.asked_wait = sentence
        return waited

    def _sentence(self, seconds: float, status: int | None) -> str:
        reason = f" ({status})" if status else ""
        sentence = f"{self.who}: asked to wait {_shown(seconds)}{reason}"
        if seconds > LONGEST_S:
            sentence += f", waiting {_shown(LONGEST_S)}, the maximum"
        return f"{sentence}; trying again"


def _failure(error: BaseException) -> str:
    """Return in a few words how an attempt failed: its HTTP status, else its kind."""
    kind, status = kind_and_status(error)
    if status:
        return f"HTTP {status}"
    if "Timeout" in kind:
        return "no reply in time"
    return "connection error" if "Connect" in kind else kind


def _shown(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def obey_waits(model: Model) -> Model:
    """Make a model wait before a retry as long as its provider asks; return the same model."""
    # The same backoff as Inspect's, which cannot be imported, unless the provider has its own.
    backoff = model.api.retry_wait() or wait_exponential_jitter(initial=3, max=30 * 60, jitter=3)
    wait = RetryWait(provider_of(str(model)), backoff)
    cast(Any, model.api).retry_wait = lambda: wait
    return model
