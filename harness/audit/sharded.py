"""I17 and I18: a run in shards asked what it planned, and spent what its shards were granted."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.audit.evidence import Evidence, Faults, InvariantCheck
from harness.ledger.journal import FOLDER, read_chain, read_lines
from harness.shards import lease
from harness.shards.plan import FILE, ShardPlan, parent_of, read_plan, shard_dirs

ONE_PIECE, UNLEASED = "not cut into shards", "its shards had no leases"


def shards_as_planned(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Every planned query is in exactly one shard, and every answered one was planned there."""
    folder = evidence.files.logs[0].parent if evidence.files.logs else None
    parent = parent_of(folder) if folder else None
    if folder is None or parent is None:
        found.skipped[ONE_PIECE] += 1
        return
    plan = _plan(parent, (parent / FILE).stat().st_mtime_ns)
    parts = [part for one in plan.shards if one.name == folder.name for part in one.parts]
    task = evidence.logs[0].task
    ids = {id for part in parts if part.entry == task for id in plan.ids(part)}
    for question, epoch in evidence.newest:
        if question not in ids:
            yield f"sample {question} epoch {epoch}", f"{FILE} did not plan it in {folder.name}"


@lru_cache(maxsize=2)
def _plan(parent: Path, time: int) -> ShardPlan:
    return read_plan(parent) or ShardPlan({}, {})


def planned_once(run: Path, found: InvariantCheck) -> Faults:
    """I17: the shards of each entry share out its questions, none twice and none left out."""
    plan = read_plan(run) or ShardPlan({}, {})
    parts = [(one.name, part) for one in plan.shards for part in one.parts]
    ranges: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for name, part in parts:
        ranges[part.entry, part.suite].append((part.first, part.last, name))
    for (entry, suite), rows in ranges.items():
        end = 0
        for first, last, name in sorted(rows):
            if first != end:
                said = "are in two shards" if first < end else "are in none"
                places = f"questions {min(first, end)} to {max(first, end)} of {suite}"
                yield f"shard {name}", f"{places}, which {entry} is asked, {said}"
            end = max(end, last)
        if end > len(ids := plan.questions.get(suite, ())) or len({*ids}) < len(ids):
            yield f"suite {suite}", f"its list has {len({*ids})} questions, and {entry} {end}"


def spent_as_leased(evidence: Evidence, found: InvariantCheck) -> Faults:
    """No shard has spent more than it was granted, nor have grants passed `--max-usd`."""
    folder = evidence.files.logs[0].parent if evidence.files.logs else None
    parent = parent_of(folder) if folder else None
    if parent is None or not (parent / lease.FILE).is_file():
        found.skipped[UNLEASED if parent else ONE_PIECE] += 1
    return iter(())  # a lease is of a whole shard


def leases_kept(run: Path, found: InvariantCheck) -> Faults:
    """I18: the journal of leases is whole, each grant was within the limit, and each was kept."""
    path = run / lease.FILE
    if not path.is_file():
        found.skipped[UNLEASED] += 1
        return
    for fault in read_chain(path).faults:
        yield f"{lease.FILE} line {fault.line}", f"{fault.kind}: {fault.said}"
    limit, leases = None, dict[str, lease.ShardLease]()
    for number, line in enumerate(read_lines(path), 1):
        try:
            if line["kind"] == lease.LIMIT:
                limit = None if line["usd"] is None else Decimal(line["usd"])
            elif said := _fault(line, leases, limit):
                yield f"{lease.FILE} line {number}", said
        except (KeyError, TypeError, ArithmeticError):
            yield f"{lease.FILE} line {number}", "it says nothing of a lease"
    if limit is not None:
        yield from _overspent(run, leases)


def _overspent(run: Path, leases: Mapping[str, lease.ShardLease]) -> Faults:
    for folder in shard_dirs(run):
        spent, one = _spent(folder), leases.get(folder.name, lease.ShardLease())
        if spent > one.granted:
            said = f"its journals have ${spent:f}, and it was granted ${one.granted:f}"
            yield f"shard {folder.name}", said


def _fault(
    line: Mapping[str, Any], leases: dict[str, lease.ShardLease], limit: Decimal | None
) -> str:
    """Return what is wrong with a line behind those that left some leases; note its own."""
    shard, kind, before = line["shard"], line["kind"], leases.get(line["shard"])
    new = leases[shard] = lease.lease_of(line)
    last = before.generation if before else 0
    if new.generation != last + (kind == "open"):
        return f"shard {shard} has generation {new.generation} after {last}"
    granted = sum((one.granted for one in leases.values()), Decimal(0))
    if kind == "grant" and limit is not None and granted > limit:
        return f"${granted:f} were granted of a limit of ${limit:f}"
    return ""


def _spent(folder: Path) -> Decimal:
    lines = (line for path in folder.glob(f"{FOLDER}/*/*.jsonl") for line in read_lines(path))
    ended = (one for one in lines if one["kind"] == "outcome" and one.get("usd"))
    paid = (one for one in ended if one["cache"] != "read" and not one["from_store"])
    return sum((Decimal(one["usd"]) for one in paid), Decimal(0))
