"""A time stamp shows by when a root was there, to whom trusts its authority, and nothing else."""

import shutil
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.manifest import (
    FILE,
    QUERY,
    STAMP,
    read_manifest,
    uncovered,
    write_manifest,
)
from podium.reports.audit.anchor import ask, request, stamp_of, store
from tests.reports.audit.authority import Authority, make_authority
from tests.reports.audit.tampered_run import journal

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not on PATH")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority") / "known")


def stamped(home: Path, authority: Authority) -> datetime:
    return store(home, authority.stamp(request(home).read_bytes()), authority.roots)


def test_a_stamp_tells_by_when_the_root_was_there(home: Path, authority: Authority) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert stamp_of(home).verdict == stamp_of(home, authority.roots).verdict == "none"
    when = stamped(home, authority)
    assert before <= when <= datetime.now(UTC)
    assert stamp_of(home).verdict == "unchecked"
    found = stamp_of(home, authority.roots)
    assert (found.verdict, found.said) == ("stamped", when.isoformat())
    assert (home / STAMP).exists()
    assert not (home / QUERY).exists()
    assert uncovered(home) == []


def test_openssl_alone_checks_what_is_kept(home: Path, authority: Authority) -> None:
    stamped(home, authority)
    root = read_manifest(home / FILE).root
    command = ["openssl", "ts", "-verify", "-digest", root, "-in", str(home / STAMP)]
    done = subprocess.run([*command, "-CAfile", str(authority.roots)], capture_output=True)
    assert b"Verification: OK" in done.stdout, done.stderr


def test_an_address_is_asked_and_gets_the_query_alone(
    home: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["manifest", "anchor", str(home), "--ca", str(authority.roots), "--authority"]
    with authority.served() as url:
        assert main([*command, url]) == 0
        assert "the root existed by 20" in capsys.readouterr().out
        assert main([*command, url]) == 2
    assert "stamps are never overwritten" in capsys.readouterr().err
    assert main(["manifest", "verify", str(home), "--ca", str(authority.roots)]) == 0
    assert "Time: stamped: the root existed by 20" in capsys.readouterr().out


def test_an_authority_that_gives_no_stamp_is_named_and_nothing_kept(
    home: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["manifest", "anchor", str(home), "--ca", str(authority.roots), "--authority"]
    with authority.served(status=503) as url:
        assert main([*command, url]) == 2
    assert "answers 503" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for url in (gone, "http://["):
        assert main([*command, url]) == 2
        assert "gave no answer" in capsys.readouterr().err
    with pytest.raises(UserError, match="is not a time stamp"):
        store(home, b"<html>", authority.roots)
    with pytest.raises(UserError, match="refused"):
        store(home, authority.stamp(b"no query"), authority.roots)
    assert not (home / STAMP).exists()


def test_a_stamp_of_another_query_or_root_is_not_kept(
    home: Path, authority: Authority, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(home, other)
    same_root = authority.stamp(request(other).read_bytes())
    request(home)
    with pytest.raises(UserError, match="nonce mismatch"):
        store(home, same_root, authority.roots)
    journal(other, "single:clerk", calls=1)
    (other / QUERY).unlink()
    write_manifest(other)
    (home / QUERY).unlink()
    with pytest.raises(UserError, match="imprint mismatch"):
        store(home, authority.stamp(request(other).read_bytes()), authority.roots)
    assert not (home / STAMP).exists()


def test_an_authority_that_is_not_trusted_or_had_ended_proves_nothing(
    home: Path, authority: Authority, tmp_path: Path
) -> None:
    stranger = make_authority(tmp_path / "stranger")
    with pytest.raises(UserError, match="certificate signature failure"):
        store(home, authority.stamp(request(home).read_bytes()), stranger.roots)
    ended = make_authority(tmp_path / "ended", datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(UserError, match="expired"):
        stamped(home, ended)
    stamped(home, authority)
    assert stamp_of(home, stranger.roots).verdict == "invalid"
    (tmp_path / "text.pem").write_text("no certificate")
    assert stamp_of(home, tmp_path / "text.pem").verdict == "invalid"


def test_without_openssl_a_sentence_says_so(
    home: Path,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stamped(home, authority)
    monkeypatch.setenv("PATH", str(home))
    assert main(["manifest", "verify", str(home)]) == 0
    assert main(["manifest", "verify", str(home), "--ca", str(authority.roots)]) == 2
    assert "need the program openssl" in capsys.readouterr().err


@pytest.mark.slow
def test_a_stamp_outlives_the_certificate_that_made_it(home: Path, tmp_path: Path) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=1)
    short = make_authority(tmp_path / "short", ends)
    stamped(home, short)
    time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds() + 0.1))
    assert stamp_of(home, short.roots).verdict == "stamped"


def test_a_run_that_goes_on_has_no_stamp_until_it_is_asked_for_again(
    home: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    stamped(home, authority)
    journal(home, "single:clerk", calls=1)
    assert main(["manifest", "anchor", str(home), "--request"]) == 2
    assert "A manifest that does not match is not stamped" in capsys.readouterr().err
    write_manifest(home)
    assert main(["manifest", "verify", str(home)]) == 1
    said = "Time: the stamp is for another root than this manifest's: earlier root 1 of 1."
    assert said in capsys.readouterr().out
    assert main(["manifest", "anchor", str(home), "--request"]) == 2
    assert "move it elsewhere" in capsys.readouterr().err
    (home / STAMP).rename(home.parent / STAMP)
    stamped(home, authority)
    assert stamp_of(home, authority.roots).verdict == "stamped"


def test_no_byte_of_a_stamp_that_is_signed_can_be_changed(home: Path, authority: Authority) -> None:
    when = stamped(home, authority)
    whole = (home / STAMP).read_bytes()
    year = whole.index(when.strftime("%Y%m%d%H%M%SZ").encode())
    for at, content in (
        ("time", whole[:year] + b"2019" + whole[year + 4 :]),
        ("cut", whole[:-1]),
        ("signature", whole[:-1] + bytes([whole[-1] ^ 1])),
        ("empty", b""),
    ):
        (home / STAMP).write_bytes(content)
        found = stamp_of(home, authority.roots)
        assert found.verdict in ("invalid", "other-root"), at


def test_a_query_waits_for_its_answer_and_is_not_replaced(
    home: Path, authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifest", "anchor", str(home), "--request"]) == 0
    asked = (home / QUERY).read_bytes()
    assert "--data-binary" in capsys.readouterr().out
    assert request(home).read_bytes() == asked
    (tmp_path / "answer").write_bytes(authority.stamp(asked))
    command = ["manifest", "anchor", str(home), "--reply", str(tmp_path / "answer")]
    assert main(command) == 2
    assert "--ca" in capsys.readouterr().err
    journal(home, "single:clerk", calls=1)
    write_manifest(home)
    with pytest.raises(UserError, match="not for the root"):
        request(home)
    assert main([*command, "--ca", str(authority.roots)]) == 2
    assert "imprint mismatch" in capsys.readouterr().err


def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from tests.providers.server import hosted

    async def long(_: object) -> Response:
        return Response(bytes(3 << 20))

    with (
        hosted(Starlette(routes=[Route("/", long, methods=["POST"])])) as url,
        pytest.raises(UserError, match="too long for a time stamp"),
    ):
        ask(url, b"query")


@pytest.mark.parametrize(
    "url", ["", "localhost", "no address", "ftp://x", "file:///etc/passwd", "https://"]
)
def test_what_is_no_address_is_asked_of_nobody(url: str) -> None:
    with pytest.raises(UserError, match="is not the address of a time-stamp authority"):
        ask(url, b"query")


def test_an_empty_reply_is_refused_without_a_notice_for_a_reason(
    home: Path, authority: Authority
) -> None:
    with pytest.raises(UserError, match="reply is not a time stamp") as told:
        store(home, b"", authority.roots)
    assert "configuration" not in str(told.value)


def test_a_query_takes_no_certificates(
    home: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["manifest", "anchor", str(home), "--request", "--ca", str(authority.roots)]
    assert main(command) == 2
    assert "--request does not use --ca" in capsys.readouterr().err
    assert not (home / QUERY).exists()
