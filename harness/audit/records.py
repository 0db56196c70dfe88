"""I4: the two records of every call, journal and log, have the same calls and say the same.

What only a journal has must have been lost by the log in a way that is known: the sample was made
again, or its run was stopped. What only a log has escaped the journal, or is older than it.
"""

from collections.abc import Iterator

from harness.audit.evidence import (
    NOTHING,
    Evidence,
    Tokens,
    minus,
    plus,
    said_tokens,
    tokens_of,
    told,
)
from harness.audit.result import Checked, Fault
from harness.ledger.events import CallEvent
from harness.ledger.gather import CallRecord, JournalRecord
from harness.records import Usage


def records_agree(evidence: Evidence) -> Checked:
    """I4: every event of a log is one call of a journal and the other way round."""
    found = Checked()
    faults = [*_twice(evidence)]
    if not evidence.has_journal:
        found.skipped, found.matters = "no journal: the run is older than journals", True
        found.faults = [Fault("I4", evidence.name, *one) for one in faults]
        return found
    faults += [*_escaped(evidence, found), *_lost(evidence), *_disagree(evidence)]
    for journal in evidence.merged.gathered.journals:
        faults += _hooks(evidence, journal)
    found.faults = [Fault("I4", evidence.name, *one) for one in faults]
    return found


Said = tuple[str, str]
"""Where, and what."""


def _twice(evidence: Evidence) -> Iterator[Said]:
    for uuid in evidence.merged.copies:
        yield f"event {uuid}", "a sample lists it twice"
    for said in evidence.merged.gathered.twice:
        yield "journals", said


def _escaped(evidence: Evidence, found: Checked) -> Iterator[Said]:
    for uuid in evidence.merged.escaped:
        seen = evidence.seen[uuid]
        if seen.event.started[:19] < evidence.started[:19]:
            found.weak["calls older than the first journal"] += 1
            continue
        sample = seen.sample
        asked = f"sample {sample.question} epoch {sample.epoch}"
        yield f"event {uuid}", f"{asked}: the log has a call that no journal has"


def _lost(evidence: Evidence) -> Iterator[Said]:
    """Yield calls whose reply a log should have."""
    newest = evidence.logs[0] if evidence.logs else None
    for call, record in evidence.merged.gathered.calls.items():
        outcome = record.outcome
        if evidence.merged.events_of[call] or outcome is None or not outcome.get("usage"):
            continue
        asked = record.intent.get("sample")
        if not asked or record.intent["scope"] in ("training", "serving") or newest is None:
            continue
        sample = evidence.newest.get((str(asked["question"]), int(asked["epoch"])))
        where = f"call {call}"
        if sample is None and newest.status == "success":
            yield where, f"no log has question {asked['question']} epoch {asked['epoch']}"
        elif sample and sample.uuid == asked["uuid"] and not sample.retried:
            yield where, f"sample {sample.question} epoch {sample.epoch}: the log lacks the call"


def _disagree(evidence: Evidence) -> Iterator[Said]:
    for call, record in evidence.merged.gathered.calls.items():
        events = evidence.merged.events_of[call]
        if events and record.outcome is not None:
            for said in _unlike(record, events[-1].event):
                yield f"call {call}", said


def _unlike(record: CallRecord, event: CallEvent) -> Iterator[str]:
    outcome = record.outcome or {}
    stored = outcome.get("usage")
    ours, theirs = _five(Usage(**stored) if stored else None), _five(event.usage)
    if ours != theirs:
        yield f"the journal's tokens less the log's: {said_tokens(minus(ours, theirs))}"
    if record.intent.get("model") != event.model:
        yield f"the journal names model {record.intent.get('model')}, the log {event.model}"
    if record.intent.get("role") != event.role:
        yield f"the journal names role {record.intent.get('role')}, the log {event.role}"


def _five(usage: Usage | None) -> Tokens:
    if usage is None:
        return NOTHING
    cached = (usage.cache_read, usage.cache_write)
    return (usage.input, usage.output, *cached, usage.reasoning or 0)


def _hooks(evidence: Evidence, journal: JournalRecord) -> Iterator[Said]:
    """Compare a journal's calls with what Inspect's own hooks counted while it was open."""
    if not journal.totals:
        return  # the process was killed, or made no call that was counted
    theirs = {str(line["model"]): told(line) for line in journal.totals}
    ours: dict[str, Tokens] = {}
    for row in evidence.rows:
        if row.journal == journal.name and row.cache != "read" and row.input_uncached is not None:
            ours[row.model] = plus(ours.get(row.model, NOTHING), tokens_of(row))
    for model in sorted({*theirs, *ours}):
        rest = minus(theirs.get(model, NOTHING), ours.get(model, NOTHING))
        if rest != NOTHING:
            said = f"model {model}: Inspect's hooks less the journal's calls: {said_tokens(rest)}"
            yield f"journal {journal.name}", said
