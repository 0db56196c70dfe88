"""Parse Python in several threads at once, which CPython before 3.11.8 and 3.12.2 does wrongly."""

import ast
from threading import RLock

_TURN = RLock()
"""Lets one thread parse at a time: CPython before 3.11.8 and 3.12.2 adds up the depths of all
threads' syntax trees (https://github.com/python/cpython/issues/106905). So parsing in two threads
at once may raise a SystemError, or a RecursionError, and a correct program would be graded as
wrong."""


def parse_python(text: str) -> ast.Module:
    """Return a text's syntax tree, as `ast.parse` does, one thread at a time."""
    with _TURN:
        return ast.parse(text)


def read_literal(text: str) -> object:
    """Return the value of a Python literal, as `ast.literal_eval` does, one thread at a time."""
    with _TURN:
        return ast.literal_eval(text)
