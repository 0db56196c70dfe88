"""The eighteen invariants of an audit: title, meaning, and the function that checks a run."""

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

if TYPE_CHECKING:  # only for types: an audit needs no module that can call models
    from podium.harness.model_judge import Remade

AGAIN = "verdicts that a newer log changed, as `podium regrade` does (check them with --regrade)"
SAME = "verdicts graded again with the same result"
LACKING = "verdicts that no journal has, though it has the calls of their samples"
UNKNOWN = "not comparable: verdicts that no journal has (check them with --regrade)"


def grades_agree(evidence: Evidence, check: InvariantCheck) -> Faults:
    """A log's verdicts are those in the journal or, with --regrade, those of grading again."""
    facts = evidence.facts
    if facts is None or facts.redacted or not evidence.journals:
        check.skipped[SERVED if evidence.is_served else "no journal has its verdicts"] += 1
        return
    samples = [(log, sample) for log in evidence.logs for sample in log.samples]
    graded = {sample.uuid for _, sample in samples if _is_kept(evidence, sample)}
    for log, sample in samples:
        if sample.failed or sample.digests is None:
            continue
        if sample.uuid not in evidence.grade_lines:
            has_calls = sample.uuid in evidence.written_down
            (check.weak if has_calls else check.notes)[LACKING if has_calls else UNKNOWN] += 1
        elif not _is_kept(evidence, sample):
            if sample.uuid in graded:
                check.weak[AGAIN] += 1
                continue
            text = f"its verdict, {sample.score}, differs from the recorded one"
            yield f"sample {sample.question} epoch {sample.epoch}", f"{text} ({log.name})"


def given_anew(logs: "Iterable[Remade]") -> InvariantCheck:
    """Return I16's findings from grading answers again: new verdicts that differ or agree."""
    check = InvariantCheck()
    for log in logs:
        for place, text in log.others:
            check.faults.append(AuditFault("I16", log.task, place, f"{text} ({log.log.name})"))
        check.notes[SAME] += log.same
        for reason, count in log.left.items():
            check.notes[f"not graded again: {reason}"] += count
    check.notes = +check.notes
    return check


def _is_kept(evidence: Evidence, sample: SampleRecord) -> bool:
    lines = evidence.grade_lines.get(sample.uuid, [])
    digest = sample.digests.graded if sample.digests else None
    return any(
        line.get("value") == sample.score and line.get("graded_sha256") == digest for line in lines
    )


SECONDS = len("2026-01-01T00:00:00")
"""Number of characters of an ISO time up to seconds, the precision of times in logs."""
CUT = "journals without their last lines though their run has ended: cut off, or killed at its end"
TORN = "incomplete lines of journals that were recorded as such when the run was resumed"
NO_MANIFEST = (
    "no manifest: ask the person who ran it with podium for MANIFEST.json (a killed run has none "
    "until it is resumed)"
)


def self_contained(evidence: Evidence, check: InvariantCheck) -> Faults:
    """The run's files alone give every figure, and reading them again gives the same bytes."""
    if any(log.facts is None for log in evidence.logs):
        check.gaps["not a run of podium: its logs embed no prices"] += 1
        return
    for journal in evidence.journals:
        if journal.head.get("schema") not in (SCHEMA, OLDER):
            yield f"journal {journal.name}", "it does not begin with a header of this version"


def same_twice(files: RunFiles, check: InvariantCheck) -> Faults:
    """I13: reading a system run's files twice gives the same ledger rows, byte for byte."""
    rows, again = (b"".join(canonical(row.as_json()) for row in rows_of(files)) for _ in "12")
    if rows != again:
        yield "rows", "read twice, they differ"


def table_again(run: Path, name: str, tasks: Container[str], check: InvariantCheck) -> Faults:
    """I13: an independent program computes the same figures as in a run's table.json."""
    place = run / "report" / "table.json"
    try:
        table = read_json(place)
        yield from _written_with(place, table.get("files") or {})
        rows = table["rows"]
        if any(
            f"{row['suite']} {row['system']}" not in tasks for row in rows if not row["derived"]
        ):
            note = f"{name} has rows whose journals are missing, so it cannot be computed again"
            check.notes[note] += 1
            return
        if all(path.suffix == JSON for path in logs_below(run)):
            check.gaps[f"{name} has logs in JSON, whose tables are not computed again"] += 1
            return
        lines = list(figures(run, place))
    except (UserError, OSError, zipfile.BadZipFile, duckdb.Error, *UNFOUNDED) as error:
        reason = type(error).__name__
        text = f"it cannot be computed again ({reason}): write it again with podium report"
        yield "figures", text
        return
    note = "figures of tables that a program without podium's code has computed again"
    check.notes[note] += len(lines)
    yield from (("figure", line) for line, same in lines if not same)


def _written_with(table: Path, digests: Mapping[str, str]) -> Faults:
    """Yield a fault for each file of a report whose digest differs from that in table.json."""
    for name, digest in digests.items():
        file = table.parent / Path(name).name
        if file.is_file() and file_digest(file) != digest:
            yield name, "it was edited after it was written: write it again with podium report"


def integrity(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Journals are unbroken chains with all their lines, logs are as Inspect writes them, and
    the files are those of the run's experiment and manifest.
    """  # noqa: D205
    if not evidence.journals:
        check.gaps[evidence.why_no_journal()] += 1
    yield from _journals(evidence, check)
    yield from archives(evidence, check)
    yield from _in_experiment(evidence)


def _journals(evidence: Evidence, check: InvariantCheck) -> Faults:
    logs = sorted((log.created[:SECONDS], log.status) for log in evidence.logs)
    for journal in evidence.journals:
        for fault in journal.chain.faults:
            yield f"journal {journal.name}", f"line {fault.line} {fault.kind}: {fault.said}"
        check.weak[TORN] += journal.torn
        start = str(journal.head.get("at", ""))[:SECONDS]
        status = next((status for created, status in reversed(logs) if created <= start), None)
        check.weak[CUT] += status == "success" and bool(journal.calls) and not journal.closed


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
    place, name = f"log {log.name}", log.task.removesuffix(f" ({facts.purpose})")
    entry = next((item for item in experiment.entries if item.name == name), None)
    if entry is None:
        yield place, f"{FILE} lists no system {log.task!r}: the log was added later"
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
            yield place, f"{FILE} says {name} {recorded!r}, the log {logged!r}"


def manifest(run: Path, name: str, check: InvariantCheck) -> Faults:
    """I14: a run's files are unchanged since its MANIFEST.json was written."""
    for finding in verify(run):
        if finding.kind == "absent":
            check.gaps[NO_MANIFEST] += 1
            return
        if not finding.grave:
            check.weak[f"{finding.place}: {finding.kind}: {finding.said}"] += 1
            continue
        yield finding.place, f"{finding.kind}: {finding.said}"
    with suppress(UserError):  # `verify` has reported an unreadable manifest
        for earlier in read_manifest(run / MANIFEST).history:
            check.notes[f"{name} replaces {earlier}"] += 1


def _elsewhere(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Providers' invoices match the ledger, within the tolerated differences."""
    # A bill covers an account, not a system run: reports/audit/audit_report.py adds its check.
    check.skipped["no invoice was given (--invoice FILE)"] += 1
    return iter(())


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant; the docstring of its check function is the sentence that states it."""

    id: str
    title: str
    check: Callable[[Evidence, InvariantCheck], Faults]

    @property
    def meaning(self) -> str:
        """The sentence that states the invariant, from its check function."""
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
