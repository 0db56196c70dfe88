"""Invariants I17 and I18: a sharded run asked the planned questions and kept its budget leases."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from podium.harness.files import decimal_of
from podium.harness.ledger.journal import FOLDER, read_chain, read_lines
from podium.harness.shards import lease
from podium.harness.shards.plan import FILE, ShardPlan, parent_of, read_plan, shard_dirs
from podium.reports.audit.evidence import Evidence, Faults, InvariantCheck

ONE_PIECE, UNLEASED = "not cut into shards", "its shards had no leases"


def shards_as_planned(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Each planned query is in exactly one shard; each answered query was planned for its shard."""
    folder = evidence.files.logs[0].parent if evidence.files.logs else None
    parent = parent_of(folder) if folder else None
    if folder is None or parent is None:
        check.skipped[ONE_PIECE] += 1
        return
    plan = _plan(parent, (parent / FILE).stat().st_mtime_ns)
    shares = [share for shard in plan.shards if shard.name == folder.name for share in shard.parts]
    task = evidence.logs[0].task
    ids = {id for share in shares if share.entry == task for id in plan.ids(share)}
    for question, epoch in evidence.newest:
        if question not in ids:
            yield f"sample {question} epoch {epoch}", f"{FILE} did not plan it in {folder.name}"


@lru_cache(maxsize=2)
def _plan(parent: Path, time: int) -> ShardPlan:
    return read_plan(parent) or ShardPlan({}, {})


def planned_once(run: Path, check: InvariantCheck) -> Faults:
    """I17: the shards of each system cover each of its questions exactly once."""
    plan = read_plan(run) or ShardPlan({}, {})
    shares = [(shard.name, share) for shard in plan.shards for share in shard.parts]
    ranges: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for name, share in shares:
        ranges[share.entry, share.suite].append((share.first, share.last, name))
    for (entry, suite), rows in ranges.items():
        end = 0
        for start, stop, name in sorted(rows):
            if start != end:
                text = "are in two shards" if start < end else "are in none"
                places = f"questions {min(start, end)} to {max(start, end)} of {suite}"
                yield f"shard {name}", f"{places}, which {entry} is asked, {text}"
            end = max(end, stop)
        if end > len(ids := plan.questions.get(suite, ())) or len({*ids}) < len(ids):
            yield f"suite {suite}", f"its list has {len({*ids})} questions, and {entry} {end}"


def spent_as_leased(evidence: Evidence, check: InvariantCheck) -> Faults:
    """No shard spent more than its leases granted, and the grants stayed within `--max-usd`."""
    folder = evidence.files.logs[0].parent if evidence.files.logs else None
    parent = parent_of(folder) if folder else None
    if parent is None or not (parent / lease.FILE).is_file():
        check.skipped[UNLEASED if parent else ONE_PIECE] += 1
    return iter(())  # a lease is for a whole shard: see `leases_kept`


def leases_kept(run: Path, check: InvariantCheck) -> Faults:
    """I18: the journal of leases is intact, grants are within the limit, shards within grants."""
    path = run / lease.FILE
    if not path.is_file():
        check.skipped[UNLEASED] += 1
        return
    for fault in read_chain(path).faults:
        yield f"{lease.FILE} line {fault.line}", f"{fault.kind}: {fault.said}"
    granted = GrantedDollars()
    for number, line in enumerate(read_lines(path), 1):
        try:
            message = granted.fault(line)
        except (KeyError, TypeError, ArithmeticError):
            message = "it is not a lease"
        if message:
            yield f"{lease.FILE} line {number}", message
    for folder in shard_dirs(run):
        for message in granted.broken_by(folder):
            yield f"shard {folder.name}", message


@dataclass(slots=True)
class GrantedDollars:
    """The dollars that a journal of leases grants to each shard, to check the shards' journals."""

    limit: Decimal | None = None
    leases: dict[str, lease.ShardLease] = field(default_factory=dict[str, lease.ShardLease])
    most: dict[tuple[str, int], Decimal | None] = field(
        default_factory=dict[tuple[str, int], Decimal | None]
    )

    def fault(self, line: Mapping[str, Any]) -> str:
        """Add the next line of the journal of leases; return the line's fault; empty if none."""
        if line["kind"] == lease.LIMIT:
            self.limit = None if line["usd"] is None else Decimal(line["usd"])
            return ""
        shard, kind, previous = line["shard"], line["kind"], self.leases.get(line["shard"])
        new = self.leases[shard] = lease.lease_of(line)
        number, key = previous.generation if previous else 0, (shard, new.generation)
        if new.generation != number + (kind == "open"):
            return f"shard {shard} has generation {new.generation} after {number}"
        had = self.most.get(key, Decimal(0))
        unlimited = had is None or (kind == "open" and self.limit is None)
        self.most[key] = None if unlimited else max(had or Decimal(0), new.granted)
        total = sum((holder.granted for holder in self.leases.values()), Decimal(0))
        if kind == "grant" and self.limit is not None and total > self.limit:
            return f"${total:f} were granted, but the limit is ${self.limit:f}"
        return ""

    def broken_by(self, folder: Path) -> Iterator[str]:
        """Yield how the shard in a folder broke its leases of dollars.

        Faults: calls without a lease, more dollars than granted, several processes under one lease.
        """
        spent = Decimal(0)
        try:
            generations = _by_generation(folder)
        except (KeyError, TypeError, ValueError, ArithmeticError):  # I14 names the line
            yield "a line of its journals is incomplete, so its dollars are unknown"
            return
        for generation, pids, usd in generations:
            spent += usd
            if generation and (folder.name, generation) not in self.most:
                yield f"generation {generation} has made calls without an open lease"
            limit = self.most.get((folder.name, generation))
            if limit is not None and spent > limit:
                yield f"its journals have ${spent:f}, but its lease granted ${limit:f}"
            if generation and len(pids) > 1:
                yield f"{len(pids)} processes have called under lease {generation}"


def _by_generation(folder: Path) -> list[tuple[int, set[int], Decimal]]:
    """Return per lease of a shard: its number (0: no lease), process ids, and dollars paid."""
    pids, paid = dict[int, set[int]](), defaultdict[int, Decimal](Decimal)
    for path in folder.glob(f"{FOLDER}/*/*.jsonl"):
        generation = 0
        for line in read_lines(path):
            if line["kind"] == "head":
                generation = line.get("generation", 0)
                pids.setdefault(generation, set()).add(line["pid"])
            elif line["kind"] == "outcome" and line["cache"] != "read" and not line["from_store"]:
                paid[generation] += decimal_of(f"{line['usd'] or 0}")
    return [(generation, pids[generation], paid[generation]) for generation in sorted(pids)]
