"""`podium serve` as a process: how it begins, what it refuses, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from podium.cli import main
from podium.harness.ledger.logs import IN_FLIGHT
from podium.harness.ledger.served import served_requests
from podium.harness.listener import bound_socket
from podium.reports.audit import audit
from tests import ROOT
from tests.podium.serving.endpoint import chat, events

ASK = "/v1/chat/completions"
SLOW = ("--time-scale", "0.3")


@contextmanager
def process(log_dir: Path, *words: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start the command, and yield its process and its URL once it serves."""
    command = [sys.executable, "-m", "podium", "serve", "--log-dir", str(log_dir), *words]
    started = subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        assert said.startswith("Models at http://127.0.0.1:"), said
        yield started, said.split()[2].rstrip(":")
    finally:
        started.kill()
        started.communicate()


@pytest.mark.slow
def test_a_stop_lets_streams_end_and_leaves_a_directory_that_passes_a_strict_audit(
    tmp_path: Path,
) -> None:
    with process(tmp_path, "--system", "moa-lite", *SLOW) as (server, url):
        body = chat("What is 17 times 23?", "moa-lite", stream=True)
        with httpx.stream("POST", f"{url}{ASK}", json=body, timeout=60) as said:
            lines = said.iter_lines()
            assert next(lines).startswith("data: ")
            server.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        out, err = server.communicate(timeout=30)
    assert (rest[-1], server.returncode) == ("data: [DONE]", 0)
    assert '"finish_reason":"stop"' in rest[-2].replace(" ", "")
    assert out.startswith("Stopped. $0.0")
    (logged,) = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert (logged["status"], logged["system"]) == (200, "moa-lite")
    assert "17 times 23" not in err
    assert audit(tmp_path, strict=True).ok


@pytest.mark.slow
def test_a_killed_server_leaves_calls_that_nobody_knows_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    with process(tmp_path, "--system", "moa-lite", "--time-scale", "30") as (server, url):
        body = chat("What is 17 times 23?", "moa-lite", stream=True)
        with httpx.stream("POST", f"{url}{ASK}", json=body, timeout=60) as said:
            step = next(one for one in events(said) if "podium" in one)
            assert step["podium"]["step"].startswith("step ")
            server.kill()
            server.wait()
    (cut,) = served_requests(tmp_path)
    assert (cut.status, {row.error for row in cut.rows}) == (None, {IN_FLIGHT})
    found = audit(tmp_path)
    assert found.ok
    assert found.table.counts["in flight"] == len(cut.rows) > 0
    with process(tmp_path, "--system", "moa-lite") as (server, url):
        again = httpx.post(f"{url}{ASK}", json=chat("What is 2 + 2?", "moa-lite"), timeout=60)
        assert again.status_code == 200
        server.terminate()
        server.wait(timeout=30)
    assert [one.ending for one in served_requests(tmp_path)] == ["in flight", "answered"]
    assert audit(tmp_path).ok


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "A server needs a system and a log directory. Add --system and --log-dir."),
        (("--system", "nobody"), "There is no system 'nobody'"),
        (("--system", "oracle"), "it reads the right answers"),
        (("--system", "router-knn"), "it must learn first"),
        (("--system", "langgraph"), "langgraph"),
        (("--system", "single:nobody"), "has no worker 'nobody'"),
        (("--system", "moa-lite", "--host", "0.0.0.0"), "Add a --keys file"),
        (("--system", "moa-lite", "--keys", "nothing.toml"), "nothing.toml"),
        (("--system", "moa-lite", "--learnt", "nowhere"), "nowhere is not a run"),
        (("--system", "moa-lite", "--port", "99999"), "--port must be from 0"),
        (("--system", "moa-lite", "--pool", "nobody"), "There is no pool 'nobody'"),
        (("--new-key", "alice"), "Add --keys FILE"),
        (("--system", "moa-lite", "--max-calls", "0"), "--max-calls"),
        (("--system", "moa-lite", "--deadline", "0"), "--deadline must be above 0"),
        (("--system", "moa-lite", "--otlp", "nowhere"), "--otlp"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_sentence_that_names_the_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], said: str
) -> None:
    where = ("--log-dir", str(tmp_path / "new")) if words else ()
    assert _exit_code(["serve", *words, *where]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not list(tmp_path.rglob("*.jsonl"))


def _exit_code(words: Sequence[str]) -> int:
    try:
        return main([*words])
    except SystemExit as ended:
        return int(ended.code or 0)


def test_a_directory_that_holds_a_run_is_not_served_into(
    logs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    assert main(["serve", "--system", "moa-lite", "--log-dir", str(tmp_path)]) == 2
    assert "holds a run. Use another --log-dir" in capsys.readouterr().err


def test_a_port_in_use_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["serve", "--system", "moa-lite", "--log-dir", str(tmp_path / "new"), "--port"]
    with bound_socket("127.0.0.1", 0) as taken:
        taken.listen()
        assert main([*words, str(taken.getsockname()[1])]) == 2
    assert "is in use" in capsys.readouterr().err


@pytest.mark.slow
def test_a_key_is_shown_once_and_lets_its_owner_in(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    assert main(["serve", "--keys", str(keys), "--new-key", "alice"]) == 0
    (key,) = capsys.readouterr().out.split()
    assert key not in keys.read_text()
    with process(tmp_path / "logs", "--system", "single:abacus", "--keys", str(keys)) as (_, url):
        refused = httpx.get(f"{url}/v1/models")
        let_in = httpx.get(f"{url}/v1/models", headers={"authorization": f"Bearer {key}"})
        by_anthropic = httpx.get(f"{url}/v1/models", headers={"x-api-key": key})
        healthy = httpx.get(f"{url}/health")
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert (let_in.status_code, by_anthropic.status_code, healthy.status_code) == (200, 200, 200)
