"""The source text of a chain of operations, as a program with slips or as a method."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from harness.rehearsal.program_chains import Chain, Step
from harness.rehearsal.program_samples import Starter
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.workers import Worker

_SLIPS = (
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r" > ", " >= "),
    (r" < ", " <= "),
    (r" == 0\b", " == 1"),
    (r"range\(2, ", "range(1, "),
    (r"\[-2\]", "[-1]"),
    (r"\+ 1\b", "+ 2"),
    (r"\bmax\(", "min("),
    (r"\bmin\(", "max("),
    (r"sorted\(set\((\w+)\)\)", r"sorted(\1)"),
    (r", reverse=True", ""),
    (r"\.lower\(\)", ""),
    (r"= 0$", "= 1"),
    (r"\[::-1\]", "[1::-1]"),
    (r"sum\(", "len("),
    (r"% 26", "% 25"),
    (r"\[1:\]", "[2:]"),
    (r"return (\w+)$", r"return \1 or 0"),
)


class _Bare(ast.NodeTransformer):
    """Leaves annotations out, as people do in short programs."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Drop the annotation of an argument."""
        return ast.arg(arg=node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Turn an annotated assignment into a plain one."""
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


@cache
def source(does: Callable[..., Any]) -> str:
    """Return the source of one of our functions, bare of annotations and underscore."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(does)))
    function = tree.body[0]
    if isinstance(function, ast.FunctionDef):
        function.name = name(does)
        function.returns = None
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(tree)))


def name(does: Callable[..., Any]) -> str:
    """Return the name of one of our functions in a program."""
    return does.__name__.lstrip("_")


def slipped(code: str, worker: Worker, paper: Scratch) -> str:
    """Return code as a hand writes it down: each line may go wrong."""
    lines = code.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("def "):
            continue
        rate, paper.slip = paper.slip, worker.code_slip if paper.slip else 0.0
        wrong, paper.slip = paper.slips(max(1.0, len(line.strip()) / 25)), rate
        if wrong:
            fitting = [(old, new) for old, new in _SLIPS if re.search(old, line)]
            if fitting:
                old, new = paper.random.choice(fitting)
                lines[at] = re.sub(old, new, line, count=1)
    return "\n".join(lines)


def whole(chain: Chain, worker: Worker, paper: Scratch, starter: Starter | None) -> str:
    """Return the program for a chain: what it uses, `solve`, and the reading and printing."""
    used = list(dict.fromkeys(step.family.does for step in chain.steps))
    parts = [slipped(source(does), worker, paper) for does in used]
    names = _names(chain.takes)
    parts.append(f"def solve({', '.join(names)}):\n{_solving(chain.steps, names)}")
    if starter:
        parts.append(_method(starter, chain))
    else:
        parts += [source(does) for does in (chain.reads, chain.shows) if does]
        parts.append(_main(chain))
    modules = [m for m in ("itertools", "math", "sys") if any(f"{m}." in part for part in parts)]
    return "\n\n\n".join([*(["\n".join(f"import {m}" for m in modules)] * bool(modules)), *parts])


def _names(takes: Sequence[str]) -> list[str]:
    bases = {"ints": "values", "int": "n"}
    return [f"{bases.get(kind, kind)}{at or ''}" for at, kind in enumerate(takes)]


def _solving(steps: Sequence[Step], names: list[str]) -> str:
    lines: list[str] = []
    rest = list(names)
    for at, step in enumerate(steps):
        given = ["result"] if at else [rest.pop(0) for _ in range(step.primary)]
        given += [rest.pop(0) if value is None else repr(value) for value in step.bound]
        given += [f"{key}={value!r}" for key, value in step.options.items()]
        call = f"{name(step.family.does)}({', '.join(given)})"
        lines.append(f"    {'return' if at == len(steps) - 1 else 'result ='} {call}")
    return "\n".join(lines)


def _main(chain: Chain) -> str:
    reads, shows = chain.reads, chain.shows
    if reads is None or shows is None:
        return ""
    return f"print({name(shows)}(solve(*{name(reads)}(sys.stdin.read()))))"


def _method(starter: Starter, chain: Chain) -> str:
    given = ", ".join(starter.arguments[at] for at in chain.places)
    call = f"solve({given})"
    if chain.gives in ("matrix", "pairs"):
        call = f"[list(row) for row in {call}]"
    arguments = ", ".join(("self", *starter.arguments))
    return f"class Solution:\n    def {starter.name}({arguments}):\n        return {call}"
