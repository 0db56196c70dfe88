"""How long an answer takes: the longest chain of its calls that waited for each other.

A call counts for as long as its worker says (rehearsal), or as it was measured to take (live).
Waiting for a free connection, tries that failed and this machine's own work are in none of it: they
belong to the day and the machine, not to the system, and stand apart.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from harness.ledger.logs import CallEvent, Json, last_tries, shape_in, solver_seconds
from harness.prices import EMBEDDED
from harness.records import CONDUCTOR, ORDER, WAVES
from harness.workflow import workflow_of

STEP = re.compile(r"step (\d+)\b")
"""Beginning of a step's name, e.g. `step 2: sage` (harness/execute.py)."""
REHEARSAL = "rehearsal"


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
    shape = shape_in(sample)
    order = shape.get(ORDER) or shape.get("plan"), shape.get(WAVES)
    path = longest_chain([(_step_of(one), _seconds(one, label)) for one in solving], *order)
    timed = longest_chain([(_step_of(one), one.working_s) for one in solving], *order)
    return AnswerTimes(path, None if timed is None else max(wall - timed, 0.0))


def _step_of(call: CallEvent) -> int | None:
    """Return the step (1 for the first) that a call was made for; None for the conductor's."""
    found = None if call.role == CONDUCTOR else STEP.match(call.step or "")
    return int(found.group(1)) if found else None


def _seconds(call: CallEvent, label: str) -> float | None:
    """Return what a call counts for; None where nobody said or measured it."""
    if call.stated_s is not None:
        return call.stated_s
    if label == REHEARSAL and call.model.startswith(EMBEDDED):
        return 0.0  # a conductor on this machine's processor: `conductor_s` has it
    older = call.model.startswith(f"{REHEARSAL}/")  # its worker did not say: it slept, or not
    return None if older or call.cache == "read" else call.working_s


Timed = tuple[int | None, float | None]
"""The step that a call was made for, None outside of steps; and its seconds."""


def longest_chain(calls: Sequence[Timed], plan: str | None, waves: object = None) -> float | None:
    """Return the seconds of the longest chain of calls, which come in the order of their beginning.

    A step waits for those it reads, and for all earlier `waves`. A call outside of steps, as the
    conductor's, waits for all before it, and all after it wait for it. None when a latency is
    unknown, or where there is no plan to say what several steps waited for.
    """
    known = [(step, seconds) for step, seconds in calls if seconds is not None]
    several = len({step for step, _ in known if step is not None}) > 1
    reads = _reads(plan, waves) if several else []
    if len(known) < len(calls) or not known or reads is None:
        return None
    now, ends = 0.0, dict[int, float]()
    for step, seconds in known:
        if step is None:
            now = max((now, *ends.values())) + seconds
            continue
        awaited = reads[step - 1] if 0 < step <= len(reads) else ends
        begin = max((ends[one] for one in awaited if one in ends), default=0.0)
        ends[step] = max(now, begin, ends.get(step, 0.0)) + seconds
    return max((now, *ends.values()))


def _reads(plan: str | None, waves: object) -> list[set[int]] | None:
    """Return the steps that each step waited for, all from 1; None without a plan."""
    workflow = workflow_of(plan)
    if workflow is None:
        return None
    count = len(workflow.steps)
    reads = [{one + 1 for one in workflow.reads(at)} for at in range(count)]
    sizes = cast(list[object], waves) if isinstance(waves, list) else []
    whole = [size for size in sizes if isinstance(size, int) and size > 0]
    begins = list(accumulate(whole, initial=0))
    if begins[-1] == count:
        for begin, size in zip(begins, whole, strict=False):
            for at in range(begin, begin + size):
                reads[at] |= set(range(1, begin + 1))
    return reads
