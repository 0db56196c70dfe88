"""Python is parsed in one thread at a time, since CPython 3.11.7 counts all threads together."""

import ast
import gc
from collections.abc import Callable, Generator
from threading import Event, Thread

import pytest

from podium.harness.python_syntax import parse_python, read_literal

DEEP = f"[{'[' * 30}1{']' * 30}{', [1]' * 500}]"


@pytest.fixture
def frequent_collection() -> Generator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(100)
    yield
    gc.set_threshold(*before)


class Interrupted:
    """Garbage whose removal lets another thread run, as any finalizer may, while a tree is made."""

    def __init__(self, begins: Event, ends: Event) -> None:
        self.itself, self.begins, self.ends = self, begins, ends

    def __del__(self) -> None:
        self.begins.set()
        self.ends.wait(0.2)


@pytest.mark.parametrize("parse", [parse_python, read_literal])
def test_a_second_thread_that_parses_meanwhile_changes_nothing(
    parse: Callable[[str], object], frequent_collection: None
) -> None:
    begins, ends = Event(), Event()
    trees: list[object] = []

    def second() -> None:
        begins.wait(10)
        trees.append(parse(DEEP))
        ends.set()

    thread = Thread(target=second)
    thread.start()
    Interrupted(begins, ends)
    trees.append(parse(DEEP))
    begins.set()
    thread.join()
    first, other = (ast.dump(tree) if isinstance(tree, ast.AST) else tree for tree in trees)
    assert first == other
