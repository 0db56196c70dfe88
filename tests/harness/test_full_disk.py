"""A disk that takes only part of a line, or none of it: nothing is lost, and nothing is torn."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.harness.ledger.journal import FOLDER, mend, open_journal, read_chain
from podium.harness.ledger.runs import calls_of
from podium.reports.audit import audit
from tests import ROOT
from tests.harness.billed_run import billed
from tests.providers.flaky import HEAD, lines, sat
from tests.reports.audit.audited_run import failing, said

SIZES = (900, 1400, 2100, 2500)
"""Bytes that a file may have: none is the end of a line."""

PATHS = {**os.environ, "PYTHONPATH": str(ROOT)}
SCRIPT = """
import json, os, resource, sys
from pathlib import Path
from tests.providers.flaky import HEAD
from podium.harness.ledger.journal import open_journal

folder, most = Path(sys.argv[1]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for size in map(int, sys.argv[2:]):
    journal = open_journal(folder / str(size), HEAD)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    written = 0
    try:
        while True:
            journal.retry("call", written, "RateLimitError", 429)
            written += 1
    except OSError as error:
        refused = error.filename
    left = journal.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    journal.again("call")
    journal.close()
    print(json.dumps([size, written, left, refused == str(journal.path)]))
"""


def limited(size: int) -> None:
    """Let no file of this process grow beyond a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[int]]]:
    """Write four journals until the system takes no more, and one line when it does again."""
    folder = tmp_path_factory.mktemp("full")
    command = [sys.executable, "-c", SCRIPT, str(folder), *map(str, SIZES)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=PATHS)
    return folder, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(SIZES)), ids=[str(size) for size in SIZES])
def test_a_line_that_a_full_disk_takes_in_part_is_taken_back_and_refused_by_name(
    at: int, refused: tuple[Path, list[list[int]]]
) -> None:
    folder, found = refused
    size, written, left, named = found[at]
    (path,) = (folder / str(size)).glob(f"{FOLDER}/*/*.jsonl")
    assert left < size, "part of a line was kept"
    assert named
    chain = read_chain(path)
    assert (chain.faults, chain.lines) == ((), 1 + written + 1), "the line after it holds as well"


@pytest.mark.slow
def test_a_run_on_a_full_disk_says_which_file_and_audits_clean_once_it_is_resumed(
    tmp_path: Path,
) -> None:
    asked = ["run", "--suite", "practice-integer", "--system", "single:sage", "--limit", "3"]
    where = ["--pool", "rehearsal", "--log-dir", str(tmp_path / "run")]
    command = [sys.executable, "-m", "podium", *asked, *where]
    full = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=lambda: limited(4800)
    )
    assert full.returncode != 0
    assert "Traceback" not in full.stderr
    assert f"{tmp_path}/run" in full.stderr
    subprocess.run(command, check=True, capture_output=True)
    assert failing(tmp_path / "run") == set()


@pytest.mark.slow
def test_a_disk_without_room_is_refused_before_anything_is_bought(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    with billed(tmp_path, questions=6, workers=1, wait_s=0) as run, small_disk(place, "120k"):
        assert run.finished() == 2
        assert f"The disk of {place} has less than 16 MiB left" in run.said
        assert run.requests == 0
        subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True)
        assert run.finished() == 0
        assert (run.requests, run.bought_twice, run.failing) == (6, 0, {})


@pytest.mark.slow
def test_once_a_reply_could_not_be_kept_no_other_is_bought(tmp_path: Path) -> None:
    with billed(tmp_path, questions=30, workers=1, wait_s=0) as run:
        assert run.finished(prepare=lambda: limited(300_000)) == 1
        assert "Traceback" not in run.said
        bought, written = run.requests, written_replies(run.log_dir)
        assert 0 < bought < 30
        assert run.finished() == 0
        assert run.bought_twice == bought - written, "what is written is read back"
        assert run.failing == {}


def written_replies(log_dir: Path) -> int:
    """Return how many calls have an outcome that is a reply."""
    found = [call for path in log_dir.glob(f"{FOLDER}/*/*.jsonl") for call in calls_of(path)]
    return sum(bool(call.outcome) and not call.outcome["error"] for call in found)


@contextmanager
def small_disk(place: Path, size: str) -> Generator[None]:
    """Mount a file system of a size; skip where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def torn(tmp_path: Path, part: bytes) -> Path:
    """Leave a journal whose process went down in the middle of a line."""
    sat(tmp_path, ["q1: answer"])
    (path,) = (tmp_path / FOLDER).glob("*/*.jsonl")
    path.write_bytes(path.read_bytes() + part)
    return path


def test_a_torn_line_is_ended_and_named_once_and_then_only_weak(tmp_path: Path) -> None:
    path = torn(tmp_path, b'{"at":"2026-01-01","call":"abc')
    assert [fault.kind for fault in read_chain(path).faults] == ["truncated"]
    before = path.read_bytes()
    mend(tmp_path)
    mend(tmp_path)
    assert read_chain(path).faults == ()
    assert path.read_bytes().startswith(before), "it has only grown"
    assert [line["bytes"] for line in lines(tmp_path, "torn")] == [30]
    assert "I14" not in failing(tmp_path)
    assert "incomplete lines of journals" in said(audit(tmp_path), "I14")
    assert "I14" in failing(tmp_path, strict=True)


def test_a_line_that_lacks_but_its_end_is_whole_when_it_has_it(tmp_path: Path) -> None:
    path = torn(tmp_path, b"")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    mend(tmp_path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("left", [b"", b'{"at":"2026'], ids=["nothing", "part of its head"])
def test_a_journal_without_a_whole_line_is_removed(left: bytes, tmp_path: Path) -> None:
    path = torn(tmp_path, b"")
    path.write_bytes(left)
    mend(tmp_path)
    assert not path.exists()


def test_a_line_that_was_changed_is_not_hidden_by_the_one_that_names_a_torn_one(
    tmp_path: Path,
) -> None:
    path = torn(tmp_path, b'{"at":"2026-01-01","call":"abc')
    mend(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"call":"abc\n', b'"call":"abd\n'))
    assert read_chain(path).faults


def test_a_journal_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, HEAD)
    with journal.path.open("ab") as file:
        file.write(b"half a li")
    mend(tmp_path)
    assert journal.path.read_bytes().endswith(b"half a li")
    journal.close()
    mend(tmp_path)
    assert read_chain(journal.path).faults == ()
