"""How long an answer takes: the longest chain of its calls that waited for each other.

A call counts for as long as its worker says (rehearsal), or as it was measured to take (live).
Waiting for a free connection, tries that failed and this machine's own work are in none of it: they
belong to the day and the machine, not to the system, and stand apart.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import cast

from podium.harness.ledger.logs import CallEvent, Json, last_tries, shape_in, solver_seconds
from podium.harness.pool_config import REPLAYING
from podium.harness.prices import EMBEDDED
from podium.harness.records import CONDUCTOR, ORDER, WAVES
from podium.harness.workflow import workflow_of

STEP = re.compile(r"step (\d+)\b")
"""Beginning of a step's name, e.g. `step 2: sage` (harness/execute.py)."""
REHEARSAL, RECORDED = "rehearsal", "recorded"


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """Seconds of one answer; None where a part is unknown, as where replies were read back."""

    critical_path_s: float | None
    overhead_s: float | None
    """What its solver took beyond the same chain as measured: connections, tries, this machine."""


def answer_times(sample: Json, calls: Iterable[CallEvent], label: str) -> AnswerTimes:
    """Return what a sample's answer took, by the calls of its newest attempt."""
    wall = solver_seconds(sample)
    if wall is None:
        return AnswerTimes(None, None)
    solving = [call for call in last_tries(calls) if call.phase == "solve"]
    steps, shape = [_step_of(call) for call in solving], shape_in(sample)
    awaited = steps_awaited(steps, shape.get(ORDER) or shape.get("plan"), shape.get(WAVES))
    counted = [_seconds(call, label) for call in solving]
    measured = [call.working_s for call in solving]
    path = longest_chain(steps, counted, awaited)
    timed = path if counted == measured else longest_chain(steps, measured, awaited)
    return AnswerTimes(path, None if timed is None else max(wall - timed, 0.0))


def _step_of(call: CallEvent) -> int | None:
    return None if call.role == CONDUCTOR else step_number(call.step)


def step_number(name: str | None) -> int | None:
    """Return the step (1 for the first) that a call was made for; None for the conductor's."""
    found = STEP.match(name or "")
    return int(found.group(1)) if found else None


def _seconds(call: CallEvent, label: str) -> float | None:
    """Return what a call counts for; None where nobody said or measured it."""
    if call.stated_s is not None:
        return call.stated_s
    if label == REHEARSAL and call.model.startswith(EMBEDDED):
        return 0.0  # a conductor on this machine's processor: `conductor_s` has it
    # A worker of an older rehearsal did not say, and slept or not; what is replayed comes at once.
    if call.cache == "read" or call.model.startswith((f"{REHEARSAL}/", f"{REPLAYING}/")):
        return None
    return None if label == RECORDED else call.working_s


Steps = Sequence[int | None]
"""The step that each call was made for, calls in the order of their beginning."""
Awaited = Sequence[Collection[int]]
"""The steps that each step waited for, all counted from 1."""


def longest_chain(
    steps: Steps, seconds: Sequence[float | None], awaited: Awaited | None
) -> float | None:
    """Return the seconds of the longest chain of calls that waited for each other."""
    if awaited is None or not steps:
        return None
    now, ends = 0.0, dict[int, float]()
    for step, took in zip(steps, seconds, strict=True):
        if took is None:
            return None
        if step is None:
            now = max((now, *ends.values())) + took
            continue
        before = awaited[step - 1] if 0 < step <= len(awaited) else ends
        ends[step] = max(now, ends.get(step, 0.0), *[ends.get(one, 0.0) for one in before]) + took
    return max((now, *ends.values()))


def steps_awaited(steps: Steps, plan: str | None, waves: object = None) -> Awaited | None:
    """Return what each step waited for: those it reads and all earlier `waves`."""
    if len({step for step in steps if step is not None}) < 2:
        return []
    known = _reads(plan)
    if known is None:
        return None
    reads = list(known)
    sizes = cast(list[object], waves) if isinstance(waves, list) else []
    whole = [size for size in sizes if isinstance(size, int) and size > 0]
    begins = list(accumulate(whole, initial=0))
    if begins[-1] == len(reads):
        for begin, size in zip(begins, whole, strict=False):
            reads[begin : begin + size] = [range(1, begin + 1)] * size
    return reads


@lru_cache(maxsize=1024)  # many a system has one plan for all questions
def _reads(plan: str | None) -> Awaited | None:
    workflow = workflow_of(plan)
    if workflow is None:
        return None
    return [tuple(one + 1 for one in workflow.reads(at)) for at in range(len(workflow.steps))]
