"""What a log says of one question beside its calls: verdict and why, plan, times.

Read from samples as `RawLog` yields them. Of exams whose questions may not be published, texts are
withheld here, at the source, so that no view of the ledger can show them; digests stay.
"""

import hashlib
from dataclasses import dataclass
from math import isnan
from typing import Literal, cast

from harness.ledger.events import solver_seconds
from harness.ledger.plans import SECRET, without_texts
from harness.ledger.raw_log import Json
from harness.private import publishable, said
from harness.records import PODIUM

Verdict = Literal["right", "wrong", "partly", "unscored"]
"""`partly`: between 0 and 1, where a suite's card says so. `unscored`: nobody could grade it."""

UNREAD = "no answer could be read in the reply"


@dataclass(frozen=True, slots=True)
class Exam:
    """Whose answers a log holds."""

    task: str
    suite: str
    system: str
    label: str
    shown: bool
    """False where texts are withheld."""
    purpose: str = "eval"
    """`eval`, or `selection` where a system was chosen by how it did."""
    book: str = ""
    """Name and sha256 of the price book, as `name sha256:...`."""


def exam_of(header: Json) -> Exam:
    """Return what a log's header says of its exam."""
    metadata: Json = header["eval"].get("metadata") or {}
    facts: Json = metadata.get(PODIUM) or {}
    prices: Json = facts.get("prices") or {}
    return Exam(
        task=str(header["eval"].get("task", "")),
        suite=str(facts.get("suite", "")),
        system=str(facts.get("system", "")),
        label=str(facts.get("label", "")),
        shown=publishable(metadata),
        purpose=str(facts.get("purpose") or "eval"),
        book=book_name(prices.get("name"), prices.get("sha256")),
    )


def book_name(name: object, sha256: object) -> str:
    """Return how a price book is named where its digest matters; empty where there is none."""
    return f"{name} sha256:{sha256}" if name and sha256 else ""


@dataclass(frozen=True, slots=True)
class Answered:
    """One (question, epoch) pair as one log has it."""

    exam: Exam
    question: str
    epoch: int
    sample: str
    score: float | None
    """None when unscored."""
    reason: str
    """Why it is unscored, or what the grade says of itself."""
    parsed: bool
    answer: str | None
    """What was found in the reply; None when nothing was, `withheld` where it may not be shown."""
    target: str | None
    steps: int | None
    depth: int | None
    stopped: str | None
    plan: str | None
    """The workflow as JSON, or why it was malformed; without its texts where they are withheld."""
    plan_sha256: str | None
    """Of the plan's text, also where the text is withheld."""
    latency_s: float | None
    """Wall time of the solver."""

    @property
    def verdict(self) -> Verdict:
        """What the score says."""
        if self.score is None:
            return "unscored"
        return "right" if self.score >= 1 else "wrong" if self.score <= 0 else "partly"


def answered(sample: Json, exam: Exam) -> Answered:
    """Read one sample."""
    shown = exam.shown
    scores: Json = sample.get("scores") or {}
    score: Json | None = scores.get(PODIUM)
    value = None if sample.get("error") or score is None else _number(score.get("value"))
    metadata: Json = sample.get("metadata") or {}
    shape: Json = metadata.get(PODIUM) or {}
    plan: str | None = shape.get("plan")
    graded: Json = score or {}
    found: Json = graded.get("metadata") or {}
    return Answered(
        exam=exam,
        question=str(sample["id"]),
        epoch=int(sample["epoch"]),
        sample=str(sample.get("uuid") or ""),
        score=value,
        reason=_reason(sample, score, value, shown),
        parsed=bool(found.get("parsed", True)),
        answer=_text(graded.get("answer"), shown),
        target=_text(sample.get("target"), shown),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        plan=plan if plan is None else _whole(plan) if shown else without_texts(plan),
        plan_sha256=None
        if plan is None
        else hashlib.sha256(plan.encode("utf-8", "replace")).hexdigest(),
        latency_s=solver_seconds(sample),
    )


def _number(value: object) -> float | None:
    """Return a score's number; Inspect writes "unscored" as not-a-number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
        return None
    return float(value)


def _text(value: object, shown: bool) -> str | None:
    if value is None or value == "":
        return None
    several = " | ".join(map(str, cast(list[object], value))) if isinstance(value, list) else value
    return _whole(str(several)) if shown else SECRET


def _whole(text: str) -> str:
    """Return a text that UTF-8 can hold: a model may write half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _reason(sample: Json, score: Json | None, value: float | None, shown: bool) -> str:
    if value is not None:
        if shown and score and score.get("explanation"):
            return _whole(str(score["explanation"]))
        found: Json = (score or {}).get("metadata") or {}
        return "" if found.get("parsed", True) else UNREAD
    if sample.get("error"):
        return said(str(sample["error"].get("message", "")), shown)
    if score is None:
        return "no score in the log"
    return said(str(score.get("explanation") or score.get("reason") or "unscored"), shown)
