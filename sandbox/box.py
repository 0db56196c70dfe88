"""What a box is: a place that runs one untrusted program on many inputs and reports what happened.

Everything the program does wrong is an `Outcome`, a value. Everything the box does wrong (its
daemon is down, its image is missing, the disk is full) is a `SandboxError`. The two never mix: an
outage must not be graded as a wrong answer.

A box is never told what an input should produce. Whoever grades compares outside, so there is
nothing in the box to steal and nothing to gain by forging a result.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

IMAGE = "podium-sandbox"
"""The image every code suite runs in unless it names another; boxes without images ignore it."""

Runner = Literal["script", "call", "official", "unittest"]
"""How a program is run on one input; each is a function in sandbox/inside/runners.py.

- `script`: a real process; the input is its standard input, the outcome's `stdout` its output;
- `call`: a fresh process calls the method `entry` with the input, a JSON list of arguments; the
  outcome's `result` is the returned value as type-tagged JSON (`sandbox.values.decode`);
- `official`: as LiveCodeBench's published evaluator does it, standard input mocked, the program
  wrapped in a function, one process for all inputs; `result` is `{"output": text}` for programs
  that read standard input and `{"returned": value}` for methods;
- `unittest`: the program and its test code (the input) in one process, as BigCodeBench does it;
  `result` is `{"ran": n, "failed": {test: last line}}`.
"""

Status = Literal["exited", "time", "memory", "output", "processes", "died"]
"""How a run ended: by itself (any exit code), over a limit, or twice taking its box along."""


class SandboxError(Exception):
    """The box failed, not the program: the sample stays unscored, with this reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of a program may use."""

    cpu_s: float = 6.0
    """CPU time, all its processes together, so that a busy machine does not change verdicts
    (LiveCodeBench's 6 s are wall time)."""
    wall_s: float = 18.0
    """Real time, against programs that sleep or wait: three times the CPU limit."""
    memory_bytes: int = 1 << 30
    """Memory of all its processes together."""
    output_bytes: int = 8 << 20
    """Largest stdout, largest stderr, largest result and largest file."""
    processes: int = 64
    """Processes and threads alive at once."""


@dataclass(frozen=True, slots=True)
class Program:
    """An untrusted program and the way to run it."""

    source: str
    runner: Runner = "script"
    entry: str | None = None
    """The method to call (of `class Solution`, else a function); None for standard input."""
    image: str = IMAGE


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended."""

    status: Status
    exit_code: int
    """As the shell's: negative for a signal. Meaningful when the status is `exited`."""
    stdout: bytes
    stderr: bytes
    result: bytes
    """What the runner reports; empty when the program never came that far. Written by a process
    that the program controls: parse it as data, and never take it for a verdict."""
    cpu_s: float
    """CPU time of all its processes; may pass the limit by a watch interval."""
    wall_s: float


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """Where programs ran, for logs and tables."""

    box: str
    """`docker`, `docker:runsc`, `bwrap`, `subprocess`, `inspect:docker`."""
    python: str
    """Version of the Python inside, e.g. `3.11.2`."""
    image: str | None = None
    """Name of the image, where there is one."""
    image_id: str | None = None
    """Its content digest, `sha256:...`."""
    packages: tuple[str, ...] = field(default=())
    """Third-party packages a program can import, as `name==version`, sorted."""


class Box(Protocol):
    """A place where untrusted code may run. Each program finds it clean, whatever ran before."""

    @property
    def name(self) -> str:
        """The name on the command line, in logs and in tables."""
        ...

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),
        *,
        alone: bool = False,
    ) -> Generator[Outcome]:
        """Yield one outcome per input, each run in a fresh process (`official`: in one process).

        Lazy: an input is taken when its outcome is asked for, so closing the generator stops early;
        close it in any case (`contextlib.closing`). `alone` keeps every other run of this host
        process waiting. Safe to use from several threads. Raises SandboxError when the box fails.
        """
        ...

    def facts(self, image: str = IMAGE) -> BoxFacts:
        """Say what programs would run on; SandboxError names what is missing and its fix."""
        ...

    def close(self) -> None:
        """Release every process and container; the box cannot be used afterwards."""
        ...
