"""How long a run of a million queries in shards takes to be read as one, and what that needs.

    python tests/benchmarks/shards_merged.py /scratch/folder                # 500 shards, minutes
    python tests/benchmarks/shards_merged.py /scratch/folder --shards 50    # a small one

One shard of 2,000 queries is really run (rehearsal). All others are synthetic: its answers in
another order, as those of other questions and systems, ten shards to a system, each with figures
bound to a manifest. Their logs and journals have the right sizes and hold nothing but zeros, so a
report that opened one would fail. Measured are `podium report` of a tenth and of all, whole and by
stages; and on the one real shard what reads every log: --deep, export, audit and --site.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[2]))
from podium.harness.ledger.manifest import FILE, read_manifest
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.harness.shards.figures import write_figures
from podium.harness.shards.plan import Shard, ShardPart, ShardPlan, shard_dir, write_plan
from podium.reports.derived import compare
from podium.reports.report import report_of
from tests.benchmarks.ledger_speed import measure

QUERIES = 2000
QUESTIONS = 50
PER_SYSTEM = 10
"""Shards of one system: 20,000 questions."""
SUITE = "practice-integer"
Made = TypeVar("Made")


def source_of(scratch: Path) -> Path:
    """Return a shard that was really asked."""
    folder = scratch / "source"
    if not (folder / "shards/0001/figures.parquet").exists():
        asked = ["--suite", SUITE, "--pool", "rehearsal", "--system", "single:sage"]
        extent = ["--limit", str(QUESTIONS), "--epochs", str(QUERIES // QUESTIONS)]
        how = ["--time-scale", "0", "--shards", "1", "--log-dir", str(folder)]
        command = [sys.executable, "-m", "podium", "run", *asked, *extent, *how]
        subprocess.run(command, check=True)
    return folder


def made(scratch: Path, shards: int) -> Path:
    """Return a run of so many shards, made now if it is not there."""
    parent = scratch / f"{shards}-shards"
    if (parent / "shards.json").exists():
        return parent
    source = shard_dir(source_of(scratch), "0001")
    ((run,), _) = load_runs([source])
    plan: list[Shard] = []
    for number in range(shards):
        at = number // PER_SYSTEM
        system = f"single:made-{at}" if at < 5 else f"made-{at}"
        first = number % PER_SYSTEM * QUERIES
        part = ShardPart(f"{SUITE} {system}", SUITE, first, first + QUERIES)
        plan.append(Shard(f"{number + 1:04d}", 1, (part,)))
        folder = shard_dir(parent, plan[-1].name)
        hollow(source, folder)
        write_figures(folder, [another(run, system, first, random.Random(number))])
    ids = tuple(f"q-{number:06d}" for number in range(PER_SYSTEM * QUERIES))
    shutil.copyfile(source.parents[1] / "experiment.json", parent / "experiment.json")
    write_plan(parent, ShardPlan({}, {SUITE: ids}, tuple(plan)))
    return parent


def hollow(source: Path, folder: Path) -> None:
    """Make a shard's directory whose logs and journals are zeros."""
    folder.mkdir(parents=True)
    for one in read_manifest(source / FILE).files:
        path = folder / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            shutil.copyfile(source / one.path, path)
        else:
            with path.open("wb") as file:
                file.truncate(one.size)
    for name in (FILE, "outcome.json"):
        shutil.copyfile(source / name, folder / name)


def another(run: SystemRun, system: str, first: int, luck: random.Random) -> SystemRun:
    """Return a run of another system, whose answers are those of a real one in another order."""
    attempts = luck.sample(run.attempts, len(run.attempts))
    return replace(
        run,
        facts=run.facts.model_copy(update={"system": system}),
        epochs=1,
        attempts=tuple(
            replace(one, question=f"q-{first + at:06d}", epoch=1, sample=f"{system}-{first + at}")
            for at, one in enumerate(attempts)
        ),
    )


def timed(title: str, work: Callable[[], Made]) -> Made:
    """Do something and print its processor seconds."""
    began = time.process_time()
    found = work()
    print(f"  {title}: {time.process_time() - began:.1f} s of one processor")
    return found


def main() -> None:
    """Make the shards and measure."""
    parser = argparse.ArgumentParser(description="How fast many shards are read as one run.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--shards", type=int, default=500, help="of the larger run (500)")
    asked = parser.parse_args()
    for shards in (max(asked.shards // 10, PER_SYSTEM), asked.shards):
        parent = made(asked.scratch, shards)
        words = ["report", str(parent), "--out", str(asked.scratch / "report")]
        print(f"{shards * QUERIES:,} queries, podium report: {measure(words)}")
        runs, _ = timed("figures read and joined", lambda parent=parent: load_runs([parent]))
        assert sum(len(run.attempts) for run in runs) == shards * QUERIES
        timed("statistics", lambda runs=runs: compare(runs))
        del runs
        timed("all of it, without imports", lambda parent=parent: report_of([parent]))
    real, out = str(source_of(asked.scratch)), str(asked.scratch / "of-one")
    site = ["--out", out, "--site", f"{out}-site"]
    for words in (["report", "--out", out], ["report", "--deep", "--out", out], ["report", *site],
                  ["ledger", "export", "--out", f"{out}-ledger"], ["audit"]):  # fmt: skip
        print(f"the one real shard, {' '.join(words)}: {measure([*words, real])}")


if __name__ == "__main__":
    main()
