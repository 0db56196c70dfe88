"""The HTTP endpoints: three chat APIs (dialects), token counts, models, metrics and traces."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.harness.files import parse_json
from podium.harness.ledger.call import plain
from podium.harness.ledger.details import trace_json
from podium.harness.ledger.served import read_trace
from podium.harness.listener import Access, ErrorReply, with_access
from podium.serving.access_keys import Keys
from podium.serving.anthropic_messages import AnthropicMessages, count_tokens
from podium.serving.chat import ChatCompletions
from podium.serving.exchange import Dialect, Refusal, RequestBill, ServedRequest, StreamEvent
from podium.serving.responses import OpenAIResponses
from podium.serving.service import (
    ModelService,
    PendingRequest,
    client_gone,
    new_trace,
    servers_before,
)

BEAT_S = 2.0
"""Seconds between events while a stream waits for its reply: clients give up after silence."""
MOST_BYTES = 32 * 1024 * 1024
"""Maximum request body, in bytes."""
DISCARDED = 4
"""Drain a body up to this multiple of `MOST_BYTES`, so that the client can read the 413."""
BODY_S = 60.0
CHAT, RESPONSES, MESSAGES = ChatCompletions(), OpenAIResponses(), AnthropicMessages()
DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
}
USE = f"Use POST with one of: {', '.join(DIALECTS)}."
NO_RETRY = frozenset({"out_of_budget", "loop", "unsupported_parameter"})
"""Kinds of refusals that a client's automatic retry cannot resolve."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of the HTTP application of `podium serve`."""

    keys: Keys
    access: Access
    name: str
    """This server's random id in the header `x-podium-via`, which detects loops."""
    grace_s: float = 30
    beat_s: float = BEAT_S


def model_app(make: Callable[[], ModelService], settings: ServerSettings) -> ASGIApp:
    """Return the ASGI application; it calls `make` in the server's event loop."""

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[None]:
        application.state.service = service = make()
        yield
        await service.drain(settings.grace_s)
        await service.close()

    endpoints = _Endpoints(settings)
    gets: Mapping[str, _Endpoint] = {
        "/health": endpoints.health,
        "/ready": endpoints.ready,
        "/metrics": endpoints.metrics,
        "/v1/models": endpoints.models,
        "/v1/models/{id:path}": endpoints.model,
        "/v1/traces/{id}": endpoints.trace,
    }
    posts = {**dict.fromkeys(DIALECTS, endpoints.completion)}
    posts["/v1/messages/count_tokens"] = endpoints.count_tokens
    application = Starlette(
        routes=[
            *(Route(path, _told(endpoint), methods=["POST"]) for path, endpoint in posts.items()),
            *(Route(path, _told(endpoint), methods=["GET"]) for path, endpoint in gets.items()),
        ],
        exception_handlers={HTTPException: _not_here},
        lifespan=lifespan,
    )
    return _identified(with_access(application, settings.access, _access_replies))


_Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Endpoints:
    settings: ServerSettings

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        service = _service(request)
        service.refuse_stopping()
        return JSONResponse({"status": "ready", "in_flight": len(service.in_flight)})

    async def metrics(self, request: Request) -> Response:
        self.settings.keys.caller(request.headers)
        content, kind = _service(request).telemetry.render()
        return Response(content, media_type=kind)

    async def models(self, request: Request) -> Response:
        self.settings.keys.caller(request.headers)
        return JSONResponse(_service(request).models.listing())

    async def model(self, request: Request) -> Response:
        self.settings.keys.caller(request.headers)
        return JSONResponse(_service(request).models.entry(request.path_params["id"]))

    async def trace(self, request: Request) -> Response:
        caller, id = self.settings.keys.caller(request.headers), request.path_params["id"]
        folder = _service(request).log_dir
        trace = await anyio.to_thread.run_sync(read_trace, folder, id)
        if trace is None or trace.key != caller.name:  # other keys' traces stay private
            raise Refusal(
                404,
                "not_found",
                f"This key has no trace {id!r:.60}. Use an id from x-podium-trace.",
            )
        return JSONResponse(trace_json(trace, folder))

    async def count_tokens(self, request: Request) -> Response:
        self.settings.keys.caller(request.headers)
        service = _service(request)
        query = await MESSAGES.read_count(await _body(request))
        return JSONResponse(await count_tokens(query, service.answering(query.model)))

    async def completion(self, request: Request) -> Response:
        self._refuse_loop(request.headers)
        caller = self.settings.keys.caller(request.headers)
        dialect = DIALECTS[request.url.path]
        query = await dialect.read(await _body(request))
        pending = _service(request).begin(_trace(request), query, caller, request.headers)
        if query.stream:
            return self._streamed(dialect, query, pending)
        return await _whole(request, dialect, pending)

    def _refuse_loop(self, headers: Headers) -> None:
        if self.settings.name in servers_before(headers):
            sentence = (
                "This request already passed this server: its pool calls itself. Change the pool."
            )
            raise Refusal(508, "loop", sentence)

    def _streamed(
        self, dialect: Dialect, query: ServedRequest, pending: PendingRequest
    ) -> Response:
        return EventSourceResponse(
            _events(dialect, query, pending, self.settings.beat_s),
            headers=_trace_header(pending.trace),
            ping=0,  # no SSE comments: clients' idle timers ignore them
            sep="\n",
            shutdown_event=anyio.Event(),
            shutdown_grace_period=self.settings.grace_s,
        )


async def _events(
    dialect: Dialect, query: ServedRequest, pending: PendingRequest, beat_s: float
) -> AsyncGenerator[ServerSentEvent]:
    writer = dialect.stream(query, pending.trace, int(pending.started.timestamp()))
    try:
        for event in writer.begin():
            yield _sent(event)
        async for step in pending.beats(beat_s):
            for event in writer.beat(step):
                yield _sent(event)
        try:
            ending = writer.finish(await pending.reply())
        except Refusal as refusal:
            ending = writer.fail(refusal)
        for event in ending:
            yield _sent(event)
    finally:  # the client may have disconnected
        pending.hang_up(client_gone())


def _sent(event: StreamEvent) -> ServerSentEvent:
    return ServerSentEvent(data=event.data, event=event.name, sep="\n")


async def _whole(request: Request, dialect: Dialect, pending: PendingRequest) -> Response:
    gone = asyncio.create_task(_gone(request, pending))
    try:
        reply = await pending.reply()
    except Refusal as refusal:
        body = dialect.error(refusal, pending.trace)
        return _refused(refusal, body, _bill_headers(pending.trace, pending.bill))
    finally:
        gone.cancel()
    headers = _bill_headers(pending.trace, reply.bill)
    return JSONResponse(dialect.reply(pending.request, reply), headers=headers)


async def _gone(request: Request, pending: PendingRequest) -> None:
    """Stop new calls of a request when its client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    pending.hang_up(client_gone())


async def _body(request: Request) -> Mapping[str, Any]:
    """Return a request's body, a JSON object; Refusal if it is no object, too long or too slow."""
    raw = await _bytes(request)
    try:
        value: object = parse_json(raw)
    except (ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        sentence = f"The body is not valid JSON ({reason}). Send a JSON object."
        raise Refusal(400, "invalid_request", sentence) from None
    if not isinstance(value, dict):
        raise Refusal(400, "invalid_request", "The body is not a JSON object. Send one.")
    return cast(Mapping[str, Any], value)


async def _bytes(request: Request) -> bytes:
    if (packed := request.headers.get("content-encoding", "identity")) != "identity":
        sentence = f"Content-Encoding {packed!r:.40} is not supported. Send the body uncompressed."
        raise Refusal(415, "invalid_request", sentence)
    raw, size = bytearray(), 0
    try:
        with anyio.fail_after(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > DISCARDED * MOST_BYTES:
                    break
                raw += chunk if size <= MOST_BYTES else b""
    except TimeoutError:
        sentence = f"The body did not arrive within {BODY_S:g} s. Send the request again."
        raise Refusal(408, "invalid_request", sentence) from None
    except ClientDisconnect:
        raise client_gone() from None
    if size > MOST_BYTES:
        sentence = f"The maximum body is {MOST_BYTES:,} bytes, not {size:,}. Send a smaller one."
        raise Refusal(413, "too_large", sentence)
    return bytes(raw)


def _told(endpoint: _Endpoint) -> _Endpoint:
    """Return an endpoint that answers each exception with an error body in the client's dialect."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            failure = refusal
        except Exception as error:  # its type only: a message could contain a prompt
            sentence = f"The server failed ({type(error).__name__}). Send the request again."
            failure = Refusal(500, "failed", sentence)
        return _refused(failure, _dialect_of(request).error(failure, _trace(request)), {})

    return answer


def _refused(refusal: Refusal, body: Mapping[str, Any], headers: Mapping[str, str]) -> JSONResponse:
    extra = {"x-should-retry": "false"} if refusal.kind in NO_RETRY else dict[str, str]()
    if refusal.retry_after_s is not None:
        extra["retry-after"] = str(refusal.retry_after_s)
    if refusal.status == 401:
        extra["www-authenticate"] = "Bearer"
    return JSONResponse(body, refusal.status, {**headers, **extra})


async def _not_here(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    allowed = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    sentence = f"This server has no endpoint {request.method} {request.url.path:.100}. {USE}"
    refusal = Refusal(status, "not_found", sentence)
    return _refused(refusal, _dialect_of(request).error(refusal, _trace(request)), allowed)


def _access_replies(scope: Scope) -> ErrorReply:
    """Return the function that refuses a request whose host or origin is not allowed."""
    request = Request(scope)

    def refused(status: int, sentence: str, kind: str, headers: dict[str, str]) -> JSONResponse:
        refusal = Refusal(status, "forbidden", sentence)
        return _refused(refusal, _dialect_of(request).error(refusal, _trace(request)), headers)

    return refused


def _dialect_of(request: Request) -> Dialect:
    return MESSAGES if request.url.path.startswith("/v1/messages") else CHAT


def _service(request: Request) -> ModelService:
    return cast(ModelService, request.app.state.service)


def _trace(request: Request) -> str:
    return str(request.scope["state"]["trace"])


def _trace_header(trace: str) -> dict[str, str]:
    return {"x-podium-trace": f"/v1/traces/{trace}"}


def _bill_headers(trace: str, bill: RequestBill | None) -> dict[str, str]:
    headers = _trace_header(trace)
    if bill is None:
        return headers
    amounts = {
        "x-podium-calls": bill.calls,
        "x-litellm-response-cost": plain(bill.usd),
        "x-litellm-total-tokens": bill.total_tokens,
    }
    return headers | {name: str(value) for name, value in amounts.items() if value is not None}


def _identified(application: ASGIApp) -> ASGIApp:
    """Return an application that gives each request an id, and sends the id with the reply."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        trace = new_trace()
        scope["state"] = {**scope.get("state", {}), "trace": trace}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = headers["request-id"] = trace  # OpenAI's, Anthropic's
            await send(message)

        await application(scope, receive, sent)

    return answer
