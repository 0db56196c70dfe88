"""Runners: each runs a program on one input in a separate process, and ends that process.

The process already has its user, its limits and its descriptors: 0 is the input, 1 and 2 are stdout
and stderr, 3 takes the runner's report. The program controls this process and can forge the report;
but a report only states the returned value, and the process does not have the expected value.
"""

import ast
import atexit
import base64
import builtins
import collections
import faulthandler
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn, cast

from podium.sandbox.inside.purity import is_pure

TIMEOUT_S = 6  # real time for compiling the program, and again for each test
DIGITS = 50_000  # longest integer that may be printed or read, in decimal digits
SLOW, FAILED, GONE = -3, -4, -5
"""Error codes of LiveCodeBench's published evaluator: time limit, any other exception; `GONE`: the
program ended the evaluator's own process."""
DEEPEST = 200
"""Maximum nesting depth of a returned value that is read; no expected value is as deep."""

STARRED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random"),
    *("statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins"),
    "typing",
)
"""Modules that programs of runners `official` and `call` find imported: by `from ... import *` in
this order, then by name. So `open` is a global name, which no mock of `builtins.open` replaces."""

HEADER = "".join(
    [f"from {name} import *\n" for name in STARRED]
    + [f"import {name}\n" for name in STARRED if name not in ("builtins", "typing")]
    + ["sys.setrecursionlimit(50000)\n"]
)

DISABLED = {
    "builtins": "help quit",
    "os": "chdir chmod chown chroot fchdir fchmod fchown fork forkpty getcwd kill killpg lchflags "
    "lchmod lchown putenv remove removedirs rename renames replace rmdir setuid system truncate "
    "unlink",
    "shutil": "chown move rmtree",
    "subprocess": "Popen",
}
"""Module -> functions that runner `official` sets to None, so that a call raises TypeError; so does
os.environ[...] = ..., which calls `putenv`."""

PLAIN = (int, float, str, list, tuple, dict)
"""Types whose values, and those of their subclasses, can equal an expected value."""
NUMERIC = ("networkx", "numpy", "pandas", "scipy", "sklearn")
"""Words in a program for which numpy is imported before functions are disabled. The published
evaluator always imports numpy, which takes 0.1 s per program."""
UNIMPORTABLE = ("ipdb", "joblib", "psutil", "resource", "tkinter")


LACKING: list[str] = []
"""Packages that programs may import but that this box lacks."""
LACKS = 119
"""Exit code of a process that imported a package of `LACKING`: the program is not graded."""


class LackingFinder:
    """Import hook that ends a program if it imports a package of `LACKING`, even inside `try`."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """End the process if a package of `LACKING` is imported; Python calls this finder last."""
        if name.partition(".")[0] in LACKING:
            os._exit(LACKS)


class TimeoutException(Exception):
    """Raised in `official` at a time limit; a program that catches every exception continues."""


class Official:
    """A program run as LiveCodeBench's published evaluator runs it, faults included.

    Its semantics are those of lcb_runner/evaluation/testing_util.py, github.com/LiveCodeBench/
    LiveCodeBench @28fef95, reimplemented: the program is a function in this process, called once
    per test with mocks of `sys.stdin` and `sys.stdout`, or a method called on one object. State is
    kept between tests, alarms count real time, and some correct programs fail; `rules="official"`
    of suites/code_grading.py shows which. Lines below that look wrong copy the original. One thing
    differs: results are compared outside the box, so the program's own `__eq__` is never used.
    """

    def __init__(self, source: str, entry: str | None) -> None:
        """Compile the program and run its module-level code; `one` reports errors of this step."""
        self._entry, self._error = entry, b""
        self._method: Callable[..., Any] = types.SimpleNamespace
        become_evaluator(source)
        try:
            signal.alarm(TIMEOUT_S)
            source = _wrapped(source) if entry is None else f"{HEADER}\n\n{source}"
            self._method = _compiled(source, entry or "wrapped_function")
        except BaseException as error:
            self._error = _failure(error, FAILED)
        finally:
            signal.alarm(0)

    def one(self, data: bytes) -> bytes:
        """Run one test; return `{"output": text}`, `{"returned": value}` or `{"error", "code"}`.

        `data` is the text of standard input, or a JSON list of arguments; `value` is type-tagged.
        """
        if self._error:
            return self._error
        try:
            faulthandler.enable()
            if self._entry is None:
                return _as_bytes({"output": self._printed(data.decode("utf-8", errors="replace"))})
            return _as_bytes({"returned": tagged(self._returned(json.loads(data)))})
        except BaseException as error:
            signal.alarm(0)
            slow = "timeoutexception" in _safe_repr(error).lower()
            return _failure(error, SLOW if slow else FAILED)
        finally:
            signal.alarm(0)

    def _returned(self, arguments: list[Any]) -> Any:
        signal.alarm(TIMEOUT_S)
        value = self._method(*arguments)
        signal.alarm(0)
        return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value

    def _printed(self, text: str) -> str:
        signal.alarm(TIMEOUT_S)
        printed, before = _Output(), sys.stdout
        sys.stdout = printed
        try:
            with stand_ins(text), suppress(SystemExit):
                self._method()
            signal.alarm(0)
        finally:
            sys.stdout = before
        return printed.getvalue()


class _Output(io.StringIO):
    """The mock of `sys.stdout`: it has no attribute `buffer`, and closing it raises TypeError."""

    def close(self) -> NoReturn:
        raise TypeError("standard output cannot be closed")


class _Input:
    """The mock of `sys.stdin`: not iterable, and `read` always returns the whole input."""

    def __init__(self, text: str) -> None:
        self._text, self._lines = text, io.StringIO(text)
        self.buffer = _Buffer(text.encode())

    def read(self, *_: Any) -> str:
        return self._text

    def readline(self, *size: Any) -> str:
        return self._lines.readline(*size)

    def readlines(self, *_: Any) -> list[str]:
        return self._text.split("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lines, name)


class _Buffer:
    """The mock of `sys.stdin.buffer`: `readline` always returns the first line."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, *_: Any) -> bytes:
        return self._data

    def readline(self, *_: Any) -> bytes:
        return self._data.split(b"\n")[0] + b"\n"


@contextmanager
def stand_ins(text: str) -> Generator[None]:
    """Let sys.stdin, the real stdin (after `from sys import stdin`) and open() return `text`."""
    lines = iter(text.split("\n"))
    real, opened = cast(Any, sys.stdin), builtins.open

    def opener(*_: Any, **__: Any) -> Any:
        return io.StringIO(text)

    def next_line(*_: Any) -> str:
        return next(lines)

    given = _Input(text)
    real.read, real.readlines, real.readline = given.read, given.readlines, next_line
    sys.stdin, builtins.open = cast(Any, given), opener
    try:
        yield
    finally:
        builtins.open, sys.stdin = opened, real
        for name in ("read", "readline", "readlines"):
            with suppress(AttributeError):
                delattr(real, name)


def become_evaluator(source: str) -> None:
    """Prepare this process as LiveCodeBench does: alarm handler, disabled functions and modules."""
    if "numpy" not in LACKING and any(name in source for name in NUMERIC):
        with suppress(ImportError):
            importlib.import_module("numpy")
    sys.set_int_max_str_digits(DIGITS)
    os.environ["OMP_NUM_THREADS"] = "1"
    builtins.exit = sys.exit
    for module, names in DISABLED.items():  # imported late: threading would slow down forks
        for name in names.split():
            setattr(importlib.import_module(module), name, None)
    sys.modules.update({name: cast(Any, None) for name in UNIMPORTABLE})
    signal.signal(signal.SIGALRM, _alarmed)


def _alarmed(*_: Any) -> NoReturn:
    """Interrupt the program at the alarm; the line printed here becomes part of its output."""
    print("time limit: the alarm went off")  # noqa: T201
    raise TimeoutException


def _wrapped(source: str) -> str:
    with suppress(Exception):
        source = _unguarded(source)
    try:
        body = ast.parse(source).body
        imports = [one for one in body if isinstance(one, ast.Import | ast.ImportFrom)]
        rest = [one for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]
        function = ast.parse("def wrapped_function(): pass").body[0]
        cast(ast.FunctionDef, function).body = rest
        return "\n".join((HEADER, ast.unparse(cast(Any, imports)), ast.unparse(function)))
    except Exception:
        return source


def _unguarded(source: str) -> str:
    """Return the source; replace a last statement `if __name__ == '__main__'` by its body."""
    body = ast.parse(source).body
    last = body[-1]
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        return ast.unparse(cast(Any, [*body[:-1], *last.body]))
    return source


def _compiled(source: str, name: str) -> Callable[..., Any]:
    """Execute the source; return its function `name` or, with `class Solution`, its method."""
    module = types.ModuleType("tmp_sol", "")
    exec(source, module.__dict__)
    return getattr(module.Solution() if "class Solution" in source else module, name)


def tagged(value: Any, depth: int = 0) -> Any:
    """Return a value as type-tagged JSON: an equal plain value, or the name of any other type."""
    if value is None or isinstance(value, bool):
        return value
    kind = cast(Any, next((one for one in type(value).__mro__ if one in PLAIN), None))
    name = kind.__name__ if kind and depth < DEEPEST else ""
    if name in ("int", "float", "str"):
        return getattr(kind, f"__{name}__")(value)
    if name == "dict":
        return {name: [[tagged(one, depth + 1) for one in pair] for pair in kind.items(value)]}
    if name in ("list", "tuple"):
        return {name: [tagged(one, depth + 1) for one in kind.__iter__(value)]}
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """Return the number equal to a Decimal, Fraction, complex or numpy scalar, else its type."""
    if isinstance(value, Decimal | Fraction | complex):
        equal = [one for one in (int(value.real), float(value.real)) if one == value]
    elif type(value).__module__ == "numpy" and not getattr(value, "shape", True):
        equal = [tagged(value.item(), 1)]
    else:
        equal = []
    return equal[0] if equal else {"other": type(value).__name__}


def _as_bytes(result: dict[str, Any]) -> bytes:
    """Return a result as JSON bytes; lone surrogates are written as JSON escapes."""
    return json.dumps(result, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _safe_repr(error: BaseException) -> str:
    """Return an exception's repr or, if that fails (a program may define it), its type's name."""
    try:
        return repr(error)[:300]
    except Exception:
        return type(error).__name__


def _failure(error: BaseException, code: int) -> bytes:
    return _as_bytes(
        {"error": _safe_repr(error), "code": code if isinstance(error, Exception) else GONE}
    )


def run_tests(source: str, given: bytes) -> dict[str, Any]:
    """Run the program with the unit tests in the input, `{"token": text, "test": code}`.

    As published (bigcode-project/bigcodebench @47eff25, bigcodebench/eval/__init__.py): program
    and tests share one module, `__test__`, so a program that knows this code can forge the report.
    A program that only ends early or prints a verdict cannot: the report has the number of executed
    tests and the token, which is read before the program starts.
    """
    import unittest  # slow to load, and needed only here

    order = json.loads(given)
    os.environ.update(TZ="UTC", PATH="/usr/local/bin:/usr/bin:/bin")
    module = types.ModuleType("__test__")
    module.__dict__.update(__file__="__test__.py", sys=sys, os=os, environ=os.environ)
    sys.modules["__test__"] = module
    exec(compile(f"{source}\n{order['test']}", "__test__.py", "exec"), module.__dict__)
    suite = unittest.TestLoader().loadTestsFromTestCase(module.TestCases)
    result = unittest.TestResult()
    suite.run(result)
    problems = [*result.failures, *result.errors]
    traces = {test.id().split(".")[-1]: trace.strip().splitlines() for test, trace in problems}
    failed = {name: lines[-1][:300] if lines else "" for name, lines in traces.items()}
    return {"token": order["token"], "ran": result.testsRun, "failed": failed}


RESULT, CHANNEL = 3, 4
DEPTH = 50_000  # recursion limit of methods, as in `HEADER`
FRAMES = 10
"""Number of this module's stack frames below the program's, added to the recursion limit."""
NAMES: dict[str, Any] = {}
"""Python's builtins and all names of `HEADER`, used as the builtins of programs with a method: to
execute the header in every run would take a millisecond."""
DICTS = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
"""Mapping types that are encoded as a dictionary, because Python's `==` treats them as equal."""


def script(source: str, entry: str | None) -> NoReturn:
    """Run the program as `__main__`, with the real stdin, stdout and stderr."""
    module = _main_module()
    sys.setrecursionlimit(1000 + FRAMES)
    sys.set_int_max_str_digits(DIGITS)
    end(_execute(source, module))


def call(source: str, entry: str | None) -> NoReturn:
    """Call `entry`, a method of `class Solution` or a function, with the input's arguments."""
    inputs = _inputs(source)
    given = next(inputs)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    module = _main_module()  # renamed below, so that no `__main__` block runs
    module.__dict__.update(__name__="solution", __builtins__=NAMES)
    sys.setrecursionlimit(DEPTH)
    sys.set_int_max_str_digits(DIGITS)
    if code := _execute(source, module):
        end(code)
    try:
        while given is not None:
            owner = module.Solution() if "Solution" in module.__dict__ else module
            returned = getattr(owner, str(entry))(*json.loads(given))
            report({"returned": encode(returned)})
            given = next(inputs, None)
    except BaseException as error:
        end(_complain(error))
    _flush()
    os._exit(0)


def _inputs(source: str) -> Generator[bytes]:
    """Yield the first input; for a pure program with a channel, also further inputs from the judge.

    After each answer, send the judge `done`; each further input brings a file for its result.
    """
    with open(0, "rb", closefd=False) as file:
        given = file.read()
    channel = None
    with suppress(OSError):
        channel = socket.socket(fileno=CHANNEL)
    if channel and not is_pure(source, NAMES):
        channel = channel.close()
    yield given
    while channel:
        channel.send(b"done")
        message, files, *_ = socket.recv_fds(channel, 16, 2)
        if not message:
            os._exit(0)
        given = os.pread(files[0], os.fstat(files[0]).st_size, 0)
        os.dup2(files[1], RESULT)
        for file in files:
            os.close(file)
        yield given


def official(source: str, entry: str | None) -> NoReturn:
    """Run tests as LiveCodeBench's published evaluator does, until the judge closes the channel."""
    program = Official(source, entry)
    channel = socket.socket(fileno=CHANNEL)
    while True:
        message, files, *_ = socket.recv_fds(channel, 16, 2)
        if not message:
            os._exit(0)
        given, result = files
        said = program.one(os.pread(given, os.fstat(given).st_size, 0))
        os.pwrite(result, said, 0)
        os.close(given)
        os.close(result)
        channel.send(b"done")


def unittest(source: str, entry: str | None) -> NoReturn:
    """Run the program and the unit tests from the input in one process."""
    with open(0, "rb", closefd=False) as file:
        given = file.read()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _main_module()
    sys.setrecursionlimit(1000 + FRAMES)
    try:
        report(run_tests(source, given))
    except BaseException as error:
        end(_complain(error) or 1)
    _flush()
    os._exit(0)


RUNNERS: dict[str, Callable[[str, str | None], None]] = {
    runner.__name__: runner for runner in (script, call, official, unittest)
}


def load_header() -> None:
    """Execute the imports in `HEADER` into `NAMES` once, in the zygote, for all its forks."""
    limit = sys.getrecursionlimit()
    exec(compile(HEADER, "header.py", "exec"), NAMES)
    sys.setrecursionlimit(limit)
    for name, value in vars(builtins).items():
        NAMES.setdefault(name, value)
    NAMES.update(exit=sys.exit, quit=sys.exit)


def _main_module() -> types.ModuleType:
    """Return a new module `__main__`; add `exit` and `quit` to the builtins, as `site` does."""
    builtins.exit = builtins.quit = sys.exit  # pyright: ignore[reportAttributeAccessIssue]
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__="solution.py", __builtins__=builtins)
    sys.modules["__main__"] = module
    return module


def _execute(source: str, module: types.ModuleType) -> int:
    """Execute a program's source in a module; return the exit code that Python would end with."""
    text = source.removeprefix("\ufeff")  # a byte order mark, which Python skips in a file
    try:
        exec(compile(text, "solution.py", "exec"), module.__dict__)
    except BaseException as error:
        return _complain(error)
    return 0


def _complain(error: BaseException) -> int:
    """Print an uncaught exception as Python does; return the exit code that follows from it."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        with suppress(BaseException):
            sys.stderr.write(f"{error.code}\n")
        return 1
    with suppress(BaseException):
        mine = error.__traceback__  # without the frame of this file
        traceback.print_exception(error.with_traceback(mine and mine.tb_next), file=sys.stderr)
    return 1


def end(code: int) -> NoReturn:
    """End the process as Python does: join threads, call exit functions, flush files."""
    with suppress(BaseException):
        cast(Any, sys.modules["threading"])._shutdown()  # if the program loaded it
    with suppress(BaseException):
        cast(Any, atexit)._run_exitfuncs()
    with suppress(BaseException):
        sys.modules["__main__"].__dict__.clear()  # files that the program left open are flushed
        gc.collect()
    _flush()
    os._exit(code & 0xFF)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(BaseException):
            stream.flush()  # pyright: ignore[reportOptionalMemberAccess]


def report(result: Any) -> None:
    """Write the run's result to descriptor 3, from which the judge sends it to the host."""
    data = memoryview(json.dumps(result).encode())
    while data:
        data = data[os.write(RESULT, data) :]


def encode(value: Any) -> Any:
    """Return a value as type-tagged JSON; TypeError for anything but plain builtins.

    Types are compared, not tested by isinstance: a subclass could carry an `__eq__` of its own.
    """
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple, set, frozenset):
        return {kind.__name__: [encode(one) for one in value]}
    if kind in DICTS:
        return {"dict": [[encode(key), encode(one)] for key, one in cast(Any, dict).items(value)]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    raise TypeError(f"a {kind.__name__} is no plain builtin value")
