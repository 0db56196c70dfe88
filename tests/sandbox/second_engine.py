"""A container engine of the tests' own, which they may kill and pause. It needs root."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from podium.sandbox import IMAGE

COMMAND = ("dockerd", "--iptables=false", "--bridge=none", "--config-file=/dev/null")


class Engine:
    """A running dockerd with a folder, a socket and a containerd of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/engine.sock"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the engine and wait until it answers."""
        for name in ("engine.pid", "run/containerd/containerd.pid"):
            (self.folder / name).unlink(missing_ok=True)
        places = {"data-root": "data", "exec-root": "run", "pidfile": "engine.pid"}
        argv = [f"--{option}={self.folder / name}" for option, name in places.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *argv, f"--host={self.address}"],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 30
        while self.docker("version", check=False).returncode:
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)
        return self.process

    def docker(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run the client against this engine."""
        command = ["docker", "--host", self.address, *argv]
        return subprocess.run(command, check=check, capture_output=True, timeout=60)

    def load(self, image: str) -> None:
        """Copy an image from the usual engine."""
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        assert saved.stdout
        with saved.stdout as stream:
            command = ["docker", "--host", self.address, "load"]
            subprocess.run(command, stdin=stream, check=True, capture_output=True)
        assert saved.wait() == 0

    def pause(self) -> None:
        """Stop the engine without ending it; `resume` lets it go on."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused engine go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the engine as the kernel would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End the engine and all it started."""
        self.resume()
        self.process.terminate()
        self.process.wait(timeout=30)


@contextmanager
def second_engine() -> Generator[Engine]:
    """Run an engine that holds the sandbox image; it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # a short path: sockets have no room for more
    engine = Engine(folder)
    try:
        engine.load(IMAGE)
        yield engine
    finally:
        engine.stop()
        for line in Path("/proc/mounts").read_text().splitlines():
            if (place := line.split()[1]).startswith(str(folder)):
                subprocess.run(["umount", place], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def possible() -> str | None:
    """Return why no engine can be started here; None when one can."""
    if os.geteuid():
        return "starting an engine takes root"
    return None if shutil.which("dockerd") else "dockerd is not installed"
