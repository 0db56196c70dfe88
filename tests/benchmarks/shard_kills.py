"""What a run in shards loses or buys twice when a node or a process is killed.

    python tests/benchmarks/shard_kills.py --launcher local     # 20 runs, each with a shard killed
    python tests/benchmarks/shard_kills.py --launcher ray      # three raylets, a node is killed

Each point is a run of three shards, 40 calls of rehearsal workers. A node is killed with all that
it runs, by SIGKILL, and another one joins. Twelve points are spread over the calls; the others
are inside: when a shard has a lease and no call, right after an intent, a reply, a log or a grant
was written, when a first shard has ended, and (Ray) the node that hands out leases. Calls that were
in flight are asked again, and so are those whose end stands only in a log that Inspect recovered.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.harness.ledger.journal import FOLDER, read_lines
from podium.harness.shards.lease import FILE
from podium.harness.shards.plan import ENDED, shard_dirs
from podium.reports.audit import audit
from tests.harness.shards.ray_nodes import (
    NODE,
    begun,
    endless,
    kill,
    lease_node,
    lose,
    node_of,
    nodes,
    on,
    running,
)
from tests.harness.shards.test_sharded_run import ALONE, answered, asked

WORDS = ["--suite", "practice-integer", *ALONE, "--limit", "20", "--time-scale", "1"]
WORDS += ["--max-usd", "5"]
CALLS = 40
Seen = Callable[[Path], Iterator[Path]]
"""A run's directory -> the shards of which something has just been seen."""


def calls(number: int) -> Seen:
    """See the whole run's calls reach a number."""

    def seen(run: Path) -> Iterator[Path]:
        if asked(run).total() >= number:
            yield from shard_dirs(run)

    return seen


def leased(run: Path) -> Iterator[Path]:
    """See a shard with a lease and without a call."""
    lines = read_lines(run / FILE) if (run / FILE).exists() else ()
    for name in {one["shard"] for one in lines if one["kind"] == "open"}:
        if not [*(run / "shards" / name).glob(f"{FOLDER}/*/*.jsonl")]:
            yield run / "shards" / name


def written(kind: str, least: int) -> Seen:
    """See a line of a kind come last in a journal of some calls."""

    def seen(run: Path) -> Iterator[Path]:
        for folder in shard_dirs(run):
            for path in folder.glob(f"{FOLDER}/*/*.jsonl"):
                whole = [one["kind"] for one in read_lines(path)]
                if whole[-1:] == [kind] and whole.count("outcome") >= least:
                    yield folder

    return seen


def logged() -> Seen:
    """See a log change that was there before."""
    before: dict[Path, int] = {}

    def seen(run: Path) -> Iterator[Path]:
        for path in run.glob("shards/*/*.eval"):
            now = path.stat().st_mtime_ns
            if path in before and before[path] != now:
                yield path.parent
            before[path] = now

    return seen


def granted(run: Path) -> Iterator[Path]:
    """See a grant come last in the journal of leases."""
    lines = [*read_lines(run / FILE)] if (run / FILE).exists() else []
    if lines and lines[-1]["kind"] == "grant":
        yield run / "shards" / lines[-1]["shard"]


def ended(run: Path) -> Iterator[Path]:
    """See what still runs once a first shard has ended."""
    over = {path.parent for path in run.glob(f"shards/*/{ENDED}")}
    yield from (one for one in shard_dirs(run) if over and one not in over)


def points(number: int, launcher: str) -> list[tuple[str, Seen]]:
    inside: list[tuple[str, Seen]] = [
        ("a lease, no call", leased),
        ("the first intent", written("intent", 0)),
        ("an intent", written("intent", 1)),
        ("a reply", written("outcome", 3)),
        ("a log", logged()),
        ("a grant", granted),
        ("a shard ended", ended),
        (LEASES, calls(8)) if launcher == "ray" else ("a log", logged()),
    ]
    inside = inside[: number * 2 // 5]
    rest = number - len(inside)
    spread = [1 + at * (CALLS - 3) // max(rest - 1, 1) for at in range(rest)]
    return [(f"{n} calls", calls(n)) for n in spread] + inside


LEASES = "node of the leases"


def main() -> None:
    """Kill at every point, and print what became of each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--launcher", choices=("local", "ray"), default="local")
    given = parser.parse_args()
    wrong, missed = 0, 0
    print(
        "killed at            after s  calls  answered  lost  twice  in flight  by log  audit",
        flush=True,
    )
    with nodes(3) if given.launcher == "ray" else nullcontext() as cluster:
        for name, seen in points(given.points, given.launcher):
            folder = Path(tempfile.mkdtemp())
            bad, hit = _point(folder / "run", name, seen, cluster)
            print(f"  kept in {folder}", flush=True) if bad else shutil.rmtree(folder)
            wrong, missed = wrong + bad, missed + (not hit)
    print(f"{given.points} points, {given.points - missed} killed, {wrong} with a loss or fault")


def _point(run: Path, name: str, seen: Seen, cluster: Any) -> tuple[bool, bool]:
    words = [*WORDS, *(on(cluster) if cluster else ("--shards", "3"))]
    start = time.monotonic()
    with begun(run, words) as process:
        victim: Any = None
        while victim is None and process.poll() is None:
            victim = _victim(run, name, seen, cluster)
            time.sleep(0.01)
        at = time.monotonic() - start
        before = asked(run).total() if run.exists() else 0
        if cluster and victim is not None:
            cluster.add_node(**NODE)
        status = process.wait(300)
    twice = (asked(run) - answered(run)).total()
    got = answered(run).total()
    found = audit(run)
    faults = [one.invariant for one in found.verdicts if one.status == "fail"]
    flying, by_log = (found.table.counts[one] for one in ("in flight", "untold"))
    named = flying + by_log == endless(run)
    said = ", ".join(faults) or ("clean" if named else "does not name all calls without an end")
    figures = f"{at:9.1f} {before:6} {got:9} {CALLS - got:5} {twice:6} {flying:10} {by_log:7}"
    print(f"{name:19}{figures}  {said}{'' if victim else '  (never came)'}", flush=True)
    return bool(status or faults or twice or got != CALLS or not named), victim is not None


def _victim(run: Path, name: str, seen: Seen, cluster: Any) -> Any:
    """Kill what runs a shard of which something was seen, and return it; None where none was."""
    if not (run / "shards.json").exists():
        return None
    for folder in seen(run):
        for process in running(folder, b"shard")[:1]:
            if cluster is None:
                kill(process)
                return process
            node = lease_node(cluster, run) if name == LEASES else node_of(cluster, process)
            if node is not None and node != cluster.head_node:  # where the run is at home
                lose(cluster, node)
                return node
    return None


if __name__ == "__main__":
    main()
