"""Who a reward service answers: this machine under its own names, and whoever has the token."""

import asyncio
import http.client
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.listener import is_loopback
from podium.harness.rewards.outcome import RewardClient, RewardItem, ServiceRefusal
from podium.harness.rewards.reward_service import read_token
from podium.suites import SUITES
from tests.harness.rewards.service import listening, service_of, train

SUITE = SUITES["practice-integer"]
TOKEN = "a-token-of-some-length"


@contextmanager
def served(token: str = "", *names: str) -> Generator[str]:
    with listening(service_of(train(SUITE, first=2)), token, *names) as url:
        yield url


def status(url: str, path: str = "/rows?suite=practice-integer", **headers: str) -> tuple[int, str]:
    """Return what a GET comes to, and the kind of a refusal; `Host` is sent as it is given."""
    there = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        there.putrequest("GET", path, skip_host=True)
        for name, value in headers.items():
            there.putheader(name.replace("_", "-"), value)
        there.endheaders()
        reply = there.getresponse()
        return reply.status, json.loads(reply.read()).get("kind", "")
    finally:
        there.close()


def test_a_page_that_calls_this_machine_by_a_name_of_its_own_reads_nothing() -> None:
    with served() as url:
        port = urlsplit(url).port
        foreign = (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", "")
        odd = ("127.0.0.1", f"127.0.0.1:{port}@evil.example", "[::1", f"10.0.0.7:{port}")
        for host in (*foreign, *odd):
            assert status(url, Host=host) == (421, "misdirected"), host
        for host in (
            f"127.0.0.1:{port}",
            f"localhost:{port}",
            f"LOCALHOST:{port}",
            f"[::1]:{port}",
        ):
            assert status(url, Host=host)[0] == 200, host


def test_a_page_that_calls_it_by_its_right_name_is_refused_by_its_origin() -> None:
    with served() as url:
        host = urlsplit(url).netloc
        assert status(url, Host=host, Origin="https://evil.example") == (403, "foreign_origin")
        assert status(url, Host=host, Origin="null") == (403, "foreign_origin")
        assert status(url, Host=host, Origin=url)[0] == 200


def test_a_name_that_was_allowed_is_answered() -> None:
    with served("", "trainer.cluster") as url:
        assert status(url, Host="trainer.cluster:8000")[0] == 200


def test_with_a_token_only_who_sends_it_is_answered() -> None:
    with served(TOKEN) as url:
        host = urlsplit(url).netloc
        for said in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN[:-1]}"):
            assert status(url, Host=host, Authorization=said) == (401, "unauthorised"), said
        assert status(url, Host=host) == (401, "unauthorised")
        assert status(url, Host=host, Authorization=f"Bearer {TOKEN}")[0] == 200
        assert status(url, "/counts", Host=host) == (401, "unauthorised")


def test_the_client_sends_the_token_and_says_so_when_it_is_wrong() -> None:
    item = RewardItem(suite=SUITE.name, question=SUITE.load("train")[0].id, completion="?")
    with served(TOKEN) as url:
        (outcome,) = asyncio.run(RewardClient(url, token=TOKEN).score([item]))
        assert outcome.value == 0.0
        with pytest.raises(ServiceRefusal, match="Authorization: Bearer"):
            asyncio.run(RewardClient(url).score([item]))
    assert TOKEN not in repr(RewardClient(url, token=TOKEN))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.1"])
def test_it_listens_beyond_this_machine_only_with_a_token(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reward", "serve", "--suite", SUITE.name, "--host", host]) == 2
    said = capsys.readouterr().err
    assert "--token-file" in said
    assert said.count("\n") == 1


def test_loopback_is_told_from_elsewhere() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "203.0.113.1", "no such host", "")))


def test_a_token_file_holds_one_word_and_others_may_not_read_it(tmp_path: Path) -> None:
    path, said = tmp_path / "token", list[str]()
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert read_token(path, said.append) == TOKEN
    assert said == []
    path.chmod(0o644)
    assert read_token(path, said.append) == TOKEN
    assert "chmod 600" in said[0]
    assert read_token(None, said.append) == ""


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"\xff", b"a\0b", b"x" * 5000])
def test_a_token_file_without_a_token_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(UserError):
        read_token(path, print)
    with pytest.raises(UserError, match="cannot be read"):
        read_token(tmp_path / "none", print)
