"""What is asked badly: each dialect's own error object, a request id, and nothing lost."""

import json
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from podium.serving.access_keys import new_key
from podium.serving.exchange import DialectName
from tests.podium.serving.endpoint import Endpoint, endpoint
from tests.podium.serving.reply_checks import (
    DIALECTS,
    PATHS,
    Received,
    body_of,
    check_books,
    check_refusal,
    check_streamed,
)
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN
PLANS, ALONE = "podium/moa-lite", "podium/single:abacus"
QUESTION = "What is 12 * 13?"
MALFORMED = {
    "cut": b'{"model": "podium/moa-lite", "messages": [',
    "no object": b"[1, 2]",
    "empty": b"",
    "no unicode": b'{"model": "\xff\xfe"}',
    "not a number of JSON": b'{"model": NaN}',
    "nested": b"[" * 100_000,
    "a huge number": b'{"model": ' + b"9" * 10_000 + b"}",
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
IMAGES: dict[DialectName, Any] = {
    "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    "messages": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    },
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Endpoint]:
    folder = tmp_path_factory.mktemp("bad-requests")
    with endpoint(folder, "moa-lite", "single:abacus") as found:
        assert found.post(PATHS["chat"], body_of("chat", QUESTION, PLANS)).status_code == 200
        yield found
    check_books(found.log_dir)


def refused(served: Endpoint, dialect: DialectName, body: Any, status: int, **headers: str) -> str:
    """Return what a refusal says; nothing is written down of it."""
    before = len(served.lines("request", "intent"))
    said = Received.of(dialect, served.post(PATHS[dialect], body, **headers))
    assert len(served.lines("request", "intent")) == before
    return check_refusal(said, status)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_json_object_is_refused(
    name: str, dialect: DialectName, served: Endpoint
) -> None:
    assert refused(served, dialect, MALFORMED[name], 400)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_model_is_told_which_are_near(dialect: DialectName, served: Endpoint) -> None:
    asked = body_of(dialect, QUESTION, "podium/moa-light")
    assert PLANS in refused(served, dialect, asked, 404)
    asked = body_of(dialect, QUESTION, "\x00" * 5000)
    assert len(refused(served, dialect, asked, 404)) < 2000


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("model", [None, 7, "", ["podium/moa-lite"]])
def test_a_model_that_is_no_name_is_refused(
    model: object, dialect: DialectName, served: Endpoint
) -> None:
    asked = {**body_of(dialect, QUESTION, ""), "model": model}
    said = Received.of(dialect, served.post(PATHS[dialect], asked))
    check_refusal(said, 404 if model == "" and said.status == 404 else 400)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("messages", [[], None, {}, [None], [[]], [{"role": "user"}], [{}], 3])
def test_messages_that_are_none_are_refused(
    messages: object, dialect: DialectName, served: Endpoint
) -> None:
    field = "input" if dialect == "responses" else "messages"
    assert refused(served, dialect, {**body_of(dialect, "", PLANS), field: messages}, 400)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_images_are_refused_by_a_system_that_plans(dialect: DialectName, served: Endpoint) -> None:
    field = "input" if dialect == "responses" else "messages"
    turn = {"role": "user", "content": [IMAGES[dialect]]}
    assert "image" in refused(served, dialect, {**body_of(dialect, "", PLANS), field: [turn]}, 400)


@pytest.mark.parametrize("asked", [{"n": 3}, {"logprobs": True}, {"best_of": 2}, {"n": "x"}])
@pytest.mark.parametrize("model", [PLANS, ALONE])
def test_what_cannot_be_honoured_is_refused_by_its_name(
    model: str, asked: dict[str, Any], served: Endpoint
) -> None:
    (name,) = asked
    said = served.post(PATHS["chat"], body_of("chat", QUESTION, model, **asked))
    assert name in check_refusal(Received.of("chat", said), 400)
    assert said.json()["error"]["param"] == name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_method_or_path_is_the_dialects_error_too(
    dialect: DialectName, served: Endpoint
) -> None:
    check_refusal(Received.of(dialect, served.get(PATHS[dialect])), 405)
    more = served.post(f"{PATHS[dialect]}/more", {})
    check_refusal(Received.of(dialect, more), 404)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fifty_megabytes_are_refused_and_not_held(dialect: DialectName, served: Endpoint) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"model": "'
        for _ in range(50):
            yield b"x" * 1_000_000

    said = httpx.post(f"{served.url}{PATHS[dialect]}", content=chunks(), timeout=60)
    assert "33,554,432 bytes" in check_refusal(Received.of(dialect, said), 413)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Endpoint, str, str]]:
    folder = tmp_path_factory.mktemp("keys")
    mine, other = (new_key(folder / "keys.toml", name) for name in ("mine", "other"))
    with endpoint(folder, "single:abacus", keys=folder / "keys.toml") as found:
        yield found, f"Bearer {mine}", f"Bearer {other}"
    check_books(found.log_dir)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer podium-guessed", "Basic eDp5", "x" * 9000])
def test_a_key_that_is_not_known_asks_nothing(
    shown: str, dialect: DialectName, keyed: tuple[Endpoint, str, str]
) -> None:
    served, _, _ = keyed
    asked = body_of(dialect, QUESTION, ALONE)
    assert "guessed" not in refused(served, dialect, asked, 401, authorization=shown)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_trace_is_for_the_key_that_paid_alone(
    dialect: DialectName, keyed: tuple[Endpoint, str, str]
) -> None:
    served, mine, other = keyed
    asked = body_of(dialect, QUESTION, ALONE)
    said = served.post(PATHS[dialect], asked, authorization=mine)
    path = said.headers["x-podium-trace"]
    assert served.get(path, authorization=mine).json()["question"] == said.headers["x-request-id"]
    for answer, status in ((served.get(path, authorization=other), 404), (served.get(path), 401)):
        check_refusal(Received.of("chat", answer), status)


def test_a_body_that_comes_a_byte_at_a_time_is_answered(served: Endpoint) -> None:
    body = json.dumps(body_of("chat", QUESTION, ALONE)).encode()

    def drops() -> Iterator[bytes]:
        for at in range(len(body)):
            time.sleep(0.002)
            yield body[at : at + 1]

    said = httpx.post(f"{served.url}{PATHS['chat']}", content=drops(), timeout=60)
    assert said.status_code == 200


def test_a_body_that_ends_early_is_nothing(served: Endpoint) -> None:
    before = len(served.lines("request"))
    with connected(served) as taken:
        taken.sendall(b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\n")
        taken.sendall(b'content-length: 1000\r\n\r\n{"model"')
    assert served.get("/health").status_code == 200
    assert len(served.lines("request")) == before


@contextmanager
def connected(served: Endpoint) -> Generator[socket.socket]:
    """Yield a bare connection."""
    url = httpx.URL(served.url)
    with socket.create_connection((url.host, url.port), timeout=20) as taken:
        yield taken


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_is_read_slowly_is_whole(dialect: DialectName, served: Endpoint) -> None:
    body = body_of(dialect, QUESTION, PLANS, stream=True)
    with httpx.stream("POST", f"{served.url}{PATHS[dialect]}", json=body, timeout=60) as stream:
        pieces = []
        for piece in stream.iter_bytes(400):
            time.sleep(0.005)
            pieces.append(piece)
        text = b"".join(pieces).decode()
        received = Received(dialect, stream.status_code, dict(stream.headers), text)
    check_streamed(received, served.log_dir)


def test_curl_needs_no_content_type(served: Endpoint) -> None:
    body = json.dumps(body_of("chat", QUESTION, ALONE))
    words = ["curl", "-s", f"{served.url}{PATHS['chat']}", "-d", body]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["choices"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_packed_body_is_refused(dialect: DialectName, served: Endpoint) -> None:
    asked = body_of(dialect, QUESTION, ALONE)
    assert "gzip" in refused(served, dialect, asked, 415, **{"content-encoding": "gzip"})
