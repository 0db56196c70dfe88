"""`podium view`: the pages of a run to this machine, with texts in full, and nothing else."""

import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from podium.cli import main
from podium.harness.listener import bound_socket
from tests import ROOT
from tests.harness.runs import Crew, Exam, sit, steps
from tests.providers.scripted import Heard
from tests.reports.site.viewed import ask, queries, viewed

LINE = random.Random(0).randbytes(5_000_000).hex()
"""Ten million characters without an end of a line."""


def at_length(heard: Heard) -> str:
    return LINE


def run_below(home: Path) -> Path:
    exam = Exam(size=2)
    sit(home, "single:sage", crew=Crew(sage=at_length), exam=exam, limit=1)
    sit(home, "both", steps("sage", "clerk"), exam=exam)
    return home


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_below(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def url(run: Path) -> Iterator[str]:
    with viewed(run) as address:
        yield address


def log_of(run: Path, system: str) -> Path:
    return next(path for path in run.glob("*.eval") if system in path.name)


@pytest.mark.slow
def test_a_page_that_calls_this_machine_by_a_name_of_its_own_reads_nothing(url: str) -> None:
    port = urlsplit(url).port
    for host in (f"evil.example:{port}", "evil.example", "", "127.0.0.1", f"10.0.0.7:{port}"):
        refused = ask(url, Host=host)
        assert refused.status == 421, host
        assert "This service does not accept host" in refused.text
        assert "--allow-host" not in refused.text
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert ask(url, Host=host).status == 200, host


def test_another_page_can_neither_embed_nor_run_what_it_answers(url: str) -> None:
    for path in ("/", "/data/index.js", "/data/text/0/0.js", "/nothing", "/inspect/"):
        headers = ask(url, path).headers
        assert headers["cross-origin-resource-policy"] == "same-origin", path
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "no-referrer", path
        assert headers["cache-control"] == "no-store", path
        assert "access-control-allow-origin" not in headers, path
    assert ask(url, Origin="https://evil.example").status == 403
    own = ask(url).headers["content-security-policy"]
    assert own.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in own


def test_it_can_only_be_read(url: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        refused = ask(url, "/inspect/logs/listing.json", method)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD"), method
    whole, head = ask(url), ask(url, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))


def test_a_text_is_whole_however_long_it_is(url: str) -> None:
    found = [one for row in (0, 1) for one in queries(ask(url, f"/data/text/{row}/0.js").text)]
    replies = {
        (one["system"], one["question"], call["role"]): call["reply"]
        for one in found
        if one
        for call in one["calls"]
    }
    assert replies.pop(("single:sage", "q1", "sage")) == LINE
    assert set(replies.values()) == {"1", "2"}


def test_what_is_not_there_is_said_in_a_sentence(url: str) -> None:
    for path, said in (
        ("/data/text/0/1.js", "Row 0 of these pages has no text file 1. Reload them."),
        ("/data/text/2/0.js", "Row 2 of these pages has no text file 0. Reload them."),
        ("/data/index/other.js", "There is no page 'index/other' here. Open / for the first page."),
        ("/other.html", "There is no page 'other.html' here. Open / for the first page."),
        (
            "/inspect/logs/other.eval",
            "There is no log 'other.eval' here. Open /inspect/ for the list.",
        ),
    ):
        answer = ask(url, path)
        assert (answer.status, answer.text) == (404, f"{said}\n"), path


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/inspect/logs/..%2f..%2f..%2fetc%2fpasswd",
        "/inspect/assets/..%2findex.html",
        "/inspect/assets/../../../../../../../etc/passwd",
        "/data/text/-1/0.js",
        "/data/..%2f..%2fetc%2fpasswd.js",
        "/%00",
    ],
)
def test_no_path_leads_out_of_what_it_serves(url: str, path: str) -> None:
    assert ask(url, path).status == 404


def test_inspect_reads_parts_of_a_log(url: str, run: Path) -> None:
    path = log_of(run, "both")
    place = f"/inspect/logs/{quote(path.name)}"
    part = ask(url, place, Range="bytes=0-3")
    assert (part.status, part.body) == (206, path.read_bytes()[:4])
    assert part.headers["content-range"] == f"bytes 0-3/{path.stat().st_size}"
    assert ask(url, place, "HEAD").headers["content-length"] == str(path.stat().st_size)


def test_a_log_that_is_a_link_out_of_the_run_is_not_handed_out(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    sit(run, "single:sage", limit=1)
    elsewhere.mkdir()
    (path,) = run.glob("*.eval")
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)
    with viewed(run) as url:
        answer = ask(url, f"/inspect/logs/{quote(path.name)}")
    assert answer.status == 404


def test_texts_of_a_private_suite_are_withheld_here_too(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", exam=Exam(publishable=False), limit=1)
    with viewed(tmp_path) as url:
        (one,) = queries(ask(url, "/data/text/0/0.js").text)
    assert one is not None
    assert not one["shown"]
    assert [one["input"], one["target"], one["answer"]] == [None] * 3
    assert {(call["prompt"], call["reply"]) for call in one["calls"]} == {(None, None)}


def test_a_page_shows_a_run_as_it_is_when_it_is_loaded(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=1)
    with viewed(tmp_path) as url:
        assert "single:clerk" not in ask(url).text
        sit(tmp_path, "single:clerk", steps("clerk"), limit=1)
        assert ask(url, "/data/text/1/0.js").status == 404, "as long as no page asked"
        assert "single:clerk" in ask(url).text
        assert ask(url, "/data/text/1/0.js").status == 200
        path = log_of(tmp_path, "clerk")
        path.write_bytes(path.read_bytes()[:-100])
        refused = ask(url)
    assert (refused.status, refused.headers["content-type"][:10]) == (503, "text/plain")
    assert path.name in refused.text
    assert refused.text.endswith("Reload this page after fixing that.\n")


def test_files_to_take_along_are_those_of_the_page_that_names_them(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=1)
    with viewed(tmp_path) as url:
        page = ask(url).text
        for name in ("table.csv", "table.tex", "table.parquet", "plot.png"):
            assert f'href="downloads/{name}"' in page
            assert ask(url, f"/downloads/{name}").status == 200
        assert ask(url, "/downloads/paper.tex").status == 404
        sit(tmp_path, "single:clerk", steps("clerk"), limit=1)
        assert "single:clerk" not in ask(url, "/downloads/table.csv").text
        assert "single:clerk" in ask(url).text
        assert "single:clerk" in ask(url, "/downloads/table.csv").text
        other = "/data/against/numbers/0.js"
        assert ask(url, other).text.startswith('podium.put("against/numbers/0"')
        sit(tmp_path, "oracle", limit=1)
        assert 'data-references="0 1"' in ask(url).text, "made anew, whatever lies there"
        assert [ask(url, other).status, ask(url, other.replace("0.js", "2.js")).status] == [
            200,
            404,
        ]


def test_what_cannot_be_served_is_refused_in_a_sentence(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bound_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["view", str(run), "--port", port]) == 2
    assert capsys.readouterr().err.startswith(f"podium: Port {port} of 127.0.0.1 is in use")
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "absent"):
        assert main(["view", str(tmp_path / folder)]) == 2
        assert str(tmp_path / folder) in capsys.readouterr().err
    damaged = tmp_path / "damaged" / "a.eval"
    damaged.parent.mkdir()
    damaged.write_bytes(b"no log")
    assert main(["view", str(damaged.parent)]) == 2
    assert "a.eval" in capsys.readouterr().err


COMMAND = "import sys; from podium.cli import main; sys.exit(main())"


@pytest.mark.slow
def test_the_command_prints_an_address_and_ends_by_ctrl_c_in_one_line(run: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-c", COMMAND, "view", str(run), "--port", port]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == f"Look at http://127.0.0.1:{port}/ (Ctrl-C ends it).\n"
            assert ask(f"http://127.0.0.1:{port}").status == 200
            process.send_signal(signal.SIGINT)
            rest, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (rest, error, process.returncode) == ("Stopped.\n", "", 0)
