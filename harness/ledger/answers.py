"""An answer in a log: its verdict, the verdict's reason, and the workflow that produced it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from podium.harness.context_length import TOO_LONG
from podium.harness.ledger.critical_path import answer_times
from podium.harness.ledger.logs import (
    NOTHING,
    CallEvent,
    Json,
    score_in,
    shape_in,
    solver_seconds,
    verdict,
)
from podium.harness.records import PODIUM
from podium.harness.suite import publishable, redacted_message
from podium.harness.workflow import workflow_of

SECRET = "withheld"
"""Shown in place of a text of a suite whose questions may not be published."""


def without_texts(plan: str) -> str:
    """Return a plan without its subtasks, which may quote a question; `withheld` if unreadable."""
    workflow = workflow_of(plan)
    return workflow.without_texts().as_json() if workflow else SECRET


Verdict = Literal["right", "wrong", "partly", "unscored"]
"""A grade in words. `partly`: between 0 and 1, if a suite's card (description) allows it.
`unscored`: the answer could not be graded."""
UNREAD = "no answer could be read in the reply"
REFUSED = "the request is longer than its worker's context"
NO_SCORE = "no score in the log"


@dataclass(frozen=True, slots=True)
class LogHeader:
    """The suite, system and label of a log's answers; `shown`: whether texts may be published."""

    task: str
    suite: str
    system: str
    label: str
    shown: bool
    purpose: str = "eval"


def log_header(header: Json) -> LogHeader:
    """Return the suite, system, label and purpose that a log's header states."""
    metadata: Json = header["eval"].get("metadata") or NOTHING
    facts: Json = metadata.get(PODIUM) or NOTHING
    names = [str(facts.get(name, "")) for name in ("suite", "system", "label")]
    task, purpose = str(header["eval"].get("task", "")), str(facts.get("purpose") or "eval")
    return LogHeader(task, *names, shown=publishable(metadata), purpose=purpose)


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """A log's record of the answer to one (question, epoch) pair; fields as in `QueryRow`."""

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
    critical_path_s: float | None
    too_long: bool = False

    @property
    def verdict(self) -> Verdict:
        """The score as a word: 1 `right`, 0 `wrong`, in between `partly`, None `unscored`."""
        if self.score is None:
            return "unscored"
        return "right" if self.score >= 1 else "wrong" if self.score <= 0 else "partly"


def answered(sample: Json, header: LogHeader, calls: Sequence[CallEvent]) -> AnswerRecord:
    """Return the record of a sample's answer, given the calls of the sample's newest attempt."""
    visible, score, shape = header.shown, score_in(sample), shape_in(sample)
    plan: str | None = shape.get("plan")
    digest = hashlib.sha256((plan or "").encode("utf-8", "replace")).hexdigest()
    return AnswerRecord(
        header=header,
        question=str(sample["id"]),
        epoch=int(sample["epoch"]),
        sample=str(sample.get("uuid") or ""),
        score=verdict(sample),
        reason=_reason(sample, score, visible),
        parsed=bool((score.get("metadata") or NOTHING).get("parsed", True)),
        answer=_text(score.get("answer"), visible),
        target=_text(sample.get("target"), visible),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        plan=plan if plan is None else _whole(plan) if visible else without_texts(plan),
        plan_sha256=None if plan is None else digest,
        latency_s=solver_seconds(sample),
        critical_path_s=answer_times(sample, calls, header.label).critical_path_s,
        too_long=_is_too_long(score),
    )


def _text(value: object, visible: bool) -> str | None:
    if value is None or value == "":
        return None
    several = " | ".join(map(str, cast(list[object], value))) if isinstance(value, list) else value
    return _whole(str(several)) if visible else SECRET


def _whole(text: str) -> str:
    """Return a text without lone surrogates, which models may write but UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _reason(sample: Json, score: Json, visible: bool) -> str:
    if verdict(sample) is None:
        reason = why_unscored(sample)
        return reason if reason == NO_SCORE else redacted_message(reason, visible)
    if visible and score.get("explanation"):
        return _whole(str(score["explanation"]))
    if (score.get("metadata") or NOTHING).get("parsed", True):
        return ""
    return REFUSED if _is_too_long(score) else UNREAD


def _is_too_long(score: Json) -> bool:
    return bool((score.get("metadata") or NOTHING).get(TOO_LONG))


def why_unscored(sample: Json) -> str:
    """Return why a sample has no grade; pass it to `redacted_message` before showing it."""
    if sample.get("error"):
        return str(sample["error"].get("message", ""))
    score = score_in(sample)
    return str(score.get("explanation") or score.get("reason") or "unscored") if score else NO_SCORE
