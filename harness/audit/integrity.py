"""I13 and I14: what the audit needs is in the files, and the files are those that were written."""

from pathlib import Path

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.integrity.tampering import verify
from harness.ledger.journal import OLDER, SCHEMA
from harness.ledger.merge import rows_of
from harness.ledger.row import canonical
from harness.ledger.sitting_files import Files

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


def chains(evidence: Evidence) -> Checked:
    """I14: every line of a journal follows the one before it."""
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
    return found
