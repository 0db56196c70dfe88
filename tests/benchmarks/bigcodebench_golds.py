"""Run BigCodeBench-Hard's 148 solutions, or a model's recorded ones, and compare with the record.

python tests/benchmarks/bigcodebench_golds.py           # published solutions, skipped tasks too
python tests/benchmarks/bigcodebench_golds.py recorded  # Qwen2.5-Coder-7B: verdict by verdict
"""

import gzip
import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from podium.sandbox import open_box
from podium.suites.bigcodebench import BigCodeBench
from podium.suites.bigcodebench import grade_by_tests as graded
from podium.suites.data import data_folder

NAME = "qwen2.5-coder__7b-base__bigcodebench__hard__completion-sanitized-calibrated"


def recorded() -> tuple[Mapping[str, str], Mapping[str, bool]]:
    """Return the recorded programs and whether each passed, by task."""
    folder = data_folder() / "bigcodebench"
    with gzip.open(folder / f"{NAME}.jsonl.gz", "rt") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file]
    with gzip.open(folder / f"{NAME}_hard_eval_results.json.gz", "rt") as file:
        verdicts: dict[str, Any] = json.load(file)["eval"]
    programs = {row["task_id"]: row["solution"] for row in rows}
    return programs, {name: one[0]["status"] == "pass" for name, one in verdicts.items()}


def main() -> None:
    rows = BigCodeBench().rows()
    programs = {row["task_id"]: row["prompt"] + row["canonical_solution"] for row in rows}
    expected: Mapping[str, bool] = dict.fromkeys(programs, True)
    if sys.argv[1:] == ["recorded"]:
        programs, expected = recorded()
    questions = [BigCodeBench().question(row, row["task_id"]) for row in rows]
    box, started = open_box("docker", 2), time.perf_counter()
    with ThreadPoolExecutor(2) as threads:
        grades = list(threads.map(lambda one: graded(one, programs[one.id], box), questions))
    box.close()
    agreed = 0
    for question, grade in zip(questions, grades, strict=True):
        agreed += (grade.value == 1.0) == expected[question.id]
        if (grade.value == 1.0) != expected[question.id]:
            print(f"{question.id}: {grade.value} instead, {grade.explanation}")
    seconds, image = time.perf_counter() - started, BigCodeBench().image
    print(f"{agreed} of {len(grades)} as expected, {seconds:.0f} s, {image}")


if __name__ == "__main__":
    main()
