"""What a log says of its samples and of their model calls, compact: no text, unless asked for.

Read with harness/ledger/raw_log.py, one sample at a time. What the two records of a call come to is
harness/ledger/merge.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.ledger.answered import Answered, answered, exam_of
from harness.ledger.archive import Oddity, disagreements, oddities
from harness.ledger.events import CallEvent, events_of, lost_in
from harness.ledger.raw_log import Json, naming, open_log
from harness.ledger.texts import SampleDigests
from harness.logs import RunFacts, facts_in
from harness.records import PODIUM

NOTHING: Json = {}
NONE: list[Any] = []


@dataclass(slots=True)
class SampleRecord:
    """One sample of one log."""

    question: str
    epoch: int
    uuid: str
    log: str
    score: float | None
    """As the log has it; None where it has none."""
    graded: bool
    failed: bool
    """True when it ended in an error."""
    newest: bool
    """True in the newest log that has this (question, epoch) pair."""
    model_usage: Mapping[str, Json]
    role_usage: Mapping[str, Json]
    plan: Mapping[str, Any]
    """Shape of the work as podium's solver wrote it: steps, depth, plan."""
    started: str
    completed: str
    retried: int
    """Attempts within this run that failed before this one."""
    events: list[CallEvent]
    lost: list[CallEvent]
    """What is left of those attempts."""
    chars: Mapping[str, int]
    """Length of replies, by the event's uuid; empty where texts were taken out."""
    digests: SampleDigests | None = None
    """Of its texts, where they were asked for."""


@dataclass(slots=True)
class LogRecord:
    """One log: its header and its samples."""

    name: str
    task: str
    created: str
    eval_id: str
    status: str
    facts: RunFacts | None
    """None for logs that `podium run` did not write."""
    model_usage: Mapping[str, Json]
    role_usage: Mapping[str, Json]
    samples: list[SampleRecord] = field(default_factory=list[SampleRecord])
    answers: list[Answered] = field(default_factory=list[Answered])
    """One per sample, where they were asked for: they hold texts."""
    oddities: tuple[Oddity, ...] = ()
    """What no log of Inspect's is like, where digests were asked for."""


def read_log(
    path: Path, seen: set[tuple[str, int]], *, answers: bool = False, digests: bool = False
) -> LogRecord:
    """Read one log; `seen` are the (question, epoch) pairs of newer logs, and grows by this one's.

    UserError for a damaged log, and one of another version of podium.
    """
    with open_log(path) as log:
        header = log.header
        eval_, stats = header["eval"], header.get("stats") or NOTHING
        record = LogRecord(
            name=path.name,
            task=str(eval_.get("task", "")),
            created=str(eval_.get("created", "")),
            eval_id=str(eval_.get("eval_id", "")),
            status=str(header.get("status", "started")),
            facts=facts_in(eval_.get("metadata"), path),
            model_usage=stats.get("model_usage") or NOTHING,
            role_usage=stats.get("role_usage") or NOTHING,
        )
        with naming(path):
            exam = exam_of(header) if answers else None
            for sample in log.samples():
                made = _sample(sample, path.name, seen)
                record.samples.append(made)
                if exam:
                    record.answers.append(answered(sample, exam))
                if digests:
                    made.digests = SampleDigests(sample)
            if digests:
                record.oddities = (*oddities(log), *disagreements(log, record.samples))
    seen.update((one.question, one.epoch) for one in record.samples)
    return record


def _sample(sample: Json, log: str, seen: set[tuple[str, int]]) -> SampleRecord:
    score = (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING
    value = score.get("value")
    number = isinstance(value, int | float) and value == value
    failed = sample.get("error") is not None
    pair = (str(sample["id"]), int(sample["epoch"]))
    retries: list[Any] = sample.get("error_retries") or NONE
    return SampleRecord(
        question=pair[0],
        epoch=pair[1],
        uuid=str(sample.get("uuid") or ""),
        log=log,
        score=value if number else None,
        graded=number and not failed,
        failed=failed,
        newest=pair not in seen,
        model_usage=sample.get("model_usage") or NOTHING,
        role_usage=sample.get("role_usage") or NOTHING,
        plan=(sample.get("metadata") or NOTHING).get(PODIUM) or NOTHING,
        started=str(sample.get("started_at") or ""),
        completed=str(sample.get("completed_at") or ""),
        retried=len(retries),
        events=list(events_of(sample)),
        lost=list(lost_in(sample)),
        chars=_lengths(sample.get("events") or NONE),
    )


def _lengths(events: Sequence[Json]) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in events:
        if event["event"] == "model":
            said = (event.get("output") or NOTHING).get("completion")
            if isinstance(said, str):
                found[event.get("uuid") or ""] = len(said)
    return found
