"""A run in shards gives the tables of a run in one process, and survives what one survives."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.ledger.runs import calls_of
from podium.harness.run.evaluate import answered_pairs
from podium.harness.run.lessons import file_name
from podium.harness.shards.plan import read_plan, shard_dir
from podium.reports.audit import audit
from tests import ROOT
from tests.harness.shards.ray_nodes import running

SUITE = ["--suite", "practice-integer", "--time-scale", "0"]
ALONE = ["--system", "single:sage", "--system", "single:abacus"]
TAUGHT = [*SUITE, *ALONE, "--system", "best-single", "--system", "router-knn"]
TAUGHT += ["--train-calls", "16", "--limit", "4"]
HINDSIGHT = [*SUITE, *ALONE, "--system", "best-single", "--split", "train", "--limit", "3"]


def ran(log_dir: Path, words: Sequence[str], *more: str) -> int:
    return main(["run", *words, "--display", "none", "--log-dir", str(log_dir), *more])


def table(log_dir: Path) -> Any:
    """Return the table of a run without times and paths."""
    assert main(["report", str(log_dir), "--out", str(log_dir.with_suffix(".report"))]) == 0
    return stripped(json.loads((log_dir.with_suffix(".report") / "table.json").read_text()))


def stripped(value: Any) -> Any:
    if isinstance(value, dict):
        known: dict[str, Any] = value
        left = (name for name in known if not TIMED & {*name.split("_")})
        return {name: stripped(known[name]) for name in left}
    if isinstance(value, list):
        several: list[Any] = value
        return [stripped(one) for one in several]
    return value


TIMED = {"latency", "overhead", "s", "logs", "path", "paths", "dirs", "written", "seconds", "files"}


def answered(log_dir: Path) -> Counter[tuple[str, str, int]]:
    plan = read_plan(log_dir)
    assert plan is not None
    done = [answered_pairs(shard_dir(log_dir, one.name)) for one in plan.shards]
    return Counter(
        (file_name(task), *pair) for one in done for task, pairs in one.items() for pair in pairs
    )


def asked(log_dir: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each query's one call was answered, by the journals; not broken off."""
    return _ends(log_dir)[0]


def paid(log_dir: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each query's one call was paid for.

    A process that is killed between keeping a reply and saying so leaves a call without an end:
    its reply is read from the store, or stands in a log already, and was paid once.
    """
    told, untold = _ends(log_dir)
    once = {query for query in untold & answered(log_dir) if not told[query]}
    return told + Counter(dict.fromkeys(once, 1))


def _ends(log_dir: Path) -> tuple[Counter[tuple[str, str, int]], Counter[tuple[str, str, int]]]:
    """Return how many calls of each query were answered, and how many have no known end."""
    told, untold = (Counter[tuple[str, str, int]]() for _ in range(2))
    for path in log_dir.glob("shards/*/ledger/*/*.jsonl"):
        for call in calls_of(path):
            sample = call.intent["sample"]
            query = (path.parent.name, sample["question"], sample["epoch"])
            if call.outcome is None:
                untold[query] += 1
            elif not call.outcome["from_store"] | bool(call.outcome["error"]):
                told[query] += 1
    return told, untold


@pytest.mark.slow
def test_tables_are_those_of_one_process(tmp_path: Path) -> None:
    assert ran(tmp_path / "one", TAUGHT) == 0
    assert ran(tmp_path / "cut", TAUGHT, "--shards", "3") == 0
    assert table(tmp_path / "cut") == table(tmp_path / "one")
    assert [one for one in audit(tmp_path / "cut").verdicts if one.status == "fail"] == []


@pytest.mark.slow
def test_the_best_in_hindsight_is_that_of_one_process(tmp_path: Path) -> None:
    assert ran(tmp_path / "one", HINDSIGHT) == 0
    assert ran(tmp_path / "cut", HINDSIGHT, "--shards", "2") == 0
    assert table(tmp_path / "cut") == table(tmp_path / "one")
    plan = read_plan(tmp_path / "cut")
    assert plan
    assert {one.wave for one in plan.shards} == {1, 2}


def begun(log_dir: Path, words: Sequence[str], shards: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "podium", "run", *words, "--display", "none"]
    command += ["--log-dir", str(log_dir), "--shards", str(shards)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True)


def processes(log_dir: Path) -> list[int]:
    """Return the processes of a run's shards."""
    return running(log_dir, "shard")


def wait_for(log_dir: Path, answers: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if len([*log_dir.glob("shards/*/ledger/*/*.jsonl")]) and asked(log_dir).total() >= answers:
            return
        time.sleep(0.05)


SLOW = ["--suite", "practice-integer", *ALONE, "--limit", "6", "--time-scale", "1"]
QUERIES = 12


@pytest.mark.slow
def test_killed_shards_are_resumed_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, SLOW, 2) as process:
        for answers in (1, 4):
            wait_for(log_dir, answers, process)
            for one in processes(log_dir)[:1]:
                os.kill(one, signal.SIGKILL)
        assert process.wait(120) == 0
    assert answered(log_dir) == Counter(dict.fromkeys(answered(log_dir), 1))
    assert answered(log_dir).total() == QUERIES
    assert paid(log_dir) == answered(log_dir)
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_launcher_that_ends_is_resumed_with_another_number(tmp_path: Path, how: int) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, SLOW, 2) as process:
        wait_for(log_dir, 2, process)
        process.send_signal(how)
        assert process.wait(60) == (-signal.SIGKILL if how == signal.SIGKILL else 128 + how)
    shutil.move(log_dir, tmp_path / "moved") if how == signal.SIGINT else None
    place = tmp_path / "moved" if how == signal.SIGINT else log_dir
    assert ran(place, SLOW, "--shards", "3") == 0
    assert processes(log_dir) == []
    assert answered(place).total() == QUERIES
    assert paid(place) == answered(place)
    assert [one for one in audit(place).verdicts if one.status == "fail"] == []


@pytest.mark.slow
def test_a_larger_limit_and_more_epochs_ask_what_is_new(tmp_path: Path) -> None:
    words = [*SUITE, *ALONE]
    assert ran(tmp_path / "cut", words, "--limit", "2", "--shards", "1") == 0
    assert ran(tmp_path / "cut", words, "--limit", "3", "--epochs", "2", "--shards", "2") == 0
    assert asked(tmp_path / "cut") == answered(tmp_path / "cut")
    assert answered(tmp_path / "cut").total() == 2 * 3 * 2
    assert ran(tmp_path / "one", words, "--limit", "3", "--epochs", "2") == 0
    assert table(tmp_path / "cut") == table(tmp_path / "one")


@pytest.mark.slow
def test_what_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SUITE, "--system", "single:sage", "--limit", "1"]
    assert ran(tmp_path / "one", words) == 0
    assert ran(tmp_path / "cut", words, "--shards", "1") == 0
    gone = tmp_path / "gone"
    shutil.copytree(tmp_path / "cut", gone)
    shutil.rmtree(gone / "shards" / "0001")
    capsys.readouterr()
    refused = {
        "holds a run that is not cut into shards: leave": ran(tmp_path / "one", words, *CUT),
        "holds a run that is cut into shards: add": ran(tmp_path / "cut", words),
        "0001 is missing": ran(gone, words, *CUT),
        "must be at least 1, not 0": ran(tmp_path / "new", words, "--shards", "0"),
        "--launcher goes with": ran(tmp_path / "new", words, "--launcher", "local"),
        "shows one process": main(
            ["run", *words, *CUT, "--display", "full", "--log-dir", str(tmp_path / "new")]
        ),
        "is not a shard of a run": main(["shard", str(tmp_path / "one")]),
    }
    said = capsys.readouterr().err
    assert set(refused.values()) == {2}
    assert [reason for reason in refused if reason not in said] == []
    assert not (tmp_path / "new").exists()


CUT = ("--shards", "2")


@pytest.mark.slow
def test_two_launchers_on_one_directory_are_refused(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, SLOW, 1) as process:
        wait_for(log_dir, 1, process)
        assert ran(log_dir, SLOW, "--shards", "1") == 2
        assert process.wait(120) == 0
