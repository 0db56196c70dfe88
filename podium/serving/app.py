"""The endpoints: what clients of three dialects ask, and what operators and reviewers do."""

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
"""Between events of a stream that waits: clients give up after some seconds of silence."""
MOST_BYTES = 32 * 1024 * 1024
"""A request's body may be so long."""
DISCARDED = 4
"""So many times that much is read and let go, for a client to hear that it is too much."""
BODY_S = 60.0
CHAT, RESPONSES, MESSAGES = ChatCompletions(), OpenAIResponses(), AnthropicMessages()
DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
}
NO_RETRY = frozenset({"out_of_budget", "loop", "unsupported_parameter"})
"""Refusals that asking again, as clients do by themselves, does not lift."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What an application is made with."""

    keys: Keys
    access: Access
    name: str
    """Of this server, in `x-podium-via`."""
    grace_s: float = 30
    beat_s: float = BEAT_S


def model_app(make: Callable[[], ModelService], settings: ServerSettings) -> ASGIApp:
    """Return the ASGI application; the service is made in the event loop that serves."""

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
            *(Route(path, _told(one), methods=["POST"]) for path, one in posts.items()),
            *(Route(path, _told(one), methods=["GET"]) for path, one in gets.items()),
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
        found = await anyio.to_thread.run_sync(read_trace, folder, id)
        if found is None or found.key != caller.name:  # nobody is told of others' requests
            raise Refusal(404, "not_found", f"There is no trace {id!r:.60} of yours here.")
        return JSONResponse(trace_json(found, folder))

    async def count_tokens(self, request: Request) -> Response:
        self.settings.keys.caller(request.headers)
        service = _service(request)
        asked = await MESSAGES.read_count(await _body(request))
        return JSONResponse(await count_tokens(asked, service.answering(asked.model)))

    async def completion(self, request: Request) -> Response:
        self._refuse_loop(request.headers)
        caller = self.settings.keys.caller(request.headers)
        dialect = DIALECTS[request.url.path]
        asked = await dialect.read(await _body(request))
        pending = _service(request).begin(_trace(request), asked, caller, request.headers)
        if asked.stream:
            return self._streamed(dialect, asked, pending)
        return await _whole(request, dialect, pending)

    def _refuse_loop(self, headers: Headers) -> None:
        if self.settings.name in servers_before(headers):
            said = "This request has come through this server before: its pool reaches itself."
            raise Refusal(508, "loop", said)

    def _streamed(
        self, dialect: Dialect, asked: ServedRequest, pending: PendingRequest
    ) -> Response:
        return EventSourceResponse(
            _events(dialect, asked, pending, self.settings.beat_s),
            headers=_trace_header(pending.trace),
            ping=0,  # comments, which are no events to a client's idle timer
            sep="\n",
            shutdown_event=anyio.Event(),
            shutdown_grace_period=self.settings.grace_s,
        )


async def _events(
    dialect: Dialect, asked: ServedRequest, pending: PendingRequest, beat_s: float
) -> AsyncGenerator[ServerSentEvent]:
    writer = dialect.stream(asked, pending.trace, int(pending.started.timestamp()))
    try:
        for one in writer.begin():
            yield _sent(one)
        async for step in pending.beats(beat_s):
            for one in writer.beat(step):
                yield _sent(one)
        try:
            ending = writer.finish(await pending.reply())
        except Refusal as refusal:
            ending = writer.fail(refusal)
        for one in ending:
            yield _sent(one)
    finally:  # whoever reads may have gone
        pending.hang_up(client_gone())


def _sent(event: StreamEvent) -> ServerSentEvent:
    return ServerSentEvent(data=event.data, event=event.name, sep="\n")


async def _whole(request: Request, dialect: Dialect, pending: PendingRequest) -> Response:
    gone = asyncio.create_task(_gone(request, pending))
    try:
        reply = await pending.reply()
    except Refusal as refusal:
        said = dialect.error(refusal, pending.trace)
        return _refused(refusal, said, _bill_headers(pending.trace, pending.bill))
    finally:
        gone.cancel()
    headers = _bill_headers(pending.trace, reply.bill)
    return JSONResponse(dialect.reply(pending.request, reply), headers=headers)


async def _gone(request: Request, pending: PendingRequest) -> None:
    """Hang up when the client does."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    pending.hang_up(client_gone())


async def _body(request: Request) -> Mapping[str, Any]:
    """Return a body, a JSON object; Refusal for one that is none, too long or too slow."""
    raw = await _bytes(request)
    try:
        found: object = parse_json(raw)
    except (ValueError, RecursionError) as error:
        said = f"The body is no JSON ({type(error).__name__}): {str(error)[:200]}"
        raise Refusal(400, "invalid_request", said) from None
    if not isinstance(found, dict):
        raise Refusal(400, "invalid_request", "The body is to be a JSON object.")
    return cast(Mapping[str, Any], found)


async def _bytes(request: Request) -> bytes:
    if (packed := request.headers.get("content-encoding", "identity")) != "identity":
        said = f"A body that is packed as {packed!r:.40} is not read here: send it as it is."
        raise Refusal(415, "invalid_request", said)
    raw, size = bytearray(), 0
    try:
        with anyio.fail_after(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > DISCARDED * MOST_BYTES:
                    break
                raw += chunk if size <= MOST_BYTES else b""
    except TimeoutError:
        said = f"The body did not come within {BODY_S:g} s."
        raise Refusal(408, "invalid_request", said) from None
    except ClientDisconnect:
        raise client_gone() from None
    if size > MOST_BYTES:
        raise Refusal(413, "too_large", f"A request may have {MOST_BYTES:,} bytes, not {size:,}.")
    return bytes(raw)


def _told(endpoint: _Endpoint) -> _Endpoint:
    """Return an endpoint whose refusals are the dialect's own error objects."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            found = refusal
        except Exception as error:  # its type only: a message could hold a prompt
            said = f"The server failed on this request ({type(error).__name__})."
            found = Refusal(500, "failed", said)
        return _refused(found, _dialect_of(request).error(found, _trace(request)), {})

    return answer


def _refused(refusal: Refusal, said: Mapping[str, Any], headers: Mapping[str, str]) -> JSONResponse:
    more = {"x-should-retry": "false"} if refusal.kind in NO_RETRY else dict[str, str]()
    if refusal.retry_after_s is not None:
        more["retry-after"] = str(refusal.retry_after_s)
    if refusal.status == 401:
        more["www-authenticate"] = "Bearer"
    return JSONResponse(said, refusal.status, {**headers, **more})


async def _not_here(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    allowed = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    said = f"There is no {request.method} {request.url.path:.100} here."
    refusal = Refusal(status, "not_found", said)
    return _refused(refusal, _dialect_of(request).error(refusal, _trace(request)), allowed)


def _access_replies(scope: Scope) -> ErrorReply:
    """Return what refuses a request whose host or origin is not let in."""
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
    found = _trace_header(trace)
    if bill is None:
        return found
    told = {
        "x-podium-calls": bill.calls,
        "x-litellm-response-cost": plain(bill.usd),
        "x-litellm-total-tokens": bill.total_tokens,
    }
    return found | {name: str(value) for name, value in told.items() if value is not None}


def _identified(application: ASGIApp) -> ASGIApp:
    """Return an application that gives each request an id, and every answer its request's."""

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
