"""Every rule and pattern of the reader is needed: without it, some row of the battery reads else.

The source of harness/statements.py and extract.py is run again with one that never matches.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podium.harness import extract, rules, statements
from tests.suites.battery import BatteryRow, files, rows

pytestmark = pytest.mark.slow

READER = (statements, extract)
"""In the order in which one imports the other."""

NEVER = "(?!)(?:", ")"
"""What is put around a pattern so that it never matches, its groups as they were."""
FLAGS = re.compile(r"\(\?[ims]+\)")
"""How a pattern may begin; nothing may stand before it."""
CALLS = {"compile", "fullmatch", "match", "search", "sub", "split", "findall", "finditer"}
ELSEWHERE: dict[str, str] = {}
"""Patterns that no reply of the battery can need, and where they are needed."""
LETTERS = "ABCDEFGHIJKLMNOP"

Read = Callable[[Any, BatteryRow], object]


def _integer(module: Any, row: BatteryRow) -> object:
    return module.extract_integer(row.noisy())


def _choice(module: Any, row: BatteryRow) -> object:
    return module.extract_choice(row.noisy(), row.choices or ())


def _expressions(module: Any, row: BatteryRow) -> object:
    return module.extract_expressions(row.noisy())


def _text(module: Any, row: BatteryRow) -> object:
    if re.fullmatch(r"\(?[A-P]\)?\.?", row.gold):
        return module.extract_choice(row.noisy(), letters=LETTERS)
    return module.extract_expressions(row.noisy())


READERS: dict[str, Read] = {
    "aime25": _integer,
    "gpqa-diamond": _choice,
    "mmlu": _choice,
    "math500": _expressions,
    "rlpr": _text,
}


def trees() -> list[ast.Module]:
    return [ast.parse(Path(module.__file__ or "").read_text("utf-8")) for module in READER]


def patterns(made: list[ast.Module]) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call that makes or uses a pattern, by the name that it has in its module."""
    for statement in (one for tree in made for one in tree.body):
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and is_re(node)]
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            owner = owner_of(statement, call)
            if isinstance(call.args[0], ast.Name):
                owner = f"{call.args[0].id} in {owner}"
            yield owner, call


def is_re(call: ast.Call) -> bool:
    made = call.func
    if isinstance(made, ast.Attribute):
        of_re = isinstance(made.value, ast.Name) and made.value.id == "re"
        return made.attr in CALLS if of_re else made.attr == "_of"
    return False


def owner_of(statement: ast.stmt, call: ast.Call) -> str:
    """Return the name that a pattern is assigned to, or the function that it stands in."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    functions = (
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= call.lineno <= (node.end_lineno or 0)
    )
    return next((node.name for node in functions), getattr(statement, "name", "?"))


NAMES = [name for name, _ in patterns(trees())]


def without(number: int) -> ModuleType:
    """Return the reader with one pattern that never matches: its modules run one after another."""
    made = trees()
    _, call = list(patterns(made))[number]
    before, behind = ast.Constant(flags_of(call.args[0]) + NEVER[0]), ast.Constant(NEVER[1])
    pattern = ast.BinOp(ast.BinOp(before, ast.Add(), call.args[0]), ast.Add(), behind)
    call.args[0] = ast.fix_missing_locations(ast.copy_location(pattern, call.args[0]))
    return run_again(made, {})


def without_rule(name: str) -> ModuleType:
    """Return the reader with one rule of the table that never matches."""

    def pattern(wanted: str, letters: str = "") -> re.Pattern[str]:
        whole = rules.pattern(wanted, letters)
        if wanted != name:
            return whole
        return re.compile(NEVER[0] + FLAGS.sub("", whole.pattern) + NEVER[1], whole.flags)

    table = ModuleType(rules.__name__)
    compiled = {rule: pattern(rule) for rule in rules.rules()}
    searched = {"search": lambda rule, text: compiled[rule].search(text)}
    table.__dict__.update(vars(rules) | searched | {"pattern": pattern, "RULE": compiled})
    return run_again(trees(), {rules.__name__: table})


def run_again(made: list[ast.Module], run: dict[str, ModuleType]) -> ModuleType:
    for tree, source in zip(made, READER, strict=True):
        module = ModuleType(f"{source.__name__}_again")
        module.__dict__.update(imported(tree, run))
        exec(compile(tree, source.__file__ or "", "exec"), module.__dict__)
        run[source.__name__] = module
    return run[extract.__name__]


def flags_of(pattern: ast.expr) -> str:
    """Take the flags out of the beginning of a pattern and return them; empty where it has none."""
    first = pattern.values[0] if isinstance(pattern, ast.JoinedStr) else pattern
    if not isinstance(first, ast.Constant) or not (found := FLAGS.match(str(first.value))):
        return ""
    first.value = str(first.value)[found.end() :]
    return found.group()


def imported(tree: ast.Module, run: Mapping[str, ModuleType]) -> dict[str, Any]:
    """Take out what a module imports of those that ran before it, and return that."""
    known: dict[str, Any] = {**run}
    for name, module in run.items():
        known |= {f"{name}.{one}": held for one, held in vars(module).items()}
    ours = [
        one
        for one in tree.body
        if isinstance(one, ast.ImportFrom) and f"{one.module}.{one.names[0].name}" in known
    ]
    tree.body = [one for one in tree.body if one not in ours]
    return {alias.name: known[f"{one.module}.{alias.name}"] for one in ours for alias in one.names}


@cache
def readings() -> list[tuple[Read, BatteryRow, object]]:
    """Return every row, how it is read and what is found."""
    return [
        (READERS[path.stem], row, READERS[path.stem](extract, row))
        for path in files()
        for _, row in rows(path.stem)
    ]


def reads_else(module: ModuleType, read: Read, row: BatteryRow, found: object) -> bool:
    try:
        return repr(read(module, row)) != repr(found)
    except (AttributeError, TypeError, ValueError):
        return True  # what relies on the pattern falls over


@pytest.mark.parametrize(
    "number", range(len(NAMES)), ids=[f"{name} ({n})" for n, name in enumerate(NAMES)]
)
def test_some_reply_of_the_battery_needs_the_pattern(number: int) -> None:
    if NAMES[number] in ELSEWHERE:
        return
    module = without(number)
    assert any(reads_else(module, *one) for one in readings()), f"no row needs {NAMES[number]}"


@pytest.mark.parametrize("name", rules.rules())
def test_some_reply_of_the_battery_needs_the_rule(name: str) -> None:
    module = without_rule(name)
    assert any(reads_else(module, *one) for one in readings()), f"no row needs {name}"


def test_patterns_are_found_in_the_module() -> None:
    """The list that the test goes by is not empty, and its exceptions are patterns."""
    assert len(NAMES) > 20
    assert {*ELSEWHERE} <= {*NAMES}
