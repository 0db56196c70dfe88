"""Parse a conductor's reply into a plan (a workflow); the reply has three Python lists, or JSON."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard, cast

from podium.harness.python_syntax import read_literal
from podium.harness.workflow import MAX_STEPS, Malformed, Reads, Step, Workflow, check

Layout = Literal["paper", "compact"]
"""Layout of a conductor's prompt. `paper`: sections as in figure 13 of arXiv 2512.04388, in our
words. `compact`: only the question and the list of workers, for small conductors trained from
scratch, which cannot follow instructions."""

Access = Literal["off", "binary", "fine"]
"""Which earlier steps of its plan a step may read. `off`: none; `binary`: none or all, as the main
model of arXiv 2512.04388; `fine`: any subset (appendix B.8 of that paper)."""
SOLVE = "Solve the question."  # subtask of a step that reads others, if the format has no subtasks
AnyPlan = Workflow | Malformed
NAMES = ("model_id", "subtasks", "access_list")
MAX_LIST = 20_000  # maximum characters of one list; the paper limits completions to 1,024 tokens
MAX_DEPTH = 2
MAX_DIGITS = 6
MAX_DRAFTS = 90  # maximum lists tried, the last ones of a text: bounds the work on hostile text
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
"""Matches one token of a Python list: a complete string, a comment, a bracket, or the opening quote
of an unclosed string."""
_PLAIN = re.compile(rf"(?:[\s,]|-?\d{{1,{MAX_DIGITS}}}(?!\d))*")
"""Matches the text allowed between a list's strings and brackets: spaces, commas, small
integers."""
_ESCAPE = re.compile(r"\\(.)", re.S)
_ESCAPED = "\\'\"n\n"
MAX_JSON = 3 * MAX_LIST  # maximum characters of one JSON object, which holds three lists
MAX_JSON_DEPTH = 4
STEP_KEYS = ("model_id", "subtask", "access_list")
NO_OBJECT = "there is no complete JSON object with the keys " + ", ".join(NAMES)
_JSON_OPENING = re.compile(r"(?=[\[{]\s{0,80}[\"{])")
_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}"]', re.S)


class _Refused(ValueError):
    """The error raised if a text is not a valid plan; the first argument is the reason."""


def workflow_of(
    values: Sequence[Sequence[object]], workers: Sequence[str], max_steps: int = MAX_STEPS
) -> AnyPlan:
    """Return a plan's three lists (workers, subtasks, access) as a workflow, or `Malformed`."""
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
        expected = '[], ["all"] or a list of indices'
        raise _Refused(f"{step}: access must be {expected}, not {entry!r:.40}")
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
    """Yield (match of its opening, source) for each complete outermost list or JSON object."""
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
    r"""Return the workflow in a conductor's text, or `Malformed` with the first error in its lists.

        model_id = [2, 0]
        subtasks = ["Look up the date.", "Compute the number of days."]
        access_list = [[], ["all"]]

    The lists must have this order (arXiv 2512.04388, section 3.1 and appendix E). Reasoning before
    them may contain drafts, so the last complete triple is used. Entry k of `access_list` lists the
    steps that step k may read: `[]` none, `"all"` or `["all"]` all earlier ones, `[0, 2]` these
    two. Only `\\`, `\"`, `\'` and `\n` are escapes; other backslashes stay, as LaTeX needs them.

    >>> parse_lists('model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='Solve it.', reads=(), system=None, sampling=None),))
    >>> parse_lists("I would ask model 1.", ["ada", "bo"]).reason
    'there is no complete list model_id = [...]'
    """
    try:
        sources = _last_triple(text.encode(errors="replace").decode())
        values = [_list_values(*pair) for pair in zip(NAMES, sources, strict=True)]
    except _Refused as refused:
        return Malformed(str(refused))
    return workflow_of(values, workers, max_steps)


def _last_triple(text: str) -> tuple[str, str, str]:
    """Return the source texts of a reply's last complete plan: three lists in the right order."""
    drafts = _drafts(text, _NAMED_LIST, _TOKEN, longest=MAX_LIST, depth=MAX_DEPTH)
    lists = [(match.group(1), source) for match, source in drafts]
    for start in range(len(lists) - 3, -1, -1):
        names, sources = zip(*lists[start : start + 3], strict=True)
        if names == NAMES:
            return cast("tuple[str, str, str]", sources)
    missing = [name for name in NAMES if name not in {name for name, _ in lists}]
    if missing:
        raise _Refused(f"there is no complete list {missing[0]} = [...]")
    raise _Refused("the three lists do not follow one another: " + ", ".join(NAMES))


def _list_values(name: str, source: str) -> list[object]:
    """Parse one list of a plan; raise `_Refused` unless it has only strings, integers, lists."""
    if not all(_PLAIN.fullmatch(gap) for gap in _TOKEN.split(source)):
        raise _Refused(f"{name} may hold only strings, small integers and lists")
    # All other backslashes are doubled, so that the parser keeps them.
    source = _ESCAPE.sub(
        lambda sign: sign.group() if sign.group(1) in _ESCAPED else "\\" + sign.group(), source
    )
    try:
        return cast("list[object]", read_literal(source))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _Refused(f"{name} is not a valid Python list") from None


def parse_json(text: str, workers: Sequence[str], max_steps: int = MAX_STEPS) -> AnyPlan:
    """Return the workflow in a conductor's JSON, or `Malformed` with the first error.

        {"model_id": [2, 0], "subtasks": ["Look up.", "Compute."], "access_list": [[], ["all"]]}
        [{"model_id": 2, "subtask": "Look up.", "access_list": []}, ...]  (or {"steps": [...]})

    Free text may surround the JSON; the last complete plan is used, other keys are ignored.

    >>> parse_json('{"model_id": [1], "subtasks": [""], "access_list": [[]]}', ["ada", "bo"])
    Workflow(steps=(Step(worker='bo', subtask='', reads=(), system=None, sampling=None),))
    """
    text = text.encode(errors="replace").decode()
    drafts = _drafts(text, _JSON_OPENING, _JSON_TOKEN, longest=MAX_JSON, depth=MAX_JSON_DEPTH)
    plans = [source for _, source in drafts if '"model_id"' in source or '"steps"' in source]
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
    keys = dict(pairs)
    if len(keys) < len(pairs):  # ambiguous: either value could be meant
        raise _Refused("a key of the JSON object stands in it twice")
    return keys


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
    rows = [_json_step(n, step) for n, step in enumerate(cast("list[object]", decoded), start=1)]
    return [list(column) for column in zip(*rows, strict=True)] or [[], [], []]


def _json_list(plan: Mapping[str, object], name: str) -> list[object]:
    if name not in plan:
        raise _Refused(f"the JSON object has no key {name}")
    entries = plan[name]
    if not isinstance(entries, list):
        raise _Refused(f"{name} must be a list")
    return [_utf8(value) for value in cast("list[object]", entries)]


def _json_step(number: int, step: object) -> tuple[object, object, object]:
    if not isinstance(step, dict):
        raise _Refused(f"step {number} must be a JSON object")
    fields = cast(Mapping[str, Any], step)
    missing = [key for key in STEP_KEYS if key not in fields]
    if missing:
        raise _Refused(f"step {number} has no key {missing[0]}")
    model, subtask, access = (fields[key] for key in STEP_KEYS)
    return model, _utf8(subtask), access


def _utf8(value: object) -> object:
    r"""Replace a text's lone surrogates (`\ud800` in JSON) by `?`, as UTF-8 cannot encode them."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


# --- plans in a given format --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keep:
    """A conductor's decision, in a later planning round, to keep its answer without a new plan."""


KEEP = Keep()


@dataclass(frozen=True, slots=True)
class PlanFormat:
    """The format of a conductor's plans: how it is prompted, and how its text becomes a plan."""

    layout: Layout = "paper"
    cards: bool = True  # whether models are described by role cards; the paper only numbers them
    examples: bool = True  # whether the prompt has four worked examples; `compact` has none
    reply: Literal["lists", "json"] = "lists"
    lenient: Literal[False] = False  # always False; kept because saved files have this field
    subtasks: bool = True  # False: each worker is asked to solve the question (Table 9)
    access: Access = "fine"
    card_words: int | None = None  # number of words shown of a role card; None: all
    words: int | None = None
    """Maximum number of words of the question in the conductor's prompt; None: all words. The limit
    is for conductors with a short context. Workers always see the whole question."""
    max_steps: int = MAX_STEPS
    worker: str = ""  # non-empty: this worker does every step (Table 10)


def read_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan:
    """Parse a conductor's text in the format `form`: a workflow, or `Malformed` with the reason."""
    reader = parse_json if form.reply == "json" else parse_lists
    plan = reader(text, workers, form.max_steps)
    return plan if isinstance(plan, Malformed) else restrict_plan(form, plan)


def read_later_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan | Keep:
    """Parse a later round's text: a workflow, `KEEP` (keep the earlier answer) or `Malformed`."""
    return plan_or_keep(read_plan(form, text, workers))


def plan_or_keep(plan: AnyPlan) -> AnyPlan | Keep:
    """Return `KEEP` (keep the earlier answer) if a plan was three empty lists, else the plan."""
    return KEEP if plan == Malformed(NOTHING_TO_DO) else plan


def restrict_plan(form: PlanFormat, plan: Workflow) -> AnyPlan:
    """Apply a plan format's rules to a plan: the steps that a step may read, subtasks, workers.

    Return `Malformed` if a step reads single earlier steps, but the format allows only none or all.
    """
    if form.access == "binary":
        steps = [n for n, step in enumerate(plan.steps, 1) if step.reads not in ("all", ())]
        if steps:
            return Malformed(f'step {steps[0]}: access must be [] or ["all"]')

    def allowed(step: Step) -> Step:
        reads = () if form.access == "off" else step.reads
        subtask = step.subtask if form.subtasks else SOLVE if reads else ""
        return replace(step, worker=form.worker or step.worker, subtask=subtask, reads=reads)

    return Workflow(tuple(map(allowed, plan.steps)))


def join_rounds(earlier: Workflow, later: Workflow) -> Workflow:
    """Join the plans of two rounds; "all" in the later plan includes the earlier plan's last step.

    >>> join_rounds(Workflow((Step("a"), Step("b"))), Workflow((Step("c", reads="all"),))).reads(2)
    (1,)
    """
    start = len(earlier.steps)

    def moved(index: int, step: Step) -> Step:
        reads = tuple(start + read for read in later.reads(index))
        return replace(step, reads=(start - 1, *reads) if step.reads == "all" else reads)

    return Workflow((*earlier.steps, *(moved(i, step) for i, step in enumerate(later.steps))))
