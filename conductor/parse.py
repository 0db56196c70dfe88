"""Read a plan out of a conductor's text: three Python lists, JSON, or either with small faults.

Total: no text makes a reader raise, sizes and depths are bounded, and nothing is ever evaluated.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

from harness.workflow import MAX_STEPS, Malformed, Reads, Step, Workflow, check

# § Read a conductor's text: free reasoning, then three Python lists. Total: it never raises.
# §
# §     model_id = [2, 0]
# §     subtasks = ["Look up the date.", "Compute the number of days."]
# §     access_list = [[], ["all"]]
# §
# § The lists follow one another in this order (arXiv 2512.04388, section 3.1 and appendix E);
# § reasoning
# § may hold drafts, so the last complete triple counts. Entry k of `access_list` says what
# § step k may
# § read: `[]` nothing, `"all"` or `["all"]` everything before it, `[0, 2]` those steps. Model
# § ids are
# § positions in the pool. Anything else is `Malformed` with the reason, which a retry may
# § show.
# § Only literals of bounded size and depth reach `ast.literal_eval`, and nothing is ever
# § evaluated.
# § Not here: what is forgiven (lenient.py), JSON (json_form.py), what a form asks
# § (reading.py).


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


def parse_lists(
    text: str, workers: Sequence[str], max_steps: int = MAX_STEPS
) -> Workflow | Malformed:
    r"""Return the workflow that a conductor's text asks for, or the first thing wrong with it.

    In strings only `\\`, `\"`, `\'` and `\n` are escapes: any other backslash stays, so that LaTeX
    survives (`\frac` has no form feed in it).

    >>> parse_lists('model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='Solve it.', reads=(), system=None, sampling=None),))
    >>> parse_lists("I would ask model 1.", ["ada", "bo"]).reason
    'there is no complete list model_id = [...]'
    """
    found = _last_triple(text.encode(errors="replace").decode())
    if isinstance(found, Malformed):
        return found
    values: list[list[object]] = []
    for name, source in zip(NAMES, found, strict=True):
        value = _list_values(name, source)
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
    lists = list(_closed_lists(text))
    for at in range(len(lists) - 3, -1, -1):
        names = tuple(name for name, _ in lists[at : at + 3])
        if names == NAMES:
            return lists[at][1], lists[at + 1][1], lists[at + 2][1]
    missing = [name for name in NAMES if name not in {name for name, _ in lists}]
    if missing:
        return Malformed(f"there is no complete list {missing[0]} = [...]")
    return Malformed("the three lists do not follow one another: " + ", ".join(NAMES))


def _closed_lists(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, source) of every closed list, in order; names inside a list are part of it."""
    end = 0
    for named in list(_NAMED_LIST.finditer(text))[-MAX_DRAFTS:]:
        if named.start() < end:
            continue
        closed = _list_end(text, named.end())
        if closed is not None:
            end = closed
            yield named.group(1), text[named.end() : closed]


def _list_end(text: str, start: int) -> int | None:
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


def _list_values(name: str, source: str) -> list[object] | Malformed:
    """Return the list that the source spells, if it holds strings, integers and lists only."""
    between = _TOKEN.split(source)
    if not all(_PLAIN.fullmatch(part) for part in between):
        return Malformed(f"{name} may hold only strings, small integers and lists")
    source = _ESCAPE.sub(_doubled_sign, source)
    try:
        return cast("list[object]", ast.literal_eval(source))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Malformed(f"{name} is not a valid Python list")


def unescaped(text: str) -> str:
    r"""Return a text with the four escapes read, and any other backslash as it is."""
    return _ESCAPE.sub(_unescaped_sign, text)


def _unescaped_sign(escape: re.Match[str]) -> str:
    said = escape.group(1)
    return escape.group() if said not in _ESCAPED else {"n": "\n", "\n": ""}.get(said, said)


def _doubled_sign(escape: re.Match[str]) -> str:
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


# § Read a plan that is JSON, as conductors behind an API write it more surely than Python
# § lists.
# §
# §     {"model_id": [2, 0], "subtasks": ["Look it up.", "Compute."], "access_list": [[],
# § ["all"]]}
# §     [{"model_id": 2, "subtask": "Look it up.", "access_list": []}, ...]      (also under
# § "steps")
# §
# § Free text may stand around it; the last one that is complete counts, and other keys are
# § ignored.
# § Total, as parse.py is: size and depth are bounded before anything is decoded, by `json`
# § alone.


MAX_JSON = 3 * MAX_LIST
"""Characters of one object: it holds three lists."""
MAX_JSON_DEPTH = 4
STEP_KEYS = ("model_id", "subtask", "access_list")
NO_OBJECT = "there is no complete JSON object with the keys " + ", ".join(NAMES)

_JSON_OPENING = re.compile(r"[\[{](?=\s{0,80}[\"{])")
_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}"]', re.S)
"""A complete string, a bracket, or the quote of a string that is never closed."""


class _Refused(ValueError):
    """The object says what JSON has no clear meaning for; holds our words for it."""


def parse_json(
    text: str, workers: Sequence[str], max_steps: int = MAX_STEPS
) -> Workflow | Malformed:
    """Return the workflow that a conductor's JSON asks for, or the first thing wrong with it.

    >>> parse_json('{"model_id": [1], "subtasks": [""], "access_list": [[]]}', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='', reads=(), system=None, sampling=None),))
    """
    values = _closed_json(text.encode(errors="replace").decode())
    plans = [found for found in values if '"model_id"' in found or '"steps"' in found]
    if not plans:
        return Malformed(NO_OBJECT)
    try:
        decoded = json.loads(plans[-1], object_pairs_hook=_unique_keys, parse_constant=_no_constant)
        return workflow_of(_json_lists(decoded), workers, max_steps)
    except _Refused as refused:
        return Malformed(str(refused))
    except (ValueError, RecursionError):
        return Malformed("the plan is not valid JSON")


def _closed_json(text: str) -> Iterator[str]:
    """Yield every closed object or list of objects, in order; those inside one are part of it."""
    end = 0
    for opening in list(_JSON_OPENING.finditer(text))[-MAX_DRAFTS:]:
        if opening.start() < end:
            continue
        closed = _json_end(text, opening.start())
        if closed is not None:
            end = closed
            yield text[opening.start() : closed]


def _json_end(text: str, start: int) -> int | None:
    """Return where the value that opens at `start` ends, None when it does not end in bounds."""
    depth = 0
    for token in _JSON_TOKEN.finditer(text, start, start + MAX_JSON):
        if token.group() in ("[", "{"):
            depth += 1
            if depth > MAX_JSON_DEPTH:
                return None
        elif token.group() in ("]", "}"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.group() == '"':
            return None
    return None


def _unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys stand in it once: of two values neither is the plan's."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("a key of the JSON object stands in it twice")
    return found


def _no_constant(name: str) -> object:
    raise _Refused(f"{name} is no JSON")


def _json_lists(decoded: object) -> list[list[object]]:
    """Return the three lists, from either spelling."""
    if isinstance(decoded, dict):
        plan = cast(Mapping[str, object], decoded)
        if "steps" not in plan:
            return [_json_list(plan, name) for name in NAMES]
        decoded = plan["steps"]
    if not isinstance(decoded, list):
        raise _Refused("steps must be a list")
    rows = [_json_step(at, step) for at, step in enumerate(cast("list[object]", decoded), start=1)]
    return [list(column) for column in zip(*rows, strict=True)] or [[], [], []]


def _json_list(plan: Mapping[str, object], name: str) -> list[object]:
    found = plan.get(name)
    if name not in plan:
        raise _Refused(f"the JSON object has no key {name}")
    if not isinstance(found, list):
        raise _Refused(f"{name} must be a list")
    return [_utf8(value) for value in cast("list[object]", found)]


def _json_step(at: int, step: object) -> tuple[object, object, object]:
    if not isinstance(step, dict):
        raise _Refused(f"step {at} must be a JSON object")
    named = cast(Mapping[str, Any], step)
    missing = [key for key in STEP_KEYS if key not in named]
    if missing:
        raise _Refused(f"step {at} has no key {missing[0]}")
    model, subtask, access = (named[key] for key in STEP_KEYS)
    return model, _utf8(subtask), access


def _utf8(value: object) -> object:
    r"""Return a text that can be sent: JSON can spell half a character (`\ud800`)."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


# § Values as a careless writer spells them: other quotes, round brackets, words without
# § quotes.
# §
# § Reads one value at a place in a text, for lenient.py: texts, small whole numbers, `all`,
# § `None`, and
# § lists of those. Bounded in length and depth; it decodes by hand and evaluates nothing.


ROUND = "a list stood in round brackets"
QUOTES = "a text stood in typographic quotes"
BREAK = "a text went over several lines"
BARE_ALL = "all stood without quotes"
BARE_MODEL = "the number of a model was written with the word Model"

_LOOSE_TOKEN = re.compile(
    r"(?P<space>[\s]+|\#[^\n]*)"
    r"|(?P<comma>,)"
    r"|(?P<open>[\[(])"
    r"|(?P<close>[\])])"
    r'|"""(?P<triple>(?:\\.|[^\\])*?)"""'
    r"|'''(?P<single3>(?:\\.|[^\\])*?)'''"
    r'|"(?P<double>(?:\\.|[^"\\])*)"'
    r"|'(?P<single>(?:\\.|[^'\\])*)'"
    r"|“(?P<curly>[^“”]*)”"
    r"|\u2018(?P<curly1>[^\u2018\u2019]*)\u2019"
    r"|(?P<model>[Mm]odel[ \t#]{1,3}\d{1,6}(?![\w.]))"
    rf"|(?P<number>-?\d{{1,{MAX_DIGITS}}}(?![\w.]))"
    r"|(?P<word>[A-Za-z]{1,9}(?![\w.\"'(\[]))",
    re.S | re.ASCII,
)
_OPENED_BY = {"]": "[", ")": "("}
_WORDS = {"all": "all", "none": None, "null": None}


@dataclass(frozen=True, slots=True)
class LooseValue:
    """One value, where it ends, and what was forgiven."""

    content: object
    """str, int, None, or a list of these and of lists."""
    end: int
    forgave: tuple[str, ...] = ()


@dataclass(slots=True)
class _OpenList:
    """A list that is being read."""

    bracket: str
    entries: list[object] = field(default_factory=list[object])
    filled: bool = False
    """Whether an entry stands since the last comma: two without one between are no list."""

    def take(self, content: object) -> bool:
        if self.filled:
            return False
        self.entries.append(content)
        self.filled = True
        return True


def loose_value(text: str, start: int) -> LooseValue | None:
    """Return the value that begins at `start`; None where there is none, or none that ends."""
    at, stop = start, min(len(text), start + MAX_LIST)
    stack: list[_OpenList] = []
    forgave: dict[str, None] = {}
    while at < stop:
        token = _LOOSE_TOKEN.match(text, at, stop)
        if token is None:
            return None
        at = token.end()
        kind, said = token.lastgroup or "", token.group(token.lastgroup or 0)
        if kind == "space" and (stack or said.strip() == ""):
            continue
        done = _take_token(stack, kind, said, forgave)
        if done is _FAILED:
            return None
        if not stack and done is not _MORE:
            return LooseValue(done, at, tuple(forgave))
    return None


_FAILED, _MORE = object(), object()


def _take_token(stack: list[_OpenList], kind: str, said: str, forgave: dict[str, None]) -> object:
    """Take one token: the finished value when it is the last, `_MORE`, or `_FAILED`."""
    if kind == "open":
        forgave.update({ROUND: None} if said == "(" else {})
        stack.append(_OpenList(said))
        return _FAILED if len(stack) > MAX_DEPTH else _MORE
    if kind == "comma":
        if not stack or not stack[-1].filled:
            return _FAILED
        stack[-1].filled = False
        return _MORE
    if kind == "close":
        if not stack or stack[-1].bracket != _OPENED_BY[said]:
            return _FAILED
        content: object = stack.pop().entries
    else:
        content = _scalar(kind, said, forgave)
    if content is _FAILED or not stack:
        return content
    return _MORE if stack[-1].take(content) else _FAILED


def _scalar(kind: str, said: str, forgave: dict[str, None]) -> object:
    if kind == "number":
        return int(said)
    if kind == "model":
        forgave[BARE_MODEL] = None
        return int(re.sub(r"\D", "", said))
    if kind == "word":
        if said.lower() == "all":
            forgave[BARE_ALL] = None
        return _WORDS.get(said.lower(), _FAILED)
    if kind == "space":
        return _FAILED
    if kind.startswith("curly"):
        forgave[QUOTES] = None
    if kind in ("double", "single") and "\n" in said:
        forgave[BREAK] = None
    return unescaped(said)


# § A reader that forgives small faults of form in a plan, and says which.
# §
# § Form only, never meaning: a number is never shifted, a subtask's end is never guessed,
# § lists of
# § different lengths and texts that break off stay malformed. Used where a form says
# § `lenient`; the
# § paper's numbers, and training, are strict. Total, as parse.py is, and it evaluates nothing
# § at all.


OTHER_FORM = "the plan was written in the other form (lists for JSON, or JSON for lists)"
ORDER = "the three lists stood in another order"
NAME = "a list was named in another spelling"
SCALAR = "the one entry of a list stood without its brackets"
ID_TEXT = "the number of a model was written as text"
STEP_TEXT = "the number of a step was written as text, or without its brackets"
NOTHING = "None, or an empty text, was read as an empty access list"
CASE = "all was written in capitals"
NO_ACCESS = "an access list was missing; with a single step there is nothing to read"

LenientRead = tuple[Workflow | Malformed, tuple[str, ...]]
"""A plan, and what was forgiven."""

_LOOSE_NAME = re.compile(
    r"(?<![\w.])[\"'`*]{0,3}(model_ids?|subtasks?|access_lists?)[\"'`*]{0,3}\s{0,9}[:=]\s{0,9}",
    re.IGNORECASE | re.ASCII,
)
_LOOSE_MODEL = re.compile(r"(?:model)?[\s#]{0,3}(\d{1,6})", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)


def parse_leniently(
    text: str, workers: Sequence[str], max_steps: int = MAX_STEPS, reply: str = "lists"
) -> LenientRead:
    """Return the plan in a text and what was forgiven; what is strictly right needs nothing.

    Where nothing helps, the reason is the strict reader's.
    """
    readers = (parse_lists, parse_json) if reply == "lists" else (parse_json, parse_lists)
    strict = readers[0](text, workers, max_steps)
    if isinstance(strict, Workflow):
        return strict, ()
    other = readers[1](text, workers, max_steps)
    if isinstance(other, Workflow):
        return other, (OTHER_FORM,)
    found = _loose_lists(text.encode(errors="replace").decode())
    if found is None:
        return strict, ()
    plan = workflow_of(found.lists, workers, max_steps)
    emptied = isinstance(plan, Malformed) and not any(found.lists)
    return (plan, tuple(found.forgave)) if isinstance(plan, Workflow) or emptied else (strict, ())


@dataclass(slots=True)
class _LooseLists:
    """Three lists as they were meant, and what was forgiven on the way, each once."""

    lists: list[list[object]] = field(default_factory=list[list[object]])
    forgave: dict[str, None] = field(default_factory=dict[str, None])

    def forgive(self, *said: str) -> None:
        self.forgave.update(dict.fromkeys(said))


@dataclass(frozen=True, slots=True)
class _NamedValue:
    name: str
    """As it is called in the strict form."""
    as_is: bool
    """Whether it was called so."""
    value: LooseValue | None
    """None where it cannot be read."""


def _loose_lists(text: str) -> _LooseLists | None:
    """Return the lists that stand together at the end, in any order; None where they do not.

    Never an earlier draft: which one was meant would be a guess.
    """
    named = list(_named_values(text))
    last = {one.name: one for one in named[-3:]}
    if len(last) < len(NAMES) and not any(one.name == NAMES[2] for one in named[-3:]):
        last = {one.name: one for one in named[-2:]}
    if not {*NAMES[:2]} <= {*last} or any(one.value is None for one in last.values()):
        return None
    return _lists_in(last, len(named) > len(last))


def _named_values(text: str) -> Iterator[_NamedValue]:
    """Yield every value that has one of the names; names inside a value are part of it."""
    end = 0
    for found in list(_LOOSE_NAME.finditer(text))[-MAX_DRAFTS:]:
        if found.start() < end:
            continue
        value = loose_value(text, found.end())
        end = value.end if value else end
        stem = found.group(1).lower().removesuffix("s")
        name = next(one for one in NAMES if one.removesuffix("s") == stem)
        as_is = re.fullmatch(rf"{name}\s*=\s*", found.group()) is not None
        yield _NamedValue(name, as_is, value)


def _lists_in(window: dict[str, _NamedValue], drafts: bool) -> _LooseLists | None:
    """Return what these lists mean; after drafts nobody can tell which ones belong together."""
    found = _LooseLists()
    if tuple(name for name in window if name in NAMES[:2]) != NAMES[:2] or (
        len(window) == len(NAMES) and tuple(window) != NAMES
    ):
        found.forgive(ORDER)
    for one in window.values():
        assert one.value is not None, "unreadable values are no lists"
        found.forgive(*one.value.forgave, *([] if one.as_is else [NAME]))
    for name in NAMES:
        values = _entries(name, window, found)
        if values is None:
            return None
        found.lists.append(values)
    return None if drafts and {SCALAR, ORDER} & found.forgave.keys() else found


def _entries(name: str, window: dict[str, _NamedValue], found: _LooseLists) -> list[object] | None:
    """Return the entries of one list; a scalar is a list of one, where no other plan is near."""
    one = window.get(name)
    content = one.value.content if one and one.value else None
    if name == "access_list" and content in (None, []):
        return _nothing_to_read(found)
    if not isinstance(content, list):
        found.forgive(SCALAR)
        content = [content]
    entries = cast("list[object]", content)
    mend = {"model_id": _loose_model, "access_list": _loose_access}.get(name)
    return [mend(entry, found) for entry in entries] if mend else entries


def _nothing_to_read(found: _LooseLists) -> list[object] | None:
    steps = len(found.lists[0])
    if steps == 1:
        found.forgive(NO_ACCESS)
        return [[]]
    return [] if steps == 0 else None


def _loose_model(entry: object, found: _LooseLists) -> object:
    """Return the number in `"Model 2"`, `"#2"` or `"2"`; anything else stays as it is."""
    number = _LOOSE_MODEL.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if number is None:
        return entry
    found.forgive(ID_TEXT)
    return int(number.group(1))


def _loose_access(entry: object, found: _LooseLists) -> object:
    if entry is None or (isinstance(entry, str) and entry.strip().lower() in ("", "none")):
        found.forgive(NOTHING)
        return []
    if isinstance(entry, list):
        return [_loose_step(one, found) for one in cast("list[object]", entry)]
    single = _loose_step(entry, found)
    if isinstance(single, int):
        found.forgive(STEP_TEXT)
        return [single]
    return single


def _loose_step(entry: object, found: _LooseLists) -> object:
    """Return what may be read: a number, `"all"`, or whatever it was (`"step 1"` is a guess)."""
    if not isinstance(entry, str):
        return entry
    said = entry.strip()
    if said.lower() == "all":
        if entry != "all":
            found.forgive(CASE)
        return "all"
    if _DIGITS.fullmatch(said):
        found.forgive(STEP_TEXT)
        return int(said)
    return entry
