"""The supervisor of a box: takes a program and inputs, has them run, reports what happened.

It speaks frames on its standard input and output: a line of JSON, then the bytes the line counts.

    host -> {"program": n, "runner": ..., "entry": ...} + source
    host -> {"run": n, "cpu_s": ..., "wall_s": ..., "memory_bytes": ..., ...} + input
    host <- {"status": ..., "exit_code": ..., "stdout": n, "stderr": n, "result": n, ...} + bytes

It never runs the program itself: a zygote, forked before the first order arrives, forks a process
per run, so no process of a program descends from one that held another program's input. What each
way of isolating can do to a program and its leftovers is a `Mode` (modes.py).
"""

import json
import os
import sys
from contextlib import suppress
from typing import Any

from sandbox.inside import zygote
from sandbox.inside.modes import MODES, Mode
from sandbox.inside.processes import newest
from sandbox.inside.runs import PATIENCE_S, Ended, Keeper, Lasting, Program, Run

PIECE, CHUNK = 1 << 16, 1 << 20
SITE = "/opt/podium/site"
"""Where the image keeps the third-party packages that programs may import."""

LASTING = "official"
"""The one runner that keeps its process from one input to the next."""


class Judge:
    """One supervisor, its zygote and the program it was given."""

    def __init__(self, mode: Mode, source: int, sink: int, refused: bytes = b"") -> None:
        """Take frames from `source` and write answers to `sink`; starts the zygote.

        `refused` is a filter of system calls (sandbox/seccomp.py) for the zygote and its forks.
        """
        self.source, self.sink = source, sink
        self.ahead = bytearray()
        self.keeper = Keeper(mode, *zygote.start(refused))
        self.keeper.zygote.settimeout(PATIENCE_S)
        mode.begin()
        self.program: Program | None = None
        self.lasting: Lasting | None = None

    def serve(self) -> None:
        """Answer orders until the host closes the stream."""
        self.write({"ready": True})
        while True:
            order = self.read_line()
            if "facts" in order:
                self.write(facts(self.keeper.mode))
            elif "program" in order:
                self.load(order)
            else:
                self.write_outcome(self.run(order))

    def load(self, order: dict[str, Any]) -> None:
        """Keep a program; whatever the last one left is swept away."""
        self.end_lasting()
        if self.program:
            os.close(self.program.source)
        source = self.read_file(order["program"])
        os.fchmod(source, 0)  # gVisor lets anybody open our files, and later runs read this one
        self.program = Program(source, order["runner"], order["entry"])

    def run(self, order: dict[str, Any]) -> Run:
        """Run the program on one input, within limits; what it leaves is killed and removed."""
        given = self.read_file(order["run"])
        program = self.program
        if program is None:
            raise Ended
        run = Run(self.keeper, program, order)
        try:
            if program.runner != LASTING:
                run.fork(given)
                run.clean = self.sweep(run)
                return run
            if self.lasting is None:
                self.lasting = Lasting(self.keeper, program, order)
            run.pass_on(self.lasting, given)
            if run.status:
                run.clean = self.end_lasting()
            return run
        finally:
            os.close(given)

    def end_lasting(self) -> bool:
        """Kill the process that keeps its state between inputs; return whether all is clean."""
        if self.lasting is None:
            return True
        lasting, self.lasting = self.lasting, None
        return self.sweep(lasting.stop())

    def sweep(self, run: Run) -> bool:
        """Kill and remove what a run left; False when something resists: the box is then sick."""
        mode = self.keeper.mode
        if newest() == b"%d" % run.pid and mode.tidy():
            return True  # it never forked; a list of processes could miss one that always forks
        for _ in range(2):
            mode.sweep(self.keeper.zygote, run.user, {self.keeper.pid})
            if not self.keeper.processes() and mode.tidy():
                return True
        return False

    # --- frames -------------------------------------------------------------------------------

    def read_line(self) -> dict[str, Any]:
        """Read one line of JSON."""
        while (end := self.ahead.find(b"\n")) < 0:
            self.ahead += self.read(PIECE)
        line = bytes(self.ahead[:end])
        del self.ahead[: end + 1]
        return json.loads(line)

    def read(self, most: int) -> bytes:
        """Read some bytes of the stream."""
        data = os.read(self.source, most)
        if not data:
            raise Ended
        return data

    def read_file(self, size: int) -> int:
        """Move `size` bytes of the stream into a new file in memory; return its descriptor."""
        file = os.memfd_create("input")
        write_all(file, self.ahead[:size])
        left = size - len(self.ahead[:size])
        del self.ahead[:size]
        while left:
            data = self.read(min(left, CHUNK))
            left -= len(data)
            write_all(file, data)
        os.lseek(file, 0, os.SEEK_SET)
        return file

    def write(self, header: dict[str, Any]) -> None:
        """Write one line of JSON."""
        write_all(self.sink, json.dumps(header).encode() + b"\n")

    def write_outcome(self, run: Run) -> None:
        """Write how a run ended and what it wrote, cut at the output limit."""
        parts = [run.read(name) for name in ("stdout", "stderr", "result")]
        header = json.dumps(run.header([len(part) for part in parts])).encode() + b"\n"
        if sum(map(len, parts)) < PIECE:
            parts = [b"".join((header, *parts))]  # one message passes the engine faster than four
        else:
            parts.insert(0, header)
        for part in parts:
            write_all(self.sink, part)
        run.close()


def write_all(file: int, data: bytes | bytearray) -> None:
    """Write all of the data, however little each call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def facts(mode: Mode) -> dict[str, Any]:
    """Return what programs run on: the Python, and the packages beside its standard library."""
    import sysconfig  # both are slow to load, and a cell that serves one program needs neither
    from importlib import metadata

    places = [path for path in sys.path if path.rstrip("/") != sysconfig.get_path("stdlib")]
    found = {f"{one.name}=={one.version}" for one in metadata.distributions(path=places)}
    return {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "packages": sorted(found),
        "memory": "together" if mode.memory_is_counted else "each",
    }


def main(mode: str, source: int, sink: int, refused: bytes) -> None:
    """Serve until the host closes the stream; `mode` is a key of modes.MODES."""
    if os.path.isdir(SITE):  # noqa: PTH112  (pathlib costs 10 ms of every start)
        sys.path.append(SITE)
    judge = Judge(MODES[mode](), source, sink, refused)
    for step in (judge.serve, judge.end_lasting):  # at the end, what the last program left
        with suppress(Ended, OSError):
            step()
