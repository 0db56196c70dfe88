"""I13 and I14: what the audit needs is in the files, and the files are those that were written."""

from collections.abc import Iterator
from pathlib import Path

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.errors import UserError
from harness.experiment import FILE, Experiment, read_experiment
from harness.integrity.manifest import FILE as MANIFEST
from harness.integrity.manifest import Earlier, read_manifest
from harness.integrity.tampering import verify
from harness.ledger.journal import OLDER, SCHEMA
from harness.ledger.logged import LogRecord
from harness.ledger.merge import rows_of
from harness.ledger.row import canonical
from harness.ledger.sitting_files import Files
from harness.logs import RunFacts

SECONDS = len("2026-01-01T00:00:00")
"""Of a time, as far as a log's has it."""
CUT = "journals without their last lines though their run has ended: cut off, or killed at its end"
NO_MANIFEST = (
    "no manifest: whoever ran it with podium should supply MANIFEST.json (a run that was killed "
    "has none until it is resumed)"
)


def self_contained(evidence: Evidence) -> Checked:
    """I13: prices and facts of the run are in its own files, so that they alone give the result."""
    found = Checked()
    for log in evidence.logs:
        if log.facts is None:
            return Checked(skipped="not a run of podium: its logs embed no prices", matters=True)
    for journal in evidence.merged.gathered.journals:
        if journal.head.get("schema") not in (SCHEMA, OLDER):
            said = "it does not begin with a head of this version"
            found.faults.append(Fault("I13", evidence.name, f"journal {journal.name}", said))
    return found


def same_twice(files: Files, name: str) -> Checked:
    """I13: the files of a sitting give the same rows, byte for byte, each time they are read."""
    first, second = (b"".join(canonical(row.as_json()) for row in rows_of(files)) for _ in "12")
    if first == second:
        return Checked()
    return Checked([Fault("I13", name, "rows", "read twice, they are not the same")])


def integrity(evidence: Evidence) -> Checked:
    """I14: journals are unbroken and whole, logs are as Inspect writes them, and belong here."""
    found = _chains(evidence)
    found.add(_ends(evidence))
    found.add(_archives(evidence))
    found.add(_in_experiment(evidence))
    return found


def _ends(evidence: Evidence) -> Checked:
    """Name journals that lack their last lines though the run they are of has ended well."""
    found = Checked()
    logs = sorted((log.created[:SECONDS], log.status) for log in evidence.logs)
    for journal in evidence.merged.gathered.journals:
        begun = str(journal.head.get("at", ""))[:SECONDS]
        status = next((status for at, status in reversed(logs) if at <= begun), None)
        found.weak[CUT] += status == "success" and bool(journal.calls) and not journal.closed
    found.weak = +found.weak
    return found


def _archives(evidence: Evidence) -> Checked:
    """Name what two readers of a log would see differently, and logs that are here twice."""
    found = Checked()
    for log in evidence.logs:
        for oddity in log.oddities:
            said = f"{oddity.where}: {oddity.said}"
            if oddity.grave:
                found.faults.append(Fault("I14", evidence.name, f"log {log.name}", said))
            else:
                found.weak[f"log {log.name}: {said}"] += 1
    for (_, created), logs in evidence.same_logs.items():
        if len(logs) > 1:
            names = ", ".join(sorted(log.name for log in logs))
            found.faults.append(
                Fault("I14", evidence.name, f"log {names}", f"the same log of {created} twice")
            )
    return found


def _in_experiment(evidence: Evidence) -> Checked:
    """Compare a sitting's newest log with the record of the experiment beside it."""
    found, logs = Checked(), evidence.merged.gathered.files.logs
    facts = evidence.facts
    if not logs or facts is None or facts.redacted or not (logs[0].parent / FILE).is_file():
        return found
    try:
        experiment = read_experiment(logs[0].parent)
    except UserError as error:
        found.faults.append(Fault("I14", evidence.name, FILE, str(error)))
        return found
    assert experiment is not None, "the file has just been seen"
    for said in _unlike(experiment, evidence.logs[0], facts):
        found.faults.append(Fault("I14", evidence.name, f"log {evidence.logs[0].name}", said))
    return found


def _unlike(experiment: Experiment, log: LogRecord, facts: RunFacts) -> Iterator[str]:
    name = log.task.removesuffix(f" ({facts.purpose})")
    entry = next((one for one in experiment.entries if one.name == name), None)
    if entry is None:
        yield f"{FILE} names no system {log.task!r}: the log was put in"
        return
    known = {
        "arguments": (dict(entry.args), dict(facts.args)),
        "pool": (experiment.pool_sha256, facts.pool_sha256),
        "seed": (experiment.seed, facts.seed),
        "split": (experiment.split, facts.split),
        "price book": (experiment.book_sha256, facts.prices.get("sha256")),
        "data": (experiment.data_revisions.get(facts.suite), facts.data_revision),
        "prompt": (experiment.prompts.get(facts.suite, facts.prompt), facts.prompt),
    }
    for name, (recorded, logged) in known.items():
        if recorded != logged:
            yield f"{FILE} says {name} {recorded!r}, the log {logged!r}"


def _chains(evidence: Evidence) -> Checked:
    """Name what breaks a journal's chain: every line follows the one before it."""
    found = Checked()
    if not evidence.has_journal:
        found.skipped, found.matters = evidence.why_no_journal(), True
    for journal in evidence.merged.gathered.journals:
        for fault in journal.chain.faults:
            said = f"line {fault.line} {fault.kind}: {fault.said}"
            found.faults.append(Fault("I14", evidence.name, f"journal {journal.name}", said))
        found.weak["lines of journals that were left torn, and named when the run was resumed"] += (
            journal.torn
        )
    found.weak = +found.weak
    return found


def manifest(run: Path, name: str) -> Checked:
    """I14: the files of a run are those of its manifest."""
    found = Checked()
    for finding in verify(run):
        if finding.kind == "absent":
            return Checked(skipped=NO_MANIFEST, matters=True)
        place = f"{finding.path}, {finding.where}" if finding.where else finding.path
        said = f"{finding.kind}: {finding.said}"
        found.faults.append(Fault("I14", name, place, said))
    for earlier in _history(run):
        found.notes[f"{name} replaces {earlier}"] += 1
    return found


def _history(run: Path) -> tuple[Earlier, ...]:
    try:
        return read_manifest(run / MANIFEST).history
    except UserError:  # which is named already
        return ()
