"""The eighteen invariants: what each one promises, and the function that checks it in one run."""

import zipfile
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from podium.harness.errors import UserError
from podium.harness.files import read_json
from podium.harness.ledger.call import canonical
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.journal import OLDER, SCHEMA
from podium.harness.ledger.log_files import JSON, logs_below
from podium.harness.ledger.logs import UNFOUNDED
from podium.harness.ledger.manifest import FILE as MANIFEST
from podium.harness.ledger.manifest import file_digest, read_manifest
from podium.harness.ledger.runs import RunFiles, SampleRecord
from podium.harness.ledger.witness import figures
from podium.harness.run.experiment import FILE, read_experiment
from podium.reports.audit.amounts import (
    cache_reads,
    failed_attempts,
    nothing_unpriced,
    pricing,
    run_sums,
    sample_sums,
    scopes_apart,
    token_partition,
)
from podium.reports.audit.evidence import SERVED, AuditFault, Evidence, Faults, InvariantCheck
from podium.reports.audit.record_checks import (
    archives,
    complete,
    plausible,
    records_agree,
    texts_agree,
)
from podium.reports.audit.sharded import shards_as_planned, spent_as_leased
from podium.reports.audit.verify import verify

if TYPE_CHECKING:  # who grades again asks models, and an audit does not
    from podium.harness.model_judge import Remade

AGAIN = "verdicts that a newer log changed, as `podium regrade` does (--regrade gives them anew)"
SAME = "verdicts given anew and the same"
LACKING = "verdicts that no journal has, though it has the calls of their samples"
UNKNOWN = "not comparable: verdicts that no journal has (--regrade gives them anew)"


def grades_agree(evidence: Evidence, found: InvariantCheck) -> Faults:
    """A log's verdicts are those that were written down, or (--regrade) those given anew."""
    facts = evidence.facts
    if facts is None or facts.redacted or not evidence.journals:
        found.skipped[SERVED if evidence.is_served else "no journal has its verdicts"] += 1
        return
    samples = [(log, sample) for log in evidence.logs for sample in log.samples]
    kept = {sample.uuid for _, sample in samples if _is_kept(evidence, sample)}
    for log, sample in samples:
        if sample.failed or sample.digests is None:
            continue
        if sample.uuid not in evidence.grade_lines:
            told = sample.uuid in evidence.written_down
            (found.weak if told else found.notes)[LACKING if told else UNKNOWN] += 1
        elif not _is_kept(evidence, sample):
            if sample.uuid in kept:
                found.weak[AGAIN] += 1
                continue
            said = f"its verdict, {sample.score}, is not the one that was written down"
            yield f"sample {sample.question} epoch {sample.epoch}", f"{said} ({log.name})"


def given_anew(logs: "Iterable[Remade]") -> InvariantCheck:
    """I16, as far as grading again tells: verdicts that came out otherwise, and those left out."""
    found = InvariantCheck()
    for log in logs:
        for where, said in log.others:
            found.faults.append(AuditFault("I16", log.task, where, f"{said} ({log.log.name})"))
        found.notes[SAME] += log.same
        for why, count in log.left.items():
            found.notes[f"not given anew: {why}"] += count
    found.notes = +found.notes
    return found


def _is_kept(evidence: Evidence, sample: SampleRecord) -> bool:
    lines = evidence.grade_lines.get(sample.uuid, [])
    digest = sample.digests.graded if sample.digests else None
    return any(
        line.get("value") == sample.score and line.get("graded_sha256") == digest for line in lines
    )


SECONDS = len("2026-01-01T00:00:00")
"""Of a time, as far as a log's has it."""
CUT = "journals without their last lines though their run has ended: cut off, or killed at its end"
TORN = "lines of journals that were left torn, and named when the run was resumed"
NO_MANIFEST = (
    "no manifest: whoever ran it with podium should supply MANIFEST.json (a run that was killed "
    "has none until it is resumed)"
)


def self_contained(evidence: Evidence, found: InvariantCheck) -> Faults:
    """The files alone give every figure, and the same bytes each time."""
    if any(log.facts is None for log in evidence.logs):
        found.gaps["not a run of podium: its logs embed no prices"] += 1
        return
    for journal in evidence.journals:
        if journal.head.get("schema") not in (SCHEMA, OLDER):
            yield f"journal {journal.name}", "it does not begin with a head of this version"


def same_twice(files: RunFiles, found: InvariantCheck) -> Faults:
    """I13: the files of a system run give the same rows, byte for byte, each time they are read."""
    first, second = (b"".join(canonical(row.as_json()) for row in rows_of(files)) for _ in "12")
    if first != second:
        yield "rows", "read twice, they are not the same"


def table_again(run: Path, name: str, tasks: Container[str], found: InvariantCheck) -> Faults:
    """I13: a program that shares no code with a run's table makes its figures again."""
    place = run / "report" / "table.json"
    try:
        table = read_json(place)
        yield from _written_with(place, table.get("files") or {})
        rows = table["rows"]
        if any(
            f"{row['suite']} {row['system']}" not in tasks for row in rows if not row["derived"]
        ):
            found.notes[f"{name} has rows whose journals are not here: it is not made again"] += 1
            return
        if all(path.suffix == JSON for path in logs_below(run)):
            found.gaps[f"{name} has logs in JSON, of which no table is made again"] += 1
            return
        lines = list(figures(run, place))
    except (UserError, OSError, zipfile.BadZipFile, duckdb.Error, *UNFOUNDED) as error:
        why = type(error).__name__
        yield "figures", f"it cannot be made again ({why}): podium report writes it anew"
        return
    made = "figures of tables that a program without podium's code has made again"
    found.notes[made] += len(lines)
    yield from (("figure", line) for line, same in lines if not same)


def _written_with(table: Path, digests: Mapping[str, str]) -> Faults:
    """The files beside a table are those that were written with it; older tables name none."""
    for name, digest in digests.items():
        file = table.parent / Path(name).name
        if file.is_file() and file_digest(file) != digest:
            yield name, "it was edited since it was written: podium report writes it anew"


def integrity(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Journals are unbroken chains with all their lines, logs are as Inspect writes them, and
    the files are those of the run's experiment and manifest.
    """  # noqa: D205
    if not evidence.journals:
        found.gaps[evidence.why_no_journal()] += 1
    yield from _journals(evidence, found)
    yield from archives(evidence, found)
    yield from _in_experiment(evidence)


def _journals(evidence: Evidence, found: InvariantCheck) -> Faults:
    logs = sorted((log.created[:SECONDS], log.status) for log in evidence.logs)
    for journal in evidence.journals:
        for fault in journal.chain.faults:
            yield f"journal {journal.name}", f"line {fault.line} {fault.kind}: {fault.said}"
        found.weak[TORN] += journal.torn
        begun = str(journal.head.get("at", ""))[:SECONDS]
        status = next((status for at, status in reversed(logs) if at <= begun), None)
        found.weak[CUT] += status == "success" and bool(journal.calls) and not journal.closed


def _in_experiment(evidence: Evidence) -> Faults:
    logs, facts = evidence.files.logs, evidence.facts
    if not logs or facts is None or facts.redacted or not (logs[0].parent / FILE).is_file():
        return
    try:
        experiment = read_experiment(logs[0].parent)
    except UserError as error:
        yield FILE, str(error)
        return
    assert experiment is not None, "the file has just been seen"
    log = evidence.logs[0]
    where, name = f"log {log.name}", log.task.removesuffix(f" ({facts.purpose})")
    entry = next((one for one in experiment.entries if one.name == name), None)
    if entry is None:
        yield where, f"{FILE} names no system {log.task!r}: the log was put in"
        return
    for name, recorded, logged in (
        ("arguments", dict(entry.args), dict(facts.args)),
        ("pool", experiment.pool_sha256, facts.pool_sha256),
        ("seed", experiment.seed, facts.seed),
        ("split", experiment.split, facts.split),
        ("price book", experiment.book_sha256, facts.prices.get("sha256")),
        ("data", experiment.data_revisions.get(facts.suite), facts.data_revision),
        ("prompt", experiment.prompts.get(facts.suite, facts.prompt), facts.prompt),
    ):
        if recorded != logged:
            yield where, f"{FILE} says {name} {recorded!r}, the log {logged!r}"


def manifest(run: Path, name: str, found: InvariantCheck) -> Faults:
    """I14: the files of a run are those of its manifest."""
    for finding in verify(run):
        if finding.kind == "absent":
            found.gaps[NO_MANIFEST] += 1
            return
        if not finding.grave:
            found.weak[f"{finding.place}: {finding.kind}: {finding.said}"] += 1
            continue
        yield finding.place, f"{finding.kind}: {finding.said}"
    with suppress(UserError):  # which is named already
        for earlier in read_manifest(run / MANIFEST).history:
            found.notes[f"{name} replaces {earlier}"] += 1


def _elsewhere(evidence: Evidence, found: InvariantCheck) -> Faults:
    """What providers bill is what the ledger says, within the tolerance."""
    # A bill is of an account, not of a system run: reports/audit/audit_report.py compares it.
    found.skipped["no invoice was given (--invoice FILE)"] += 1
    return iter(())


@dataclass(frozen=True, slots=True)
class Invariant:
    """One promise; the sentence that its check's docstring is says which."""

    id: str
    title: str
    check: Callable[[Evidence, InvariantCheck], Faults]

    @property
    def meaning(self) -> str:
        """What is promised."""
        return " ".join((getdoc(self.check) or "").split())


INVARIANTS = (
    Invariant("I1", "token partition", token_partition),
    Invariant("I2", "calls = sample", sample_sums),
    Invariant("I3", "samples = run", run_sums),
    Invariant("I4", "log = ledger", records_agree),
    Invariant("I5", "pricing", pricing),
    Invariant("I6", "nothing unpriced", nothing_unpriced),
    Invariant("I7", "completeness", complete),
    Invariant("I8", "cache", cache_reads),
    Invariant("I9", "failed attempts", failed_attempts),
    Invariant("I10", "invoice", _elsewhere),
    Invariant("I11", "plausibility", plausible),
    Invariant("I12", "scopes apart", scopes_apart),
    Invariant("I13", "replay", self_contained),
    Invariant("I14", "integrity", integrity),
    Invariant("I15", "texts", texts_agree),
    Invariant("I16", "grades", grades_agree),
    Invariant("I17", "shards = plan", shards_as_planned),
    Invariant("I18", "shards = leases", spent_as_leased),
)
