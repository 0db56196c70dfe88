"""The format of a plan: three Python lists or JSON, read out of a conductor's text.

Total: no text makes a reader raise, sizes and depths are bounded, and nothing is ever evaluated.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard, cast

from harness.workflow import MAX_STEPS, Malformed, Reads, Step, Workflow, check

Layout = Literal["paper", "compact"]
"""`paper`: figure 13's structure in our words. `compact`: question and models only, for a model
that was trained from scratch and could not read instructions."""

Access = Literal["off", "binary", "fine"]
"""`off`: no step reads another; `binary`: nothing or all (the paper's main model); `fine`: any
earlier steps (arXiv 2512.04388, appendix B.8)."""
SOLVE = "Solve the question."  # of a step that reads others, where the form has no subtasks
AnyPlan = Workflow | Malformed
NAMES = ("model_id", "subtasks", "access_list")
MAX_LIST = 20_000  # characters of one list. The paper's completions end at 1,024 tokens.
MAX_DEPTH = 2
MAX_DIGITS = 6
MAX_DRAFTS = 90  # lists looked at, from the end of the text: bounds work on hostile text
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
MAX_JSON = 3 * MAX_LIST  # characters of one object: it holds three lists
MAX_JSON_DEPTH = 4
STEP_KEYS = ("model_id", "subtask", "access_list")
NO_OBJECT = "there is no complete JSON object with the keys " + ", ".join(NAMES)
_JSON_OPENING = re.compile(r"(?=[\[{]\s{0,80}[\"{])")
_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}"]', re.S)
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
_LooseToken = tuple[str, str, int]  # its kind, what stands there, and where it ends
OTHER_FORM = "the plan was written in the other form (lists for JSON, or JSON for lists)"
ORDER = "the three lists stood in another order"
NAME = "a list was named in another spelling"
SCALAR = "the one entry of a list stood without its brackets"
ID_TEXT = "the number of a model was written as text"
STEP_TEXT = "the number of a step was written as text, or without its brackets"
NOTHING = "None, or an empty text, was read as an empty access list"
CASE = "all was written in capitals"
NO_ACCESS = "an access list was missing; with a single step there is nothing to read"

_LOOSE_NAME = re.compile(
    r"(?<![\w.])[\"'`*]{0,3}(model_ids?|subtasks?|access_lists?)[\"'`*]{0,3}\s{0,9}[:=]\s{0,9}",
    re.IGNORECASE | re.ASCII,
)
_LOOSE_MODEL = re.compile(r"(?:model)?[\s#]{0,3}(\d{1,6})", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)


class _Refused(ValueError):
    """A text is no plan; holds our words for what is wrong with it first."""


def workflow_of(
    values: Sequence[Sequence[object]], workers: Sequence[str], max_steps: int = MAX_STEPS
) -> AnyPlan:
    """Return the workflow of three lists of plain values, or the first thing wrong with it."""
    models, subtasks, access = values
    if not models and not subtasks and not access:
        return Malformed(NOTHING_TO_DO)
    if not len(models) == len(subtasks) == len(access):
        lengths = f"{len(models)}, {len(subtasks)} and {len(access)}"
        return Malformed(f"the three lists have different lengths: {lengths}")
    if len(models) > max_steps:
        return Malformed(f"{len(models)} steps, at most {max_steps} are allowed")
    rows = enumerate(zip(models, subtasks, access, strict=True))
    try:
        steps = tuple(_step(index, *row, workers) for index, row in rows)
    except _Refused as refused:
        return Malformed(str(refused))
    return check(Workflow(steps), workers, max_steps)


def _step(
    index: int, model: object, subtask: object, entry: object, workers: Sequence[str]
) -> Step:
    step = f"step {index + 1}"
    if not _is_number(model):
        raise _Refused(f"{step}: model_id must be an integer, not {model!r:.40}")
    if not 0 <= model < len(workers):
        raise _Refused(f"{step}: there is no Model {model}, only 0 to {len(workers) - 1}")
    if not isinstance(subtask, str):
        raise _Refused(f"{step}: the subtask must be a string, not {subtask!r:.40}")
    if "\0" in subtask:
        raise _Refused(f"{step}: the subtask holds a null character")
    return Step(workers[model], subtask, _reads(index, entry))


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)  # JSON has true and false


def _reads(index: int, entry: object) -> Reads:
    step = f"step {index + 1}"
    if entry in ("all", ["all"]):
        return "all"
    if not isinstance(entry, list):
        wanted = '[], ["all"] or a list of indices'
        raise _Refused(f"{step}: access must be {wanted}, not {entry!r:.40}")
    reads: list[int] = []
    for read in cast("list[object]", entry):
        if not _is_number(read):
            raise _Refused(f"{step}: access holds {read!r:.40}, which is no step index")
        if not 0 <= read < index:
            raise _Refused(f"{step} may read earlier steps only, not index {read}")
        reads.append(read)
    if len(set(reads)) < len(reads):
        raise _Refused(f"{step} reads the same step twice")
    return tuple(reads)


def _drafts(
    text: str, opening: re.Pattern[str], token: re.Pattern[str], *, longest: int, depth: int
) -> Iterator[tuple[re.Match[str], str]]:
    """Yield every closed value behind an opening, in order; openings inside one are part of it."""
    end = 0
    for opened in list(opening.finditer(text))[-MAX_DRAFTS:]:
        start = opened.end()
        if opened.start() < end:
            continue
        closed = _closing(token.finditer(text, start, start + longest), depth)
        if closed is not None:
            end = closed
            yield opened, text[start:closed]


def _closing(tokens: Iterator[re.Match[str]], depth: int) -> int | None:
    opened = 0
    for token in tokens:
        if token.group() in ("[", "{"):
            opened += 1
            if opened > depth:
                return None
        elif token.group() in ("]", "}"):
            opened -= 1
            if opened == 0:
                return token.end()
        elif token.group() in ("'", '"'):
            return None
    return None


def parse_lists(text: str, workers: Sequence[str], max_steps: int = MAX_STEPS) -> AnyPlan:
    r"""Return the workflow that a conductor's text asks for, or the first thing wrong with it.

        model_id = [2, 0]
        subtasks = ["Look up the date.", "Compute the number of days."]
        access_list = [[], ["all"]]

    The lists follow one another in this order (arXiv 2512.04388, section 3.1 and appendix E);
    reasoning may hold drafts, so the last complete triple counts. Entry k of `access_list` says
    what step k may read: `[]` nothing, `"all"` or `["all"]` everything before it, `[0, 2]` those.
    Only `\\`, `\"`, `\'` and `\n` are escapes: any other backslash stays, so that LaTeX survives.

    >>> parse_lists('model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='Solve it.', reads=(), system=None, sampling=None),))
    >>> parse_lists("I would ask model 1.", ["ada", "bo"]).reason
    'there is no complete list model_id = [...]'
    """
    try:
        found = _last_triple(text.encode(errors="replace").decode())
        values = [_list_values(*one) for one in zip(NAMES, found, strict=True)]
    except _Refused as refused:
        return Malformed(str(refused))
    return workflow_of(values, workers, max_steps)


def _last_triple(text: str) -> tuple[str, str, str]:
    """Return the sources of the last three lists that stand in order and are complete."""
    drafts = _drafts(text, _NAMED_LIST, _TOKEN, longest=MAX_LIST, depth=MAX_DEPTH)
    lists = [(named.group(1), source) for named, source in drafts]
    for at in range(len(lists) - 3, -1, -1):
        names, sources = zip(*lists[at : at + 3], strict=True)
        if names == NAMES:
            return cast("tuple[str, str, str]", sources)
    missing = [name for name in NAMES if name not in {name for name, _ in lists}]
    if missing:
        raise _Refused(f"there is no complete list {missing[0]} = [...]")
    raise _Refused("the three lists do not follow one another: " + ", ".join(NAMES))


def _list_values(name: str, source: str) -> list[object]:
    """Return the list that the source spells, if it holds strings, integers and lists only."""
    if not all(_PLAIN.fullmatch(part) for part in _TOKEN.split(source)):
        raise _Refused(f"{name} may hold only strings, small integers and lists")
    # An escape that is not ours keeps its backslash: it is doubled.
    source = _ESCAPE.sub(
        lambda sign: sign.group() if sign.group(1) in _ESCAPED else "\\" + sign.group(), source
    )
    try:
        return cast("list[object]", ast.literal_eval(source))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _Refused(f"{name} is not a valid Python list") from None


def _unescaped(text: str) -> str:
    r"""Return a text with the four escapes read, and any other backslash as it is."""

    def read(escape: re.Match[str]) -> str:
        said = escape.group(1)
        return escape.group() if said not in _ESCAPED else {"n": "\n", "\n": ""}.get(said, said)

    return _ESCAPE.sub(read, text)


def parse_json(text: str, workers: Sequence[str], max_steps: int = MAX_STEPS) -> AnyPlan:
    """Return the workflow that a conductor's JSON asks for, or the first thing wrong with it.

        {"model_id": [2, 0], "subtasks": ["Look up.", "Compute."], "access_list": [[], ["all"]]}
        [{"model_id": 2, "subtask": "Look up.", "access_list": []}, ...]  (also under "steps")

    Free text may stand around it; the last one that is complete counts, other keys are ignored.

    >>> parse_json('{"model_id": [1], "subtasks": [""], "access_list": [[]]}', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='', reads=(), system=None, sampling=None),))
    """
    text = text.encode(errors="replace").decode()
    drafts = _drafts(text, _JSON_OPENING, _JSON_TOKEN, longest=MAX_JSON, depth=MAX_JSON_DEPTH)
    plans = [found for _, found in drafts if '"model_id"' in found or '"steps"' in found]
    if not plans:
        return Malformed(NO_OBJECT)
    try:
        decoded = json.loads(plans[-1], object_pairs_hook=_unique_keys, parse_constant=_no_constant)
        return workflow_of(_json_lists(decoded), workers, max_steps)
    except _Refused as refused:
        return Malformed(str(refused))
    except (ValueError, RecursionError):
        return Malformed("the plan is not valid JSON")


def _unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):  # of two values neither is the plan's
        raise _Refused("a key of the JSON object stands in it twice")
    return found


def _no_constant(name: str) -> object:
    raise _Refused(f"{name} is no JSON")


def _json_lists(decoded: object) -> list[list[object]]:
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
    if name not in plan:
        raise _Refused(f"the JSON object has no key {name}")
    found = plan[name]
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


# --- with small faults of form ------------------------------------------------------------------
#
# Form only, never meaning: a number is never shifted, a subtask's end is never guessed, lists of
# different lengths and texts that break off stay malformed. The paper's numbers, and training, are
# strict.


def _loose_tokens(text: str, start: int) -> Iterator[_LooseToken]:
    """Yield tokens but white space, and but comments once a value has begun, as far as they go."""
    at, stop, begun = start, min(len(text), start + MAX_LIST), False
    while at < stop:
        token = _LOOSE_TOKEN.match(text, at, stop)
        if token is None:
            return
        at, kind, said = token.end(), token.lastgroup or "", token.group(token.lastgroup or 0)
        if kind != "space":
            begun = True
            yield kind, said, at
        elif said.strip() and not begun:
            return


def _loose(
    token: _LooseToken, tokens: Iterator[_LooseToken], forgave: dict[str, None], depth: int = 0
) -> tuple[object, int]:
    kind, opening, end = token
    if kind != "open":
        return _scalar(kind, opening, forgave), end
    if opening == "(":
        forgave[ROUND] = None
    if depth == MAX_DEPTH:
        raise _Refused("lists in lists in lists")
    entries, filled = list[object](), False
    for kind, said, end in tokens:
        if kind == "close" and _OPENED_BY[said] == opening:
            return entries, end
        if filled is not (kind == "comma"):
            raise _Refused("two entries without a comma, or two commas without an entry")
        filled = not filled
        if filled:
            entries.append(_loose((kind, said, end), tokens, forgave, depth + 1)[0])
    raise _Refused("a list without an end")


def _scalar(kind: str, said: str, forgave: dict[str, None]) -> object:
    if kind == "number":
        return int(said)
    if kind == "model":
        forgave[BARE_MODEL] = None
        return int(re.sub(r"\D", "", said))
    if kind in ("comma", "close") or (kind == "word" and said.lower() not in _WORDS):
        raise _Refused(f"{said} is no value")
    if kind == "word":
        forgave.update({BARE_ALL: None} if said.lower() == "all" else {})
        return _WORDS[said.lower()]
    if kind.startswith("curly"):
        forgave[QUOTES] = None
    if kind in ("double", "single") and "\n" in said:
        forgave[BREAK] = None
    return _unescaped(said)


def parse_leniently(
    text: str, workers: Sequence[str], max_steps: int = MAX_STEPS, reply: str = "lists"
) -> tuple[AnyPlan, tuple[str, ...]]:
    """Return the plan in a text and what was forgiven; what is strictly right needs nothing."""
    readers = (parse_lists, parse_json) if reply == "lists" else (parse_json, parse_lists)
    strict = readers[0](text, workers, max_steps)
    if isinstance(strict, Workflow):
        return strict, ()
    other = readers[1](text, workers, max_steps)
    if isinstance(other, Workflow):
        return other, (OTHER_FORM,)
    lists, forgave = _loose_lists(text.encode(errors="replace").decode())
    if not lists:
        return strict, ()
    plan = workflow_of(lists, workers, max_steps)
    emptied = isinstance(plan, Malformed) and not any(lists)
    return (plan, tuple(forgave)) if isinstance(plan, Workflow) or emptied else (strict, ())


@dataclass(frozen=True, slots=True)
class _NamedValue:
    name: str  # as it is called in the strict form
    content: object  # str, int, None, or a list of these and of lists
    end: int  # 0 where it cannot be read
    forgave: dict[str, None]  # on the way, each once, in order


def _loose_lists(text: str) -> tuple[list[list[object]], dict[str, None]]:
    """Return the lists that stand together at the end, if any, and what was forgiven.

    Never an earlier draft: which one was meant would be a guess.
    """
    named = list(_named_values(text))
    last = {one.name: one for one in named[-3:]}
    if len(last) < len(NAMES) and not any(one.name == NAMES[2] for one in named[-3:]):
        last = {one.name: one for one in named[-2:]}
    forgave = dict[str, None]()
    if not {*NAMES[:2]} <= {*last} or not all(one.end for one in last.values()):
        return [], forgave
    in_order = [name for name in NAMES if name in last]
    if [*last] != in_order:
        forgave[ORDER] = None
    for one in last.values():
        forgave |= one.forgave
    lists = list[list[object]]()
    for name in NAMES:
        entries = _entries(name, last, len(lists[0]) if lists else 0, forgave)
        if entries is None:
            return [], forgave
        lists.append(entries)
    drafts = len(named) > len(last)  # then nobody can tell which ones belong together
    return ([] if drafts and {SCALAR, ORDER} & forgave.keys() else lists), forgave


def _named_values(text: str) -> Iterator[_NamedValue]:
    """Yield every value that has one of the names; names inside a value are part of it."""
    end = 0
    for found in list(_LOOSE_NAME.finditer(text))[-MAX_DRAFTS:]:
        if found.start() < end:
            continue
        tokens, forgave = _loose_tokens(text, found.end()), dict[str, None]()
        try:
            content, closed = _loose(next(tokens), tokens, forgave)
        except (_Refused, StopIteration):
            content, closed = None, 0
        end = max(end, closed)
        stem = found.group(1).lower().removesuffix("s")
        name = next(one for one in NAMES if one.removesuffix("s") == stem)
        if not re.fullmatch(rf"{name}\s*=\s*", found.group()):
            forgave[NAME] = None
        yield _NamedValue(name, content, closed, forgave)


def _entries(
    name: str, named: Mapping[str, _NamedValue], steps: int, forgave: dict[str, None]
) -> list[object] | None:
    """Return the entries of one list; a scalar is a list of one, where no other plan is near."""
    content = named[name].content if name in named else None
    if name == "access_list" and content in (None, []):
        if steps > 1:
            return None
        forgave |= dict.fromkeys([NO_ACCESS] * steps)
        return [list[object]() for _ in range(steps)]
    if not isinstance(content, list):
        forgave[SCALAR] = None
        content = [content]
    entries = cast("list[object]", content)
    mend = {"model_id": _loose_model, "access_list": _loose_access}.get(name)
    return [mend(entry, forgave) for entry in entries] if mend else entries


def _loose_model(entry: object, forgave: dict[str, None]) -> object:
    """Return the number in `"Model 2"`, `"#2"` or `"2"`; anything else stays as it is."""
    number = _LOOSE_MODEL.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if number is None:
        return entry
    forgave[ID_TEXT] = None
    return int(number.group(1))


def _loose_access(entry: object, forgave: dict[str, None]) -> object:
    if entry is None or (isinstance(entry, str) and entry.strip().lower() in ("", "none")):
        forgave[NOTHING] = None
        return []
    if isinstance(entry, list):
        return [_loose_step(one, forgave) for one in cast("list[object]", entry)]
    single = _loose_step(entry, forgave)
    if isinstance(single, int):
        forgave[STEP_TEXT] = None
        return [single]
    return single


def _loose_step(entry: object, forgave: dict[str, None]) -> object:
    """Return what may be read: a number, `"all"`, or whatever it was (`"step 1"` is a guess)."""
    if not isinstance(entry, str):
        return entry
    said = entry.strip()
    if said.lower() == "all":
        if entry != "all":
            forgave[CASE] = None
        return "all"
    if _DIGITS.fullmatch(said):
        forgave[STEP_TEXT] = None
        return int(said)
    return entry


# --- as the format has it -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keep:
    """The conductor keeps the answer that there is."""


KEEP = Keep()


@dataclass(frozen=True, slots=True)
class PlanFormat:
    """How a conductor is asked, and how its text becomes a workflow."""

    layout: Layout = "paper"
    cards: bool = True  # whether models are described by role cards; the paper has bare ordinals
    examples: bool = True  # whether the four worked examples are shown; `compact` has none
    reply: Literal["lists", "json"] = "lists"
    lenient: bool = False  # whether small faults are forgiven; training and the paper: strict
    subtasks: bool = True  # False: every worker is asked to solve the question (Table 9)
    access: Access = "fine"
    card_words: int | None = None  # first words of a role card that are shown; None: all of it
    words: int | None = None
    """First words of a question that the conductor is shown; None: all of it. Workers always see
    all of it. For models with little context, to whom a long problem's end says nothing more."""
    max_steps: int = MAX_STEPS
    worker: str = ""  # non-empty: this one does every step, whoever the plan names (Table 10)


def read_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan:
    """Return the workflow that a text asks of these workers, or the first thing wrong with it."""
    return examine_plan(form, text, workers)[0]


def examine_plan(
    form: PlanFormat, text: str, workers: Sequence[str]
) -> tuple[AnyPlan, tuple[str, ...]]:
    """Return the same, and what a lenient reader let pass, one sentence each, our words."""
    if form.lenient:
        plan, forgave = parse_leniently(text, workers, form.max_steps, form.reply)
    else:
        strict = parse_json if form.reply == "json" else parse_lists
        plan, forgave = strict(text, workers, form.max_steps), ()
    return plan if isinstance(plan, Malformed) else restrict_plan(form, plan), forgave


def read_later_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan | Keep:
    """Return what a conductor says in a later round: a new plan, or that the answer stands."""
    return plan_or_keep(read_plan(form, text, workers))


def plan_or_keep(plan: AnyPlan) -> AnyPlan | Keep:
    """Return a later round's plan with three empty lists understood."""
    return KEEP if plan == Malformed(NOTHING_TO_DO) else plan


def restrict_plan(form: PlanFormat, plan: Workflow) -> AnyPlan:
    """Return a plan as its form allows it to run: subtasks, access and a single worker forced.

    `access="binary"` refuses a step that names single ones: all or nothing would be a guess.
    """
    if form.access == "binary":
        named = [at for at, step in enumerate(plan.steps, 1) if step.reads not in ("all", ())]
        if named:
            return Malformed(f'step {named[0]}: access must be [] or ["all"]')

    def allowed(step: Step) -> Step:
        reads = () if form.access == "off" else step.reads
        subtask = step.subtask if form.subtasks else SOLVE if reads else ""
        return replace(step, worker=form.worker or step.worker, subtask=subtask, reads=reads)

    return Workflow(tuple(map(allowed, plan.steps)))


def join_rounds(earlier: Workflow, later: Workflow) -> Workflow:
    """Return two rounds as one workflow; the later one's "all" includes the earlier's last step.

    >>> join_rounds(Workflow((Step("a"), Step("b"))), Workflow((Step("c", reads="all"),))).reads(2)
    (1,)
    """
    start = len(earlier.steps)

    def moved(index: int, step: Step) -> Step:
        reads = tuple(start + read for read in later.reads(index))
        return replace(step, reads=(start - 1, *reads) if step.reads == "all" else reads)

    return Workflow((*earlier.steps, *(moved(at, step) for at, step in enumerate(later.steps))))
