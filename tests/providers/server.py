"""A local HTTP server that speaks all dialects, follows a script, and writes its own bill."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from podium.harness.records import Usage
from tests.providers.anthropic_dialect import MESSAGES
from tests.providers.batches import BatchDesk
from tests.providers.bill import Bill, Line
from tests.providers.dialect import Asked, Dialect, Json, Said, server_sent
from tests.providers.google_dialect import GENERATE_CONTENT
from tests.providers.openai_dialects import CHAT, RESPONSES
from tests.providers.script import Act, Fates, Script

PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/models/{call}": GENERATE_CONTENT,
    "/v1beta/models/{call}": GENERATE_CONTENT,
}
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")


class CutOff(Exception):
    """What breaks a connection in the middle of a reply."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running provider."""

    url: str
    bill: Bill
    batches: BatchDesk

    @property
    def openai(self) -> str:
        """Base URL for Inspect's `openai/`, `openai-api/` and our `fugu/`."""
        return f"{self.url}/v1"

    @property
    def anthropic(self) -> str:
        """Base URL for `anthropic/`."""
        return self.url

    @property
    def google(self) -> str:
        """Base URL for `google/`."""
        return self.url


@contextmanager
def serve(script: Script = ()) -> Generator[Server]:
    """Yield a provider that runs until the block ends; its bill stays readable after.

    It is a thread of this process with an event loop of its own, on a free port of this machine.
    """
    bill = Bill()
    desk = _Desk(Fates(script), bill)
    batches = BatchDesk(desk.answer_row)
    routes = [desk.route(path, one) for path, one in PATHS.items()]
    with hosted(Starlette(routes=[*batches.routes, *routes])) as url:
        yield Server(url, bill, batches)


@contextmanager
def hosted(app: Starlette) -> Generator[str]:
    """Yield the URL of an app that runs until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = uvicorn.Config(
            _transported(app), log_level="critical", lifespan="off", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass(frozen=True, slots=True)
class _Desk:
    """Takes requests."""

    fates: Fates
    bill: Bill

    def route(self, path: str, dialect: Dialect) -> Route:
        async def answer(request: Request) -> Response:
            asked = dialect.asked(await request.json(), request.path_params)
            act = self.fates.next(asked)
            line = self.entry(dialect, asked, act, _key(request))
            self.bill.lines.append(line)
            while len(self.bill.lines) < act.waits_for:
                await asyncio.sleep(0.005)
            await asyncio.sleep(act.wait_s)
            if act.ending == "stalled":
                await _until_left(request, act.stall_s)
            if act.ending == "dropped":
                request.scope["transport"].abort()
            return _reply(dialect, asked, act, line)

        return Route(path, answer, methods=["POST"])

    def answer_row(self, dialect: Dialect, body: Json, key: str) -> tuple[str, int, Json]:
        asked = dialect.asked(body, {})
        act = self.fates.next(asked)
        line = self.entry(dialect, asked, act, key.removeprefix("Bearer "))
        self.bill.lines.append(line)
        if act.status != 200:
            return act.ending, act.status, dialect.error(act.status)
        said = Said(line.response_id, line.served, act.text, act.tell(line.usage))
        return act.ending, 200, json.loads(_written(dialect.body(said), act))

    def entry(self, dialect: Dialect, asked: Asked, act: Act, key: str) -> Line:
        number = len(self.bill.lines) + 1
        return Line(
            number=number,
            at=time.time(),
            dialect=dialect.name,
            model=asked.model,
            served=act.served or asked.model,
            request_id=act.request_id or f"req-{number}",
            response_id=f"resp-{act.request_id or number}",
            status=act.status,
            ending=act.ending,
            billed=act.on_the_bill,
            usage=act.usage or _by_length(asked.prompt, act.text),
            service=asked.service,
            streamed=asked.streamed,
            key=key,
            prompt=asked.prompt,
        )


def _transported(app: Starlette) -> Callable[..., Awaitable[None]]:
    """Return an app whose requests know uvicorn's connection, which ASGI has no name for."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        scope["transport"] = send.__self__.transport  # pyright: ignore[reportFunctionMemberAccess]
        await app(scope, receive, send)

    return run


def _reply(dialect: Dialect, asked: Asked, act: Act, line: Line) -> Response:
    # No client closes its connections when an eval ends; one that is left open is a warning.
    headers = {dialect.request_id_header: line.request_id, "connection": "close"}
    if act.gateway:
        headers[act.gateway] = f"gw-{line.number}"
    if act.status != 200:
        if act.retry_after is not None:
            headers["retry-after"] = str(act.retry_after)
        said = _written(dialect.error(act.status), act)
        if act.echoes:
            headers[dialect.request_id_header] = headers["x-key"] = line.key
            echo = f"Incorrect API key provided: {line.key}; scripted"
            said = said.replace(b"scripted", echo.encode())
        return _sent(said, act, headers)
    said = Said(line.response_id, line.served, act.text, act.tell(line.usage))
    if asked.streamed:
        headers["content-type"] = "text/event-stream"
        stream = act.content or server_sent(dialect.events(said), dialect.ends_with_done)
        return _sent(stream, act, headers)
    return _sent(_written(dialect.body(said), act), act, headers)


def _written(body: Json, act: Act) -> bytes:
    """Return the bytes of a body; JSON as Python writes it has an escape for half a character."""
    if act.content is not None:
        return act.content
    found = json.loads(json.dumps(body))
    return json.dumps(act.change(found) if act.change else found).encode()


def _sent(content: bytes, act: Act, headers: dict[str, str]) -> Response:
    wanted = {"content-type": "application/json", **headers, **act.headers}
    headers = {name: value for name, value in wanted.items() if value is not None}
    if act.ending == "dripped":
        return StreamingResponse(_drops(content), act.status, headers)
    if act.ending != "cut":
        return Response(content, act.status, headers)

    async def half() -> AsyncIterator[bytes]:
        yield content[: len(content) // 2]
        raise CutOff

    headers["content-length"] = str(len(content))
    return StreamingResponse(half(), act.status, headers)


async def _drops(content: bytes, drops: int = 10) -> AsyncIterator[bytes]:
    size = len(content) // drops + 1
    for start in range(0, len(content), size):
        yield content[start : start + size]
        await asyncio.sleep(0.02)


async def _until_left(request: Request, at_most_s: float) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < at_most_s and not await request.is_disconnected():
        await asyncio.sleep(0.02)


def _by_length(prompt: str, text: str) -> Usage:
    return Usage(input=len(prompt.encode()) // 4 + 1, output=len(text.encode()) // 4 + 1)


def _key(request: Request) -> str:
    found = (request.headers.get(name) for name in KEY_HEADERS)
    return next((value.removeprefix("Bearer ") for value in found if value), "")
