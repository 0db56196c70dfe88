"""Read a plan that is JSON, as conductors behind an API write it more surely than Python lists.

    {"model_id": [2, 0], "subtasks": ["Look it up.", "Compute."], "access_list": [[], ["all"]]}
    [{"model_id": 2, "subtask": "Look it up.", "access_list": []}, ...]      (also under "steps")

Free text may stand around it; the last one that is complete counts, and other keys are ignored.
Total, as parse.py is: size and depth are bounded before anything is decoded, by `json` alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from conductor.parse import MAX_DRAFTS, MAX_LIST, NAMES, workflow_of
from harness.workflow import MAX_STEPS, Malformed, Workflow

MAX_JSON = 3 * MAX_LIST
"""Characters of one object: it holds three lists."""
MAX_DEPTH = 4
STEP_KEYS = ("model_id", "subtask", "access_list")
NO_OBJECT = "there is no complete JSON object with the keys " + ", ".join(NAMES)

_OPENING = re.compile(r"[\[{](?=\s{0,80}[\"{])")
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}"]', re.S)
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
    values = _values(text.encode(errors="replace").decode())
    plans = [found for found in values if '"model_id"' in found or '"steps"' in found]
    if not plans:
        return Malformed(NO_OBJECT)
    try:
        decoded = json.loads(plans[-1], object_pairs_hook=_once, parse_constant=_no_constant)
        return workflow_of(_lists(decoded), workers, max_steps)
    except _Refused as refused:
        return Malformed(str(refused))
    except (ValueError, RecursionError):
        return Malformed("the plan is not valid JSON")


def _values(text: str) -> Iterator[str]:
    """Yield every closed object or list of objects, in order; those inside one are part of it."""
    end = 0
    for opening in list(_OPENING.finditer(text))[-MAX_DRAFTS:]:
        if opening.start() < end:
            continue
        closed = _closing(text, opening.start())
        if closed is not None:
            end = closed
            yield text[opening.start() : closed]


def _closing(text: str, start: int) -> int | None:
    """Return where the value that opens at `start` ends, None when it does not end in bounds."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + MAX_JSON):
        if token.group() in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return None
        elif token.group() in ("]", "}"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.group() == '"':
            return None
    return None


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys stand in it once: of two values neither is the plan's."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("a key of the JSON object stands in it twice")
    return found


def _no_constant(name: str) -> object:
    raise _Refused(f"{name} is no JSON")


def _lists(decoded: object) -> list[list[object]]:
    """Return the three lists, from either spelling."""
    if isinstance(decoded, dict):
        plan = cast(Mapping[str, object], decoded)
        if "steps" not in plan:
            return [_list(plan, name) for name in NAMES]
        decoded = plan["steps"]
    if not isinstance(decoded, list):
        raise _Refused("steps must be a list")
    rows = [_row(at, step) for at, step in enumerate(cast("list[object]", decoded), start=1)]
    return [list(column) for column in zip(*rows, strict=True)] or [[], [], []]


def _list(plan: Mapping[str, object], name: str) -> list[object]:
    found = plan.get(name)
    if name not in plan:
        raise _Refused(f"the JSON object has no key {name}")
    if not isinstance(found, list):
        raise _Refused(f"{name} must be a list")
    return [_utf8(value) for value in cast("list[object]", found)]


def _row(at: int, step: object) -> tuple[object, object, object]:
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
