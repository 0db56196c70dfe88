"""One audit of a directory: every sitting, in several processes when there are many, then all.

A sitting is read, judged and let go before the next one, so memory is that of the largest sitting.
Nothing is asked of a network, a data set or a price service: only files below the directory, and
the price books that come with podium.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.audit.evidence import Evidence
from harness.audit.grades import settled
from harness.audit.integrity import manifest, same_twice
from harness.audit.invariants import INVARIANTS
from harness.audit.result import Checked, Findings, Verdict, ordered
from harness.audit.table import Table, table_of
from harness.integrity.manifest import FILE
from harness.ledger.gather import gather, naming_sitting
from harness.ledger.journal import FOLDER
from harness.ledger.merge import merged
from harness.ledger.sitting_files import UP, Files, sittings_below
from harness.processes import LARGE, each_of, without_collector

SHARE = 4
"""Sittings that a process is given at once."""


@dataclass(slots=True)
class Part:
    """What some sittings come to."""

    table: Table = field(default_factory=Table)
    findings: dict[str, Findings] = field(
        default_factory=lambda: {one.id: Findings() for one in INVARIANTS}
    )

    def join(self, other: "Part") -> None:
        """Add other sittings."""
        self.table.join(other.table)
        for id, more in other.findings.items():
            self.findings[id].join(more)


@dataclass(frozen=True, slots=True)
class Audit:
    """What the files of a directory prove, and what they do not."""

    strict: bool
    table: Table
    verdicts: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Say whether no invariant fails."""
        return all(verdict.status != "fail" for verdict in self.verdicts)


def audit(
    folder: Path,
    *,
    strict: bool = False,
    bills: Sequence[Checked] = (),
    anew: Checked | None = None,
) -> Audit:
    """Check all invariants in all sittings below a directory.

    `bills` is what invoices were found to say (I10), `anew` what grading again did (I16). UserError
    when there is no log, or a damaged one.
    """
    sittings = sittings_below(folder)
    whole = Part()
    for part in parts_of(sittings):
        whole.join(part)
    _check_whole(folder, sittings, whole, bills)
    if anew is not None:
        grades = whole.findings["I16"]
        grades.weak = settled(grades.weak, anew)
        grades.add(anew)
    verdicts = tuple(
        Verdict(
            invariant=one.id,
            title=one.title,
            meaning=one.meaning,
            status=whole.findings[one.id].status(strict=strict),
            checked=whole.findings[one.id].checked,
            reasons=whole.findings[one.id].reasons(),
            faults=ordered(whole.findings[one.id].faults),
        )
        for one in INVARIANTS
    )
    return Audit(strict, whole.table, verdicts)


def parts_of(sittings: Sequence[Files], large: int = LARGE) -> Iterator[Part]:
    """Yield what the sittings come to; in other processes from `large` bytes of files on."""
    many = sum(one.size for one in sittings) >= large
    shares = [sittings[at : at + SHARE] for at in range(0, len(sittings), SHARE)]
    yield from each_of(of_sittings, shares, many=many)


def of_sittings(sittings: Iterable[Files]) -> Part:
    """Check some sittings, one after the other; for worker processes too."""
    found = Part()
    with without_collector():
        for files in sittings:
            with naming_sitting(files):
                _add_sitting(found, Evidence(merged(gather(files, digests=True)), name_of(files)))
    return found


def _add_sitting(found: Part, evidence: Evidence) -> None:
    found.table.join(table_of(evidence))
    for invariant in INVARIANTS:
        found.findings[invariant.id].add(invariant.check(evidence))


def name_of(files: Files) -> str:
    """Return a sitting's name in faults."""
    return f"{files.folder}/{files.task}" if files.folder else files.task


def _check_whole(
    folder: Path, sittings: Sequence[Files], whole: Part, bills: Sequence[Checked]
) -> None:
    """Check what is not of one sitting: reading twice, manifests, bills."""
    smallest = min(sittings, key=lambda one: (one.size, name_of(one)))
    whole.findings["I13"].add(same_twice(smallest, name_of(smallest)))
    runs = runs_of(folder, sittings)
    whole.table.counts["run directories"] = len(runs)
    for run in runs:
        name = run.relative_to(folder).as_posix() if run.is_relative_to(folder) else run.name
        whole.findings["I14"].add(
            manifest(run, "manifest" if name == "." else f"manifest of {name}")
        )
    if bills:
        whole.findings["I10"] = Findings()
    for bill in bills:
        whole.findings["I10"].add(bill)


def runs_of(folder: Path, sittings: Sequence[Files]) -> tuple[Path, ...]:
    """Return the directories that have, or should have, a manifest: those of experiments."""
    found: set[Path] = set()
    for files in sittings:
        parents = {path.parent for path in files.logs}
        parents |= {path.parent.parent.parent for path in files.journals}
        for parent in parents:
            places = [parent, *parent.parents][: UP + 1]
            marked = (one for one in places if (one / FILE).is_file())
            rooted = (one for one in places if (one / FOLDER).is_dir())
            found.add(next(marked, next(rooted, parent)))
    return tuple(sorted(found))
