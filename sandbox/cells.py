"""Cells, their pool, and the base class of boxes that run programs in cells.

A cell is a running supervisor (the judge, sandbox/inside/judge.py), reached by a byte stream. If a
judge dies during a run, the host checks the container engine, if any, and runs the program again,
alone in a fresh cell; if that cell dies, too, the program is the cause: status `died`.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from podium.sandbox.box import IMAGE, Limits, Program, ProgramOutcome, SandboxError, SandboxFacts
from podium.sandbox.packages import promised_names
from podium.sandbox.seccomp import PROGRAM, RULES, filter_bytes

INSIDE = ("isolation", "purity", "runners", "zygote", "judge")
"""Modules of sandbox/inside/, ordered so that each comes after the modules that it imports."""
FACTS = b'{"facts": 0}\n'  # asks for the cell's Python version and packages
PARTS = ("stdout", "stderr", "result")
"""The outputs of a program after the header of a judge's answer, in this order."""


LACKS = (
    "The program cannot be graded here: it imports a package that this box lacks and podium's "
    "docker image has (of {}). Run `podium sandbox build --box bwrap`, or use --box docker."
)


@cache
def boot_message(mode: str, promised: tuple[str, ...] = (), *extra: str) -> bytes:
    """Return the message that starts a judge (supervisor): mode, seccomp filter, its source code.

    `mode`: how to isolate programs, a key of `MODES` in inside/isolation.py; `promised`: packages
    that programs may import; `extra`: further modules of sandbox/inside/.
    """
    folder = resources.files("podium.sandbox.inside")
    modules = {name: (folder / f"{name}.py").read_text("utf-8") for name in (*INSIDE, *extra)}
    refused = b"" if mode == "plain" else filter_bytes({**RULES, **PROGRAM})
    order = {"mode": mode, "refused": refused.hex(), "promised": promised, "sources": modules}
    data = json.dumps(order).encode()
    return b"%10d" % len(data) + data


def load_frame(program: Program) -> bytes:
    """Return the message that sends a program to a cell's supervisor (judge)."""
    source = program.source.encode("utf-8", errors="replace")  # lone surrogates become `?`
    order = {"program": len(source), "runner": program.runner, "entry": program.entry}
    return json_line(order) + source


def run_header(size: int, limits: Limits) -> bytes:
    """Return the line that orders a judge to run the program on the next `size` bytes of input."""
    return json_line({"run": size, **asdict(limits)})


def parse_outcome(header: Mapping[str, Any], contents: Sequence[bytes]) -> ProgramOutcome:
    """Return a run's outcome from a judge's answer: its header and the contents of its `PARTS`.

    SandboxError if the program imported a package that this box lacks.
    """
    if lacks := header.get("lacks"):
        raise SandboxError(LACKS.format(", ".join(lacks)))
    stdout, stderr, result = contents
    ending, spent = (header["status"], header["exit_code"]), (header["cpu_s"], header["wall_s"])
    return ProgramOutcome(*ending, stdout, stderr, result, *spent)


def json_line(order: Mapping[str, Any]) -> bytes:
    """Return an order to the judge as one line of JSON."""
    return json.dumps(order).encode() + b"\n"


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
home = "podium.sandbox.inside"
for name in ("podium", "podium.sandbox", home): sys.modules[name] = types.ModuleType(name)
for name, text in order["sources"].items():
    full = home + "." + name
    module = sys.modules[full] = types.ModuleType(full)
    setattr(sys.modules[home], name, module)
    exec(compile(text, full, "exec"), module.__dict__)
sys.modules[home + ".judge"].main(
    order["mode"], source, sink, bytes.fromhex(order["refused"]), order["promised"])
os._exit(0)
"""
"""The first code that a cell runs: it reads the supervisor's source code from stdin."""

PYTHON_FLAGS = ("-s", "-P", "-S", "-X", "utf8", "-c", BOOT)  # without site packages
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
BOOT_S = 30.0
GRACE_S = 30.0
"""Seconds that a judge may need beyond a run's wall limit, for cleanup and large data."""
CLOSE_S = 0.5  # seconds until a judge whose stream has ended is killed
PIECE = 1 << 18


class CellDied(Exception):
    """Raised if a cell's supervisor (judge) has ended: killed by program, kernel or engine."""


class CellStuck(Exception):
    """Raised if a cell's supervisor (judge) does not answer, e.g. if its container is paused."""


class Stream(Protocol):
    """Byte stream to and from a cell's supervisor; deadlines are values of time.monotonic."""

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        """Send all bytes; CellDied if the supervisor has ended, CellStuck after the deadline."""

    def receive(self, deadline: float) -> bytes:
        """Wait for at least one byte and return what came; CellDied or CellStuck as in `send`."""
        ...

    def close(self) -> None:
        """Stop the supervisor and its container or process; never raises."""


class _PipeStream:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self._process = process
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    def send(self, data: bytes | memoryview, deadline: float) -> None:
        view = memoryview(data)
        while view:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([], [self._stdin], [], left_s)[1]:
                raise CellStuck("it accepts no more input")
            try:
                view = view[os.write(self._stdin, view[:PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise CellDied(str(error)) from error

    def receive(self, deadline: float) -> bytes:
        if not select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise CellStuck("it did not answer in time")
        data = os.read(self._stdout, PIECE)
        if not data:
            raise CellDied("it ended")
        return data

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class SandboxCell:
    """A running supervisor process (judge), which runs programs, and the byte stream to it."""

    def __init__(self, stream: Stream, boot: bytes) -> None:
        """Start the judge at the other end of `stream` by a `boot_message`; wait for its reply."""
        self._stream, self._buffer = stream, bytearray()
        self.runs = 0
        self.program: Program | None = None
        self._deadline = time.monotonic() + BOOT_S
        self._send(boot)
        self._line()

    def load(self, program: Program) -> None:
        """Send a program to the judge; it replaces the previous program."""
        self._deadline = time.monotonic() + GRACE_S
        self.program = program
        self._send(load_frame(program))

    def run(
        self, data: bytes, limits: Limits, grace_s: float = GRACE_S
    ) -> tuple[ProgramOutcome, bool]:
        """Run the loaded program on one input; return outcome and whether the cell is reusable."""
        self.runs += 1
        self._deadline = time.monotonic() + limits.wall_s + grace_s
        order = run_header(len(data), limits)
        if len(data) < PIECE:
            self._send(order + data)  # one message is faster than two
        else:
            self._send(order)
            self._send(data)
        header = self._line()
        contents = [self._exactly(header[name]) for name in PARTS]
        return parse_outcome(header, contents), header["clean"]

    def facts(self) -> dict[str, Any]:
        """Return the cell's Python version and the packages that programs can import."""
        self._deadline = time.monotonic() + GRACE_S
        self._send(FACTS)
        return self._line()

    def close(self) -> None:
        """Stop the cell's supervisor process."""
        self._stream.close()

    def _send(self, data: bytes) -> None:
        self._stream.send(data, self._deadline)

    def _line(self) -> dict[str, Any]:
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer += self._stream.receive(self._deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            return json.loads(line)
        except ValueError:
            raise CellDied(f"it said {line[:200]!r}") from None

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += self._stream.receive(self._deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


def spawn(argv: list[str], boot: bytes, pass_fds: tuple[int, ...] = ()) -> SandboxCell:
    """Start a cell's supervisor (judge) as a child process; SandboxError if it does not start."""
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
    return start_cell(_PipeStream(process), boot)


def start_cell(stream: Stream, boot: bytes) -> SandboxCell:
    """Start the judge (supervisor) behind a stream, return its cell; SandboxError if it fails."""
    try:
        return SandboxCell(stream, boot)
    except BaseException as error:
        stream.close()
        if isinstance(error, CellDied | CellStuck):
            raise SandboxError(f"A sandbox did not start: {error}.") from error
        raise


PROGRAMS = 2000  # maximum runs in one cell, which then is replaced


@dataclass(frozen=True, slots=True)
class CellKind:
    """Properties of a cell that are fixed when it starts: image, memory and process limits."""

    image: str
    memory_bytes: int
    processes: int


class CellPool:
    """A pool of cells (supervisor processes), started ahead, reused if clean, else replaced."""

    def __init__(self, start: Callable[[CellKind], SandboxCell], limit: int, reuse: bool) -> None:
        """Lend up to `limit` cells, made by `start`; `reuse`: a cell may run several programs."""
        self._start, self._most, self._reuse = start, limit, reuse
        self._bound = limit if reuse else 2 * limit
        self._idle: list[tuple[CellKind, SandboxCell]] = []
        self._cells: set[SandboxCell] = set()
        self._count = 0  # all cells, including those that are starting
        self._held = 0  # cells handed out, or promised to a caller that waits
        self._closed = False
        self._changed = threading.Condition()

    def take(self, kind: CellKind, *, fresh: bool = False) -> SandboxCell:
        """Return an idle cell or, always if `fresh`, a new one; waits while `limit` are in use."""
        cell, evicted = self._reserve(kind, fresh)
        if evicted:
            evicted.close()
        cell = cell or self._begin(kind, leases=1)
        self._ahead(kind)
        return cell

    def give_back(self, kind: CellKind, cell: SandboxCell) -> None:
        """Take a clean cell back: keep it for other programs, or close it if it may run no more."""
        if self._reuse and cell.runs < PROGRAMS:
            self._rest(kind, cell, leases=1)
        else:
            self.drop(cell)
            self._ahead(kind)

    def drop(self, cell: SandboxCell) -> None:
        """Close a cell that was handed out and must not be used again."""
        with self._changed:
            if cell not in self._cells:
                return
            self._cells.discard(cell)
            self._count -= 1
            self._held -= 1
            self._changed.notify_all()
        cell.close()

    def close(self) -> None:
        """Close every cell of the pool, including cells in use."""
        with self._changed:
            self._closed = True
            cells, self._cells = self._cells, set()
            self._idle.clear()
            self._changed.notify_all()
        for cell in cells:
            cell.close()

    @property
    def alive(self) -> int:
        """The number of running cells."""
        with self._changed:
            return len(self._cells)

    def _reserve(
        self, kind: CellKind, fresh: bool
    ) -> tuple[SandboxCell | None, SandboxCell | None]:
        """Wait until fewer than `limit` cells are in use, and reserve one.

        Return an idle cell (None: start a new one), and a cell to close before that (None: none).
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_place())
            if self._closed:
                raise SandboxError("The sandbox has been closed.")
            self._held += 1
            match = next((entry for entry in self._idle if entry[0] == kind and not fresh), None)
            if match:
                self._idle.remove(match)
                return match[1], None
            if self._count < self._bound:
                self._count += 1
                return None, None
            _, evicted = self._idle.pop(0)
            self._cells.discard(evicted)
            return None, evicted

    def _has_place(self) -> bool:
        return self._held < self._most and (self._count < self._bound or bool(self._idle))

    def _begin(self, kind: CellKind, leases: int) -> SandboxCell:
        """Start a cell that the pool has already counted; if that fails, correct the counts."""
        try:
            cell = self._start(kind)
        except BaseException:
            with self._changed:
                self._count -= 1
                self._held -= leases
                self._changed.notify_all()
            raise
        with self._changed:
            if not self._closed:
                self._cells.add(cell)
                return cell
        cell.close()
        raise SandboxError("The sandbox has been closed.")

    def _ahead(self, kind: CellKind) -> None:
        with self._changed:
            if self._closed or self._count >= self._bound:
                return
            self._count += 1
        threading.Thread(target=self._warm, args=(kind,), daemon=True).start()

    def _warm(self, kind: CellKind) -> None:
        """Start a cell and keep it idle; ignore a failure, which the next start will raise."""
        with suppress(SandboxError):
            self._rest(kind, self._begin(kind, leases=0), leases=0)

    def _rest(self, kind: CellKind, cell: SandboxCell, leases: int) -> None:
        with self._changed:
            if cell in self._cells:
                self._held -= leases
                self._idle.append((kind, cell))
            self._changed.notify_all()


class Cores:
    """A semaphore with one slot per CPU core, so that time limits of programs are fair.

    Sixteen programs on four cores would turn right answers into timeouts. If a run must be repeated
    alone, the method `all` waits for all other runs and blocks new ones.
    """

    def __init__(self, count: int) -> None:
        """Allow `count` concurrent runs of programs."""
        self._count, self._free = count, threading.Semaphore(count)
        self._gate = threading.Lock()  # every run acquires it at its start; `all` keeps it

    @contextmanager
    def one(self) -> Generator[None]:
        """Hold one core in this context, in which a program runs."""
        with self._gate:
            self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def all(self) -> Generator[None]:
        """Hold every core in this context, so that no other program runs."""
        with self._gate:
            for _ in range(self._count):
                self._free.acquire()
            try:
                yield
            finally:
                self._free.release(self._count)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


CORES = Cores(available_cores())
"""The cores that all boxes of this process share; the load of other processes is ignored."""


NOTHING = Program("")
TWICE = ProgramOutcome("died", -9, b"", b"The program ended its sandbox, twice.", b"", 0.0, 0.0)


class CellBox(ABC):
    """A box that runs programs in cells (supervisor processes); subclasses define their start."""

    name: str  # on the command line, in logs and in tables
    reuse = False  # whether a cell may run several programs, one after another
    grace_s = GRACE_S
    """Seconds beyond a run's wall limit after which its cell counts as stuck."""

    def __init__(self, max_sandboxes: int | None = None) -> None:
        """Allow at most `max_sandboxes` cells in use at the same time (default one per core)."""
        self._pool = CellPool(self.start, max_sandboxes or available_cores(), self.reuse)
        atexit.register(self.close)

    @abstractmethod
    def start(self, kind: CellKind) -> SandboxCell:
        """Start a cell (supervisor process) of a kind; SandboxError, with a reason, on failure."""

    def check(self) -> None:  # noqa: B027  (most boxes depend on nothing)
        """Raise SandboxError if something that cells need, e.g. the docker engine, is down."""

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),  # noqa: B008
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        """Run a program on each input, yield one outcome per input; see `sandbox.box.Box.run`."""
        kind = CellKind(program.image, limits.memory_bytes, limits.processes)
        with closing(_HeldCell(self._pool, kind, program)) as holder:
            for data in inputs:
                holder.take()
                with CORES.all() if alone else CORES.one():
                    outcome = self._try(holder, data, limits)
                if outcome is None:
                    self.check()
                    holder.take(fresh=True)
                    with CORES.all():
                        outcome = self._try(holder, data, limits)
                if outcome is None:
                    self.check()
                yield outcome or TWICE

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        """Return Python version and packages for programs; SandboxError if the box is unusable."""
        limits = Limits()
        kind = CellKind(image, limits.memory_bytes, limits.processes)
        cell = self._pool.take(kind)
        try:
            reply = cell.facts()
        except (CellDied, CellStuck) as error:
            self._pool.drop(cell)
            down = f"The {self.name} sandbox is down: {error}"
            raise SandboxError(f"{down}. See `podium sandbox status`.") from error
        self._pool.give_back(kind, cell)
        return SandboxFacts(self.name, reply["python"], packages=tuple(reply["packages"]))

    def close(self) -> None:
        """Stop every cell (supervisor process); the box cannot be used afterwards."""
        atexit.unregister(self.close)
        self._pool.close()

    def _try(self, holder: "_HeldCell", data: bytes, limits: Limits) -> ProgramOutcome | None:
        try:
            return holder.run(data, limits, self.grace_s)
        except CellDied:
            return None
        except CellStuck as error:
            raise SandboxError(f"The {self.name} sandbox is stuck: {error}.") from error


class _HeldCell:
    """A program and the cell that runs it: taken from a pool at a run, replaced if not clean."""

    def __init__(self, pool: CellPool, kind: CellKind, program: Program) -> None:
        self._pool, self._kind, self._program = pool, kind, program
        self._cell: SandboxCell | None = None

    def take(self, *, fresh: bool = False) -> None:
        """Take a cell from the pool if none is held; this may wait, so hold no core meanwhile."""
        if self._cell is None:
            self._cell = self._pool.take(self._kind, fresh=fresh)

    def run(self, data: bytes, limits: Limits, grace_s: float) -> ProgramOutcome:
        cell = self._cell
        assert cell
        try:
            if cell.program is not self._program:
                cell.load(self._program)
            outcome, clean = cell.run(data, limits, grace_s)
        except BaseException:  # the stream may still contain the rest of an answer
            self._drop(cell)
            raise
        if not clean:
            self._drop(cell)
        return outcome

    def close(self) -> None:
        """Unload the program and return the cell to the pool."""
        if self._cell:
            with suppress(CellDied, CellStuck):
                self._cell.load(NOTHING)
            self._pool.give_back(self._kind, self._cell)

    def _drop(self, cell: SandboxCell) -> None:
        self._pool.drop(cell)
        self._cell = None


class SubprocessBox(CellBox):
    """A box of plain child processes with limits but without isolation.

    Limited: CPU and real time of a program with all its children; address space; memory, processes
    and threads, checked every 50 ms (a fork bomb lives that long); sizes of what the program
    writes or returns; no core dumps; all its processes are killed, daemons too; a fresh working
    directory, an empty environment, no inherited file descriptors.

    Not covered: the network, and every file that the user may read or write; signalling, tracing or
    limiting other processes of the user, the judge among them; System V segments, POSIX queues and
    keyrings that outlive processes; the total disk space.

    So it is for programs that we wrote ourselves (the rehearsal workers), and for others only if
    the user selects it by name. Linux only: it needs prctl, memfd and /proc.
    """

    name = "subprocess"

    def start(self, kind: CellKind) -> SandboxCell:
        """Start a supervisor as a child process of this user, outside any virtual environment."""
        python = str(Path(sys.executable).resolve())
        boot = boot_message("plain", promised_names(kind.image))
        return spawn([python, *PYTHON_FLAGS], boot)
