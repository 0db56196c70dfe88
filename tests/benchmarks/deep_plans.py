"""What conductors' plans on practice-deep are worth, sequence by sequence, and to a router.

    PYTHONPATH=. python tests/benchmarks/deep_plans.py LOGS [--mine RUN ...]

LOGS is a directory of `podium run --suite practice-deep`. For each system: how many sequences of
workers it wrote, how many of them on 8 questions or more, and on how many of those the sequence is
right more often than its commonest one would have been there (asked here, on fresh draws).
`--mine RUN` is a folder of `podium train`: a router (TF-IDF, ridge) learns which of the sequences
that were right in its last third of steps fits which train question, and is judged on eval.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from podium.harness.ledger.logs import find_logs
from tests.benchmarks.deep_calibration import SUITE, Sequenced, chain, mined, right, row
from tests.benchmarks.plan_shapes import seen_in

LEAST = 8  # questions that a sequence must be written for to count
DRAWS = range(1, 3)


def written(paths: Sequence[Path]) -> dict[str, dict[str, Sequenced]]:
    """Return the workers that each system named for each question, first epoch."""
    found: defaultdict[str, dict[str, Sequenced]] = defaultdict(dict)
    for one in (one for path in find_logs(paths) for one in seen_in(path, "")):
        if one.suite == SUITE.name and one.plan is not None:
            workers = tuple(step.worker for step in one.plan.steps)
            found[one.system].setdefault(one.question, workers)
    return dict(found)


def varied(name: str, plans: dict[str, Sequenced]) -> str:
    """Return one line: sequences, those of enough questions, those that beat the commonest."""
    asked = {one.id: one for one in SUITE.load("eval")}
    by_plan: defaultdict[Sequenced, list[str]] = defaultdict(list)
    for question, workers in plans.items():
        by_plan[workers].append(question)
    common = max(by_plan, key=lambda workers: len(by_plan[workers]))
    often = {workers: ids for workers, ids in by_plan.items() if len(ids) >= LEAST}

    def share(workers: Sequenced, ids: Sequence[str]) -> float:
        return fmean(right(asked[id], chain(workers), DRAWS) for id in ids)

    better = sum(share(workers, ids) > share(common, ids) for workers, ids in often.items())
    return (
        f"{name:60} sequences {len(by_plan):3}, of {LEAST} questions or more {len(often):3}, right "
        f"more often than the commonest ({' '.join(common)}) {better}"
    )


def mine(folder: Path) -> None:
    """Print what a router over a conductor's own plans gets."""
    lines = [json.loads(line) for line in (folder / "plans.jsonl").open()]
    last = max(line["step"] for line in lines)
    questions = {one.id: one for one in SUITE.load("train")}
    known: dict[str, Sequenced] = {}
    for line in lines:
        if line["step"] > last * 2 / 3 and line["correct"] and line["plan"]:
            known[line["question"]] = tuple(worker for worker, _ in line["plan"])
    asked = SUITE.load("eval")
    pairs = [(questions[id], workers) for id, workers in known.items()]
    plans = mined(pairs, asked)
    grades = [right(one, chain(plan), DRAWS) for one, plan in zip(asked, plans, strict=True)]
    row(f"mined from {folder.name}, {len({*known.values()})} plans", grades)


def main(words: Sequence[str] | None = None) -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--mine", nargs="+", type=Path, default=[])
    given = parser.parse_args(words)
    for name, plans in sorted(written([given.logs]).items()):
        print(varied(name, plans), flush=True)
    for folder in given.mine:
        mine(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
