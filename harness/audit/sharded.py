"""I17: a run in shards asked what it planned, each query in one shard."""

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

from harness.audit.evidence import Evidence, Faults, InvariantCheck
from harness.shards.plan import FILE, ShardPlan, parent_of, read_plan

ONE_PIECE = "not cut into shards"


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
