"""How a program is run on one input, in a process of its own; each runner ends that process.

By now the process has its user, its limits and its descriptors: 0 is the input, 1 and 2 what the
program writes, 3 what the runner reports. All of it is the program's, which may forge any report:
it can only say what it returned, and does not know what it should have.
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
"""The published codes; GONE stands for the end of the evaluator's own process."""
DEEPEST = 200
"""Nesting below which a returned value is not looked at: no expected value goes as deep."""

STARRED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random"),
    *("statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins"),
    "typing",
)
"""Modules whose names every program finds: starred in this order, then bound by their own names,
so `open` is that of `io`, which no stand-in covers."""

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
"""What honest programs miss too: calling one raises TypeError, and so does os.environ[...] = ..."""

PLAIN = (int, float, str, list, tuple, dict)
"""Types whose values, those of subclasses included, can equal an expected one."""
NUMERIC = ("networkx", "numpy", "pandas", "scipy", "sklearn")
"""Words for which numpy is loaded while it still can be; there it always is, at 0.1 s a program."""
UNIMPORTABLE = ("ipdb", "joblib", "psutil", "resource", "tkinter")


LACKING: list[str] = []
"""Packages that programs may count on and this box lacks."""
LACKS = 119
"""The exit code of a process that looked for one of them: the program is not to blame."""


class LackingFinder:
    """Ends a program that looks for a package of `LACKING`, before it can do without."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Find nothing; asked last, for a module that no other finder has."""
        if name.partition(".")[0] in LACKING:
            os._exit(LACKS)


class TimeoutException(Exception):
    """The alarm; programs that catch every exception catch it, and run on."""


class Official:
    """A program run as LiveCodeBench's published evaluator runs it, faults included.

    Its semantics are those of lcb_runner/evaluation/testing_util.py, github.com/LiveCodeBench/
    LiveCodeBench @28fef95, in our own words: the program is a function in this process, called once
    per test with stand-ins for `sys.stdin` and `sys.stdout`, or a method called on one object.
    State carries over, alarms count real time, and some correct programs fail; `rules="official"`
    of suites/code_grading.py exists to show which. Where a line below looks wrong, it is so there.
    One thing differs: results are compared outside, so no `__eq__` of the program's decides.
    """

    def __init__(self, source: str, entry: str | None) -> None:
        """Compile the program, and run what stands outside its functions; `one` tells of errors."""
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

        `data` is the text of standard input, or a JSON list of arguments; `value` is tagged.
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
    """What stands in for standard output; it has no buffer, and closing it is an error."""

    def close(self) -> NoReturn:
        raise TypeError("standard output cannot be closed")


class _Input:
    """What stands in for `sys.stdin`: not iterable, and `read` always returns everything."""

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
    """What stands in for `sys.stdin.buffer`: every line it reads is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, *_: Any) -> bytes:
        return self._data

    def readline(self, *_: Any) -> bytes:
        return self._data.split(b"\n")[0] + b"\n"


@contextmanager
def stand_ins(text: str) -> Generator[None]:
    """Replace sys.stdin, methods of the stream that was there (`from sys import stdin`), open."""
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
    """Make this process the evaluator's: the alarm, and the functions that are gone."""
    if "numpy" not in LACKING and any(name in source for name in NUMERIC):
        with suppress(ImportError):
            importlib.import_module("numpy")
    sys.set_int_max_str_digits(DIGITS)
    os.environ["OMP_NUM_THREADS"] = "1"
    builtins.exit = sys.exit
    for module, names in DISABLED.items():  # by name: subprocess loads threading, which forks pay
        for name in names.split():
            setattr(importlib.import_module(module), name, None)
    sys.modules.update({name: cast(Any, None) for name in UNIMPORTABLE})
    signal.signal(signal.SIGALRM, _alarmed)


def _alarmed(*_: Any) -> NoReturn:
    """Interrupt the program; the words end up in its output."""
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
    """Return the program with a __main__ guard opened, where that is the last statement."""
    body = ast.parse(source).body
    last = body[-1]
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        return ast.unparse(cast(Any, [*body[:-1], *last.body]))
    return source


def _compiled(source: str, name: str) -> Callable[..., Any]:
    """Execute the source and return its function, or its method where it says `class Solution`."""
    module = types.ModuleType("tmp_sol", "")
    exec(source, module.__dict__)
    return getattr(module.Solution() if "class Solution" in source else module, name)


def tagged(value: Any, depth: int = 0) -> Any:
    """Return a value as type-tagged JSON: as the plain value that it equals, where there is one."""
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
    """Return the plain number that one of another type equals: a fraction, a numpy scalar."""
    if isinstance(value, Decimal | Fraction | complex):
        equal = [one for one in (int(value.real), float(value.real)) if one == value]
    elif type(value).__module__ == "numpy" and not getattr(value, "shape", True):
        equal = [tagged(value.item(), 1)]
    else:
        equal = []
    return equal[0] if equal else {"other": type(value).__name__}


def _as_bytes(result: dict[str, Any]) -> bytes:
    """Return a result as bytes; half characters as the escapes that JSON has for them."""
    return json.dumps(result, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _safe_repr(error: BaseException) -> str:
    """Return a representation of an exception, which is the program's and may fail itself."""
    try:
        return repr(error)[:300]
    except Exception:
        return type(error).__name__


def _failure(error: BaseException, code: int) -> bytes:
    return _as_bytes(
        {"error": _safe_repr(error), "code": code if isinstance(error, Exception) else GONE}
    )


def run_tests(source: str, given: bytes) -> dict[str, Any]:
    """Run the program and the tests that the input holds: `{"token": text, "test": code}`.

    As published (bigcode-project/bigcodebench @47eff25, bigcodebench/eval/__init__.py): both are
    executed in a module `__test__`, so a program that knows how can forge what is reported. Against
    those that only end early or print a verdict: the report counts the tests that were run, and
    carries a token that was put away before the program began.
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
DEPTH = 50_000  # recursion limit of methods: the header's own
FRAMES = 10
"""Calls below the program here, which are not below a script: Python counts them as recursion."""
NAMES: dict[str, Any] = {}
"""Python's builtins and what LeetCode's header imports, as the published evaluator has it: bound to
each name in every module, they would cost a millisecond."""
DICTS = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
"""Mappings that pass as a plain dictionary: in Python they are equal to one."""


def script(source: str, entry: str | None) -> NoReturn:
    """Run the program as `__main__`: what it reads and writes are real descriptors."""
    module = _main_module()
    sys.setrecursionlimit(1000 + FRAMES)
    sys.set_int_max_str_digits(DIGITS)
    end(_execute(source, module))


def call(source: str, entry: str | None) -> NoReturn:
    """Call a method of `class Solution`, else a function, with the input's arguments."""
    inputs = _inputs(source)
    given = next(inputs)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    module = _main_module()  # a guarded main block is not what is asked
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
    """Yield the input; then, to a pure program that was left a channel, those that the box sends.

    Each answer is told on the channel, and the next one's result goes where this one's went.
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
    """Answer inputs as LiveCodeBench's published evaluator does, until the box ends the process."""
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
    """Run the program and the unit tests that the input holds in one process."""
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
    """Load what a method's header imports, once, in the zygote."""
    limit = sys.getrecursionlimit()
    exec(compile(HEADER, "header.py", "exec"), NAMES)
    sys.setrecursionlimit(limit)
    for name, value in vars(builtins).items():
        NAMES.setdefault(name, value)
    NAMES.update(exit=sys.exit, quit=sys.exit)


def _main_module() -> types.ModuleType:
    """Return a new `__main__`, with the two names that `site` would add to the builtins."""
    builtins.exit = builtins.quit = sys.exit  # pyright: ignore[reportAttributeAccessIssue]
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__="solution.py", __builtins__=builtins)
    sys.modules["__main__"] = module
    return module


def _execute(source: str, module: types.ModuleType) -> int:
    """Execute a source in a module; return the exit code that Python would end with."""
    text = source.removeprefix("\ufeff")  # a byte order mark, which Python skips in a file
    try:
        exec(compile(text, "solution.py", "exec"), module.__dict__)
    except BaseException as error:
        return _complain(error)
    return 0


def _complain(error: BaseException) -> int:
    """Do what Python does with an exception that nobody caught; return the exit code."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        with suppress(BaseException):
            sys.stderr.write(f"{error.code}\n")
        return 1
    with suppress(BaseException):
        mine = error.__traceback__  # the frame of this file is none of the program's
        traceback.print_exception(error.with_traceback(mine and mine.tb_next), file=sys.stderr)
    return 1


def end(code: int) -> NoReturn:
    """End the process as Python would: threads joined, exit functions called, files flushed."""
    with suppress(BaseException):
        cast(Any, sys.modules["threading"])._shutdown()  # where the program loaded it
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
    """Write what the run came to, for the box to pass on."""
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
