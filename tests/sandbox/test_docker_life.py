"""Containers come and go with their owner, and the engine's failures are no verdicts."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from docker.errors import APIError

from podium.sandbox import Box, Limits, Program, ProgramOutcome, SandboxError, images
from podium.sandbox.docker_box import DockerBox
from podium.sandbox.images import connect, our_containers
from tests.sandbox.boxes import DOCKER, TIGHT, needs, run
from tests.sandbox.second_engine import Engine, possible, second_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    # docker 7.2 leaves a socket to the garbage collector when an engine refuses the connection
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
    ),
]

PATIENT = Limits(cpu_s=10.0, wall_s=120.0)
"""Limits beyond what a busy engine takes: it may need ten seconds to see that a container ended."""

OWNER = """
import sys, threading
from podium.sandbox import Program, open_box
box = open_box("docker", 2)
def sleep():
    list(box.run(Program("import time; time.sleep(2)"), [b""]))
threads = [threading.Thread(target=sleep) for _ in "ab"]
for one in threads: one.start()
print("running", flush=True)
for one in threads: one.join()
print(box.facts().box, flush=True)
"""


def owned_by(pid: int) -> list[Any]:
    """Return the containers of a process."""
    client = connect()
    try:
        found = our_containers(client)
    finally:
        client.close()
    return [one for one in found if f" {pid}:" in str(one.attrs["Labels"][images.OWNER])]


def until(seconds: float, true: Any) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


@pytest.fixture
def owner() -> Generator[subprocess.Popen[str]]:
    """A process with two containers in which programs run."""
    needs(DOCKER)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "running\n"
    assert until(30, lambda: len(owned_by(process.pid)) == 2)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_containers_end_with_their_owner_however_it_ends(
    owner: subprocess.Popen[str], number: signal.Signals
) -> None:
    time.sleep(0.3)
    owner.send_signal(number)
    owner.wait(timeout=30)
    assert until(30, lambda: not owned_by(owner.pid))


def test_containers_are_gone_when_their_owner_has_finished(owner: subprocess.Popen[str]) -> None:
    said, _ = owner.communicate(timeout=60)
    assert said == "docker\n"
    assert not owned_by(owner.pid)


def test_no_more_containers_exist_than_allowed() -> None:
    needs(DOCKER)
    before = len(owned_by(os.getpid()))
    box = DockerBox(max_sandboxes=1)
    source = "import time; time.sleep(0.3)"
    threads = [threading.Thread(target=run, args=(box, source)) for _ in range(4)]
    for one in threads:
        one.start()
    seen: list[int] = []
    while any(one.is_alive() for one in threads):
        seen.append(len(owned_by(os.getpid())) - before)
    box.close()
    assert max(seen) == 1


def test_a_box_that_is_closed_while_a_program_runs_is_closed_at_once() -> None:
    needs(DOCKER)
    box = DockerBox(max_sandboxes=1)
    run(box, "print('warm')")
    said: list[str] = []

    def sleep() -> None:
        try:
            run(box, "import time; time.sleep(10000)", limits=PATIENT)
        except SandboxError as error:
            said.append(str(error))

    thread = threading.Thread(target=sleep)
    thread.start()
    time.sleep(0.5)
    box.close()
    thread.join()
    assert said == ["The sandbox has been closed."]


def test_a_container_killed_from_outside_is_replaced_and_the_program_run_again() -> None:
    needs(DOCKER)
    box = DockerBox(max_sandboxes=1)
    before = {one.id for one in owned_by(os.getpid())}
    outcomes: list[ProgramOutcome] = []
    run(box, "print('warm')")
    source = "import time; time.sleep(1); print('done')"
    thread = threading.Thread(target=lambda: outcomes.extend(run(box, source, limits=PATIENT)))
    thread.start()

    killed: list[str] = []

    def at_work() -> bool:  # a program beside the two processes that wait for one
        for one in owned_by(os.getpid()):
            with suppress(APIError):  # it has ended
                if one.id not in before and len(one.top()["Processes"]) > 2:
                    one.kill()
                    killed.append(one.id)
        return bool(killed)

    assert until(30, at_work)
    thread.join(60)
    box.close()
    assert [outcome.stdout for outcome in outcomes] == [b"done\n"]


@pytest.fixture(scope="module")
def engine() -> Generator[Engine]:
    needs(DOCKER)
    if reason := possible():
        pytest.skip(reason)
    with second_engine() as started:
        yield started


@pytest.fixture
def box(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Generator[DockerBox]:
    """A box on the engine that may be killed; it waits a second, not thirty."""
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    made = DockerBox(max_sandboxes=1)
    made.grace_s = 1.0
    yield made
    made.close()


def while_running(box: Box, act: Any) -> str:
    """Do something to the engine while a program runs; return what the box then says."""
    run(box, "print(1)")
    timer = threading.Timer(0.5, act)
    timer.start()
    with pytest.raises(SandboxError) as raised:
        list(box.run(Program("import time; time.sleep(2)"), [b""], TIGHT))
    timer.join()
    return str(raised.value)


def test_a_killed_engine_is_no_verdict_and_a_new_one_serves_again(
    engine: Engine, box: DockerBox
) -> None:
    said = while_running(box, engine.kill)
    assert "engine" in said
    assert said.count(". ") == 1, "what is wrong, then the fix"
    engine.start()
    assert until(30, lambda: run(box, "print(2)")[0].stdout == b"2\n")


def test_a_paused_engine_is_no_verdict_and_serves_again_once_resumed(
    engine: Engine, box: DockerBox
) -> None:
    said = while_running(box, engine.pause)
    engine.resume()
    assert said == "The docker sandbox is stuck: it did not answer in time."
    assert run(box, "print(2)")[0].stdout == b"2\n"
