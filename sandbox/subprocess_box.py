"""A box made of plain child processes with limits. It limits; it does not isolate.

Covered
- CPU time and real time of a program with all its children; address space and, watched, memory;
- the number of processes and threads: watched, so a fork bomb lives for about a tenth of a second;
- size of stdout, of stderr, of what is returned and of any file; no core dumps;
- everything the program started is killed when its run ends, daemons too: orphans are adopted;
- a fresh working directory per run, removed afterwards; an empty environment; no descriptors of
  ours; no access to what this process holds.

Not covered
- the network, and every file the current user may read or write, /tmp and /dev/shm included;
- signalling, tracing or limiting other processes of the same user, the judge among them;
- what outlives processes elsewhere: System V segments, POSIX queues, kernel keyrings;
- many small files: the disk is limited per file, not in total; memory is limited per watch tick.

So it serves programs that we wrote ourselves (the rehearsal workers), and others only where the
user asked for it by name. Linux only: it needs prctl, memfd and /proc.
"""

import sys
from pathlib import Path

from sandbox.cell_box import CellBox
from sandbox.cells import PYTHON_FLAGS, Cell, spawn
from sandbox.pool import Kind


class SubprocessBox(CellBox):
    """Child processes under rlimits; see the module's two lists before you trust it."""

    @property
    def name(self) -> str:
        """`subprocess`."""
        return "subprocess"

    def start(self, kind: Kind) -> Cell:
        """Start a judge in a child process of the same user, outside any virtual environment."""
        python = str(Path(sys.executable).resolve())
        return spawn([python, *PYTHON_FLAGS], "plain")
