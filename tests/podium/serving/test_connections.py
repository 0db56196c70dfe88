"""Clients that send or read slowly are closed, and others are answered meanwhile; real sockets."""

import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from podium.harness.listener import ConnectionLimits, bound_socket, listen
from tests.harness.in_thread import served

WAITED_S = 10.0
LARGE = b"x" * (16 << 20)
BEGUN = b"GET /health HTTP/1.1\r\nHost: a\r\n"
WHOLE = BEGUN + b"\r\n"
BODY = b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"
UNREAD = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
QUICK = ConnectionLimits(most=1000, headers_s=0.2, body_s=0.2, unread_s=0.2, idle_s=0.2)
PATIENT = ConnectionLimits(most=8, headers_s=60, body_s=60, unread_s=60, idle_s=60)


async def health(request: Request) -> Response:
    return PlainTextResponse("ok")


async def body(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def large(request: Request) -> Response:
    return Response(LARGE)


async def never(request: Request) -> Response:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return PlainTextResponse("gone")


@contextmanager
def server(limits: ConnectionLimits) -> Generator[tuple[str, int]]:
    routes = [Route(f"/{one.__name__}", one) for one in (health, large, never)]
    application = Starlette(routes=[*routes, Route("/body", body, methods=["POST"])])
    with bound_socket("127.0.0.1", 0) as taken:
        listen(taken)
        address = taken.getsockname()
        with served(application, taken, limits=limits):
            yield address


def opened(address: tuple[str, int], first: bytes) -> socket.socket:
    """Return a connection on which something was sent; its answer is not read yet."""
    connection = socket.create_connection(address, timeout=WAITED_S)
    connection.sendall(first)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Wait for the end of a connection; whatever comes before it is let go."""
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def is_answered(connection: socket.socket) -> bool:
    """Read one answer of `health`: its headers and its body come apart."""
    received = b""
    while piece := connection.recv(1 << 16):
        received += piece
        if received.endswith(b"ok"):
            return True
    return False


def received_from(connection: socket.socket) -> int:
    """Return how many bytes come before a connection ends."""
    received = 0
    with suppress(ConnectionError):
        while piece := connection.recv(1 << 18):
            received += len(piece)
    return received


def answered(address: tuple[str, int]) -> float:
    """Return the seconds that a client that behaves had to wait."""
    began = time.monotonic()
    with httpx.Client(trust_env=False, timeout=WAITED_S) as client:
        assert client.get(f"http://{address[0]}:{address[1]}/health").text == "ok"
    return time.monotonic() - began


@pytest.fixture(scope="module")
def quick() -> Generator[tuple[str, int]]:
    with server(QUICK) as address:
        yield address


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", BEGUN, BODY, WHOLE, WHOLE + b"\r\n", WHOLE + BEGUN],
    ids=["nothing", "a-byte", "headers", "body", "kept", "blank-line", "later-headers"],
)
def test_a_client_that_keeps_a_server_waiting_is_closed(
    quick: tuple[str, int], sent: bytes
) -> None:
    with opened(quick, sent) as connection:
        assert is_closed(connection)
    assert answered(quick) < WAITED_S


@pytest.mark.parametrize("sent", [BEGUN, BODY, WHOLE], ids=["headers", "body", "kept"])
def test_a_byte_now_and_then_does_not_keep_a_connection_open(
    quick: tuple[str, int], sent: bytes
) -> None:
    with opened(quick, sent) as connection:
        connection.setblocking(False)
        end = time.monotonic() + WAITED_S
        while time.monotonic() < end:
            time.sleep(0.02)
            try:
                connection.send(b"\r\n" if sent == WHOLE else b"a")
                if connection.recv(1 << 16) == b"":
                    return
            except BlockingIOError:
                continue
            except OSError:
                return
    pytest.fail("it was still open")


def test_an_answer_that_nobody_reads_is_not_kept(quick: tuple[str, int]) -> None:
    with opened(quick, UNREAD) as connection:
        time.sleep(0.8)
        assert received_from(connection) < len(LARGE)


def test_an_answer_that_is_read_in_pieces_is_given_whole(quick: tuple[str, int]) -> None:
    with opened(quick, UNREAD) as connection:
        received = 0
        while received < len(LARGE):
            piece = connection.recv(1 << 18)
            assert piece
            received += len(piece)
            time.sleep(0.005)


def test_a_connection_between_requests_is_kept_for_its_time() -> None:
    with server(PATIENT) as address, opened(address, WHOLE) as connection:
        assert is_answered(connection)
        time.sleep(0.3)
        connection.sendall(WHOLE)
        assert is_answered(connection)


@pytest.mark.parametrize("sent", [BEGUN, BODY, UNREAD, WHOLE], ids=["head", "body", "read", "kept"])
def test_a_good_request_is_answered_among_more_slow_clients_than_there_is_room_for(
    sent: bytes,
) -> None:
    with server(PATIENT) as address, ExitStack() as slow:
        connections = [slow.enter_context(opened(address, sent)) for _ in range(40)]
        assert answered(address) < WAITED_S
        assert is_closed(connections[0])


def test_a_kept_connection_stays_while_others_have_not_finished_their_headers() -> None:
    with server(PATIENT) as address, ExitStack() as slow:
        kept = slow.enter_context(opened(address, WHOLE))
        assert is_answered(kept)
        for _ in range(40):
            slow.enter_context(opened(address, BEGUN))
        assert answered(address) < WAITED_S
        kept.sendall(WHOLE)
        assert is_answered(kept)


def test_requests_that_are_being_answered_are_never_closed_for_new_ones() -> None:
    asked = b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n"
    with server(PATIENT) as address, ExitStack() as held:
        busy = [held.enter_context(opened(address, asked)) for _ in range(PATIENT.per_address)]
        time.sleep(0.2)  # until each of them has reached the application
        refused = held.enter_context(opened(address, b""))
        assert refused.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
        busy.pop().close()
        time.sleep(0.2)
        assert answered(address) < WAITED_S


def test_hundreds_of_clients_at_once_are_all_answered() -> None:
    with server(ConnectionLimits()) as address, ExitStack() as held:
        many = [held.enter_context(opened(address, WHOLE)) for _ in range(400)]
        assert all(is_answered(one) for one in many)
