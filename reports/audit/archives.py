"""What is wrong with logs as files (I14): members that contradict each other, files that repeat."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from podium.harness.ledger.join import LoggedEvent
from podium.harness.ledger.logs import NOTHING, SAMPLES
from podium.harness.ledger.runs import LogRecord, SampleRecord
from podium.reports.audit.evidence import Evidence, Faults, InvariantCheck
from podium.reports.audit.record_checks import not_as_journaled


def archives(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Each log is as Inspect writes it, and no file is there twice."""
    for log in evidence.logs:
        where = f"log {log.name}"
        for oddity in log.oddities:
            if oddity.grave:
                yield where, f"{oddity.where}: {oddity.said}"
            else:
                found.weak[f"{where}: {oddity.where}: {oddity.said}"] += 1
        yield from ((where, said) for said in _passed_over(evidence, log))
    yield from _twice(evidence)


def _twice(evidence: Evidence) -> Faults:
    # Inspect's id of a run and the time tell a file: of a run that was killed it recovers another.
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for log in evidence.logs:
        if log.eval_id and log.status != "started":
            same[log.eval_id, log.created].append(log.name)
    for (_, created), names in same.items():
        if len(names) > 1:
            yield f"log {', '.join(sorted(names))}", f"the same log of {created} twice"


def _passed_over(evidence: Evidence, log: LogRecord) -> Iterator[str]:
    for copy in log.superseded:
        member = f"{SAMPLES}{copy.question}_epoch_{copy.epoch}.json"
        for said in _unlike_a_failure(evidence, log, copy):
            yield f"{member}: it stands there again, and readers pass this copy over: {said}"


def _unlike_a_failure(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    """Yield why no run left a copy behind: it did not fail, or no other record has it so."""
    if any(replace(one, newest=copy.newest) == copy for one in log.samples):
        return  # a run that is stopped while it writes a sample writes it once more
    if not copy.failed:
        yield "it did not fail, so no run asked it again"
        return
    samples = (one for record in evidence.logs for one in record.samples)
    same = [replace(one, newest=copy.newest) for one in samples if one.uuid == copy.uuid]
    if same and copy not in same:
        yield "the same attempt stands elsewhere, and is another one there"
    elif not same and evidence.journals:
        yield from _unlike_journals(evidence, log, copy)


def _unlike_journals(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    asked = [one.intent.get("sample") or NOTHING for one in evidence.calls.values()]
    if not any(one.get("uuid") == copy.uuid for one in asked):
        yield "no older log has it, and no journal has a call of it"
    for event in (*copy.events, *copy.lost):
        call = evidence.call_of.get(event.id) or evidence.call_of.get(event.span or "")
        record = evidence.calls[call] if call else None
        yield from not_as_journaled(record, LoggedEvent(event, copy, log, final=False))
