"""A box is a sandbox: it runs an untrusted program on many inputs and returns an outcome for each.

A failure of the program is a `ProgramOutcome`, a value; a failure of the box is a `SandboxError`,
so that no outage is graded as a wrong answer. A box never receives expected outputs: a program can
neither steal them nor gain by forging a result.
"""

import base64
import binascii
import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Protocol, cast

IMAGE = "podium-sandbox"
"""Default container image for the programs of code suites; boxes without images ignore it."""
Runner = Literal["script", "call", "official", "unittest"]
"""How a program is run on one input; each name is that of a function in inside/runners.py.

- `script`: a process of its own that reads the input from stdin; `stdout` has its output;
- `call`: a fresh process calls the method `entry` with the input, a JSON list of arguments; the
  outcome's `result` is the returned value as type-tagged JSON (`decode`). One process may take
  several inputs if the program cannot keep state between them (sandbox/inside/purity.py);
- `official`: as in LiveCodeBench's published evaluator: one process for all inputs, the program
  wrapped in a function, standard input mocked; `result` is `{"output": text}` for programs
  that read standard input and `{"returned": value}` for methods;
- `unittest`: the program and its test code (the input) in one process, as BigCodeBench does;
  `result` is `{"ran": n, "failed": {test: last line}}`.
"""
Status = Literal["exited", "time", "memory", "output", "processes", "died"]
"""How a run of a program ended: by itself (`exited`, with any exit code), at the limit that the
word names, or by killing its box twice (`died`)."""


class SandboxError(Exception):
    """Raised if a box fails, not its program: the answer gets no grade, the reason is logged."""


SLACK_BYTES = 192 << 20
"""Bytes of memory that a container has beyond the program's limit: for its supervisor and data."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one run of a program."""

    cpu_s: float = 6.0
    """Maximum CPU seconds of all processes of the program together: a limit of CPU time, so that a
    busy machine changes no verdict (LiveCodeBench's own limit is 6 s of real time)."""
    wall_s: float = 18.0
    """Maximum seconds of real time, for programs that sleep or wait."""
    memory_bytes: int = 1 << 30
    """Maximum memory of all processes of the program together. Suites that need more define other
    `Limits`; a test checks that sandbox/compose.yaml has the same numbers."""
    output_bytes: int = 8 << 20
    """Maximum bytes of stdout, of the result and of each file; stderr has no limit."""
    processes: int = 64
    """Maximum number of the program's processes and threads that exist at the same time."""


@dataclass(frozen=True, slots=True)
class Program:
    """An untrusted program and how to run it."""

    source: str
    runner: Runner = "script"
    entry: str | None = None
    """Method of `class Solution`, or function, to call; None for a program that reads stdin."""
    image: str = IMAGE


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How one run of a program on one input ended, and what it wrote and used."""

    status: Status
    exit_code: int
    """Exit code of the program, negative for a signal; meaningful if `status` is `exited`."""
    stdout: bytes
    stderr: bytes
    """The last part of the program's stderr, since a program may write any amount."""
    result: bytes
    """The report of the runner (see `Runner`), empty if the run ended before the report. A process
    that the program controls wrote it: parse the report as data, never use it as a verdict."""
    cpu_s: float
    """CPU seconds of all processes; may exceed the limit by the time between two checks of it."""
    wall_s: float


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """The sandbox in which the programs of a run were executed, as logs and tables state it."""

    box: str
    python: str
    image: str | None = None
    image_id: str | None = None
    """The container image's content digest, `sha256:...`."""
    packages: tuple[str, ...] = field(default=())
    """Third-party packages that programs can import, as `name==version`, sorted."""


class Box(Protocol):
    """A sandbox for untrusted programs; no program finds traces of an earlier program in it."""

    @property
    def name(self) -> str:
        """The box's name on the command line, in logs and in tables."""
        ...

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        """Run a program on each of its inputs; yield one outcome per input.

        Each run behaves as in a fresh process; only the runner `official` uses one process for all
        inputs. With `alone`, no other program of this host process runs at the same time.
        """
        ...

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        """Return Python version and packages for programs; SandboxError if the box is unusable."""
        ...

    def close(self) -> None:
        """End every process and container of the box, which cannot be used afterwards."""


DIGITS = 50_000
"""Maximum decimal digits of an integer in a result, as in LiveCodeBench's evaluator."""
HASHED = 1000
"""Maximum set elements and dictionary keys in a result, strings excluded: a program can choose
numbers whose hashes all collide, which makes hashing quadratic."""


def decode(result: bytes) -> object:
    """Return the value in a report of the runner `call`, as plain builtins; ValueError if none.

    A process that the program controls wrote the bytes, so nothing in them is executed. Malformed,
    too deeply nested or too large values raise ValueError.

    >>> decode(b'{"returned": {"list": [1, {"tuple": ["a", null]}]}}')
    [1, ('a', None)]
    """
    report = read_json(result)
    if not isinstance(report, dict) or "returned" not in report:
        raise ValueError("no returned value")
    return untagged(cast("dict[str, object]", report)["returned"])


def read_json(text: str | bytes) -> object:
    """Parse JSON with integers of up to `DIGITS` digits; ValueError if the text is no such JSON."""
    try:
        try:
            return json.loads(text)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise
        except ValueError:  # an integer with more digits than Python's default limit
            return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("values nested too deeply") from None


def untagged(value: object) -> object:
    """Return the value of type-tagged JSON, e.g. of `{"set": [1]}`; ValueError if malformed."""
    try:
        return _Reader().read(value)
    except (RecursionError, TypeError, KeyError, OverflowError, binascii.Error) as error:
        raise ValueError(f"not a plain value ({type(error).__name__})") from None


class _Reader:
    """Decodes one value with type tags; counts its set elements and keys, at most `HASHED`."""

    def __init__(self) -> None:
        self._hashed = 0

    def read(self, value: object) -> object:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ValueError("a list without its tag")
            return value
        ((tag, content),) = cast("dict[str, Any]", value).items()
        return _READERS[tag](self, content)

    def all(self, content: list[object]) -> list[object]:
        return [self.read(item) for item in content]

    def hashable(self, content: list[object]) -> list[object]:
        items = self.all(content)
        self._hashed += sum(not isinstance(item, str) for item in items)
        if self._hashed > HASHED:
            raise ValueError(f"more than {HASHED} keys or set elements")
        return items

    def pairs(self, content: list[list[object]]) -> dict[object, object]:
        keys = self.hashable([key for key, _ in content])
        return dict(zip(keys, self.all([item for _, item in content]), strict=True))


_READERS: dict[str, Callable[[_Reader, Any], object]] = {
    "list": _Reader.all,
    "tuple": lambda reader, content: tuple(reader.all(content)),
    "set": lambda reader, content: set(reader.hashable(content)),
    "frozenset": lambda reader, content: frozenset(reader.hashable(content)),
    "dict": _Reader.pairs,
    "bytes": lambda _, content: base64.b64decode(content, validate=True),
    "complex": lambda _, content: complex(*content),
}


def _integer(text: str) -> int:
    """Convert text to an integer of up to `DIGITS` digits; Python's default limit is 4,300."""
    if len(text) > DIGITS:
        raise ValueError("an integer of too many digits")
    try:
        return int(Decimal(text))
    except InvalidOperation:
        raise ValueError("not an integer") from None
