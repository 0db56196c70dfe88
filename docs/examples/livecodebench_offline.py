"""LiveCodeBench without its hidden tests: statements, the tests shown, and tests of others.

`podium run --suite docs/examples/livecodebench_offline.py@suite` asks the problems of release v6
that have more than public tests, newest first. The others are hidden tests that published records
of failures spell out, and tests of LeetCodeDataset that recorded right programs pass. A program
that passes may still fail the official tests: verdicts stand beside no published figure.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.harness.files import cache_folder
from podium.harness.suite import Card
from podium.suites.base import card
from podium.suites.data import DataSource, data_folder
from podium.suites.livecodebench import LiveCodeBench

PROBLEMS = "lcb_problems/lcb_v6_1055_problems_assembled.jsonl.gz"
ROWS = "livecodebench/offline.jsonl"
KEPT = ("question_id", "question_title", "question_content", "platform", "contest_id",
        "contest_date", "starter_code", "difficulty")  # fmt: skip


def rows() -> Iterator[dict[str, Any]]:
    """Yield problems as the hub has them, newest first."""
    with gzip.open(data_folder() / PROBLEMS, "rt") as file:
        problems = [json.loads(line) for line in file]
    for problem in sorted(problems, key=lambda row: row["contest_date"], reverse=True):
        others = problem["independent_tests"] if problem["independent_tests_validated"] else []
        hidden = [*problem["private_tests_harvested"], *others]
        if hidden:
            name = {"func_name": problem["func_name"]} if problem["func_name"] else {}
            yield {
                **{key: problem[key] for key in KEPT},
                "public_test_cases": json.dumps(problem["public_tests"]),
                "private_test_cases": json.dumps(hidden),
                "metadata": json.dumps(name),
            }


@dataclass(frozen=True, slots=True)
class OfflineLiveCodeBench(LiveCodeBench):
    """The official questions and comparison, on the tests that could be had."""

    @property
    def name(self) -> str:
        """A name of its own: no table may take it for the official suite."""
        return "livecodebench-offline"

    @property
    def dates(self) -> str:
        """Months of its contests."""
        return "2023-05..2025-04"

    @property
    def card(self) -> Card:
        """The official card, with this number of problems."""
        return replace(card("livecodebench"), sizes={"eval": self._source.rows or 0})

    @property
    def data_revision(self) -> str:
        """Digest of the rows."""
        return f"{ROWS}@sha256:{self._source.sha256[:12]}"

    @property
    def _source(self) -> DataSource:
        return self.pinned[self.release.files[0]]


def make_suite() -> OfflineLiveCodeBench:
    """Write the rows below podium's cache folder, and return their suite."""
    folder: Path = cache_folder() / "livecodebench-offline"
    path = folder / ROWS
    lines = [json.dumps(row) + "\n" for row in rows()]
    text = "".join(lines).encode()
    digest = hashlib.sha256(text).hexdigest()
    if not path.is_file() or path.stat().st_size != len(text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    source = DataSource(
        file=ROWS, sha256=digest, rows=len(lines), size=len(text), licence="as livecodebench"
    )
    return OfflineLiveCodeBench(data=folder, pinned={"livecodebench-6": source})


suite = make_suite()
