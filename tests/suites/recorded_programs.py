"""Programs of real models with the official verdict, and the tests that could be had for them.

Read in place from the data folder (PODIUM_DATA). Official private tests are not there: problems
have their public tests, some recovered private ones, and for LeetCode independent tests, see
reference/data.md. So a program that passes here may still fail officially, not the other way round.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from podium.suites.code_grading import ProgramCase, ProgramTests
from podium.suites.data import data_folder

PROBLEMS = "lcb_problems/lcb_v6_1055_problems_assembled.jsonl.gz"
O1_MINI = "lcb_submissions/o1-mini_v5_880.json.gz"
QWEN_7B = (
    "lcb_qwen_xiangww/Qwen2.5-Ins-7B-ZeroShotCoT__Scenario.codegeneration_1_0.2_eval_all.json.gz"
)

O1_MINI_OLDER = "lcb_submissions/o1-mini_v5_880_older_grading.json.gz"
GUNI = {
    name: f"lcb_v6_guni/output_test6__{name}__eval_all.json.gz"
    for name in ("DSCoder-V2-Lite-Instruct", "Gemma-2-9b-Ins", "Qwen2.5-Coder-Ins-7B")
}
"""The 175 new problems of v6, ten samples each; their `contest_date` is a placeholder."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One program with its tests and what the published evaluator said of it."""

    question: str
    title: str
    platform: str
    code: str
    tests: ProgramTests
    verdict: bool
    error: str
    """The evaluator's error code and message; empty for a pass."""


def problems() -> dict[str, dict[str, Any]]:
    """Return the problems by question id."""
    with gzip.open(data_folder() / PROBLEMS, "rt", encoding="utf-8") as lines:
        return {row["question_id"]: row for row in map(json.loads, lines)}


def recorded(
    file: str = O1_MINI, *, independent: bool = False, samples: int | None = None
) -> Iterator[Recorded]:
    """Yield the recorded programs of a file, with public and recovered tests.

    With `independent`, only problems with at least twenty validated independent tests, and those.
    With `samples`, only the first so many programs of a problem.
    """
    known = problems()
    for row in json.loads(gzip.decompress((data_folder() / file).read_bytes())):
        problem = known[row["question_id"]]
        cases = _independent(problem) if independent else _public(problem)
        if not cases:
            continue
        programs = zip(row["code_list"], row["graded_list"], row["metadata"], strict=True)
        for code, verdict, note in islice(programs, samples):
            yield Recorded(
                question=row["question_id"],
                title=row["question_title"],
                platform=row["platform"],
                code=code,
                tests=ProgramTests(tuple(cases), problem["func_name"]),
                verdict=bool(verdict),
                error=_error(note),
            )


def have(file: str = O1_MINI) -> str | None:
    """Return why the recorded programs cannot be read; None when they can."""
    for name in (PROBLEMS, file):
        if not (data_folder() / name).is_file():
            return f"there is no {Path(data_folder() / name)}: set PODIUM_DATA"
    return None


def _public(problem: dict[str, Any]) -> Sequence[ProgramCase]:
    tests = [*problem["public_tests"], *problem["private_tests_harvested"]]
    return [ProgramCase(test["input"], test["output"]) for test in tests]


def _independent(problem: dict[str, Any]) -> Sequence[ProgramCase]:
    tests = problem["independent_tests"]
    if not problem["independent_tests_validated"] or len(tests) < 20:
        return []
    return [ProgramCase(test["input"], test["output"]) for test in tests]


def _error(note: Any) -> str:
    """Return an error code and its name, whichever way the file keeps metadata."""
    said = json.loads(note) if isinstance(note, str) else note or {}
    return f"{said['error_code']} {said.get('error_message', '')}" if "error_code" in said else ""
