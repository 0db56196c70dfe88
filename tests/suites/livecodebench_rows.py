"""Raw LiveCodeBench rows made as the hub has them, from the statements and tests in the data."""

import base64
import gzip
import hashlib
import json
import pickle
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.harness.records import Question
from podium.suites.data import DataSource, data_folder
from podium.suites.livecodebench import COUNTS, LiveCodeBench

Row = dict[str, Any]

PROBLEMS = "lcb_problems/lcb_v6_1055_problems_assembled.jsonl.gz"
MEMBERS = "lcb_problems/release_membership.json"
OFFICIAL = "sandboxfusion_samples/code_eval_live_code_bench_v1.jsonl.gz"
"""Three problems with their official tests: 1873_A, 2727 and abc301_a."""

DOUBLE = "```python\nprint(2 * int(input()))\n```"
"""A reply that solves the problem of `row`."""

needs_data = pytest.mark.skipif(
    not (data_folder() / PROBLEMS).is_file(),
    reason=f"{PROBLEMS} is absent; name its folder in PODIUM_DATA",
)


def encoded(tests: object) -> str:
    """Encode private tests as the hub does: JSON, pickled, compressed, base64."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def case(given: str, wanted: str, kind: str = "stdin") -> dict[str, str]:
    return {"input": given, "output": wanted, "testtype": kind}


def row(id: str = "abc999_a", **changes: Any) -> Row:
    """A small problem: print twice the number that is read."""
    return {
        "question_id": id,
        "question_title": "Double",
        "question_content": "Print twice {n}.",
        "platform": "atcoder",
        "contest_id": "abc999",
        "contest_date": "2025-02-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([case("4\n", "8\n")]),
        "private_test_cases": encoded([case("5\n", "10\n"), case("0\n", "0\n")]),
        "metadata": "{}",
        **changes,
    }


def jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


def pinned(folder: Path, files: Mapping[str, list[Row]]) -> dict[str, DataSource]:
    """Write files of rows below a data folder, and pin them as sources.toml pins the hub's."""
    made: dict[str, DataSource] = {}
    for name, rows in files.items():
        path = folder / "livecodebench" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(jsonl(rows))
        made[name] = DataSource(
            file=f"livecodebench/{name}.jsonl",
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            rows=len(rows),
            size=path.stat().st_size,
            licence="test",
        )
    return made


def exam(folder: Path, *rows: Row) -> LiveCodeBench:
    """The suite with these rows as the problems that v6 added."""
    return LiveCodeBench(data=folder, pinned=pinned(folder, {"livecodebench-6": list(rows)}))


def only(suite: LiveCodeBench) -> Question:
    (question,) = suite.load()
    return question


def official_tests() -> dict[str, dict[str, Any]]:
    """Return the official tests of three problems: inputs, outputs and fn_name."""
    found: dict[str, dict[str, Any]] = {}
    with gzip.open(data_folder() / OFFICIAL, "rt") as file:
        for line in file:
            sample = json.loads(line)
            kept = pickle.loads(zlib.decompress(base64.b64decode(sample["test"])))  # our own data
            id = json.loads(sample["labels"])["task_id"].partition("/")[2]
            found[id] = json.loads(kept["input_output"])
    return found


@cache
def all_rows() -> dict[str, Row]:
    """Return all 1,055 problems in the hub's schema, with such private tests as could be had."""
    with gzip.open(data_folder() / PROBLEMS, "rt") as file:
        problems = [json.loads(line) for line in file]
    return {one["question_id"]: _raw(one) for one in problems}


def _raw(problem: Row) -> Row:
    kept = ("question_title", "question_content", "platform", "contest_id", "contest_date")
    facts = {"func_name": problem["func_name"]} if problem["func_name"] else {}
    return {
        "question_id": problem["question_id"],
        **{key: problem[key] for key in (*kept, "starter_code", "difficulty")},
        "public_test_cases": json.dumps(problem["public_tests"]),
        "private_test_cases": encoded(problem["private_tests_harvested"]),
        "metadata": json.dumps(facts),
    }


@cache
def members() -> dict[str, list[str]]:
    """Return the question ids of release v1, v4, v5 and v6."""
    return json.loads((data_folder() / MEMBERS).read_text())


def six_files() -> dict[str, list[Row]]:
    """Lay all problems out as the hub's six files.

    Which of 313 problems came with v2, with v3 and with v4 is not known here; any split will do.
    """
    known, rows = members(), all_rows()
    ids: list[str] = []
    for release in ("v1", "v4", "v5", "v6"):
        ids += [id for id in known[release] if id not in set(ids)]
    files: dict[str, list[Row]] = {}
    for number, count in enumerate(COUNTS, start=1):
        files[f"livecodebench-{number}"] = [rows[id] for id in ids[:count]]
        ids = ids[count:]
    assert ids == []
    return files
