"""A reader that forgives small faults of form in a plan, and says which.

Form only, never meaning: a number is never shifted, a subtask's end is never guessed, lists of
different lengths and texts that break off stay malformed. Used where a form says `lenient`; the
paper's numbers, and training, are strict. Total, as parse.py is, and it evaluates nothing at all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from conductor.json_form import parse_json
from conductor.loose_values import Value, loose_value
from conductor.parse import MAX_DRAFTS, NAMES, parse, workflow_of
from harness.workflow import MAX_STEPS, Malformed, Workflow

OTHER_FORM = "the plan was written in the other form (lists for JSON, or JSON for lists)"
ORDER = "the three lists stood in another order"
NAME = "a list was named in another spelling"
SCALAR = "the one entry of a list stood without its brackets"
ID_TEXT = "the number of a model was written as text"
STEP_TEXT = "the number of a step was written as text, or without its brackets"
NOTHING = "None, or an empty text, was read as an empty access list"
CASE = "all was written in capitals"
NO_ACCESS = "an access list was missing; with a single step there is nothing to read"

Read = tuple[Workflow | Malformed, tuple[str, ...]]
"""A plan, and what was forgiven."""

_NAMED = re.compile(
    r"(?<![\w.])[\"'`*]{0,3}(model_ids?|subtasks?|access_lists?)[\"'`*]{0,3}\s{0,9}[:=]\s{0,9}",
    re.IGNORECASE | re.ASCII,
)
_MODEL = re.compile(r"(?:model)?[\s#]{0,3}(\d{1,6})", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)


def parse_leniently(
    text: str, workers: Sequence[str], max_steps: int = MAX_STEPS, reply: str = "lists"
) -> Read:
    """Return the plan in a text and what was forgiven; what is strictly right needs nothing.

    Where nothing helps, the reason is the strict reader's.
    """
    readers = (parse, parse_json) if reply == "lists" else (parse_json, parse)
    strict = readers[0](text, workers, max_steps)
    if isinstance(strict, Workflow):
        return strict, ()
    other = readers[1](text, workers, max_steps)
    if isinstance(other, Workflow):
        return other, (OTHER_FORM,)
    found = _loosely(text.encode(errors="replace").decode())
    if found is None:
        return strict, ()
    plan = workflow_of(found.lists, workers, max_steps)
    emptied = isinstance(plan, Malformed) and not any(found.lists)
    return (plan, tuple(found.forgave)) if isinstance(plan, Workflow) or emptied else (strict, ())


@dataclass(slots=True)
class _Found:
    """Three lists as they were meant, and what was forgiven on the way, each once."""

    lists: list[list[object]] = field(default_factory=list[list[object]])
    forgave: dict[str, None] = field(default_factory=dict[str, None])

    def forgive(self, *said: str) -> None:
        self.forgave.update(dict.fromkeys(said))


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    """As it is called in the strict form."""
    as_is: bool
    """Whether it was called so."""
    value: Value | None
    """None where it cannot be read."""


def _loosely(text: str) -> _Found | None:
    """Return the lists that stand together at the end, in any order; None where they do not.

    Never an earlier draft: which one was meant would be a guess.
    """
    named = list(_named_values(text))
    last = {one.name: one for one in named[-3:]}
    if len(last) < len(NAMES) and not any(one.name == NAMES[2] for one in named[-3:]):
        last = {one.name: one for one in named[-2:]}
    if not {*NAMES[:2]} <= {*last} or any(one.value is None for one in last.values()):
        return None
    return _meant(last, len(named) > len(last))


def _named_values(text: str) -> Iterator[_Named]:
    """Yield every value that has one of the names; names inside a value are part of it."""
    end = 0
    for found in list(_NAMED.finditer(text))[-MAX_DRAFTS:]:
        if found.start() < end:
            continue
        value = loose_value(text, found.end())
        end = value.end if value else end
        stem = found.group(1).lower().removesuffix("s")
        name = next(one for one in NAMES if one.removesuffix("s") == stem)
        as_is = re.fullmatch(rf"{name}\s*=\s*", found.group()) is not None
        yield _Named(name, as_is, value)


def _meant(window: dict[str, _Named], drafts: bool) -> _Found | None:
    """Return what these lists mean; after drafts nobody can tell which ones belong together."""
    found = _Found()
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


def _entries(name: str, window: dict[str, _Named], found: _Found) -> list[object] | None:
    """Return the entries of one list; a scalar is a list of one, where no other plan is near."""
    one = window.get(name)
    content = one.value.content if one and one.value else None
    if name == "access_list" and content in (None, []):
        return _nothing_to_read(found)
    if not isinstance(content, list):
        found.forgive(SCALAR)
        content = [content]
    entries = cast("list[object]", content)
    mend = {"model_id": _model, "access_list": _access}.get(name)
    return [mend(entry, found) for entry in entries] if mend else entries


def _nothing_to_read(found: _Found) -> list[object] | None:
    steps = len(found.lists[0])
    if steps == 1:
        found.forgive(NO_ACCESS)
        return [[]]
    return [] if steps == 0 else None


def _model(entry: object, found: _Found) -> object:
    """Return the number in `"Model 2"`, `"#2"` or `"2"`; anything else stays as it is."""
    number = _MODEL.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if number is None:
        return entry
    found.forgive(ID_TEXT)
    return int(number.group(1))


def _access(entry: object, found: _Found) -> object:
    if entry is None or (isinstance(entry, str) and entry.strip().lower() in ("", "none")):
        found.forgive(NOTHING)
        return []
    if isinstance(entry, list):
        return [_step(one, found) for one in cast("list[object]", entry)]
    single = _step(entry, found)
    if isinstance(single, int):
        found.forgive(STEP_TEXT)
        return [single]
    return single


def _step(entry: object, found: _Found) -> object:
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
