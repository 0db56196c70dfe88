"""The command line: what it refuses, in one sentence each, and that nothing was touched."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from podium.cli import main
from podium.cli.commands import build_parser
from tests.providers.scripted import script

LIVE = """
label = "{label}"
prices = "{prices}"
[[workers]]
name = "ada"
model = "{model}"
"""
LIMITED = ["run", "--suite", "practice-integer", "--system", "single:sage", "--limit", "1"]


def complaint(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> str:
    """Return the one line that a refused command prints."""
    assert main([str(word) for word in argv]) == 2
    said = capsys.readouterr().err
    assert said.startswith("podium: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param("--suite aime24", "no suite 'aime24'; known suites: aime25", id="suite"),
        pytest.param("--suite practice-integer --system magic", "no system 'magic'", id="system"),
        pytest.param(
            "--suite practice-integer --system single:zeus",
            "has no worker 'zeus'; its workers are: ",
            id="worker",
        ),
        pytest.param("--suite practice-integer --pool olympus", "no pool 'olympus'", id="pool"),
        pytest.param(
            "--suite practice-integer --limit 0", "--limit must be at least 1", id="limit"
        ),
        pytest.param("--suite practice-integer --epochs 0", "--epochs must be", id="epochs"),
        pytest.param("--suite practice-code --box cellar", "no box 'cellar'", id="box"),
        pytest.param(
            "--suite practice-integer --split test", "no 'test' split; it has: train", id="split"
        ),
    ],
)
def test_a_run_that_cannot_work_is_refused_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, reason: str
) -> None:
    said = complaint(capsys, "run", *words.split(), "--log-dir", tmp_path / "run")
    assert reason in said
    assert not (tmp_path / "run").exists()


def test_recorded_replies_refuse_systems_they_cannot_serve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recorded_aime25: str
) -> None:
    words = ["run", "--suite", "aime25", "--pool", recorded_aime25, "--log-dir", tmp_path / "run"]
    said = complaint(capsys, *words, "--system", "moa-lite")
    assert "a replayed reply is never used for another request" in said
    said = complaint(capsys, *words, "--system", "single", "--epochs", "2")
    assert "--epochs 2 exceeds the recording" in said
    assert not (tmp_path / "run").exists()


def live_pool(tmp_path: Path, model: str, prices: str = "list-2026-11-21") -> Path:
    path = tmp_path / "pool.toml"
    label = "rehearsal" if model.startswith("rehearsal/") else "live"
    path.write_text(LIVE.format(model=model, prices=prices, label=label))
    return path


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        pytest.param("openai/gpt-5", "OPENAI_API_KEY", id="missing-key"),
        pytest.param("olympus/zeus", "olympus", id="unknown-provider"),
        pytest.param("rehearsal/zeus", "zeus", id="unknown-model"),
        pytest.param(
            script("unpriced", lambda _: "42"),
            "has no 'scripted/unpriced'. Add this line below its model",
            id="price",
        ),
        pytest.param("vllm/qwen", "set VLLM_BASE_URL=", id="no-server"),
        pytest.param(
            "hf/qwen",
            "install the train extra",
            id="no-package",
            marks=pytest.mark.skipif(
                find_spec("transformers") is not None, reason="the train extra is installed"
            ),
        ),
    ],
)
def test_a_worker_that_cannot_be_asked_or_paid_is_refused_by_run_and_named_by_doctor(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    reason: str,
) -> None:
    for variable in ("OPENAI_API_KEY", "VLLM_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    pool = live_pool(tmp_path, model)
    run = ("run", "--suite", "practice-integer", "--system", "single", "--pool", pool)
    said = complaint(capsys, *run, "--log-dir", tmp_path / "run")
    assert reason in said
    assert "ada" in said
    assert not (tmp_path / "run").exists()
    assert main(["doctor", "--pool", str(pool)]) == 1
    assert reason in capsys.readouterr().out


def test_a_pool_without_prices_is_told_to_name_a_book_that_has_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--pool", str(live_pool(tmp_path, "openai/gpt-5", "none"))]) == 1
    said = capsys.readouterr().out
    assert "has no price: book 'none' has no prices, so set `prices` to another book" in said
    assert "add 'openai/gpt-5'" not in said


def test_doctor_knocks_at_a_server_and_hears_whether_somebody_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        monkeypatch.setenv("VLLM_BASE_URL", address)
        pool = live_pool(tmp_path, "vllm/qwen")
        main(["doctor", "--pool", str(pool)])
        assert "nothing answers" not in capsys.readouterr().out
    main(["doctor", "--pool", str(pool)])
    assert f"nothing answers at {address}" in capsys.readouterr().out


def test_doctor_finds_the_rehearsal_pool_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "Pool 'rehearsal' (rehearsal): ready." in capsys.readouterr().out


def test_a_report_without_logs_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "podium run" in complaint(capsys, "report", tmp_path)
    assert "There is no" in complaint(capsys, "report", tmp_path / "nowhere")


def test_a_damaged_log_is_named_by_every_command_that_reads_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torn.eval").write_bytes(b"PK\x03\x04 torn")
    for words in (
        ("report", tmp_path),
        ("regrade", tmp_path),
        ("record", tmp_path, "--out", tmp_path / "tape.jsonl"),
    ):
        assert "torn.eval" in complaint(capsys, *words)
    assert not (tmp_path / "tape.jsonl").exists()


@pytest.mark.parametrize("words", ["suites", "systems", "workers"])
def test_what_there_is_can_be_listed(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main([words]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 4


@pytest.mark.parametrize(
    ("words", "part"),
    [
        pytest.param("suites aime25", "Mathematical", id="suite"),
        pytest.param("systems single:abacus", "podium/single", id="single"),
        pytest.param("systems moa-lite", "deviation", id="moa-lite"),
    ],
)
def test_one_of_them_can_be_shown_in_full(
    capsys: pytest.CaptureFixture[str], words: str, part: str
) -> None:
    assert main(words.split()) == 0
    assert part in capsys.readouterr().out


@pytest.mark.parametrize("words", ["suites nope", "systems nope", "workers --pool nope"])
def test_what_is_not_there_is_answered_with_what_is(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert "known" in complaint(capsys, *words.split())


@pytest.mark.parametrize("amount", ["-1", "0", "abc", "NaN"])
def test_max_usd_must_be_a_positive_amount(capsys: pytest.CaptureFixture[str], amount: str) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(
            ["run", "--suite", "aime25", "--log-dir", "x", "--max-usd", amount]
        )
    assert "US dollars" in capsys.readouterr().err


def test_a_closed_standard_output_ends_no_command_early() -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "podium", "suites"]
    ended = subprocess.run(closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_home_that_cannot_be_written_is_named_with_what_to_set(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "podium", *LIMITED, "--log-dir", str(tmp_path / "run")]
    there = {**os.environ, "HOME": "/proc", "XDG_DATA_HOME": ""}
    ended = subprocess.run(words, env=there, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "podium: /proc/.local" in ended.stderr
    assert "; set XDG_DATA_HOME to a folder that can be written\n" in ended.stderr


ODD = ("runs/run#3", "what?", "a%20b", "~/runs", "s3://bucket/run", "two\nlines", "\udcff")


@pytest.mark.parametrize("place", ODD)
def test_a_directory_that_inspect_would_read_as_another_is_refused(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "which Inspect reads as part of an address" in complaint(
        capsys, *LIMITED, "--log-dir", place
    )
    assert [*tmp_path.iterdir()] == []
