"""The battery of replies, each row a named test: corpus/SUITE.jsonl, read by battery.py."""

import time
from pathlib import Path

import pytest

from suites import SUITES
from tests.suites.battery import KINDS, BatteryRow, files, held_back, rows

HELD_BACK = True
"""Whether the held-back fifth is run as well: from the day on which it was looked at."""

LONGEST_S = 2.0
LEAST = 300
"""Rows of a battery."""
WANTED = {"aime25", "gpqa-diamond", "math500", "mmlu", "rlpr"}
"""Suites that must have one: programs are judged by running them; these are read."""
ALSO = {"aime25": ("practice-integer",), "gpqa-diamond": ("practice-choice", "mmlu")}
"""Suites that read as another does, and whose verdict is therefore the same."""

SEEN = [
    pytest.param(path.stem, row, id=f"{path.stem}: {line}: {row.why}")
    for path in files()
    for line, row in rows(path.stem)
    if HELD_BACK or not held_back(row)
]
SHARED = [
    pytest.param(other, row, id=f"{other} on {path.stem}: {line}: {row.why}")
    for path in files()
    for line, row in rows(path.stem)
    for other in ALSO.get(path.stem, ())
    if HELD_BACK or not held_back(row)
]


@pytest.mark.parametrize(("suite", "row"), SEEN)
def test_a_reply_of_the_battery_gets_its_verdict(suite: str, row: BatteryRow) -> None:
    question, reply = row.question(suite), row.noisy()
    exam = SUITES[suite]
    started = time.process_time()
    grade = exam.grade(question, reply)
    seconds = time.process_time() - started
    assert (grade.value, row.why) == (float(row.right), row.why)
    if row.extracted is not None:
        assert grade.extracted == (row.extracted or None)
    assert seconds < LONGEST_S


@pytest.mark.parametrize(("suite", "row"), SHARED)
def test_a_suite_that_shares_the_reader_says_the_same(suite: str, row: BatteryRow) -> None:
    """An integer that only algebra finds (140/2) is read by aime25 alone."""
    grade = SUITES[suite].grade(row.question(suite), row.noisy())
    if grade.extracted is None and KINDS[suite] == "integer":
        assert grade.value == 0.0
    else:
        assert (grade.value, row.why) == (float(row.right), row.why)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_battery_is_of_a_registered_suite_large_enough_and_says_nothing_twice(path: Path) -> None:
    assert path.stem in SUITES
    assert path.stem in KINDS
    found = [(row.gold, row.reply, row.choices, row.noise_kb) for _, row in rows(path.stem)]
    assert sorted({pair for pair in found if found.count(pair) > 1}, key=str) == []
    assert len(found) >= LEAST


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_about_a_fifth_of_a_battery_is_held_back(path: Path) -> None:
    flags = [held_back(row) for _, row in rows(path.stem)]
    assert 0.13 < sum(flags) / len(flags) < 0.27


def test_the_suites_that_read_answers_out_of_text_have_a_battery() -> None:
    assert {path.stem for path in files()} >= WANTED
