"""A cell: one running judge (sandbox/inside/judge.py), as its host sees it through a stream.

A cell either answers in time, or it is dead (`CellDied`: the stream ended) or stuck (`CellStuck`).
What that means, the program's fault or the box's, is for boxes to decide (cell_box.py).
"""

import json
import os
import select
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.box import Limits, Outcome, Program, SandboxError
from sandbox.frames import FACTS, PARTS, boot, load_frame, outcome, run_header

BOOT = """\
import json, os, sys, types
def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more: os._exit(0)
        data += more
    return data
order = json.loads(read(int(read(10))))
source, sink = os.dup(0), os.dup(1)
null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0); os.dup2(null, 1)
for name in ("sandbox", "sandbox.inside"): sys.modules[name] = types.ModuleType(name)
for name, text in order["sources"].items():
    full = "sandbox.inside." + name
    module = sys.modules[full] = types.ModuleType(full)
    setattr(sys.modules["sandbox.inside"], name, module)
    exec(compile(text, full, "exec"), module.__dict__)
sys.modules["sandbox.inside.judge"].main(
    order["mode"], source, sink, bytes.fromhex(order["refused"]))
os._exit(0)
"""
"""The first words of a cell: it takes the judge's sources from its standard input."""

PYTHON_FLAGS = ("-s", "-P", "-S", "-X", "utf8", "-c", BOOT)
"""No user site, no installed packages but the image's own; hashes are seeded by the environment."""

ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}

BOOT_S = 30.0
GRACE_S = 30.0
"""How long a judge may take beyond a run's wall limit: to clean up, and to pass on large data."""

CLOSE_S = 0.5
"""How long a judge may take to tidy up after its stream has ended."""

PIECE = 1 << 18


class CellDied(Exception):
    """The judge is gone: killed by the program, by the kernel, or with its engine."""


class CellStuck(Exception):
    """The judge does not answer: its container or its engine is paused, or worse."""


class Stream(Protocol):
    """Bytes to and from a judge, each call with a deadline (time.monotonic)."""

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        """Send all; raises CellDied or CellStuck."""
        ...

    def receive(self, deadline: float) -> bytes:
        """Return some bytes, at least one; raises CellDied or CellStuck."""
        ...

    def close(self) -> None:
        """End the judge and whatever holds it; never raises."""
        ...


class PipeStream:
    """The stream of a judge that is a child process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Talk to `process` over its standard input and output."""
        assert process.stdin
        assert process.stdout
        self._process = process
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        """Write all, waiting while the pipe is full."""
        view = memoryview(data)
        while view:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([], [self._stdin], [], left_s)[1]:
                raise CellStuck("it takes no more input")
            try:
                view = view[os.write(self._stdin, view[:PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise CellDied(str(error)) from error

    def receive(self, deadline: float) -> bytes:
        """Read what there is, waiting for it."""
        if not select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise CellStuck("it did not answer in time")
        data = os.read(self._stdout, PIECE)
        if not data:
            raise CellDied("it ended")
        return data

    def close(self) -> None:
        """End the process and collect it: it removes what its last program left, if it can."""
        assert self._process.stdin
        assert self._process.stdout
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run ended, and whether the cell can be used again."""

    outcome: Outcome
    clean: bool


class Cell:
    """A running judge that has been given its sources."""

    def __init__(self, stream: Stream, mode: str) -> None:
        """Start the judge behind `stream` in one of the modes of sandbox/inside/modes.py."""
        self._stream, self._buffer = stream, bytearray()
        self.runs = 0
        self.program: Program | None = None
        self._deadline = time.monotonic() + BOOT_S
        self._send(boot(mode))
        self._line()

    def load(self, program: Program) -> None:
        """Give the judge a program; the one before is forgotten."""
        self._deadline = time.monotonic() + GRACE_S
        self.program = program
        self._send(load_frame(program))

    def run(self, data: bytes, limits: Limits, grace_s: float = GRACE_S) -> Answer:
        """Run the program on one input; it may take `grace_s` longer than its wall limit."""
        self.runs += 1
        self._deadline = time.monotonic() + limits.wall_s + grace_s
        order = run_header(len(data), limits)
        if len(data) < PIECE:
            self._send(order + data)  # one message passes the engine faster than two
        else:
            self._send(order)
            self._send(data)
        header = self._line()
        parts = [self._exactly(header[name]) for name in PARTS]
        return Answer(outcome(header, parts), header["clean"])

    def facts(self) -> dict[str, Any]:
        """Return the version of Python inside and the packages that programs can import."""
        self._deadline = time.monotonic() + GRACE_S
        self._send(FACTS)
        return self._line()

    def close(self) -> None:
        """End the judge."""
        self._stream.close()

    def _send(self, data: bytes) -> None:
        self._stream.send(data, self._deadline)

    def _line(self) -> dict[str, Any]:
        """Return one line of JSON."""
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer += self._stream.receive(self._deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            return json.loads(line)
        except ValueError:
            raise CellDied(f"it said {line[:200]!r}") from None

    def _exactly(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        while len(self._buffer) < size:
            self._buffer += self._stream.receive(self._deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


def spawn(argv: list[str], mode: str, pass_fds: tuple[int, ...] = ()) -> Cell:
    """Start a judge as a child process; SandboxError when it does not come up."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            start_new_session=True,
            pass_fds=pass_fds,
            bufsize=0,
        )
    except OSError as error:
        raise SandboxError(f"A sandbox could not start a process: {error}.") from error
    return started(PipeStream(process), mode)


def started(stream: Stream, mode: str) -> Cell:
    """Return the cell behind a stream; SandboxError when it does not come up."""
    try:
        return Cell(stream, mode)
    except (CellDied, CellStuck) as error:
        stream.close()
        raise SandboxError(f"A sandbox did not come up: {error}.") from error
    except BaseException:
        stream.close()
        raise
