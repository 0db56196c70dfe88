"""How a program is run on one input, in a process of its own; each runner ends that process.

By now the process has its user, its limits and its descriptors: 0 is the input, 1 and 2 what the
program writes, 3 what the runner reports. All of it belongs to the program, which may forge any
report it likes: it can only say what it returned, and does not know what it should have.
"""

import atexit
import base64
import builtins
import collections
import gc
import json
import os
import socket
import sys
import traceback
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, cast

from sandbox.inside.official import DIGITS, HEADER, Official
from sandbox.inside.unittests import run_tests

RESULT, CHANNEL = 3, 4

DEPTH = 50_000
"""Recursion limit of methods: the header's own."""

FRAMES = 10
"""Calls below the program here, which are not below a script: Python counts them as recursion."""

NAMES: dict[str, Any] = {}
"""Python's builtins and what LeetCode's header imports, as the published evaluator has it. Programs
see these as their builtins: bound to each name in every module, they would cost a millisecond."""

DICTS = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
"""Mappings that pass as a plain dictionary: in Python they are equal to one."""


def script(source: str, entry: str | None) -> NoReturn:
    """Run the program as `__main__`: what it reads and writes are real descriptors."""
    module = main_module()
    sys.setrecursionlimit(1000 + FRAMES)
    sys.set_int_max_str_digits(DIGITS)
    end(execute(source, module))


def call(source: str, entry: str | None) -> NoReturn:
    """Call a method of `class Solution`, else a function, with the input's arguments."""
    with open(0, "rb", closefd=False) as file:
        given = file.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    module = main_module()
    module.__name__ = "solution"  # a guarded main block is not what is asked
    module.__dict__["__name__"] = "solution"
    module.__dict__["__builtins__"] = NAMES
    sys.setrecursionlimit(DEPTH)
    sys.set_int_max_str_digits(DIGITS)
    if code := execute(source, module):
        end(code)
    try:
        owner = module.Solution() if "Solution" in module.__dict__ else module
        returned = getattr(owner, str(entry))(*json.loads(given))
        report({"returned": encode(returned)})
    except BaseException as error:
        end(complain(error))
    flush()
    os._exit(0)


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
    main_module()
    sys.setrecursionlimit(1000 + FRAMES)
    try:
        report(run_tests(source, given))
    except BaseException as error:
        end(complain(error) or 1)
    flush()
    os._exit(0)


RUNNERS: dict[str, Callable[[str, str | None], None]] = {
    "script": script,
    "call": call,
    "official": official,
    "unittest": unittest,
}


def prepare() -> None:
    """Load what a method's header imports, once, in the zygote."""
    limit = sys.getrecursionlimit()
    exec(compile(HEADER, "header.py", "exec"), NAMES)
    sys.setrecursionlimit(limit)
    for name, value in vars(builtins).items():
        NAMES.setdefault(name, value)
    NAMES.update(exit=sys.exit, quit=sys.exit)


def main_module() -> types.ModuleType:
    """Return a new `__main__`, with the two names that `site` would add to the builtins."""
    builtins.exit = builtins.quit = sys.exit  # pyright: ignore[reportAttributeAccessIssue]
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__="solution.py", __builtins__=builtins)
    sys.modules["__main__"] = module
    return module


def execute(source: str, module: types.ModuleType) -> int:
    """Execute a source in a module; return the exit code that Python would end with."""
    text = source.removeprefix("\ufeff")  # a byte order mark, which Python skips in a file
    try:
        exec(compile(text, "solution.py", "exec"), module.__dict__)
    except BaseException as error:
        return complain(error)
    return 0


def complain(error: BaseException) -> int:
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
    flush()
    os._exit(code & 0xFF)


def flush() -> None:
    """Write out what the standard streams hold back, the program's own and the first ones."""
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

    Types are compared, not tested by isinstance: a subclass could carry an `__eq__` of its own, and
    would lose it here without a word.
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
