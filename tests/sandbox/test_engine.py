"""The container engine: each way it can be unusable is one sentence that names the fix."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import docker
import pytest

from podium.cli import main
from podium.sandbox import IMAGE, SandboxError
from podium.sandbox.docker_box import DockerBox
from podium.sandbox.images import (
    OWNER,
    connect,
    explained,
    is_orphan,
    labels,
    our_containers,
    remove_orphans,
)
from tests import ROOT
from tests.sandbox.boxes import needs, run
from tests.sandbox.sick_engines import answering, that_removes_nothing

SCRIPT = ROOT / "sandbox" / "debian-engine.sh"
NOBODY = 65534
AS_NOBODY = f"""
import os
from podium.sandbox import images
if os.getuid() == 0:
    os.setuid({NOBODY})
try:
    images.connect()
except images.SandboxError as error:
    print(error)
"""
HOLD_A_CONTAINER = """
import sys, time
from podium.sandbox import images
made = images.connect().containers.create(
    sys.argv[1], ["-c", "import time; time.sleep(60)"], entrypoint="python3",
    network_mode="none", labels=images.labels(),
)
made.start()
print(made.id, flush=True)
time.sleep(60)
"""
SAY_LABELS = """
import json, time
from podium.sandbox.images import labels
print(json.dumps(labels()), flush=True)
time.sleep(60)
"""


@pytest.fixture
def client() -> Generator[docker.DockerClient]:
    needs("docker")
    with closing(connect()) as connected:
        yield connected


@contextmanager
def child(program: str, *args: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run a program of ours; yields it and the first line that it printed."""
    command = [sys.executable, "-c", program, *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def refusal(address: str | Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DOCKER_HOST", str(address))
    with pytest.raises(SandboxError) as caught:
        connect()
    return str(caught.value)


def test_an_engine_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(f"unix://{tmp_path}/none.sock", monkeypatch)
    assert said.startswith(f"No container engine answers at unix://{tmp_path}/none.sock. Start it")


def test_a_socket_that_nobody_listens_on_any_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    said = refusal(f"unix://{tmp_path}/left.sock", monkeypatch)
    assert said.startswith("No container engine answers at")


@pytest.mark.parametrize("address", ["carrier-pigeon://coop", "tcp://", "tcp://host"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(address, monkeypatch)
    assert said.startswith(f"DOCKER_HOST={address} is not an address that podium can use")


def test_a_socket_without_permission_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as listening:
        Path(name).chmod(0o755)
        path = Path(name, "engine.sock")
        listening.bind(str(path))
        listening.listen()
        path.chmod(0)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        said = subprocess.check_output([sys.executable, "-c", AS_NOBODY], text=True)
    assert said.startswith(f"You may not use the container engine at unix://{path}. Join the group")


def test_an_engine_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"Version": "20.10.24+dfsg1", "ApiVersion": "1.41"}
    with answering(tmp_path / "old.sock", old) as address:
        said = refusal(address, monkeypatch)
    assert "is version 20.10.24+dfsg1, but podium needs Docker Engine 24.0.6 or newer" in said
    assert said.endswith("Upgrade it (Debian: sandbox/debian-engine.sh), or choose another box.")


def test_the_oldest_engine_that_we_can_use_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(tmp_path / "fit.sock", {"Version": "24.0.6", "ApiVersion": "1.43"}) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        connect().close()


def test_an_engine_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
        with pytest.raises(SandboxError, match="does not answer in time"):
            connect(timeout_s=1)


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (
            "mkdir /var/lib/docker/overlay2/1: no space left on device",
            "The disk of the container engine is full. Free some space",
        ),
        (
            'unknown or invalid runtime name: runsc")',
            "The container engine has no runtime runsc. Install it",
        ),
        (
            "something new",
            "The container engine refused: something new. Check the engine with `docker info`.",
        ),
    ],
)
def test_what_an_engine_fails_with_is_told_with_its_fix(
    trouble: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(tmp_path / "sick.sock", trouble=trouble) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with (
            closing(connect()) as sick,
            pytest.raises(SandboxError) as caught,
            explained(),
        ):
            sick.containers.create("any")
    assert str(caught.value).startswith(sentence)


def test_the_command_line_says_it_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert main(["sandbox", "build"]) == 2
    assert main(["sandbox", "clean"]) == 2
    main(["sandbox", "status"])
    heard = capsys.readouterr()
    assert heard.err.count("podium: No container engine answers") == 2
    assert "docker: No container engine answers" in heard.out
    assert "bwrap: " in heard.out


def test_the_script_for_debian_refuses_anybody_but_root() -> None:
    user = NOBODY if os.getuid() == 0 else None
    with SCRIPT.open() as script:
        done = subprocess.run(
            ["bash", "-s"], stdin=script, user=user, cwd="/", capture_output=True, text=True
        )
    assert done.returncode == 3
    assert done.stderr == (
        "debian-engine.sh: installing a container engine needs root: run it with sudo.\n"
    )


def test_a_living_owner_keeps_its_containers() -> None:
    assert not is_orphan(labels(), running=True)
    assert not is_orphan(labels(), running=False)


def test_a_killed_owner_loses_its_containers_even_before_it_is_waited_for() -> None:
    with child(SAY_LABELS) as (process, said):
        owned = json.loads(said)
        assert not is_orphan(owned, running=True)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_orphan(owned, running=True)
    assert is_orphan(owned, running=True)


def test_a_process_with_the_number_of_an_owner_is_not_the_owner() -> None:
    place, _, owner = labels()[OWNER].rpartition(" ")
    reused = {OWNER: f"{place} {owner.partition(':')[0]}:1"}
    assert is_orphan(reused, running=True)


def test_an_owner_elsewhere_keeps_what_runs_and_loses_what_does_not() -> None:
    elsewhere = {OWNER: f"another-boot pid:[1] {os.getpid()}:1"}
    assert not is_orphan(elsewhere, running=True)
    assert is_orphan(elsewhere, running=False)


@pytest.mark.docker
def test_what_a_killed_podium_left_is_removed_and_nothing_else(client: docker.DockerClient) -> None:
    with (
        child(HOLD_A_CONTAINER, IMAGE) as (_, living),
        child(HOLD_A_CONTAINER, IMAGE) as (killed, left),
    ):
        remove_orphans(client)
        assert {living.strip(), left.strip()} <= {str(held.id) for held in our_containers(client)}
        killed.kill()
        killed.wait()
        assert remove_orphans(client) >= 1
        kept = {str(held.id) for held in our_containers(client)}
    assert living.strip() in kept
    assert left.strip() not in kept
    remove_orphans(client)


@pytest.mark.docker
def test_what_a_killed_podium_left_and_cannot_be_removed_costs_no_verdict(
    client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    with (
        child(HOLD_A_CONTAINER, IMAGE) as (killed, left),
        that_removes_nothing(tmp_path / "proxy.sock", engine) as address,
    ):
        killed.kill()
        killed.wait()
        monkeypatch.setenv("DOCKER_HOST", address)
        with closing(DockerBox(max_sandboxes=1)) as box:
            assert [one.stdout for one in run(box, "print(1)")] == [b"1\n"]
        assert left.strip() in {str(held.id) for held in our_containers(client)}
    remove_orphans(client)


@pytest.mark.docker
def test_a_missing_image_is_told_with_the_command_that_makes_it(
    client: docker.DockerClient,
) -> None:
    with pytest.raises(SandboxError) as caught, explained():
        client.images.get("podium-sandbox-bigcodebench-of-another-day")
    assert str(caught.value) == (
        "The image podium-sandbox-bigcodebench-of-another-day is missing. "
        "Run `podium sandbox build --image bigcodebench` first."
    )


@pytest.mark.docker
def test_a_runtime_that_is_not_there_is_told(client: docker.DockerClient) -> None:
    with (
        pytest.raises(SandboxError, match=r"has no runtime no-such-runtime\. Install"),
        explained(),
    ):
        client.containers.create(IMAGE, runtime="no-such-runtime", labels=labels())
