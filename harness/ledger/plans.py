"""A logged plan read again: its steps, what they read, and how long the longest chain took."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from harness.ledger.row import LedgerRow
from harness.records import CONDUCTOR
from harness.workflow import MALFORMED, Step, Workflow

SECRET = "withheld"
"""Stands for a text of an exam whose questions may not be published."""
STEP = re.compile(r"step (\d+)\b")
"""Beginning of a step's name, e.g. `step 2: sage` (harness/execute.py)."""
PLANNING = f"{CONDUCTOR}: plan"
"""Begins the name of every call that asks a model for a plan; what merely routes has another."""

OTHER_FAULT = "another fault"
FAULTS = {
    "no complete plan": r"there is no complete |the three lists do not |the JSON object has no key "
    r"|(steps|\w+) must be a list|step \d+ (must be a JSON object|has no key )",
    "lists that cannot be read": r"\w+ may hold only strings|\w+ is not a valid Python list"
    r"|the plan is not valid JSON|a key of the JSON object stands |\S+ is no JSON",
    "lists of different lengths": r"the three lists have different lengths",
    "no step": r"three empty lists |a workflow needs at least one step",
    "too many steps": r"\d+ steps, at most ",
    "worker number out of range": r"step \d+: (there is no Model |unknown worker )",
    "a worker that is no number": r"step \d+: model_id must be an integer",
    "a subtask that is no text": r"step \d+: the subtask ",
    "access to a step that has not run": r"step \d+ (may read earlier steps |reads step \d+, )",
    "access that cannot be read": r"step \d+: access |step \d+ reads the same step twice",
}
"""Classes of what is wrong with plans, with how the reasons begin (conductor/parse.py, json_form.py
and reading.py, harness/workflow.py). A reason may quote a model, thus a question; a class never."""


def workflow_of(plan: str | None) -> Workflow | None:
    """Return the workflow that a log keeps; None for a malformed plan, or one that is withheld."""
    try:
        found: object = json.loads(plan or "")
        steps = [_step(cast(dict[str, Any], one)) for one in cast(list[object], found)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Workflow(tuple(steps)) if steps else None


def fault_of(plan: str | None) -> str | None:
    """Return the class of what is wrong with a malformed plan; None for any other text.

    >>> fault_of("malformed: step 2: there is no Model 3, only 0 to 1")
    'worker number out of range'
    """
    if plan is None or not plan.startswith(MALFORMED):
        return None
    reason = plan.removeprefix(MALFORMED)
    named = (name for name, begins in FAULTS.items() if name == reason or re.match(begins, reason))
    return next(named, OTHER_FAULT)


def _step(found: dict[str, Any]) -> Step:
    reads = found["reads"]
    return Step(
        worker=str(found["worker"]),
        subtask=str(found.get("subtask") or ""),
        reads="all" if reads == "all" else tuple(int(read) for read in reads),
        system=found.get("system"),
    )


def step_number(row: LedgerRow) -> int | None:
    """Return the step (1 for the first) that a call was made for; None for the conductor's."""
    found = STEP.match(row.step or "")
    return int(found.group(1)) if found else None


def without_texts(plan: str) -> str:
    """Return a plan as it may be shown where its texts may quote a question: workers and reads."""
    workflow = workflow_of(plan)
    if workflow is None:
        return SECRET
    bare = (Step(step.worker, "", step.reads) for step in workflow.steps)
    return Workflow(tuple(bare)).as_json()


def critical_path(rows: Sequence[LedgerRow], plan: str | None) -> float | None:
    """Return the seconds of the longest chain of calls that waited for each other.

    The conductor's calls come before all steps, one after another. Time between HTTP attempts is in
    it; waiting for a free connection before the first one is not. None when a latency is unknown,
    or when calls of several steps cannot be put in order because there is no plan.
    """
    spans: dict[object, list[LedgerRow]] = {}
    for row in rows:
        key = row.step if row.role == CONDUCTOR else step_number(row) or row.step
        spans.setdefault(key, []).append(row)
    times = {key: _span_seconds(found) for key, found in spans.items()}
    known = {key: time for key, time in times.items() if time is not None}
    if len(known) < len(times) or not times:
        return None
    planned = {key: time for key, time in known.items() if isinstance(key, int)}
    before = sum(time for key, time in known.items() if not isinstance(key, int))
    if len(planned) < 2:
        return before + sum(planned.values())
    workflow = workflow_of(plan)
    return None if workflow is None else before + _longest(planned, workflow)


def _longest(times: dict[int, float], workflow: Workflow) -> float:
    ends: dict[int, float] = {}
    for index in range(len(workflow.steps)):
        begin = max((ends.get(read, 0.0) for read in workflow.reads(index)), default=0.0)
        ends[index] = begin + times.get(index + 1, 0.0)
    return max(ends.values())


def _span_seconds(rows: Sequence[LedgerRow]) -> float | None:
    """Return the time from the first attempt's beginning to the last one's end; None if unknown."""
    if len(rows) == 1 or rows[-1].latency_s is None:
        return rows[-1].latency_s
    begun = [datetime.fromisoformat(row.started) for row in rows]
    ended = [
        (one - begun[0]).total_seconds() + row.latency_s
        for one, row in zip(begun, rows, strict=True)
        if row.latency_s is not None
    ]
    first = min((one - begun[0]).total_seconds() for one in begun)
    return max(ended) - first
