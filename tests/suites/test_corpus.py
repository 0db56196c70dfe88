"""The battery of replies, each row judged: corpus/SUITE.jsonl, read by battery.py."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.suites import SUITES
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

SHARED = [(other, path.stem) for path in files() for other in ALSO.get(path.stem, ())]


def seen(battery: str) -> Iterator[tuple[str, BatteryRow]]:
    """Yield the rows of a battery that are judged, each with its name."""
    for line, row in rows(battery):
        if HELD_BACK or not held_back(row):
            yield f"{battery}: {line}: {row.why}", row


@pytest.mark.parametrize("battery", [path.stem for path in files()])
def test_every_reply_of_a_battery_gets_its_verdict(battery: str) -> None:
    wrong: list[str] = []
    for name, row in seen(battery):
        question, reply = row.question(battery), row.noisy()
        started = time.process_time()
        grade = SUITES[battery].grade(question, reply)
        seconds = time.process_time() - started
        if grade.value != float(row.right):
            wrong.append(f"{name}: worth {grade.value}")
        if row.extracted is not None and grade.extracted != (row.extracted or None):
            wrong.append(f"{name}: read {grade.extracted!r}")
        if seconds >= LONGEST_S:
            wrong.append(f"{name}: took {seconds:.1f} s of processor")
    assert wrong == []


@pytest.mark.parametrize(("suite", "battery"), SHARED)
def test_a_suite_that_shares_the_reader_says_the_same(suite: str, battery: str) -> None:
    """An integer that only algebra finds (140/2) is read by aime25 alone."""
    wrong: list[str] = []
    for name, row in seen(battery):
        grade = SUITES[suite].grade(row.question(suite), row.noisy())
        unread = grade.extracted is None and KINDS[suite] == "integer"
        if grade.value != (0.0 if unread else float(row.right)):
            wrong.append(f"{name}: worth {grade.value}")
    assert wrong == []


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
