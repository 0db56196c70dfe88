"""Code sent as text into a box (sandbox): runs a data set's check on results of program calls.

The check's process knows the expected values; if a result is missing it reports the call it needs,
and ends. The program's process receives one call. The two processes exchange only JSON of plain
builtins, so no `__eq__` of the program decides, and this code reveals no expected value.
"""

import ast
import base64
import builtins
import copy
import json
import os
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeAlias, cast

MOST_CALLS = 256
"""Maximum number of program calls predicted per run of a check, which might loop for ever."""

FRAMES = 20
"""Stack frames of this code below the program's: they count towards Python's recursion limit."""

Space: TypeAlias = dict[str, Any]

KINDS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "bytes": base64.b64decode,
    "complex": lambda pair: complex(*pair),
    "type": lambda name: getattr(builtins, name),
}


def decode(value: Any) -> Any:
    """Return the value of type-tagged JSON, e.g. of `{"set": [1]}`; the inverse of `encode`."""
    if not isinstance(value, dict):
        return value
    ((tag, content),) = cast(dict[str, Any], value).items()
    if tag == "dict":
        return {decode(key): decode(item) for key, item in content}
    return KINDS[tag](
        content if tag in ("bytes", "complex", "type") else [decode(item) for item in content]
    )


def loaded(program: str) -> Space:
    """Execute the program as a new module and return its namespace."""
    sys.setrecursionlimit(1000 + FRAMES)
    space: Space = {"__name__": "solution", "__builtins__": builtins}
    exec(compile(program, "solution.py", "exec"), space)
    return space


def caller(program: str, setup: str | None) -> Callable[[str], list[Any]]:
    """Return a function that makes a call (JSON) of the program and returns the result as a list.

    With `setup`, code that is executed first, a call's only argument is its source text.
    """
    space = loaded(program)
    if setup is not None:
        exec(compile(setup, "setup.py", "exec"), space)

    def answer(call: str) -> list[Any]:
        name, args, kwargs = json.loads(call)
        function, arguments = space[name], decode(args)
        keywords = {key: decode(argument) for key, argument in kwargs.items()}
        try:
            value = function(*arguments, **keywords) if setup is None else eval(arguments[0], space)
            return ["returned", *plain(value)]
        except BaseException as error:
            return ["raised", [kind.__name__ for kind in type(error).__mro__], str(error)]

    return answer


def plain(value: Any) -> tuple[str, Any]:
    """Return the kind of a result (`value`, `range` or `iterator`), and the result as builtins.

    An iterator becomes the list of its items and a range its bounds; a subclass of a builtin (a
    named tuple, a numpy number) becomes that builtin, so that its own `__eq__` has no effect.
    """
    if isinstance(value, range):
        return "range", [value.start, value.stop, value.step]
    if isinstance(value, (map, filter, zip, reversed)) or type(value).__name__ == "generator":
        return "iterator", [bare(item) for item in cast(Any, value)]
    return "value", bare(value)


def bare(value: Any) -> Any:
    """Convert a value to plain builtins; other objects stay as they are (`encode` rejects them)."""
    if value is None or isinstance(value, bool):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    for kind in cast("tuple[Any, ...]", (int, float, str, bytes, complex)):
        if isinstance(value, kind):
            return kind(value)
    for kind in cast("tuple[Any, ...]", (list, tuple, set, frozenset)):
        if isinstance(value, kind):
            return kind(bare(item) for item in value)
    if isinstance(value, dict):
        return {bare(key): bare(item) for key, item in cast(Any, dict).items(value)}
    return value


# --- the check's process ------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """Return a value of plain builtins as type-tagged JSON; TypeError for any other value."""
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple, set, frozenset):
        return {kind.__name__: [encode(item) for item in value]}
    if kind is dict:
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is type and getattr(builtins, value.__name__, None) is value:
        return {"type": value.__name__}
    raise TypeError(f"a {kind.__name__} is no plain builtin value")


class Unknown:
    """The placeholder result of a call not made yet, while a check's next calls are predicted.

    Each comparison with it is true, so the check goes on. The predicted calls are only guesses: the
    real check uses a result only if its own call is the predicted one.
    """

    def __getattr__(self, name: str) -> Any:
        return self._again

    def _again(self, *_: Any) -> Any:
        return self

    def _agree(self, *_: Any) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(())

    def __hash__(self) -> int:
        return 0

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _agree
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _again
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _again
    __neg__ = __abs__ = __round__ = __getitem__ = __call__ = _again

    def __float__(self) -> float:
        return 0.0

    def __int__(self) -> int:
        return 0

    __index__ = __len__ = __int__


class Foreseen(BaseException):
    """Raised to end the prediction of a check's next calls after `MOST_CALLS` of them."""


class Check:
    """A data set's check, with the program's calls made so far and their results."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Unpack the order (check, token, known results); discard what the check prints."""
        self.setup, self.names = order["setup"], order["names"]
        self.tree = ast.parse(order["text"])
        if order["by_text"]:
            self.tree, self.setup = as_text(self.tree, self.names), ""
        self.known: list[tuple[str, Any]] = order["known"]
        self.token: str = order["token"]
        self.used = 0
        self.stdout = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def run(self) -> NoReturn:
        """Run the check; report that it passed or failed, or which calls it needs."""
        try:
            self.execute(self.tree, self.answer)
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
            self.say({"failed": message[:500], "line": line_of(error), "used": self.used})
        self.say({"passed": True, "used": self.used})

    def execute(self, tree: ast.Module, answer: Callable[[str], Any]) -> None:
        """Execute a check; `answer` returns the result of each call of the program's functions."""
        random.seed(0)
        space: Space = {"__name__": "check", "__builtins__": builtins}
        exec(compile(self.setup, "setup.py", "exec"), space)
        for name in self.names:
            space[name] = replay(name, answer)
        exec(compile(tree, "check.py", "exec"), space)

    def answer(self, call: str) -> Any:
        """Return or raise a call's known result; if unknown, report the call and end."""
        if self.used == len(self.known) or self.known[self.used][0] != call:
            del self.known[self.used :]
            self.say({"known": self.used, "calls": self.foreseen(call)})
        self.used += 1
        return revived(self.known[self.used - 1][1])

    def foreseen(self, next_call: str) -> list[str]:
        """Return the check's next calls, up to the first that depends on an unknown result."""
        calls: list[str] = []
        index = 0

        def guess(call: str) -> Any:
            nonlocal index
            index += 1
            if index <= len(self.known):
                return revived(self.known[index - 1][1])
            calls.append(call)
            if len(calls) == MOST_CALLS:
                raise Foreseen
            return Unknown()

        with suppress(BaseException):  # a guess may go wrong in any way; the real check decides
            calm = ast.fix_missing_locations(Unasserted().visit(copy.deepcopy(self.tree)))
            self.execute(calm, guess)
        return calls if calls[:1] == [next_call] else [next_call]

    def say(self, message: dict[str, Any]) -> NoReturn:
        """Write the token and the message to stdout, and end the process."""
        data = f"{self.token} {json.dumps(message)}\n".encode()
        while data:
            data = data[os.write(self.stdout, data) :]
        os._exit(0)


class Unasserted(ast.NodeTransformer):
    """Turns assertions into expressions, which are evaluated but cannot fail."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Return the assertion's expression as a statement."""
        return ast.copy_location(ast.Expr(node.test), node)


def as_text(tree: ast.Module, names: list[str]) -> ast.Module:
    """Replace the arguments of each call of the program by the call's source text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            node.args, node.keywords = [ast.Constant(ast.unparse(node))], []
    return ast.fix_missing_locations(tree)


def replay(name: str, answer: Callable[[str], Any]) -> Callable[..., Any]:
    """Return a stand-in for the program's function `name`: it passes each call to `answer`."""

    def stands_in(*args: Any, **kwargs: Any) -> Any:
        request = [name, encode(args), {key: encode(argument) for key, argument in kwargs.items()}]
        return answer(json.dumps(request))

    stands_in.__name__ = name
    return stands_in


def revived(result: Any) -> Any:
    """Return a call's recorded value, or raise its exception as the nearest builtin exception."""
    outcome, detail, value = decode(result)
    if outcome == "raised":
        kinds = [getattr(builtins, name, None) for name in detail]
        kind = next(candidate for candidate in [*kinds, Exception] if isinstance(candidate, type))
        try:
            error = kind(value)
        except TypeError:  # an exception that needs more than a message
            error = Exception(value)
        raise error
    if detail == "range":
        return range(*value)
    return iter(value) if detail == "iterator" else value


def line_of(error: BaseException) -> int:
    """Return the line of the check at which an error was raised; 0 if there is none."""
    line, trace = 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "check.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
