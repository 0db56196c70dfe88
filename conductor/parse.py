r"""Read a conductor's text: free reasoning, then three Python lists. Total: it never raises.

    model_id = [2, 0]
    subtasks = ["Look up the date.", "Compute the number of days."]
    access_list = [[], ["all"]]

The lists follow one another in this order (arXiv 2512.04388, section 3.1 and appendix E); reasoning
may hold drafts, so the last complete triple counts. Entry k of `access_list` says what step k may
read: `[]` nothing, `"all"` or `["all"]` everything before it, `[0, 2]` those steps. Model ids are
positions in the pool. Anything else is `Malformed` with the reason, which a retry may show.
Only literals of bounded size and depth reach `ast.literal_eval`, and nothing is ever evaluated.
Not here: what is forgiven (lenient.py), JSON (json_form.py), what a form asks (reading.py).
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeGuard, cast

from harness.workflow import MAX_STEPS, Malformed, Reads, Step, Workflow, check

NAMES = ("model_id", "subtasks", "access_list")

MAX_LIST = 20_000
"""Characters of one list. The paper's completions end at 1,024 tokens."""
MAX_DEPTH = 2
MAX_DIGITS = 6
MAX_DRAFTS = 90
"""Lists looked at, counted from the end of the text: bounds the work on hostile text."""

NOTHING_TO_DO = "three empty lists keep the earlier answer, so they are valid only in a later round"

_NAMED_LIST = re.compile(r"(?<![\w.])(model_id|subtasks|access_list)[ \t]*=[ \t]*(?=\[)")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''(?:\\.|[^\\])*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|\#[^\n]*|[\[\]\"']",
    re.S,
)
"""A complete string, a comment, a bracket, or the quote of a string that is never closed."""
_PLAIN = re.compile(rf"(?:[\s,]|-?\d{{1,{MAX_DIGITS}}}(?!\d))*")
"""What may stand between strings and brackets: commas and small integers."""
_ESCAPE = re.compile(r"\\(.)", re.S)
_ESCAPED = "\\'\"n\n"


def parse(text: str, workers: Sequence[str], max_steps: int = MAX_STEPS) -> Workflow | Malformed:
    r"""Return the workflow that a conductor's text asks for, or the first thing wrong with it.

    In strings only `\\`, `\"`, `\'` and `\n` are escapes: any other backslash stays, so that LaTeX
    survives (`\frac` has no form feed in it).

    >>> parse('model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='Solve it.', reads=(), system=None, sampling=None),))
    >>> parse("I would ask model 1.", ["ada", "bo"]).reason
    'there is no complete list model_id = [...]'
    """
    found = _last_triple(text.encode(errors="replace").decode())
    if isinstance(found, Malformed):
        return found
    values: list[list[object]] = []
    for name, source in zip(NAMES, found, strict=True):
        value = _literal(name, source)
        if isinstance(value, Malformed):
            return value
        values.append(value)
    return workflow_of(values, workers, max_steps)


def workflow_of(
    values: Sequence[Sequence[object]], workers: Sequence[str], max_steps: int = MAX_STEPS
) -> Workflow | Malformed:
    """Return the workflow of three lists of plain values, or the first thing wrong with it.

    What every reader ends with, so that a plan means the same however it was spelled.
    """
    steps = _steps(values, workers, max_steps)
    return steps if isinstance(steps, Malformed) else check(Workflow(steps), workers, max_steps)


def _last_triple(text: str) -> tuple[str, str, str] | Malformed:
    """Return the sources of the last three lists that stand in order and are complete."""
    lists = list(_lists(text))
    for at in range(len(lists) - 3, -1, -1):
        names = tuple(name for name, _ in lists[at : at + 3])
        if names == NAMES:
            return lists[at][1], lists[at + 1][1], lists[at + 2][1]
    missing = [name for name in NAMES if name not in {name for name, _ in lists}]
    if missing:
        return Malformed(f"there is no complete list {missing[0]} = [...]")
    return Malformed("the three lists do not follow one another: " + ", ".join(NAMES))


def _lists(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, source) of every closed list, in order; names inside a list are part of it."""
    end = 0
    for named in list(_NAMED_LIST.finditer(text))[-MAX_DRAFTS:]:
        if named.start() < end:
            continue
        closed = _closing(text, named.end())
        if closed is not None:
            end = closed
            yield named.group(1), text[named.end() : closed]


def _closing(text: str, start: int) -> int | None:
    """Return where the list that opens at `start` ends, None when it does not end in bounds."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + MAX_LIST):
        if token.group() == "[":
            depth += 1
            if depth > MAX_DEPTH:
                return None
        elif token.group() == "]":
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.group() in ("'", '"'):
            return None
    return None


def _literal(name: str, source: str) -> list[object] | Malformed:
    """Return the list that the source spells, if it holds strings, integers and lists only."""
    between = _TOKEN.split(source)
    if not all(_PLAIN.fullmatch(part) for part in between):
        return Malformed(f"{name} may hold only strings, small integers and lists")
    source = _ESCAPE.sub(_kept, source)
    try:
        return cast("list[object]", ast.literal_eval(source))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Malformed(f"{name} is not a valid Python list")


def unescaped(text: str) -> str:
    r"""Return a text with the four escapes read, and any other backslash as it is."""
    return _ESCAPE.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    said = escape.group(1)
    return escape.group() if said not in _ESCAPED else {"n": "\n", "\n": ""}.get(said, said)


def _kept(escape: re.Match[str]) -> str:
    """Return an escape of ours as it is, and any other backslash doubled, so that it stays."""
    return escape.group() if escape.group(1) in _ESCAPED else "\\" + escape.group()


def _steps(
    values: Sequence[Sequence[object]], workers: Sequence[str], max_steps: int
) -> tuple[Step, ...] | Malformed:
    models, subtasks, access = values
    if not models and not subtasks and not access:
        return Malformed(NOTHING_TO_DO)
    if not len(models) == len(subtasks) == len(access):
        lengths = f"{len(models)}, {len(subtasks)} and {len(access)}"
        return Malformed(f"the three lists have different lengths: {lengths}")
    if len(models) > max_steps:
        return Malformed(f"{len(models)} steps, at most {max_steps} are allowed")
    steps: list[Step] = []
    for index, row in enumerate(zip(models, subtasks, access, strict=True)):
        step = _step(index, row, workers)
        if isinstance(step, Malformed):
            return step
        steps.append(step)
    return tuple(steps)


def _step(
    index: int, row: tuple[object, object, object], workers: Sequence[str]
) -> Step | Malformed:
    model, subtask, entry = row
    if not _is_number(model):
        return Malformed(f"step {index + 1}: model_id must be an integer, not {model!r:.40}")
    if not 0 <= model < len(workers):
        last = len(workers) - 1
        return Malformed(f"step {index + 1}: there is no Model {model}, only 0 to {last}")
    if not isinstance(subtask, str):
        return Malformed(f"step {index + 1}: the subtask must be a string, not {subtask!r:.40}")
    if "\0" in subtask:
        return Malformed(f"step {index + 1}: the subtask holds a null character")
    reads = _reads(index, entry)
    return reads if isinstance(reads, Malformed) else Step(workers[model], subtask, reads)


def _is_number(value: object) -> TypeGuard[int]:
    """Say whether it is a whole number; true and false are none (JSON has them)."""
    return isinstance(value, int) and not isinstance(value, bool)


def _reads(index: int, entry: object) -> Reads | Malformed:
    if entry in ("all", ["all"]):
        return "all"
    if not isinstance(entry, list):
        wanted = '[], ["all"] or a list of indices'
        return Malformed(f"step {index + 1}: access must be {wanted}, not {entry!r:.40}")
    reads: list[int] = []
    for read in cast("list[object]", entry):
        if not _is_number(read):
            return Malformed(f"step {index + 1}: access holds {read!r:.40}, which is no step index")
        if not 0 <= read < index:
            return Malformed(f"step {index + 1} may read earlier steps only, not index {read}")
        reads.append(read)
    if len(set(reads)) < len(reads):
        return Malformed(f"step {index + 1} reads the same step twice")
    return tuple(reads)
