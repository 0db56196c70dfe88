"""What all boxes made of cells share, and the plainest of them: child processes with limits.

When a cell dies during a run, the engine is asked first. If it lives, the program runs again, alone
in a fresh cell; if that dies too it was the program: status `died`, not a failure of ours.
"""

import atexit
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from pathlib import Path

from sandbox import cells
from sandbox.box import IMAGE, Limits, Program, ProgramOutcome, SandboxError, SandboxFacts
from sandbox.cells import CellDied, CellKind, CellPool, CellStuck, SandboxCell

NOTHING = Program("")
TWICE = ProgramOutcome("died", -9, b"", b"The program ended its sandbox, twice.", b"", 0.0, 0.0)


class CellBox(ABC):
    """A box whose runs happen in cells; a subclass says how a cell starts."""

    name: str  # on the command line, in logs and in tables
    reuse = False  # whether a cell may serve one program after another
    grace_s = cells.GRACE_S
    """How much longer than its wall limit a run may take before its cell counts as stuck."""

    def __init__(self, max_sandboxes: int | None = None) -> None:
        """Hold at most `max_sandboxes` cells at once: one per core when not said."""
        self._pool = CellPool(self.start, max_sandboxes or cells.available_cores(), self.reuse)
        atexit.register(self.close)

    @abstractmethod
    def start(self, kind: CellKind) -> SandboxCell:
        """Start a cell; SandboxError names what is missing."""

    def check(self) -> None:  # noqa: B027  (most boxes depend on nothing)
        """Raise SandboxError when what cells depend on, an engine say, no longer answers."""

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),  # noqa: B008
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        """Yield one outcome per input; see `sandbox.box.Box.run`."""
        kind = CellKind(program.image, limits.memory_bytes, limits.processes)
        with closing(_HeldCell(self._pool, kind, program)) as held:
            for data in inputs:
                held.take()
                with cells.CORES.all() if alone else cells.CORES.one():
                    outcome = self._try(held, data, limits)
                if outcome is None:
                    self.check()
                    held.take(fresh=True)
                    with cells.CORES.all():
                        outcome = self._try(held, data, limits)
                if outcome is None:
                    self.check()
                yield outcome or TWICE

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        """Say what programs would run on; SandboxError names what is missing and its fix."""
        limits = Limits()
        kind = CellKind(image, limits.memory_bytes, limits.processes)
        cell = self._pool.take(kind)
        try:
            said = cell.facts()
        except (CellDied, CellStuck) as error:
            self._pool.drop(cell)
            raise SandboxError(f"The {self.name} sandbox is down: {error}.") from error
        self._pool.give_back(kind, cell)
        return SandboxFacts(self.name, said["python"], packages=tuple(said["packages"]))

    def close(self) -> None:
        """End every cell."""
        atexit.unregister(self.close)
        self._pool.close()

    def _try(self, held: "_HeldCell", data: bytes, limits: Limits) -> ProgramOutcome | None:
        try:
            return held.run(data, limits, self.grace_s)
        except CellDied:
            return None
        except CellStuck as error:
            raise SandboxError(f"The {self.name} sandbox is stuck: {error}.") from error


class _HeldCell:
    """A program and the cell it runs in, taken when it first runs and replaced when unclean."""

    def __init__(self, pool: CellPool, kind: CellKind, program: Program) -> None:
        self._pool, self._kind, self._program = pool, kind, program
        self._cell: SandboxCell | None = None

    def take(self, *, fresh: bool = False) -> None:
        """Hold a cell, before a core is held: whoever holds a core waits for nobody's cell."""
        if self._cell is None:
            self._cell = self._pool.take(self._kind, fresh=fresh)

    def run(self, data: bytes, limits: Limits, grace_s: float) -> ProgramOutcome:
        cell = self._cell
        assert cell
        try:
            if cell.program is not self._program:
                cell.load(self._program)
            outcome, clean = cell.run(data, limits, grace_s)
        except BaseException:  # the cell may be in the middle of an answer
            self._drop(cell)
            raise
        if not clean:
            self._drop(cell)
        return outcome

    def close(self) -> None:
        """Return the cell, with its program out of it."""
        if self._cell:
            with suppress(CellDied, CellStuck):
                self._cell.load(NOTHING)
            self._pool.give_back(self._kind, self._cell)

    def _drop(self, cell: SandboxCell) -> None:
        self._pool.drop(cell)
        self._cell = None


class SubprocessBox(CellBox):
    """Plain child processes with limits. It limits; it does not isolate.

    Covered: CPU and real time of a program with all its children; address space; memory, processes
    and threads as watched, so a fork bomb lives for a tenth of a second; sizes of what it writes or
    returns; no core dumps; all it started is killed, daemons too; a fresh working directory, an
    empty environment, no descriptors of ours.

    Not covered: the network, and every file that the user may read or write; signalling, tracing or
    limiting other processes of the user, the judge among them; System V segments, POSIX queues and
    keyrings that outlive processes; the disk in total.

    So it serves programs that we wrote ourselves (the rehearsal workers), and others only where the
    user asked for it by name. Linux only: it needs prctl, memfd and /proc.
    """

    name = "subprocess"

    def start(self, kind: CellKind) -> SandboxCell:
        """Start a judge in a child process of the same user, outside any virtual environment."""
        python = str(Path(sys.executable).resolve())
        return cells.spawn([python, *cells.PYTHON_FLAGS], "plain")
