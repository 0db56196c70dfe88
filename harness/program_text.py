"""Find the program in a reply: one code block, chosen by its text and never by running it.

- If names are given, the last block that defines one of them is the program: usage, assertions and
  output may follow it. A complete block comes before a cut-off block, then code outside blocks.
- Else it is the last complete block tagged as Python, or the last complete block that parses.
- Definitions and imports that the block lacks come from the reply's other blocks.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from podium.harness.python_syntax import parse_python
from podium.harness.reasoning import spoken

PYTHON = ("python", "py", "python3", "py3")
OTHER_TAGS = (
    *("ruby", "scala", "java", "javascript", "js", "typescript", "ts", "c", "cpp", "c++", "go"),
    *("rust", "kotlin", "swift", "php", "julia", "haskell", "bash", "sh", "shell", "json", "yaml"),
    *("text", "txt", "plaintext", "output", "console", "pycon", "pyi", "diff"),
)
"""Tags of blocks that are no Python program, although a line of theirs may look like one."""
MARKDOWN = ("markdown", "md")
WRAPPERS = (
    ("[BEGIN]", "[DONE]"),  # google-research/mbpp's examples
    ("[PYTHON]", "[/PYTHON]"),  # meta-llama/codellama
    ("<answer>", "</answer>"),
    ("<code>", "</code>"),
)
"""Start and end marks, other than code fences, that some models put around code."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^\n`]*$")
_CODE_ON_FENCE = re.compile(r"[ \t]*`{3,}((?:async |def |class |import |from ).*)")
_FENCE_BEHIND = re.compile(r"([^`]*[\w)\]}'\"])(`{3,})$")
"""A line of code that the closing fence follows without a line break."""
_CODE_LINE = re.compile(r"^(?:async |def |class |import |from |@)", re.M)
_GOES_ON = re.compile(r"[\s)\]}#]|(?:else|elif|except|finally)\b")
"""The start of a line that belongs to the Python statement before it."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block of code: its tag in lower case, its text, and whether its fence is closed."""

    tag: str
    text: str
    closed: bool


def extract_program(reply: str, names: Sequence[str] = ()) -> str | None:
    r"""Return the program in the reply, if any; a block that defines one of `names` is preferred.

    >>> extract_program("```python\ndef f(): ...\n```\nUse:\n```python\nf()\n```", ["f"])
    'def f(): ...'
    """
    text, cut_off = spoken(reply)
    blocks = [block for block in code_blocks(text) if block.closed or not cut_off]
    program = _defining(blocks, names) or (None if cut_off else _bare(text, names)) or _last(blocks)
    if program is None:
        return None
    texts = [block.text for block in blocks]
    place = texts.index(program) if program in texts else 0
    return _with_helpers(program, texts[:place], texts[place:])


def code_blocks(text: str) -> list[CodeBlock]:
    """Return every fenced block that is not blank, in order, including unclosed ones.

    A fence with a tag ends the block before it, except a Markdown block. As in CommonMark, a fence
    that is indented by four more than the first is text: it may be in a docstring.
    """
    blocks: list[CodeBlock] = []
    fence, tag, indent, lines = "", "", 0, list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        behind = _FENCE_BEHIND.match(line) if fence and line.endswith(fence) else None
        if behind and '"""' not in line:
            lines.append(behind[1])
            line = behind[2]
        mark = _FENCE.match(line)
        ends = mark and fence and mark[1].startswith(fence) and mark.start(1) < indent + 4
        if mark and ends and not (mark[2] and tag in MARKDOWN):
            blocks.append(CodeBlock(tag, "\n".join(lines), closed=not mark[2]))
            fence = ""
        if mark and not fence and (mark[2] or not ends):
            fence, tag, indent, lines = mark[1], mark[2].lower(), mark.start(1), []
            if code := _CODE_ON_FENCE.match(line):
                tag, lines = "", [code[1]]
        elif fence:
            margin = len(line) - len(line.lstrip(" \t"))
            lines.append(line[min(indent, margin) :])
    if fence:
        blocks.append(CodeBlock(tag, "\n".join(lines), closed=False))
    return [inner for block in blocks if block.text.strip() for inner in _unfolded(block)]


def parsed(text: str) -> ast.Module | None:
    """Return a text's syntax tree; None if it is no Python."""
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unbound_names(*trees: ast.AST) -> tuple[str, ...]:
    """Return names that syntax trees use but neither the trees nor Python's builtins define."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    bound = {name for node in nodes for name in _bound_by(node)} | {*dir(builtins), "__file__"}
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    return tuple(dict.fromkeys(name for name in names if name not in bound))


def defines(text: str, names: Iterable[str]) -> bool:
    """Return whether an unindented line of a text defines one of these names."""
    return any(_definition(name).search(text) for name in names)


@cache
def _definition(name: str) -> re.Pattern[str]:
    name = re.escape(name)
    return re.compile(
        rf"^(?:(?:async[ ]+)?def|class)[ ]+{name}\b|^{name}[ ]*(?::[^=\n]*)?=(?!=)", re.M
    )


def _unfolded(block: CodeBlock) -> list[CodeBlock]:
    """Return the blocks inside a block tagged as Markdown; any other block unchanged."""
    return (code_blocks(block.text) if block.tag in MARKDOWN else []) or [block]


def _defining(blocks: Sequence[CodeBlock], names: Sequence[str]) -> str | None:
    defining = [block for block in blocks if defines(block.text, names)]
    python = [block for block in defining if block.tag not in OTHER_TAGS]  # `def f` is Ruby, too
    whole = [block for block in python if not _is_stub(block.text)]
    closed_last = sorted(whole or python or defining, key=lambda block: block.closed)  # stable
    return closed_last[-1].text if closed_last else None


def _is_stub(text: str) -> bool:
    """Return whether a text only declares functions and classes: `def f(x: int) -> int: ...`."""
    tree = parsed(text)
    return tree is not None and all(map(_declares, tree.body))


def _declares(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return all(map(_declares, node.body))
    empty = isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    empty = empty or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass | ast.AnnAssign)
    return empty or isinstance(_value(node), ast.Constant)


def _last(blocks: Sequence[CodeBlock]) -> str | None:
    closed = [block for block in blocks if block.closed]
    python = [block.text for block in closed if block.tag in PYTHON]
    code = python or [block.text for block in closed if _is_code(block.text)]
    cut = [block.text for block in blocks if block.tag in (*PYTHON, "") and _is_code(block.text)]
    return (code or cut or [block.text for block in closed] or [None])[-1]


_PROSE = (ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp)
"""Types of expression that program output and plain words may be if parsed as Python."""


def _is_code(text: str) -> bool:
    """Return whether a text is Python that does something; output, such as `7`, is not code."""
    tree = parsed(text)
    return any(not isinstance(_value(node), _PROSE) for node in (tree.body if tree else ()))


def _is_all_code(text: str) -> bool:
    """Return whether a text is Python without a line that may be words, such as `[BEGIN]`."""
    tree = parsed(text)
    words = (ast.Name, ast.Tuple, ast.List)
    return bool(tree) and not any(isinstance(_value(node), words) for node in tree.body)


def _value(statement: ast.stmt) -> ast.AST:
    """Return the expression of an expression statement; else the statement itself."""
    return statement.value if isinstance(statement, ast.Expr) else statement


# --- bare code ----------------------------------------------------------------------------------


def _bare(reply: str, names: Sequence[str]) -> str | None:
    """Return unfenced code that defines one of `names`: the whole text, or one definition."""
    text = re.split(r"^[ \t]*(?:```|~~~)", reply, maxsplit=1, flags=re.M)[0]
    for begin, end in WRAPPERS:
        text = text.partition(end)[0].rpartition(begin)[2]
    if not defines(text, names):
        return None
    start = _CODE_LINE.search(text)
    for candidate in (text, text[start.start() :] if start else ""):
        if defines(candidate, names) and _is_all_code(candidate):
            return candidate.strip("\n")
    statements = [statement for statement in _statements(text) if _is_code(statement)]
    chosen = [place for place, statement in enumerate(statements) if defines(statement, names)]
    if not chosen:
        return None
    return _with_helpers(statements[chosen[-1]], statements[: chosen[-1]], statements[chosen[-1] :])


def _statements(text: str) -> Iterator[str]:
    """Yield groups of lines of a text, each from one unindented line to the next."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and line and not _GOES_ON.match(line) and not lines[-1].startswith("@"):
            yield "\n".join(lines)
            lines = []
        lines.append(line)
    yield "\n".join(lines)


# --- helpers ------------------------------------------------------------------------------------

_BINDS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
    ast.Assign, ast.AnnAssign,
)  # fmt: skip


def _with_helpers(program: str, preceding: Iterable[str], following: Iterable[str]) -> str:
    """Prepend definitions that a program lacks, from the nearest code blocks that have them."""
    tree = parsed(program)
    missing = [*unbound_names(tree)] if tree else []
    if not missing:
        return program
    earlier = [*_bindings(preceding)]
    later = reversed([*enumerate(_bindings(following), len(earlier))])
    farthest_first = [*later, *enumerate(earlier)]
    index = {name: pair for pair in farthest_first for name in _targets(pair[1])}
    helpers: dict[int, ast.stmt] = {}
    for name in missing:  # the loop appends names
        place, node = index.get(name, (0, None))
        if node and place not in helpers:
            helpers[place] = node
            missing += unbound_names(node)
    joined = program
    with suppress(RecursionError):
        joined = "\n\n".join([*(ast.unparse(helpers[place]) for place in sorted(helpers)), program])
    return joined if parsed(joined) else program


def _bindings(texts: Iterable[str]) -> Iterator[ast.stmt]:
    for tree in filter(None, map(parsed, texts)):
        yield from (node for node in tree.body if isinstance(node, _BINDS))


def _bound_by(node: ast.AST) -> set[str]:
    """Return the names that a syntax tree's node itself binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.keyword | ast.Attribute):
        return set()
    names = (getattr(node, field, None) for field in ("name", "arg", "rest"))
    return {name for name in names if isinstance(name, str)}


def _targets(node: ast.stmt) -> set[str]:
    """Return the names that a Python statement defines or assigns."""
    targets = [*getattr(node, "targets", ()), *filter(None, [getattr(node, "target", None)])]
    inner = (leaf for target in targets for leaf in ast.walk(target))
    return _bound_by(node).union(*map(_bound_by, inner))
