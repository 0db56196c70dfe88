"""I4: the two records of every call, journal and log, have the same calls and say the same.

What only a journal has must have been lost by the log in a way that is known: the sample was made
again, or its run was stopped. What only a log has escaped the journal, or is older than it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

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
from harness.ledger.gather import JournalRecord
from harness.ledger.journal import usage_of
from harness.ledger.merge import Seen
from harness.ledger.raw_log import Json
from harness.logs import RunFacts
from harness.records import Usage
from harness.service import STANDARD

OWN = (
    "cache_write_1h",
    "orchestration_in",
    "orchestration_in_cached",
    "orchestration_out",
)
"""Counts that only a provider's own usage has; a log may have lost it."""
GONE = (
    "its calls were written down in a journal that is not here: the `ledger/` folder belongs to "
    "the logs"
)


def records_agree(evidence: Evidence) -> Checked:
    """I4: every event of a log is one call of a journal and the other way round."""
    found = Checked()
    faults = [*_twice(evidence)]
    if not evidence.has_journal:
        faults += _gone(evidence)
        if not faults:
            found.skipped, found.matters = evidence.why_no_journal(), True
        found.faults = [Fault("I4", evidence.name, *one) for one in faults]
        return found
    faults += [*_escaped(evidence, found), *_lost(evidence), *_disagree(evidence)]
    for journal in evidence.merged.gathered.journals:
        faults += [*_hooks(evidence, journal), *_other_run(evidence, journal)]
    found.faults = [Fault("I4", evidence.name, *one) for one in faults]
    return found


Said = tuple[str, str]
"""Where, and what."""
Terms = Mapping[str, tuple[str, str]]
"""By worker: its price, and how it is served."""


def _twice(evidence: Evidence) -> Iterator[Said]:
    for uuid in evidence.merged.copies:
        yield f"event {uuid}", "a sample lists it twice"
    for said in evidence.merged.gathered.twice:
        yield "journals", said


def _journaled(facts: RunFacts | None) -> bool:
    """Say whether a log states that all its calls are in journals that should be here."""
    return facts is not None and facts.journal is not None and not facts.redacted


def _gone(evidence: Evidence) -> Iterator[Said]:
    """Yield logs whose calls were written down, where no journal is left."""
    for log in evidence.logs:
        if _journaled(log.facts) and any(one.events or one.lost for one in log.samples):
            yield f"log {log.name}", GONE


def _escaped(evidence: Evidence, found: Checked) -> Iterator[Said]:
    for uuid in evidence.merged.escaped:
        seen = evidence.seen[uuid]
        older = seen.event.started[:19] < evidence.started[:19]
        if older and not _journaled(seen.log.facts):
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
        if evidence.merged.events_of[call] or outcome is None or not outcome.get("event"):
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
    terms = {log.name: _terms(log.facts) for log in evidence.logs}
    for call, record in evidence.merged.gathered.calls.items():
        events = evidence.merged.events_of[call]
        if events and record.outcome is not None:
            for said in _unlike(record.outcome, events[-1].event):
                yield f"call {call}", said
        if events:
            for said in _asked_otherwise(record.intent, events[-1], terms):
                yield f"call {call}", said


def _unlike(outcome: Json, event: CallEvent) -> Iterator[str]:
    """Yield how two records of a call's end differ."""
    ours, theirs = usage_of(outcome), event.usage
    if theirs is not None and ours is not None and event.raw_usage is None:
        theirs = _as_told(theirs, ours)
    if _five(ours) != _five(theirs):
        rest = minus(_five(ours), _five(theirs))
        yield f"the journal's tokens less the log's: {said_tokens(rest)}"
    elif (ours is None) != (theirs is None):
        who, other = ("journal", "log") if theirs is None else ("log", "journal")
        yield f"the {who} has counts of its tokens, and the {other} has none"
    elif ours != theirs:
        yield f"the journal counts {_others(ours)}, the log {_others(theirs)}"
    if outcome.get("refused") and not event.refused and not event.error:
        yield "the journal says that it was refused, and the log has a reply"


def _as_told(usage: Usage, journal: Usage) -> Usage:
    """Return a log's counts with those that only a provider's own usage has, which it lost."""
    return replace(usage, **{name: getattr(journal, name) for name in OWN})


def _others(usage: Usage | None) -> str:
    """Return the counts that are not among Inspect's five, in words."""
    if usage is None:
        return "nothing"
    named = ("reasoning", "total_reported", *OWN)
    return ", ".join(f"{getattr(usage, name)} {name.replace('_', ' ')}" for name in named)


def _asked_otherwise(intent: Json, seen: Seen, terms: Mapping[str, Terms]) -> Iterator[str]:
    """Yield how an intent differs from the call that the log has, beside its tokens."""
    event, sample = seen.event, seen.sample
    if intent.get("model") != event.model:
        yield f"the journal names model {intent.get('model')}, the log {event.model}"
    if intent.get("role") != event.role:
        yield f"the journal names role {intent.get('role')}, the log {event.role}"
    asked: Json = intent.get("sample") or {}
    ours, theirs = (asked.get("question"), asked.get("epoch")), (sample.question, sample.epoch)
    if asked and ours != theirs:
        yield "the journal names question {} epoch {}, the log {} epoch {}".format(*ours, *theirs)
    known = terms[seen.log.name].get(event.role) if event.phase == "solve" else None
    named = intent.get("price_ref"), intent.get("service") or STANDARD
    if known and named != known:
        yield "the journal names price {} ({}), the log {} ({})".format(*named, *known)


def _terms(facts: RunFacts | None) -> Terms:
    """Return what a log says of its workers' prices; nothing for logs older than journals."""
    if facts is None or facts.journal is None:
        return {}
    return {name: (one.price, one.service) for name, one in facts.workers.items()}


def _other_run(evidence: Evidence, journal: JournalRecord) -> Iterator[Said]:
    """Yield what a journal's head says that the run's logs do not."""
    facts = evidence.facts
    if facts is None:
        return
    for name in ("label", "system", "suite"):
        ours, theirs = journal.head.get(name), getattr(facts, name)
        if ours != theirs:
            yield f"journal {journal.name}", f"it names {name} {ours}, the log {theirs}"


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
    for row in evidence.counted:
        if row.journal == journal.name and row.cache != "read" and row.input_uncached is not None:
            ours[row.model] = plus(ours.get(row.model, NOTHING), tokens_of(row))
    for model in sorted({*theirs, *ours}):
        rest = minus(theirs.get(model, NOTHING), ours.get(model, NOTHING))
        if rest != NOTHING:
            said = f"model {model}: Inspect's hooks less the journal's calls: {said_tokens(rest)}"
            yield f"journal {journal.name}", said
