"""The duration of an answer: the longest chain of its calls that waited for each other.

A call counts with the seconds that its worker states (rehearsal), or as measured (live). Waiting
for a connection, failed attempts and local computation are excluded: they depend on the day
and the machine, not on the system, and are reported separately.
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
"""Pattern of the beginning of a workflow step's name, e.g. `step 2: sage` (harness/execute.py)."""
REHEARSAL, RECORDED = "rehearsal", "recorded"


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """Durations of one answer; None if a part is unknown, e.g. because a reply was stored."""

    critical_path_s: float | None
    overhead_s: float | None
    """Solver seconds beyond the measured chain: connection waits, failed attempts, local work."""


def answer_times(sample: Json, calls: Iterable[CallEvent], label: str) -> AnswerTimes:
    """Return the durations of a sample's answer, from the calls of its newest attempt."""
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
    """Return the number (from 1) in a workflow step's name; None without one."""
    match = STEP.match(name or "")
    return int(match.group(1)) if match else None


def _seconds(call: CallEvent, label: str) -> float | None:
    """Return a call's seconds on the critical path; None if neither stated nor measured."""
    if call.stated_s is not None:
        return call.stated_s
    if label == REHEARSAL and call.model.startswith(EMBEDDED):
        return 0.0  # an embedded conductor: `conductor_s` has its seconds
    # Workers of older rehearsals stated no seconds, and may have slept; replays come at once.
    if call.cache == "read" or call.model.startswith((f"{REHEARSAL}/", f"{REPLAYING}/")):
        return None
    return None if label == RECORDED else call.working_s


Steps = Sequence[int | None]
"""Step number of each call, in order of start; None for calls outside steps (the conductor's)."""
Awaited = Sequence[Collection[int]]
"""For each step, the numbers (from 1) of the steps that it waited for."""


def longest_chain(
    steps: Steps, seconds: Sequence[float | None], awaited: Awaited | None
) -> float | None:
    """Return the longest chain of calls that waited for each other, in seconds; None: unknown."""
    if awaited is None or not steps:
        return None
    now, ends = 0.0, dict[int, float]()
    for step, took in zip(steps, seconds, strict=True):
        if took is None:
            return None
        if step is None:
            now = max((now, *ends.values())) + took
            continue
        earlier = awaited[step - 1] if 0 < step <= len(awaited) else ends
        awaited_ends = [ends.get(number, 0.0) for number in earlier]
        ends[step] = max(now, ends.get(step, 0.0), *awaited_ends) + took
    return max((now, *ends.values()))


def steps_awaited(steps: Steps, plan: str | None, waves: object = None) -> Awaited | None:
    """Return the steps that each step waited for; None if the plan cannot be read.

    A step waits for the steps whose results it reads. If steps started in groups (`waves`: their
    sizes), a step waits for all steps of earlier groups.
    """
    if len({step for step in steps if step is not None}) < 2:
        return []
    plan_reads = _reads(plan)
    if plan_reads is None:
        return None
    reads = list(plan_reads)
    sizes = cast(list[object], waves) if isinstance(waves, list) else []
    wave_sizes = [size for size in sizes if isinstance(size, int) and size > 0]
    begins = list(accumulate(wave_sizes, initial=0))
    if begins[-1] == len(reads):
        for begin, size in zip(begins, wave_sizes, strict=False):
            reads[begin : begin + size] = [range(1, begin + 1)] * size
    return reads


@lru_cache(maxsize=1024)  # many systems have one plan for all questions
def _reads(plan: str | None) -> Awaited | None:
    workflow = workflow_of(plan)
    if workflow is None:
        return None
    return [tuple(read + 1 for read in workflow.reads(step)) for step in range(len(workflow.steps))]
