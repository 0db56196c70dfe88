"""I16: the verdicts of a log are those that were written down when they were given.

Whether a verdict is right is another question: `podium audit --regrade` gives all of them anew,
where that takes no model (harness/regrade.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.ledger.logged import SampleRecord
from harness.regrade import Remade

AGAIN = "verdicts that a newer log changed, as `podium regrade` does (--regrade gives them anew)"
SAME = "verdicts given anew and the same"
LACKING = "verdicts that no journal has, though it has the calls of their samples"
UNKNOWN = "not comparable: verdicts that no journal has (--regrade gives them anew)"


def grades_agree(evidence: Evidence) -> Checked:
    """I16: each verdict is the one that its journal has, or one that was given anew since."""
    found = Checked()
    facts = evidence.facts
    if facts is None or facts.redacted or not evidence.has_journal:
        found.skipped = "no journal has its verdicts"
        return found
    kept = Counter(
        sample.uuid for log in evidence.logs for sample in log.samples if _is_kept(evidence, sample)
    )
    for log in evidence.logs:
        for sample in log.samples:
            where = f"sample {sample.question} epoch {sample.epoch}"
            for said in _unlike(evidence, sample, kept, found):
                found.faults.append(Fault("I16", evidence.name, where, f"{said} ({log.name})"))
    return found


def given_anew(logs: Iterable[Remade]) -> Checked:
    """I16, as far as grading again tells: verdicts that came out otherwise, and those left out."""
    found = Checked()
    for log in logs:
        for where, said in log.others:
            found.faults.append(Fault("I16", log.task, where, f"{said} ({log.log.name})"))
        found.notes[SAME] += log.same
        for why, count in log.left.items():
            found.notes[f"not given anew: {why}"] += count
    found.notes = +found.notes
    return found


def settled(weak: Counter[str], anew: Checked) -> Counter[str]:
    """Return what stays weak: not that verdicts were changed since, where all came out the same."""
    if anew.faults or any(note != SAME for note in anew.notes):
        return weak
    return Counter({said: count for said, count in weak.items() if said != AGAIN})


def _unlike(
    evidence: Evidence, sample: SampleRecord, kept: Counter[str], found: Checked
) -> Iterator[str]:
    if sample.failed or sample.digests is None:
        return
    if sample.uuid not in evidence.merged.gathered.grade_lines:
        if sample.uuid in evidence.written_down:
            found.weak[LACKING] += 1
        else:
            found.notes[UNKNOWN] += 1
    elif not _is_kept(evidence, sample):
        if kept[sample.uuid]:
            found.weak[AGAIN] += 1
        else:
            yield f"its verdict, {sample.score}, is not the one that was written down"


def _is_kept(evidence: Evidence, sample: SampleRecord) -> bool:
    """Say whether a sample has a verdict that a journal has of it."""
    lines = evidence.merged.gathered.grade_lines.get(sample.uuid, [])
    digest = sample.digests.graded if sample.digests else None
    return any(
        line.get("value") == sample.score and line.get("graded_sha256") == digest for line in lines
    )
