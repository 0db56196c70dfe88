"""What a box is: a place that runs one untrusted program within limits and reports what happened.

Everything the program does wrong is an `Outcome`, a value. Everything the box does wrong (it cannot
start a process, its daemon is down, the disk is full) is a `SandboxError`. The two never mix: an
outage must not be graded as a wrong answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

PYTHON = "python"
"""As the first word of a command: the box's own Python, wherever it is."""

Status = Literal["exited", "timeout", "memory", "output", "processes"]
"""How a program ended: by itself (any exit code), or over one of its limits."""


class SandboxError(Exception):
    """The box failed, not the program: the sample stays unscored, with this reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use. A box may round CPU time up to a full second."""

    cpu_s: float = 6.0
    """CPU time, so that a busy machine does not change verdicts (LiveCodeBench's 6 s are wall)."""
    wall_s: float = 18.0
    """Real time, against programs that sleep or wait for input: three times the CPU limit."""
    memory_bytes: int = 1 << 30
    """Address space (or memory, where a box can measure it) of each process."""
    output_bytes: int = 8 << 20
    """Largest stdout, largest stderr and largest file."""
    processes: int = 32
    """Processes alive at once, the program included."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one program ended."""

    status: Status
    """`memory` also when Python reported MemoryError: it then ends with an ordinary exit code."""
    exit_code: int
    """As the shell's: negative for a signal. Meaningful when the status is `exited`."""
    stdout: bytes
    stderr: bytes
    cpu_s: float
    """CPU time of the program and of the children it waited for."""
    wall_s: float


class Box(Protocol):
    """A place where untrusted code may run. Each run starts clean and leaves nothing behind."""

    @property
    def name(self) -> str:
        """The name on the command line, in logs and in tables."""
        ...

    def run(
        self, files: Mapping[str, bytes], command: Sequence[str], stdin: bytes, limits: Limits
    ) -> Outcome:
        """Run a command in a fresh directory that holds `files`; raise SandboxError if we cannot.

        Safe to call from several threads at once. File names are relative; the environment is
        empty; the directory is removed before this returns.
        """
        ...
