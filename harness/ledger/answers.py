"""What a log says of each answer: its verdict and why, its plan, and its vote.

Texts of suites whose questions may not be published are withheld here, at the source, so that no
view of the ledger can show them; digests stay.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal, cast

from harness.ledger.call import Call
from harness.ledger.logs import (
    NOTHING,
    Json,
    score_in,
    seconds_between,
    shape_in,
    solver_seconds,
    verdict,
)
from harness.records import CONDUCTOR, PODIUM
from harness.suite import publishable, redacted_message
from harness.workflow import MALFORMED, Step, Workflow

SECRET = "withheld"
"""Stands for a text of a suite whose questions may not be published."""
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
        steps = [
            Step(
                str(one["worker"]),
                str(one.get("subtask") or ""),
                "all" if one["reads"] == "all" else tuple(int(read) for read in one["reads"]),
                one.get("system"),
            )
            for one in cast(list[dict[str, Any]], json.loads(plan or ""))
        ]
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


def step_number(row: Call) -> int | None:
    """Return the step (1 for the first) that a call was made for; None for the conductor's."""
    found = STEP.match(row.step or "")
    return int(found.group(1)) if found else None


def _without_texts(plan: str) -> str:
    workflow = workflow_of(plan)
    if workflow is None:
        return SECRET
    bare = (Step(step.worker, "", step.reads) for step in workflow.steps)
    return Workflow(tuple(bare)).as_json()


def critical_path(rows: Sequence[Call], plan: str | None) -> float | None:
    """Return the seconds of the longest chain of calls that waited for each other."""
    # The conductor's calls come before all steps, one after another. Time between HTTP attempts is
    # in it; waiting for a free connection before the first one is not. None when a latency is
    # unknown, or when calls of several steps cannot be put in order because there is no plan.
    spans: dict[object, list[Call]] = {}
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
    if workflow is None:
        return None
    ends: dict[int, float] = {}
    for index in range(len(workflow.steps)):
        begin = max((ends.get(read, 0.0) for read in workflow.reads(index)), default=0.0)
        ends[index] = begin + planned.get(index + 1, 0.0)
    return before + max(ends.values())


def _span_seconds(rows: Sequence[Call]) -> float | None:
    if len(rows) == 1 or rows[-1].latency_s is None:
        return rows[-1].latency_s
    begun = [seconds_between(rows[0].started, row.started) for row in rows]
    ended = [
        one + row.latency_s
        for one, row in zip(begun, rows, strict=True)
        if row.latency_s is not None
    ]
    return max(ended) - min(begun)


DIGITS = 16


def answer_key(metadata: Mapping[str, Any], answer: object) -> str | None:
    """Return a digest of what a grader found in a reply; None when it found nothing."""
    # A letter stands for another option in another epoch, so options are counted by their place in
    # the alphabet (the `permutation` in a sample's metadata). None where that cannot be had, as in
    # a log without texts.
    if answer is None or answer == "":
        return None
    said = str(answer).rstrip()
    places = _permutation(metadata)
    if places is not None:
        at = ascii_uppercase.find(said) if len(said) == 1 else -1
        if not 0 <= at < len(places):
            return None
        said = f"option {places[at]}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def _permutation(metadata: Mapping[str, Any]) -> list[int] | None:
    for key in ("asked", "question"):  # a later epoch's own order comes first
        facts: object = metadata.get(key)
        if isinstance(facts, Mapping) and "permutation" in facts:
            return list(cast(Mapping[str, Any], facts)["permutation"])
    return None


Verdict = Literal["right", "wrong", "partly", "unscored"]
"""`partly`: between 0 and 1, where a suite's card says so. `unscored`: nobody could grade it."""

UNREAD = "no answer could be read in the reply"
NO_SCORE = "no score in the log"


@dataclass(frozen=True, slots=True)
class LogHeader:
    """Whose answers a log holds."""

    task: str
    suite: str
    system: str
    label: str
    shown: bool
    purpose: str = "eval"


def log_header(header: Json) -> LogHeader:
    """Return what a log's header says of its suite."""
    metadata: Json = header["eval"].get("metadata") or NOTHING
    facts: Json = metadata.get(PODIUM) or NOTHING
    suite, system, label = (str(facts.get(name, "")) for name in ("suite", "system", "label"))
    purpose = str(facts.get("purpose") or "eval")
    task = str(header["eval"].get("task", ""))
    return LogHeader(task, suite, system, label, publishable(metadata), purpose)


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One (question, epoch) pair as one log has it; fields as in `QueryRow`."""

    header: LogHeader
    question: str
    epoch: int
    sample: str
    score: float | None
    reason: str
    parsed: bool
    answer: str | None
    target: str | None
    steps: int | None
    depth: int | None
    stopped: str | None
    plan: str | None
    plan_sha256: str | None
    latency_s: float | None

    @property
    def verdict(self) -> Verdict:
        """What the score says."""
        if self.score is None:
            return "unscored"
        return "right" if self.score >= 1 else "wrong" if self.score <= 0 else "partly"


def answered(sample: Json, header: LogHeader) -> AnswerRecord:
    """Read one sample."""
    shown, score, shape = header.shown, score_in(sample), shape_in(sample)
    plan: str | None = shape.get("plan")
    digest = hashlib.sha256((plan or "").encode("utf-8", "replace")).hexdigest()
    return AnswerRecord(
        header=header,
        question=str(sample["id"]),
        epoch=int(sample["epoch"]),
        sample=str(sample.get("uuid") or ""),
        score=verdict(sample),
        reason=_reason(sample, score, shown),
        parsed=bool((score.get("metadata") or NOTHING).get("parsed", True)),
        answer=_text(score.get("answer"), shown),
        target=_text(sample.get("target"), shown),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        plan=plan if plan is None else _whole(plan) if shown else _without_texts(plan),
        plan_sha256=None if plan is None else digest,
        latency_s=solver_seconds(sample),
    )


def _text(value: object, shown: bool) -> str | None:
    if value is None or value == "":
        return None
    several = " | ".join(map(str, cast(list[object], value))) if isinstance(value, list) else value
    return _whole(str(several)) if shown else SECRET


def _whole(text: str) -> str:
    """Return a text that UTF-8 can hold: a model may write half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _reason(sample: Json, score: Json, shown: bool) -> str:
    if verdict(sample) is None:
        said = why_unscored(sample)
        return said if said == NO_SCORE else redacted_message(said, shown)
    if shown and score.get("explanation"):
        return _whole(str(score["explanation"]))
    return "" if (score.get("metadata") or NOTHING).get("parsed", True) else UNREAD


def why_unscored(sample: Json) -> str:
    """Return why nobody graded a sample; `redacted_message` before showing."""
    if sample.get("error"):
        return str(sample["error"].get("message", ""))
    score = score_in(sample)
    return str(score.get("explanation") or score.get("reason") or "unscored") if score else NO_SCORE
