"""Audits a directory: checks all its runs, adds up tokens and dollars; result as text or JSON.

A system run is one run of one system on one suite.
"""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from podium.harness.files import read_json
from podium.harness.ledger.call import Call, canonical, plain
from podium.harness.ledger.details import SCHEMA as QUERY
from podium.harness.ledger.join import merged
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.logs import IN_FLIGHT
from podium.harness.ledger.manifest import FILE
from podium.harness.ledger.runs import (
    UP,
    Gathered,
    RunFiles,
    gather,
    naming_system_run,
    system_runs_below,
)
from podium.harness.ledger.system_runs import Beside
from podium.harness.ledger.totals import CallSum, add_up, sums_by, total
from podium.harness.parallel import LARGE, map_over_processes, without_collector
from podium.harness.prices.cost import Service
from podium.harness.records import SHARED
from podium.harness.request import STANDARD
from podium.harness.shards.lease import FILE as LEASES
from podium.harness.shards.plan import FILE as PLAN
from podium.harness.shards.plan import parent_of, shard_dirs
from podium.harness.text import pluralise, terminal_width
from podium.reports.audit.amounts import explain, has_totals, run_groups
from podium.reports.audit.evidence import (
    NAMES,
    NO_TOKENS,
    AuditFault,
    Evidence,
    Faults,
    InvariantCheck,
    InvariantVerdict,
    Sums,
    Tokens,
    join_tokens,
    minus,
    spent,
    spent_by,
    sum_tokens,
    tokens_of,
    told,
)
from podium.reports.audit.invariants import (
    AGAIN,
    INVARIANTS,
    SAME,
    manifest,
    same_twice,
    table_again,
)
from podium.reports.audit.routerarena_audit import SCHEMA as PREDICTIONS
from podium.reports.audit.sharded import leases_kept, planned_once
from podium.reports.audit.shared_draws import SharedDraw, draws_of, unbought

UNLABELLED = "unlabelled"
"""The label of calls that podium did not make: no record states whether they were paid."""


@dataclass(slots=True)
class Reconciled:
    """Sums over system runs: counts, tokens and dollars, and the findings on each invariant."""

    counts: Counter[str] = field(default_factory=Counter[str])
    tokens: Sums = field(default_factory=dict[str, Tokens])
    causes: dict[str, Sums] = field(default_factory=dict[str, Sums])
    """Inspect's record (`samples`, `runs`, `hooks`) -> cause -> excess of the ledger, in tokens."""
    billing: dict[str, dict[str, CallSum]] = field(default_factory=dict[str, dict[str, CallSum]])
    """Label and scope, e.g. `live inference` -> way of billing (see `BILLING`) -> sums of calls."""
    bought: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    """Id of paid call -> digest of request and reply (None: no reply); empty if none is shared."""
    shared: list[SharedDraw] = field(default_factory=list[SharedDraw])
    findings: dict[str, InvariantCheck] = field(
        default_factory=lambda: {invariant.id: InvariantCheck() for invariant in INVARIANTS}
    )

    @property
    def dollars(self) -> dict[str, CallSum]:
        """Label and scope, e.g. `live inference` -> sums of the calls' dollars."""
        return {name: total(ways.values()) for name, ways in self.billing.items()}

    def check(self, id: str, task: str, check: Callable[..., Faults], *arguments: object) -> None:
        """Run `check`, the function of invariant `id`; add its findings, labelled with `task`."""
        result = InvariantCheck()
        result.faults = [AuditFault(id, task, *fault) for fault in check(*arguments, result)]
        self.findings[id].add(result)

    def join(self, table: "Reconciled") -> None:
        """Add the sums and findings in `table`, those of other system runs."""
        self.counts += table.counts
        self.tokens = join_tokens((self.tokens, table.tokens))
        for name, causes in table.causes.items():
            self.causes[name] = join_tokens((self.causes.get(name, {}), causes))
        for name, ways in table.billing.items():
            sums = self.billing.setdefault(name, {})
            for way, dollars in ways.items():
                sums[way] = sums.get(way, CallSum()).plus(dollars)
        self.bought.update(table.bought)
        self.shared += table.shared
        for id, result in table.findings.items():
            self.findings[id].join(result)


def reconciled(evidence: Evidence) -> Reconciled:
    """Return the sums and findings of one system run, from its joined records."""
    result = Reconciled(counts=_counts(evidence))
    if evidence.facts and evidence.facts.draws == SHARED:
        result.bought, result.shared = draws_of(evidence)
    ways = sums_by(evidence.rows, lambda row: (_scope(evidence, row), _billed(row)))
    for (name, way), dollars in ways.items():
        result.billing.setdefault(name, {})[way] = dollars
    ledger = result.tokens["ledger"] = sum_tokens(spent(evidence.rows).values())
    unbelieved = minus(ledger, sum_tokens(spent(evidence.counted).values()))
    for name, sums_of in (("samples", _samples), ("runs", _runs), ("hooks", _hooks)):
        result.tokens[name], causes = sums_of(evidence)
        reasons = {**causes, "counts that cannot be": unbelieved}
        reasons["UNEXPLAINED"] = minus(ledger, sum_tokens((result.tokens[name], *reasons.values())))
        result.causes[name] = {cause: diff for cause, diff in reasons.items() if diff != NO_TOKENS}
    for invariant in INVARIANTS:
        result.check(invariant.id, evidence.name, invariant.check, evidence)
    return result


def _scope(evidence: Evidence, row: Call) -> str:
    entry = evidence.seen.get(row.event or "")
    foreign = row.journal is None and entry is not None and entry.log.facts is None
    return f"{UNLABELLED if foreign else row.label} {row.scope}"


REFUSED, OPEN, KEPT = "refused", "without a known end", "from the local cache"
CACHED, UNPRICED, AT_LIST = "partly from the provider's cache", "without a price", "at list price"
SERVICES = tuple(f"at {service} rates" for service in get_args(Service) if service != STANDARD)
BILLING = (REFUSED, OPEN, KEPT, UNPRICED, CACHED, *SERVICES, AT_LIST)
"""The ways in which an attempt of a call can be billed; each attempt has one of them."""


def _billed(row: Call) -> str:
    if row.cache == "read":
        return KEPT
    if row.billable != "yes":
        return REFUSED if row.billable == "no" else OPEN
    if row.usd is None:
        return UNPRICED
    if row.cache_read or row.cache_write:
        return CACHED
    return AT_LIST if row.service == STANDARD else f"at {row.service} rates"


def _counts(evidence: Evidence) -> Counter[str]:
    calls = evidence.calls
    untold = {call for call, record in calls.items() if record.outcome is None}
    rows = evidence.rows
    return Counter(
        {
            "sittings": 1,
            "logs": len(evidence.logs),
            "journals": len(evidence.journals),
            "intents": len(calls),
            "outcomes": len(calls) - len(untold),
            "attempts": len(rows),
            "retries": sum(row.attempt > 1 for row in rows),
            "events": len(evidence.seen),
            "without event": sum(row.event is None for row in rows),
            "without journal": sum(row.journal is None for row in rows),
            "cached": sum(row.cache == "read" for row in rows),
            "shared": sum(row.shared_from is not None for row in rows),
            "failed": sum(row.error is not None for row in rows),
            "refused": sum(row.billable == "no" and row.error is not None for row in rows),
            "unknown": sum(row.billable == "unknown" for row in rows),
            "in flight": sum(row.error == IN_FLIGHT for row in rows),
            "untold": len(untold - {row.call for row in rows if row.error == IN_FLIGHT}),
        }
    )


def _samples(evidence: Evidence) -> tuple[Tokens, Sums]:
    """Return Inspect's tokens of each query's newest sample, and cause -> tokens of other calls."""
    newest = evidence.newest.values()
    theirs = sum_tokens(told(usage) for sample in newest for usage in sample.model_usage.values())
    last_events = {event.id for sample in newest for event in sample.events}
    older_rows = (row for row in evidence.counted if row.event not in last_events)
    again, lost = "attempts that were made again", "calls that no log has"
    lost = IN_NO_LOG if evidence.is_served else lost
    return theirs, spent_by(older_rows, lambda row: again if row.event else lost)


def _runs(evidence: Evidence) -> tuple[Tokens, Sums]:
    log = next((log for log in evidence.logs if has_totals(log)), None)
    if log is None:
        tokens = sum_tokens(spent(evidence.counted).values())
        cause = IN_NO_LOG if evidence.is_served else "runs that were stopped have no total"
        return NO_TOKENS, {cause: tokens}
    groups = run_groups(evidence, log)
    theirs = {name: told(usage) for name, usage in log.model_usage.items()}
    included, _ = explain(theirs, groups, spent)
    leftover = {group: rows for group, rows in groups.items() if group not in included}
    causes = {f"{kind} {log}": tokens_of(add_up(rows)) for (kind, log, _), rows in leftover.items()}
    return sum_tokens(theirs.values()), causes


def _hooks(evidence: Evidence) -> tuple[Tokens, Sums]:
    """Return the token totals of Inspect's hooks, and cause -> tokens that only the ledger has."""
    journals = evidence.journals
    theirs = sum_tokens(told(line) for journal in journals for line in journal.totals)
    complete = {journal.name for journal in journals if journal.totals}
    rows = (row for row in evidence.counted if row.journal not in complete)
    killed, without = "processes that were killed", "calls without a journal"
    made_by = IN_NO_LOG if evidence.is_served else killed
    return theirs, spent_by(rows, lambda row: made_by if row.journal else without)


IN_NO_LOG = "calls of requests that were served"
SHARE = 4


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit: sums over all system runs, and a verdict on each invariant."""

    strict: bool
    table: Reconciled
    verdicts: tuple[InvariantVerdict, ...]

    @property
    def ok(self) -> bool:
        """Whether no invariant fails."""
        return all(verdict.status != "fail" for verdict in self.verdicts)


def beside_a_report(dirs: Sequence[Path]) -> Beside[Reconciled]:
    """Return an object that lets a report audit system runs while the report reads their logs."""
    return Beside(of_gathered, [run for folder in dirs for run in system_runs_below(folder)])


def audit(
    folder: Path,
    *,
    strict: bool = False,
    bills: Sequence[InvariantCheck] = (),
    anew: InvariantCheck | None = None,
    beside: Beside[Reconciled] | None = None,
) -> Audit:
    """Check all invariants in all system runs below a directory.

    `bills`: findings on invoices (I10); `anew`: findings on answers that were graded again (I16);
    `beside`: sums and findings of system runs that a report has already read.
    """
    system_runs = system_runs_below(folder)
    result = Reconciled()
    tables = [beside and beside.made_of(files) for files in system_runs]
    other_runs = [files for files, table in zip(system_runs, tables, strict=True) if table is None]
    for table in (*filter(None, tables), *audit_parts(other_runs)):
        result.join(table)
    _check_whole(folder, system_runs, result, bills)
    if anew is not None:
        grades = result.findings["I16"]
        if not anew.faults and set(anew.notes) <= {SAME}:
            del grades.weak[AGAIN]  # grading again confirms the verdicts that a newer log changed
        grades.add(anew)
    verdicts = tuple(
        InvariantVerdict(
            invariant.id,
            invariant.title,
            invariant.meaning,
            status=result.status(strict=strict),
            checked=result.checked,
            reasons=result.reasons(),
            faults=tuple(sorted(set(result.faults))),
        )
        for invariant, result in zip(INVARIANTS, result.findings.values(), strict=True)
    )
    return Audit(strict, result, verdicts)


def audit_parts(system_runs: Sequence[RunFiles], large: int = LARGE) -> Iterator[Reconciled]:
    """Yield sums and findings of system runs.

    If their files have at least `large` bytes together, several worker processes read them.
    """
    many = sum(files.size for files in system_runs) >= large
    shares = [system_runs[start : start + SHARE] for start in range(0, len(system_runs), SHARE)]
    yield from map_over_processes(of_system_runs, shares, many=many)


def of_system_runs(system_runs: Iterable[RunFiles]) -> Reconciled:
    """Return the sums and findings of some system runs; also called in worker processes."""
    result = Reconciled()
    with without_collector():
        for files in system_runs:
            with naming_system_run(files):
                result.join(of_gathered(gather(files, digests=True)))
    return result


def of_gathered(gathered: Gathered) -> Reconciled:
    """Return the sums and findings of one system run, from the records read from its files."""
    return reconciled(Evidence(**vars(merged(gathered)), name=system_run_name(gathered.files)))


def system_run_name(files: RunFiles) -> str:
    """Return how faults name a system run: `FOLDER/TASK`, or `TASK` without a folder."""
    return f"{files.folder}/{files.task}" if files.folder else files.task


def _check_whole(
    folder: Path,
    system_runs: Sequence[RunFiles],
    result: Reconciled,
    bills: Sequence[InvariantCheck],
) -> None:
    def shown(run: Path) -> str:
        return run.relative_to(folder).as_posix() if run.is_relative_to(folder) else run.name

    smallest = min(system_runs, key=lambda files: (files.size, system_run_name(files)))
    result.check("I13", system_run_name(smallest), same_twice, smallest)
    runs = runs_of(folder, system_runs)
    result.counts["run directories"] = len(runs)
    for run in runs:
        name = "manifest" if shown(run) == "." else f"manifest of {shown(run)}"
        result.check("I14", name, manifest, run, name)
    tasks = {files.task for files in system_runs if files.journals}
    for place in sorted({folder, *runs}):
        if (place / "report" / "table.json").is_file():
            table = f"{shown(place)}/report/table.json".removeprefix("./")
            result.check("I13", table, table_again, place, table, tasks)
    for run in (run for run in runs if shard_dirs(run)):
        result.check("I17", f"{shown(run)}/{PLAN}".removeprefix("./"), planned_once, run)
        result.check("I18", f"{shown(run)}/{LEASES}".removeprefix("./"), leases_kept, run)
    cache = InvariantCheck()
    cache.faults = [AuditFault("I8", *draw) for draw in unbought(result.bought, result.shared)]
    result.findings["I8"].join(cache)
    if bills:
        result.findings["I10"] = InvariantCheck()
    for bill in bills:
        result.findings["I10"].add(bill)


def runs_of(folder: Path, system_runs: Sequence[RunFiles]) -> tuple[Path, ...]:
    """Return the directories that should have a MANIFEST.json; for shards, that of their run."""
    folders: set[Path] = set()
    for files in system_runs:
        parents = {path.parent for path in files.logs}
        parents |= {path.parent.parent.parent for path in files.journals}
        for parent in parents:
            places = [parent, *parent.parents][: UP + 1]
            marked = (place for place in places if (place / FILE).is_file())
            rooted = (place for place in places if (place / FOLDER).is_dir())
            place = next(marked, next(rooted, parent))
            run = parent_of(place)  # a shard's parent: its manifest covers all shards
            folders.add(run if run and run.is_relative_to(folder) else place)
    return tuple(sorted(folders))


SHOWN = 10
"""Maximum number of printed faults per invariant; the audit's JSON has all faults."""


COUNTS = (
    ("intents", "calls recorded before they were sent (journals)"),
    ("outcomes", "calls recorded after they had ended (journals)"),
    ("in flight", "calls in flight when their process ended"),
    ("untold", "calls that ended without a record of the outcome (the log may have it)"),
    ("attempts", "attempts in the ledger, one row each"),
    ("retries", "of them repeated after a failed attempt"),
    ("failed", "of them failed"),
    ("refused", "of them refused by the provider: not billed"),
    ("unknown", "of them without an answer or a possible count: billed within a range"),
    ("cached", "of them read from the local cache: paid 0"),
    ("shared", "of these, draws that another system of the run had paid for: paid once"),
    ("events", "model events in logs"),
    ("without event", "attempts that no log has"),
    ("without journal", "attempts that no journal has"),
)
PAID = (
    "US dollars. Only live dollars were paid; recorded and rehearsal dollars are would-be\n"
    "costs. at least, at most: bounds if it is unknown whether an attempt was\n"
    "billed. at list price: as if nothing had been cached. Cached tokens, read or\n"
    "written, are not in input; reasoning is in output."
)
RECORD_TITLES = {
    "ledger": "ledger",
    "samples": "Inspect, newest samples",
    "runs": "Inspect, runs",
    "hooks": "Inspect, hooks",
}


def _wrapped(text: str, subsequent_indent: str) -> list[str]:
    """Return a text in lines that fit the terminal (at most 120 columns); no word is split."""
    return textwrap.wrap(
        text,
        min(120, terminal_width() or 120),
        subsequent_indent=subsequent_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_text(audit: Audit) -> str:
    """Return an audit for a terminal: sums, verdicts, and the first faults of each invariant."""
    return "\n".join((*_reconciliation(audit.table), "", *_verdicts(audit), *_faults(audit)))


def _reconciliation(table: Reconciled) -> Iterator[str]:
    counts = table.counts
    yield (
        f"RECONCILIATION of {pluralise(counts['sittings'], 'system run')}: "
        f"{pluralise(counts['logs'], 'log')}, {pluralise(counts['journals'], 'journal')}"
    )
    if counts["run directories"] > 1:
        yield f"put together from {counts['run directories']:,} run directories"
    yield from (f"{counts[name]:>14,}  {meaning}" for name, meaning in COUNTS)
    yield ""
    yield f"{'tokens':<28}{'input':>13}{'cached':>13}{'output':>13}{'reasoning':>13}"
    ledger = table.tokens.get("ledger", NO_TOKENS)
    for name, title in RECORD_TITLES.items():
        tokens = table.tokens.get(name, NO_TOKENS)
        yield _tokens_line(title, tokens)
        for cause, difference in sorted(table.causes.get(name, {}).items()):
            yield _tokens_line(f"  + {cause}", difference)
        if name != "ledger" and minus(ledger, tokens) == NO_TOKENS:
            yield "  equal to the ledger"
    yield ""
    yield f"{'dollars':<20}{'at the book':>15}{'at least':>15}{'at most':>15}{'at list price':>15}"
    for name, dollars in sorted(table.dollars.items()):
        yield from _dollars_lines(name, dollars)
    yield PAID
    if any(name.startswith(UNLABELLED) for name in table.dollars):
        yield "unlabelled: podium did not run it, and no record states whether it was paid."


def _tokens_line(title: str, tokens: Tokens) -> str:
    cached = tokens[2] + tokens[3]
    line = f"{title:<28}{tokens[0]:>13,}{cached:>13,}{tokens[1]:>13,}{tokens[4]:>13,}"
    return line if len(title) <= 28 else f"{title}\n{line.removeprefix(title):>80}"


def _dollars_lines(name: str, dollars: CallSum) -> Iterator[str]:
    figures = dollar_figures(dollars)
    amounts = (figures[kind] or "unknown" for kind in ("total", "low", "high", "listed"))
    yield f"{name:<20}" + "".join(f" {amount:>14}" for amount in amounts)
    if unpriced := dollars.paid.unpriced:
        yield f"  {unpriced:,} calls have no price; the others cost {plain(dollars.usd)}"
    if dollars.unknown:
        yield f"  {dollars.unknown:,} attempts may have been billed"


def _verdicts(audit: Audit) -> Iterator[str]:
    yield "INVARIANTS" + (" (strict)" if audit.strict else "")
    for verdict in audit.verdicts:
        text = f"{verdict.status:<15}{verdict.invariant:<4} {verdict.title}: {verdict.meaning}"
        yield from _wrapped(text, subsequent_indent=" " * 20)
        for reason, often in verdict.reasons:
            yield from _wrapped(f"{'':<20}{reason} ({often:,})", subsequent_indent=" " * 22)
    yield ""
    weak, failed = (
        sum(verdict.status == status for verdict in audit.verdicts) for status in ("weak", "fail")
    )
    text = "No invariant fails" if audit.ok else f"{failed} of {len(audit.verdicts)} fail"
    verb = "is weak: `--strict` fails on it" if weak == 1 else "are weak: `--strict` fails on them"
    yield f"{text}; {weak} {verb}." if weak else f"{text}."


def _faults(audit: Audit) -> Iterator[str]:
    for verdict in audit.verdicts:
        if verdict.faults:
            yield ""
            yield f"{verdict.invariant} {verdict.title}: {len(verdict.faults):,} faults"
            for fault in verdict.faults[:SHOWN]:
                text = f"  {fault.task}, {fault.where}: {fault.said}"
                yield from _wrapped(text, subsequent_indent="    ")
            if remainder := verdict.faults[SHOWN:]:
                yield f"  and {len(remainder):,} more; --json FILE has all of them"


SCHEMA = "podium-audit-1"


def as_json(audit: Audit) -> bytes:
    """Return an audit with all its faults as JSON; the same files give the same bytes."""
    table = audit.table
    data = {
        "schema": SCHEMA,
        "strict": audit.strict,
        "ok": audit.ok,
        "reconciliation": {
            "counts": dict(table.counts),
            "tokens": _tokens(table.tokens),
            "ledger_less": {name: _tokens(causes) for name, causes in table.causes.items()},
            "usd": {name: dollar_figures(dollars) for name, dollars in table.dollars.items()},
            "billing": {
                name: {way: dollar_figures(dollars) for way, dollars in ways.items()}
                for name, ways in table.billing.items()
            },
        },
        "invariants": [asdict(verdict) for verdict in audit.verdicts],
    }
    return canonical(data) + b"\n"


SCHEMAS = (SCHEMA, QUERY, PREDICTIONS)


def is_audit(path: Path) -> bool:
    """Return whether `podium audit` wrote the file at `path`, so that it may be overwritten."""
    try:
        content: object = read_json(path)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and cast(dict[str, object], content).get("schema") in SCHEMAS


def _tokens(sums: Sums) -> dict[str, dict[str, int]]:
    return {name: dict(zip(NAMES, tokens, strict=True)) for name, tokens in sums.items()}


def dollar_figures(dollars: CallSum) -> dict[str, Any]:
    """Return the dollars and counts in a sum of calls for the audit's JSON; None: unknown."""
    paid = dollars.paid
    amounts = {
        "priced": dollars.usd,
        "low": paid.low,
        "high": paid.high,
        # Only calls that may or may not have been billed can lack a list price.
        "listed": None if dollars.unlisted > dollars.unknown else dollars.usd_list,
        "total": dollars.billed,
    }
    counts = {"calls": dollars.calls, "unpriced": paid.unpriced, "unknown": paid.unknown}
    return {**{name: plain(value) for name, value in amounts.items()}, **counts}
